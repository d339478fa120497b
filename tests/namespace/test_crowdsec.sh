#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# crowdsec: a list is equal to the decisions of a local API. A small one in Python misbehaves; then Debian's crowdsec itself.
# Takes minutes.
. tests/lib.sh

CROWDSEC=${CROWDSEC:-$PWD/$BUILD/packages/crowdsec}
NOTES='' # where the bouncer writes

# lapi [ADDRESS [CERT KEY CA]]: in the namespace of the filter.
lapi() {
	$PYTHON -c 'import ctypes; ctypes.CDLL("libcurl.so.4")' 2>/dev/null || skip "no libcurl.so.4"
	mkdir -p "$STATE/lapi"
	echo secret-key >"$STATE/lapi/key"
	rm -f "$STATE/lapi/ready"
	nsenter --net="/run/netns/$RX" $PYTHON tests/helpers/lapi.py "$STATE/lapi" "${@:-8080}" >"$STATE/server" 2>&1 &
	LAPI=$!
	on_exit "kill $LAPI 2>/dev/null; wait $LAPI 2>/dev/null"
	WAIT_LOG=$STATE/server wait_for "a local API" [ -e "$STATE/lapi/ready" ]
}

lapi_stop() {
	kill "$LAPI"
	wait "$LAPI" || :
}

# configure LINE...: a bouncer that asks each second.
configure() {
	umask 077
	echo secret-key >"$STATE/key"
	printf '%s\n' '[crowdsec]' "key-file = $STATE/key" 'every = 1s' "$@" >"$STATE/conf"
}

# bouncer_start [WORD...]: the words come before the command.
bouncer_start() {
	NOTES=$STATE/notes
	nsenter --net="/run/netns/$RX" "$@" "$TOOL" --state "$STATE/store" crowdsec --config "$STATE/conf" >"$NOTES" 2>&1 &
	BOUNCER=$!
	WAIT_LOG=$NOTES
	on_exit "kill $BOUNCER 2>/dev/null; wait $BOUNCER 2>/dev/null"
}

bouncer_stop() {
	kill "$BOUNCER"
	wait "$BOUNCER" || fail "status $? at the end"
}

# decide LINE...: these are all decisions now.
decide() {
	printf '%s\n' "$@" >"$STATE/lapi/decisions.new"
	mv "$STATE/lapi/decisions.new" "$STATE/lapi/decisions"
}

mode() {
	echo "$1" >"$STATE/lapi/mode"
}

# listed: the sources of the list, sorted.
listed() {
	xc list --list crowdsec 2>/dev/null | sed -n 's/^src \([^ ]*\).*/\1/p' | sort | tr '\n' ' ' | sed 's/ $//'
}

# shellcheck disable=SC2317 # wait_for calls it
is_listed() {
	[ "$(listed)" = "$1" ]
}

# has_rules COUNT: whether the list has so many.
has_rules() {
	xc lists | grep -q "^crowdsec  *$1 "
}

await() {
	wait_for "the list '$1' and not '$(listed)'" is_listed "$1"
}

# requests PATTERN: how many there were.
requests() {
	grep -c "$1" "$STATE/lapi/log" || :
}

# some_polls N: waits for so many.
some_polls() {
	wait_for "$1 polls" eval "[ \$(grep -c . '$STATE/lapi/log') -ge $(($(grep -c . "$STATE/lapi/log") + $1)) ]"
}

more_requests() {
	[ "$(requests "$1")" -gt "$2" ]
}

