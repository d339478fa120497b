#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# stats: what is counted by interface, CPU, rule and prefix, exactly; rates, resets, and the words for all of it.
. tests/lib.sh

BYTES=58 # of a packet of send_from

# field ROW FIELD: of the row of the last stats whose first column is ROW; "" where there is none.
field() {
	$PYTHON -c '
import json, sys
for row in json.load(open(sys.argv[1])):
    if str(list(row.values())[0]) == sys.argv[2]:
        print(row[sys.argv[3]])' "$STATE/out" "$1" "$2"
}

# assert_dropped PACKETS ROW: these packets, with their bytes.
assert_dropped() {
	assert_equal "$1 $(($1 * BYTES))" "$(field "$2" dropped_packets) $(field "$2" dropped_bytes)" "dropped, of $2"
}

# assert_sums: the last row is the sum of those before it, in every column.
assert_sums() {
	$PYTHON -c '
import json, sys
*rows, whole = json.load(open(sys.argv[1]))
name, *columns = whole
assert whole[name] == "all" and columns
for column in columns:
    if column == "direction":
        continue
    assert whole[column] == sum(row[column] for row in rows), column' "$STATE/out" || {
		show_run
		fail "the rows do not add up"
	}
}

# two_interfaces: one filter on vrx and vrx2, which drops what send_from sends.
two_interfaces() {
	second_pair
	xc load vrx vrx2 >/dev/null
	xc add 192.0.2.1 >/dev/null
}

# assert_by_interface FIRST SECOND: packets dropped on the two.
assert_by_interface() {
	assert_status 0 xc stats --json --by interface
	assert_dropped "$1" vrx
	assert_dropped "$2" vrx2
	assert_dropped $(($1 + $2)) all
	assert_sums
}

test_interfaces_and_cpus() {
	[ "$(nproc)" -ge 2 ] || skip "one processor"
	two_interfaces
	send_from 0 vtx vrx 600 >"$STATE/first" &
	first=$!
	send_from 1 vtx2 vrx2 400 >"$STATE/second" || fail "the flow passed on the second interface"
	wait "$first" || fail "the flow passed on the first interface"
	assert_by_interface 600 400
	assert_status 0 xc stats --json --by cpu
	assert_dropped 600 0
	assert_dropped 400 1
	assert_dropped 1000 all
	assert_sums
	assert_status 0 xc stats --json
	assert_dropped 1000 'drop-rule'
	assert_dropped 1000 all
	assert_sums
	assert_shows '^vrx2 +[0-9]+ +[0-9]+ +400 +23200$' xc stats --by interface
	assert_shows '^drop-rule +0 +0 +400 +23200$' xc stats vrx2
	assert_status 0 xc stats vrx --json --by cpu
	assert_dropped 600 0
	assert_dropped 600 all
}

# Another loader has loaded the program, and nobody has set it up.
test_interfaces_of_another_loader() {
	ip -n "$RX" link set dev vrx xdp obj "$OBJECT" program xdp_cuckoo 2>/dev/null ||
		skip "this iproute2 cannot load the object"
	echo 'pass any proto udp src 192.0.2.1 dst 198.18.0.1 sport 1 dport 2' | traffic --repeat 100 ||
		fail "a packet was lost"
	assert_status 0 xc stats --json --by interface
	[ "$(field vrx passed_packets)" -ge 100 ] || fail "not counted: $(cat "$STATE/out")"
	assert_equal "$(field all passed_packets)" "$(field vrx passed_packets)" "packets of the one interface"
}

test_interfaces_that_share_a_row() {
	index=$(ip -n "$RX" -o link show dev vrx | sed 's/:.*//')
	ip -n "$RX" link add dev vsame index $((index + 64)) type veth peer name vother
	xc load vrx vsame >/dev/null
	xc add 192.0.2.1 >/dev/null
	send_from 0 vtx vrx 7 >/dev/null || fail "the flow passed"
	assert_status 0 xc stats --json --by interface
	assert_dropped 7 vrx+vsame
	assert_sums
	assert_status 0 xc stats vsame
	assert_error '^note: these are the counts of vrx.vsame$'
}

test_an_interface_that_is_left() {
	two_interfaces
	send_from 0 vtx vrx 30 >/dev/null || fail "the flow passed"
	send_from 0 vtx2 vrx2 20 >/dev/null || fail "the flow passed"
	xc unload vrx2 >/dev/null
	assert_status 0 xc stats --json --by interface
	assert_dropped 30 vrx
	assert_dropped 20 -
	assert_dropped 50 all
	assert_sums
}

