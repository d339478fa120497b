#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Headers before the ports are no way around a rule: what Linux delivers to a socket behind the filter, and what no longer
# gets there where there is a rule.
. tests/lib.sh

DEEPER='65 tags
350 tags
split headers'

# send: sends packets of all kinds. Those that reach the socket are named in $STATE/delivered, the others in
# $STATE/stopped.
send() {
	in_ns "$RX" python3 tests/headers.py "$TX" "$RX" >"$STATE/headers" || fail "cannot send"
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

test_load_says_so() {
	assert_status 0 xc load vrx
	assert_error '^note: drops packets with more than 64 VLAN tags or 182 IPv6 extension headers.* policy too-many-headers pass'
	assert_shows '^too-many-headers +drop$' xc policy
	assert_status 0 xc load vrx
	assert_equal '' "$(grep 'VLAN' "$STATE/err")" "told again of a filter that runs"
	xc unload vrx >/dev/null
	xc policy too-many-headers pass >/dev/null
	assert_status 0 xc load vrx
	assert_equal '' "$(grep 'VLAN' "$STATE/err")" "told though they pass"
}

run_tests "$0" "$@"