test_decisions_become_rules() {
	lapi
	configure
	xc load vrx >/dev/null
	xc add 192.0.2.66 comment mine >/dev/null
	printf '192.0.2.67\n' >"$STATE/feed"
	xc import "$STATE/feed" --list feed >/dev/null 2>&1
	decide '1 Ip 192.0.2.66 4h0m0s CAPI crowdsecurity/ssh-bf' '2 ip 2001:db8::66 167h59m58.123456789s cscli a_"quoted"_reason' \
		'3 Range 203.0.113.7/24 59m0.5s lists firehol' '4 Ip 192.0.2.67 1h0m0s crowdsec x' '5 Ip 192.0.2.68 1h crowdsec x' \
		'6 Ip 192.0.2.69 1h cscli x captcha' '7 Country FR 1h cscli x' '8 AS 64496 1h cscli x' '9 Ip 192.0.2.70 -5s CAPI x' \
		'10 Ip 192.0.2.1234 1h CAPI x' '11 Range 0.0.0.0/1 1h CAPI x' '12 Ip 192.0.2.71,192.0.2.72 1h CAPI x' \
		'13 Ip 192.0.2.73 soon CAPI x' '16 Ip 192.0.2.74 nanh CAPI x' '17 Ip 192.0.2.75 1e400h CAPI x' \
		'18 Ip 192.0.2.76 0x10h CAPI x' '19 Ip 192.0.2.77 1.5.5h CAPI x' '14 Ip 10.99.0.2 1h CAPI x' '15 Range 192.0.2.71-192.0.2.72 1h CAPI x'
	bouncer_start
	await '192.0.2.66 192.0.2.67 192.0.2.68 2001:db8::66 203.0.113.0/24'
	assert_verdict drop 192.0.2.66 192.0.2.67 2001:db8::66 203.0.113.9 pass 192.0.2.69 192.0.2.70 192.0.2.71
	assert_status 0 xc list --list crowdsec
	assert_output '^src 192.0.2.68 timeout (1h|59m[0-9]+s) comment "crowdsec crowdsec x"$'
	assert_output "^src 2001:db8::66 timeout 6d23h59m([0-9]+s)? comment \"crowdsec cscli a 'quoted' reason\"\$"
	assert_output '^src 203.0.113.0/24 timeout 5[89]m([0-9]+s)? comment "crowdsec lists:firehol firehol"$'
	for what in '1 decisions are no rules: type captcha' '1 decisions are no rules: scope Country' \
		'1 decisions are no rules: scope AS' '1 decisions are no rules: shorter than min-prefix' \
		'8 decisions are no rules: unreadable' 'would block'; do
		wait_for "the note '$what'" grep -q "$what" "$NOTES"
	done
	assert_shows '^crowdsec +5 .*crowdsec: 7 decisions, 4 left out, 8 unreadable, 1 refused$' xc lists
	assert_shows '^xdp_cuckoo_list_refused_rules[{]name="default",list="crowdsec"[}] 1$' xc metrics
	case_begin "what is taken back"
	decide '2 ip 2001:db8::66 167h59m cscli x' '5 Ip 192.0.2.68 1h crowdsec x' '20 Ip 192.0.2.80 5m cscli x'
	await '192.0.2.68 192.0.2.80 2001:db8::66'
	assert_verdict drop 192.0.2.66 192.0.2.67 192.0.2.68 192.0.2.80 2001:db8::66 pass 203.0.113.9
	case_begin "a later one that would lock this host out"
	decide '2 ip 2001:db8::66 167h59m cscli x' '5 Ip 192.0.2.68 1h crowdsec x' '20 Ip 192.0.2.80 5m cscli x' '22 Ip 10.99.0.2 1h x x'
	wait_for "its number" eval "xc lists | grep -q ', 2 refused$'"
	case_begin "a decision that ends without a word of the local API"
	end_ms=$(($(now_ms) + 3000 * SLOWER))
	decide '2 ip 2001:db8::66 167h59m cscli x' '5 Ip 192.0.2.68 1h crowdsec x' '20 Ip 192.0.2.80 5m cscli x' \
		"21 Ip 192.0.2.81 $((3 * SLOWER))s cscli x"
	until is_listed '192.0.2.68 192.0.2.80 192.0.2.81 2001:db8::66'; do
		[ "$(now_ms)" -lt "$end_ms" ] || fail_by 0 "its decision came too late"
	done
	await '192.0.2.68 192.0.2.80 2001:db8::66'
	bouncer_stop
	assert_equal '192.0.2.68 192.0.2.80 2001:db8::66' "$(listed)" "rules after the bouncer's end"
	assert_status 0 xc check
}

# What costs more than itself: a decision that is no JSON, the age of the file of servers, a length for IPv4.
test_what_is_wrong_costs_only_itself() {
	lapi
	configure 'min-prefix = 24'
	xc load vrx >/dev/null
	raw() {
		printf ',{"id":%s,"type":"ban","scope":"Ip","value":"192.0.2.%s","duration":"1h","origin":"x","scenario":"%s"%s}' "$@"
	}
	{ raw 2 67 'a\u0000b' ''; raw 99999999999999999999 68 x ''; raw 3 69 x ',"x":1e999'; raw 4 70 '\x{' ',"a":[{}]'; } |
		cut -c 2- >"$STATE/lapi/raw"
	decide '1 Ip 192.0.2.66 1h cscli x' '5 Range 2000::/4 1h cscli x' '6 Range 203.0.0.0/16 1h cscli x'
	bouncer_start
	await '192.0.2.66 192.0.2.67 192.0.2.68'
	assert_shows 'crowdsec: 3 decisions, 2 left out, 2 unreadable, 0 refused$' xc lists
	case_begin "servers that feed the list for a month"
	touch -d '31 days ago' "$STATE/store/default/servers-crowdsec"
	wait_for "the file anew" eval "find '$STATE/store/default/servers-crowdsec' -mtime -1 | grep -q ."
	bouncer_stop
	case_begin "a list by another name, silent from the first"
	lapi_stop
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" crowdsec --config "$STATE/conf" --list other 2>"$NOTES" &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
	wait_for "the list" eval "'$TOOL' --state '$STATE/store' lists 2>&1 | grep -q '^other '"
}

