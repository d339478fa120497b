#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Rules with `state new`: what a listed address begins is dropped, and what it answers comes in.
. tests/lib.sh

talk() {
	in_talk_ns=$1
	shift
	in_ns "$in_talk_ns" $PYTHON tests/helpers/talk.py "$@"
}

# ready COMMAND...: in the background, until it says that it is ready; its output goes to $STATE/heard.
ready() {
	: >"$STATE/heard"
	"$@" >"$STATE/heard" &
	ready_job=$!
	on_exit "kill $ready_job 2>/dev/null || :"
	wait_for "the other side" grep -q ready "$STATE/heard"
}

# serve KIND: the listed host serves TCP, or answers one datagram by so many bytes.
serve() {
	ready talk "$TX" serve "$1"
}

fetch_tcp() {
	talk "$RX" fetch "$1"
}

ask_udp() {
	talk "$RX" ask "$@"
}

# assert_reached_by EXPECTED KIND ADDRESS PORT LISTED OTHER: who reaches this host first, if LISTED tries before OTHER.
assert_reached_by() {
	reached_expected=$1
	shift
	ready talk "$RX" hear "$1" "$3"
	talk "$TX" reach "$@"
	wait "$ready_job"
	assert_equal "$reached_expected" "$(sed 1d "$STATE/heard")" "$*"
}

listed() {
	assert_status 0 xc load vrx
	assert_status 0 xc add 10.99.0.1 state new
	assert_status 0 xc add fd99::1 state new
}

test_answers_come_in() {
	listed
	serve tcp
	assert_equal 100000 "$(fetch_tcp 10.99.0.1)"
	serve tcp
	assert_equal 100000 "$(fetch_tcp fd99::1)"
	serve 512
	assert_equal 512 "$(ask_udp 10.99.0.1 0 open)"
	serve 512
	assert_equal 512 "$(ask_udp fd99::1 0 open)"
	# In fragments.
	serve 4000
	assert_equal 4000 "$(ask_udp 10.99.0.1 0 open)"
	serve 4000
	assert_equal 4000 "$(ask_udp fd99::1 0 open)"
	# As ntpd does, from a port of servers.
	serve 48
	assert_equal 48 "$(ask_udp 10.99.0.1 123 connected)"
	assert_shows '^drop-rule +0 +0 +0 +0$' xc stats
}

test_attempts_are_dropped() {
	listed
	ip -n "$TX" address add 10.99.0.3/24 dev vtx
	ip -n "$TX" address add fd99::3/64 dev vtx nodad
	for kind in tcp udp; do
		assert_reached_by 10.99.0.3 "$kind" 10.99.0.2 5353 10.99.0.1 10.99.0.3
		assert_reached_by fd99::3 "$kind" fd99::2 5353 fd99::1 fd99::3
	done
	assert_status 0 xc flush
	for kind in tcp udp; do
		assert_reached_by 10.99.0.1 "$kind" 10.99.0.2 5353 10.99.0.1 10.99.0.3
	done
}

# On a kernel without bpf_xdp_ct_lookup(), load says so, and only where it matters.
test_load_says_that_no_connections_are_known() {
	without="env LD_PRELOAD=$PWD/$HELPERS/lacking_kernel.so LACKS=conntrack"
	# shellcheck disable=SC2086 # words
	assert_status 0 in_rx $without "$TOOL" --state "$STATE/store" load vrx
	! grep -q 'connection tracking' "$STATE/err" || fail "said without such rules"
	assert_status 0 xc unload vrx
	assert_status 0 xc add 10.99.0.1 state new
	# shellcheck disable=SC2086
	assert_notes 'connection tracking is not asked here' in_rx $without "$TOOL" --state "$STATE/store" load vrx
}

# An unconnected socket at a port of servers waits for nobody.
test_a_server_is_no_client() {
	listed
	serve 48
	assert_equal nothing "$(ask_udp 10.99.0.1 123 open)"
}

# A host behind this one, whose datagrams leave with this host's address: only connection tracking knows them.
test_a_router_with_nat() {
	listed
	xc status --json | grep -q '"asks_connection_tracking": true' || skip "this kernel has no bpf_xdp_ct_lookup()"
	namespace "xc$$in"
	veth "xc$$in" vin "$RX" vout
	ip -n "xc$$in" address add 192.168.7.2/24 dev vin
	ip -n "xc$$in" route add default via 192.168.7.1
	ip -n "$RX" address add 192.168.7.1/24 dev vout
	in_rx sysctl -qw net.ipv4.ip_forward=1
	in_rx nft -f - <<-'END' || skip "nft cannot masquerade here"
		table ip nat { chain out { type nat hook postrouting priority 100; oifname "vrx" masquerade; }; }
	END
	serve 100
	assert_equal 100 "$(talk "xc$$in" ask 10.99.0.1 5000 open)"
}

