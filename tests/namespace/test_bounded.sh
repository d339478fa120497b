#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The work of every command is bounded by the rules and their keys, never by their product: fewer than 1,000 rules cost
# no command 2 s of CPU. SEED= replays the lists; BOUNDED_S is how many seconds to draw them for.
# Takes a minute.
. tests/lib.sh

BOUNDED_S=${BOUNDED_S:-25}

# Most of the time of a load or a new table is the kernel's verifier: some tenths of a second.
CPU_S=${CPU_S:-2}

test_no_command_takes_long_for_few_rules() {
	echo "seed $SEED"
	run in_rx $PYTHON tests/helpers/bounded.py "$SEED" "$BOUNDED_S" "$CPU_S" "$STATE" "$TOOL" --state "$STATE/store"
	cat "$STATE/out" "$STATE/err"
	[ "$STATUS" -eq 0 ] || fail "seed $SEED"
	note "seed $SEED: $(cat "$STATE/out")"
}

run_tests "$0" "$@"
