#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Interfaces that come and go, or lose their programs, while a command is at work on all of them.
. tests/lib.sh
. tests/namespace/safety.sh
. tests/fault/fault.sh

# An interface comes and goes between the parts of a long listing. The kernel reports that the listing is not
# consistent.
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

many_addresses() {
	seq 2000 | awk '{ printf "11.0.%d.%d\n", $1 / 256, $1 % 256 }' >"$STATE/list"
}

# The netlink calls of an import that gives two interfaces a larger table. Then both are as before.
netlink_calls_of_import() {
	xc load vrx vrx2 --capacity 900 --no-spare >/dev/null
	faulty "FAULT_COUNT=$STATE/count" import "$STATE/list" >/dev/null 2>&1 || fail "no import"
	xc unload --all >/dev/null
	xc flush >/dev/null 2>&1
	xc load vrx vrx2 --capacity 900 --no-spare >/dev/null
	sed -n 's/^n //p' "$STATE/count"
}

# Before or between the exchanges of two tables, an interface goes or loses its program, or both go. The remaining
# interfaces filter by the new rules.
test_interface_goes_while_tables_are_exchanged() {
	silence
	many_addresses
	echo 192.0.2.66 >>"$STATE/list"
	for meanwhile in 'ip link del vrx2' 'ip link set dev vrx2 xdp off' 'ip link del vrx2; ip link del vrx'; do
		for back in 20 9; do
			case_begin "$meanwhile, $back calls before the end"
			ip -n "$RX" link show vrx >"$STATE/vrx" 2>&1 || veth "$TX" vtx "$RX" vrx
			ip -n "$RX" link show vrx2 >"$STATE/vrx2" 2>&1 || second_pair
			calls=$(netlink_calls_of_import)
			printf '#!/bin/sh\n%s\n' "$meanwhile" >"$STATE/go"
			chmod +x "$STATE/go"
			assert_status 0 faulty FAULT_KINDS=n "FAULT_AT=$((calls - back))" "FAULT_RUN=$STATE/go" \
				import "$STATE/list"
			assert_equal 2001 "$(xc list | wc -l)" "rules"
			[ "${meanwhile%vrx}" != "$meanwhile" ] || expect drop
			xc unload --all >/dev/null
			xc flush >/dev/null 2>&1
		done
	done
}

# One interface refuses the new program although it runs no other. The other interface gets its old table back.
test_interface_refuses_another_table() {
	second_pair
	silence
	many_addresses
	calls=$(netlink_calls_of_import)
	assert_status 0 xc add 192.0.2.66
	program=$(program_id vrx)
	assert_status 5 faulty FAULT_KINDS=n FAULT_ERRNO=17 "FAULT_AT=$((calls / 2 - 4))" import "$STATE/list"
	assert_error "'vrx2' no longer runs the program"
	assert_equal "$program" "$(program_id vrx)" "program"
	assert_status 0 xc expire
	assert_status 0 xc check
	assert_equal 2001 "$(xc list | wc -l)" "rules"
	expect drop
}

