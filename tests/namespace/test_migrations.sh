#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# From ipset, nft, iptables, ufw, hosts.deny, blackhole routes and xdp-filter to this filter, by the lines of
# xdp-cuckoo-rules(5): the same addresses get no answer before and after.
. tests/lib.sh

PAGE=user/package/man/xdp-cuckoo-rules.5
PEERS4='203.0.113.1 203.0.113.2 203.0.113.3 203.0.113.4 203.0.113.65 203.0.113.66'
PEERS6='2001:db8::1 2001:db8::2 2001:db8::3'

# peers: the sender gets these addresses, and the filter's host routes to them.
peers() {
	for peer in $PEERS4; do
		ip -n "$TX" address add "$peer/32" dev vtx
	done
	for peer in $PEERS6; do
		ip -n "$TX" address add "$peer/128" dev vtx nodad
	done
	ip -n "$RX" route add 203.0.113.0/24 via 10.99.0.1
	ip -n "$RX" route add 2001:db8::/64 via fd99::1
	echo_server
	wait_for "answers before anything is blocked" all_are_answered
}

# answered: the addresses from which a datagram is answered. Prints them when all are, or after a second.
answered() {
	# shellcheck disable=SC2086 # one word an address
	in_tx $PYTHON - $PEERS4 $PEERS6 <<-'END'
		import select, socket, sys, time
		sockets = {}
		for peer in sys.argv[1:]:
		    family, to = (socket.AF_INET6, "fd99::2") if ":" in peer else (socket.AF_INET, "10.99.0.2")
		    one = socket.socket(family, socket.SOCK_DGRAM)
		    one.bind((peer, 0))
		    sockets[one] = (peer, (to, 7))
		answered, end = set(), time.monotonic() + 1
		while time.monotonic() < end and len(answered) < len(sockets):
		    for one, (peer, to) in sockets.items():
		        one.sendto(b"?", to)
		    for one in select.select(list(sockets), [], [], 0.1)[0]:
		        one.recv(1)
		        answered.add(sockets[one][0])
		print("\n".join(answered))
	END
}

# echo_server: answers every datagram to port 7 of the filter's host.
echo_server() {
	nsenter --net="/run/netns/$RX" $PYTHON - <<-'END' &
		import select, socket
		sockets = [socket.socket(family, socket.SOCK_DGRAM) for family in (socket.AF_INET, socket.AF_INET6)]
		sockets[0].bind(("10.99.0.2", 7))
		sockets[1].bind(("fd99::2", 7))
		while True:
		    for one in select.select(sockets, [], [])[0]:
		        data, peer = one.recvfrom(9)
		        try:
		            one.sendto(data, peer)
		        except OSError:
		            pass
	END
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
}

all_are_answered() {
	[ "$(answered | wc -l)" -eq 9 ]
}

# documented MARK: the command below the line `# MARK` of the page, into $STATE/command.
documented() {
	sed 's/\\-/-/g; s/\\e/\\/g' "$PAGE" | sed -n "/^# $1/,/^\.EE/p" | sed '1d; /^#/,$d; /^\.EE/,$d' >"$STATE/command"
	[ -s "$STATE/command" ] || fail "the page has no line for $1"
}

# migrate MARK [SED [STATUS]]: runs the page's command for the filter's host; SED is what differs here, as a path.
migrate() {
	mkdir -p "$STATE/bin"
	printf '#!/bin/sh\nexec %s --state %s "$@"\n' "$PWD/$TOOL" "$STATE/store" >"$STATE/bin/xdp-cuckoo"
	chmod +x "$STATE/bin/xdp-cuckoo"
	documented "$1"
	sed "${2-}" "$STATE/command" >"$STATE/run"
	run in_rx env PATH="$STATE/bin:$PATH" sh "$STATE/run"
	[ "$STATUS" -eq "${3-0}" ] || { show_run; cat "$STATE/run"; fail "status $STATUS"; }
}

# blocks EXPECTED_BLOCKED...: what is answered now is all but these.
blocks() {
	for peer in $PEERS4 $PEERS6; do
		case " $* " in *" $peer "*) ;; *) echo "$peer" ;; esac
	done | sort >"$STATE/expected"
	answered | sort >"$STATE/answered"
	diff "$STATE/expected" "$STATE/answered" || fail "answered: those with >, expected: those with <"
}

