#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Finds and runs every unit and namespace test: sh tests/run.sh [WORD...] runs those whose file names
# hold a WORD. Shows a line a file, the output of what failed, every skip with its reason, and what
# tests have noted. TESTS='FILE...' says which there are, JOBS how many run at once.
set -u
cd "$(dirname "$0")/.." || exit 1

# The longest first, so that none is left at the end: those that say so, and then the largest files.
all() {
	grep "$1" '^# Takes ' tests/unit/*/test_*.c tests/unit/*/*/test_*.c tests/namespace/test_*.sh | xargs ls -S
}
TESTS=${TESTS:-$(all -l; all -L)}
JOBS=${JOBS:-$((3 * $(nproc)))} # tests wait more than they compute
COUNTS=$(mktemp)
export COUNTS CMOCKA_MESSAGE_OUTPUT=TAP
trap 'rm -f "$COUNTS"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

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

status=0
# By their sources: a program whose source is gone is not a test any more.
for file in $TESTS; do
	[ -e "$file" ] && is_wanted "$file" "$@" && echo "$file"
done | xargs -r -P "$JOBS" -n 1 sh tests/run-file.sh || { echo "a file was not run to its end"; status=1; }

awk '{ passed += $1; failed += $2; skipped += $3 }
	END {
		printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
		exit failed || !passed
	}' "$COUNTS" && exit $status
