#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Network cards: MTU, link, rings and driver change under the filter while small and large frames arrive. After each
# event the verdicts are right, or `status` says what is wrong and its advice helps.
. tests/lib.sh
. tests/kernels/virtio.sh

# --- the cards

# card NUMBER: the interface of the card that has this number in run.sh.
card() {
	grep -l "^52:54:00:ca:4d:0$1\$" /sys/class/net/*/address | cut -d / -f 5
}

# hum: sends small broadcasts from vtx until it is killed, so that `status` always sees packets. It replaces its shell.
hum() {
	exec 9>&- nsenter --net="/run/netns/$TX" python3 -c '
import socket, time
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind(("vtx", 0))
frame = bytes.fromhex("ffffffffffff525400ca4d010800" "4500002e00000000401100" "00c0000201c6336407").ljust(60, b"\0")
while True:
    try:
        sender.send(frame)
    except OSError: # the other end is down
        pass
    time.sleep(0.01)
'
}

# borrow NUMBER: the card becomes vrx and gets a VLAN.
borrow() {
	DEVICE=$(basename "$(readlink -f "/sys/class/net/$(card "$1")/device")")
	lend_card "$(card "$1")" "$RX" vrx
	ip -n "$RX" link add link vrx name vrx.7 type vlan id 7
	ip -n "$RX" link set vrx.7 up
}

# begin NUMBER DRIVER: the card becomes vrx, and card 1 becomes vtx. One test has them at a time.
begin() {
	exec 9>/run/lock.cards
	flock 9
	modprobe -q 8021q || :
	modprobe -q "$2" || skip "no driver $2 here"
	[ -n "$(card "$1")" ] || skip "no such card here"
	ip -n "$TX" link del vtx
	silence
	lend_card "$(card 1)" "$TX" vtx
	ip -n "$TX" link set vtx mtu 9000
	on_exit 'ip -n "$TX" link set vtx mtu 1500'
	borrow "$1"
	on_exit 'xc unload --all >/dev/null 2>&1; ip -n "$RX" link set vrx mtu 1500'
	hum &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
}

# --- the frames

# flows_up_to MTU: the smallest frames, middle ones and the largest. A trailer fills frames up to 60 bytes and more.
flows_up_to() {
	for size in 0 $(($1 / 2)) $(($1 - 80)) $(($1 - 64)); do
		for verdict in 'drop 1' 'pass 2'; do
			host=${verdict#* }
			ports="sport 1 dport 53 payload $size"
			echo "${verdict% *} ipv4 proto udp src 192.0.2.$host dst 198.51.100.7 $ports"
			echo "${verdict% *} vlan proto udp src 192.0.2.$host dst 198.51.100.7 vlan 7 $ports"
			echo "${verdict% *} ipv6 proto udp src 2001:db8::$host dst 2001:db8::7 $ports"
		done
	done >"$STATE/flows"
	sed 's/^drop/pass/' "$STATE/flows" >"$STATE/innocent"
}

# fares FILE: whether each frame arrives as it should, three times. Cards with several queues change the order. A busy
# emulated machine loses a frame now and then, so there are three tries; but no frame that should be dropped may pass.
fares() {
	for _ in 1 2 3; do
		traffic --repeat 3 --settle 1000 <"$1" >"$STATE/verdicts" 2>&1 && return
		! grep -q ' passed: drop ' "$STATE/verdicts" || return 1
	done
	return 1
}

passes() {
	echo 'pass it proto udp src 192.0.2.2 dst 198.51.100.7 sport 1 dport 53' | traffic --settle 1000
}

# try_mtu MTU: fails where the driver refuses it.
try_mtu() {
	ip -n "$RX" link set vrx mtu "$1" 2>"$STATE/mtu_error" || return
	flows_up_to "$1"
}

set_mtu() {
	MTU=$1
	try_mtu "$1" || fail "no MTU of $1 without a filter: $(cat "$STATE/mtu_error")"
}

# --- what is seen: a line an event, for README.md

seen() {
	echo "$*" >>"$STATE/seen"
}

# assert_seen LINE...
assert_seen() {
	for line; do
		grep -qFx "$line" "$STATE/seen" && continue
		cat "$STATE/seen"
		fail "not seen: $line"
	done
}

# judge EVENT: right verdicts and no alarm, or an alarm whose advice helps. In generic mode only the former.
judge() {
	case_begin "mtu $MTU, $MODE, $1"
	wait_for "a link" passes
	if fares "$STATE/flows"; then
		assert_status 0 xc status
		seen "$CASE: right"
		return
	fi
	run xc status
	if [ "$MODE" != skb ] && [ "$STATUS" -eq 1 ] && grep -q "^note: NOT FILTERING on 'vrx': " "$STATE/err"; then
		heal 'NOT FILTERING' 'unload and load' '--mode skb' 'smaller MTU, --mode skb'
	elif [ "$MODE" != skb ] && [ "$STATUS" -eq 0 ] && grep -q "^note: the MTU of 'vrx' is " "$STATE/err"; then
		heal 'MTU too large' 'load' 'load and renew the buffers' '--mode skb' 'smaller MTU, --mode skb'
	else
		cat "$STATE/verdicts"
		show_run
		fail "wrong verdicts, and status says nothing"
	fi
}

# heal ALARM CURE...: the cures of the advice, one after the other, until one helps.
heal() {
	alarm=$1
	shift
	for cure; do
		take "$cure" >"$STATE/cure" 2>&1 || continue
		wait_for "a link" passes
		fares "$STATE/flows" || continue
		seen "$CASE: $alarm; helps: $cure"
		return
	done
	cat "$STATE/cure" "$STATE/verdicts"
	fail "$alarm, and what status advises does not help"
}

# take CURE
take() {
	case $1 in
	load)
		run xc load vrx
		[ "$STATUS" -eq 0 ] || return
		! grep -q "now runs the program for frames of several buffers" "$STATE/err" || assert_old_buffers
		;;
	'load and renew the buffers') halve_ring && in_rx ethtool -G vrx rx "$ring" ;;
	'unload and load') xc unload vrx && xc load vrx --mode "$MODE" ;;
	'--mode skb')
		xc unload vrx # fails where the load before this was refused
		xc load vrx --mode skb && MODE=skb
		;;
	'smaller MTU, '*) # virtio_net of Linux 6.1 keeps a program as long as the MTU is large
		xc unload vrx 2>"$STATE/refusal" && return 1
		grep -q '^xdp-cuckoo: cannot detach from vrx: .*virtio_net: MTU too large' "$STATE/refusal" || return
		ip -n "$RX" link set vrx mtu 1500
		xc unload vrx
		ip -n "$RX" link set vrx mtu "$LARGEST"
		xc load vrx --mode skb && MODE=skb
		;;
	esac
}

# --- the events

# virtio_net loses large frames in buffers from before the load. With several queues this is seen too seldom to be tested.
assert_old_buffers() {
	case $(in_rx ethtool -i vrx | sed -n 's/^driver: //p') in
	virtio_net) assert_error "^note: 'vrx' may lose frames of more than 3500 bytes until " ;;
	*) ! grep 'may lose frames of more than' "$STATE/err" || fail "told of old buffers" ;;
	esac
}

# load_native: false where the driver refuses. Then the tool says why, and takes generic mode if it may.
load_native() {
	MODE=native
	run xc load vrx --mode native
	if [ "$STATUS" -eq 0 ]; then
		[ "$MTU" -lt 9000 ] || assert_old_buffers
		return 0
	fi
	assert_equal 3 "$STATUS" "status of a refusal"
	assert_error "^xdp-cuckoo: 'vrx' does not take the filter in its driver: .*; use --mode skb or --mode auto$"
	seen "mtu $MTU, native: refused: $(sed -n 's/.*in its driver: \(.*\); use --mode.*/\1/p' "$STATE/err")"
	assert_shows 'vrx +skb$' xc load vrx
	assert_error "generic \(skb\) mode, which is slower: "
	MODE=skb
	return 1
}

