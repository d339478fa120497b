#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Whoever loads the program, the tool finds it, sets it up and takes it off, and leaves nothing behind.
. tests/lib.sh

BLOCKED='drop blocked proto udp src 192.0.2.1 dst 198.51.100.7 sport 1111 dport 53'
INNOCENT='pass innocent proto udp src 192.0.2.2 dst 198.51.100.7 sport 1111 dport 53'

# The program counts and passes until the first rule, and filters from then on.
adopts_and_filters() {
	printf '%s\n' "${BLOCKED#drop }" | sed 's/^/pass /' | traffic >/dev/null || fail "a program that nobody set up does not pass everything"
	assert_shows 'not set up' xc status
	assert_notes "adopted the filter on vrx as 'default'" xc add 192.0.2.1
	printf '%s\n' "$BLOCKED" "$INNOCENT" | traffic || fail "wrong verdicts after the first add"
	assert_shows '^drop-rule .* 1 +[0-9]+$' xc stats
	remember
}

# program_of IFACE: the id of the filter's program there, also behind a dispatcher.
program_of() {
	xc status --verbose | awk -v iface="$1" '$1 == iface { print $NF }'
}

# maps_of PROGRAM: the ids of its maps.
maps_of() {
	bpftool prog show id "$1" | sed -n 's/.* map_ids \([0-9,]*\).*/\1/p' | tr ',' ' '
}

# shared_maps_of PROGRAM: those that the programs of a filter share; constants are each program's own.
shared_maps_of() {
	for map in $(maps_of "$1"); do
		bpftool map show id "$map" | grep -q 'name xc_' && echo "$map"
	done
}

# Notes what the filter on vrx consists of in the kernel.
remember() {
	PROGRAM=$(program_of vrx)
	MAPS=$(maps_of "$PROGRAM")
	assert_equal 9 "$(echo "$MAPS" | wc -w)" "maps of program '$PROGRAM'"
}

is_gone() {
	! bpftool "$1" show id "$2"
}

leaves_nothing() {
	# The kernel frees objects a moment after the last reference goes.
	wait_for "program $PROGRAM to go" is_gone prog "$PROGRAM"
	for map in $MAPS; do
		wait_for "map $map to go" is_gone map "$map"
	done
	assert_shows 'running: +none' xc status
}

bpffs() {
	PIN=/sys/fs/bpf/xc$$
	[ "$(stat -f -c %T /sys/fs/bpf 2>/dev/null)" = bpf_fs ] || skip "no BPF file system at /sys/fs/bpf"
	on_exit "rm -rf $PIN $PIN-maps"
}

test_tool_loads_and_unloads() {
	assert_notes 'no filter .default. is running' xc add 192.0.2.1
	assert_shows 'vrx +native' xc load vrx --mode native
	printf '%s\n' "$BLOCKED" "$INNOCENT" | traffic || fail "wrong verdicts"
	remember
	assert_status 0 xc unload vrx
	leaves_nothing
	assert_shows '^src 192.0.2.1$' xc list
}

# Interface names may hold any bytes except white space, slash and colon. Bytes that are no text are shown as ?.
test_name_that_is_no_text() {
	name=$(printf 'd\377"\\x')
	ip -n "$RX" link set vrx down
	ip -n "$RX" link set vrx name "$name"
	assert_shows 'd[?]"\\x +native' xc load "$name"
	assert_fails 1 "'lo' runs no xdp-cuckoo filter" xc unload lo "$name"
	assert_equal 1 "$(wc -l <"$STATE/err")" "lines of errors"
	assert_output '^unloaded: +d[?]"\\x$'
	assert_fails 1 "'d[?]..[\\]+x' runs no xdp-cuckoo filter" xc --json unload "$name"
	printf '[filter]\ninterfaces = %s\n' "$name" >"$STATE/conf"
	assert_shows 'd[?]"\\x +native +loaded' xc up "$STATE/conf"
	assert_shows 'd[?]"\\x' xc down
}

test_ip_link() {
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	adopts_and_filters
	assert_status 0 xc unload vrx
	leaves_nothing
}

test_ip_link_frags() {
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp.frags
	adopts_and_filters
	in_rx ip link set dev vrx xdp off
	leaves_nothing
}

test_bpftool() {
	bpffs
	bpftool prog load "$OBJECT" "$PIN" type xdp
	in_rx bpftool net attach xdp pinned "$PIN" dev vrx
	adopts_and_filters
	assert_status 0 xc unload vrx
	rm "$PIN"
	leaves_nothing
}

test_bpftool_with_pinned_maps() {
	bpffs
	bpftool prog load "$OBJECT" "$PIN" type xdp pinmaps "$PIN-maps"
	in_rx bpftool net attach xdp pinned "$PIN" dev vrx
	adopts_and_filters
	assert_status 0 xc unload vrx
	rm -r "$PIN" "$PIN-maps"
	leaves_nothing
}

