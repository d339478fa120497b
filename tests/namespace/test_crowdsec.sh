#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The CrowdSec bouncer's script: called and fed as crowdsec-custom-bouncer does (its pkg/custom/custom.go), one process a
# decision or lines of JSON on standard input; then by Debian's crowdsec and crowdsec-custom-bouncer themselves, over a
# local API in the namespace of the filter.
. tests/lib.sh

BOUNCER=user/integrations/crowdsec/xdp-cuckoo-bouncer
CROWDSEC=${CROWDSEC:-$PWD/$BUILD/packages/crowdsec}
CUSTOM_BOUNCER=${CUSTOM_BOUNCER:-$PWD/$BUILD/packages/crowdsec-custom-bouncer}

# bouncer ARGUMENT...: with the test's tool and store.
# shellcheck disable=SC2120 # assert_status passes the arguments
bouncer() {
	in_rx env XDP_CUCKOO="$PWD/$TOOL" XDP_CUCKOO_OPTIONS="--state $STATE/store" "$BOUNCER" "$@"
}

# decision ACTION SCOPE VALUE DURATION [TYPE [SCENARIO]]: as Go writes it, in one line; without an ACTION it has none.
decision() {
	printf '{"duration":"%s","id":7,"origin":"CAPI","scenario":"%s","scope":"%s","type":"%s",' "$4" \
		"${6-crowdsecurity/ssh-bf}" "$2" "${5-ban}"
	printf '"uuid":"d5b1a8e0-0000-4000-8000-000000000000","value":"%s"%s}\n' "$3" "${1:+,\"action\":\"$1\"}"
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
	json=$(decision '' Ip 192.0.2.66 4h0m0s)
	assert_status 0 bouncer add 192.0.2.66 14400 crowdsecurity/ssh-bf "$json"
	assert_status 0 bouncer add 192.0.2.66 14400 crowdsecurity/ssh-bf "$json"
	assert_status 0 bouncer add 2001:db8::66 3600 x "$(decision '' Ip 2001:db8::66 1h0m0s ban "manual 'ban' from 'localhost'")"
	assert_status 0 bouncer add 203.0.113.0/24 3600 lists:firehol "$(decision '' Range 203.0.113.0/24 1h0m0s)"
	assert_status 0 bouncer add 192.0.2.67 3600 x "$(decision '' Ip 192.0.2.67 1h0m0s captcha)"
	assert_status 0 bouncer add FR 3600 x "$(decision '' Country FR 1h0m0s)"
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
	assert_status 0 bouncer del 203.0.113.0/24 3000 x "$(decision '' Range 203.0.113.0/24 50m0s)"
	{ verdicts pass 192.0.2.66 203.0.113.1; verdicts drop 2001:db8::66; } | traffic || fail "wrong verdicts"
	case_begin "what cannot be done is said"
	assert_fails 1 'would block' bouncer add 10.99.0.2 3600 x "$(decision '' Ip 10.99.0.2 1h0m0s)"
	assert_fails 1 '192.0.2.1/33' bouncer add 192.0.2.1/33 3600 x "$(decision '' Range 192.0.2.1/33 1h0m0s)"
}