# The list is equal to the first answer, whatever it was.
test_a_start_makes_the_list_equal() {
	lapi
	configure
	xc load vrx >/dev/null
	seq -f '198.19.0.%.0f' 200 >"$STATE/old"
	xc import "$STATE/old" --list crowdsec >/dev/null 2>&1
	decide '1 Ip 198.19.0.7 1h cscli x' '2 Ip 198.19.1.1 1h cscli x'
	bouncer_start
	await '198.19.0.7 198.19.1.1'
	bouncer_stop
	case_begin "no decision at all"
	: >"$STATE/lapi/decisions"
	bouncer_start
	await ''
	bouncer_stop
	assert_equal 0 "$(xc list | wc -l)" "rules"
}

# Among many changes the local API may lose one.
test_a_lost_decision_comes_with_the_whole_list() {
	lapi
	configure
	xc load vrx >/dev/null
	decide '1 Ip 192.0.2.66 1h cscli x'
	bouncer_start
	await '192.0.2.66'
	mode miss
	seq 2 1500 | awk '{ print $1, "Ip", "198.19." int($1 / 250) "." $1 % 250, "1h", "cscli", "x" }' >"$STATE/lapi/decisions.new"
	mv "$STATE/lapi/decisions.new" "$STATE/lapi/decisions"
	wait_for "all of them" sh -c "[ \"\$('$TOOL' --state '$STATE/store' list --list crowdsec | wc -l)\" -eq 1499 ]"
	assert_verdict drop 198.19.0.2 198.19.5.249 pass 192.0.2.66
	grep -q 'told of 1 addresses, and of the end of 0, only in its whole list' "$NOTES" || fail "$(cat "$NOTES")"
	assert_equal 2 "$(requests whole)" "whole lists"
	bouncer_stop
}

# The later end counts. When one decision is taken back, the other one stays.
test_two_decisions_for_one_address() {
	lapi
	configure
	xc load vrx >/dev/null
	decide '1 Ip 192.0.2.66 1h cscli short' '2 Ip 192.0.2.66 4h cscli long' '3 Ip 192.0.2.67 1h cscli short'
	bouncer_start
	await '192.0.2.66 192.0.2.67'
	assert_shows '^src 192.0.2.66 timeout (4h|3h59m)' xc list
	decide '1 Ip 192.0.2.66 59m cscli short' '3 Ip 192.0.2.67 59m cscli short' '4 Ip 192.0.2.67 8h cscli long'
	wait_for "the shorter end" sh -c "'$TOOL' --state '$STATE/store' list | grep -Eq '^src 192.0.2.66 timeout (1h|59m)'"
	wait_for "the longer end" sh -c "'$TOOL' --state '$STATE/store' list | grep -Eq '^src 192.0.2.67 timeout (8h|7h59m)'"
	assert_verdict drop 192.0.2.66 192.0.2.67
	decide '4 Ip 192.0.2.67 8h cscli long'
	await '192.0.2.67'
	assert_shows '^src 192.0.2.67 timeout (8h|7h59m)' xc list
	bouncer_stop
}