# One rule for everybody, and pass rules for those who may begin something.
test_only_those_on_a_list_may_begin() {
	ip -n "$TX" address add 10.99.0.3/24 dev vtx
	assert_status 0 xc load vrx
	assert_status 2 xc add state new
	assert_error 'would block'
	printf '10.99.0.3\n' >"$STATE/home"
	assert_status 0 xc import "$STATE/home" --list home --replace --action pass
	assert_status 0 xc add state new --force
	serve tcp
	assert_equal 100000 "$(fetch_tcp 10.99.0.1)"
	serve 512
	assert_equal 512 "$(ask_udp fd99::1 0 open)"
	for kind in tcp udp; do
		assert_reached_by 10.99.0.3 "$kind" 10.99.0.2 5353 10.99.0.1 10.99.0.3
	done
}

# A lease is got and extended through the filter: the client has no socket at first, and later one that is not connected.
test_leases_are_kept() {
	command -v dnsmasq >/dev/null && command -v udhcpc >/dev/null || skip "no dnsmasq or no udhcpc here"
	ip -n "$RX" address del 10.99.0.2/24 dev vrx
	assert_status 0 xc load vrx
	assert_status 0 xc add state new --force
	! grep DHCP "$STATE/err" || fail "a note about what is not dropped"
	nsenter --net="/run/netns/$TX" dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --interface=vtx --bind-interfaces --no-ping \
		--user=root --pid-file= --dhcp-range=10.99.0.50,10.99.0.60,120 --dhcp-leasefile="$STATE/leases" &
	on_exit "kill $! 2>/dev/null || :"
	cat >"$STATE/script" <<-'END'
		#!/bin/sh
		echo "$1" >>"$0.log"
		[ -z "$ip" ] || ip address replace "$ip/24" dev "$interface" valid_lft 120 preferred_lft 120
	END
	chmod +x "$STATE/script"
	nsenter --net="/run/netns/$RX" udhcpc -f -i vrx -s "$STATE/script" -A 1 &
	lease_client=$! # nsenter becomes the client
	on_exit "kill $lease_client 2>/dev/null || :"
	wait_for "a lease" grep -q '^bound' "$STATE/script.log"
	kill -USR1 "$lease_client"
	wait_for "a longer lease" grep -q '^renew' "$STATE/script.log"
	assert_shows '^drop-rule +0 +0 +0 +0$' xc stats
}

test_test_says_what_it_assumes() {
	listed
	assert_status 0 xc test 10.99.0.1
	assert_output '^rule: +src 10.99.0.1 state new$'
	assert_output '^assumed: +these packets begin something; answers pass$'
	assert_status 1 xc test 10.99.0.9
	# These begin nothing, whatever is assumed.
	for packet in 'fragment later' 'flags ack' 'flags syn,ack/syn,ack' 'flags none/syn' 'proto icmp type 0' \
		'proto udp sport 67 dport 68'; do
		case_begin "$packet"
		# shellcheck disable=SC2086 # one word an argument
		assert_status 1 xc test 10.99.0.1 $packet
		! grep assumed "$STATE/out" || fail "it begins nothing"
		assert_equal 'not blocked' "$(echo "test 10.99.0.1 $packet" | xc batch -)" "batch"
	done
	for packet in 'flags syn' 'flags syn/syn,ack' 'flags fin' 'proto icmp type 8' 'fragment first'; do
		case_begin "$packet"
		# shellcheck disable=SC2086
		assert_status 0 xc test 10.99.0.1 $packet
		assert_equal 'blocked by src 10.99.0.1 state new' "$(echo "test 10.99.0.1 $packet" | xc batch -)" "batch"
	done
}

# What no packet can match is not added; del and files, which may be older, still name it.
test_never() {
	for rule in '10.99.0.1 flags ack' '10.99.0.1 proto icmp type 0' '10.99.0.1 flags syn,ack/syn,ack' \
		'fd99::1 udp sport 547 dport 546'; do
		case_begin "$rule"
		# shellcheck disable=SC2086 # one word an argument
		assert_fails 2 'state new: packets with this .* begin nothing' xc add $rule state new
	done
	assert_fails 2 'an IPv6 packet has at least 40 bytes' xc add 2001:db8::1 length 0-39
	assert_status 0 xc add 2001:db8::1 length 0-40
	echo '10.99.0.1 flags ack' >"$STATE/list"
	assert_fails 2 'such packets begin nothing, and the list is new-only' xc import "$STATE/list" --new-only
	assert_status 0 xc add 10.99.0.1 proto udp rate 10/s --list L
	assert_notes "the rate stays that of the rule's other owners" xc add 10.99.0.1 proto udp rate 20/s
}

