#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Cards whose drivers take the filter and do not run it, or lose frames: status says so.
. tests/lib.sh
. tests/kernels/virtio.sh

# card NUMBER: the interface of that number of run.sh.
card() {
	grep -l "^52:54:00:ca:4d:0$1\$" /sys/class/net/*/address | cut -d / -f 5
}

# send BYTES COUNT: broadcasts from vtx, of that many bytes each. Takes the place of the shell that calls it.
send() {
	exec 9>&- nsenter --net="/run/netns/$TX" python3 -c '
import socket, sys, time
size, count = int(sys.argv[1]), int(sys.argv[2])
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind(("vtx", 0))
ipv4 = bytes.fromhex("4500%04x00000000401100" % (size - 14)) + bytes.fromhex("00c0000201c6336407")
frame = bytes.fromhex("ffffffffffff525400ca4d010800") + ipv4
for i in range(count):
    try:
        sender.send(frame + bytes(size - len(frame)))
    except OSError: # the other end is down
        pass
    time.sleep(0.01)
' "$1" "$2"
}

# begin NUMBER: that card as vrx, beside one that sends without end.
begin() {
	exec 9>/run/lock.cards
	flock 9
	modprobe -q vmxnet3 || :
	[ -n "$(card "$1")" ] || skip "no driver for this card here"
	ip -n "$TX" link del vtx
	lend_card "$(card 1)" "$TX" vtx
	lend_card "$(card "$1")" "$RX" vrx
	on_exit 'xc unload --all >/dev/null 2>&1; ip -n "$RX" link set vrx mtu 1500'
	send 60 100000000 &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
}

received() {
	ip -n "$RX" -s link show vrx | awk '/RX:/ { getline; print $2 }'
}

grows() {
	grown_from=$(received)
	sleep 0.2
	[ "$(received)" -gt "$grown_from" ]
}

# filters, does_not_filter: while packets come.
filters() {
	wait_for "packets on vrx" grows
	assert_status 0 xc status --verbose
	assert_output '^  effect: +filters$'
	xc metrics >"$STATE/metrics"
	grep -q '^xdp_cuckoo_interface_seen_packets_total{.* [1-9][0-9]*$' "$STATE/metrics" || fail "no packet is seen"
}

does_not_filter() {
	wait_for "packets on vrx" grows
	assert_status 1 xc status --verbose
	assert_output '^  effect: +NOT FILTERING'
	assert_error "^note: NOT FILTERING on 'vrx': "
}

load_native() {
	run xc load vrx --mode native
	[ "$STATUS" -eq 0 ] || skip "$(cat "$STATE/err")"
}

test_vmxnet3() {
	begin 2
	load_native
	filters
	case_begin 'link down and up'
	ip -n "$RX" link set vrx down
	ip -n "$RX" link set vrx up
	does_not_filter
	case_begin 'loaded again'
	assert_status 0 xc unload vrx
	assert_status 0 xc load vrx --mode native
	filters
	case_begin 'another MTU'
	ip -n "$RX" link set vrx mtu 1400
	does_not_filter
	case_begin 'a refusal'
	assert_status 0 xc unload vrx
	ip -n "$RX" link set vrx mtu 9000
	assert_status 3 xc load vrx --mode native
	assert_error "'vrx' does not take the filter in its driver: vmxnet3: MTU 9000 too large"
	assert_status 0 xc load vrx
	assert_error "generic \(skb\) mode, which is slower: vmxnet3: MTU 9000 too large"
	filters
}

# Its buffers are chained pages, for which the driver has no XDP, and which it goes on using.
test_virtio_net_without_mergeable_buffers() {
	begin 3
	ip -n "$RX" link set vrx mtu 1500
	load_native
	does_not_filter
	assert_status 0 xc unload vrx
	assert_status 0 xc load vrx --mode skb
	filters
}

# seen_of COUNT: of so many frames of 8,000 bytes, how many the filter has seen.
seen_of() {
	seen_before=$(seen)
	(send 8000 "$1")
	echo $(($(seen) - seen_before))
}

seen() {
	xc metrics | sed -n 's/^xdp_cuckoo_bytes_total{.* \([0-9]*\)$/\1/p' | awk '{ sum += $1 } END { print int(sum / 8000) }'
}

# Frames larger than a page vanish under the program for one buffer.
test_virtio_net_grown_mtu() {
	virtio_pair
	on_exit 'ip -n "$RX" link set vrx mtu 1500; ip -n "$TX" link set vtx mtu 1500'
	assert_status 0 xc load vrx --mode native
	ip -n "$RX" link set vrx mtu 9000
	ip -n "$TX" link set vtx mtu 9000
	assert_equal 0 "$(seen_of 20)" "frames that came to the filter"
	assert_status 0 xc status --verbose
	assert_error "the MTU of 'vrx' has grown to 9000: .*; xdp-cuckoo load vrx fixes that"
	assert_status 0 xc load vrx
	! grep "^note: 'vrx' keeps the program for frames of one buffer: .*virtio_net: MTU" "$STATE/err" ||
		skip "the driver takes no frames of several buffers"
	assert_error "'vrx' now runs the program for frames of several buffers"
	assert_equal 20 "$(seen_of 20)" "frames that came to the filter"
}

run_tests "$0" "$@"
