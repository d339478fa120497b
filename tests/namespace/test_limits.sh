#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Under a limit of file sizes (ulimit -f) every command that writes says what stopped it, and changes nothing.
. tests/lib.sh
. tests/namespace/safety.sh

LIMIT=262144 # bytes: more than the store's lock file, less than what the rules below take in any form
LIMIT_TOLD='the limit of file sizes is reached; raise it \(ulimit -f'

# limited BYTES ARGUMENT...: runs the tool with a limit for files. Messages go through a pipe, which has no limit.
limited() {
	limited_bytes=$1 limited_status=0
	shift
	[ -p "$STATE/messages" ] || mkfifo "$STATE/messages"
	cat "$STATE/messages" >&2 &
	in_rx prlimit --fsize="$limited_bytes" -- "$TOOL" --state "$STATE/store" "$@" 2>"$STATE/messages" ||
		limited_status=$?
	wait $!
	return "$limited_status"
}

many_rules() {
	seq 20000 | awk '{ printf "11.%d.%d.%d\n", $1 / 65536, $1 / 256 % 256, $1 % 256 }' >"$STATE/many"
}

test_changes_of_the_store() {
	silence
	many_rules
	assert_status 0 xc load vrx
	assert_status 0 xc add 192.0.2.66
	for command in "import $STATE/many" "import $STATE/many --replace" "import $STATE/many --list feed"; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		assert_fails 3 "cannot write to the store: $LIMIT_TOLD" limited "$LIMIT" $command
		assert_equal 'src 192.0.2.66' "$(xc list)" "rules"
		assert_shows '^vrx +1 +0 +0 +0$' xc check
		expect drop
	done
	assert_status 0 xc import "$STATE/many"
}

# Answered lines are stored; the others are not.
test_a_batch() {
	many_rules
	assert_status 0 xc load vrx
	sed 's/^/add /' "$STATE/many" >"$STATE/adds"
	limited "$LIMIT" batch "$STATE/adds" 2>"$STATE/err" | cat >"$STATE/answers"
	grep -Eq "^error: .*: cannot write to the store: $LIMIT_TOLD" "$STATE/answers" || fail "not told"
	assert_equal "$(grep -c '^added' "$STATE/answers")" "$(xc list | wc -l)" "rules"
	assert_shows '^vrx +[0-9]+ +0 +0 +0$' xc check
}

test_a_new_store() {
	for bytes in 0 4096; do
		case_begin "$bytes bytes"
		assert_status 3 limited "$bytes" add 192.0.2.66
		assert_error "store .*: the limit of file sizes is reached: raise it \(ulimit -f"
	done
	assert_status 0 xc add 192.0.2.66
}

test_files_that_are_written() {
	many_rules
	assert_status 0 xc import "$STATE/many"
	echo old >"$STATE/file"
	for format in text ipset nft csv; do
		case_begin "$format"
		assert_status 3 limited 65536 export "$STATE/file" --format "$format"
		assert_error "cannot write '.*/file': $LIMIT_TOLD"
		assert_equal old "$(cat "$STATE/file")" "file"
		assert_equal 1 "$(find "$STATE" -maxdepth 1 -name 'file*' | wc -l)" "files"
	done
	for command in export list; do
		case_begin "$command to standard output"
		assert_fails 3 "cannot write the output: $LIMIT_TOLD" limited 65536 "$command"
	done
	case_begin metrics
	assert_status 0 xc load vrx
	assert_fails 3 "cannot write '.*/file': $LIMIT_TOLD" limited 1024 metrics "$STATE/file"
	assert_equal old "$(cat "$STATE/file")" "file"
	case_begin monitor
	assert_fails 3 "cannot write '.*/drops': $LIMIT_TOLD" limited 20 monitor --seconds 1 --write "$STATE/drops"
}

run_tests "$0" "$@"
