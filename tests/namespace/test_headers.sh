#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Headers before the ports are no way around a rule: what Linux delivers to a socket behind the filter, and what no longer
# gets there where there is a rule.
. tests/lib.sh
. tests/namespace/safety.sh

DEEPER='65 tags
350 tags
split headers'

# send: sends packets of all kinds. Those that reach the socket are named in $STATE/delivered, the others in
# $STATE/stopped.
send() {
	in_ns "$RX" $PYTHON tests/helpers/headers.py "$TX" "$RX" >"$STATE/headers" || fail "cannot send"
	sed -n 's/: delivered$//p' "$STATE/headers" >"$STATE/delivered"
	sed -n 's/: stopped$//p' "$STATE/headers" >"$STATE/stopped"
}

# Linux 7.2 itself stops packets with more than 12 options, 6.18 delivers all. Without a rule the filter stops no more with
# the policy pass; with drop, also those with more headers than it reads.
test_what_linux_delivers() {
	send
	mv "$STATE/stopped" "$STATE/kernel"
	assert_equal '' "$(grep -Ev '^1[0-9]{2} options$' "$STATE/kernel")" "stopped without a filter"
	xc load vrx >/dev/null 2>&1
	xc policy too-many-headers pass >/dev/null
	send
	assert_equal "$(cat "$STATE/kernel")" "$(cat "$STATE/stopped")" "stopped with the policy pass"
	xc policy too-many-headers drop >/dev/null
	send
	assert_equal "$(echo "$DEEPER" | sort - "$STATE/kernel")" "$(sort "$STATE/stopped")" "stopped with the policy drop"
}

test_no_way_around_a_rule() {
	xc load vrx >/dev/null 2>&1
	xc add proto udp dport 5300 >/dev/null
	send
	assert_equal '' "$(cat "$STATE/delivered")" "delivered against the rule"
	xc policy too-many-headers pass >/dev/null
	send
	assert_equal "$DEEPER" "$(cat "$STATE/delivered")" "delivered with the policy pass"
}

# status and the help of policy say it. The first words of load are for people who know nothing of it yet.
test_where_it_is_said() {
	assert_status 0 xc load vrx
	! grep -Eq 'VLAN|false positive' "$STATE/out" "$STATE/err" || { show_run; fail "not for a newcomer"; }
	assert_shows '^too-many-headers +drop$' xc policy
	assert_shows '^policies that drop: +too-many-headers$' xc status
	assert_shows '^  too-many-headers +more than 64 VLAN tags or 182 IPv6 extension headers' xc help policy
}

# send_frames COUNT BEFORE [AFTER]: UDP packets from 192.0.2.7 to vrx, behind an Ethernet header of the type BEFORE, with
# more headers in hexadecimal after it.
send_frames() {
	in_tx $PYTHON -c '
import socket, sys
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("vtx", 0))
packet = "4500001c000000004011" "0000" "c0000207" "0a630002" "04d200350008" "0000"
for _ in range(int(sys.argv[1])):
    out.send(bytes.fromhex("ff" * 6 + "02" * 6 + sys.argv[2] + packet + "00" * 30))' "$@" || fail "cannot send"
}

# On an uplink that carries PPPoE, rules match what is in the session.
test_pppoe_sessions() {
	xc load vrx >/dev/null 2>&1
	xc add 192.0.2.7 >/dev/null
	send_frames 100 '8864 1100 0001 001e 0021'
	assert_equal 100 "$(counted drop-rule dropped)" "packets dropped in PPPoE"
	send_frames 100 '88a8 0064 8100 0065 8864 1100 0001 001e 0021'
	assert_equal 200 "$(counted drop-rule dropped)" "packets dropped in PPPoE in two VLANs"
	send_frames 600 '8864 1100 0001 001e c021'
	assert_equal 200 "$(counted drop-rule dropped)" "LCP packets dropped"
}

# What rules cannot match is not called filtered.
test_most_packets_are_no_ip_packets() {
	silence
	xc load vrx >/dev/null 2>&1
	xc add 192.0.2.7 >/dev/null
	send_frames 700 0800
	assert_status 0 xc status
	assert_output '^effect: +filters$'
	send_frames 1000 '8847 00064140'
	assert_status 1 xc status
	assert_output '^effect: +filters, but most packets are no IP packets: rules do not match them$'
	assert_error '^note: vrx: 59 % of the packets are no IP packets, so rules do not match them$'
	xc flush >/dev/null
	assert_status 0 xc status
}

run_tests "$0" "$@"
