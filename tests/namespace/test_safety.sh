#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Not locking oneself out: what is refused and what is warned of, and pass rules. See test_confirm.sh,
# test_panic.sh and test_policies.sh too.
# Takes a minute.
. tests/lib.sh
. tests/namespace/safety.sh
. tests/fault/fault.sh

# --- what would lock out

# RULE|what it would block; of each flow, tests/unit/core/host/test_protected_flows.c
blocking_rules() {
	cat <<-'END'
		dst 10.99.0.2|this SSH session, from 203.0.113.9
		fd99::2|packets from this host's address fd99::2
		10.99.0.128/25|the default gateway 10.99.0.254
		proto ipv6-icmp type 135 dst ff02::1:ff00:2|neighbour solicitations of the default gateway fd99::fe
		sport 53 src 10.98.0.53 dst 10.99.0.2|answers of the name server 10.98.0.53
		2001:db8::/32|answers of the name server 2001:db8::53
		proto tcp src 203.0.113.9 sport 50000 dst 10.99.0.2 dport 22|this SSH session, from 203.0.113.9
		::/0|the default gateway fd99::fe
	END
}

test_add_refuses_what_locks_out() {
	host
	xc load vrx >/dev/null
	blocking_rules | while IFS='|' read -r rule what; do
		case_begin "$rule"
		# shellcheck disable=SC2086 # words
		assert_status 2 xc_host add $rule
		assert_error "' would block $what.*; nothing was changed; first: xdp-cuckoo add .* action pass$"
		assert_equal 1 "$(grep -vc '^note: ' "$STATE/err")" "lines that are no notes"
		assert_prints '' xc list
		# shellcheck disable=SC2086 # words
		assert_status 0 xc_host add $rule --force
		assert_status 0 xc_host flush
	done
	assert_status 0 xc status --verbose
	assert_output 'used slots: +0$'
	assert_output 'equal to the store'
}

test_add_refuses_nothing_else() {
	host
	xc load vrx >/dev/null
	while read -r rule; do
		case_begin "$rule"
		# shellcheck disable=SC2086 # words
		assert_status 0 xc_host add $rule
	done <<-'END'
		10.99.0.1
		dst 10.99.0.3
		10.99.0.128/26
		10.98.0.53 proto udp sport 5353
		10.98.0.53 dst 10.99.0.3
		proto udp dport 53
		203.0.113.9 proto tcp dport 80
		proto tcp src 203.0.113.9 sport 50001 dst 10.99.0.2 dport 22
		proto tcp sport 22
		proto ipv6-icmp type 128
		dst ff02::1:ff00:3
		fe80::/10 dst 2001:db8::/32
		0.0.0.0/0 action pass
	END
}

# refuses RULE|WHAT, allows RULE: of the host's guard.
refuses() {
	case_begin "$1"
	# shellcheck disable=SC2086 # words
	assert_status 2 xc_host add ${1%|*}
	assert_error "' would block ${1#*|}; nothing was changed; first: xdp-cuckoo add .* action pass$"
	# shellcheck disable=SC2086 # words
	assert_status 0 xc_host add ${1%|*} --force
	assert_status 0 xc_host flush
}

allows() {
	case_begin "$1"
	# shellcheck disable=SC2086 # words
	assert_status 0 xc_host add $1
	assert_status 0 xc_host flush
}

