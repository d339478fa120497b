#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# bench: it measures what is in force, says so only where the filter does what the rules say, and leaves no
# trace. How long anything takes is judged nowhere.
# Takes minutes.
. tests/lib.sh

renice -n -20 -p $$ >/dev/null 2>&1 # it needs all processors at the same time; other tests can wait
EVERYTHING='ipv4-hit ipv4-half ipv4-miss ipv6-hit ipv6-half ipv6-miss'

# Rules of every kind: IPv4 and IPv6, prefixes, 5-tuples, ports and protocols alone, ICMP, without ports; rules that
# pass what others drop; rules that end at once, soon, and in an hour.
rules() {
	awk 'BEGIN {
		for (i = 1; i <= 100; i++) {
			print "10.0." i ".1"
			print "198.51." i ".0/24"
			print "198.51." i ".130 action pass"
			print "proto tcp src 192.0.2." i " sport 1234 dst 198.51.100.7 dport 443"
			print "2001:db8:" i "::/48"
			print "2001:db9::" i " proto udp dport 53"
			print "10.1." i ".1 timeout 1h"
			print "10.2." i ".1 timeout 1s"
			print "10.1." i ".2 action pass timeout 20s"
			print "10.1." i ".0/24"
		}
	}'
	cat <<-'END'
		proto icmp src 203.0.113.0/24 type 8 code 0
		proto ipv6-icmp src 2001:dba::/32 type 128
		proto gre src 10.4.0.0/16
		proto ah src 2001:dbb::1
		dst 2001:dbc::/33 proto tcp action pass
		proto udp dport 11211
		sport 7 dst 192.0.2.200
	END
}

load_rules() {
	rules >"$STATE/list"
	xc load vrx "$@" >"$STATE/loaded" 2>&1 || { cat "$STATE/loaded"; fail "load"; }
	xc import "$STATE/list" >/dev/null 2>&1 || fail "import"
}

# one_cpu ARGUMENT...: `xc` on one processor: where others keep bench from having all at the same time, it must try again.
one_cpu() {
	in_rx taskset -c 0 "$TOOL" --state "$STATE/store" "$@"
}

# assert_bench KIND...: the last run printed these kinds of traffic, and nothing else anywhere.
assert_bench() {
	"$HELPERS/bench_check" "$@" <"$STATE/out" || { show_run; fail "not what bench prints"; }
	assert_equal '' "$(cat "$STATE/err")" "standard error"
}

# refuses STATUS PATTERN ARGUMENT...: one line, and nothing is measured.
refuses() {
	refuses_status=$1
	refuses_pattern=$2
	shift 2
	assert_status "$refuses_status" xc "$@"
	assert_error "$refuses_pattern"
	assert_equal 1 "$(wc -l <"$STATE/err")" "lines of: $(cat "$STATE/err")"
	assert_equal '' "$(cat "$STATE/out")" "standard output"
}

# shared_maps NAME...: what is in these maps of the filter on vrx.
shared_maps() {
	for map in $(maps_of "$(program_of vrx)"); do
		for name; do
			bpftool map show id "$map" | grep -q " name $name " || continue
			echo "$name"
			bpftool map dump id "$map"
		done
	done
}

is_measuring() {
	bpftool prog show | grep ' name bench_packet '
}

# Everything that bench loads has names of its own.
has_nothing_left() {
	! bpftool prog show | grep ' name bench_' && ! bpftool map show | grep ' name bench_'
}

# The kernel frees it a moment later.
assert_nothing_left() {
	wait_for "programs and maps of bench to go" has_nothing_left
}

# counted: all packets that the running filter has counted.
counted() {
	xc stats | awk '$1 == "all" { print $2 + $4 }'
}

# --- what it measures, and that nothing else notices

# Every table format but those below.
test_all_formats() {
	on=xc # all processors, in the first round
	while read -r options; do
		case_begin "load $options"
		# shellcheck disable=SC2086 # words
		load_rules $options
		assert_status 0 when_free "$on" bench --json
		on=one_cpu
		# shellcheck disable=SC2086 # words
		assert_bench $EVERYTHING
		assert_output '"measured": "a copy of the filter on vrx"'
		assert_output '"rules": 1007,'
		for name in table slots load_factor table_bytes; do
			status=$(xc status --json | grep "^ *\"$name\"")
			assert_equal "$status" "    $(grep "\"$name\"" "$STATE/out")" "$name, by status and by bench"
		done
		xc unload vrx >/dev/null
		xc flush >/dev/null
	done <<-'END'
		--capacity 5000 --no-counters
		--capacity 5000 --compact
		--capacity 5000 --compact --fingerprint 17
		--capacity 5000 --compact --fingerprint 32
	END
}

