#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Finds and runs every unit and namespace test: sh tests/run.sh [WORD...] runs those whose file names
# hold a WORD. Shows a line a file, the output of what failed, every skip with its reason, and what
# tests have noted. TESTS='FILE...' says which there are.
set -u
cd "$(dirname "$0")/.." || exit 1

BUILD=${BUILD:-build}
RUNNER=${RUNNER:-}      # what runs each unit test: valgrind, say
TESTS=${TESTS:-tests/unit/test_*.c tests/namespace/test_*.sh}
LIMIT_S=${LIMIT_S:-900} # a file that takes longer has hung
log=$(mktemp)
counts=$(mktemp)
trap 'rm -f "$log" "$counts"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Reads TAP with other lines between; those before a failure or a skip are about it. Writes
# "passed failed skipped" to the file `counts`, and what the reader wants to see to stdout.
summarise() {
	awk -v status="$1" -v limit="$LIMIT_S" -v counts="$counts" '
	function say(text) { print "    " text }
	function show_other() { for (i = 1; i <= others; i++) say(other[i]) }
	/^[0-9]+\.\.[0-9]+$/ { next }
	/^(not )?ok .*# SKIP/ {
		skipped++
		sub(/^(not )?ok [0-9]* *(- )?/, ""); sub(/# SKIP */, "")
		say("skipped " $0)
		show_other(); others = 0
		next
	}
	/^ok .* # / { say(substr($0, 4)) }
	/^ok / { passed++; others = detail = 0; next }
	/^not ok / { failed++; show_other(); say($0); others = 0; detail = 1; next }
	/^# (ok|not ok) - / { next }
	# cmocka gives the reason of a failure in comments after it, the place last.
	detail && /^# / { say($0); detail = !/ error: /; next }
	{ detail = 0; other[++others] = $0 }
	END {
		if (status && !failed || !(passed + failed + skipped)) {
			failed++
			show_other()
			if (status == 124)
				say("took longer than " limit " s")
			else if (status)
				say("ended with status " status)
			else
				say("ran no test")
		}
		print passed + 0, failed + 0, skipped + 0 >counts
	}' "$log"
}

# run_file FILE COMMAND...
run_file() {
	file=$1
	shift
	start=$(date +%s)
	timeout "$LIMIT_S" "$@" >"$log" 2>&1 </dev/null
	shown=$(summarise $?)
	read -r file_passed file_failed file_skipped <"$counts"
	printf '%-40s %4d passed %4d failed %4d skipped %5d s\n' "$file" "$file_passed" \
		"$file_failed" "$file_skipped" $(($(date +%s) - start))
	[ -z "$shown" ] || printf '%s\n' "$shown"
	passed=$((passed + file_passed))
	failed=$((failed + file_failed))
	skipped=$((skipped + file_skipped))
}

# is_wanted FILE WORD...: with no WORD, every file is.
is_wanted() {
	wanted_file=$1
	shift
	[ $# -gt 0 ] || return 0
	for word; do
		case $wanted_file in *"$word"*) return 0 ;; esac
	done
	return 1
}

passed=0 failed=0 skipped=0
export CMOCKA_MESSAGE_OUTPUT=TAP

# By their sources: a program whose source is gone is not a test any more.
for file in $TESTS; do
	[ -e "$file" ] || continue
	is_wanted "$file" "$@" || continue
	# shellcheck disable=SC2086 # one word an argument
	case $file in
	*.c) run_file "$file" $RUNNER "$BUILD/${file%.c}" ;;
	*.sh) run_file "$file" sh "$file" ;;
	esac
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
