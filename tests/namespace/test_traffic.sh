#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Live traffic: every packet that a list names is dropped, every other one arrives. SEED=N repeats the
# addresses of a run, LISTS=DIR says where blocklists are.
. tests/lib.sh
. tests/namespace/traffic.sh

OUTSIDE=100000 # innocent flows

try_small_list() {
	assert_shows " $1\$" xc load vrx --mode "$1"
	small_flows >"$STATE/flows"
	sed 's/^drop/pass/' "$STATE/flows" >"$STATE/innocent"
	judge_traffic "$STATE/innocent"
	small_list >"$STATE/list"
	assert_status 0 xc import --force "$STATE/list"
	judge_traffic "$STATE/flows"
	assert_status 0 xc flush
	judge_traffic "$STATE/innocent"
}

test_small_list_native() {
	try_small_list native
}

test_small_list_skb() {
	try_small_list skb
}

# try_list FILE [OPTION...]: sends from some addresses of every entry, and from enough others to see a rate. Sets
# FALSE_POSITIVES.
try_list() {
	echo "SEED=$SEED"
	list=$1
	shift
	assert_status 0 xc load vrx "$@"
	assert_status 0 xc import --force "$list"
	"$HELPERS/list_flows" --hosts 3 --outside "$OUTSIDE" --seed "$SEED" "$list" >"$STATE/flows"
	judge_traffic "$STATE/flows"
	note "all $(total 5 "$STATE/table") listed dropped, $FALSE_POSITIVES of $OUTSIDE outside," \
		"$(tail -n 1 "$STATE/table")"
}

try_list_exact() {
	try_list "$1"
	assert_equal 0 "$FALSE_POSITIVES" "innocent flows that an exact table dropped"
}

try_blocklist() {
	[ -r "$LISTS/$1" ] || skip "no $LISTS/$1; LISTS=DIR says where it is"
	try_list_exact "$LISTS/$1"
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

test_generated_list() {
	generated_list 20000 >"$STATE/list"
	try_list_exact "$STATE/list"
}

test_generated_list_compact() {
	generated_list 20000 >"$STATE/list"
	try_list "$STATE/list" --compact
	expect_false_positives "$OUTSIDE"
	[ "$FALSE_POSITIVES" -le "$MOST" ] ||
		fail "$FALSE_POSITIVES false positives of $OUTSIDE flows, expected $EXPECTED"
}

run_tests "$0" "$@"