test_counts_go_on_in_a_new_table() {
	two_interfaces
	send_from 0 vtx vrx 30 >/dev/null || fail "the flow passed"
	assert_status 0 xc stats --reset
	send_from 0 vtx2 vrx2 20 >/dev/null || fail "the flow passed"
	xc resize 100000 >/dev/null
	assert_by_interface 0 20
	send_from 0 vtx vrx 3 >/dev/null || fail "the flow passed"
	assert_by_interface 3 20
}

# A flow with the fingerprint and buckets of a rule that does not match it.
test_fingerprints_stopped() {
	xc load vrx --capacity 1000 >/dev/null
	in_rx "$HELPERS/collisions" 2 >"$STATE/found" || fail "no collisions found"
	listed=$(sed -n 2p "$STATE/found")
	innocent=$(sed -n 3p "$STATE/found")
	# The second rule is in the range of the innocent one, so that its hint leads to a look-up.
	xc add "$listed" >/dev/null
	xc add "${innocent%.*.*}.255.254" >/dev/null
	{
		yes "pass innocent proto udp src $innocent dst 198.18.0.1 sport 1 dport 2" | head -n 5
		yes "drop listed proto udp src $listed dst 198.18.0.1 sport 1 dport 2" | head -n 3
	} | traffic || fail "a wrong verdict"
	assert_shows '^ *fingerprints stopped: +5$' xc status --verbose
	assert_shows '^xdp_cuckoo_fingerprints_stopped_total[{]name="default"[}] 5$' xc metrics
	assert_status 0 xc stats --reset
	assert_shows '^ *fingerprints stopped: +0$' xc status --verbose
}

# ---- reset

test_reset() {
	two_interfaces
	send_from 0 vtx vrx 30 >/dev/null || fail "the flow passed"
	send_from 0 vtx2 vrx2 20 >/dev/null || fail "the flow passed"
	assert_shows '^reset filters: +1$' xc stats --reset
	assert_by_interface 0 0
	assert_shows '^src 192.0.2.1 # packets 0 bytes 0$' xc list --counters
	assert_status 0 xc stats --by rule
	assert_equal '' "$(cat "$STATE/out")" "rules with packets"
	send_from 0 vtx vrx 4 >/dev/null || fail "the flow passed"
	assert_by_interface 4 0
	assert_shows "^src 192.0.2.1 # packets 4 bytes $((4 * BYTES))\$" xc list --counters
	assert_status 0 xc check
}

# The counts never exceed the sent packets, however often they are reset.
test_reset_under_traffic() {
	two_interfaces
	send_from 0 vtx vrx 8000 >/dev/null &
	first=$!
	send_from 1 vtx2 vrx2 8000 >/dev/null &
	second=$!
	for _ in 1 2 3 4; do
		assert_status 0 xc stats --reset
		assert_status 0 xc stats --json --by interface
		assert_sums
		for row in vrx vrx2; do
			dropped=$(field "$row" dropped_packets)
			[ "$dropped" -ge 0 ] || fail "$dropped packets of $row"
			[ "$dropped" -le 8000 ] || fail "$dropped packets of $row"
			[ "$(field "$row" dropped_bytes)" -le $((8000 * BYTES)) ] || fail "bytes of $row: $(cat "$STATE/out")"
		done
	done
	wait "$first" || fail "the flow passed on the first interface"
	wait "$second" || fail "the flow passed on the second interface"
	assert_status 0 xc stats --reset
	send_from 0 vtx vrx 5 >/dev/null || fail "the flow passed"
	assert_by_interface 5 0
	assert_shows "^src 192.0.2.1 # packets 5 bytes $((5 * BYTES))\$" xc list --counters
}

test_reset_where_nothing_runs() {
	assert_fails 1 "no filter 'default' is running here" xc stats --reset
}

# ---- rates

