#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What messages advise: all of it is in base/advice.h; whoever follows it is reached, now and at the next login, and stays protected.
. tests/lib.sh
. tests/namespace/safety.sh

# follow COMMAND...: pastes what the refusal says to do first, all at once, and then repeats the command.
follow() {
	assert_status 2 xc_host "$@"
	sed -n 's/.*; first: //p' "$STATE/err" | sed 's/ && /\n/g' >"$STATE/advice"
	[ -s "$STATE/advice" ] || fail "no advice: $(cat "$STATE/err")"
	! grep -Eq 'add (dst|proto [^ ]* action|src (0\.0\.0\.0|::)/)' "$STATE/advice" || fail "wide: $(cat "$STATE/advice")"
	while read -r _ advice; do
		# shellcheck disable=SC2086 # words
		assert_status 0 xc_host $advice
	done <"$STATE/advice"
	assert_status 0 xc_host "$@"
}

# judge VERDICT FLOW...
judge() {
	printf '%s\n' "$@" | traffic >"$STATE/judged" 2>&1 || fail "wrong verdicts: $(cat "$STATE/judged")"
}

test_no_other_advice() {
	grep -rnE '" *[^"]*(action pass"|xdp off|lists delete %s)' user --include='*.c' --include='*.h' |
		grep -Ev 'base/advice.h|commands/help|/(tests|options|command_table|upkeep|list|library)' >"$STATE/other"
	grep -v 'to delete it, too\|xdp-cuckoo add ADDRESS action pass\|"xdp-cuckoo%s lists delete %s",$\|"allow|accept|permit", ' "$STATE/other" >"$STATE/left"
	assert_equal '' "$(cat "$STATE/left")" "advice that is not in base/advice.h"
}

test_a_host_that_lets_nobody_begin() {
	host
	silence
	xc load vrx >/dev/null
	assert_status 0 xc add 192.0.2.66
	follow add state new
	! grep -q 'sport 50000' "$STATE/advice" || fail "only for this connection: $(cat "$STATE/advice")"
	judge "pass login proto tcp src $PEER dst 10.99.0.2 sport 50000 dport 22" \
		"pass next proto tcp src $PEER dst 10.99.0.2 sport 41234 dport 22" \
		'drop listed proto udp src 192.0.2.66 dst 10.99.0.2 sport 1 dport 22'
	SSH_SESSION=
	assert_status 0 xc flush
	assert_fails 2 'nothing was changed; first: xdp-cuckoo add proto tcp src YOUR-ADDRESS dst .* dport 22 action pass$' xc_host add state new
}

# All IPv6 neighbours are in the list.
test_a_list_of_half_of_ipv6() {
	await "! { ip -n $TX -6 address show tentative; ip -n $RX -6 address show tentative; } | grep -q inet6"
	printf '' >"$STATE/resolv.conf"
	SSH_SESSION='fd99::1 50000 fd99::2 22'
	xc load vrx >/dev/null
	printf '8000::/1\n192.0.2.66\n' >"$STATE/list"
	follow import --list wide "$STATE/list"
	! grep -q 'add src fe80::/' "$STATE/advice" || fail "all of the link: $(cat "$STATE/advice")"
	grep -q 'add proto ipv6-icmp src fe80::/10 type 135 action pass' "$STATE/advice" || fail "$(cat "$STATE/advice")"
	grep -q 'add src fd99::2 dst ff00::/8 action pass' "$STATE/advice" || fail "$(cat "$STATE/advice")"
	ip -n "$TX" -6 neigh flush dev vtx
	ip -n "$RX" -6 neigh flush dev vrx
	judge 'pass login proto tcp src fd99::1 dst fd99::2 sport 41234 dport 22' \
		'drop listed proto tcp src fd01::1 dst fd99::2 sport 41234 dport 22' \
		'drop forged proto udp src fd99::2 dst fd99::2 sport 9 dport 53' \
		'pass dhcp proto udp src fe80::1 dst fe80::2 sport 547 dport 546'
}

test_a_rule_that_voids_lists_is_told() {
	host
	xc load vrx >/dev/null
	for rule in 'dst 10.99.0.2' 'dst 10.99.0.0/24' '0.0.0.0/0' 'proto tcp'; do
		case_begin "$rule"
		# shellcheck disable=SC2086 # words
		assert_status 0 xc_host add $rule action pass
		assert_error "passes everybody's packets to this host: drop rules and lists have no effect on them"
		assert_status 1 xc status
		assert_output "^voided: .*passes everybody's packets"
		# shellcheck disable=SC2086 # words
		assert_status 0 xc_host del $rule action pass
		assert_status 0 xc status
	done
	for rule in '203.0.113.0/24' 'proto tcp dport 80' 'dst 10.99.0.77'; do
		# shellcheck disable=SC2086 # words
		assert_status 0 xc_host add $rule action pass
		assert_status 0 xc status
	done
}

# Nobody is advised to pass a host of which a rule blocks other packets.
test_no_advice_ends_a_rule() {
	host
	assert_status 0 xc_host add 10.99.0.254 udp dport 1900
	assert_fails 2 "nothing was changed; a pass rule for 'src 10.99.0.254' would end 'proto udp src 10.99.0.254 dport 1900'$" \
		xc_host add 10.99.0.0/24
	assert_status 0 xc_host del 10.99.0.254 udp dport 1900
	assert_status 0 xc_host add udp dport 1900
	follow add 10.99.0.0/24
}

test_a_useless_rule_is_told() {
	xc add 203.0.113.0/24 action pass >/dev/null 2>&1
	assert_notes "'src 203.0.113.0/24 action pass' passes these packets" xc add 203.0.113.9
	assert_shows '"passed_by": "src 203.0.113.0/24 action pass"' xc --json add 203.0.113.8
	assert_notes 'passes these packets: one of the rules drops none' xc add 203.0.113.9 198.51.100.9 udp
	xc add 192.0.2.9 tcp dport 22 action pass >/dev/null 2>&1
	assert_notes "'proto tcp src 192.0.2.9 dport 22 action pass' passes some of these packets" xc add 192.0.2.0/24
	assert_shows '"passed_part_by": "proto tcp src 192.0.2.9' xc --json add 192.0.2.9
	echo 'add 203.0.113.7' >"$STATE/lines"
	assert_shows '^added, but passed by src 203.0.113.0/24 action pass$' xc batch "$STATE/lines"
}

run_tests "$0" "$@"
