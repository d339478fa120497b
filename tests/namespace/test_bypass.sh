#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Packets that do not reach the filter though the kernel says that the interface runs it; frames too large for its
# program; drivers that refuse it.
. tests/lib.sh
. tests/namespace/safety.sh
. tests/namespace/metrics.sh

# detour: packets from vin arrive on vrx behind native XDP. Only the test's packets are there.
detour() {
	silence
	ip -n "$TX" link del vtx
	ip -n "$TX" link add vtx index 4711 type veth peer name vrx netns "$RX"
	ip -n "$TX" link set vtx up
	ip -n "$RX" link set vrx up
	veth "$TX" vin "$TX" vout
	in_tx tc qdisc add dev vout clsact
	in_tx tc filter add dev vout ingress bpf da obj "$HELPERS/detour.bpf.o" sec tc || skip "no bpf_redirect_peer() here"
	around 10
	[ "$(received)" -ge 10 ] || skip "this kernel does not count what bpf_redirect_peer() delivers"
}

PASSING='pass any proto udp src 192.0.2.1 dst 198.18.0.1 sport 1 dport 2'

# around PACKETS: sends them by the detour.
around() {
	echo "$PASSING" | "$HELPERS/traffic" --from "$TX:vin" --to "$RX:vrx" --repeat "$1" >"$STATE/around"
}

around_endlessly() {
	echo "$PASSING" >"$STATE/passing"
	"$HELPERS/traffic" --from "$TX:vin" --to "$RX:vrx" --repeat 100000000 --rate 20000 <"$STATE/passing" >/dev/null 2>&1 &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
	wait_for "packets on vrx" grows received
}

# received, seen: packets, by the driver and by the metrics.
received() {
	ip -n "$RX" -s link show vrx | awk '/RX:/ { getline; print $2 }'
}

seen() {
	xc metrics | sed -n "s/^xdp_cuckoo_interface_seen_packets_total{.*\"vrx\".*} //p"
}

grows() {
	grown_from=$($1)
	sleep 0.1
	[ "$($1)" -gt "$grown_from" ]
}

# notes_it COMMAND...: its look of 20 ms saw packets; on a busy machine the sender may rest that long.
notes_it() {
	"$@" 2>&1 | grep -q "^note: NOT FILTERING on 'vrx'"
}

test_bypass() {
	detour
	assert_status 0 xc load vrx --mode native
	around_endlessly
	assert_status 1 xc status --verbose
	assert_output '^  effect: +NOT FILTERING'
	assert_output '^  bypassed on: +vrx$'
	assert_error "^note: NOT FILTERING on 'vrx': .*; unload it there and load it again, .* --mode skb$"
	assert_status 1 xc status --json
	assert_output '"effect": "NOT FILTERING'
	assert_equal 0 "$(seen)" "packets seen"
	xc metrics | grep -q '^xdp_cuckoo_interface_received_packets_total{.*"vrx".*} [1-9]' || fail "none received"
	case_begin 'what joins it'
	wait_for "a word of load" notes_it xc load vrx
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/conf"
	wait_for "a word of up" notes_it xc up "$STATE/conf"
	case_begin 'as advised'
	assert_status 0 xc unload vrx
	assert_status 0 xc load vrx --mode skb
	assert_status 0 xc status --verbose
	assert_output '^  effect: +filters$'
	assert_output '^  bypassed on: +none$'
	wait_for "packets that the filter sees" grows seen
}

# burst: sends packets for half a second.
burst() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		around 20
		sleep 0.05
	done
	date +%s%N >"$STATE/burst_end"
}

# A card whose counters are read late shows a burst of before for up to 2 s; then nothing more may come. A burst that
# took longer on a busy machine shows nothing.
test_burst_is_no_proof() {
	detour
	assert_status 0 xc load vrx --mode native
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		begun=$(date +%s%N)
		burst &
		run xc status --verbose
		wait
		[ $(($(cat "$STATE/burst_end") - begun)) -gt 2300000000 ] || break
	done
	[ $(($(cat "$STATE/burst_end") - begun)) -le 2300000000 ] || skip "this machine is too busy"
	assert_equal 0 "$STATUS" "status"
	assert_equal 0 "$(seen)" "packets seen"
	[ "$(received)" -ge 200 ] || fail "packets received: $(received)"
}

