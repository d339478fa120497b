#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Packets that this host sends, and interfaces without Ethernet headers: both are filtered at tc. The filter runs in $RX, on
# vrx; the host that it knows is in $TX.
# Takes a minute.
. tests/lib.sh
. tests/namespace/safety.sh

outgoing() {
	in_rx $PYTHON tests/helpers/outgoing.py "$@"
}

# direction received|sent dropped|would_drop|passed: how many packets the filter has counted so.
direction() {
	xc --json stats --by interface | jq --arg direction "$1" --arg count "$2_packets" \
		'[.[] | select(.direction == $direction and .interface != "all")[$count]] | add // 0'
}

# has_tc IFACE: whether a program of ours is at tc there.
has_tc() {
	in_rx $PYTHON -c '
import ctypes, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
found = []
for kind in (46, 47):
    ids = (ctypes.c_uint32 * 64)()
    attr = bytearray(128)
    struct.pack_into("IIIIQI", attr, 0, socket.if_nametoindex(sys.argv[1]), kind, 0, 0, ctypes.addressof(ids), 64)
    buffer = (ctypes.c_char * 128).from_buffer(attr)
    if libc.syscall(321, 16, buffer, 128) == 0:
        found += [kind] * struct.unpack_from("I", attr, 24)[0]
text = os.popen("tc filter show dev %s ingress; tc filter show dev %s egress" % (sys.argv[1], sys.argv[1])).read()
sys.exit(not found and "xdp_cuckoo" not in text)' "$1"
}

# serve|receive NAMESPACE PORT: takes connections, or datagrams, until the test ends; what it says is in $STATE/PORT.
serve() {
	listen_in serve "$@"
}

receive() {
	listen_in receive "$@"
}

LISTENERS=''
listen_in() {
	nsenter --net="/run/netns/$2" $PYTHON tests/helpers/outgoing.py "$1" "$3" >"$STATE/$3" 2>/dev/null &
	LISTENERS="$LISTENERS $!"
	on_exit "kill $! 2>/dev/null"
	wait_for 'the listener' grep -q listening "$STATE/$3"
}

leaves_nothing() {
	! has_tc vrx || fail "a program is still at tc"
	! in_rx tc qdisc show dev vrx | grep -q clsact || fail "clsact is still there"
	[ -z "$(program_id vrx)" ] || fail "a program is still at XDP"
}

# Headers before the ports are no way around a rule, nor are packet sockets, unless they go past the queues.
test_no_way_around_a_rule() {
	$PYTHON tests/helpers/headers.py "$RX" "$TX" back >"$STATE/bare" || fail "cannot send"
	[ "$(grep -c ': delivered$' "$STATE/bare")" -gt "$(grep -cv ': delivered$' "$STATE/bare")" ] || fail "nothing is delivered"
	! grep -v ': delivered$' "$STATE/bare" || note "this kernel stops some itself: $(grep -c ': stopped' "$STATE/bare")"
	xc load vrx --outgoing >/dev/null 2>&1
	xc policy too-many-headers pass >/dev/null
	$PYTHON tests/helpers/headers.py "$RX" "$TX" back >"$STATE/free" || fail "cannot send"
	assert_equal "$(cat "$STATE/bare")" "$(cat "$STATE/free")" "sent without a rule"
	xc add proto udp sport 5300 >/dev/null
	$PYTHON tests/helpers/headers.py "$RX" "$TX" back >"$STATE/sent" || fail "cannot send"
	grep -E '^(65 tags|350 tags|split headers): delivered$' "$STATE/bare" >"$STATE/deeper"
	assert_equal "$(cat "$STATE/deeper")" "$(grep ': delivered$' "$STATE/sent")" "sent with the policy pass"
	xc policy too-many-headers drop >/dev/null
	$PYTHON tests/helpers/headers.py "$RX" "$TX" back >"$STATE/sent" || fail "cannot send"
	assert_equal '' "$(grep ': delivered$' "$STATE/sent")" "sent against the rule"
	$PYTHON tests/helpers/headers.py "$RX" "$TX" bypass >"$STATE/past" || fail "cannot send"
	assert_equal "$(cat "$STATE/free")" "$(cat "$STATE/past")" "sent past the queues"
	xc unload vrx >/dev/null
	xc load vrx >/dev/null 2>&1
	$PYTHON tests/helpers/headers.py "$RX" "$TX" back >"$STATE/sent" || fail "cannot send"
	assert_equal "$(cat "$STATE/free")" "$(cat "$STATE/sent")" "sent without --outgoing"
}

