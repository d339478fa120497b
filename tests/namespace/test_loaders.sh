#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Whoever loads the program, the tool finds it, sets it up and takes it off, and leaves nothing behind.
. tests/lib.sh
. tests/namespace/safety.sh
. tests/fault/fault.sh

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
	assert_equal 11 "$(echo "$MAPS" | wc -w)" "maps of program '$PROGRAM'"
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

# has_table KIND SLOTS [OPTION...]: an object with these options, loaded by another tool, is such a table and filters.
has_table() {
	kind=$1 slots=$2
	shift 2
	case_begin "$*"
	assert_status 0 xc object "$STATE/object" "$@"
	in_rx ip link set dev vrx xdp obj "$STATE/object" sec xdp
	assert_shows "^table: +$kind\$" xc status
	assert_output "^slots: +0 of $slots used"
	assert_status 0 xc add 192.0.2.1
	printf '%s\n' "$BLOCKED" "$INNOCENT" | traffic || fail "wrong verdicts"
	assert_shows "^  slots: +$slots\$" xc status --verbose
	assert_status 0 xc unload vrx
	xc del 192.0.2.1 >/dev/null 2>&1
}

test_object_of_each_kind() {
	has_table 'exact, counted by rule' 524288
	has_table 'exact, counted by rule' 2359296 --capacity 2000000
	has_table 'exact, counted by rule' 655360 --capacity 600000 --no-spare
	has_table exact 4096 --capacity 3000 --no-counters
	has_table 'compact, 16 bits' 524288 --compact
	has_table 'compact, 8 bits' 524288 --compact --fingerprint 8
	has_table 'compact, 17 bits, semi-sorted' 524288 --compact --fingerprint 17
	has_table 'compact, 32 bits' 1179648 --compact --fingerprint 32 --capacity 1000000
	cmp "$STATE/object" "$OBJECT" >/dev/null && fail "it is the object of the build"
	assert_fails 2 'at most 510027366 rules' xc object "$STATE/object" --capacity 600000000
	assert_fails 3 "cannot write '$STATE/none/object'" xc object "$STATE/none/object"
}

# Rules that need more than half of the room get all of it, as one table.
test_one_table_where_two_are_too_small() {
	seq 5000 | awk '{ printf "10.0.%d.%d\n", $1 / 256, $1 % 256 }' >"$STATE/rules"
	xc import "$STATE/rules" >/dev/null 2>&1
	assert_status 0 xc object "$STATE/object" --capacity 3000
	in_rx ip link set dev vrx xdp obj "$STATE/object" sec xdp
	program=$(program_id vrx)
	assert_notes 'adopted' xc load vrx
	assert_shows '^  slots: +8192$' xc status --verbose
	assert_output '^  spare table: +no$'
	assert_equal "$program" "$(program_id vrx)" "the program"
	assert_verdict drop 10.0.0.1 10.0.19.136 pass 10.0.19.137
}

# A compact table keeps no ends, so it does not get rules that have ended.
test_a_compact_table_of_another_loader() {
	xc add 192.0.2.1 timeout 1s >/dev/null 2>&1
	sleep 2
	assert_status 0 xc object "$STATE/object" --compact
	in_rx ip link set dev vrx xdp obj "$STATE/object" sec xdp
	assert_status 0 xc add 192.0.2.2
	assert_verdict drop 192.0.2.2 pass 192.0.2.1
}

test_load_adopts_what_another_tool_loaded() {
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	assert_notes "runs the filter 'default' already" xc load vrx
	assert_status 0 xc add 192.0.2.1
	printf '%s\n' "$BLOCKED" "$INNOCENT" | traffic || fail "wrong verdicts"
}

# `load` puts the stored rules in force there, so it can be on trial like any other.
test_what_another_tool_loaded_is_on_trial() {
	xc add 192.0.2.1 >/dev/null 2>&1
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	assert_notes 'adopted the filter on vrx' timed load vrx --confirm 30m
	assert_error 'confirm'
	assert_verdict drop 192.0.2.1
	time_is_over
	assert_equal '' "$(program_id vrx)" "program"
	assert_fails 1 'nothing waits' xc confirm
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	assert_status 0 xc load vrx --confirm 1m
	assert_status 0 xc confirm
	assert_verdict drop 192.0.2.1
	assert_fails 2 '.-confirm has nothing to undo' xc load vrx --confirm 1m
}

# verdict_on N drop|pass: what becomes of a packet from 192.0.2.1 on vrxN.
verdict_on() {
	printf '%s\n' "$BLOCKED" | sed "s/^drop/$2/" | "$HELPERS/traffic" --from "$TX:vtx$1" --to "$RX:vrx$1" >/dev/null ||
		fail "vrx$1: not $2"
}

runs_none() {
	! ip -n "$RX" link show | grep -q xdp
}

