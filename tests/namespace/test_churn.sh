#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Readers under churn, in the kernel: while a writer changes the table of a running filter as fast as it
# can, no packet of a flow that is in it all the time passes. PACKETS=N says how many each test sends.
. tests/lib.sh
. tests/namespace/churn.sh
. tests/namespace/traffic.sh

PACKETS=${PACKETS:-2000000}

need_two_processors() {
	[ "$(nproc)" -ge 2 ] || skip "one processor: no packet meets an entry between two buckets"
}

# counted NAME: a figure of the last run.
counted() {
	awk -v name="$1" 'index($0, name " ") == 1 { print $NF }' "$STATE/out"
}

# none_passes PACKETS OPTION...: no packet passes while the right writer works.
none_passes() {
	need_two_processors
	assert_status 0 churn_live "$@"
	assert_equal 0 "$(counted passed)" "packets that passed"
	[ "$(counted moves)" -gt 1000 ] || fail "hardly an entry was moved"
	note "$(counted 'dropped by rule') packets dropped, none passed; $(counted moves) moves," \
		"$(counted 'look-up retries') look-ups tried again"
}

# assert_counted_within PERCENT: packets are counted by rule; at this speed, only a sample. A packet may be counted at
# the old place of an entry that moves: few are, unless one entry moves all the time.
assert_counted_within() {
	xc list --counters | awk -v dropped="$(dropped_by_rule)" -v percent="$1" '
		{ sum += $(NF - 2) }
		END {
			difference = sum > dropped ? sum - dropped : dropped - sum
			printf "%.0f packets dropped, %.0f counted by rule\n", dropped, sum
			exit difference > dropped * percent / 100
		}' >"$STATE/counted" || fail "$(cat "$STATE/counted")"
}

# each_compact FLOWS OPTION...: tries the other formats with fewer packets.
each_compact() {
	each_flows=$1
	shift
	for bits in 8 17 32; do
		case_begin "$bits bits"
		churn_load "$each_flows" --compact --fingerprint "$bits"
		none_passes $((PACKETS / 4)) "$@"
		xc unload vrx >/dev/null
	done
}

test_exact_while_others_come_and_go() {
	churn_load "$CHURN_RESIDENTS"
	none_passes "$PACKETS"
	assert_counted_within 3
}

test_exact_bounced_entry() {
	churn_load 4
	none_passes "$PACKETS" --bounce
}

test_compact_while_others_come_and_go() {
	churn_load "$CHURN_RESIDENTS" --compact
	none_passes "$PACKETS"
}

test_compact_bounced_entry() {
	churn_load 4 --compact
	none_passes "$PACKETS" --bounce
}

test_other_formats_while_others_come_and_go() {
	each_compact "$CHURN_RESIDENTS"
}

test_other_formats_bounced_entry() {
	each_compact 4 --bounce
}

run_tests "$0" "$@"