# With libxdp's dispatcher if the kernel accepts freplace programs, or else without it.
test_xdp_loader() {
	command -v xdp-loader >/dev/null || skip "xdp-loader is not installed"
	bpffs
	in_rx xdp-loader load vrx "$OBJECT" -n xdp_cuckoo
	adopts_and_filters
	in_rx xdp-loader unload vrx --all
	leaves_nothing
}

# load_beside FILE NAME: a program behind the dispatcher on vrx, beside those that are there.
load_beside() {
	in_rx xdp-loader load vrx "$1" -n "$2"
	in_rx ip -d link show dev vrx | grep -q 'name xdp_dispatcher' ||
		skip "the kernel takes no freplace programs, so xdp-loader attached without a dispatcher"
}

# id_of NAME: of a program behind the dispatcher.
id_of() {
	in_rx xdp-loader status vrx | awk -v name="$1" '$1 == "=>" && $3 == name { print $4 }'
}

# send_beside BEFORE AFTER LISTED: a flow to the address that each of the others drops, and one of a listed source;
# drop or pass.
send_beside() {
	printf '%s\n' "$1 before proto udp src 192.0.2.2 dst 198.51.100.5 sport 1111 dport 53" \
		"$2 after proto udp src 192.0.2.2 dst 198.51.100.6 sport 1111 dport 53" \
		"$3 ${BLOCKED#drop }" "$INNOCENT" | traffic || fail "wrong verdicts"
}

# counted OUTCOME: packets, of the test's flows and of whatever else.
counted() {
	assert_status 0 xc stats
	awk -v outcome="$1" 'index($0, outcome " ") == 1 { print $(NF - 1) }' "$STATE/out"
}

# Three programs run in a row; each sees what the ones before it have passed. They come and go in any order.
test_xdp_loader_beside_others() {
	command -v xdp-loader >/dev/null || skip "xdp-loader is not installed"
	bpffs
	on_exit "in_rx xdp-loader unload vrx --all || :"
	load_beside "$HELPERS/beside.bpf.o" after
	load_beside "$OBJECT" xdp_cuckoo
	assert_notes "adopted the filter on vrx as 'default'" xc add 192.0.2.1
	remember
	send_beside pass drop drop
	assert_equal 1 "$(counted 'drop-rule')" "packets that the filter dropped"
	load_beside "$HELPERS/beside.bpf.o" before
	send_beside drop drop drop
	assert_equal 2 "$(counted 'drop-rule')" "packets that the filter dropped"
	assert_equal "$PROGRAM" "$(program_of vrx)" "the filter's program"
	in_rx xdp-loader unload vrx -i "$(id_of after)"
	send_beside drop pass drop
	in_rx xdp-loader unload vrx -i "$PROGRAM"
	send_beside drop pass pass
	leaves_nothing
	in_rx xdp-loader unload vrx --all
	send_beside pass pass pass
}

# The tool leaves a dispatcher with other programs to xdp-loader, and says so.
test_unload_behind_a_dispatcher() {
	command -v xdp-loader >/dev/null || skip "xdp-loader is not installed"
	bpffs
	on_exit "in_rx xdp-loader unload vrx --all || :"
	load_beside "$OBJECT" xdp_cuckoo
	load_beside "$HELPERS/beside.bpf.o" before
	assert_status 0 xc add 192.0.2.1
	remember
	assert_fails 5 "dispatcher.*xdp-loader unload vrx -i $PROGRAM" xc unload vrx
	send_beside drop pass drop
}

test_load_adopts_what_another_tool_loaded() {
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	assert_notes "runs the filter 'default' already" xc load vrx
	assert_status 0 xc add 192.0.2.1
	printf '%s\n' "$BLOCKED" "$INNOCENT" | traffic || fail "wrong verdicts"
}

test_two_interfaces_share_one_filter() {
	second_pair
	assert_status 0 xc load vrx vrx2
	remember
	assert_equal "$MAPS" "$(maps_of "$(program_of vrx2)")" "maps of the second interface"
	assert_status 0 xc add 192.0.2.1
	for i in '' 2; do
		printf '%s\n' "$BLOCKED" "$INNOCENT" | "$HELPERS/traffic" --from "$TX:vtx$i" --to "$RX:vrx$i" ||
			fail "wrong verdicts on vrx$i"
	done
	assert_status 0 xc unload vrx
	printf '%s\n' "$BLOCKED" | "$HELPERS/traffic" --from "$TX:vtx2" --to "$RX:vrx2" ||
		fail "vrx2 lost the filter with vrx"
	assert_status 0 xc unload --all
	leaves_nothing
}

test_a_later_load_joins_the_filter() {
	second_pair
	assert_status 0 xc load vrx
	assert_status 0 xc add 192.0.2.1
	assert_status 0 xc load vrx2
	remember
	assert_equal "$(shared_maps_of "$PROGRAM")" "$(shared_maps_of "$(program_of vrx2)")" "maps of the second interface"
	assert_equal 8 "$(shared_maps_of "$PROGRAM" | wc -l)" "shared maps"
	printf '%s\n' "$BLOCKED" "$INNOCENT" | "$HELPERS/traffic" --from "$TX:vtx2" --to "$RX:vrx2" ||
		fail "wrong verdicts on vrx2"
}