# Eight interfaces run one foreign filter and two have their own: nothing of it stays.
test_all_that_a_load_adopts_is_on_trial() {
	bpffs
	for i in 2 3 4 5 6 7 8 9 10; do
		veth "$TX" "vtx$i" "$RX" "vrx$i"
	done
	xc add 192.0.2.1 >/dev/null 2>&1
	bpftool prog load "$OBJECT" "$PIN" type xdp
	for i in '' 2 3 4 5 6 7 8; do
		in_rx bpftool net attach xdp pinned "$PIN" dev "vrx$i"
	done
	in_rx ip link set dev vrx9 xdp obj "$OBJECT" sec xdp
	assert_status 0 timed load vrx10 --confirm 30m
	for i in '' 8 9 10; do
		verdict_on "$i" drop
	done
	time_is_over
	runs_none || fail "it runs still"
	assert_fails 1 'nothing waits' xc confirm
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	in_rx ip link set dev vrx9 xdp obj "$OBJECT" sec xdp
	assert_status 0 xc load vrx10 --confirm 1m
	assert_status 0 xc confirm
	for i in '' 9 10; do
		verdict_on "$i" drop
	done
}

test_a_failed_load_adopts_nothing() {
	second_pair
	xc add 192.0.2.1 >/dev/null 2>&1
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	in_rx ip link set dev vrx2 xdp obj "$OBJECT" sec xdp
	for options in '' '--confirm 5s' --monitor-only '--confirm 5s --monitor-only'; do
		case_begin "$options"
		# shellcheck disable=SC2086 # words
		assert_fails 2 "no interface 'nosuch0'" xc load vrx nosuch0 $options
		verdict_on '' pass
		verdict_on 2 pass
		assert_shows 'not set up' xc status
	done
	case_begin ''
	assert_status 0 xc load vrx --confirm 1m
	verdict_on '' drop
	verdict_on 2 drop
}

