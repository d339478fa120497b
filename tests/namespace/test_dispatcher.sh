#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Behind libxdp's dispatcher, where xdp-loader loads and unloads: what the tool does there as elsewhere, and what it says of
# the rest. A kernel that takes no freplace programs skips this; `make test-kernels` has those that take them.
. tests/lib.sh

BLOCKED='drop blocked proto udp src 192.0.2.1 dst 198.51.100.7 sport 1111 dport 53'
INNOCENT='pass innocent proto udp src 192.0.2.2 dst 198.51.100.7 sport 1111 dport 53'

# load_beside FILE NAME: a program behind the dispatcher on vrx, beside those that are there.
load_beside() {
	command -v xdp-loader >/dev/null || skip "xdp-loader is not installed"
	[ "$(stat -f -c %T /sys/fs/bpf 2>/dev/null)" = bpf_fs ] || skip "no BPF file system at /sys/fs/bpf"
	on_exit "in_rx xdp-loader unload vrx --all || :"
	in_rx xdp-loader load vrx "$1" -n "$2"
	in_rx ip -d link show dev vrx | grep -q 'name xdp_dispatcher' ||
		skip "the kernel takes no freplace programs, so xdp-loader attached without a dispatcher"
}

# load_small: the filter, with room for two tables of 4096 slots, beside another program.
load_small() {
	load_beside "$HELPERS/beside.bpf.o" after
	assert_status 0 xc object "$STATE/small" --capacity 3000
	load_beside "$STATE/small" xdp_cuckoo
	assert_notes 'adopted the filter on vrx' xc load vrx
	PROGRAM=$(program_of vrx)
}

# id_of NAME: of a program behind the dispatcher; of several, the one that came first.
id_of() {
	in_rx xdp-loader status vrx | awk -v name="$1" '$1 == "=>" && $3 == name { print $4; exit }'
}

# addresses FIRST COUNT: of 10.0.0.0/8.
addresses() {
	seq "$1" "$(($1 + $2 - 1))" | awk '{ printf "10.%d.%d.%d\n", $1 / 65536, $1 / 256 % 256, $1 % 256 }'
}

# assert_slots SLOTS: of the table, and no other program.
assert_slots() {
	assert_shows "^  slots: +$1\$" xc status --verbose
	assert_equal "$PROGRAM" "$(program_of vrx)" "the filter's program"
}

# start_traffic: sends a listed and an innocent flow without end.
start_traffic() {
	printf '%s\n' "$BLOCKED" "$INNOCENT" >"$STATE/flows"
	"$HELPERS/traffic" --from "$TX:vtx" --to "$RX:vrx" --endless --rate 500 --wrong "$STATE/wrong" \
		<"$STATE/flows" >"$STATE/sent" 2>&1 &
	SENDER=$!
	on_exit "kill $SENDER 2>/dev/null"
	wait_for "traffic" has_dropped
}

# stop_traffic: no verdict was wrong.
stop_traffic() {
	kill "$SENDER"
	wait "$SENDER" || fail "wrong verdicts: $(cat "$STATE/sent" "$STATE/wrong")"
}