# sound MODE INTERFACE FROM TO: packets from vtx pass through the filter on INTERFACE, and the tool warns of nothing.
sound() {
	assert_status 0 xc load "$2" --mode "$1"
	echo "$PASSING" >"$STATE/passing"
	"$HELPERS/traffic" --from "$TX:vtx" --to "$RX:$2" --repeat 100000000 --rate 20000 <"$STATE/passing" >/dev/null 2>&1 &
	traffic_pid=$!
	on_exit "kill $traffic_pid 2>/dev/null"
	for _ in 1 2 3; do
		assert_shows '^  bypassed on: +none$' xc status --verbose
	done
	xc metrics >"$STATE/metrics"
	[ "$(value "xdp_cuckoo_interface_seen_packets_total{name=\"default\",interface=\"$2\",direction=\"received\",mode=\"$1\"}")" -gt 0 ] ||
		fail "no packet seen"
	kill "$traffic_pid"
	assert_status 0 xc unload "$2"
}

test_sound_interfaces() {
	silence
	for mode in native skb; do
		case_begin "veth, $mode"
		sound "$mode" vrx
	done
	case_begin bridge
	ip -n "$RX" link add vbr type bridge
	ip -n "$RX" link set vbr up promisc on
	ip -n "$RX" link set vrx master vbr
	sound skb vbr
	ip -n "$RX" link del vbr
	case_begin macvlan
	ip -n "$RX" link add mv link vrx type macvlan mode passthru
	ip -n "$RX" link set mv up
	sound skb mv
	ip -n "$RX" link del mv
	case_begin nothing
	ip -n "$RX" link set vrx up
	assert_status 0 xc load vrx
	assert_shows '^  bypassed on: +none$' xc status --verbose
}

# The slaves of a bond run the program, under their own numbers.
test_bond() {
	silence
	ip -n "$RX" link add bond type bond mode balance-rr 2>/dev/null || skip "no bonds here"
	ip -n "$RX" link set vrx down
	ip -n "$RX" link set vrx master bond
	ip -n "$RX" link set bond up
	sound native bond
}

# ---- MTU ----

jumbo() {
	ip -n "$RX" link set vrx mtu 9000
}

program_name() {
	program_of vrx | xargs bpftool prog show id | sed -n '1s/.* name \([^ ]*\) .*/\1/p'
}

grown() {
	assert_status 0 xc status --verbose
	assert_error "the MTU of 'vrx' is 9000: .*; xdp-cuckoo load vrx fixes that, or says why it cannot$"
	assert_output '^  mtu too large on: +vrx$'
}

cured() {
	assert_error "'vrx' now runs the program for frames of several buffers: its MTU has grown to 9000$"
	assert_equal xdp_cuckoo_frags "$(program_name)" "program"
	assert_shows '^  mtu too large on: +none$' xc status --verbose
	printf '%s\n' "drop listed ${PASSING#pass any }" | traffic || fail "a wrong verdict"
}

test_grown_mtu() {
	silence
	assert_status 0 xc add 192.0.2.1
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/conf"
	for cure in 'load vrx' "up $STATE/conf"; do
		case_begin "$cure"
		ip -n "$RX" link set vrx mtu 1500
		assert_status 0 xc load vrx --mode native
		ip -n "$RX" link set vrx mtu 3490
		assert_shows '^  mtu too large on: +none$' xc status --verbose
		jumbo
		grown
		# shellcheck disable=SC2086 # words
		assert_status 0 xc $cure
		cured
		assert_status 0 xc unload vrx
	done
	case_begin skb
	ip -n "$RX" link set vrx mtu 1500
	assert_status 0 xc load vrx --mode skb
	jumbo
	assert_shows '^  mtu too large on: +none$' xc status --verbose
}

# virtio_net takes the program for one buffer up to an MTU of 3506, and loses the largest frames from 3491 on.
test_mtu_that_hardly_fits() {
	needs_linux 6.3
	for mtu in 3490:xdp_cuckoo 3491:xdp_cuckoo_frags; do
		ip -n "$RX" link set vrx mtu "${mtu%:*}"
		assert_status 0 xc load vrx --mode native
		assert_equal "${mtu#*:}" "$(program_name)" "program at $mtu"
		assert_shows '^  mtu too large on: +none$' xc status --verbose
		assert_status 0 xc unload vrx
	done
}

# limited ARGUMENT...: the tool, where drivers say that they have no frames in several buffers.
limited() {
	in_rx env LD_PRELOAD="$PWD/$HELPERS/one_buffer.so" "$TOOL" --state "$STATE/store" "$@"
}

# assert_quiet COMMAND...: no word of the MTU.
assert_quiet() {
	assert_status 0 "$@"
	! grep MTU "$STATE/err" || fail "a note"
}

# ena takes an MTU of 3498, hv_netvsc one of 3506: those limits are right.
test_mtu_that_the_driver_limits() {
	needs_linux 6.3
	ip -n "$RX" link set vrx mtu 3840
	assert_quiet limited load vrx --mode native
	assert_quiet limited status
	ip -n "$RX" link set vrx mtu 3841
	assert_notes "MTU of 'vrx' is 3841: .*; make the MTU smaller" limited status
}

test_tap_of_any_mtu() {
	ip -n "$RX" tuntap add dev tap0 mode tap 2>/dev/null || skip "no tap devices here"
	ip -n "$RX" link set tap0 mtu 9000 up
	assert_quiet xc load tap0 --mode native
	assert_shows '^  mtu too large on: +none$' xc status --verbose
}

# ---- refusals ----

# The tool shows the driver's own words and exits with the status of a refusing system. This driver says "no space".
test_driver_refuses() {
	ip -n "$TX" link add vmany numtxqueues 4 type veth peer name vfew numrxqueues 1 netns "$RX"
	assert_status 3 xc load vfew --mode native
	assert_error "'vfew' does not take the filter in its driver: .*queues.*; use --mode skb or --mode auto$"
	assert_notes "'vfew' runs the filter in generic \(skb\) mode, which is slower: .*queues" xc load vfew
}

run_tests "$0" "$@"
