#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What --dry-run says of a change and leaves as it was; and --confirm for one rule, `flush` and `policy`.
. tests/lib.sh
. tests/namespace/safety.sh

# The stored state, which no dry run may change.
stored() {
	xc --json lists 2>/dev/null
	xc --json list 2>/dev/null
	xc policy
	xc --json status --verbose 2>/dev/null | jq -c '.generation, [.running[] | {generation, keys}]'
}

# unchanged STATUS WORD...: the command ends with that status, and changes nothing.
unchanged() {
	unchanged_status=$1
	shift
	case_begin "$*"
	stored >"$STATE/before"
	assert_status "$unchanged_status" xc "$@"
	stored >"$STATE/after"
	cmp -s "$STATE/before" "$STATE/after" || fail "'$*' has changed what is stored"
}

test_no_store_is_made() {
	assert_shows '^added: +src 192.0.2.66$' xc add 192.0.2.66 --dry-run
	assert_shows '^dry run: +yes$' xc flush --dry-run
	write_list list 1 2
	assert_shows '^dry run: added 2,' xc import "$STATE/list" --list a --dry-run
	[ ! -e "$STATE/store" ] || fail "a dry run has made a store"
	assert_equal '' "$(ls -d /tmp/xdp-cuckoo.* 2>/dev/null)" "directories left in /tmp"
}

# A foreign loader's filter stays as it is; a filter in force keeps its rules.
test_nothing_changes() {
	block
	assert_status 0 xc load vrx
	write_list list 1 2
	assert_status 0 xc import "$STATE/list" --list a
	assert_status 0 xc backup "$STATE/backup"
	write_list longer 1 2 3
	unchanged 0 add 192.0.2.1 --dry-run
	assert_output '^added: +src 192.0.2.1$'
	assert_output '^dry run: +yes$'
	unchanged 1 add 192.0.2.66 --dry-run
	unchanged 0 add 192.0.2.1-192.0.2.3 --dry-run
	assert_output '^added rules: +[23]$'
	unchanged 0 del 192.0.2.66 --dry-run
	assert_output '^deleted: +src 192.0.2.66$'
	unchanged 1 del 192.0.2.67 --dry-run
	unchanged 0 flush --force --dry-run
	assert_output '^deleted rules: +3$'
	unchanged 0 flush a --dry-run
	assert_output '^deleted rules: +2$'
	unchanged 0 lists delete a --dry-run
	unchanged 0 import "$STATE/longer" --list a --replace --dry-run
	assert_output '^dry run: added 1, updated 0, kept 2, removed 0'
	unchanged 0 import "$STATE/longer" --list b --dry-run
	unchanged 0 restore "$STATE/backup" --dry-run
	assert_output '^rules: +3$'
	assert_shows '"dry_run": true' xc --json add 192.0.2.1 --dry-run
	expect drop
}

# The guard speaks as it would for the change.
test_the_guard_speaks() {
	ip -n "$RX" route add default via 10.99.0.254
	unchanged 2 add 10.99.0.254 --dry-run
	assert_error "would block the default gateway"
	unchanged 0 add 10.99.0.254 --dry-run --force
	printf '10.99.0.254\n192.0.2.1\n' >"$STATE/list"
	unchanged 2 import "$STATE/list" --list a --dry-run
	assert_output '^dry run: added 2,'
	assert_error "would block the default gateway"
}

test_dry_run_and_confirm() {
	write_list list 1
	for words in 'add 192.0.2.1' 'del 192.0.2.1' flush "import $STATE/list"; do
		# shellcheck disable=SC2086 # words
		assert_fails 2 'changes nothing that --confirm could undo' xc $words --dry-run --confirm 1m
	done
}

# undone COMMAND...: --confirm undoes it, and with `confirm` it stays.
undone() {
	case_begin "$*"
	xc list >"$STATE/before" 2>/dev/null
	xc policy >>"$STATE/before"
	assert_status 0 timed "$@" --confirm 30m
	assert_error 'this is undone at [0-9:]{8} unless you type before: '
	xc list >"$STATE/after" 2>/dev/null
	xc policy >>"$STATE/after"
	! cmp -s "$STATE/before" "$STATE/after" || fail "'$*' did nothing"
	time_is_over
	{ xc list 2>/dev/null; xc policy; } | cmp -s - "$STATE/before" || fail "not as before"
	assert_status 0 xc "$@" --confirm 1m
	assert_status 0 xc confirm
	{ xc list 2>/dev/null; xc policy; } | cmp -s - "$STATE/after" || fail "'$*': it did not stay"
}

test_single_changes_are_undone() {
	block
	assert_status 0 xc load vrx
	undone add 192.0.2.1
	undone add 192.0.2.2 --list a
	undone del 192.0.2.1
	undone policy malformed drop
	undone policy no-rule drop
	assert_status 0 xc policy no-rule pass
	undone flush --force
	expect pass
}

# What changes nothing does not wait.
test_nothing_to_undo() {
	block
	assert_status 1 xc add 192.0.2.66 --confirm 1m
	assert_fails 1 'nothing waits to be confirmed' xc confirm
	assert_status 1 xc del 192.0.2.67 --confirm 1m
	assert_fails 1 'nothing waits to be confirmed' xc confirm
	assert_fails 2 'goes with policy OUTCOME' xc policy --confirm 1m
}

run_tests "$0" "$@"
