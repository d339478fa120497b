#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Packets get the verdict of the old rules or of the new ones on processors that reorder loads and stores, whatever structure
# they read: all executions of the tables in helpers/memory_tables.py. test_memory_order.sh shows the same of the engine's own
# stores, and looks for the dependencies in object code.
. tests/lib.sh

NEEDS_ROOT=no

check_tables() {
	$PYTHON -B "$TABLES/memory_order.py" tables "$@"
}
TABLES=tests/helpers

test_no_packet_meets_a_mixture() {
	assert_status 0 check_tables
	note "$(tr '\n' ';' <"$STATE/out")"
}

test_planted_faults() {
	for part in 'run, deadline after run' 'run, monitor-only begins, and a rule comes: grace 1' 'rates, number after lines' \
		'rates, a key gets a place: lines=1' 'rates, lines are filled again: grace 1' 'tables, exchange: active=1' \
		'shapes and hints, hint after reads' 'ends of records, both end later: grace 1' \
		'ends of records, old entries end at once: grace 2' \
		'ends of records, meanwhile another one stays: grace 1'; do
		assert_status 1 check_tables "$part"
		assert_output "^${part%%,*}, .*: (drop|pass), not "
	done
	assert_fails 1 'no such part: run, nothing$' check_tables run, nothing
}

# A table that says what the code no longer does is found.
test_other_source() {
	mkdir "$STATE/tree"
	cp -r bpf include user tests/helpers "$STATE/tree"
	sed -i '/first_rate_line, idle/s/__ATOMIC_RELEASE/__ATOMIC_RELAXED/' "$STATE/tree/user/core/filter/rates.c"
	TABLES=$PWD/tests/helpers
	cd "$STATE/tree" || fail 'no copy'
	assert_status 1 check_tables
	assert_output '^rates: there is no such line now: user/core/filter/rates.c: .*idle, __ATOMIC_RELEASE'
}

run_tests "$0" "$@"