# Of lists by URL and of CrowdSec the configuration has addresses; a fetch tells those of names, and the list that it brings
# does not block them.
test_servers_of_feeds_are_guarded() {
	host
	configure_fleet '[list near]' 'url = https://10.97.0.8/a http://u:p@10.97.0.9:8080/b' '[list named]' 'url = http://lists.example.org:8088/list' \
		'[crowdsec]' 'url = https://[2001:db9::8]/' 'key-file = /x' '[other]' 'url = http://10.97.0.10/'
	echo '10.99.0.1 lists.example.org' >>"$STATE/etc/hosts"
	for rule in '10.97.0.8|near' 'proto tcp sport 443|near' '10.97.0.9 proto tcp sport 8080|near' '2001:db9::/32 proto tcp|crowdsec'; do
		refuses "${rule%|*}|the server of the list '${rule#*|}', .*"
	done
	for rule in '10.97.0.8 proto tcp sport 80' 10.97.0.10 10.99.0.1; do
		allows "$rule"
	done
	mkdir "$STATE/www"
	printf '10.99.0.1\n203.0.113.7\n' >"$STATE/www/list"
	nsenter --net="/run/netns/$TX" $PYTHON -m http.server -d "$STATE/www" 8088 >/dev/null 2>&1 &
	on_exit "kill $!; wait $!"
	wait_for 'the server' in_tx $PYTHON -c 'import socket; socket.create_connection(("10.99.0.1", 8088))'
	printf '%s\n' '[filter]' 'interfaces = vrx' '[list named]' 'url = http://lists.example.org:8088/list' >"$STATE/conf"
	assert_status 0 xc_host refresh --config "$STATE/conf"
	assert_error "left out 1 rule: '.*10.99.0.1' would block the server of the list 'named', 10.99.0.1; to have it, first: xdp-cuckoo add proto tcp src 10.99.0.1 sport 8088 action pass"
	assert_shows 'src 203.0.113.7$' xc_host list --list named
	assert_fails 2 "would block the server of the list 'named', 10.99.0.1" xc_host add 10.99.0.1
	case_begin "packets that are sent"
	assert_status 0 xc load vrx --outgoing
	assert_fails 2 "would block the server of the list 'named', 10.99.0.1" xc_host add proto tcp src 10.99.0.1 flags syn/syn,ack
	assert_fails 2 "would block the server of the list 'named', 10.99.0.1" xc_host add proto tcp src 10.99.0.1 sport 8088 length 52
}

test_bgp_peers_are_guarded() {
	host
	allows 10.99.0.1
	peer=fd99::1 own=fd99::2
	connection "$RX" "$TX" "$peer" 179
	refuses "$peer|the BGP session with $peer"
	refuses "proto tcp sport 179|the BGP session with $peer"
	refuses "src $peer proto tcp dport 1024-65535|the BGP session with $peer"
	allows 'proto tcp dport 179'
	end_connections
	# The peer begins: it counts from when the speaker has taken it for a peer.
	connection "$TX" "$RX" "$own" 179 --sent 21
	allows "$peer proto tcp"
	end_connections
	connection "$TX" "$RX" "$own" 179 --sent 48
	refuses "$peer proto tcp|the BGP session with $peer"
	refuses "proto tcp dport 179 state new|the BGP session with $peer"
	end_connections
	connection "$TX" "$RX" "$own" 8080 --from 179 --sent 99
	allows "$peer proto tcp"
	end_connections
	connection "$RX" "$TX" fd99::1 179
	refuses 'proto ipv6-icmp type 135|neighbour solicitations of .*'
	ip -n "$RX" -6 route del default
	refuses 'proto ipv6-icmp type 136|neighbour advertisements of the BGP peer fd99::1'
}

# A kernel that lists no connections: whoever loads the filter, or looks, is told that they are not protected.
test_a_kernel_without_sock_diag() {
	blind() {
		in_rx env LD_PRELOAD="$PWD/$HELPERS/no_diagnosis.so" "$TOOL" --state "$STATE/store" "$@"
	}
	host
	assert_notes '^note: the kernel does not list TCP connections \(Protocol not supported\), so changes may block BGP sessions' \
		blind load vrx
	assert_notes 'the kernel does not list TCP connections' blind status --verbose
	for command in 'blind status' 'blind add 192.0.2.1' 'xc status --verbose' 'xc load vrx'; do
		case_begin "$command"
		$command >"$STATE/out" 2>"$STATE/err" || fail "status $?"
		! grep 'does not list TCP' "$STATE/err" || fail "it is told"
	done
	assert_fails 2 "this host's address 10.99.0.2" blind add src 10.99.0.2
}