# Whatever an answer is: the list stays, there is one note, and the next good answer is asked for as a whole.
test_a_local_api_that_fails() {
	lapi
	configure
	xc load vrx >/dev/null
	decide '1 Ip 192.0.2.66 1h cscli x'
	bouncer_start
	await 192.0.2.66
	n=67
	for wrong in 500 503 403 garbage cut nothing other lost; do
		case_begin "$wrong"
		asked=$(requests "$wrong") wholes=$(requests whole)
		mode "$wrong"
		decide "1 Ip 192.0.2.66 1h cscli x" "$n Ip 192.0.2.$n 1h cscli x"
		wait_for "requests" more_requests "$wrong" "$asked"
		wait_for "a note" grep -q 'cannot read decisions' "$NOTES"
		assert_verdict drop 192.0.2.66
		mode fine
		await "192.0.2.66 192.0.2.$n"
		[ "$(requests whole)" -gt "$wholes" ] || fail "did not ask for all decisions again"
		grep -q 'the LAPI answers again' "$NOTES" || fail "does not say that it is over"
		: >"$NOTES"
		n=$((n + 1))
	done
	case_begin "it is stopped, and started with fewer decisions"
	lapi_stop
	wait_for "a note" grep -q 'cannot read decisions' "$NOTES"
	assert_verdict drop 192.0.2.66 192.0.2.74
	decide '1 Ip 192.0.2.66 1h cscli x'
	lapi
	await 192.0.2.66
	bouncer_stop
	assert_status 0 xc check
}

# What the store cannot take is asked for again.
test_a_change_that_fails_comes_again() {
	lapi
	configure
	decide '1 Ip 192.0.2.66 1h cscli x'
	bouncer_start
	await 192.0.2.66
	mv "$STATE/store/default/data.mdb" "$STATE/kept"
	mkdir "$STATE/store/default/data.mdb"
	decide '1 Ip 192.0.2.66 1h cscli x' '2 Ip 192.0.2.67 1h cscli x'
	wholes=$(requests whole)
	wait_for "a whole answer" more_requests whole "$wholes"
	rmdir "$STATE/store/default/data.mdb"
	mv "$STATE/kept" "$STATE/store/default/data.mdb"
	await '192.0.2.66 192.0.2.67'
	bouncer_stop
}

# A new decision, and the end of one, for which memory is short: the whole list says it again.
test_a_line_without_memory_comes_again() {
	lapi
	configure
	xc load vrx >/dev/null
	decide '1 ip 192.0.2.1 4h x x' '2 ip 192.0.2.2 4h x x'
	bouncer_start env LD_PRELOAD="$PWD/$HELPERS/short_once.so" SHORT_FILE="$STATE/short"
	await '192.0.2.1 192.0.2.2'
	touch "$STATE/short"
	decide '1 ip 192.0.2.1 4h x x' '2 ip 192.0.2.2 4h x x' '3 ip 192.0.2.3 4h x x'
	await '192.0.2.1 192.0.2.2 192.0.2.3'
	touch "$STATE/short"
	decide '1 ip 192.0.2.1 4h x x' '2 ip 192.0.2.2 4h x x'
	await '192.0.2.1 192.0.2.2'
	grep -q "not enough memory: 'add src 192.0.2.3 .*' is left out" "$NOTES" || fail "nothing was left out"
	bouncer_stop
}

test_more_decisions_than_max_rules() {
	lapi
	configure 'max-rules = 2'
	of_source() {
		xc lists --json | grep -q "crowdsec: $1"
	}
	decide '1 Ip 192.0.2.66 1h cscli x' '2 Ip 192.0.2.67 1h cscli x' '3 Ip 192.0.2.68 1h cscli x' '4 Ip 192.0.2.69 1h cscli x'
	bouncer_start
	wait_for "two that are left out" of_source '2 decisions, 2 left out'
	case_begin "a decision without a rule ends"
	decide '1 Ip 192.0.2.66 1h cscli x' '2 Ip 192.0.2.67 1h cscli x' '3 Ip 192.0.2.68 1h cscli x'
	wait_for "one that is left out" of_source '2 decisions, 1 left out'
	case_begin "a rule ends"
	decide '2 Ip 192.0.2.67 1h cscli x' '3 Ip 192.0.2.68 1h cscli x'
	await '192.0.2.67 192.0.2.68'
	wait_for "none that is left out" of_source '2 decisions, 0 left out'
	bouncer_stop
}