# Not one packet is dropped between the adoption and monitor-only.
test_what_is_adopted_as_monitor_only_drops_nothing() {
	xc add 192.0.2.1 >/dev/null 2>&1
	printf '%s\n' "$BLOCKED" | sed 's/^drop/pass/' >"$STATE/flows"
	printf '[filter]\ninterfaces = vrx\nmonitor-only = yes\n' >"$STATE/conf"
	for command in 'load vrx --monitor-only' "up $STATE/conf"; do
		case_begin "$command"
		in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
		"$HELPERS/traffic" --from "$TX:vtx" --to "$RX:vrx" --endless <"$STATE/flows" >/dev/null 2>&1 &
		sender=$!
		on_exit "kill $sender 2>/dev/null"
		# shellcheck disable=SC2086 # words
		assert_notes 'adopted' xc $command
		wait_for "packets that would be dropped" sh -c "nsenter --net=/run/netns/$RX $TOOL --state $STATE/store stats |
			grep -Eq '^drop-rule .* [1-9][0-9]*$'"
		kill "$sender"
		wait "$sender" 2>/dev/null || :
		assert_shows '^drop-rule ' xc stats
		assert_equal 0 "$(counted drop-rule dropped)" "packets dropped: $(cat "$STATE/out")"
		xc unload vrx >/dev/null
		xc monitor-only off >/dev/null 2>&1
	done
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
	assert_equal 10 "$(shared_maps_of "$PROGRAM" | wc -l)" "shared maps"
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

# A damaged filter of the name is not brought up to date, and the commands say so.
test_a_filter_that_cannot_be_used_is_named() {
	second_pair
	xc load vrx >/dev/null
	in_rx "$HELPERS/corrupt" options >/dev/null || fail "the options do not change"
	assert_fails 3 "the filter on 'vrx' is damaged" xc add 192.0.2.1
	in_rx ip link set dev vrx2 xdp obj "$OBJECT" sec xdp
	assert_status 0 xc add 192.0.2.1
	assert_error "this does not reach every filter 'default': the filter on 'vrx' is damaged: .*; replace it"
	assert_fails 3 "the filter on 'vrx' is damaged" xc status
	verdict_on 2 drop
	veth "$TX" vtx3 "$RX" vrx3
	in_rx ip link set dev vrx3 xdp obj "$OBJECT" sec xdp
	assert_notes "adopted the filter on vrx3 as 'other'" xc --name other add 192.0.2.1
	assert_equal 0 "$(grep -c 'does not reach' "$STATE/err")" "words about the filter of another name"
	assert_fails 3 "the filter on 'vrx' is damaged: .*; replace it" xc down
	assert_output '^unloaded: +vrx2$'
}

# While one name adopts a filter, another name waits, and then finds it taken.
test_two_names_do_not_adopt_one_filter() {
	xc add 192.0.2.1 >/dev/null 2>&1
	xc --name other add 192.0.2.2 >/dev/null 2>&1
	printf '#!/bin/sh\ntimeout 1 %s --state %s --name other expire >/dev/null 2>&1\nexit 0\n' \
		"$TOOL" "$STATE/store" >"$STATE/beside"
	chmod +x "$STATE/beside"
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	total=$(stores 0 expire)
	for part in 1 3 5; do
		case_begin "at store $((total * part / 6)) of $total"
		xc unload vrx >/dev/null
		in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
		assert_status 0 faulty FAULT_KINDS=s "FAULT_AT=$((total * part / 6))" "FAULT_RUN=$STATE/beside" expire
		assert_verdict drop 192.0.2.1 pass 192.0.2.2
		assert_status 0 xc check
		assert_fails 1 "no filter 'other' is running" xc --name other check
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

# Many drivers write their reason only to the kernel's log, and use the error of a driver without native XDP.
test_refusal_without_words() {
	for_reason='Operation not supported, and its driver gives no reason here; dmesg may show it'
	assert_status 3 in_rx env LD_PRELOAD="$PWD/$HELPERS/speechless.so" "$TOOL" --state "$STATE/store" load lo --mode native
	assert_error "'lo' does not take the filter in its driver: $for_reason; use --mode skb or --mode auto$"
	assert_status 0 in_rx env LD_PRELOAD="$PWD/$HELPERS/speechless.so" "$TOOL" --state "$STATE/store" load lo
	assert_error "'lo' runs the filter in generic \(skb\) mode, which is slower: $for_reason$"
	# This driver says "no space".
	ip -n "$TX" link add vmany numtxqueues 4 type veth peer name vfew numrxqueues 1 netns "$RX"
	for_reason="No space left on device, ${for_reason#*, }"
	assert_status 0 in_rx env LD_PRELOAD="$PWD/$HELPERS/speechless.so" "$TOOL" --state "$STATE/store" load vfew
	assert_error "'vfew' runs the filter in generic \(skb\) mode, which is slower: $for_reason$"
}

# An XDP program would read the first bytes of a packet as an Ethernet header and match nothing; at tc it is another program.
test_no_ethernet_header() {
	ip -n "$RX" tuntap add dev tun0 mode tun 2>/dev/null || skip "no tun devices here"
	ip -n "$RX" tuntap add dev tap0 mode tap
	assert_fails 3 "^xdp-cuckoo: 'tun0' has no Ethernet header, so no driver runs" xc load vrx tun0 --mode native
	assert_shows 'running: +none' xc status
	for mode in auto skb; do
		case_begin "$mode"
		assert_status 0 xc load tun0 --mode "$mode"
		assert_shows '^interfaces: +tun0 tc$' xc status
		assert_status 0 xc unload tun0
	done
	case_begin ''
	assert_status 0 xc load tap0
	assert_status 0 xc status --verbose
	assert_equal '' "$(cat "$STATE/err")" "notes"
	ip -n "$RX" link set dev tun0 xdpgeneric obj "$OBJECT" sec xdp
	assert_notes "^note: 'tun0' has no Ethernet header" xc status
}

# XDP has one program, tc a list of them: there, each of two processes could add its own.
test_two_loads_at_tc_at_the_same_time() {
	needs_linux 6.6
	ip -n "$RX" tuntap add dev tun0 mode tun 2>/dev/null || skip "no tun devices here"
	touch "$STATE/held"
	in_rx env LD_PRELOAD="$PWD/$HELPERS/held_attach.so" HELD_WHILE="$STATE/held" \
		"$TOOL" --state "$STATE/store" --name late load tun0 >/dev/null 2>"$STATE/late" &
	late=$!
	wait_for "the other load" [ -e "$STATE/held.now" ]
	assert_status 0 xc --name early load tun0
	rm "$STATE/held"
	wait "$late" && fail "both are loaded"
	grep -q "'tun0' runs a filter of another --name at tc" "$STATE/late" || fail "$(cat "$STATE/late")"
	assert_shows '^interfaces: +tun0 tc$' xc --name early status
	assert_shows 'running: +none' xc --name late status
	assert_status 0 xc --name early unload tun0
	assert_equal '' "$(in_rx bpftool net show dev tun0 | grep xdp_cuckoo)" "left at tc"
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

# Root of a user namespace has all capabilities, but the kernel wants those of the host.
test_root_of_a_rootless_container() {
	assert_fails 3 'not permitted, though this process has CAP_BPF, .*user namespace' unshare -Urn sh -c '
		ip link add v0 type veth peer name v1 || exit
		exec "$@"' sh "$TOOL" --state "$STATE/store" load v0
}

test_a_removed_interface_takes_the_filter_along() {
	assert_status 0 xc load vrx
	remember
	in_rx ip link del vrx
	leaves_nothing
	assert_notes 'no filter .default. is running' xc add 192.0.2.1
}

run_tests "$0" "$@"