# One rule for a peer holds in both directions; the sender learns what Linux tells it.
test_what_a_sender_learns() {
	silence
	xc load vrx --outgoing >/dev/null 2>&1
	serve "$TX" 5001
	assert_prints connected outgoing tcp 10.99.0.1 5001
	assert_status 0 xc add 10.99.0.1 --force
	for row in 'udp sent' 'udp-errors ENOBUFS' 'icmp sent' 'raw sent' 'tcp ETIMEDOUT'; do
		case_begin "$row"
		before=$(direction sent dropped)
		assert_prints "${row#* }" outgoing "${row% *}" 10.99.0.1 5001
		[ "$(direction sent dropped)" -gt "$before" ] || fail "it was not dropped"
	done
	case_begin ''
	assert_equal 0 "$(direction received dropped)" "received packets dropped"
	assert_status 0 xc del 10.99.0.1
	assert_prints connected outgoing tcp 10.99.0.1 5001
}

# A packet of the peer and one to the peer count for the same rule, in the counters of their directions.
test_counters_have_the_direction() {
	silence
	xc load vrx --outgoing >/dev/null 2>&1
	xc add proto udp src 10.99.0.1 sport 53 --force >/dev/null 2>&1
	for _ in 1 2 3; do
		outgoing udp 10.99.0.1 53 >/dev/null
	done
	echo 'drop it proto udp src 10.99.0.1 dst 10.99.0.2 sport 53 dport 7' | traffic >/dev/null || fail "not dropped"
	assert_equal 3 "$(direction sent dropped)" "sent packets dropped"
	assert_equal 1 "$(direction received dropped)" "received packets dropped"
	assert_shows '^vrx +received .* 1 ' xc stats --by interface
	assert_shows '^vrx +sent .* 3 +129$' xc stats --by interface
	assert_shows '^drop-rule .* 4 ' xc stats vrx
	assert_shows '# packets 4 bytes' xc list --counters
	assert_shows 'xdp_cuckoo_interface_packets_total\{.*interface="vrx",direction="sent".*outcome="drop-rule",verdict="drop"\} 3$' \
		xc metrics
	assert_shows 'xdp_cuckoo_interface_info\{.*interface="vrx",direction="sent",mode="tc"\} 1$' xc metrics
	assert_status 0 xc stats --reset
	assert_equal 0 "$(direction sent dropped)" "sent packets dropped since the reset"
}

test_monitor_has_the_direction() {
	silence
	xc load vrx --outgoing >/dev/null 2>&1
	xc add proto udp src 10.99.0.1 sport 53 --force >/dev/null 2>&1
	xc monitor --count 1 >"$STATE/lines" 2>&1 &
	monitor=$!
	wait_for 'a line' sh -c "nsenter --net=/run/netns/$RX $PYTHON tests/helpers/outgoing.py udp 10.99.0.1 53 >/dev/null; sleep 0.1; grep -q sent '$STATE/lines'"
	wait "$monitor" || fail "monitor failed"
	grep -q ' vrx sent proto udp src 10.99.0.2 sport [0-9]* dst 10.99.0.1 dport 53 length 43: dropped by rule proto udp src 10.99.0.1 sport 53' \
		"$STATE/lines" || { cat "$STATE/lines"; fail "another line"; }
	xc monitor --count 1 --write "$STATE/file" 2>/dev/null &
	monitor=$!
	wait_for 'a packet' sh -c "nsenter --net=/run/netns/$RX $PYTHON tests/helpers/outgoing.py udp 10.99.0.1 53 >/dev/null; sleep 0.1; ! kill -0 $monitor 2>/dev/null"
	# A packet's block ends with its comment and the flags: option 2 of 4 bytes, value 2.
	$PYTHON -c '
import sys
assert bytes((2, 0, 4, 0, 2, 0, 0, 0)) in open(sys.argv[1], "rb").read()' "$STATE/file" || fail "no direction in the file"
}

# A VLAN tag may be beside the data of a packet (skb->vlan_tci), and one more in the data.
test_tags_beside_the_data() {
	silence
	in_rx tc qdisc add dev vrx clsact
	in_rx tc filter add dev vrx ingress bpf da obj "$HELPERS/push_tags.bpf.o" sec tc 2>"$STATE/tc" || { cat "$STATE/tc"; fail "no tags"; }
	xc load vrx --outgoing >/dev/null 2>&1
	xc add proto udp src 10.99.0.2 sport 5300 --force >/dev/null 2>&1
	xc add proto udp src 10.99.0.2 sport 5301 --force >/dev/null 2>&1
	for row in '5300 dropped' '5301 dropped' '5302 passed'; do
		case_begin "$row"
		before=$(direction sent "${row#* }")
		in_tx $PYTHON tests/helpers/outgoing.py udp 10.99.0.2 "${row% *}" >/dev/null
		wait_for 'the packet' eval '[ "$(direction sent "${row#* }")" -gt "$before" ]'
		[ "$row" = '5302 passed' ] || assert_equal $((before + 1)) "$(direction sent dropped)" "dropped"
	done
	assert_equal 2 "$(direction sent dropped)" "dropped in all"
}