# by_filter BLOCKED...: the other tool blocks nothing any more, and the filter alone blocks these.
by_filter() {
	blocks
	xc load vrx >/dev/null 2>&1
	blocks "$@"
}
needs() {
	command -v "$1" >/dev/null || skip "no $1"
}

test_ipset_and_iptables() {
	needs iptables
	peers
	in_rx ipset create blocked hash:net
	in_rx ipset add blocked 203.0.113.2
	in_rx ipset add blocked 203.0.113.64/30
	in_rx iptables -A INPUT -m set --match-set blocked src -j DROP
	blocks 203.0.113.2 203.0.113.65 203.0.113.66
	migrate ipset
	in_rx iptables -F
	in_rx ipset destroy blocked
	by_filter 203.0.113.2 203.0.113.65 203.0.113.66
}

test_nft_set() {
	peers
	in_rx nft -f - <<-END
		table inet filter {
			set blocked {
				type ipv4_addr
				flags interval
				elements = { 203.0.113.2, 203.0.113.64/27 }
			}
			chain input {
				type filter hook input priority 0;
				ip saddr @blocked drop
			}
		}
	END
	blocks 203.0.113.2 203.0.113.65 203.0.113.66
	migrate nft
	in_rx nft flush ruleset
	by_filter 203.0.113.2 203.0.113.65 203.0.113.66
}

# What is dropped stays so. Lines that are no rules are named, and change nothing.
test_iptables_rules() {
	needs iptables
	peers
	in_rx iptables -A INPUT -i lo -j ACCEPT
	in_rx iptables -A INPUT -s 203.0.113.2 -j DROP
	in_rx iptables -A INPUT -s 203.0.113.64/26 -j REJECT
	in_rx iptables -A INPUT -s 203.0.113.4 -d 10.99.0.2 -p udp -m udp --dport 7 -j DROP
	in_rx iptables -A INPUT -s 203.0.113.3 -p tcp -m tcp --dport 22 -j DROP
	in_rx iptables -A INPUT -s 203.0.113.1 -p tcp -m tcp --tcp-flags SYN SYN -j DROP
	in_rx ip6tables -A INPUT -s 2001:db8::2 -j DROP
	blocks 203.0.113.2 203.0.113.4 203.0.113.65 203.0.113.66 2001:db8::2
	migrate iptables '' 0
	in_rx iptables -F
	in_rx ip6tables -F
	by_filter 203.0.113.2 203.0.113.4 203.0.113.65 203.0.113.66 2001:db8::2
	assert_shows '^proto tcp src 203.0.113.3 dport 22$' xc list
	assert_shows '^proto tcp src 203.0.113.1 flags syn$' xc list
	assert_equal 6 "$(xc list | wc -l)" "rules"
}

# ufw's files, as it writes them.
test_ufw() {
	needs iptables
	peers
	for version in '' 6; do
		case $version in
		'') set -- 203.0.113.2 203.0.113.64/26 ;;
		*) set -- 2001:db8::3 ;;
		esac
		printf '*filter\n:ufw%s-user-input - [0:0]\n:ufw%s-user-limit - [0:0]\n### RULES ###\n\n' "$version" "$version"
		printf '### tuple ### deny any any 0.0.0.0/0 any ADDRESS in\n'
		for address; do
			printf -- '-A ufw%s-user-input -s %s -j DROP\n\n' "$version" "$address"
		done
		printf -- "-A ufw$version-user-input %s\n\n" '-p tcp --dport 23 -j DROP' '-p udp --dport 23 -j REJECT' \
			'-p tcp --dport 22 -j ACCEPT'
		printf '### END RULES ###\n### RATE LIMITING ###\n-A ufw%s-user-limit -j REJECT\nCOMMIT\n' "$version"
	done >"$STATE/both"
	sed '/COMMIT/q' "$STATE/both" >"$STATE/user.rules"
	sed '1,/COMMIT/d' "$STATE/both" >"$STATE/user6.rules"
	in_rx iptables-restore <"$STATE/user.rules"
	in_rx ip6tables-restore <"$STATE/user6.rules"
	in_rx iptables -A INPUT -j ufw-user-input
	in_rx ip6tables -A INPUT -j ufw6-user-input
	blocks 203.0.113.2 203.0.113.65 203.0.113.66 2001:db8::3
	migrate ufw "s,/etc/ufw,$STATE,g"
	# The same from the rules that run.
	migrate iptables 's/list old/list saved/'
	assert_equal "$(xc list --list old | sort)" "$(xc list --list saved | sort)" "from ufw's file, and from iptables-save"
	assert_equal 7 "$(xc list | wc -l)" "rules"
	for family in '' 6; do
		in_rx "ip${family}tables" -F
	done
	by_filter 203.0.113.2 203.0.113.65 203.0.113.66 2001:db8::3
	# What the old recipe lost.
	printf '*filter\n%s\n%s\n' '-A ufw-user-input -p tcp --dport 22 -s 203.0.113.9 -j DROP' \
		'-A ufw-user-input -i eth0 -s 203.0.113.9 -j DROP' >"$STATE/user.rules"
	assert_fails 2 "user.rules:3: '-i': no rule can say this" xc import "$STATE/user.rules" --list old --replace
	assert_prints 'proto tcp src 203.0.113.9 dport 22' xc list --list old
}