test_whole_lists() {
	assert_status 0 xc load vrx
	printf '%s\n' 203.0.113.0/24 198.51.100.7 '192.0.2.1 action pass' '2001:db8::/32 proto udp' >"$STATE/list"
	assert_status 0 xc import "$STATE/list" --list far --replace --new-only
	cat >"$STATE/expected" <<-'END'
		src 192.0.2.1 action pass
		src 198.51.100.7 state new
		src 203.0.113.0/24 state new
		proto udp src 2001:db8::/32 state new
	END
	xc list >"$STATE/rules"
	assert_status 0 diff "$STATE/expected" "$STATE/rules"
	assert_status 0 xc import "$STATE/list" --list far --replace
	assert_equal 0 "$(xc list | grep -c 'state new')"
	assert_status 2 xc import "$STATE/list" --new-only --action pass
	# Later fragments begin nothing. The rule costs only itself.
	printf '%s\n' '203.0.113.50 fragment later' 203.0.113.51 >"$STATE/later"
	assert_status 2 xc import "$STATE/later" --list later --new-only --replace
	assert_error ":1: such packets begin nothing"
	assert_equal 'src 203.0.113.51 state new' "$(xc list later)" "rules"
	xc lists delete later >/dev/null
	# By configuration, and back from a backup.
	cat >"$STATE/c.conf" <<-END
		[filter]
		interfaces = vrx
		[list far]
		file = $STATE/list
		new-only = yes
	END
	chmod go-w "$STATE/c.conf" "$STATE/list"
	assert_status 0 xc up "$STATE/c.conf"
	xc list >"$STATE/rules"
	assert_status 0 diff "$STATE/expected" "$STATE/rules"
	assert_status 0 xc backup "$STATE/backup"
	assert_status 0 xc lists delete far
	assert_status 0 xc restore "$STATE/backup"
	xc list >"$STATE/rules"
	assert_status 0 diff "$STATE/expected" "$STATE/rules"
	assert_status 0 xc export "$STATE/far.csv" --format csv
	assert_status 0 xc flush --force
	assert_status 0 xc import "$STATE/far.csv"
	xc list >"$STATE/rules"
	assert_status 0 diff "$STATE/expected" "$STATE/rules"
	for format in ipset nft; do
		xc export - --format "$format" >/dev/null 2>"$STATE/told"
		assert_equal 3 "$(grep -c 'state new.*is left out' "$STATE/told")" "$format"
	done
}

# Name servers and gateways only answer. Whoever holds the session of the operator begins it.
test_the_guard() {
	ip -n "$RX" route add default via 10.99.0.1
	assert_status 0 xc load vrx
	assert_status 2 xc add 10.99.0.1
	assert_status 0 xc add 10.99.0.1 state new
	assert_status 2 env SSH_CONNECTION='10.99.0.7 5000 10.99.0.2 22' nsenter --net="/run/netns/$RX" "$TOOL" \
		--state "$STATE/store" add 10.99.0.0/24 state new
	assert_status 2 xc add dst 10.99.0.2 state new
}

test_bad_words() {
	assert_status 2 xc add 192.0.2.1 state established
	assert_error 'the only state of a rule is new'
	assert_status 2 xc add 192.0.2.1 state new action pass
	assert_error 'a pass rule lets all packets pass'
}

# New programs ask connection tracking if its module is there when they are loaded; a new table may come with such programs.
test_status_tells_of_the_present_programs() {
	without_module() {
		in_rx unshare -m sh -c 'mount -t tmpfs none /sys/module && exec "$@"' sh "$TOOL" --state "$STATE/store" "$@"
	}
	assert_status 0 xc load vrx
	xc status --json | grep -q '"asks_connection_tracking": true' || skip "this kernel has no bpf_xdp_ct_lookup()"
	assert_status 0 without_module resize 500000
	assert_shows '"asks_connection_tracking": false' xc status --json
	assert_status 0 xc resize 1000
	assert_shows '"asks_connection_tracking": true' xc status --json
}

run_tests "$0" "$@"