# Another tool holds the filter, so its table cannot grow. What finds no room keeps nobody banned, and is asked for seldom.
test_a_full_table() {
	lapi
	configure
	ip -n "$RX" link add vup type bridge
	ip -n "$RX" link set vrx master vup
	assert_status 0 xc load vrx --no-spare --capacity 970
	ip -n "$RX" link set dev vup xdpgeneric obj "$HELPERS/beside.bpf.o" sec xdp || fail "no program for the bridge"
	seq -f '198.19.0.%.0f' 240 | sed 'p; s/19.0/19.1/p; s/19.1/19.2/p; s/19.2/19.3/' | sort -u >"$STATE/mine"
	xc import "$STATE/mine" >/dev/null 2>&1
	ban() {
		decide "$(seq "$@" | sed 's,.*,& Ip 203.0.113.& 4h x x,')"
	}
	ban 1 20
	bouncer_start
	wait_for "20 rules" has_rules 20
	ban 1 150
	wait_for "the number without room" eval "xc lists | grep -Eq 'crowdsec: 150 decisions, .* [1-9][0-9]+ refused'"
	assert_shows '^left out: +crowdsec: [1-9][0-9]+ of 150 decisions$' xc status
	case_begin "a decision is taken back"
	ban 2 150
	wait_for "its end" eval "! xc test 203.0.113.1 >/dev/null"
	some_polls 3
	wholes=$(requests whole)
	some_polls 8
	[ "$(($(requests whole) - wholes))" -lt 4 ] || fail "asks again and again: $(cat "$STATE/lapi/log")"
	case_begin "others are, while a hundred come"
	ban 4 250
	wait_for "their end" eval "! xc test 203.0.113.2 >/dev/null && ! xc test 203.0.113.3 >/dev/null"
	case_begin "room comes"
	sed 's/^/del /' "$STATE/mine" >"$STATE/less"
	xc batch "$STATE/less" >/dev/null 2>&1
	wait_for "all rules" has_rules 247
	wait_for "the number" eval "xc lists | grep -q 'crowdsec: 247 decisions, 0 left out, 0 unreadable, 0 refused'"
	bouncer_stop
	assert_status 0 xc check
}

# What found no room on the disk is asked for again as soon as there is room.
test_a_full_disk() {
	lapi
	configure
	mkdir "$STATE/store"
	mount -t tmpfs -o size=8m none "$STATE/store" 2>/dev/null || skip "no tmpfs may be mounted here"
	on_exit "umount -l '$STATE/store'"
	decide '1 Ip 192.0.2.66 1h cscli x' '3 Ip 192.0.2.68 1h cscli x'
	bouncer_start
	await '192.0.2.66 192.0.2.68'
	head -c 9m /dev/zero >"$STATE/store/full" 2>/dev/null || :
	decide '1 Ip 192.0.2.66 1h cscli x' '2 Ip 192.0.2.67 1h cscli x'
	wait_for "the error" grep -q 'No space left' "$NOTES"
	wait_for "the end without room" grep -q "still in the list 'crowdsec': 1" "$NOTES"
	wait_for "a long pause between questions" more_requests whole 4
	some_polls 2
	rm "$STATE/store/full"
	polls=$(requests .)
	await '192.0.2.66 192.0.2.67'
	[ "$(($(requests .) - polls))" -lt 7 ] || fail "asks late: $(cat "$STATE/lapi/log")"
	bouncer_stop
}

# The LAPI tells each change once. So after another command has changed the list, all decisions are asked for.
test_a_list_that_another_command_changes() {
	lapi
	configure
	xc load vrx >/dev/null
	decide '1 Ip 192.0.2.66 1h cscli x' '2 Ip 192.0.2.67 1h cscli x'
	xc backup >"$STATE/empty"
	bouncer_start
	await '192.0.2.66 192.0.2.67'
	for change in "restore $STATE/empty" 'lists delete crowdsec' 'del src 192.0.2.66'; do
		case_begin "$change"
		# shellcheck disable=SC2086 # words
		assert_status 0 in_rx "$TOOL" --state "$STATE/store" $change
		wait_for "a note" grep -q "another command has changed the list 'crowdsec'" "$NOTES"
		await '192.0.2.66 192.0.2.67'
		: >"$NOTES"
	done
	wholes=$(requests whole)
	some_polls 4
	assert_equal "$wholes" "$(requests whole)" "whole answers when nobody changes it"
	bouncer_stop
}

test_origins_and_scenarios() {
	lapi
	configure 'origins = CAPI , cscli,, lists:firehol -cscli' 'scenarios = -http-' 'action = monitor' 'list = others'
	xc load vrx >/dev/null
	decide '1 Ip 192.0.2.1 1h CAPI crowdsecurity/ssh-bf' '2 Ip 192.0.2.2 1h cscli x' '3 Ip 192.0.2.3 1h lists firehol' \
		'4 Ip 192.0.2.4 1h lists tor' '5 Ip 192.0.2.5 1h CAPI crowdsecurity/http-probing'
	bouncer_start
	wait_for "the rules" sh -c "[ \$('$TOOL' --state '$STATE/store' list --list others | wc -l) -eq 2 ]"
	assert_shows '^src 192.0.2.1 action monitor timeout' xc list
	assert_shows '^src 192.0.2.3 action monitor timeout' xc list
	assert_verdict pass 192.0.2.1 192.0.2.3
	grep -q '3 decisions are no rules: excluded' "$NOTES" || fail "no note"
	bouncer_stop
}