# Under endless traffic each interval is one consistent line with packets.
test_rates() {
	two_interfaces
	send_endlessly 0 vtx2 vrx2
	assert_status 0 xc stats --json --by interface --interval 1s --count 2
	$PYTHON -c '
import json, re, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert len(lines) == 2, lines
for line in lines:
    rates = {row["interface"]: row for row in line["rates"]}
    assert line["interval_s"] >= 1 and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", line["time"]), line
    assert rates["vrx2"]["dropped_pps"] > 0 and rates["vrx"]["dropped_pps"] == 0
    assert rates["all"]["dropped_pps"] == rates["vrx2"]["dropped_pps"]
    assert abs(rates["vrx2"]["dropped_bps"] / rates["vrx2"]["dropped_pps"] - 8 * 58) < 1' "$STATE/out" || {
		show_run
		fail "no sound rates"
	}
	assert_status 0 xc stats --interval 1s --count 2
	assert_equal 2 "$(grep -c '^outcome .* dropped pps  dropped bps$' "$STATE/out")" "tables"
}

# The filter that is counted ends between two readings.
test_rates_of_a_filter_that_ends() {
	two_interfaces
	in_rx "$TOOL" --state "$STATE/store" stats --interval 1s >"$STATE/rates" 2>"$STATE/said" &
	watcher=$!
	on_exit "kill $watcher 2>/dev/null || :"
	wait_for "a first interval" test -s "$STATE/rates"
	xc unload --all >/dev/null
	STATUS=0
	wait "$watcher" || STATUS=$?
	assert_equal 1 "$STATUS" "status"
	grep -q "no filter 'default' is running here" "$STATE/said" || fail "says '$(cat "$STATE/said")'"
}

# ---- rules and prefixes

# hit PACKETS SOURCE...
hit() {
	packets=$1
	shift
	for source; do
		echo "drop listed proto udp src $source dst $DST sport 1 dport 2"
	done | traffic --repeat "$packets" || fail "a listed flow passed"
}

hit_some() {
	xc load vrx >/dev/null
	cat >"$STATE/list" <<-'END'
	192.0.2.1 comment "the worst"
	192.0.2.2
	192.0.7.0/25
	198.51.0.0/16
	203.0.113.0/24 action pass
	proto udp dport 53
	2001:db8:1:2::/64
	2001:db8:1:3::/64
	11.0.0.0/8
	END
	xc import "$STATE/list" >/dev/null
	DST=198.18.0.1
	hit 9 192.0.2.1
	hit 4 192.0.2.2 192.0.7.9
	hit 5 198.51.100.1
	DST=2001:db8:ffff::1
	hit 3 2001:db8:1:2::1
	hit 2 2001:db8:1:3::1
	echo 'drop port proto udp src 9.9.9.9 dst 198.18.0.1 sport 1 dport 53' | traffic || fail "a listed flow passed"
	echo 'pass host proto udp src 203.0.113.1 dst 198.18.0.1 sport 1 dport 53' | traffic --repeat 50 || fail "verdict"
}

# ranked FIELD...: these of each row.
ranked() {
	$PYTHON -c '
import json, sys
for row in json.load(open(sys.argv[1])):
    print(*[row[field] for field in sys.argv[2:]])' "$STATE/out" "$@"
}

test_rules() {
	hit_some
	assert_status 0 xc stats --json --by rule
	assert_equal "9 522 src 192.0.2.1
5 290 src 198.51.0.0/16
4 232 src 192.0.2.2
4 232 src 192.0.7.0/25
3 234 src 2001:db8:1:2::/64
2 156 src 2001:db8:1:3::/64
1 58 proto udp dport 53" "$(ranked packets bytes rule | sort -k1,1nr -k4)" "rules"
	assert_equal 'the worst' "$(ranked comment | head -n 1)" "comment"
	assert_status 0 xc stats --json --by rule --top 2
	assert_equal "9 5" "$(ranked packets | xargs)" "the first two"
	assert_shows '^ +9 +522 +src 192.0.2.1 +the worst$' xc stats --by rule
}

test_prefixes() {
	hit_some
	assert_status 0 xc stats --json --by prefix
	assert_equal "13 2 192.0.2.0/24
5 2 2001:db8:1::/48
5 1 198.51.0.0/16
4 1 192.0.7.0/24
1 1 any" "$(ranked packets rules source | sort -k1,1nr -k2,2nr)" "prefixes"
	assert_status 0 xc stats --json --by prefix=16,64 --top 3
	assert_equal "17 3 192.0.0.0/16
5 1 198.51.0.0/16
3 1 2001:db8:1:2::/64" "$(ranked packets rules source)" "prefixes"
}