has_dropped() {
	xc list --counters | grep -q '^src 192.0.2.1 # packets [1-9]'
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
test_beside_others() {
	load_beside "$HELPERS/beside.bpf.o" after
	load_beside "$OBJECT" xdp_cuckoo
	assert_notes "adopted the filter on vrx as 'default'" xc add 192.0.2.1
	PROGRAM=$(program_of vrx)
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
	assert_shows "running: +none" xc status
	in_rx xdp-loader unload vrx --all
	send_beside pass pass pass
}

# The tool leaves a dispatcher with other programs to xdp-loader, and says so.
test_unload() {
	load_beside "$OBJECT" xdp_cuckoo
	load_beside "$HELPERS/beside.bpf.o" before
	assert_status 0 xc add 192.0.2.1
	PROGRAM=$(program_of vrx)
	assert_fails 5 "dispatcher.*xdp-loader unload vrx -i $PROGRAM" xc unload vrx
	send_beside drop pass drop
}

# All that needs no new maps: growth, changes in one step, counts, samples.
test_changes_within_the_room() {
	load_small
	assert_shows '^interfaces: +vrx native behind libxdp' xc status
	assert_status 0 xc resize 900
	assert_slots 1024
	assert_status 0 xc add 192.0.2.1
	start_traffic
	addresses 0 2000 >"$STATE/list"
	assert_notes 'went from 1024 to' xc import "$STATE/list" --list a
	addresses 1500 2000 >"$STATE/list"
	assert_status 0 xc import "$STATE/list" --list a --replace
	assert_output '^added 1500, .* removed 1500,'
	addresses 3000 3500 >"$STATE/list"
	assert_status 0 xc import "$STATE/list" --list a --replace
	assert_slots 4096
	assert_verdict drop 10.0.12.0 10.0.25.99 pass 10.0.0.1 10.0.9.0
	for length in 9 10 11 12 13 14 15 16 17 18; do
		echo "172.16.0.0/$length"
	done >"$STATE/list"
	assert_notes 'rebuilt the table .* prefix lengths' xc import "$STATE/list" --list b
	assert_verdict drop 172.127.0.1 pass 172.128.0.1
	assert_shows '^src 192.0.2.1 # packets [1-9]' xc list --counters
	assert_shows '^ *vrx .*[1-9]' xc stats --by interface
	assert_shows '192.0.2.1' timeout 100 nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" monitor --count 1
	assert_status 0 xc flush --list b
	stop_traffic
	assert_shows '^vrx +[0-9]+ +0 +0 ' xc check
	assert_slots 4096
}

test_up_within_the_room() {
	load_small
	assert_status 0 xc resize 900
	assert_slots 1024
	printf '[filter]\ninterfaces = vrx\ncapacity = 3000\n' >"$STATE/conf"
	assert_shows '^renewed tables: +1$' xc up "$STATE/conf"
	assert_slots 4096
	printf '[filter]\ninterfaces = vrx\ncapacity = 8000\n' >"$STATE/conf"
	assert_fails 5 "room for two tables of 4096 slots, .*object FILE --capacity 15564; .*-i $PROGRAM" xc up "$STATE/conf"
	printf '[filter]\ninterfaces = vrx\ntable = compact\n' >"$STATE/conf"
	assert_fails 5 "another kind or build, .*object FILE with the options of load; .*-i $PROGRAM" xc up "$STATE/conf"
	assert_slots 4096
}

# The refusal says what to type. While it is done, every packet meets the old filter or the new one.
test_a_larger_one_takes_its_place() {
	load_small
	assert_status 0 xc add 192.0.2.1
	addresses 0 5000 >"$STATE/list"
	assert_fails 4 "table full: [0-9]+ keys do not fit into 4096 slots, .*-i $PROGRAM" xc import "$STATE/list" --list a
	assert_error "object FILE --capacity N, N at least 8194; xdp-loader load vrx FILE -n xdp_cuckoo; xdp-cuckoo --name default load vrx"
	assert_fails 5 'room for two tables of 4096 slots' xc resize 8000
	assert_fails 5 'another --compact.* object FILE with these options;' xc load vrx --compact
	assert_prints 'src 192.0.2.1' xc list
	start_traffic
	assert_status 0 xc object "$STATE/large" --capacity 5001
	load_beside "$STATE/large" xdp_cuckoo
	assert_notes 'adopted the filter on vrx' xc load vrx
	in_rx xdp-loader unload vrx -i "$PROGRAM"
	PROGRAM=$(id_of xdp_cuckoo)
	assert_status 0 xc import "$STATE/list" --list a
	wait_for "packets that the new one drops" has_dropped
	stop_traffic
	assert_verdict drop 10.0.0.0 10.0.19.135 pass 10.0.19.136
	assert_slots 8192
	assert_shows '^vrx +5001 +0 +0 ' xc check
}

# The filter of another version stays until the new one is filled.
test_another_version() {
	xc add 203.0.113.1 >/dev/null 2>&1
	load_beside "$HELPERS/older.bpf.o" older
	"$HELPERS/older" "$STATE/store/default" default 6 --map "$(bpftool prog show id "$(id_of older)" |
		sed -n 's/.* map_ids \([0-9]*\).*/\1/p')" || fail "it does not run"
	assert_verdict drop 203.0.113.1
	assert_shows 'condition: +of another version, behind' xc status
	assert_fails 5 "of another version of xdp-cuckoo, .*-i $(id_of older)" xc add 203.0.113.2
	load_beside "$OBJECT" xdp_cuckoo
	assert_notes 'adopted the filter on vrx' xc load vrx
	assert_status 0 xc add 203.0.113.3
	in_rx xdp-loader unload vrx -i "$(id_of older)"
	assert_verdict drop 203.0.113.1 203.0.113.3 pass 203.0.113.200
	assert_shows 'equal to the store' xc status
}

# Only xdp-loader can take it off, but after the trial it passes everything.
test_on_trial() {
	xc add 192.0.2.1 >/dev/null 2>&1
	load_beside "$OBJECT" xdp_cuckoo
	assert_notes 'adopted the filter on vrx' xc load vrx --confirm 15s
	assert_verdict drop 192.0.2.1
	wait_for "the end of the trial" passes
	assert_fails 1 'too late.*confirm --force lets it filter' xc confirm
	assert_status 0 xc confirm --force
	assert_verdict drop 192.0.2.1
}

# The program for larger frames comes by xdp-loader, too.
test_the_mtu_grows() {
	load_beside "$OBJECT" xdp_cuckoo
	in_rx ip link set vrx mtu 3600
	assert_notes "MTU of 'vrx' is .*; xdp-cuckoo load vrx fixes that, or says why it cannot" xc status
	assert_status 0 xc add 192.0.2.1
	assert_notes "'vrx' keeps the program for frames of one buffer: .*load vrx FILE -n xdp_cuckoo_frags;" xc load vrx
	PROGRAM=$(program_of vrx)
	load_beside "$OBJECT" xdp_cuckoo_frags
	assert_notes 'adopted the filter on vrx' xc load vrx
	in_rx xdp-loader unload vrx -i "$PROGRAM"
	printf '%s\n' "$BLOCKED" "$INNOCENT" | traffic || fail "wrong verdicts"
	assert_status 0 xc status
	assert_equal '' "$(cat "$STATE/err")" "notes"
}

run_tests "$0" "$@"