test_a_bad_configuration() {
	configure
	chmod 644 "$STATE/key"
	assert_fails 3 'key-file' xc crowdsec --config "$STATE/conf"
	chmod 600 "$STATE/key"
	echo 'two words' >"$STATE/key"
	assert_fails 2 "key-file = '.*': must have one word" xc crowdsec --config "$STATE/conf"
	for line in 'url = http://203.0.113.1:8080|needs a url with https://' 'cert = /x|needs cert and cert-key' \
		'ca = /x|needs a url with https://' 'action = pass|must have action' 'metrics-every = 0|must be a time'; do
		configure "${line%|*}"
		assert_fails 2 "${line#*|}" xc crowdsec --config "$STATE/conf"
	done
	printf '[crowdsec]\n' >"$STATE/conf"
	assert_fails 2 'needs key-file' xc crowdsec --config "$STATE/conf"
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/conf"
	assert_fails 2 'no section .crowdsec.' xc crowdsec --config "$STATE/conf"
}

test_the_wrong_key() {
	lapi
	configure
	echo another-key >"$STATE/key"
	bouncer_start
	wait_for "a note" grep -q 'the server answers 403' "$NOTES"
	grep -q 'another-key' "$NOTES" && fail "shows the key"
	bouncer_stop
}

test_a_socket() {
	# The process without privileges must reach it.
	place=$(mktemp -d -p /tmp)
	on_exit "rm -rf '$place'"
	lapi "$place/socket"
	configure "socket = $place/socket"
	decide '1 Ip 192.0.2.66 1h cscli x'
	bouncer_start
	wait_for "a note" grep -q "must be able to write to $place/socket" "$NOTES"
	chmod 755 "$place"
	await 192.0.2.66
	bouncer_stop
}

test_client_certificates() {
	command -v openssl >/dev/null || skip "no openssl"
	mkdir "$STATE/tls"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$STATE/tls/ca.key" -out "$STATE/tls/ca.crt" -days 2 \
		-subj '/CN=an authority of the test' 2>/dev/null
	for name in 127.0.0.1 bouncer; do
		openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$STATE/tls/$name.key" -out "$STATE/tls/csr" -subj "/CN=$name" 2>/dev/null
		echo 'subjectAltName=IP:127.0.0.1' >"$STATE/tls/ext"
		openssl x509 -req -in "$STATE/tls/csr" -CA "$STATE/tls/ca.crt" -CAkey "$STATE/tls/ca.key" -CAcreateserial -days 2 \
			-extfile "$STATE/tls/ext" -out "$STATE/tls/$name.crt" 2>/dev/null
	done
	chmod 600 "$STATE/tls/bouncer.key"
	lapi 8443 "$STATE/tls/127.0.0.1.crt" "$STATE/tls/127.0.0.1.key" "$STATE/tls/ca.crt"
	decide '1 Ip 192.0.2.66 1h cscli x'
	printf '%s\n' '[crowdsec]' 'url = https://127.0.0.1:8443/' 'every = 1s' "ca = $STATE/tls/ca.crt" \
		"cert = $STATE/tls/bouncer.crt" "cert-key = $STATE/tls/bouncer.key" >"$STATE/conf"
	bouncer_start
	await 192.0.2.66
	bouncer_stop
	case_begin "without a certificate"
	configure 'url = https://127.0.0.1:8443' "ca = $STATE/tls/ca.crt"
	bouncer_start
	wait_for "a note" grep -q 'cannot read decisions' "$NOTES"
	bouncer_stop
}

# value NAME UNIT ORIGIN: in the last report.
value() {
	tail -n 1 "$STATE/lapi/metrics" | jq -r --arg name "$1" --arg unit "$2" --arg origin "$3" '.remediation_components[0].metrics[0].items[] |
		select(.name == $name and .unit == $unit and .labels.origin == $origin and .labels.ip_type == "ipv4").value'
}

