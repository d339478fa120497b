#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The CrowdSec bouncer's script, called and fed as crowdsec-custom-bouncer does (its pkg/custom/custom.go): one
# process a decision, or lines of JSON on standard input.
. tests/lib.sh

BOUNCER=user/integrations/crowdsec/xdp-cuckoo-bouncer

# bouncer ARGUMENT...: with the test's tool and store.
bouncer() {
	in_rx env XDP_CUCKOO="$PWD/$TOOL" XDP_CUCKOO_OPTIONS="--state $STATE/store" "$BOUNCER" "$@"
}

# decision ACTION SCOPE VALUE DURATION [TYPE [SCENARIO]]: as Go writes it, in one line.
decision() {
	printf '{"duration":"%s","origin":"CAPI","scenario":"%s","scope":"%s","type":"%s",' "$4" \
		"${6-crowdsecurity/ssh-bf}" "$2" "${5-ban}"
	printf '"uuid":"d5b1a8e0-0000-4000-8000-000000000000","value":"%s","id":7,"action":"%s"}\n' "$3" "$1"
}

verdicts() {
	verdict=$1
	shift
	for address; do
		case $address in *:*) to=2001:db8::99 ;; *) to=198.51.100.99 ;; esac
		echo "$verdict ban proto udp src $address dst $to sport 1 dport 2"
	done
}

test_a_process_for_each_decision() {
	xc load vrx >/dev/null
	json=$(decision '' Ip 192.0.2.66 4h)
	assert_status 0 bouncer add 192.0.2.66 14400 crowdsecurity/ssh-bf "$json"
	assert_status 0 bouncer add 192.0.2.66 14400 crowdsecurity/ssh-bf "$json"
	assert_status 0 bouncer add 2001:db8::66 3600 "manual 'ban' from 'localhost'" "$(decision '' Ip 2001:db8::66 1h)"
	assert_status 0 bouncer add 203.0.113.0/24 3600 lists:firehol "$(decision '' Range 203.0.113.0/24 1h)"
	assert_status 0 bouncer add 192.0.2.67 3600 x "$(decision '' Ip 192.0.2.67 1h captcha)"
	assert_status 0 bouncer add FR 3600 x "$(decision '' Country FR 1h)"
	assert_status 0 bouncer add 192.0.2.68 -5 x "$(decision '' Ip 192.0.2.68 -5s)"
	{
		verdicts drop 192.0.2.66 2001:db8::66 203.0.113.1 203.0.113.255
		verdicts pass 192.0.2.67 192.0.2.68
	} | traffic || fail "wrong verdicts"
	assert_status 0 xc list
	assert_output '^src 192.0.2.66 timeout (4h|3h59m[0-9]+s) comment "crowdsec crowdsecurity/ssh-bf"$'
	assert_output "^src 2001:db8::66 timeout .* comment \"crowdsec manual 'ban' from 'localhost'\"$"
	assert_equal 3 "$(wc -l <"$STATE/out")" "rules"
	assert_status 0 bouncer del 192.0.2.66 -1 crowdsecurity/ssh-bf "$(decision '' Ip 192.0.2.66 -1s)"
	assert_status 0 bouncer del 192.0.2.66 -1 crowdsecurity/ssh-bf "$(decision '' Ip 192.0.2.66 -1s)"
	assert_status 0 bouncer del 203.0.113.0/24 3000 x "$(decision '' Range 203.0.113.0/24 50m)"
	{ verdicts pass 192.0.2.66 203.0.113.1; verdicts drop 2001:db8::66; } | traffic || fail "wrong verdicts"
	case_begin "what cannot be done is said"
	assert_fails 1 'would block' bouncer add 10.99.0.2 3600 x "$(decision '' Ip 10.99.0.2 1h)"
	assert_fails 1 '192.0.2.1/8' bouncer add 192.0.2.1/8 3600 x "$(decision '' Range 192.0.2.1/8 1h)"
}

# feed_begin: the script, fed by descriptor 7.
feed_begin() {
	mkfifo "$STATE/in"
	bouncer --state "$STATE/store" <"$STATE/in" >"$STATE/answers" 2>"$STATE/complaints" &
	FEEDER=$!
	exec 7>"$STATE/in"
}

# within_a_minute COMMAND...
within_a_minute() {
	end=$(($(date +%s) + 60))
	while ! "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$end" ] || fail "waited a minute for: $*"
		sleep 0.05
	done
}

rules_are() {
	[ "$(xc list | wc -l)" -eq "$1" ]
}

test_one_process_for_all_decisions() {
	xc load vrx >/dev/null
	feed_begin
	{
		decision add Ip 192.0.2.66 3h59m58.123456789s
		decision add Ip 2001:db8::66 167h59m59s
		decision add Range 203.0.113.0/24 59m0.5s ban 'a \"quote\", then \"value\":\"192.0.2.99\"'
		decision add Ip 192.0.2.67 1h0m0s captcha
		decision add AS 64496 1h0m0s
		decision add Ip 192.0.2.68 -1h2m3s
		decision add Ip 192.0.2.69 812.5ms
		decision add Ip 192.0.2.70 1h0m0s ban 'caf\u00e9 é'
		echo 'no JSON'
		decision add Ip 192.0.2.1234 1h0m0s
		decision add Ip '192.0.2.71 action pass' 1h0m0s
	} >&7
	within_a_minute rules_are 4
	within_a_minute grep -q '192.0.2.71' "$STATE/complaints"
	{
		verdicts drop 192.0.2.66 2001:db8::66 203.0.113.77 192.0.2.70
		verdicts pass 192.0.2.67 192.0.2.68 192.0.2.69 192.0.2.99 192.0.2.71
	} | traffic || fail "wrong verdicts"
	assert_status 0 xc list
	assert_output '^src 192.0.2.66 timeout 3h59m[0-9]+s comment "crowdsec crowdsecurity/ssh-bf"$'
	assert_output '^src 2001:db8::66 timeout 6d23h59m[0-9]+s comment'
	assert_output '^src 203.0.113.0/24 timeout 5[89]m([0-9]+s)? comment "crowdsec a "$'
	assert_equal 3 "$(grep -c error "$STATE/complaints")" "complaints: $(cat "$STATE/complaints")"
	{
		decision del Ip 192.0.2.66 -1s
		decision del Range 203.0.113.0/24 40m0s
		decision del Ip 192.0.2.200 -1s
	} >&7
	within_a_minute rules_are 2
	{ verdicts pass 192.0.2.66 203.0.113.77; verdicts drop 2001:db8::66; } | traffic || fail "wrong verdicts"
	exec 7>&-
	wait "$FEEDER" || fail "status $? at the end"
	assert_status 0 xc check
}

# At its start a bouncer gets all decisions at once.
test_many_decisions_at_once() {
	xc load vrx >/dev/null
	awk 'BEGIN { for (i = 0; i < 5000; i++)
		printf "{\"duration\":\"3h%dm%d.5s\",\"origin\":\"CAPI\",\"scenario\":\"crowdsecurity/http-probing\",\"scope\":\"Ip\",\"type\":\"ban\",\"value\":\"10.1.%d.%d\",\"action\":\"add\"}\n",
			i % 60, i % 59, i / 256, i % 256 }' >"$STATE/json"
	bouncer --state "$STATE/store" <"$STATE/json" || fail "status $?"
	assert_equal 5000 "$(xc list | wc -l)" "rules"
	assert_status 0 xc check
}

run_tests "$0" "$@"