# What each list matched, by action. A rule of two lists counts for both; 192.0.2.3 is in no list.
test_by_list() {
	xc load vrx --capacity 1000 >/dev/null
	printf '192.0.2.1\n192.0.2.2\n' | xc import - --list feed >/dev/null
	printf '192.0.2.4\n192.0.2.5 action pass\n' | xc import - --list trial --monitor-only >/dev/null
	xc add 192.0.2.2 list bans timeout 1h >/dev/null
	xc add 192.0.2.3 >/dev/null
	flows drop 192.0.2.1 192.0.2.2 192.0.2.2 192.0.2.3 pass 192.0.2.4 192.0.2.4 192.0.2.5 192.0.2.6 |
		traffic || fail "verdicts"
	assert_status 0 xc stats --json --by list
	assert_equal "3 174 2 feed drop
2 116 1 bans drop
2 116 1 trial monitor
1 58 1 by hand drop
1 58 1 trial pass" "$(ranked packets bytes rules list action | sort -k1,1nr -k3,3nr -k4)" "lists"
	assert_status 0 xc stats --json --by list --top 1
	assert_equal "feed" "$(ranked list)" "the first"
	assert_shows '^ +3 +174 +2 +drop +feed$' xc stats --by list
	xc del 192.0.2.1 --list feed >/dev/null
	assert_shows '^ +2 +116 +1 +drop +feed$' xc stats --by list
}

# More rules than are kept at once, whose order in the store is not that of their packets.
test_top_of_many_rules() {
	xc load vrx --capacity 10000 >/dev/null
	awk 'BEGIN { for (i = 0; i < 5000; i++) printf "10.0.%d.%d\n", i / 250, i % 250 }' | xc import - >/dev/null
	awk 'BEGIN { for (i = 0; i < 5000; i++) for (j = 0; j <= i * 7919 % 5; j++)
		printf "drop listed proto udp src 10.0.%d.%d dst 198.18.0.1 sport 1 dport 2\n", i / 250, i % 250
		for (j = 0; j < 9; j++) print "drop listed proto udp src 10.0.19.249 dst 198.18.0.1 sport 1 dport 2"
		for (j = 0; j < 8; j++) print "drop listed proto udp src 10.0.0.0 dst 198.18.0.1 sport 1 dport 2" }' \
		>"$STATE/flows"
	# Of more than half of ABI_PACE_BURST at once, only a sample may be counted. Half a second saves it up again.
	head -n 7500 "$STATE/flows" | traffic || fail "a listed flow passed"
	sleep 0.5
	tail -n +7501 "$STATE/flows" | traffic || fail "a listed flow passed"
	assert_status 0 xc stats --json --by rule --top 3
	assert_equal "11 9 5" "$(ranked packets | xargs)" "the first three"
	assert_status 0 xc stats --json --by prefix --top 100
	assert_equal "$((5000 * 3 + 17)) 20" "$(ranked packets | awk '{ sum += $1 } END { print sum, NR }')" "all prefixes"
}

# Rare outcomes are shown if there were some, and always with --json.
test_what_never_happened_is_no_row() {
	xc load vrx >/dev/null
	assert_status 0 xc stats
	assert_equal 'no-rule,not-ip,drop-rule,pass-rule,all' "$(sed -E '1d; s/  .*//' "$STATE/out" | paste -sd,)" "rows"
	echo 'pass broken proto udp src 192.0.2.9 dst 198.18.0.1 sport 1 dport 2 broken malformed' | traffic >/dev/null ||
		fail "dropped"
	assert_shows '^malformed  +1 ' xc stats
	assert_status 0 xc stats --json
	assert_equal 14 "$(grep -c '"outcome"' "$STATE/out")" "outcomes in JSON, and all of them"
	# If only monitor-only keeps packets from being dropped, the table still fits a terminal.
	xc monitor-only on >/dev/null
	assert_shows '^outcome +passed packets +passed bytes +would drop packets +would drop bytes$' xc stats
	[ "$(awk '{ if (length > widest) widest = length } END { print widest }' "$STATE/out")" -le 80 ] || fail "too wide"
}

test_tables_that_do_not_count() {
	for option in --no-counters --compact; do
		xc load vrx "$option" >/dev/null 2>&1
		for by in rule prefix; do
			assert_status 1 xc stats --by "$by"
			assert_error "the filter 'default' does not count by rule: load it again without --compact and --no-counters"
		done
		assert_status 0 xc stats --reset
		xc unload vrx >/dev/null
	done
}

# ---- usage, words