test_usage_metrics() {
	lapi
	configure 'metrics-every = 2s'
	xc load vrx >/dev/null
	decide '1 Ip 192.0.2.66 1h CAPI x' '2 Ip 192.0.2.67 1h CAPI x' '3 Ip 192.0.2.68 1h cscli x' '4 Ip 2001:db8::1 1h lists tor'
	bouncer_start
	await '192.0.2.66 192.0.2.67 192.0.2.68 2001:db8::1'
	reports=$(grep -c . "$STATE/lapi/metrics" 2>/dev/null || :)
	wait_for "a report" sh -c "[ \"\$(grep -c . '$STATE/lapi/metrics')\" -gt ${reports:-0} ]"
	assert_verdict drop 192.0.2.66 192.0.2.66 192.0.2.67 192.0.2.68
	sum=0
	for _ in 1 2 3; do
		reports=$(grep -c . "$STATE/lapi/metrics")
		wait_for "a report" sh -c "[ \"\$(grep -c . '$STATE/lapi/metrics')\" -gt $reports ]"
		sum=$((sum + $(value dropped packet CAPI)))
	done
	assert_equal 3 "$sum" "packets dropped for CAPI in three reports"
	assert_equal 2 "$(value active_decisions ip CAPI)" "decisions of CAPI"
	assert_equal 1 "$(value active_decisions ip cscli)" "decisions of cscli"
	assert_equal 'lists:tor' "$(tail -n 1 "$STATE/lapi/metrics" | jq -r '.remediation_components[0].metrics[0].items[] |
		select(.name == "active_decisions" and .labels.ip_type == "ipv6").labels.origin')" "the list"
	bouncer_stop
	case_begin "a local API that knows no reports is not asked again"
	mode 404
	: >"$STATE/lapi/log"
	bouncer_start
	wait_for "a report" more_requests report 0
	wait_for "more polls" sh -c "[ \$(wc -l <'$STATE/lapi/log') -gt 8 ]"
	assert_equal 1 "$(requests report)" "reports"
	bouncer_stop
}

# Without an answer for twelve polls the list counts as not fed; its rules stay.
test_not_fed() {
	lapi
	configure
	xc load vrx >/dev/null
	decide '1 Ip 192.0.2.66 1h cscli x'
	bouncer_start
	await 192.0.2.66
	some_polls 14
	assert_shows '^xdp_cuckoo_list_not_fed\{.*list="crowdsec"\} 0$' xc metrics -
	mode 500
	wait_for "word of it" sh -c "'$TOOL' --state '$STATE/store' lists | grep -q 'not fed'"
	assert_status 1 in_rx "$TOOL" --state "$STATE/store" status
	assert_output 'not fed.*crowdsec'
	assert_shows '^xdp_cuckoo_list_not_fed\{.*list="crowdsec"\} 1$' xc metrics -
	assert_verdict drop 192.0.2.66
	mode fine
	wait_for "a list that is fed" sh -c "! '$TOOL' --state '$STATE/store' lists | grep -q 'not fed'"
	bouncer_stop
}

# Each way to be dead, under a bouncer that is started again and again.
# shellcheck disable=SC2016 # for eval
test_a_dead_local_api_is_seen() {
	lapi
	on_exit 'kill -CONT "$LAPI" 2>/dev/null'
	configure
	xc load vrx >/dev/null
	decide '1 Ip 192.0.2.66 1h cscli x'
	mv "$STATE/key" "$STATE/right"
	echo wrong >"$STATE/key"
	chmod 600 "$STATE/key"
	again "$TOOL" --state "$STATE/store" crowdsec --config "$STATE/conf"
	case_begin "a wrong key from the first"
	wait_for "word of it" silence_is crowdsec 1
	wait_for "no other word" stays crowdsec
	silence_is crowdsec 1 || fail "$(cat "$STATE/out")"
	mv "$STATE/right" "$STATE/key"
	for way in 'mode 403|mode fine' 'kill -STOP $LAPI|kill -CONT $LAPI' \
		'in_rx iptables -I INPUT -p tcp --dport 8080 -j DROP|in_rx iptables -F INPUT' 'lapi_stop|lapi' \
		'lapi_stop; write_list hand 7; xc import "$STATE/hand" --list crowdsec|lapi'; do
		case_begin "$way"
		wait_for "the source" silence_is crowdsec 0
		eval "${way%|*}" >/dev/null 2>&1
		assert_silent crowdsec 13
		eval "${way#*|}"
	done
	case_begin "a clock that was a day ahead"
	wait_for "the source" silence_is crowdsec 0
	silence_is crowdsec 1 -86400 || fail "$(cat "$STATE/out")"
}

