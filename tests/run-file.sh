#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# For run.sh and seeds.sh: sh tests/run-file.sh FILE [FUNCTION...] runs one file of tests, or those functions of a file of
# namespace/, writes what is to be seen of it in one piece, and adds a line "passed failed skipped" to the file $COUNTS.
set -u

BUILD=${BUILD:-build}
RUNNER=${RUNNER:-}      # what runs each unit test: valgrind, say
LIMIT_S=${LIMIT_S:-900} # a file that takes longer has hung
log=$(mktemp)
trap 'rm -f "$log" "$log.times"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# summarise FILE STATUS SECONDS CPU: reads TAP with other lines between; those before a failure are about it,
# the last one before a skip may be its reason.
# Writes "passed failed skipped", and then what the reader wants to see.
summarise() {
	awk -v file="$1" -v status="$2" -v seconds="$3" -v cpu="$4" -v limit="$LIMIT_S" '
	function say(text) { said = said "    " text "\n" }
	function show_other() { for (i = 1; i <= others; i++) say(other[i]) }
	/^[0-9]+\.\.[0-9]+$/ { next }
	/^(not )?ok .*# SKIP/ {
		skipped++
		sub(/^(not )?ok [0-9]* *(- )?/, "")
		name = why = $0
		sub(/ *# SKIP.*/, "", name); sub(/.*# SKIP */, "", why)
		if (name == "") { # cmocka has the name behind it, and no reason
			name = why
			why = other[others]
		}
		sub(/^skipped: /, "", why)
		if (!count_of[why]++) {
			first[why] = name
			reason[++reasons] = why
		}
		others = 0
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
		for (i = 1; i <= reasons; i++) {
			more = count_of[reason[i]] - 1
			say("skipped " first[reason[i]] (more ? " and " more " more" : "") ": " reason[i])
		}
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
		print passed + 0, failed + 0, skipped + 0
		printf "%-40s %4d passed %4d failed %4d skipped %5d s %5d s of CPU\n%s", file, passed, failed, skipped,
			seconds, cpu, said
	}' "$log"
}

# run COMMAND...
run() {
	start=$(date +%s)
	status=0
	timeout "$LIMIT_S" "$@" >"$log" 2>&1 </dev/null || status=$?
	times >"$log.times" # of what it waited for, user and system
	cpu=$(sed -n '$s/[^0-9.]/ /gp' "$log.times" | awk '{ print 60 * ($1 + $3) + $2 + $4 }')
	seen=$(summarise "$file" "$status" $(($(date +%s) - start)) "$cpu")
}

file=$1
shift
# shellcheck disable=SC2086 # one word an argument
case $file in
*.c) run $RUNNER "$BUILD/${file%.c}" ;;
*.sh) run sh "$file" "$@" ;;
esac
exec 9>>"$COUNTS"
flock 9
printf '%s\n' "$seen" | sed 1d
printf '%s\n' "$seen" | sed 1q >&9