halve_ring() {
	ring=$(in_rx ethtool -g vrx 2>/dev/null | awk '/Current/ { now = 1 } now && $1 == "RX:" { print $2 }')
	[ "${ring:-0}" -gt 0 ] && in_rx ethtool -G vrx rx $((ring / 2)) 2>/dev/null
}

# changes: what may happen to an interface that runs the filter.
changes() {
	judge 'as loaded'
	ip -n "$RX" link set vrx down
	ip -n "$RX" link set vrx up
	judge 'link down and up'
	ip -n "$RX" link set vrx mtu $((MTU - 100))
	ip -n "$RX" link set vrx mtu "$MTU"
	judge 'another MTU and back'
	if halve_ring; then
		judge 'half the ring'
		in_rx ethtool -G vrx rx "$ring"
		judge 'the whole ring'
	else
		seen "mtu $MTU, $MODE, half the ring: refused"
	fi
}

# check_card: without a filter all frames arrive. Where QEMU's card loses large ones, only small ones are sent.
check_card() {
	case_begin "mtu $MTU"
	wait_for "a link" passes
	fares "$STATE/innocent" && return
	seen "$CASE, no filter: large frames are lost"
	LARGEST=1500
	flows_up_to "$LARGEST"
	WAIT_LOG=$STATE/verdicts
	wait_for "frames without a filter" fares "$STATE/innocent"
}