# Programs ask this file, not the kernel: so by the list. A line that says more than addresses is a bad line as a whole.
test_hosts_deny() {
	printf '# denied\nALL: 203.0.113.2, [2001:db8::3]\nsshd: 203.0.113.9\nALL : 203.0.113.64/26 \n' >"$STATE/hosts.deny"
	migrate hosts.deny "s,/etc/hosts.deny,$STATE/hosts.deny,"
	printf 'ALL: 203.0.113.9%s\n' ' EXCEPT 203.0.113.10' ' : allow' ':ALLOW' ', [2001:db8::9]: allow' ' \' >>"$STATE/hosts.deny"
	migrate hosts.deny "s,/etc/hosts.deny,$STATE/hosts.deny,;s/list old/list odd/" 2
	printf 'src %s\n' 2001:db8::3 203.0.113.2 203.0.113.64/26 >"$STATE/expected"
	assert_equal "$(sort "$STATE/expected")" "$(xc list | sort)" "rules"
}

test_blackhole_routes() {
	peers
	ip -n "$RX" route add blackhole 203.0.113.2
	ip -n "$RX" route add blackhole 203.0.113.64/26
	ip -n "$RX" route add blackhole 2001:db8::3
	blocks 203.0.113.2 203.0.113.65 203.0.113.66 2001:db8::3
	migrate routes
	ip -n "$RX" -4 route flush type blackhole
	ip -n "$RX" -6 route flush type blackhole
	by_filter 203.0.113.2 203.0.113.65 203.0.113.66 2001:db8::3
}

# xdp-filter pins its maps: in a BPF file system of its own here.
test_xdp_filter() {
	needs xdp-filter
	peers
	in_rx unshare -m sh -c '
		mount -t bpf bpf /sys/fs/bpf
		xdp-filter load vrx -m skb -f ipv4,ipv6,tcp,udp || exit
		xdp-filter ip 203.0.113.2 -m src
		xdp-filter ip 203.0.113.3 -m dst
		xdp-filter ip 2001:db8::2 -m src,dst
		xdp-filter port 123 -m src,dst -p udp
		xdp-filter port 22 -m dst -p tcp
		xdp-filter status
		# Behind the dispatcher its program runs only as long as its pin exists, and this view of the files.
		sleep 600 >/dev/null 2>&1 &
		echo $! >"$0"' "$STATE/holder" >"$STATE/filter.status" 2>"$STATE/err" || skip "xdp-filter does not load: $(cat "$STATE/err")"
	on_exit 'ip -n "$RX" link set vrx xdpgeneric off 2>/dev/null; kill "$(cat "$STATE/holder")"'
	blocks 203.0.113.2 2001:db8::2
	migrate xdp-filter "s,^xdp-filter status,cat $STATE/filter.status,"
	ip -n "$RX" link set vrx xdpgeneric off
	by_filter 203.0.113.2 2001:db8::2
	printf '%s\n' 'src 203.0.113.2' 'dst 203.0.113.3' 'src 2001:db8::2' 'dst 2001:db8::2' 'proto udp sport 123' \
		'proto udp dport 123' 'proto tcp dport 22' >"$STATE/expected"
	assert_equal "$(sort "$STATE/expected")" "$(xc list | sort)" "rules"
}

run_tests "$0" "$@"