# Between finding a filter and taking it off, another table takes its place, or somebody else takes it off.
test_taken_off_while_tables_are_exchanged() {
	cat >"$STATE/exchange" <<-END
		#!/bin/sh
		if rm "$STATE/large" 2>/dev/null; then capacity=900; else capacity=5000; : >"$STATE/large"; fi
		"$TOOL" --state "$STATE/store" resize \$capacity >/dev/null && echo >>"$STATE/exchanged"
	END
	printf '#!/bin/sh\nip link set dev vrx xdp off 2>/dev/null\n' >"$STATE/take"
	chmod +x "$STATE/exchange" "$STATE/take"
	for row in 'exchange unload vrx' 'exchange down' 'take unload --all'; do
		command=${row#* }
		xc load vrx --no-spare >/dev/null 2>&1
		# shellcheck disable=SC2086 # words
		faulty "FAULT_COUNT=$STATE/count" $command >/dev/null
		calls=$(awk '$1 == "k" || $1 == "n" { n += $2 } END { print n }' "$STATE/count")
		for back in 65 39 37 35; do
			call=$((calls - back))
			case_begin "$command at call $call"
			xc load vrx --no-spare >/dev/null 2>&1
			# shellcheck disable=SC2086 # words
			assert_status 0 faulty FAULT_KINDS=kn "FAULT_AT=$call" "FAULT_RUN=$STATE/${row%% *}" $command
			! ip -n "$RX" -d link show vrx | grep -q prog/xdp || fail "it still runs"
		done
	done
	assert_equal 8 "$(wc -l <"$STATE/exchanged")" "exchanges"
}

# above KIND: makes the interface vup above vrx.
above() {
	case $1 in
	bridge)
		ip -n "$RX" link add vup type bridge
		ip -n "$RX" link set vrx master vup
		;;
	bond)
		ip -n "$RX" link add vup type bond mode balance-rr || return
		ip -n "$RX" link set vrx down
		ip -n "$RX" link set vrx master vup
		;;
	macvlan) ip -n "$RX" link add vup link vrx type macvlan ;;
	vlan) ip -n "$RX" link add vup link vrx type vlan id 5 ;;
	esac 2>"$STATE/above" || return 1
	ip -n "$RX" link set vup up
}

runs_none() {
	! ip -n "$RX" -d link show | grep -q prog/xdp
}

# While an interface above runs a program, the kernel takes none off the one below, and puts none there.
test_one_interface_above_the_other() {
	silence
	xc add 192.0.2.66 >/dev/null 2>&1
	seq 1 60000 | awk '{ printf "11.0.%d.%d\n", $1 / 256, $1 % 256 }' >"$STATE/big"
	for kind in bridge bond macvlan vlan; do
		case_begin "$kind"
		above "$kind" || continue
		ip -n "$RX" link set vrx up
		assert_notes "'vrx' is below another interface .*; unload the one above$" xc load vrx vup --no-spare
		assert_notes "'vrx' is below another interface" xc status
		! grep "'vup' is below" "$STATE/err" || fail "both are below"
		assert_fails 5 'replace the program on vrx: an interface above it .* unload that one first$' xc resize 100000
		assert_fails 4 'table full.* program on vrx: an interface above it .*unload that one first$' xc import "$STATE/big"
		assert_prints 'src 192.0.2.66' xc list
		assert_status 0 xc add 192.0.2.67
		assert_status 0 xc del 192.0.2.67
		assert_fails 5 'detach from vrx: an interface above it .* unload that one first$' xc unload vrx
		expect drop
		assert_status 0 xc check
		assert_shows '^unloaded: +vup; vrx$' xc unload --all
		runs_none || fail "they run still"
		assert_status 0 xc load vup
		assert_fails 5 'attach to vrx: an interface above it .* unload that one first$' xc load vrx
		assert_status 0 xc down
		assert_fails 2 "no interface 'nosuch0'" xc load vrx vup nosuch0
		runs_none || fail "a load that failed stays"
		assert_status 0 xc load vrx vup --confirm 1s
		wait_for "the end of the trial" runs_none
		ip -n "$RX" link del vup
	done
}

# One interface keeps the filter, because somebody else's program runs above it. All others lose theirs.
test_one_interface_keeps_the_filter() {
	above bridge
	second_pair
	silence
	for command in 'unload --all' 'unload lo vrx vrx2' down; do
		case_begin "$command"
		assert_status 0 xc load vrx vrx2
		ip -n "$RX" link set dev vup xdpgeneric obj "$HELPERS/beside.bpf.o" sec xdp || fail "no program for the bridge"
		# shellcheck disable=SC2086 # words
		assert_fails 5 'detach from vrx: an interface above it' xc $command
		assert_output '^unloaded: +vrx2$'
		assert_shows '^interfaces: +vrx native$' xc status
		ip -n "$RX" link set dev vup xdpgeneric off
		assert_status 0 xc unload vrx
	done
}

run_tests "$0" "$@"