# What a driver or the stack cuts later counts as those packets.
test_large_packets() {
	silence
	xc load vrx --outgoing >/dev/null 2>&1
	xc add proto tcp src 10.99.0.1 sport 5001 action monitor >/dev/null
	serve "$TX" 5001
	outgoing push 10.99.0.1 5001 20000000 >/dev/null || fail "cannot send"
	wait_for 'the bytes' grep -q '^20000000$' "$STATE/5001"
	# 1,448 bytes in each packet: 13,813, and some for the connection. In the kernel they are some hundreds.
	packets=$(direction sent would_drop)
	if [ "$packets" -lt 13800 ] || [ "$packets" -gt 15500 ]; then fail "$packets packets"; fi
	note "$packets packets for 20 MB"
	# A rule that comes meanwhile stops the connection.
	xc add proto tcp src 10.99.0.1 sport 5001 action drop --force >/dev/null 2>&1
	! timeout 3 nsenter --net="/run/netns/$RX" $PYTHON tests/helpers/outgoing.py push 10.99.0.1 5001 100000 >/dev/null 2>&1 ||
		fail "it still gets through"
}

# The host may begin, the peer may not.
test_state_new() {
	silence
	xc load vrx --outgoing >/dev/null 2>&1
	xc add proto tcp state new >/dev/null 2>&1 || xc add proto tcp state new --force >/dev/null 2>&1
	# Hints, and with them shortcuts, are for lists of networks.
	seq 1 255 | awk '{ printf "11.%d.0.0/%d state new\n", $1, 16 + $1 % 9 }' >"$STATE/list"
	xc import "$STATE/list" --force >/dev/null 2>&1
	xc add src 10.0.0.0/8 state new --force >/dev/null 2>&1
	serve "$TX" 5001
	serve "$RX" 5002
	assert_prints connected outgoing tcp 10.99.0.1 5001
	assert_prints ETIMEDOUT in_tx $PYTHON tests/helpers/outgoing.py tcp 10.99.0.2 5002
	assert_status 1 xc test src 10.99.0.2 dst 10.99.0.1 proto tcp dport 5001 --outgoing
	assert_status 0 xc test src 10.99.0.1 dst 10.99.0.2 proto tcp dport 5001
}

test_what_is_said() {
	xc load vrx >/dev/null 2>&1
	assert_notes "to block what it sends there, write src, and load the filter with --outgoing$" xc add dst 203.0.113.9
	assert_status 0 xc add 203.0.113.7
	assert_status 0 xc test 203.0.113.7 --outgoing
	assert_output '^flow: +dst 203.0.113.7$'
	assert_output '^looked up as: +src 203.0.113.7$'
	assert_output '^running filter: none filters sent packets: load it with --outgoing$'
	assert_shows '^interfaces: +vrx native$' xc status
	assert_status 0 xc load vrx --outgoing
	assert_output '^ +vrx +native +yes$'
	assert_shows '^interfaces: +vrx native outgoing$' xc status
	assert_shows '^running filter: agrees$' xc test proto udp src 10.99.0.2 dst 203.0.113.7 dport 53 --outgoing
	assert_output '^looked up as: +proto udp src 203.0.113.7 sport 53 dst 10.99.0.2$'
	assert_notes 'already' xc load vrx --outgoing
	assert_status 1 xc test 203.0.113.8 --outgoing
	# Nothing is exchanged to a group.
	assert_status 1 xc test dst 224.0.0.9 --outgoing
	assert_output '^looked up as: +dst 224.0.0.9$'
	# An address with src is the sender's.
	xc add dst 203.0.113.5 >/dev/null 2>&1
	assert_status 0 xc test src 203.0.113.5 --outgoing
	assert_output '^looked up as: +dst 203.0.113.5$'
	# Such rules match no sent packets.
	assert_status 0 xc add 203.0.113.6 tcp dport 25 state new
	assert_status 1 xc test 203.0.113.6 --outgoing
	! grep -q 'state new' "$STATE/out" || fail "a rule with state new is named: $(cat "$STATE/out")"
}