test_wrong_usage() {
	xc load vrx >/dev/null
	while IFS='|' read -r says words; do
		case_begin "$words"
		eval "assert_status 2 xc stats $words"
		assert_error "$says"
	done <<-'END'
		'colour': must be interface|--by colour
		'prefix=33': must be|--by prefix=33
		'prefix=24,129': must be|--by prefix=24,129
		'prefix=': must be|--by prefix=
		'prefix=24x': must be prefix, or the bits .* prefix=16,32$|--by prefix=24x
		'prefix=024': must be|--by prefix=024
		'prefix= 24': must be|--by 'prefix= 24'
		'prefix=24,048': must be|--by prefix=24,048
		'0': must be a whole number|--by rule --top 0
		--top needs|--top 5
		--count needs|--count 5
		'0': must be a whole number|--interval 1s --count 0
		'soon': must be a time|--interval soon
		must be at most 1d|--interval 2d
		do not go together|--by rule --interval 1s
		do not go together|--by list --interval 1s
		takes no other options|--reset --by cpu
		is for all interfaces|vrx --by interface
		--by interface|nosuch
	END
}

# names_of FILE: of the list of outcomes in a help text.
names_of() {
	sed -n '/^Shows the counts/,/^With / s/^  \([^ ].*[^ ]\)   *[^ ].*/\1/p' "$1"
}

test_words_are_the_same_everywhere() {
	xc load vrx >/dev/null
	assert_status 0 xc stats --json
	ranked outcome | grep -vx all >"$STATE/json"
	assert_equal 13 "$(wc -l <"$STATE/json")" "outcomes"
	assert_status 0 xc help stats
	names_of "$STATE/out" | diff "$STATE/json" - || fail "help"
	assert_status 0 xc --json help stats
	$PYTHON -c 'import json, sys; print(json.load(open(sys.argv[1]))["help"])' "$STATE/out" >"$STATE/text"
	names_of "$STATE/text" | diff "$STATE/json" - || fail "help in JSON"
	sed -n '/^\.SS stats$/,/^\\fB\\-\\-by/ s/^\\fB\([a-z\\-]*\)\\fP$/\1/p' "$BUILD/man/xdp-cuckoo.8" | tr -d '\134' |
		diff "$STATE/json" - || fail "the man page"
	assert_status 0 xc metrics
	for family in xdp_cuckoo_packets_total xdp_cuckoo_interface_bytes_total; do
		sed -n "s/^$family.*outcome=\"\([^\"]*\)\".*/\1/p" "$STATE/out" | awk '!seen[$0]++' |
			diff "$STATE/json" - || fail "$family"
	done
	assert_status 0 xc policy
	awk 'NR > 1 { print $1 }' "$STATE/out" >"$STATE/policies"
	assert_status 0 xc help policy
	sed -n '/^Each kind/,/^With/ s/^  \([^ ][^ ]*\)   *[^ ].*/\1/p' "$STATE/out" | diff "$STATE/policies" - || fail "policies"
	head -n "$(wc -l <"$STATE/policies")" "$STATE/json" | diff "$STATE/policies" - || fail "policy and stats"
}

# Packets come as long as it samples.
test_by_source() {
	assert_fails 1 "no filter 'default'" xc stats --by source
	xc load vrx >/dev/null
	xc add 203.0.113.0/24 >/dev/null
	xc add 198.51.100.7 action monitor >/dev/null
	assert_fails 2 'leave out --count' xc stats --by source --interval 1s --count 2
	assert_notes 'no sample' xc stats --by source --interval 1s
	in_rx "$TOOL" --state "$STATE/store" --json stats --by source --interval 3s --top 2 >"$STATE/sources" &
	sampling=$!
	while kill -0 "$sampling" 2>/dev/null; do
		assert_verdict drop 203.0.113.1 203.0.113.1 203.0.113.1 203.0.113.2 203.0.113.2 203.0.113.3 \
			pass 198.51.100.7 198.51.100.7 198.51.100.7 198.51.100.7
	done
	wait "$sampling" || fail "status $?"
	assert_equal '203.0.113.1 203.0.113.2' "$(grep -o '"source": "[^"]*' "$STATE/sources" | cut -d'"' -f4 | xargs)" "sources"
	assert_equal 2 "$(grep -c '"percent": \(5\|[34]\)[0-9.]*' "$STATE/sources")" "shares"
}

run_tests "$0" "$@"