# grow: under the filter the MTU grows from 1500 to 9000.
grow() {
	set_mtu 1500
	load_native || :
	if try_mtu 9000; then
		flows_up_to "$LARGEST"
		judge 'grown to 9000'
	else
		seen "mtu 1500, $MODE, grown to 9000: refused: $(sed 's/^Error: \(.*\)\.$/\1/' "$STATE/mtu_error")"
	fi
	assert_status 0 xc unload vrx
}

# drive NUMBER DRIVER on|off: the card gets its driver, or loses it. The module virtio_net has other cards, too.
drive() {
	case $2-$3 in
	virtio_net-on) echo "$DEVICE" >/sys/bus/virtio/drivers/virtio_net/bind ;;
	virtio_net-off) echo "$DEVICE" >/sys/bus/virtio/drivers/virtio_net/unbind ;;
	*-on) modprobe "$2" ;;
	*-off) rmmod "$2" ;;
	esac
}

# again NUMBER DRIVER: the driver leaves under the filter and comes back. Linux never gets rid of a virtio_net interface
# that has queues for XDP alone, under any program: netif_set_real_num_rx_queues() forgets to release these queues.
again() {
	set_mtu 1500
	[ "$1" -eq 7 ] || assert_status 0 xc load vrx
	drive "$@" off
	assert_shows '^running: +none$' xc status
	drive "$@" on
	wait_for "the card" eval '[ -n "$(card '"$1"')" ]'
	borrow "$1"
	set_mtu 1500
	load_native || :
	judge 'driver loaded again'
}

# life NUMBER DRIVER: all events, in both modes.
life() {
	begin "$@"
	assert_status 0 xc add 192.0.2.1
	assert_status 0 xc add 2001:db8::1
	LARGEST=9000
	for mtu in 1500 3500 9000; do
		set_mtu "$mtu"
		check_card
		! load_native || changes
		assert_status 0 xc unload vrx
		MODE=skb
		assert_status 0 xc load vrx --mode skb
		changes
		assert_status 0 xc unload vrx
	done
	grow
	again "$@"
	note "$(grep -c ': right$' "$STATE/seen") right; $(grep -v ': right$' "$STATE/seen" | awk '!already[$0]++ { printf "%s%s", comma, $0; comma = "; " }')"
}

# is_refused MTU: native mode, by the driver.
is_refused() {
	grep -q "^mtu $1, native: refused: " "$STATE/seen"
}

# --- the tests: a line of what is seen shows that the rest of it was looked at

test_vmxnet3() {
	life 2 vmxnet3
	is_refused 1500 && return # before Linux 6.6
	assert_seen 'mtu 1500, native, as loaded: right' \
		'mtu 1500, native, link down and up: NOT FILTERING; helps: unload and load'
}

test_virtio_net_without_mergeable_buffers() {
	life 3 virtio_net
	assert_seen 'mtu 1500, native, as loaded: NOT FILTERING; helps: --mode skb'
}

test_igb() {
	life 4 igb
	assert_seen 'mtu 1500, native, as loaded: right' 'mtu 1500, native, driver loaded again: right'
}

test_e1000e() {
	life 5 e1000e
	is_refused 1500 || fail "native mode: then xdp-cuckoo-drivers(7) needs a row"
	assert_seen 'mtu 9000, skb, as loaded: right'
}

test_virtio_net_without_guest_offloads() {
	life 6 virtio_net
	is_refused 1500 || fail "the host offers no offloads"
	assert_seen 'mtu 9000, skb, as loaded: right'
}

test_virtio_net_of_several_queues() {
	life 7 virtio_net
	assert_seen 'mtu 1500, native, as loaded: right' 'mtu 1500, native, driver loaded again: right'
}

# Frames larger than a page vanish under the program for one buffer. Linux 6.1 has no programs for several.
test_virtio_net() {
	life 8 virtio_net
	help=load
	! is_refused 9000 || help='smaller MTU, --mode skb'
	assert_seen 'mtu 1500, native, as loaded: right' 'mtu 1500, native, driver loaded again: right' \
		"mtu 1500, native, grown to 9000: MTU too large; helps: $help"
}

run_tests "$0" "$@"