# Both directions are one filter for every command.
test_both_are_one() {
	silence
	xc load vrx --outgoing >/dev/null 2>&1
	xc add proto udp src 10.99.0.1 sport 53 --force >/dev/null 2>&1
	dropped() {
		dropped_before=$(direction sent dropped)
		outgoing udp 10.99.0.1 53 >/dev/null
		[ "$(direction sent dropped)" -gt "$dropped_before" ]
	}
	dropped || fail "not dropped"
	assert_status 0 xc panic
	! dropped || fail "dropped in a panic"
	assert_status 0 xc panic off
	assert_status 0 xc monitor-only on
	! dropped || fail "dropped by monitor-only"
	assert_status 0 xc monitor-only off
	dropped || fail "not dropped after monitor-only"
	assert_status 0 xc resize 3000000
	dropped || fail "not dropped after resize"
	assert_shows '^interfaces: +vrx native outgoing$' xc status
	assert_status 0 xc check
	assert_status 0 xc unload vrx
	assert_prints 'unloaded: vrx' echo "$(cat "$STATE/out")"
	leaves_nothing
	xc load vrx --outgoing >/dev/null 2>&1
	assert_status 0 xc unload --all
	leaves_nothing
	xc load vrx --outgoing >/dev/null 2>&1
	assert_status 0 xc down
	leaves_nothing
}

# An error half way leaves what was before.
test_errors_half_way() {
	second_pair
	assert_status 2 xc load vrx vnone --outgoing
	leaves_nothing
	assert_status 0 xc load vrx
	assert_status 0 xc --name other load vrx2 --outgoing
	assert_status 5 xc load vrx vrx2 --outgoing
	assert_error "'vrx2' runs another XDP program"
	! has_tc vrx || fail "a program is at tc"
	[ -n "$(program_id vrx)" ] || fail "no program is at XDP"
	assert_shows '^interfaces: +vrx native$' xc status
	# The second half of a load is refused.
	ip -n "$RX" link set dev vrx2 xdp off
	assert_status 5 xc load vrx2 --outgoing
	assert_error "'vrx2' runs a filter of another --name at tc"
	[ -z "$(program_id vrx2)" ] || fail "a half of the filter is there"
	printf '[filter]\ninterfaces = vrx2\noutgoing = yes\n' >"$STATE/conf"
	assert_status 5 xc up "$STATE/conf"
	[ -z "$(program_id vrx2)" ] || fail "up left a half of the filter"
	# Only a part of it is left, and goes with the interface.
	assert_status 1 xc --name other status
	assert_output '^interfaces: +vrx2 only outgoing$'
	assert_status 0 xc unload vrx2
	! has_tc vrx2 || fail "a program is at tc"
}

# Another tool puts a program before ours: whether it leaves us all packets, status cannot know.
test_another_program_comes_first() {
	effect() {
		assert_shows "xdp_cuckoo_interface_behind_another\{.*interface=\"vrx\",direction=\"sent\",.*\} $1$" xc metrics
		assert_status "$1" xc --json status
		assert_output "\"behind_another_on\": \[${3-}$"
		assert_status "$1" xc status
		assert_output "^effect: +$2$"
	}
	is_behind() {
		effect 1 "filters, but only what another tool's program at tc leaves to it"
		assert_error "^note: at tc of 'vrx', a program of another tool comes before the filter for sent packets, which does not"
	}
	xc load vrx --outgoing >/dev/null 2>&1
	effect 0 filters '\],'
	outgoing before vrx || skip "no list of programs at tc before Linux 6.6"
	is_behind
	case_begin 'also of a larger table'
	assert_status 0 xc resize 3000000
	is_behind
	outgoing detach vrx
	effect 0 filters '\],'
}

# Another tool takes off one of the two programs: status says so until both are there again, or one is all that is wanted.
test_a_direction_is_lost() {
	lose_sent() {
		in_rx $PYTHON tests/helpers/outgoing.py detach vrx
		! has_tc vrx || fail "the program is still at tc"
	}
	loses() {
		assert_status 1 xc status
		assert_output '^effect: +filters ONE DIRECTION only, though both were loaded$'
		assert_error "^note: another tool has taken the filter for $1 packets off 'vrx'; to put it back: xdp-cuckoo load vrx --outgoing$"
		assert_status 1 xc --json status
		assert_output '"one_direction_on": \[$'
		assert_shows 'xdp_cuckoo_interface_lost_direction\{.*interface="vrx",.*\} 1$' xc metrics
	}
	has_both() {
		assert_status 0 xc status
		assert_output '^effect: +filters$'
		assert_output '^interfaces: +vrx native outgoing$'
		assert_equal '' "$(cat "$STATE/err")" "notes"
		! xc metrics | grep -q 'lost_direction{.* 1$' || fail "the metric says that a direction is lost"
	}
	xc load vrx --outgoing >/dev/null 2>&1
	has_both
	lose_sent
	loses sent
	case_begin 'also of a larger table'
	assert_status 0 xc resize 3000000
	loses sent
	assert_status 0 xc load vrx
	loses sent
	assert_status 0 xc load vrx --outgoing
	has_both
	case_begin 'the program for received packets'
	ip -n "$RX" link set dev vrx xdp off
	loses received
	assert_status 0 xc load vrx --outgoing
	has_both
	case_begin 'only one is wanted now'
	lose_sent
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/conf"
	assert_status 0 xc up "$STATE/conf"
	assert_shows '^interfaces: +vrx native$' xc status
	case_begin 'taken off by ours'
	xc load vrx --outgoing >/dev/null 2>&1
	assert_status 0 xc up "$STATE/conf"
	assert_shows '^effect: +filters$' xc status
	xc load vrx --outgoing >/dev/null 2>&1
	lose_sent
	assert_status 0 xc unload vrx
	assert_status 0 xc load vrx
	assert_shows '^effect: +filters$' xc status
}

