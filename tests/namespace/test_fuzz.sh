#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Every fuzz target over its seeds, and over what fuzzing has found before, with sanitizers. make fuzz goes on
# from there.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib.sh

# replay TARGET
replay() {
	found=tests/fuzz/found/$1
	[ -d "$TMPDIR/seeds" ] || sh tests/fuzz/seeds.sh "$TMPDIR/seeds"
	# shellcheck disable=SC2046 # one word or none
	assert_status 0 "build/fuzz/replay/fuzz_$1" "$TMPDIR/seeds/$1" $([ ! -d "$found" ] || echo "$found")
	note "$(cat "$STATE/out")"
}

test_parse() {
	replay parse
}

test_rule() {
	replay rule
}

test_list() {
	replay list
}

test_store() {
	replay store
}

test_batch() {
	replay batch
}

test_flowspec() {
	replay flowspec
}

test_change() {
	replay change
}

test_fleet() {
	replay fleet
}

test_feed() {
	replay feed
}

run_tests "$0" "$@"
