# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced after tests/lib.sh: the tool, hit by faults at its steps. See tests/fault/faults.c.
# shellcheck shell=sh

FAULT=${FAULT:-build/tests/fault}

# faults ARGUMENT...: in the receiving namespace.
faults() {
	in_rx "$FAULT/faults" --tool "$TOOL" --faulty "$FAULT/xdp-cuckoo" --clock "$HELPERS/clock_shift.so" \
		--object "$OBJECT" --scratch "$STATE" --seed "$SEED" "$@"
}

# faulty NAME=VALUE... ARGUMENT...: the tool, as `xc` has it, where tests/fault/runtime.c is told to fail.
faulty() {
	faulty_variables=
	while :; do
		case $1 in
		*=*) faulty_variables="$faulty_variables $1" ;;
		*) break ;;
		esac
		shift
	done
	# shellcheck disable=SC2086 # words
	in_rx env $faulty_variables "$FAULT/xdp-cuckoo" --state "$STATE/store" "$@"
}

# stores STATUS COMMAND...: how many stores into the filter's memory it takes.
stores() {
	stores_status=$1
	shift
	assert_status "$stores_status" faulty "FAULT_COUNT=$STATE/count" "$@"
	sed -n 's/^s //p' "$STATE/count"
}