# One bit says for several interfaces that both directions are wanted, and it outlives an interface.
test_a_direction_of_another_interface() {
	pair() {
		ip -n "$RX" link add name "$1" index "$2" type veth peer name "${1}p"
	}
	pair vold 100001
	assert_status 0 xc load vrx
	assert_status 0 xc load vold --outgoing
	ip -n "$RX" link del vold
	case_begin 'an interface that is gone'
	pair vnew 100065
	assert_status 0 xc load vnew
	assert_shows '^effect: +filters$' xc status
	case_begin 'another interface with both'
	pair vold 100129
	assert_status 0 xc load vnew vold --outgoing
	assert_status 0 xc unload vold
	in_rx $PYTHON tests/helpers/outgoing.py detach vnew
	assert_status 1 xc status
	assert_output 'filters ONE DIRECTION only'
}

# A load that fails, or is not confirmed, takes off what it has put there, and leaves the other direction.
test_an_undone_load_leaves_the_other_direction() {
	ip -n "$RX" link add vbusy type veth peer name vbusy2
	assert_status 0 xc --name other load vbusy
	assert_status 0 xc load vrx --outgoing
	ip -n "$RX" link set dev vrx xdp off
	assert_status 5 xc load vrx vbusy --outgoing
	has_tc vrx || fail "an error has taken the program for sent packets off"
	assert_status 0 timed load vrx --outgoing --confirm 30m
	time_is_over
	[ -z "$(program_id vrx)" ] || fail "a program is at XDP"
	has_tc vrx || fail "the end of the trial has taken the program for sent packets off"
	assert_status 0 xc load vrx --outgoing
	in_rx $PYTHON tests/helpers/outgoing.py detach vrx
	is_half() {
		xc status | grep -q '^effect: *filters ONE DIRECTION only, though both were loaded$'
	}
	assert_status 5 xc load vrx vbusy --outgoing
	is_half || fail "an error hides that a direction was lost"
	assert_status 0 timed load vrx --outgoing --confirm 30m
	time_is_over
	is_half || fail "the end of a trial that put back a lost direction hides that it was lost"
}

# Interfaces whose packets start with another header are refused.
test_other_headers() {
	ip -n "$RX" link add vmon type nlmon 2>/dev/null || ip -n "$RX" link add vmon type vcan 2>/dev/null || skip "no such interface here"
	assert_fails 2 "packets of 'vmon' start neither" xc load vmon
	assert_fails 2 "packets of 'vmon' start neither" xc load vmon --outgoing
}

# Not confirmed in time, the direction that is new goes, and the other stays.
test_confirm() {
	xc load vrx >/dev/null 2>&1
	assert_status 0 timed load vrx --outgoing --confirm 30m
	has_tc vrx || fail "no program is at tc"
	time_is_over
	! has_tc vrx || fail "a program is still at tc"
	[ -n "$(program_id vrx)" ] || fail "no program is at XDP"
	assert_shows '^effect: *filters$' xc status
	xc unload vrx >/dev/null
	assert_status 0 timed load vrx --outgoing --confirm 30m
	time_is_over
	leaves_nothing
}

test_configuration() {
	second_pair
	printf '[filter]\ninterfaces = vrx vrx2\noutgoing = yes\n' >"$STATE/conf"
	assert_status 0 xc up "$STATE/conf"
	assert_shows '^interfaces: +vrx native outgoing; vrx2 native outgoing$' xc status
	printf '[filter]\ninterfaces = vrx vrx2\n' >"$STATE/conf"
	assert_status 0 xc up "$STATE/conf"
	assert_shows '^interfaces: +vrx native; vrx2 native$' xc status
	printf '[filter]\ninterfaces = vrx2\noutgoing = yes\n' >"$STATE/conf"
	assert_status 0 xc up "$STATE/conf"
	assert_shows '^interfaces: +vrx2 native outgoing$' xc status
	assert_status 0 xc down
	printf '[filter]\ninterfaces = vrx\noutgoing = perhaps\n' >"$STATE/conf"
	assert_fails 2 'outgoing' xc check-config "$STATE/conf"
}