# The program on the second interface is loaded for the format of the existing table.
test_a_later_load_joins_a_filter_of_any_format() {
	second_pair
	assert_status 0 xc add 192.0.2.1
	for format in --no-counters '--compact --fingerprint 8' --compact '--compact --fingerprint 17' \
		'--compact --fingerprint 32'; do
		case_begin "$format"
		# shellcheck disable=SC2086 # words
		assert_status 0 xc load vrx $format
		assert_status 0 xc load vrx2
		for i in '' 2; do
			printf '%s\n' "$BLOCKED" "$INNOCENT" | "$HELPERS/traffic" --from "$TX:vtx$i" --to "$RX:vrx$i" ||
				fail "wrong verdicts on vrx$i"
		done
		xc unload --all >/dev/null
	done
}

# Two loads by another tool make two tables; a rule must reach both.
test_two_filters_of_one_name() {
	second_pair
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	in_rx ip link set dev vrx2 xdp obj "$OBJECT" sec xdp
	assert_status 0 xc add 192.0.2.1
	for i in '' 2; do
		printf '%s\n' "$BLOCKED" "$INNOCENT" | "$HELPERS/traffic" --from "$TX:vtx$i" --to "$RX:vrx$i" ||
			fail "wrong verdicts on vrx$i"
	done
}

test_two_names_are_apart() {
	second_pair
	assert_status 0 xc load vrx
	assert_status 0 xc --name other load vrx2
	assert_status 0 xc add 192.0.2.1
	printf '%s\n' "$BLOCKED" | traffic || fail "the rule does not hold on vrx"
	printf '%s\n' "$BLOCKED" | sed 's/^drop/pass/' |
		"$HELPERS/traffic" --from "$TX:vtx2" --to "$RX:vrx2" || fail "the rule holds for the other name"
	assert_prints '' xc --name other list
}

test_skb_mode() {
	assert_shows 'vrx +skb' xc load vrx --mode skb
	assert_status 0 xc add 192.0.2.1
	printf '%s\n' "$BLOCKED" "$INNOCENT" | traffic || fail "wrong verdicts"
}

test_jumbo_mtu_uses_the_frags_program() {
	in_tx ip link set vtx mtu 9000
	in_rx ip link set vrx mtu 9000
	assert_status 0 xc load vrx --mode native
	assert_status 0 xc add 192.0.2.1
	printf '%s\n' "$BLOCKED" "$INNOCENT" | traffic || fail "wrong verdicts"
}

# The loopback interface, here that of the test's own namespace, has no native XDP.
test_no_native_support() {
	assert_status 3 xc load lo --mode native
	assert_error "'lo' does not take the filter in its driver: .* native mode; use --mode skb or --mode auto$"
	assert_status 0 xc load lo
	assert_error 'generic \(skb\) mode'
	assert_output 'lo +skb'
}

# The program would read the first bytes of a packet as an Ethernet header and match nothing.
test_no_ethernet_header() {
	ip -n "$RX" tuntap add dev tun0 mode tun 2>/dev/null || skip "no tun devices here"
	ip -n "$RX" tuntap add dev tap0 mode tap
	for mode in auto native skb; do
		case_begin "$mode"
		assert_fails 2 "^xdp-cuckoo: 'tun0' has no Ethernet header" xc load vrx tun0 --mode "$mode"
		assert_shows 'running: +none' xc status
	done
	assert_status 0 xc load tap0
	assert_status 0 xc status --verbose
	assert_equal '' "$(cat "$STATE/err")" "notes"
	ip -n "$RX" link set dev tun0 xdpgeneric obj "$OBJECT" sec xdp
	assert_notes "^note: 'tun0' has no Ethernet header" xc status
}

test_another_program_is_in_the_way() {
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	second_pair
	assert_status 0 xc --name other load vrx
	assert_fails 5 "'vrx' runs another XDP program" xc load vrx
}

test_a_load_is_for_all_interfaces_or_none() {
	assert_fails 2 "no interface 'nosuch0'" xc load vrx nosuch0
	assert_shows 'running: +none' xc status
}

test_no_bpf_file_system_is_needed() {
	unshare -m sh -c 'umount -a -t bpf; exec "$@"' sh nsenter --net="/run/netns/$RX" \
		"$TOOL" --state "$STATE/store" load vrx >/dev/null || fail "load needs a BPF file system"
	assert_status 0 xc add 192.0.2.1
	printf '%s\n' "$BLOCKED" "$INNOCENT" | traffic || fail "wrong verdicts"
}

test_without_privilege() {
	command -v setpriv >/dev/null || skip "setpriv is not installed"
	assert_status 0 xc load vrx
	chmod 755 "$STATE"
	assert_status 3 in_rx setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$TOOL" --state "$STATE/mine" add 192.0.2.1
	assert_error '(run it as root|[Pp]ermission)'
}

test_a_removed_interface_takes_the_filter_along() {
	assert_status 0 xc load vrx
	remember
	in_rx ip link del vrx
	leaves_nothing
	assert_notes 'no filter .default. is running' xc add 192.0.2.1
}

run_tests "$0" "$@"