test_nothing_that_runs_is_touched() {
	maps='xc_config xc_buckets xc_records xc_hints xc_rules'
	load_rules --capacity 5000
	# shellcheck disable=SC2086 # words
	shared_maps $maps >"$STATE/before"
	generation=$(xc status --verbose | grep generation)
	packets=$(counted)
	assert_status 0 when_free one_cpu bench --driver-ns 1000
	# A few packets of the network itself may have come and matched no rule. bench has run millions.
	[ $(($(counted) - packets)) -lt 1000 ] || fail "counted $packets packets before, $(counted) after"
	# shellcheck disable=SC2086 # words
	shared_maps $maps >"$STATE/after"
	[ "$(wc -l <"$STATE/before")" -gt 10000 ] || fail "the maps are not read"
	cmp -s "$STATE/before" "$STATE/after" || fail "the running filter has changed"
	assert_equal "$generation" "$(xc status --verbose | grep generation)" "generation"
	assert_nothing_left
	case_begin "the text"
	assert_output '^measured: +a copy of the filter on vrx$'
	assert_output '^driver ns: +1000$'
	assert_output '^model: +not measured: '
	assert_output '^ +family +traffic +ns +lower quartile +upper quartile +drop ns +ns over drop +ns over'
	assert_equal 3 "$(grep -Ec '^ +ipv6 +half( +[0-9.e+]+){6,7}$' "$STATE/out")" "rows of ipv6, half"
	# At a microsecond a packet and more, 14 cores are not enough for 10 Gbit/s.
	assert_equal 6 "$(awk '/^cores needed/ { seen = 1 } seen && /ipv/ && $5 > 14.8' "$STATE/out" | wc -l)" \
		"rows with more than 14.8 cores"
	assert_status 0 xc check
}

# All of IPv4 and one address of IPv6 are dropped.
test_no_packet_misses() {
	xc load vrx >/dev/null
	xc add 0.0.0.0/0 --force >/dev/null
	xc add 2001:db8::1 >/dev/null
	assert_status 0 when_free one_cpu bench --json
	assert_bench ipv4-hit ipv6-hit ipv6-half ipv6-miss
}

# The copy filters all the same, and drops packets that no rule matches where the filter would.
test_filters_that_do_not_filter() {
	load_rules --capacity 5000
	assert_status 0 xc monitor-only on
	assert_status 0 when_free one_cpu bench
	assert_error '^note: the running filter on vrx does not filter as measured; see xdp-cuckoo'
	assert_output '^  ipv6 +half '
	assert_status 0 xc panic
	xc policy no-rule drop --force >/dev/null
	assert_status 0 when_free one_cpu bench --json
	# shellcheck disable=SC2086 # words
	assert_bench $EVERYTHING
	xc status --verbose >"$STATE/status" && fail "status 0 in a panic"
	grep -Eq 'panic: +yes' "$STATE/status" || fail "no panic in status"
}

# --- where no filter runs, and where several do

test_without_a_filter() {
	refuses 1 "no filter 'default' is running here, and no rules are stored.*; running: none\$" bench
	[ ! -e "$STATE/store" ] || fail "made a store"
	rules >"$STATE/list"
	xc import "$STATE/list" >/dev/null 2>&1
	assert_status 0 when_free one_cpu bench --json
	# shellcheck disable=SC2086 # words
	assert_bench $EVERYTHING
	assert_output '"measured": "what load would make; no filter runs"'
	assert_output '"table": "exact, counted by rule"'
	assert_output '"slots": 16384'
	assert_shows 'running: +none' xc status
	assert_nothing_left
}

# It is so full that some innocent flows match a fingerprint.
test_another_table_than_the_one_that_runs() {
	load_rules
	assert_status 0 when_free one_cpu bench --json --compact --fingerprint 8 --capacity 1900
	# shellcheck disable=SC2086 # words
	assert_bench $EVERYTHING
	assert_output '"measured": "what load would make with these options; on vrx another table runs"'
	assert_output '"table": "compact, 8 bits"'
	assert_shows ' table: +exact, counted by rule$' xc status --verbose
}

test_several_filters() {
	ip -n "$RX" link add vmore type veth peer name vpeer
	xc --name web load vrx >/dev/null
	xc --name mail load vmore >/dev/null
	xc --name mail add 192.0.2.1 >/dev/null
	refuses 1 "no filter 'default' is running.*; running: (web mail|mail web)\$" bench
	assert_status 0 when_free one_cpu --name mail bench --json
	assert_bench ipv4-hit ipv4-half ipv4-miss ipv6-miss
	assert_output '"measured": "a copy of the filter on vmore"'
	assert_status 0 when_free one_cpu --name web bench --json
	assert_bench ipv4-miss ipv6-miss
	assert_output '"rules": 0,'
}