# A pass rule for the protected flow allows the drop rule, and then cannot be deleted before it.
test_pass_rules_make_room_for_drop_rules() {
	host
	xc load vrx >/dev/null
	assert_status 2 xc_host add 203.0.113.0/24
	assert_status 0 xc_host add "$PEER" action pass
	assert_status 0 xc_host add 203.0.113.0/24
	assert_fails 2 "'src 203.0.113.0/24' would block this SSH session" xc_host del "$PEER" action pass
	assert_equal 2 "$(xc list | wc -l)" "rules"
	assert_status 0 xc_host add "$PEER" proto tcp action pass
	assert_status 0 xc_host del "$PEER" action pass
	assert_status 0 xc_host del "$PEER" proto tcp action pass --force
	echo "drop peer proto tcp src $PEER dst 10.99.0.2 sport 50000 dport 22" | traffic || fail "wrong verdict"
	# A protected flow that is blocked already does not prevent other changes.
	assert_status 0 xc_host add 198.51.100.1
	assert_status 0 xc_host flush
}

# follow_advice WORD...: repeats this command, each time after the commands that its refusal advises.
follow_advice() {
	for _ in 1 2; do
		run xc_host "$@"
		[ "$STATUS" -ne 0 ] || return 0
		sed -n 's/.*; first: //p' "$STATE/err" | sed 's/ && /\n/g' >"$STATE/advice"
		[ -s "$STATE/advice" ] || fail "no advice: $(cat "$STATE/err")"
		while read -r _ advice; do
			# shellcheck disable=SC2086 # words
			assert_status 0 xc_host $advice
		done <"$STATE/advice"
	done
	fail "still refused: $(cat "$STATE/err")"
}

# The advised commands make the rule acceptable, all at once.
test_the_advice_makes_way() {
	host
	for rule in 203.0.113.0/24 fd99::/16; do
		case_begin "$rule"
		follow_advice --name web add "$rule"
	done
	assert_prints '' xc list
	case_begin "a name server"
	assert_status 2 xc_host add 10.98.0.0/16
	assert_error ' add src 10.98.0.53 sport 53 action pass$'
	assert_status 0 xc_host add src 10.98.0.53 sport 53 action pass
	assert_status 0 xc_host add 10.98.0.0/16
}

# A drop rule that ends later than the pass rule blocks then, when nobody is there any more.
test_a_pass_rule_that_ends_first_does_not_protect() {
	host
	xc load vrx >/dev/null
	assert_status 0 xc_host add "$PEER" action pass timeout 1h
	assert_fails 2 "'src 203.0.113.0/24' would block this SSH session, from $PEER when the pass rule for it ends, in " \
		xc_host add 203.0.113.0/24
	assert_fails 2 'when the pass rule for it ends' xc_host add 203.0.113.0/24 timeout 2h
	assert_status 0 xc_host add 203.0.113.0/24 timeout 30m
	assert_status 0 xc_host add "$PEER" action pass
	assert_status 0 xc_host add 203.0.113.0/24
	assert_status 0 xc_host del "$PEER" action pass --force
	assert_status 0 xc_host add "$PEER" action pass timeout 1h
	case_begin "blocked in an hour"
	assert_fails 2 "would block this SSH session, from $PEER when the pass rule for it ends, in [1-9]m" \
		xc_host add "$PEER" action pass timeout 5m
	assert_fails 2 "would block this SSH session, from $PEER; nothing was changed" xc_host del "$PEER" action pass
	assert_status 0 xc_host add 203.0.0.0/16
	assert_status 0 xc_host monitor-only off
	assert_error "blocks this SSH session, from $PEER when the pass rule for it ends, in "
}

# sudo drops SSH_CONNECTION, so the tool reads it from a parent process.
test_the_session_is_found_above_sudo() {
	host
	# shellcheck disable=SC2016 # of the inner shell
	assert_status 2 in_rx env "SSH_CONNECTION=$SSH_SESSION" sh -c \
		'env -u SSH_CONNECTION sh -c "\"$1\" --state \"$2\" add 203.0.113.9; exit \$?"; exit $?' sh "$TOOL" "$STATE/store"
	assert_error 'would block this SSH session, from 203.0.113.9'
}