# feed_begin: the script, fed by descriptor 7.
feed_begin() {
	mkfifo "$STATE/in"
	bouncer <"$STATE/in" >"$STATE/answers" 2>"$STATE/complaints" &
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

# A decision that ends, or is taken back, leaves what you or a feed blocks. A feed leaves decisions.
test_decisions_are_a_list_of_their_own() {
	xc load vrx >/dev/null
	xc add 192.0.2.66 comment mine >/dev/null
	printf '192.0.2.67\n' >"$STATE/feed"
	xc import "$STATE/feed" --list feed >/dev/null 2>&1
	for i in 66 67 68 69; do
		decision add Ip "192.0.2.$i" 4h0m0s
	done >"$STATE/json"
	bouncer <"$STATE/json" || fail "status $?"
	assert_shows '^crowdsec +4 ' xc lists
	for i in 66 67 68; do
		decision del Ip "192.0.2.$i" -1s
	done >"$STATE/json"
	bouncer <"$STATE/json" || fail "status $?"
	assert_verdict drop 192.0.2.66 192.0.2.67 192.0.2.69 pass 192.0.2.68
	printf '192.0.2.1\n' >"$STATE/feed"
	xc import "$STATE/feed" --list feed --replace >/dev/null 2>&1
	assert_verdict drop 192.0.2.66 192.0.2.69 pass 192.0.2.67
}

# transactions: the number of the store's last one. LMDB writes it into its first two pages by turns.
transactions() {
	python3 -c '
import mmap, struct, sys
pages = open(sys.argv[1], "rb").read(2 * mmap.PAGESIZE)
print(max(struct.unpack_from("Q", pages, page + 144)[0] for page in (0, mmap.PAGESIZE)))' "$STATE/store/default/data.mdb"
}

# At its start a bouncer gets all decisions at once: a hub of CrowdSec's has 15,000 and more. Those that wait are stored
# together: a transaction each would take minutes.
test_many_decisions_at_once() {
	xc load vrx >/dev/null
	awk 'BEGIN { for (i = 0; i < 20000; i++)
		printf "{\"duration\":\"3h%dm%d.5s\",\"id\":%d,\"origin\":\"CAPI\",\"scenario\":\"crowdsecurity/http-probing\",\"scope\":\"Ip\",\"type\":\"ban\",\"value\":\"10.1.%d.%d\",\"action\":\"add\"}\n",
			i % 60, i % 59, i, i / 256, i % 256 }' >"$STATE/json"
	before=$(transactions)
	bouncer <"$STATE/json" || fail "status $?"
	took=$(($(transactions) - before))
	note "20,000 decisions in $took transactions"
	assert_equal 20000 "$(xc list | wc -l)" "rules"
	[ "$took" -gt 0 ] || fail "no transaction is counted"
	[ "$took" -lt 1000 ] || fail "20,000 decisions took $took transactions"
	assert_status 0 xc check
}

# --- CrowdSec itself

# cs COMMAND ARGUMENT...: a program of the package, on the configuration below.
cs() {
	program=$1
	shift
	in_rx "$CROWDSEC/usr/bin/$program" -c "$STATE/cs/config.yaml" "$@"
}

# local_api: CrowdSec's, without agent and without the central one.
local_api() {
	[ -d "$CROWDSEC" ] || skip "no crowdsec; make packages fetches it"
	[ -d "$CUSTOM_BOUNCER" ] || skip "no crowdsec-custom-bouncer; make packages fetches it"
	cp -r "$CROWDSEC/etc/crowdsec" "$STATE/cs"
	mkdir -p "$STATE/cs/data" "$STATE/cs/hub" "$STATE/cs/notifications" "$STATE/cs/plugins"
	echo '{}' >"$STATE/cs/hub/.index.json"
	cat >"$STATE/cs/config.yaml" <<-END
		common: {daemonize: false, log_media: stdout, log_level: info, working_dir: $STATE/cs}
		config_paths:
		  config_dir: $STATE/cs
		  data_dir: $STATE/cs/data
		  simulation_path: $STATE/cs/simulation.yaml
		  hub_dir: $STATE/cs/hub
		  index_path: $STATE/cs/hub/.index.json
		  notification_dir: $STATE/cs/notifications
		  plugin_dir: $STATE/cs/plugins
		crowdsec_service: {enable: false}
		cscli: {output: raw}
		db_config: {type: sqlite, db_path: $STATE/cs/data/crowdsec.db, use_wal: true}
		api:
		  client: {credentials_path: $STATE/cs/client.yaml}
		  server: {log_level: info, listen_uri: 127.0.0.1:8080, profiles_path: $STATE/cs/profiles.yaml}
	END
	printf 'url: http://127.0.0.1:8080\nlogin: test\npassword: test-test\n' >"$STATE/cs/client.yaml"
	cs cscli machines add test --password test-test --force -f "$STATE/cs/client.yaml" >/dev/null 2>&1
	nsenter --net="/run/netns/$RX" "$CROWDSEC/usr/bin/crowdsec" -c "$STATE/cs/config.yaml" -no-cs >"$STATE/cs.log" 2>&1 &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
	WAIT_LOG=$STATE/cs.log
	wait_for "the local API" cs cscli decisions list
}

