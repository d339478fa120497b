#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A fleet in one process, on simulated time, network and disks, while things fail: tests/simulation/README.md. `make
# test-simulation` runs 1,000 seeds. FIRST_SEED=N SEEDS=1 repeats one.
# Takes minutes.
. tests/lib.sh

test_seeds_of_a_fleet() {
	simulation=$BUILD/tests/simulation/simulation
	[ -x "$simulation" ] || skip "$simulation is not built"
	"$simulation" -s "${FIRST_SEED:-1}" -n "${SEEDS:-10}" -j "$(nproc)" ${FAULTS:+-k "$FAULTS"} >"$STATE/seeds" ||
		fail "$(cat "$STATE/seeds")"
	note "$(tail -n 1 "$STATE/seeds")"
}

run_tests "$0" "$@"