# finds NAMESPACE IFACE ADDRESS: whether the neighbour answers after the neighbour table was flushed.
finds() {
	ip -n "$1" -6 neigh flush dev "$2"
	ip -n "$1" -6 neigh replace "$3" dev "$2" use
	AWAIT_S=10 await "ip -n $1 -6 neigh show to $3 | grep -Eq 'REACHABLE|FAILED'"
	ip -n "$1" -6 neigh show to "$3" | grep -q REACHABLE
}

both_find() {
	finds "$TX" vtx fd99::2 && finds "$RX" vrx fd99::1
}

# A router's routes are not read to their end: the kernel lists the default route of IPv6 last.
test_a_gateway_of_a_router() {
	host
	awk 'BEGIN { for (i = 0; i < 6000; i++)
		printf "route add 20.%d.%d.0/24 via 10.99.0.253\n-6 route add 2001:%x::/32 via fd99::fd\n", i / 256, i % 256, i + 4096 }' |
		sed 's/^-6 //' >"$STATE/routes"
	ip -n "$RX" -batch "$STATE/routes" || fail "no routes"
	assert_notes '^note: this host has too many routes or gateways, so changes may block gateways of default routes' xc load vrx
	assert_notes 'has too many routes or gateways' xc status --verbose
	for gateway in 10.99.0.254 fd99::fe; do
		assert_status 2 xc_host add "$gateway"
		assert_error "would block the default gateway $gateway;"
	done
	assert_status 0 xc_host add 10.99.0.253
}

# Anybody on the link can announce gateways. They take no memory without end, and do not take the place of the one in use.
test_many_gateways() {
	host
	for i in $(seq 64); do
		echo "address add 2001:db8:1::$i/64 dev vrx nodad"
	done >"$STATE/batch"
	for i in $(seq 1000); do
		printf 'route add default via fe80::%x dev vrx metric %d\n' "$i" $((2000 + i))
	done >>"$STATE/batch"
	ip -n "$RX" -6 -batch "$STATE/batch" || fail "no routes"
	assert_notes '^note: this host has too many routes or gateways' xc load vrx
	assert_status 0 in_rx sh -c 'ulimit -d 60000; exec "$@"' sh "$TOOL" --state "$STATE/store" add 203.0.113.9
	for gateway in 10.99.0.254 fd99::fe; do
		assert_status 2 xc_host add "$gateway"
		assert_error "would block the default gateway $gateway;"
	done
}

# Rules without addresses can block neighbour discovery, and so an SSH peer on the link or a gateway. The advised pass
# rules prevent that.
test_neighbour_discovery_is_guarded() {
	xc load vrx >/dev/null
	# The link-local addresses, too, ask only when nobody else has them.
	await "! { ip -n $TX -6 address show tentative; ip -n $RX -6 address show tentative; } | grep -q inet6"
	printf '' >"$STATE/resolv.conf"
	SSH_SESSION='fd99::1 50000 fd99::2 22'
	for who in 'the SSH peer' 'the default gateway'; do
		case_begin "$who"
		both_find || fail "they do not find each other without any rule"
		for kind in '136|advertisements' '135|solicitations'; do
			# shellcheck disable=SC2086 # words
			assert_status 2 xc_host add proto ipv6-icmp type ${kind%|*}
			assert_error "would block neighbour ${kind#*|} of $who fd99::1"
		done
		assert_status 2 xc_host add dst ff02::/16
		assert_status 0 xc_host add proto ipv6-icmp --force
		! both_find || fail "they find each other without neighbour discovery"
		assert_status 0 xc_host del proto ipv6-icmp
		follow_advice add proto ipv6-icmp
		both_find || fail "they do not find each other with: $(xc list)"
		assert_status 0 xc_host flush --force
		SSH_SESSION=
		ip -n "$RX" -6 route replace default via fd99::1
	done
}