# Each interface has a filter of its own, as another loader makes them. `up` gives the program for sent packets to the filter
# that the interface has, and takes it from the filter that has it.
test_configuration_of_two_filters() {
	second_pair
	in_rx ip link set dev vrx2 xdp obj "$OBJECT" sec xdp
	assert_status 0 xc load vrx2 --outgoing
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	printf '[filter]\ninterfaces = vrx vrx2\n' >"$STATE/conf"
	assert_status 0 xc up "$STATE/conf"
	! has_tc vrx2 || fail "a program is still at tc"
	printf '[filter]\ninterfaces = vrx vrx2\noutgoing = yes\n' >"$STATE/conf"
	assert_status 0 xc up "$STATE/conf"
	assert_status 0 xc unload vrx
	! has_tc vrx || fail "a program is still at tc"
	has_tc vrx2 || fail "vrx2 lost the program for sent packets"
	xc --json status | $PYTHON -c '
import json, sys
rows = [row for filter in json.load(sys.stdin)["running"] for row in filter["interfaces"]]
sys.exit([(row["interface"], row["outgoing"]) for row in rows] != [("vrx2", True)])' || fail "$(xc status)"
	assert_status 0 xc down
	! has_tc vrx2 || fail "a program is still at tc"
}

# The same by `load`: after an error, and when nobody confirms, each interface is as before.
test_load_of_two_filters() {
	second_pair
	ip -n "$RX" link add vbusy type veth peer name vbusy2
	assert_status 0 xc --name other load vbusy
	for interface in vrx2 vrx; do
		in_rx ip link set dev "$interface" xdp obj "$OBJECT" sec xdp
		assert_status 0 xc load "$interface"
	done
	no_tc() {
		! has_tc vrx && ! has_tc vrx2
	}
	assert_status 5 xc load vrx vrx2 vbusy --outgoing
	no_tc || fail "an error has left a program"
	assert_status 0 xc load vrx vrx2 --outgoing
	assert_status 0 xc status
	assert_equal 2 "$(xc status --json | grep -c '"outgoing": true')" "interfaces of both directions"
	assert_status 0 xc unload vrx
	! has_tc vrx || fail "a program is still at tc"
	has_tc vrx2 || fail "vrx2 lost the program for sent packets"
	assert_status 0 xc unload vrx2
	no_tc || fail "a program is still at tc"
	for interface in vrx2 vrx; do
		in_rx ip link set dev "$interface" xdp obj "$OBJECT" sec xdp
		assert_status 0 xc load "$interface"
	done
	assert_status 0 timed load vrx vrx2 --outgoing --confirm 30m
	{ has_tc vrx && has_tc vrx2; } || fail "no program is at tc"
	time_is_over
	no_tc || fail "a program is still at tc"
	{ [ -n "$(program_id vrx)" ] && [ -n "$(program_id vrx2)" ]; } || fail "a program at XDP has gone"
}

# Programs of others at the same hook keep running, behind ours, and stay when ours goes.
test_programs_of_others() {
	silence
	in_rx tc qdisc add dev vrx clsact
	in_rx tc filter add dev vrx egress prio 7 bpf da obj "$HELPERS/others_at_tc.bpf.o" sec tc 2>"$STATE/tc" ||
		{ cat "$STATE/tc"; fail "no other program"; }
	xc load vrx --outgoing >/dev/null 2>&1
	xc add proto udp src 10.99.0.1 sport 5301 --force >/dev/null 2>&1
	receive "$TX" 5301
	receive "$TX" 5302
	receive "$TX" 5303
	for port in 5301 5302 5303; do
		outgoing udp 10.99.0.1 "$port" >/dev/null
	done
	wait_for 'the last one' grep -q came "$STATE/5303"
	! grep -q came "$STATE/5301" "$STATE/5302" || fail "others came, too"
	assert_equal 1 "$(direction sent dropped)" "dropped by ours"
	assert_status 0 xc unload vrx
	in_rx tc filter show dev vrx egress | grep -q others_at_tc || fail "the filter of others is gone"
	! has_tc vrx || fail "ours is still there"
}

