#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Rules with `state new`: what a listed address begins is dropped, and what it answers comes in.
. tests/lib.sh

# serve KIND: the listed host serves TCP at 8080 and answers datagrams at port 53, each once.
serve() {
	in_tx timeout 20 python3 - "$1" <<-'END' &
		import socket, sys
		kind = sys.argv[1]
		any6 = socket.socket(socket.AF_INET6, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
		any6.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
		any6.bind(("::", 8080 if kind == "tcp" else 53))
		print("ready", flush=True)
		if kind == "tcp":
		    any6.listen(1)
		    peer, _ = any6.accept()
		    peer.sendall(b"x" * 100000)
		    peer.close()
		else:
		    size = int(kind)
		    data, sender = any6.recvfrom(100)
		    any6.sendto(b"y" * size, sender)
	END
	on_exit "kill $! 2>/dev/null"
	sleep 0.5
}

# fetch_tcp ADDRESS: bytes that arrive.
fetch_tcp() {
	in_rx timeout 10 python3 - "$1" <<-'END'
		import socket, sys
		peer = socket.create_connection((sys.argv[1], 8080), 5)
		count = 0
		while True:
		    data = peer.recv(65536)
		    if not data:
		        break
		    count += len(data)
		print(count)
	END
}

# ask_udp ADDRESS PORT HOW: asks from the port (0: any) with a socket that is `connected` or `open`; bytes of the answer.
ask_udp() {
	in_rx timeout 10 python3 - "$@" <<-'END'
		import socket, sys
		address, port, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
		family = socket.AF_INET6 if ":" in address else socket.AF_INET
		asks = socket.socket(family, socket.SOCK_DGRAM)
		asks.settimeout(3)
		asks.bind(("", port))
		if how == "connected":
		    asks.connect((address, 53))
		    asks.send(b"?")
		else:
		    asks.sendto(b"?", (address, 53))
		try:
		    print(len(asks.recv(65535)))
		except TimeoutError:
		    print("nothing")
	END
}

# reach WHAT ADDRESS PORT: whether the listed host can begin something here.
reach() {
	in_rx timeout 6 python3 - "$1" "$3" <<-'END' >"$STATE/reached" &
		import socket, sys
		kind = socket.SOCK_STREAM if sys.argv[1] == "tcp" else socket.SOCK_DGRAM
		here = socket.socket(socket.AF_INET6, kind)
		here.bind(("::", int(sys.argv[2])))
		here.settimeout(3)
		try:
		    if sys.argv[1] == "tcp":
		        here.listen(1)
		        here.accept()
		    else:
		        here.recv(100)
		    print("reached")
		except TimeoutError:
		    print("not reached")
	END
	reach_job=$!
	sleep 0.5
	in_tx timeout 4 python3 - "$@" <<-'END'
		import socket, sys
		family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
		there = socket.socket(family, socket.SOCK_STREAM if sys.argv[1] == "tcp" else socket.SOCK_DGRAM)
		there.settimeout(2)
		try:
		    there.connect((sys.argv[2], int(sys.argv[3])))
		    there.send(b"!")
		except OSError:
		    pass
	END
	wait "$reach_job"
	cat "$STATE/reached"
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
	assert_equal 0 "$(xc stats --json | jq '[.[] | select(.outcome == "drop-rule").dropped_packets] | add')"
}

test_attempts_are_dropped() {
	listed
	for address in 10.99.0.2 fd99::2; do
		assert_equal "not reached" "$(reach tcp $address 22)" "tcp to $address"
		assert_equal "not reached" "$(reach udp $address 5353)" "udp to $address"
	done
	assert_status 0 xc flush
	assert_equal "reached" "$(reach tcp 10.99.0.2 22)"
	assert_equal "reached" "$(reach udp 10.99.0.2 5353)"
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
	[ "$(xc status --json | jq '.running[0].asks_connection_tracking')" = true ] || skip "this kernel has no bpf_xdp_ct_lookup()"
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
	answered=$(in_ns "xc$$in" timeout 10 python3 -c '
import socket
asks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asks.settimeout(3)
asks.bind(("", 5000))
asks.sendto(b"?", ("10.99.0.1", 53))
print(len(asks.recv(1000)))')
	assert_equal 100 "$answered"
}

test_test_says_what_it_assumes() {
	listed
	assert_status 0 xc test 10.99.0.1
	assert_equal "src 10.99.0.1 state new" "$(xc test 10.99.0.1 --json | jq -r .rule)"
	assert_equal "these packets begin something; answers pass" "$(xc test 10.99.0.1 --json | jq -r .assumed)"
	assert_status 1 xc test 10.99.0.9
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
		xc export - --format $format >/dev/null 2>"$STATE/told"
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

run_tests "$0" "$@"