# A program that nobody has set up has no name, and bench leaves it alone.
test_a_filter_that_nobody_has_set_up() {
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	refuses 1 "no filter 'default' is running.*; running: none\$" bench
	assert_shows 'not set up' xc status
}

# --- what it refuses

# bench does not measure a damaged filter: one whose rules match nothing, and one whose rules match other packets. A
# flow drawn at random may match a rule that the table then lacks: bench says that first.
test_a_filter_that_decides_otherwise() {
	xc load vrx --capacity 5000 >/dev/null
	# bench draws no packets for the other rules.
	rules | grep -v -e timeout -e 'proto ah' | xc import - >/dev/null 2>&1
	for damage in bucket tag end; do
		case_begin "$damage"
		in_rx "$HELPERS/corrupt" "$damage" >/dev/null || fail "not damaged"
		refuses 3 '(and the rules disagree about [1-9][0-9]* of 262144 packets \(ipv[46] hit\)|table lacks rules)' \
			bench --seconds "$BENCH_S"
		xc check >/dev/null 2>&1 || :
		assert_status 0 xc check
	done
}

# Even in a table with short fingerprints, chance does not explain so many.
test_a_compact_filter_that_decides_otherwise() {
	load_rules --compact --fingerprint 8 --capacity 1900
	in_rx "$HELPERS/corrupt" hints >/dev/null || fail "not damaged"
	refuses 3 '(and the rules disagree about [1-9][0-9]* of 262144 packets|table lacks rules)' bench --seconds "$BENCH_S"
}

# with_memory KIB: runs bench as if only this much memory were available.
with_memory() {
	echo "MemAvailable: $1 kB" >"$STATE/meminfo"
	run unshare -m sh -c 'mount --bind "$1" /proc/meminfo; shift; exec "$@"' sh "$STATE/meminfo" \
		nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" bench
	assert_equal 4 "$STATUS" "exit status"
}

test_short_memory() {
	load_rules --capacity 5000
	with_memory 64
	assert_error '^xdp-cuckoo: a table of that size needs [0-9]+ MiB and 0 MiB are available'
	with_memory 20000
	assert_error '^xdp-cuckoo: bench needs [0-9]+ MiB and 19 MiB are available; nothing is measured$'
}

test_another_store() {
	xc load vrx >/dev/null
	assert_status 3 in_rx "$TOOL" --state "$STATE/other" bench
	assert_error "the filter 'default' on vrx is filled from another store; give the --state it was"
	[ ! -e "$STATE/other" ] || fail "made a store"
}

test_without_privilege() {
	command -v setpriv >/dev/null || skip "setpriv is not installed"
	chmod 755 "$STATE"
	xc load vrx >/dev/null
	run in_rx setpriv --reuid 65534 --regid 65534 --clear-groups "$TOOL" --state "$STATE/store" bench
	assert_equal 3 "$STATUS" "exit status"
	assert_error '(run it as root|[Pp]ermission)'
	assert_equal 1 "$(wc -l <"$STATE/err")" "lines of: $(cat "$STATE/err")"
}

test_usage() {
	refuses 2 "--seconds '0': must be a whole number of seconds, 1 to 3600" bench --seconds 0
	refuses 2 "--seconds '1.5'" bench --seconds 1.5
	refuses 2 "--driver-ns 'x': must be a whole number of nanoseconds" bench --driver-ns x
	refuses 2 'fingerprint needs --compact' bench --fingerprint 8
	refuses 2 'too many words' bench vrx
	refuses 2 'status does not take the option' status --seconds 1
}

# --- while it runs

# begin_long_bench: starts a bench that would take minutes. $BENCH is its process.
begin_long_bench() {
	load_rules --capacity 5000
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" bench --seconds 300 \
		>"$STATE/bench.out" 2>&1 &
	BENCH=$!
	on_exit "kill -9 $BENCH 2>/dev/null"
	WAIT_LOG=$STATE/bench.out
	wait_for "bench to start" is_measuring
}

# Rules can be changed meanwhile, and a bench that is killed leaves nothing.
test_others_go_on() {
	begin_long_bench
	assert_status 0 xc add 192.0.2.250
	assert_status 0 xc resize 20000
	kill -0 "$BENCH" || fail "it has ended: $(cat "$STATE/bench.out")"
	kill -9 "$BENCH"
	wait "$BENCH" || :
	assert_nothing_left
	assert_status 0 xc check
}

run_tests "$0" "$@"
