#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the tool may do: what a command does not need, it gives up.
. tests/lib.sh

# set_of CAPABILITY...: as /proc shows it.
set_of() {
	set_of_sum=0
	for set_of_bit; do
		case $set_of_bit in
		dac_override) set_of_bit=1 ;;
		dac_read_search) set_of_bit=2 ;;
		fowner) set_of_bit=3 ;;
		net_admin) set_of_bit=12 ;;
		sys_ptrace) set_of_bit=19 ;;
		sys_admin) set_of_bit=21 ;;
		perfmon) set_of_bit=38 ;;
		bpf) set_of_bit=39 ;;
		esac
		set_of_sum=$((set_of_sum | 1 << set_of_bit))
	done
	printf '%016x' "$set_of_sum"
}

# keeps "CAPABILITY..." ARGUMENT...: what the command, run by root, has when it ends.
keeps() {
	# shellcheck disable=SC2086 # words
	kept=$(set_of $1)
	shift
	rm -f "$STATE/status"
	in_rx env LAST_STATUS="$STATE/status" LD_PRELOAD="$PWD/$HELPERS/last_status.so" \
		"$TOOL" --state "$STATE/store" "$@" >/dev/null 2>&1 </dev/null || [ $? -eq 1 ] || fail "$*: failed"
	assert_equal "CapInh: 0000000000000000 CapPrm: $kept CapEff: $kept CapBnd: $kept CapAmb: 0000000000000000 \
NoNewPrivs: 1" "$(grep -e '^Cap' -e '^NoNewPrivs' "$STATE/status" | tr '\t\n' '  ' | sed 's/ *$//')" "$*"
}

test_root_keeps_what_the_command_needs() {
	kernel='bpf net_admin perfmon sys_admin'
	store="$kernel dac_read_search"
	guarded="$store sys_ptrace"
	echo 192.0.2.1 >"$STATE/list"
	keeps '' help
	keeps '' version
	keeps '' help add
	keeps "$guarded" load vrx
	keeps "$store" status
	keeps "$kernel" stats
	keeps "$guarded" add 192.0.2.9
	keeps "$guarded" import "$STATE/list"
	keeps "$guarded" batch -
	keeps "$guarded" policy
	keeps "$store" list
	keeps "$store" test 192.0.2.1
	keeps "$store" expire
	keeps "$store" monitor-only off
	keeps "$store" confirm
	keeps "$store" resize 1000
	keeps "$store" check
	keeps "$store" bench --seconds 1
	keeps 'dac_read_search dac_override fowner' export "$STATE/exported"
	keeps "$guarded" del 192.0.2.9
	keeps "$guarded" flush
	keeps "$kernel" panic
	keeps "$kernel" unload vrx
}

# Whatever command is added, its needs are told here: no command but help and version has none.
test_every_command_is_told_of() {
	for command in $("$TOOL" help --json | sed -n 's/.*"command": "\([a-z-]*\)".*/\1/p'); do
		grep -q "^	keeps .* $command" "$0" || fail "$command"
	done
}

run_tests "$0" "$@"