test_import_refuses_what_locks_out() {
	host
	xc load vrx >/dev/null
	printf '198.51.100.0/24\n203.0.113.0/24\n' >"$STATE/list"
	assert_fails 2 "'src 203.0.113.0/24' would block this SSH session" xc_host import "$STATE/list"
	assert_prints '' xc list
	assert_verdict pass 198.51.100.7
	echo "$PEER action pass" >>"$STATE/list"
	assert_status 0 xc_host import "$STATE/list"
	assert_equal 3 "$(xc list | wc -l)" "rules"
	xc_host flush >/dev/null
	sed -i '$d' "$STATE/list"
	assert_status 0 xc_host import "$STATE/list" --force
}

test_load_warns_of_what_it_blocks() {
	host
	xc_host add 203.0.113.0/24 --force >/dev/null 2>&1
	xc_host add proto udp sport 53 --force >/dev/null 2>&1
	assert_status 0 xc_host load vrx
	assert_error "note: src 203.0.113.0/24 blocks this SSH session, from $PEER; 2 more that this host needs are blocked; to keep them: xdp-cuckoo add proto tcp src $PEER dst 10.99.0.2 dport 22 action pass && xdp-cuckoo add src 10.98.0.53 sport 53 action pass && xdp-cuckoo add src 2001:db8::53 sport 53 action pass$"
	xc_host unload vrx >/dev/null
	xc_host flush >/dev/null
	assert_status 0 xc_host load vrx
	assert_equal '' "$(grep blocks "$STATE/err")" "warnings"
}

# A command that puts stored rules in force warns once of what they block.
test_up_and_monitor_only_off_warn_of_what_they_block() {
	host
	xc_host add 203.0.113.0/24 --force >/dev/null 2>&1
	blocks="note: src 203.0.113.0/24 blocks this SSH session, from $PEER; to keep it: xdp-cuckoo add"
	for interfaces in 'vrx' 'vrx vnone\nwait = 1s'; do
		# shellcheck disable=SC2059 # a format
		printf "[filter]\ninterfaces = $interfaces\n" >"$STATE/conf"
		run xc_host up "$STATE/conf"
		assert_equal 1 "$(grep -c "$blocks" "$STATE/err")" "warnings of up"
	done
	assert_status 0 xc_host monitor-only on
	assert_equal '' "$(cat "$STATE/err")" "notes of monitor-only on"
	assert_notes "$blocks" xc_host monitor-only off
	xc_host add proto ipv6-icmp --force >/dev/null
	assert_status 0 xc_host monitor-only off
	assert_notes 'blocks this SSH session, .*; 6 more that this host needs are blocked; to keep them: ' xc_host monitor-only off
	assert_equal 1 "$(grep -c blocks "$STATE/err")" "lines: the others are three of its neighbour discovery, three of the links"
	xc_host del proto ipv6-icmp >/dev/null
	xc_host add "$PEER" action pass >/dev/null
	assert_status 0 xc_host monitor-only off
	assert_equal '' "$(cat "$STATE/err")" "notes with a pass rule"
}

test_leases_are_warned_of() {
	for rule in 'udp dport 68' 'udp sport 547 dport 546 --force' 'sport 67'; do
		# shellcheck disable=SC2086 # words
		assert_notes "note: '.*' drops what is seldom meant: answers of DHCP servers" xc add $rule
	done
	assert_status 0 xc add udp src 192.0.2.9 dport 68
	assert_status 0 xc add udp sport 68 dport 69
	assert_status 0 xc add tcp dport 68
	! grep seldom "$STATE/err" || fail "no answer of a DHCP server is dropped"
	echo 'proto udp dport 68' >"$STATE/list"
	assert_notes 'rarely meant to be dropped: answers of DHCP servers' xc import "$STATE/list" --list ports
}

# --- pass rules

