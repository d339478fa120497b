#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A soak and a crowd, short; `make soak` and `make crowd` are the long ones. SEED=N repeats the choices.
# Takes a minute.
. tests/lib.sh
. tests/soak/lib.sh

# soaked soak|crowd OPTION...: leaves what it says in $STATE/report.
soaked() {
	assert_shows '^wrong: 0$' soak "$@"
	mv "$STATE/out" "$STATE/report"
	assert_nothing_left
}

test_a_soak() {
	soaked soak --seconds 1 --units 600 --fillers 8000
	note "$(awk '$1 == "all" { print $2 }' "$STATE/report") packets, $(grep processes "$STATE/report"), seed $SEED"
}

test_a_crowd_of_50() {
	soaked crowd --seconds 5 --units 1500
	note "$(grep 'at once' "$STATE/report"); $(grep slowest "$STATE/report"); seed $SEED"
}

# This tool reports success for `add` without adding the rule.
test_a_soak_notices_what_is_wrong() {
	cat >"$STATE/tool" <<-END
		#!/bin/sh
		[ "\$3" != add ] || { echo "added: \$4"; exit 0; }
		exec "$PWD/$TOOL" "\$@"
	END
	chmod +x "$STATE/tool"
	TOOL=$STATE/tool
	assert_status 1 soak soak --units 600 --until-wrong
	grep -Eq 'WRONG: (packet .* passed, and must be dropped|.*; it was there|.* is not listed)' "$STATE/err" || fail "$(cat "$STATE/err")"
	note "$(awk '$1 == "all" { print $2 }' "$STATE/out") packets"
}

run_tests "$0" "$@"