# A filter that an older version has loaded is replaced in both directions.
test_versions() {
	silence
	xc load vrx --outgoing >/dev/null 2>&1
	xc add proto udp src 10.99.0.1 sport 53 --force >/dev/null 2>&1
	set_version() {
		bpftool -j prog show id "$(program_id vrx)" | $PYTHON -c '
import ctypes, json, mmap, struct, sys
found = 0
for number in json.load(sys.stdin)["map_ids"]:
    attr = (ctypes.c_char * 128).from_buffer(bytearray(struct.pack("I", number) + bytes(124)))
    try:
        memory = mmap.mmap(ctypes.CDLL(None).syscall(321, 14, attr, 128), mmap.PAGESIZE)
    except OSError:
        continue
    if memory[:4] == b"cuck":
        memory[4:8] = struct.pack("I", int(sys.argv[1]))
        found += 1
sys.exit(found != 1)' "$1" || fail "cannot change the version"
	}
	for version in 9 200; do
		set_version "$version"
		if [ "$version" = 9 ]; then
			assert_status 0 xc load vrx
			assert_shows '^interfaces: +vrx native outgoing$' xc status
			before=$(direction sent dropped)
			outgoing udp 10.99.0.1 53 >/dev/null
			assert_equal $((before + 1)) "$(direction sent dropped)" "dropped by the new one"
			outgoing detach vrx
			assert_status 1 xc status
			assert_output 'filters ONE DIRECTION only'
			set_version 9
			assert_status 0 xc load vrx
			assert_status 1 xc status
			assert_output 'filters ONE DIRECTION only'
			assert_status 0 xc load vrx --outgoing
		else
			! xc load vrx >/dev/null 2>&1 || fail "it took over from a newer one"
			# The clsact that another tool has left may be that tool's, so it stays.
			assert_status 0 xc unload vrx
			! has_tc vrx || fail "it is still there"
		fi
	done
}

# a_tunnel NAME KIND: makes it between $RX and $TX, with the addresses 10.77.0.2 and 10.77.0.1.
a_tunnel() {
	case $2 in
	wireguard)
		command -v wg >/dev/null || return 1
		ip -n "$RX" link add "$1" type wireguard 2>/dev/null && ip -n "$TX" link add "$1" type wireguard 2>/dev/null || return 1
		for side in "$RX" "$TX"; do
			wg genkey >"$STATE/$side"
			in_ns "$side" wg set "$1" private-key "$STATE/$side" listen-port 51820
		done
		in_rx wg set "$1" peer "$(wg pubkey <"$STATE/$TX")" endpoint 10.99.0.1:51820 allowed-ips 0.0.0.0/0
		in_tx wg set "$1" peer "$(wg pubkey <"$STATE/$RX")" endpoint 10.99.0.2:51820 allowed-ips 0.0.0.0/0
		;;
	*)
		ip -n "$RX" link add "$1" type "$2" local 10.99.0.2 remote 10.99.0.1 2>/dev/null &&
			ip -n "$TX" link add "$1" type "$2" local 10.99.0.1 remote 10.99.0.2 2>/dev/null || return 1
		;;
	esac
	ip -n "$RX" address add 10.77.0.2/24 dev "$1"
	ip -n "$TX" address add 10.77.0.1/24 dev "$1"
	ip -n "$RX" link set "$1" up
	ip -n "$TX" link set "$1" up
}

test_tunnels() {
	tried='' missing=''
	for kind in gre ipip sit wireguard; do
		case_begin "$kind"
		a_tunnel "v$kind" "$kind" || { missing="$missing $kind"; continue; }
		tried="$tried $kind"
		assert_status 0 xc load "v$kind" --outgoing
		assert_output "^ +v$kind +tc +yes$"
		xc add proto udp src 10.77.0.1 sport 5400 --force >/dev/null 2>&1
		xc add proto udp src 10.77.0.1 dport 5401 --force >/dev/null 2>&1
		rm -f "$STATE"/54*
		receive "$TX" 5400
		receive "$TX" 5402
		receive "$RX" 5401
		receive "$RX" 5403
		outgoing udp 10.77.0.1 5400 >/dev/null
		outgoing udp 10.77.0.1 5402 >/dev/null
		in_tx $PYTHON tests/helpers/outgoing.py udp 10.77.0.2 5401 >/dev/null
		in_tx $PYTHON tests/helpers/outgoing.py udp 10.77.0.2 5403 >/dev/null
		wait_for 'the last ones' sh -c "grep -q came '$STATE/5402' && grep -q came '$STATE/5403'"
		! grep -q came "$STATE/5400" "$STATE/5401" || fail "others came, too"
		# shellcheck disable=SC2086 # words
		kill $LISTENERS
		LISTENERS=''
		assert_equal 1 "$(direction sent dropped)" "sent packets dropped"
		assert_equal 1 "$(direction received dropped)" "received packets dropped"
		assert_status 0 xc unload "v$kind"
		! has_tc "v$kind" || fail "it is still there"
		xc flush >/dev/null 2>&1
		ip -n "$RX" link del "v$kind"
		ip -n "$TX" link del "v$kind"
	done
	[ -z "$missing" ] || note "not on this kernel:$missing"
	[ -n "$tried" ] || skip "this kernel has none of:$missing"
}

