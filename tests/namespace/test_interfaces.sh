#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Interfaces that come and go, or lose their programs, while a command is at work on all of them.
. tests/lib.sh
. tests/safety.sh
. tests/fault.sh

# Another interface comes and goes between the parts of a listing of many: the kernel says that this one is not whole.
test_listed_while_interfaces_come_and_go() {
	silence
	seq 20 | sed 's/.*/link add vmany& type veth peer name vmore&/' | ip -n "$RX" -batch -
	echo 192.0.2.66 >"$STATE/list"
	printf '[filter]\ninterfaces = vrx\n[list a]\nfile = %s\n' "$STATE/list" >"$STATE/conf"
	cat >"$STATE/come" <<-END
		#!/bin/sh
		ip link add vcome type veth peer name vgo && ip link del vcome && echo >>"$STATE/came"
	END
	chmod +x "$STATE/come"
	for command in "up $STATE/conf" panic 'panic off'; do
		for call in 1 3 5 7 9 11; do
			case_begin "$command at call $call"
			# shellcheck disable=SC2086 # words
			assert_status 0 faulty FAULT_KINDS=n "FAULT_AT=$call" "FAULT_RUN=$STATE/come" $command
		done
	done
	expect drop
	assert_equal 18 "$(wc -l <"$STATE/came")" "times it came"
}

run_tests "$0" "$@"