# 100,000 decisions when the bouncer starts; then one more.
test_many_decisions() {
	decisions=${DECISIONS:-20000}
	lapi
	configure
	xc load vrx --capacity 200000 >/dev/null
	awk -v decisions="$decisions" 'BEGIN { for (i = 0; i < decisions; i++) printf "%d Ip 10.%d.%d.%d 3h%dm CAPI crowdsecurity/http-probing\n", i + 1, i / 65536 + 1, i / 256 % 256, i % 256, i % 60 }' \
		>"$STATE/lapi/decisions"
	began=$(date +%s%N)
	bouncer_start
	wait_for "all decisions" has_rules "$decisions"
	note "$decisions decisions in $((($(date +%s%N) - began) / 1000000)) ms, the answer of a local API in Python included"
	echo '200000 Ip 192.0.2.66 1h cscli x' >>"$STATE/lapi/decisions"
	wait_for "one more" sh -c "'$TOOL' --state '$STATE/store' test 192.0.2.66 >/dev/null; [ \$? -eq 0 ]"
	bouncer_stop
	case_begin "the same decisions change nothing at the next start"
	bouncer_start
	wait_for "a start" more_requests whole 1
	some_polls 3
	bouncer_stop
	assert_equal $((decisions + 1)) "$(xc list | wc -l)" "rules"
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
	crowdsec_start
	configure "$@"
	cs cscli bouncers add xdp-cuckoo -o raw >"$STATE/key"
}

crowdsec_start() {
	nsenter --net="/run/netns/$RX" "$CROWDSEC/usr/bin/crowdsec" -c "$STATE/cs/config.yaml" -no-cs >"$STATE/cs.log" 2>&1 &
	CS=$!
	on_exit "kill $CS 2>/dev/null; wait $CS 2>/dev/null"
	WAIT_LOG=$STATE/cs.log
	wait_for "the local API" cs cscli decisions list
}

# What an administrator types.
test_crowdsec_bans_and_unbans() {
	local_api 'metrics-every = 3s'
	xc load vrx >/dev/null
	printf '192.0.2.66\n' >"$STATE/feed"
	xc import "$STATE/feed" --list feed >/dev/null 2>&1
	bouncer_start
	cs cscli decisions add --ip 192.0.2.66 --duration 4h 2>/dev/null
	cs cscli decisions add --ip 192.0.2.67 --duration 1h 2>/dev/null
	cs cscli decisions add --ip 192.0.2.67 --duration 4h --reason 'a "quoted" reason' 2>/dev/null
	cs cscli decisions add --ip 2001:db8::66 --duration 8s 2>/dev/null
	cs cscli decisions add --range 203.0.113.0/24 --duration 4h 2>/dev/null
	cs cscli decisions add --ip 192.0.2.68 --duration 4h --type captcha 2>/dev/null
	cs cscli decisions add --scope Country --value FR --duration 4h 2>/dev/null
	wait_for "bans" is_listed '192.0.2.66 192.0.2.67 2001:db8::66 203.0.113.0/24'
	assert_verdict drop 192.0.2.66 192.0.2.67 203.0.113.9 pass 192.0.2.68 192.0.2.69
	await '192.0.2.66 192.0.2.67 203.0.113.0/24'
	assert_shows '^src 192.0.2.67 timeout (4h|3h59m)' xc list
	wait_for "what is left out" sh -c "'$TOOL' --state '$STATE/store' lists | grep -q 'crowdsec: 4 decisions, 2 left out'"
	id=$(cs cscli decisions list --ip 192.0.2.67 -o json 2>/dev/null | jq '[.[].decisions[]] | max_by(.id).id')
	cs cscli decisions delete --id "$id" 2>/dev/null
	wait_for "the shorter decision" sh -c "'$TOOL' --state '$STATE/store' list | grep -Eq '^src 192.0.2.67 timeout (1h|59m|58m)'"
	case_begin "a restart of crowdsec"
	kill "$CS"
	wait "$CS" || :
	wait_for "a note" grep -q 'cannot read decisions' "$NOTES"
	crowdsec_start
	WAIT_LOG=$NOTES
	cs cscli decisions delete --all 2>/dev/null
	await ''
	assert_verdict drop 192.0.2.66 pass 192.0.2.67 203.0.113.9 2001:db8::66
	bouncer_stop
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
	bouncer_start
	wait_for "all decisions" has_rules 20000
	note "20,000 decisions in $((($(date +%s%N) - began) / 1000000)) ms, the answer of the local API included"
	bouncer_stop
	assert_status 0 xc check
}

run_tests "$0" "$@"