# Without a peer of its own, a GRE tunnel adds the outer header before tc: then the filter would not see inside.
test_refused_interfaces() {
	ip -n "$RX" link add vmany type gre local 10.99.0.2 2>/dev/null || skip "this kernel has no gre"
	assert_fails 2 "packets of 'vmany' start neither" xc load vmany
	assert_fails 2 "packets of 'vmany' start neither" xc load vmany --outgoing
}

udp_in_hex() {
	# IPv4 from 10.88.0.1 to 10.88.0.2, UDP from port 1234 to the port $1.
	printf '4500001c00000000401100000a5800010a58000204d2%04x00080000\n' "$1"
}

# large_udp_in_hex FIRST PORT: the same with 4 bytes of options and 8,176 of data; only FIRST bytes are in the first buffer.
large_udp_in_hex() {
	printf '%d 4600201000000000401100000a5800010a5800020101010104d2%04x1ff80000%016352d\n' "$1" "$2" 0
}

test_tun() {
	[ -c /dev/net/tun ] || skip "no /dev/net/tun"
	mkfifo "$STATE/in"
	nsenter --net="/run/netns/$RX" $PYTHON tests/helpers/outgoing.py tun vtun 10.88.0.2/24 fd88::2/64 <"$STATE/in" >"$STATE/tun" 2>"$STATE/tunerr" &
	on_exit "kill $! 2>/dev/null"
	exec 7>"$STATE/in"
	wait_for 'the interface' grep -q ready "$STATE/tun"
	in_rx sysctl -qw net.ipv6.conf.vtun.disable_ipv6=1
	assert_fails 3 'no driver runs the filter there' xc load vtun --mode native
	assert_status 0 xc load vtun --outgoing
	assert_output '^ +vtun +tc +yes$'
	assert_shows '^interfaces: +vtun tc outgoing$' xc status
	xc add proto udp src 10.88.0.1 dport 5400 --force >/dev/null 2>&1
	xc add proto udp src 10.88.0.1 sport 5401 --force >/dev/null 2>&1
	echo read >&7
	wait_for 'an answer' sh -c "[ \$(wc -l <'$STATE/tun') = 2 ]"
	outgoing udp 10.88.0.1 5401 >/dev/null
	outgoing udp 10.88.0.1 5402 >/dev/null
	echo read >&7
	wait_for 'an answer' sh -c "[ \$(wc -l <'$STATE/tun') = 3 ]"
	assert_equal 1 "$(tail -n 1 "$STATE/tun")" "packets sent"
	udp_in_hex 5400 >&7
	udp_in_hex 5403 >&7
	wait_for 'the packets' eval '[ "$(direction received dropped)" = 1 ] && [ "$(direction received passed)" -ge 1 ]'
	assert_equal 1 "$(direction sent dropped)" "sent packets dropped"
	passed=$(direction received passed)
	# No address, or no port, in the first buffer. Linux delivers such packets, and the monitor shows them.
	xc monitor --count 3 >"$STATE/lines" 2>&1 &
	monitor=$!
	wait_for 'lines' eval 'for first in 1 20 24; do large_udp_in_hex $first 5400 >&7; done; sleep 0.1; ! kill -0 $monitor 2>/dev/null'
	assert_equal 3 "$(grep -c ' vtun proto udp src 10.88.0.1 sport 1234 dst 10.88.0.2 dport 5400 .* dropped by rule' "$STATE/lines")" \
		"large packets that were shown"
	assert_equal "$passed" "$(direction received passed)" "received packets passed"
	# A sample of a packet without an Ethernet header reads as the others do.
	xc monitor --count 1 >"$STATE/lines" 2>&1 &
	monitor=$!
	wait_for 'a line' sh -c "nsenter --net=/run/netns/$RX $PYTHON tests/helpers/outgoing.py udp 10.88.0.1 5401 >/dev/null; sleep 0.1; grep -q sent '$STATE/lines'"
	wait "$monitor" || fail "monitor failed"
	grep -q ' vtun sent proto udp src 10.88.0.2 sport [0-9]* dst 10.88.0.1 dport 5401 length 43: dropped by rule' "$STATE/lines" ||
		{ cat "$STATE/lines"; fail "another line"; }
	assert_status 0 xc unload vtun
	! has_tc vtun || fail "it is still there"
	exec 7>&-
}

run_tests "$0" "$@"