# custom_bouncer FEED_VIA_STDIN: the package's bouncer with the lines of its configuration that our script names.
custom_bouncer() {
	cat >"$STATE/cs/bouncer.yaml" <<-END
		bin_path: $PWD/$BOUNCER
		feed_via_stdin: $1
		total_retries: -1
		piddir: $STATE/cs
		update_frequency: 1s
		cache_retention_duration: 1s
		daemonize: false
		log_mode: stdout
		log_level: info
		api_url: http://127.0.0.1:8080/
		api_key: $(cs cscli bouncers add "xdp-cuckoo-$1" -o raw)
		prometheus: {enabled: false}
	END
	nsenter --net="/run/netns/$RX" env XDP_CUCKOO="$PWD/$TOOL" XDP_CUCKOO_OPTIONS="--state $STATE/store" \
		"$CUSTOM_BOUNCER/usr/bin/crowdsec-custom-bouncer" -c "$STATE/cs/bouncer.yaml" >"$STATE/bouncer.log" 2>&1 &
	CUSTOM=$!
	on_exit "kill $CUSTOM 2>/dev/null; wait $CUSTOM 2>/dev/null"
	WAIT_LOG=$STATE/bouncer.log
}

is_listed() {
	xc list --list crowdsec | grep -q "^src $1 timeout .* comment \"crowdsec "
}

is_not_listed() {
	! xc list --list crowdsec | grep -q "^src $1 "
}

# What an administrator types, by both ways in which the bouncer runs the script.
test_crowdsec_bans_and_unbans() {
	local_api
	xc load vrx >/dev/null
	printf '192.0.2.66\n' >"$STATE/feed"
	xc import "$STATE/feed" --list feed >/dev/null 2>&1
	for feed_via_stdin in true false; do
		case_begin "feed_via_stdin: $feed_via_stdin"
		custom_bouncer "$feed_via_stdin"
		cs cscli decisions add --ip 192.0.2.66 --duration 4h 2>/dev/null
		cs cscli decisions add --ip 192.0.2.67 --duration 4h --reason 'a "quoted" reason' 2>/dev/null
		cs cscli decisions add --ip 2001:db8::66 --duration 8s 2>/dev/null
		cs cscli decisions add --range 203.0.113.0/24 --duration 4h 2>/dev/null
		cs cscli decisions add --ip 192.0.2.68 --duration 4h --type captcha 2>/dev/null
		wait_for "bans" is_listed 2001:db8::66
		wait_for "bans" is_listed 203.0.113.0/24
		wait_for "bans" is_listed 192.0.2.67
		{
			verdicts drop 192.0.2.66 192.0.2.67 203.0.113.9
			verdicts pass 192.0.2.68 192.0.2.69
		} | traffic || fail "wrong verdicts"
		wait_for "the end of a decision" is_not_listed 2001:db8::66
		cs cscli decisions delete --all 2>/dev/null
		for value in 192.0.2.66 192.0.2.67 203.0.113.0/24; do
			wait_for "unbans" is_not_listed "$value"
		done
		{ verdicts drop 192.0.2.66; verdicts pass 192.0.2.67 203.0.113.9 2001:db8::66; } | traffic ||
			fail "wrong verdicts after unbans"
		kill "$CUSTOM"
		wait "$CUSTOM" || :
	done
}

# From the bouncer's start to the last rule, 20,000 decisions of the local API.
test_crowdsec_at_the_bouncers_start() {
	local_api
	xc load vrx >/dev/null
	awk 'BEGIN {
		print "duration,scope,value"
		for (i = 0; i < 20000; i++)
			printf "24h,ip,198.19.%d.%d\n", i / 256, i % 256
	}' >"$STATE/decisions.csv"
	cs cscli decisions import -i "$STATE/decisions.csv" >/dev/null 2>&1 || fail "no import"
	began=$(date +%s%N)
	custom_bouncer true
	wait_for "all decisions" sh -c "[ \$('$TOOL' --state '$STATE/store' list | wc -l) -eq 20000 ]"
	note "20,000 decisions in $((($(date +%s%N) - began) / 1000000)) ms, the answer of the local API included"
	assert_status 0 xc check
}

run_tests "$0" "$@"