test_pass_rules_cost_nothing_where_there_are_none() {
	xc load vrx >/dev/null
	xc add 198.51.100.0/24 >/dev/null
	assert_equal '1 0' "$(probes ipv4) $(probes ipv6)" "probes"
	xc add 198.51.100.7 action pass >/dev/null
	assert_equal '2 0' "$(probes ipv4) $(probes ipv6)" "probes with a pass rule"
	assert_shows 'shapes: +ipv4 src/32 action pass; ipv4 src/24' xc status --verbose
	xc del 198.51.100.7 action pass >/dev/null
	assert_equal '1 0' "$(probes ipv4) $(probes ipv6)" "probes without it again"
	assert_status 0 xc status --verbose
	assert_equal '' "$(grep 'shapes:.*pass' "$STATE/out")" "published shapes that pass"
}

# --- what is typed wrong

test_wrong_usage() {
	xc load vrx >/dev/null
	while IFS='|' read -r expected says words; do
		case_begin "$words"
		eval "assert_status $expected xc $words"
		assert_error "$says"
		assert_equal 1 "$(wc -l <"$STATE/err")" "lines of: $(cat "$STATE/err")"
	done <<-'END'
		2|'maybe': must be on or off|monitor-only maybe
		2|too few words|monitor-only
		2|'now': must be on or off|panic now
		2|too many words|panic off off
		2|does not take the option|panic --force
		2|'nosuch': no such outcome|policy nosuch drop
		2|'drop-rule': no such outcome|policy drop-rule drop
		2|'block': must be pass or drop|policy malformed block
		2|write pass or drop after it|policy malformed
		2|too many words|policy malformed drop now
		2|too many words|confirm now
		2|from a second|load vrx --confirm 0
		2|must be at most 1d|load vrx --confirm 2d
		2|'soon': must be a time|load vrx --confirm soon
		2|does not take the option|test 192.0.2.1 --force
		1|nothing waits to be confirmed|confirm
		1|no filter 'other' is running here|--name other panic
	END
}

# A store belongs to the network namespace of its filter, until the filter is gone. `$TX` is another namespace.
test_another_network_namespace() {
	xc load vrx >/dev/null
	assert_status 3 in_tx "$TOOL" --state "$STATE/store" load vtx
	assert_status 3 in_tx "$TOOL" --state "$STATE/store" add 192.0.2.9
	assert_notes 'only CAP_SYS_ADMIN sees it' in_tx setpriv --bounding-set=-sys_admin --inh-caps=-all \
		"$TOOL" --state "$STATE/store" add 192.0.2.8
	xc add 192.0.2.1 >/dev/null || fail "the namespace of the filter is refused"
	xc unload vrx >/dev/null
	in_tx "$TOOL" --state "$STATE/store" load vtx >/dev/null || fail "refused, though no filter runs"
	assert_status 3 xc add 192.0.2.2
	# A copy is another store, wherever the filter of the first one runs; but the filter goes on with a copy in its place.
	cp -r "$STATE/store" "$STATE/copy"
	in_rx "$TOOL" --state "$STATE/copy" add 192.0.2.3 >/dev/null 2>&1 || fail "a copy is refused"
	"$TOOL" --state "$STATE/copy" add 192.0.2.4 >/dev/null 2>&1 || fail "a copy is refused in a third namespace"
	cp -r "$STATE/store" "$STATE/moved"
	in_tx "$TOOL" --state "$STATE/moved" add 192.0.2.4 >/dev/null || fail "the filter goes not on with a copy"
	# The interface leaves its namespace, and the filter goes on without the store.
	ip -n "$TX" link set vtx netns "$RX"
	assert_notes 'it runs in another network namespace .*or a pin holds it' in_tx "$TOOL" --state "$STATE/moved" add 192.0.2.5
	in_rx "$TOOL" unload vtx >/dev/null
	assert_status 0 in_tx "$TOOL" --state "$STATE/moved" add 192.0.2.6
	! grep -q 'seems to run' "$STATE/err" || fail "no filter runs any more"
}

run_tests "$0" "$@"
