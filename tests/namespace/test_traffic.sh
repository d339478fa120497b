#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Live traffic: every packet that a list names is dropped, every other one arrives. SEED=N repeats the
# addresses of a run, LISTS=DIR says where blocklists are.
. tests/lib.sh
. tests/traffic.sh

OUTSIDE=100000 # innocent flows

# send FLOWS: sends them, judges, and compares with what the filter counted itself.
send() {
	before=$(dropped_by_rule)
	traffic --wrong "$STATE/wrong" <"$1" >"$STATE/table" || [ $? -eq 1 ] || fail "no traffic"
	cat "$STATE/table"
	judge "$STATE/wrong"
	[ "$MISMATCHES" -eq 0 ] || fail "$MISMATCHES flows fared otherwise than expected"
	assert_equal "$(total 3 "$STATE/table")" "$(($(dropped_by_rule) - before))" \
		"packets dropped, by the receiver's count and by the filter's"
}

try_small_list() {
	assert_status 0 xc load vrx --mode "$1"
	assert_output " $1\$"
	small_flows >"$STATE/flows"
	sed 's/^drop/pass/' "$STATE/flows" >"$STATE/innocent"
	send "$STATE/innocent"
	small_list >"$STATE/list"
	assert_status 0 xc import "$STATE/list"
	send "$STATE/flows"
	assert_status 0 xc flush
	send "$STATE/innocent"
}

test_small_list_native() {
	try_small_list native
}

test_small_list_skb() {
	try_small_list skb
}

# try_list FILE: some addresses of every entry, and as many outside as it takes to see a rate.
try_list() {
	echo "SEED=$SEED"
	assert_status 0 xc load vrx
	assert_status 0 xc import "$1"
	"$HELPERS/list_flows" --hosts 3 --outside "$OUTSIDE" --seed "$SEED" "$1" >"$STATE/flows"
	send "$STATE/flows"
	expect_false_positives "$OUTSIDE"
	[ "$FALSE_POSITIVES" -le "$MOST" ] ||
		fail "$FALSE_POSITIVES false positives of $OUTSIDE flows, expected $EXPECTED"
	note "all $(total 5 "$STATE/table") listed dropped," \
		"$FALSE_POSITIVES false positives of $OUTSIDE outside (expected $EXPECTED)," \
		"$(tail -n 1 "$STATE/table")"
}

try_blocklist() {
	[ -r "$LISTS/$1" ] || skip "no $LISTS/$1; LISTS=DIR says where it is"
	try_list "$LISTS/$1"
}

test_spamhaus_drop() {
	try_blocklist spamhaus_drop.netset
}

test_firehol_level1() {
	try_blocklist firehol_level1.netset
}

test_stopforumspam() {
	try_blocklist stopforumspam_180d.ipset
}

# Random addresses, as prefixes of 14 to 31 bits and, for the most part, alone.
test_generated_list() {
	"$HELPERS/list_flows" --outside 20000 --seed "$SEED" /dev/null | awk '
	/^#/ { next }
	NR % 5 { print $6; next }
	{
		length_bits = 14 + NR / 5 % 18
		split($6, byte, ".")
		net = ((byte[1] * 256 + byte[2]) * 256 + byte[3]) * 256 + byte[4]
		net -= net % 2 ^ (32 - length_bits)
		printf "%d.%d.%d.%d/%d\n", net / 2 ^ 24, net / 2 ^ 16 % 256, net / 256 % 256,
			net % 256, length_bits
	}' >"$STATE/list"
	try_list "$STATE/list"
}

run_tests "$0" "$@"
