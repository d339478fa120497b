#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# BGP FlowSpec: lines that gobgp 3.10 was seen to print (tests/fuzz/flowspec.jsonl), then real daemons of gobgp that peer
# over the interface of the filter.
# Takes minutes.
. tests/lib.sh
. tests/namespace/gobgp.sh

RECORDED=tests/fuzz/flowspec.jsonl
STALE_S=3
NEWLINE='
'
LEASE_S=4 # with a quarter, at least a second

# config [LINE...]: the configuration.
config() {
	printf '%s\n' '[flowspec]' "stale = ${STALE_S}s" 'rtbh = yes' "$@" >"$STATE/flowspec.conf"
	case "$*" in *own-prefixes*) ;; *) echo 'own-prefixes = 198.51.100.0/24 2001:db8::/32' >>"$STATE/flowspec.conf" ;; esac
}

# flowspec ARGUMENT...
flowspec() {
	xc flowspec - --config "$STATE/flowspec.conf" "$@"
}

# printed: the lines of batch for standard input, without ends and counts.
printed() {
	flowspec --print 2>"$STATE/printed.err" | sed 's/ timeout .*//; /^#/d'
}

# packets: the same for lines that arrive as packets, from a socket.
packets() {
	$PYTHON tests/helpers/seqpacket.py feed "$TOOL" flowspec - --print --config "$STATE/flowspec.conf" 2>"$STATE/printed.err" |
		sed 's/ timeout .*//; /^#/d'
}

# each: for each recorded line, what becomes of it alone.
each() {
	while read -r line; do
		printf '%s\n' "$line" | flowspec --print >"$STATE/each.out" 2>"$STATE/each.err" || :
		sed -n 's/^note: refused flow //p; s/^note: \(unreadable\): .*/\1/p' "$STATE/each.err"
		sed -n 's/ timeout 4s$//; s/^add //p' "$STATE/each.out"
		echo .
	done <"$RECORDED" | tr '\n' ';' | sed 's/;\.;/\n/g; s/^\.;//; s/\n\.;/\n/g'
}

# ports DESTINATION PORTS: the rules for these, in one line.
ports() {
	for port in $2; do printf 'proto udp dst %s dport %s;' "$1" "$port"; done | sed 's/;$//'
}

test_each_row_of_the_table() {
	config
	cat >"$STATE/expected" <<-END
		dst 198.51.100.1
		proto tcp src 203.0.113.5 sport 1024 dst 198.51.100.0/28 dport 80;proto tcp src 203.0.113.5 sport 1024 dst 198.51.100.0/28 dport 443;proto tcp src 203.0.113.5 sport 1025 dst 198.51.100.0/28 dport 80;proto tcp src 203.0.113.5 sport 1025 dst 198.51.100.0/28 dport 443
		proto udp sport 53 dst 198.51.100.2;proto udp dst 198.51.100.2 dport 53
		proto tcp sport 53 dst 198.51.100.3;proto udp sport 53 dst 198.51.100.3;proto tcp dst 198.51.100.3 dport 53;proto udp dst 198.51.100.3 dport 53
		proto icmp type 8 dst 198.51.100.4 code 0
		proto tcp dst 198.51.100.5 dport 7;proto udp dst 198.51.100.5 dport 7
		proto udp dst 198.51.100.6 dport 2;proto udp dst 198.51.100.6 dport 3
		proto gre dst 198.51.100.7
		proto udp src 2001:db8:1::/48 dst 2001:db8::1 dport 53
		proto ipv6-icmp type 128 dst 2001:db8::2
		dst 198.51.100.66
		dst 2001:db8::66
		proto tcp dst 198.51.100.32 flags syn
		dst 198.51.100.33 length 100
		destination 198.51.100.34/32 dscp =10: dscp: a rule cannot match it
		dst 198.51.100.35 fragment later
		destination 2001:db8::3/128 label =100: label: a rule cannot match it
		destination 2001:db8:1::/64 offset 32: destination: a rule cannot match a prefix with an offset
		destination 198.51.100.36/32 protocol !=6: protocol: a rule cannot match 255
		$(ports 198.51.100.37 "$(seq -f '%.0f/8' 1024 256 3840; seq -f '%.0f/4' 4096 4096 61440)")
		destination 198.51.100.38/32 protocol =17 destination-port false0: destination-port: the operators true and false
		$(ports 198.51.100.39 "$(seq 15; seq -f '%.0f/12' 16 16 240; seq -f '%.0f/8' 256 256 3840; seq -f '%.0f/4' 4096 4096 61440)")
		destination 198.51.100.40/32 protocol =17 destination-port >=1&<=40 source-port >=1&<=40: it takes more than 1024 rules
		proto udp dst 198.51.100.41 dport 53;proto udp sport 53 dst 198.51.100.41 dport 53
		destination 198.51.100.42/32 protocol =47 destination-port =53: no packet of this protocol has ports that FlowSpec knows
		destination 198.51.100.43/32 destination-port =53 icmp-type =8: no packet has both ports and an ICMP type
		protocol =17: it names neither a destination nor a source
		destination 203.0.113.1/32: its destination is in none of own-prefixes
		source 203.0.113.1/32: its destination is in none of own-prefixes
		dst 198.51.100.48 rate 8kbit/s
		destination 198.51.100.49/32: it asks for the action redirect, not for a drop
		destination 198.51.100.50/32: it asks for the action mark, not for a drop
		destination 198.51.100.51/32: it asks for the action sample or terminal, not for a drop
		destination 198.51.100.52/32: it asks for the action sample or terminal, not for a drop
		destination 198.51.100.53/32: it asks for no action, not for a drop
		destination 198.51.100.54/32: it asks for the action mark, not for a drop
		destination 198.51.100.55/32: it asks for a rate below 1 bit or packet a second, not for a drop
		unreadable
		blackhole 198.51.100.80/28: it is not a route to one address
		blackhole 203.0.113.66/32: its destination is in none of own-prefixes
	END
	# Of the snapshot's empty array, a unicast route without the community, and a route of a VPN nothing is said.
	each | grep . >"$STATE/seen"
	diff "$STATE/expected" "$STATE/seen" || fail "a row of the table is another"
	case_begin "a snapshot, in one line"
	tr '\n' ' ' <"$RECORDED" | sed 's/\[\] //; s/\] \[/,/g' >"$STATE/snapshot"
	printed <"$STATE/snapshot" >"$STATE/one"
	echo >>"$STATE/snapshot"
	printed <"$RECORDED" | diff - "$STATE/one" || fail "a snapshot is read in another way than changes"
}

# text NLRI ATTRIBUTES [TITLE]: as gobgp prints a route without -j.
text() {
	printf '2026-11-24T13:21:09Z [%s] %s via fictitious aspath [65001] attrs [{Origin: i} %s]\n' "${3:-ROUTE}" "$1" "$2"
}

# flags ADDRESS OPERATORS: a flow with TCP flags, as gobgp -j prints it.
flags() {
	printf '{"nlri":{"value":[{"type":1,"value":{"prefix":"%s/32"}},{"type":9,"value":[%s]}]},"attrs":[{"type":16,"value":[{"type":128,"subtype":6,"value":"discard","rate":0}]}]}' "$@"
}

test_gobgps_text() {
	config
	drop='{Extcomms: [discard]}'
	{
		text '[destination: 198.51.100.1/32]' "$drop"
		text '[destination: 198.51.100.2/32][source: 203.0.113.5/32][protocol: ==tcp][destination-port: ==80 ==443][source-port: >=1024&<=1025]' "$drop"
		text '[destination: 2001:db8::1/128/0][protocol: ==udp]' "$drop"
		text '[destination: 2001:db8:1::/64/32]' "$drop"
		text '[destination: 198.51.100.3/32][protocol: ==ospf ==94]' "{Extcomms: [valid], [rate: -1.000000], [100], [65000:0]} {Extcomms: [9]}"
		text '[destination: 198.51.100.4/32]' '{Extcomms: [3377699720527872]}'
		text '[destination: 198.51.100.14/32][tcp-flags: =S&!A SA][packet-length: <16][fragment: !is-fragment]' "$drop"
		# Text lacks flags above cwr, so a flow with flags comes by JSON, in pieces of lines.
		text '[destination: 198.51.100.20/32][tcp-flags: =S]' "$drop"
		printf 'J[%s,\nJ%s]\n' "$(flags 198.51.100.14 '{"op":1,"value":2},{"op":66,"value":16},{"op":128,"value":18}]},{"type":10,"value":[{"op":132,"value":16}]},{"type":12,"value":[{"op":130,"value":2}')" \
			"$(flags 198.51.100.20 '{"op":145,"value":258}')"
		text '[destination: 198.51.100.15/32][protocol: ==tcp][destination-port: >=79&!=80&<=81]' "$drop"
		text '[destination: 198.51.100.5/32]' '{Extcomms: [discard(as: 65001)], [action: terminal-sample]}'
		text '198.51.100.66/32' '{Communities: 65001:1, blackhole}'
		text '[destination: 198.51.100.16/32]' '{Extcomms: [rate: 1000.000000(as: 1)]}'
		text '[destination: 198.51.100.17/32]' '{Extcomms: [rate: 0.000000]}'
		text '[destination: 198.51.100.18/32]' '{Extcomms: [3377700785881088]}'
		text '[destination: 198.51.100.21/32]' '{Extcomms: [3377704007106560]}'
		text '[destination: 198.51.100.19/32]' '{Extcomms: [discard], [rate: 1000.000000]}'
		for not in '[rate: NaN]' '[rate: +Inf]' '[rate: 2e15]' '[discard], [redirect: 65001:100]' '[discard], [remark: 10]' '[action: sample]' '[discard], [192.0.2.1:0]' '[discard], [2001:db8::1:0]' \
			'[3377701863817216]' '[rate: 1000.000000], [3377700785881088]' ''; do
			text '[destination: 198.51.100.10/32]' "{Extcomms: $not}"
		done
		for not in '[protocol: true]' '[destination-port: >65535]' '[tcp-flags: =X]' '[tcp-flags: =S&!S]' '[fragment: =]' '[fragment: last-fragment]' '[unknown:[99 1 2]]' \
			'[port: ==80' 'x' '[]' '[protocol: ==17]]'; do
			text "[destination: 198.51.100.11/32]$not" "$drop"
		done
		text '[rd: 100:1][destination: 198.51.100.12/32]' "$drop"
		text '100:1:198.51.100.12/32' '{Communities: blackhole}'
		text '%!s(<nil>)' "$drop"
		echo 'rpc error: code = Unavailable desc = transport is closing'
		printf '%s\r' "$(text 203.0.113.0/24 '{Pmsi: type: 7, label: 5, tunnel-id: x}')" \
			"$(text '[destination: 198.51.100.13/32]' "$drop")"
		echo
		text '[destination: 198.51.100.1/32]' "$drop" DELROUTE
	} >"$STATE/text"
	packets <"$STATE/text" | grep -v '^del dst 198.51.100.10$' >"$STATE/seen"
	diff - "$STATE/seen" <<-'END' || fail "other rules"
		add dst 198.51.100.1
		add proto tcp src 203.0.113.5 sport 1024 dst 198.51.100.2 dport 80
		add proto tcp src 203.0.113.5 sport 1024 dst 198.51.100.2 dport 443
		add proto tcp src 203.0.113.5 sport 1025 dst 198.51.100.2 dport 80
		add proto tcp src 203.0.113.5 sport 1025 dst 198.51.100.2 dport 443
		add proto udp dst 2001:db8::1
		add proto ospf dst 198.51.100.3
		add proto 94 dst 198.51.100.3
		add dst 198.51.100.4
		add proto tcp dst 198.51.100.14 flags syn fragment no length 0/12
		add proto tcp dst 198.51.100.14 flags syn fragment first length 0/12
		add proto tcp dst 198.51.100.14 flags ack/syn,ack fragment no length 0/12
		add proto tcp dst 198.51.100.14 flags ack/syn,ack fragment first length 0/12
		add proto tcp dst 198.51.100.15 dport 79
		add proto tcp dst 198.51.100.15 dport 81
		add dst 198.51.100.5
		add dst 198.51.100.66
		add dst 198.51.100.16 rate 8kbit/s
		del dst 198.51.100.17
		add dst 198.51.100.18 rate 1/s
		add dst 198.51.100.21
		add dst 198.51.100.19
		del dst 198.51.100.1
	END
	while IFS='|' read -r pattern why; do
		case_begin "$why"
		grep -F -- "$pattern" "$STATE/text" | packets >/dev/null
		assert_shows "^note: $why" cat "$STATE/printed.err"
	done <<-'END'
		NaN|refused flow destination 198.51.100.10/32: it asks for a rate that is no number, not for a drop
		+Inf|refused flow destination 198.51.100.10/32: it asks for a rate that is no number, not for a drop
		[3377701863817216]|refused flow destination 198.51.100.10/32: it asks for a rate that is no number, not for a drop
		[3377700785881088]|refused flow destination 198.51.100.10/32: it asks for two rates, not for a drop
		192.0.2.1:0|refused flow destination 198.51.100.10/32: it asks for the action redirect to an address, not for a drop
		db8::1:0|refused flow destination 198.51.100.10/32: it asks for the action redirect to an address, not for a drop
		0.000000]|refused flow destination 198.51.100.17/32: it asks for a rate below 1 bit or packet a second, not for a drop
		[action: sample]|refused flow destination 198.51.100.10/32: it asks for the action sample or terminal, not for a drop
		/64/32]|refused flow destination 2001:db8:1::/64 offset 32: destination: a rule cannot match a prefix with an offset
		[tcp-flags: =X]|refused flow destination 198.51.100.11/32 tcp-flags: tcp-flags: GoBGP's text does not say all of them
		100.20/|refused flow destination 198.51.100.20/32 tcp-flags =S: tcp-flags: GoBGP's text does not say all of them
		"value":258|refused flow destination 198.51.100.20/32 tcp-flags =S0x100: tcp-flags: a rule knows only the flags from fin to cwr
		[fragment: =]|refused flow destination 198.51.100.11/32 fragment =: fragment: a value without bits; whole packets are
		last-fragment|refused flow destination 198.51.100.11/32 fragment last-fragment: fragment: a rule knows neither the last fragment
		>65535|refused flow destination 198.51.100.11/32 destination-port >65535: destination-port: no packet has such a value
		[unknown:[99 1 2]]|refused flow destination 198.51.100.11/32 unknown component: unknown component: a rule cannot match it
		[port: ==80 |unreadable: the input has a route that is not one: 2026
		nil|unreadable: the input has a route that is not one: 2026
		rpc|unreadable: the input has a route that is not one: rpc error: code = Unavailable
	END
}

# Two monitors tell of a flow with flags: text and JSON, in any order, and one of them may stop.
test_text_beside_json() {
	config
	drop='{Extcomms: [discard]}'
	flow='[destination: 198.51.100.20/32][tcp-flags: =S]'
	json=$(flags 198.51.100.20 '{"op":129,"value":2}')
	status() {
		$PYTHON tests/helpers/seqpacket.py feed "$TOOL" flowspec - --print --config "$STATE/flowspec.conf" 2>"$STATE/printed.err" |
			sed -n 's/^# flows/flows/p' | tail -n 1
	}
	case_begin "JSON is first, and the flow has ended"
	assert_equal 'flows 0 refused 0 unreadable 0' "$({
		text '[destination: 198.51.100.1/32]' "$drop"
		printf 'J[%s]\nJ[%s,"withdrawal":true}]\n' "$json" "${json%\}}"
		text "$flow" "$drop"
		text "$flow" "$drop" DELROUTE
		text '[destination: 198.51.100.1/32]' "$drop" DELROUTE
	} | status)"
	case_begin "a piece without its end"
	assert_equal 'flows 2 refused 0 unreadable 3' "$({
		printf 'J\\c\n'
		printf 'J[%s,\nJ\\c\n' "$json"
		text '[destination: 198.51.100.1/32]' "$drop"
		printf 'J[%s]\n' "$json"
	} | status)"
	case_begin "JSON stops"
	{
		text '[destination: 198.51.100.1/32]' "$drop"
		printf 'J[%s]\n' "$json"
		sleep 2
		text "$flow" "$drop" DELROUTE
		for _ in $(seq 100); do sleep 0.2; echo 'Peer AS Up/Down State |#Received Accepted'; done 2>/dev/null
	} | packets >/dev/null
	assert_shows "^note: gobgp's JSON, which alone says all TCP flags, has stopped$" cat "$STATE/printed.err"
}

# A flow with a rate becomes a rule with a rate, and follows what is announced later.
test_rates() {
	config
	several='{"type":3,"value":[{"op":129,"value":17}]},{"type":5,"value":[{"op":1,"value":1},{"op":129,"value":2}]}'
	{
		with 198.51.100.1 1000
		with 198.51.100.1 1000
		with 198.51.100.1 1000000
		with 198.51.100.1 0
		with 198.51.100.1 2e15
		with 198.51.100.1 125000.5
		with 198.51.100.2 125000
		withdrawn 198.51.100.1
		with 198.51.100.3 1000 | sed "s/}}]},/}},$several]},/"
	} | printed >"$STATE/seen"
	diff - "$STATE/seen" <<-'END' || fail "other rules"
		add dst 198.51.100.1 rate 8kbit/s
		add dst 198.51.100.1 rate 8Mbit/s
		add dst 198.51.100.1
		del dst 198.51.100.1 rate 8Mbit/s
		del dst 198.51.100.1
		add dst 198.51.100.1 rate 1000004bit/s
		add dst 198.51.100.2 rate 1Mbit/s
		del dst 198.51.100.1 rate 1000004bit/s
	END
	assert_shows 'refused flow destination 198.51.100.1/32: it asks for a rate above 10.12 bits' cat "$STATE/printed.err"
	assert_shows 'refused flow destination 198.51.100.3/32 .*: a rate is for one rule, and this flow takes 2$' cat "$STATE/printed.err"
}

# Random flows beside the text of RFC 8955.
test_rules_match_what_the_rfc_says() {
	config 'own-prefixes = 10.0.0.0/8'
	$PYTHON tests/helpers/flowspec_oracle.py "$TOOL" "$STATE/flowspec.conf" "${SEED:-1}" >"$STATE/oracle" || fail "$(cut -c1-900 "$STATE/oracle")"
	note "$(tail -n 1 "$STATE/oracle")"
}

# with ADDRESS RATE|redirect [MORE]: the flow to an address, with a rate of bytes, or another action.
with() {
	with_community='"subtype":6,"as":0,"rate":'$2
	[ "$2" != redirect ] || with_community='"subtype":8,"value":"65001:100"'
	printf '[{"nlri":{"value":[{"type":1,"value":{"prefix":"%s/32"}}]},"age":1,"best":false,"attrs":[{"type":16,"value":' "$1"
	printf '[{"type":128,%s}]},{"type":14,"nexthop":"0.0.0.0","afi":1,"safi":133}]%s}]\n' "$with_community" "${3:-}"
}

withdrawn() {
	with "$1" 0 ',"withdrawal":true'
}

# feed_begin ARGUMENT...: flowspec in the background, run by $FEED_WITH, fed by descriptor 7; $FEEDER is its number.
feed_begin() {
	rm -f "$STATE/feed"
	mkfifo "$STATE/feed"
	# shellcheck disable=SC2086 # words
	nsenter --net="/run/netns/$RX" ${FEED_WITH:-} "$TOOL" --state "$STATE/store" flowspec - --config "$STATE/flowspec.conf" "$@" \
		<"$STATE/feed" >"$STATE/feed.out" 2>"$STATE/feed.err" &
	FEEDER=$!
	on_exit "kill $FEEDER 2>/dev/null; wait $FEEDER 2>/dev/null"
	exec 7>"$STATE/feed"
	WAIT_LOG=$STATE/feed.err
}

# listed N: the list has N rules.
listed() {
	[ "$(xc list --list flowspec 2>/dev/null | wc -l)" -eq "$1" ]
}

# judge VERDICT ADDRESS...: what happens to a packet to each.
judge() {
	verdict=$1
	shift
	for address; do
		echo "$verdict it proto udp src 192.0.2.1 dst $address sport 1 dport 2"
	done | traffic >"$STATE/judged" 2>&1
}

test_the_list_follows_the_flows() {
	STALE_S=$((STALE_S * SLOWER)) LEASE_S=$((LEASE_S * SLOWER))
	config
	xc load vrx >/dev/null
	feed_begin
	with 198.51.100.1 0 >&7
	with 198.51.100.2 0 >&7
	wait_for "the flows" listed 2
	judge drop 198.51.100.1 198.51.100.2 || fail "a flow is not dropped: $(cat "$STATE/judged")"
	assert_shows '^dst 198.51.100.1 timeout [0-9ms]+$' xc list --list flowspec
	case_begin "withdrawn"
	withdrawn 198.51.100.1 >&7
	wait_for "the withdrawal" listed 1
	judge pass 198.51.100.1 || fail "dropped after the withdrawal"
	case_begin "with another action"
	with 198.51.100.2 redirect >&7
	wait_for "the other action" listed 0
	judge pass 198.51.100.2 || fail "dropped though it is to be limited"
	assert_shows 'flowspec: 1 flows, 1 refused, 0 unreadable$' xc lists
	assert_shows '^xdp_cuckoo_list_refused_flows[{]name="default",list="flowspec"[}] 1$' xc metrics
	case_begin "needed by two"
	with 198.51.100.3 0 >&7
	printf '[{"nlri":{"prefix":"198.51.100.3/32"},"attrs":[{"type":8,"communities":[4294902426]}]}]\n' >&7
	wait_for "both" listed 1
	withdrawn 198.51.100.3 >&7
	with 198.51.100.4 0 >&7
	wait_for "the next flow" listed 2
	judge drop 198.51.100.3 || fail "passed though it is a blackhole"
	case_begin "a feed without rules is alive"
	withdrawn 198.51.100.4 >&7
	printf '[{"nlri":{"prefix":"198.51.100.3/32"},"withdrawal":true}]\n' >&7
	wait_for "no rules" listed 0
	xc lists >"$STATE/lists"
	wait_for "a later time" sh -c '! "$@" | cmp -s - "$0"' "$STATE/lists" "$TOOL" --state "$STATE/store" lists
	printf '[{"nlri":{"prefix":"198.51.100.3/32"},"attrs":[{"type":8,"communities":[4294902426]}]}]\n' >&7
	with 198.51.100.4 0 >&7
	wait_for "the flows again" listed 2
	case_begin "longer than the stale time"
	sleep "$((LEASE_S + 2))"
	judge drop 198.51.100.3 198.51.100.4 || fail "a rule has ended while its source lives"
	case_begin "the input ends"
	start=$(now_ms)
	exec 7>&-
	status=0
	wait "$FEEDER" || status=$?
	assert_equal 3 "$status" "status"
	grep -q "rules of the list 'flowspec' end after the stale time" "$STATE/feed.err" || fail "it is not said"
	judge drop 198.51.100.3 198.51.100.4 || fail_by $((start + 1000 * STALE_S)) "the rules have gone at once"
	wait_for "their end" judge pass 198.51.100.3 198.51.100.4
	xc expire >/dev/null
	assert_prints '' xc list
}

# A router would take the more specific flow first, and not drop its packets: RFC 8955 section 5.1.
test_a_drop_wins_over_a_more_specific_flow() {
	config
	xc load vrx >/dev/null
	feed_begin
	PEER=192.0.2.7
	bgp "$(to 198.51.100.1),{\"type\":3,\"value\":[{\"op\":129,\"value\":17}]}" | sed 's/{"type":128,"subtype":6,"rate":0}//' >&7
	with 198.51.100.2 redirect >&7
	bgp "$(to 198.51.100.0 | sed 's,/32,/24,')" >&7
	wait_for "the flow" listed 1
	judge drop 198.51.100.1 198.51.100.2 198.51.100.3 || fail "$(cat "$STATE/judged")"
	flows_are refused flow <<-'END'
		- destination 198.51.100.0/24
		action destination 198.51.100.1/32 protocol =17
		action destination 198.51.100.2/32
	END
	grep -q 'refused flow destination 198.51.100.1/32 protocol =17: it asks for no action, not for a drop' "$STATE/feed.err" ||
		fail "the exception is not named: $(cat "$STATE/feed.err")"
	case_begin "actions"
	while read -r verdict communities; do
		printf '[{"nlri":{"value":[{"type":1,"value":{"prefix":"198.51.100.9/32"}}]},"attrs":[{"type":16,"value":[%s]}]}]\n' "$communities" |
			printed | grep -c add >"$STATE/seen" || :
		assert_equal "$verdict" "$(cat "$STATE/seen")" "rules of $communities"
	done <<-'END'
		1 {"type":128,"subtype":6,"rate":0},{"type":128,"subtype":7}
		1 {"type":128,"subtype":6,"rate":0},{"type":128,"subtype":99},{"type":3,"subtype":11}
		0 {"type":128,"subtype":6,"rate":0},{"type":128,"subtype":8}
		0 {"type":128,"subtype":6,"rate":0},{"type":128,"subtype":9}
		0 {"type":128,"subtype":99}
	END
}

# Whoever is killed: nothing stays, and what is announced is blocked again after a restart.
# Nobody feeds the list any more: its rules end, and whoever looks sees both.
test_a_dead_feed_is_seen() {
	xc load vrx >/dev/null 2>&1
	config
	feed_begin
	with 198.51.100.1 0 >&7
	wait_for "the flow" listed 1
	assert_status 0 xc status
	! grep -q 'not fed' "$STATE/out" || fail "not fed"
	xc metrics | grep -q '^xdp_cuckoo_list_not_fed{name="default",list="flowspec"} 0$' || fail "metrics: not fed"
	exec 7>&-
	wait_for "the end of the feed" sh -c "'$TOOL' --state '$STATE/store' lists | grep -q '^flowspec .*for '"
	wait_for "the end of the rule" sh -c "! '$TOOL' --state '$STATE/store' test dst 198.51.100.1 src 192.0.2.1"
	assert_shows '^flowspec +0 ' xc lists
	assert_status 1 xc status
	assert_output '^not fed: +flowspec: for [0-9]*s'
	assert_output '^rules: +0'
	xc metrics >"$STATE/metrics"
	grep -q '^xdp_cuckoo_list_not_fed{name="default",list="flowspec"} 1$' "$STATE/metrics" || fail "metrics: fed"
	grep -q '^xdp_cuckoo_list_rules{name="default",list="flowspec"} 0$' "$STATE/metrics" || fail "metrics: ended rules"
	grep -q '^xdp_cuckoo_rules{name="default"} 0$' "$STATE/metrics" || fail "metrics: ended rules"
	feed_begin
	with 198.51.100.1 0 >&7
	wait_for "the flow" listed 1
	assert_status 0 xc status
	case_begin "a list by another name, silent from the first"
	flowspec --list other </dev/null >/dev/null 2>&1 || :
	assert_shows '^other ' xc lists
}

test_killed_readers_leave_nothing() {
	STALE_S=$((STALE_S * SLOWER))
	config
	xc load vrx >/dev/null
	case_begin "its child"
	feed_begin
	with 198.51.100.1 0 >&7
	with 198.51.100.2 0 >&7
	wait_for "the flows" listed 2
	kill -9 "$(cat "/proc/$FEEDER/task/$FEEDER/children")"
	status=0
	wait "$FEEDER" || status=$?
	assert_equal 3 "$status" "status"
	exec 7>&-
	case_begin "itself"
	feed_begin
	with 198.51.100.1 0 >&7
	with 198.51.100.2 0 >&7
	wait_for "the flows" judge drop 198.51.100.1 198.51.100.2
	start=$(now_ms)
	kill -9 "$FEEDER"
	wait "$FEEDER" || :
	exec 7>&-
	judge drop 198.51.100.1 198.51.100.2 || fail_by $((start + 1000 * STALE_S)) "the rules have gone at once"
	# What another run of it leaves is taken over, or ends.
	feed_begin
	with 198.51.100.1 0 >&7
	wait_for "the end of what is not announced any more" judge pass 198.51.100.2
	judge drop 198.51.100.1 || fail "not blocked after a restart"
	with 198.51.100.1 redirect >&7
	wait_for "the other action" judge pass 198.51.100.1
	exec 7>&-
	wait "$FEEDER" || :
	case_begin "changed while nobody read"
	feed_begin
	with 198.51.100.1 0 >&7
	wait_for "the flow" judge drop 198.51.100.1
	kill -9 "$FEEDER"
	wait "$FEEDER" || :
	exec 7>&-
	with 198.51.100.1 redirect | flowspec >/dev/null 2>&1 || :
	judge pass 198.51.100.1 || fail "blocked, though its action is another now"
}

# The reader of its lines takes what is there for whole lines. Half a line may be a rule without an end.
test_a_killed_printer_leaves_whole_lines() {
	config
	for last in $(seq 4); do
		printf '[{"nlri":{"value":[{"type":1,"value":{"prefix":"198.51.100.%s/32"}},{"type":3,"value":[{"op":129,"value":17}]},' "$last"
		printf '{"type":5,"value":[{"op":3,"value":1},{"op":197,"value":1000}]}]},'
		printf '"attrs":[{"type":16,"value":[{"type":128,"subtype":6,"rate":0}]}]}]\n'
	done >"$STATE/flows"
	mkfifo "$STATE/lines"
	exec 8<>"$STATE/lines"
	"$TOOL" flowspec - --print --config "$STATE/flowspec.conf" <"$STATE/flows" >"$STATE/lines" 2>"$STATE/printed.err" &
	printer=$!
	on_exit "kill -9 $printer 2>/dev/null; wait $printer 2>/dev/null"
	WAIT_LOG=$STATE/printed.err wait_for "a full pipe" grep -q pipe "/proc/$printer/wchan"
	kill -9 "$printer"
	timeout 1 cat <&8 >"$STATE/seen" || :
	[ "$(wc -l <"$STATE/seen")" -gt 100 ] || fail "no lines"
	assert_equal '' "$(tail -c 1 "$STATE/seen")" "the end of the last line"
}

test_limits() {
	config 'max-flows = 3' 'max-rules = 3'
	for last in 1 2 3 4; do
		with "198.51.100.$last" 0
	done >"$STATE/lines"
	assert_equal 3 "$(printed <"$STATE/lines" | grep -c add)" "flows"
	grep -q 'there are 3 flows already' "$STATE/printed.err" || fail "$(cat "$STATE/printed.err")"
	head -n 4 "$RECORDED" | tail -n 2 | printed >"$STATE/seen"
	assert_equal 2 "$(grep -c add "$STATE/seen")" "rules"
	grep -q 'more rules than max-rules allows, 3' "$STATE/printed.err" || fail "$(cat "$STATE/printed.err")"
	case_begin "a flow that is refused for want of room is taken when there is room"
	config 'max-flows = 3' 'own-prefixes = 198.51.100.0/24'
	{
		for last in 11 12 13 14; do
			with "198.51.100.$last" redirect
		done
		for last in 1 2 3 4 5; do
			with "198.51.100.$last" 0
		done
		with 198.51.100.4 0 # again
		withdrawn 198.51.100.2
		withdrawn 198.51.100.11
		with 198.51.100.5 redirect
		withdrawn 198.51.100.9 # never announced
	} | flowspec --print 2>"$STATE/printed.err" | sed 's/ timeout .*//' >"$STATE/seen"
	assert_equal "1 2 3 4" "$(sed -n 's/add dst 198.51.100.//p' "$STATE/seen" | xargs)" "flows"
	assert_equal "# flows 7 refused 4 unreadable 0" "$(grep '^#' "$STATE/seen" | tail -n 1)"
	case_begin "a peer's share"
	config 'max-flows = 4' 'max-flows-peer = 2'
	{
		for last in 1 2 3; do
			with "198.51.100.$last" 0 ',"neighbor-ip":"192.0.2.1"'
		done
		with 198.51.100.4 0 ',"neighbor-ip":"192.0.2.2"'
		withdrawn 198.51.100.1
		with 198.51.100.2 redirect ',"neighbor-ip":"192.0.2.1"'
		with 198.51.100.5 0 ',"neighbor-ip":"192.0.2.1"'
	} | printed >"$STATE/seen"
	assert_equal "1 2 4 5 3" "$(sed -n 's/add dst 198.51.100.//p' "$STATE/seen" | xargs)" "flows of two peers"
	grep -q '198.51.100.3/32: there are 2 flows of the peer 192.0.2.1 already, as many as max-flows-peer allows' \
		"$STATE/printed.err" || fail "$(cat "$STATE/printed.err")"
	case_begin "flows that two peers announce count for the peer whose route is the best"
	config 'max-flows = 5' 'max-flows-peer = 2'
	{
		for last in 1 2; do
			with "198.51.100.$last" 0 ',"neighbor-ip":"192.0.2.1"'
		done
		for last in 3 1 2 4; do
			with "198.51.100.$last" 0 ',"neighbor-ip":"192.0.2.2"'
		done
		with 198.51.100.5 0 ',"neighbor-ip":"192.0.2.1"'
	} | printed >"$STATE/seen"
	assert_equal "1 2 3 5" "$(sed -n 's/add dst 198.51.100.//p' "$STATE/seen" | xargs)" "flows of two peers"
	assert_equal "" "$(sed -n 's/del dst 198.51.100.[1-3]$/&/p' "$STATE/seen")" "flows that end"
	grep -q '198.51.100.4/32: there are 3 flows of the peer 192.0.2.2 already' "$STATE/printed.err" ||
		fail "$(cat "$STATE/printed.err")"
	case_begin "a host's own addresses"
	config 'own-prefixes = any'
	xc load vrx >/dev/null
	{ with 10.99.0.2 0; with 198.51.100.1 0; } | flowspec >"$STATE/out" 2>"$STATE/err" || :
	assert_error '^note: .*10.99.0.2.* would block .*; it is left out; first: xdp-cuckoo add '
	assert_shows '^dst 198.51.100.1 ' xc list
	assert_equal 1 "$(wc -l <"$STATE/out")" "rules"
	case_begin "many refused flows"
	for last in $(seq 100); do
		with "198.51.100.$last" redirect
	done | printed >/dev/null
	assert_equal 10 "$(grep -c 'refused flow' "$STATE/printed.err")" "lines about refused flows"
}

# One peer announces flows of all kinds of rule. The operator's own rules, of other kinds, still find room.
test_kinds_of_rule_are_left_for_others() {
	config 'own-prefixes = any'
	xc load vrx >/dev/null
	feed_begin
	PEER=192.0.2.7
	for mask in $(seq 60); do
		bgp "$(to 203.0.113.7),{\"type\":9,\"value\":[{\"op\":129,\"value\":$mask}]}"
	done >"$STATE/lines"
	cat "$STATE/lines" >&7
	wait_for "the flows" sh -c "'$TOOL' --state '$STATE/store' lists --json | jq -e '.[0].flows.announced == 60'"
	xc lists --json | jq -c '.[0].flows | [.held, .refused]' >"$STATE/seen"
	for rule in 'src 198.51.100.0/24 proto tcp' 'src 198.51.100.1 dport 99' 'proto tcp dst 198.51.100.1 flags syn' 'dst 198.51.100.1 fragment later'; do
		# shellcheck disable=SC2086 # words
		assert_status 0 xc add $rule
	done
	grep -q '^\[[1-9][0-9]*,{"kinds":[0-9]*}\]$' "$STATE/seen" || fail "no flow is refused for this: $(cat "$STATE/seen")"
	case_begin "there is room again"
	sed 's/}]$/,"withdrawal":true}]/' "$STATE/lines" >&7
	bgp "{\"type\":2,\"value\":{\"prefix\":\"192.0.2.0/28\"}}" >&7
	wait_for "the flow" sh -c "'$TOOL' --state '$STATE/store' lists --json | jq -e '.[0].flows | .announced == 1 and .held == 1'"
}

# What one peer leaves of the kinds of rule, others can use: half of the rest each. Kinds that are there cost nobody anything.
test_kinds_of_several_peers() {
	# held PEER: how many flows of the peer are held.
	held() {
		xc lists flows --json | jq -r ".[] | select(.peer == \"$1\" and .refused == null) | .peer" | wc -l
	}
	config 'own-prefixes = any'
	xc load vrx >/dev/null
	feed_begin
	for PEER in 192.0.2.7 192.0.2.8 192.0.2.9; do
		for mask in $(seq 60); do
			bgp "$(to "203.0.113.${PEER##*.}"),{\"type\":9,\"value\":[{\"op\":129,\"value\":$mask}]}"
		done >"$STATE/lines.$PEER"
	done
	cat "$STATE/lines.192.0.2.7" >&7
	wait_for "the flows" sh -c "'$TOOL' --state '$STATE/store' lists --json | jq -e '.[0].flows.announced == 60'"
	most=$(held 192.0.2.7)
	{ [ "$most" -ge 10 ] && [ "$most" -le 28 ]; } || fail "one peer holds $most of 60 flows"
	grep -q "the peer 192.0.2.7 brings new kinds of rule .*, and may have $most: half of the room" "$STATE/feed.err" ||
		fail "the share is not told: $(tail -n 3 "$STATE/feed.err")"
	case_begin "the same kinds, and then new ones"
	cat "$STATE/lines.192.0.2.8" >&7
	wait_for "the flows" sh -c "'$TOOL' --state '$STATE/store' lists --json | jq -e '.[0].flows.announced == 120'"
	second=$(held 192.0.2.8)
	{ [ "$second" -gt "$most" ] && [ "$second" -le $((most + (most + 1) / 2)) ]; } ||
		fail "the first peer holds $most flows, and the second $second"
	PEER=192.0.2.10
	for port in 5 6; do
		bgp "$(to 203.0.113.10),{\"type\":3,\"value\":[{\"op\":129,\"value\":17}]},{\"type\":$port,\"value\":[{\"op\":129,\"value\":7}]}"
	done >&7
	wait_for "new kinds of another peer" sh -c "'$TOOL' --state '$STATE/store' lists flows --json |
		jq -e '[.[] | select(.refused == null and (.flow | test(\"port =7\")))] | length == 2'"
	case_begin "the first peer withdraws" # first what waits: else that would come in
	sed 's/}]$/,"withdrawal":true}]/' "$STATE/lines.192.0.2.7" | tac >&7
	wait_for "the flows" sh -c "'$TOOL' --state '$STATE/store' lists --json | jq -e '.[0].flows.announced == 62'"
	cat "$STATE/lines.192.0.2.9" >&7
	wait_for "the flows" sh -c "'$TOOL' --state '$STATE/store' lists --json | jq -e '.[0].flows.announced == 122'"
	third=$(held 192.0.2.9)
	{ [ "$third" -ge "$second" ] && [ "$third" -lt 60 ]; } || fail "the second peer holds $second flows, and the third $third"
}

# There are 1,024 rates. A peer that announces more leaves some for other peers, and for the operator.
test_rates_are_left_for_others() {
	# rated PEER COUNT: its flows, each with a rate.
	rated() {
		PEER=$1
		bgp "$(to 10.1.0.0)" | sed 's/"rate":0/"rate":1000/' | awk -v n="${1##*.}" -v count="$2" '{
			for (i = 0; i < count; i++) { line = $0; sub("10.1.0.0", "10." n "." int(i / 250) "." i % 250, line); print line } }'
	}
	config 'own-prefixes = any'
	xc load vrx >/dev/null
	feed_begin
	rated 192.0.2.7 1100 >&7
	wait_for "the flows" sh -c "'$TOOL' --state '$STATE/store' lists --json | jq -e '.[0].flows.announced == 1100'"
	assert_equal '[480,{"rates":620}]' "$(xc lists --json | jq -c '.[0].flows | [.held, .refused]')" "one peer"
	grep -q 'the peer may have 480 flows with a rate: half of the room' "$STATE/feed.err" || fail "$(cat "$STATE/feed.err")"
	rated 192.0.2.8 300 >&7
	rated 192.0.2.7 100 | sed 's/}]$/,"withdrawal":true}]/' >&7
	wait_for "the flows" sh -c "'$TOOL' --state '$STATE/store' lists --json |
		jq -e '.[0].flows | [.held, .refused.rates] == [670, 630]'"
	assert_status 0 xc add dst 198.51.100.1 rate 5/s
}

# A session flaps 250 times with 1,000 flows: neither process grows. Buffers may still double once or twice after 50 flaps;
# 21 bytes that stay of each of the 200,000 flows after these are seen: less than the least allocation.
test_flaps_take_no_memory() {
	[ -z "$REPORTS" ] || skip "sanitizers keep freed memory"
	STALE_S=600
	config 'own-prefixes = any'
	xc load vrx >/dev/null
	feed_begin
	PEER=192.0.2.7
	bgp "$(to 10.1.0.0)" >"$STATE/flow"
	awk '{ for (i = 0; i < 1000; i++) { line = $0; sub("10.1.0.0", "10.1." int(i / 250) "." i % 250, line); print line } }' \
		"$STATE/flow" >"$STATE/up"
	{ cat "$STATE/up"; sed 's/}]$/,"withdrawal":true}]/' "$STATE/up"; } >"$STATE/flap"
	for flaps in 50 200; do
		for _ in $(seq "$flaps"); do cat "$STATE/flap"; done >&7
		bgp "$(to "10.2.0.$((flaps / 100))")" >&7
		wait_for "$flaps flaps" sh -c "'$TOOL' --state '$STATE/store' lists flows | grep -q 10.2.0.$((flaps / 100))/32"
		assert_equal "$((flaps / 200 + 1))" "$(xc list --list flowspec | wc -l)" "rules"
		resident "$FEEDER" >"$STATE/keeper.$flaps"
		resident "$(children "$FEEDER")" >"$STATE/reader.$flaps"
	done
	note "KiB after 50 flaps and after 250: keeper $(cat "$STATE/keeper.50") $(cat "$STATE/keeper.200")," \
		"reader $(cat "$STATE/reader.50") $(cat "$STATE/reader.200")"
	for process in reader keeper; do
		[ "$(cat "$STATE/$process.200")" -le "$(($(cat "$STATE/$process.50") + 4096))" ] ||
			fail "the $process grows from $(cat "$STATE/$process.50") to $(cat "$STATE/$process.200") KiB"
	done
	kill "$FEEDER"
}

# resident PROCESS: its memory in KiB, without what the store maps.
resident() {
	awk '/^RssAnon:/ { print $2 }' "/proc/${1%% *}/status"
}

# Nobody reads standard error: the rules come nevertheless, others can write, and it can be ended.
test_a_full_pipe_of_notes() {
	config 'own-prefixes = any'
	xc load vrx >/dev/null
	mkfifo "$STATE/feed" "$STATE/notes"
	exec 8<>"$STATE/notes"
	timeout 1 cat /dev/zero >&8 || :
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" flowspec - --config "$STATE/flowspec.conf" \
		<"$STATE/feed" 2>"$STATE/notes" &
	FEEDER=$!
	on_exit "kill -9 $FEEDER 2>/dev/null; wait $FEEDER 2>/dev/null"
	exec 7>"$STATE/feed"
	{ echo nonsense; with 10.99.0.2 0; with 198.51.100.1 0; } >&7
	wait_for "the flow" listed 1
	with 198.51.100.2 0 >&7
	wait_for "the next flow" listed 2
	assert_status 0 timeout 10 nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" add src 192.0.2.9
	kill "$FEEDER"
	wait_for "its end" sh -c "! kill -0 $FEEDER 2>/dev/null"
	wait "$FEEDER" || fail "status $?"
}

# A group is cut at 32,768 lines. The other lines are at hand, and need no more input.
test_more_than_a_group() {
	STALE_S=600
	config
	xc load vrx >/dev/null
	rm -f "$STATE/feed"
	mkfifo "$STATE/feed"
	nsenter --net="/run/netns/$RX" env LD_PRELOAD="$PWD/$HELPERS/slow_poll.so" "$TOOL" --state "$STATE/store" flowspec - \
		--config "$STATE/flowspec.conf" <"$STATE/feed" >"$STATE/feed.out" 2>"$STATE/feed.err" &
	FEEDER=$!
	on_exit "kill $FEEDER 2>/dev/null; wait $FEEDER 2>/dev/null"
	exec 7>"$STATE/feed"
	WAIT_LOG=$STATE/feed.err
	for last in $(seq 40); do
		printf '[{"nlri":{"value":[{"type":1,"value":{"prefix":"198.51.100.%s/32"}},{"type":3,"value":[{"op":129,"value":17}]},' "$last"
		printf '{"type":5,"value":[{"op":3,"value":1},{"op":197,"value":1000}]}]},'
		printf '"attrs":[{"type":16,"value":[{"type":128,"subtype":6,"rate":0}]}]}]\n'
	done | tr -d '\n' | sed 's/\]\[/,/g; s/$/\n/' >&7
	wait_for "40,000 rules" has_rules 40000
	kill "$FEEDER"
}

has_rules() {
	xc lists | grep -q "^flowspec *$1 "
}

# An error that no line is to blame for ends the group, and is tried again when the rules are renewed.
test_a_full_disk() {
	config
	mkdir -p "$STATE/store"
	mount -t tmpfs -o size=3m none "$STATE/store" 2>/dev/null || skip "no tmpfs may be mounted here"
	on_exit "umount -l '$STATE/store'"
	xc load vrx >/dev/null
	head -c 4m /dev/zero >"$STATE/store/full" 2>/dev/null || :
	feed_begin
	for last in $(seq 5000); do
		printf '[{"nlri":{"value":[{"type":1,"value":{"prefix":"198.51.100.%s/32"}},{"type":3,"value":[{"op":129,"value":17}]},' "$((last % 250))"
		printf '{"type":5,"value":[{"op":129,"value":%s}]}]},' "$last"
		printf '"attrs":[{"type":16,"value":[{"type":128,"subtype":6,"rate":0}]}]}]\n'
	done >&7
	# Some groups: of each at most ten errors are named.
	wait_for "the errors" sh -c "[ \"\$(grep -c 'No space left' '$STATE/feed.err')\" -ge 25 ]"
	! grep 'refused [0-9]\{3,\} more rules' "$STATE/feed.err" || fail "each line was tried alone"
	rm "$STATE/store/full"
	wait_for "the rules" has_rules 5000
	kill "$FEEDER"
}

# flows FIELD...: these of each flow of `lists flows`, which are those of its JSON, in lines, sorted.
flows() {
	xc lists flows --json >"$STATE/flows.json" || return
	jq -r "map(select(.flow != null)) | sort_by(.flow)[] | [$(echo "$@" | sed 's/[a-z]*/.&/g; s/ /, /g')] | map(. // \"-\") | join(\" \")" \
		"$STATE/flows.json"
}

# flows_are FIELD... <EXPECTED: waits for these lines.
flows_are() {
	cat >"$STATE/expected"
	(flows "$@" | diff "$STATE/expected" - >"$STATE/differ") 2>/dev/null || {
		WAIT_LOG=$STATE/differ
		wait_for "the flows: $(cat "$STATE/expected")" flows_equal "$@"
	}
}

flows_equal() {
	flows "$@" | diff "$STATE/expected" - >"$STATE/differ"
}

# bgp COMPONENT...: a drop of a flow with these components of JSON, by the peer $PEER.
bgp() {
	printf '[{"nlri":{"value":[%s]},"attrs":[{"type":16,"value":[{"type":128,"subtype":6,"rate":0}]}],"neighbor-ip":"%s"}]\n' "$1" "$PEER"
}

# to ADDRESS: its component.
to() {
	printf '{"type":1,"value":{"prefix":"%s/32"}}' "$1"
}

test_what_becomes_of_each_flow_is_seen() {
	config 'own-prefixes = 198.51.100.0/24 10.99.0.0/24' 'max-flows-peer = 4'
	xc load vrx >/dev/null
	assert_fails 1 "no flows are known of a list 'flowspec'" xc lists flows
	feed_begin
	PEER=192.0.2.7
	{
		bgp "$(to 198.51.100.1)"
		bgp "$(to 198.51.100.2),{\"type\":3,\"value\":[{\"op\":129,\"value\":17}]},{\"type\":6,\"value\":[{\"op\":3,\"value\":1},{\"op\":197,\"value\":3}]}"
		bgp "$(to 10.99.0.2)" # would lock this host out
		bgp "$(to 203.0.113.1)"
		bgp "$(to 198.51.100.3),{\"type\":11,\"value\":[{\"op\":129,\"value\":10}]}"
		bgp "$(to 198.51.100.4),{\"type\":5,\"value\":[{\"op\":1,\"value\":1}]},{\"type\":3,\"value\":[{\"op\":129,\"value\":17}]}"
		bgp "$(to 198.51.100.5)"
		bgp "$(to 198.51.100.6)" # the fifth with rules
		PEER=192.0.2.8 bgp '{"type":3,"value":[{"op":129,"value":17}]}'
		with 198.51.100.9 redirect
		printf '[{"nlri":{"prefix":"198.51.100.5/32"},"attrs":[{"type":8,"communities":[4294902426]}],"neighbor-ip":"192.0.2.8"}]\n'
	} >&7
	flows_are peer rules refused flow <<-'END'
		192.0.2.8 1 - blackhole 198.51.100.5/32
		192.0.2.7 1 guard destination 10.99.0.2/32
		192.0.2.7 1 - destination 198.51.100.1/32
		192.0.2.7 3 - destination 198.51.100.2/32 protocol =17 source-port >=1&<=3
		- 0 component destination 198.51.100.3/32 dscp =10
		- 0 malformed destination 198.51.100.4/32 destination-port =1 protocol =17
		192.0.2.7 1 - destination 198.51.100.5/32
		192.0.2.7 0 max-flows-peer destination 198.51.100.6/32
		- 0 action destination 198.51.100.9/32
		- 0 own-prefixes destination 203.0.113.1/32
		- 0 too-wide protocol =17
	END
	case_begin "sums"
	xc lists --json | jq -S -c '.[0].flows | del(.at)' >"$STATE/sums"
	assert_equal "$(tr -d '\n\t' <<-'END'
		{"announced":11,"held":4,"of_unnamed_peers":0,"peers":[{"held":4,"peer":"192.0.2.7","session":"unknown","since":null},
		{"held":1,"peer":"192.0.2.8","session":"unknown","since":null}],
		"refused":{"action":1,"component":1,"guard":1,"malformed":1,"max-flows-peer":1,"own-prefixes":1,"too-wide":1},
		"sessions":{"down":0,"unknown":2,"up":0}}
	END
	)" "$(cat "$STATE/sums")"
	assert_shows '^flows: +flowspec: 4 of 11 are held; refused: 1 component, 1 too-wide, 1 own-prefixes, 1 malformed, 1 action, 1 max-flows-peer, 1 guard$' xc status
	xc metrics >"$STATE/metrics"
	assert_shows '^xdp_cuckoo_list_held_flows[{]name="default",list="flowspec"[}] 4$' cat "$STATE/metrics"
	assert_shows '^xdp_cuckoo_list_flows_refused_for[{]name="default",list="flowspec",reason="guard"[}] 1$' cat "$STATE/metrics"
	assert_shows '^xdp_cuckoo_list_flows_refused_for[{]name="default",list="flowspec",reason="max-flows"[}] 0$' cat "$STATE/metrics"
	! grep '^xdp_cuckoo_list_session_' "$STATE/metrics" || fail "it is not known"
	assert_shows '^xdp_cuckoo_list_sessions.*state="unknown"[}] 2$' cat "$STATE/metrics"
	case_begin "packets"
	judge drop 198.51.100.1 198.51.100.1 198.51.100.5
	for port in 1 2 2 3; do
		echo "drop it proto udp src 192.0.2.1 dst 198.51.100.2 sport $port dport 9"
	done | traffic >"$STATE/judged" 2>&1 || fail "$(cat "$STATE/judged")"
	flows packets bytes flow | grep '^[1-9]' >"$STATE/seen"
	diff - "$STATE/seen" <<-'END' || fail "other counts"
		1 58 blackhole 198.51.100.5/32
		2 116 destination 198.51.100.1/32
		4 232 destination 198.51.100.2/32 protocol =17 source-port >=1&<=3
		1 58 destination 198.51.100.5/32
	END
	case_begin "withdrawn and announced again; another flow keeps the rule"
	PEER=192.0.2.7
	bgp "$(to 198.51.100.1)" | sed 's/}]$/,"withdrawal":true}]/' >&7
	bgp "$(to 198.51.100.5)" | sed 's/}]$/,"withdrawal":true}]/' >&7
	wait_for "the withdrawal" sh -c "! '$TOOL' --state '$STATE/store' lists flows | grep -q 198.51.100.1/32"
	flows packets flow >"$STATE/seen"
	! grep 'destination 198.51.100.[15]/' "$STATE/seen" || fail "it is not announced"
	grep -qx '1 blackhole 198.51.100.5/32' "$STATE/seen" || fail "$(cat "$STATE/seen")"
	# There is room now for the flow that waits.
	grep -qx '0 destination 198.51.100.6/32' "$STATE/seen" || fail "$(cat "$STATE/seen")"
	bgp "$(to 198.51.100.1)" >&7
	wait_for "the flow" sh -c "'$TOOL' --state '$STATE/store' lists flows | grep -q 198.51.100.1/32"
	judge drop 198.51.100.1
	flows packets flow | grep -qx '1 destination 198.51.100.1/32' || fail "it counts on: $(flows packets flow)"
	case_begin "without counts by rule"
	xc unload vrx >/dev/null
	xc load vrx --no-counters >/dev/null
	flows packets bytes flow | grep -qx -- '- - destination 198.51.100.1/32' || fail "$(flows packets flow)"
	assert_shows '^unknown +unknown +1 .* destination 198.51.100.1/32$' xc lists flows
	case_begin "the feed ends"
	exec 7>&-
	wait_for "silence" sh -c "'$TOOL' --state '$STATE/store' lists | grep -q '^flowspec .*for '"
	assert_fails 1 "no flows are known of a list 'flowspec'" xc lists flows
	assert_prints null sh -c "'$TOOL' --state '$STATE/store' lists --json | jq .[0].flows"
	xc metrics >"$STATE/metrics"
	! grep '^xdp_cuckoo_list_held' "$STATE/metrics" || fail "they are not known"
}

# Flows can be different and match the same packets. Neither rate may outlast its flow.
test_two_rates_of_one_rule() {
	rated() {
		printf '[{"nlri":{"value":[%s,%s]},"attrs":[{"type":16,"value":[{"type":128,"subtype":6,"rate":%s}]}]%s}]\n' \
			"$(to 198.51.100.1)" "$1" "$2" "${3:-}"
	}
	one='{"type":3,"value":[{"op":129,"value":17}]}'
	same='{"type":3,"value":[{"op":3,"value":17},{"op":197,"value":17}]}'
	config
	xc load vrx >/dev/null
	feed_begin
	{
		rated "$one" 1000
		rated "$same" 2000
	} >&7
	flows_are rules refused flow <<-'END'
		1 - destination 198.51.100.1/32 protocol =17
		0 other-rate destination 198.51.100.1/32 protocol >=17&<=17
	END
	assert_shows '^proto udp dst 198.51.100.1 rate 8kbit/s timeout ' xc list --list flowspec
	case_begin "a flow may change its own rate"
	rated "$one" 500 >&7
	wait_for "the rate" sh -c "'$TOOL' --state '$STATE/store' list --list flowspec | grep -q 'rate 4kbit/s '"
	case_begin "the other flow comes into force"
	rated "$one" 500 ',"withdrawal":true' >&7
	wait_for "the rate" sh -c "'$TOOL' --state '$STATE/store' list --list flowspec | grep -q 'rate 16kbit/s '"
	exec 7>&-
}

# What flowspec knew is not said of a list that another source fills now.
# The disk is slow. Commands do not wait for the report, and the report says how old it is.
test_a_report_holds_nobody_up() {
	STALE_S=600
	config
	xc load vrx >/dev/null
	FEED_WITH="env LD_PRELOAD=$PWD/$HELPERS/held_sync.so HELD_FILE=/flows- HELD_WHILE=$STATE/held"
	feed_begin
	with 198.51.100.1 0 >&7
	wait_for "a report" sh -c "'$TOOL' --state '$STATE/store' lists flows | grep -q 198.51.100.1/32"
	touch "$STATE/held"
	with 198.51.100.2 0 >&7
	wait_for "the disk" [ -e "$STATE/held.now" ]
	listed 2 || fail "the report comes before its rules"
	nsenter --net="/run/netns/$RX" timeout 10 "$TOOL" --state "$STATE/store" add src 192.0.2.9 >"$STATE/added" 2>&1 ||
		fail "waits for the report: $(cat "$STATE/added")"
	xc lists flows | grep 198.51.100.2/32 && fail "the report is not written yet"
	sed -i '1s/.*/flows 1000000000/' "$STATE/store/default/flows-flowspec"
	assert_shows '^flows: .*flowspec: 1 of 1 are held; [0-9]* s ago: flowspec could not write it since$' xc status
	rm "$STATE/held"
	wait_for "the report" sh -c "'$TOOL' --state '$STATE/store' lists flows | grep -q 198.51.100.2/32"
	assert_shows '^flows: .*flowspec: 2 of 2 are held$' xc status
	exec 7>&-
	unset FEED_WITH
}

test_a_list_that_is_filled_otherwise() {
	config
	xc load vrx >/dev/null
	feed_begin
	with 198.51.100.1 0 >&7
	wait_for "the report" sh -c "'$TOOL' --state '$STATE/store' lists flows | grep -q 198.51.100.1/32"
	exec 7>&-
	wait "$FEEDER" || :
	echo 192.0.2.1 | xc import - --list flowspec >/dev/null
	assert_fails 1 "no flows are known of a list 'flowspec'" xc lists flows
	xc metrics >"$STATE/metrics"
	! grep '^xdp_cuckoo_list_held' "$STATE/metrics" || fail "the list has no flows"
	xc status >"$STATE/status"
	! grep '^flows:' "$STATE/status" || fail "the list has no flows"
}

# sessions_are N: the metrics know N sessions.
sessions_are() {
	[ "$(xc metrics | grep -c '^xdp_cuckoo_list_session_up')" -eq "$1" ]
}

# `gobgp neighbor` among the packets.
test_sessions_are_seen() {
	STALE_S=60 # each line comes once
	config 'own-prefixes = 198.51.100.0/24' 'max-flows-peer = 50'
	xc load vrx >/dev/null
	mkfifo "$STATE/feed"
	nsenter --net="/run/netns/$RX" $PYTHON tests/helpers/seqpacket.py feed "$TOOL" --state "$STATE/store" flowspec - \
		--config "$STATE/flowspec.conf" <"$STATE/feed" 2>"$STATE/feed.err" &
	FEEDER=$!
	on_exit "kill $FEEDER 2>/dev/null; wait $FEEDER 2>/dev/null"
	exec 7>"$STATE/feed"
	WAIT_LOG=$STATE/feed.err
	head='Peer            AS     Up/Down State       |#Received  Accepted'
	{
		text '[destination: 198.51.100.1/32]' '{Extcomms: [discard]}'
		echo "$head"
		echo '10.99.0.1    65001    00:01:07 Establ      |        1         1'
		echo '2001:db8::1  65001 1d 00:00:09 Active      |        0         0'
		echo 'fe80::1%eth0 65001       never Idle(Admin) |        0         0'
	} >&7
	wait_for "the sessions" sh -c "'$TOOL' --state '$STATE/store' lists --json | jq -e '.[0].flows.peers | length == 3'"
	now=$(date +%s)
	xc lists --json | jq -r '.[0].flows.peers[] | "\(.peer) \(.session) \(if .since then '"$now"' - (.since | fromdate) else null end)"' |
		sort >"$STATE/seen"
	awk '!($1 == "10.99.0.1" && $2 == "up" && $3 >= 66 && $3 < 90) && !($1 == "2001:db8::1" && $2 == "down" && $3 > 86405 && $3 < 86430) &&
		$0 != "fe80::1%eth0 down null" { exit 1 }' "$STATE/seen" || fail "$(cat "$STATE/seen")"
	assert_shows '^sessions down:.* flowspec: 2001:db8::1 since 20' xc status
	assert_output '^sessions down:.*flowspec: fe80::1%eth0, was never up'
	xc metrics >"$STATE/metrics"
	grep -q '^xdp_cuckoo_list_session_up{name="default",list="flowspec",peer="10.99.0.1"} 1$' "$STATE/metrics" || fail "not up"
	grep -q '^xdp_cuckoo_list_session_up{name="default",list="flowspec",peer="2001:db8::1"} 0$' "$STATE/metrics" || fail "not down"
	assert_shows 'flowspec: 1 flows, 0 refused, 0 unreadable$' xc lists
	case_begin "a peer is no longer configured"
	for _ in 1 2 3; do
		printf '%s\n%s\n' "$head" '10.99.0.1    65001    00:01:08 Establ      |        1         1'
	done >&7
	text '[destination: 198.51.100.2/32]' '{Extcomms: [discard]}' >&7
	wait_for "unknown" sessions_are 1
	assert_prints '{"down":0,"unknown":0,"up":1}' sh -c "'$TOOL' --state '$STATE/store' lists --json | jq -cS '.[0].flows.sessions'"
	assert_prints 2 sh -c "'$TOOL' --state '$STATE/store' lists --json | jq '.[0].flows.of_unnamed_peers'"
	grep -q "does not name the peers of flows: max-flows-peer limits all" "$STATE/feed.err" || fail "max-flows-peer is not explained"
	case_begin "one of two is down"
	printf '%s\n' "$head" '10.99.0.1    65001    00:01:08 Establ      |  1   1' '10.99.0.9 65001 00:00:01 Active |  0   0' >&7
	wait_for "the other" sessions_are 2
	assert_status 0 xc status
	assert_output '^sessions down:.* flowspec: 10.99.0.9 since 20'
	case_begin "all are down, and more than have room"
	{
		printf '%s\n' "$head" '10.99.0.1    65001    00:00:01 Active      |  1   1'
		for number in $(seq 70); do
			echo "10.98.0.$number 65001 00:00:01 Active | 0 0"
		done
	} >&7
	wait_for "64 sessions" sessions_are 64
	assert_status 1 xc status
	assert_output '^not fed: +flowspec: no BGP session is up$'
	assert_output 'flowspec: 8 more$'
	xc metrics >"$STATE/metrics"
	grep -q '^xdp_cuckoo_list_sessions{name="default",list="flowspec",state="down"} 72$' "$STATE/metrics" || fail "$(grep sessions "$STATE/metrics")"
	case_begin "one of many is up: those that are down are named first"
	{
		printf '%s\n' "$head" '10.99.0.1    65001    00:00:01 Establ      |  1   1'
		for number in $(seq 70); do
			echo "10.98.0.$number 65001 00:00:02 Establ | 0 0"
		done
		printf '%s\n' '192.0.2.77 65001 00:00:01 Active | 0 0' "$head"
		printf '%s\n' '10.99.0.1    65001    00:00:01 Establ      |  1   1'
		for number in $(seq 70); do
			echo "10.98.0.$number 65001 00:00:02 Establ | 0 0"
		done
		echo '192.0.2.77 65001 00:00:01 Active | 0 0'
	} >&7
	wait_for "the one" sh -c "'$TOOL' --state '$STATE/store' status | grep -q '^sessions down:.* flowspec: 192.0.2.77 since'"
	assert_status 0 xc status
	exec 7>&-
}

# A trial: the rules only count.
test_on_trial() {
	config 'action = monitor'
	xc load vrx >/dev/null
	feed_begin
	with 198.51.100.1 0 >&7
	wait_for "the flow" listed 1
	judge pass 198.51.100.1 || fail "dropped on trial"
	assert_shows '^dst 198.51.100.1 action monitor ' xc list --list flowspec
	assert_shows '^ *1 +58 +1 +monitor +flowspec$' xc stats --by list
	assert_status 0 xc lists delete flowspec
	exec 7>&-
	wait "$FEEDER" || :
}

# A line that is not what gobgp prints costs only itself.
test_bad_input() {
	config
	good=$(with 198.51.100.1 0)
	while read -r line; do
		case_begin "$line"
		printf '%s\n%s\n%s\n' "$good" "$line" "$(with 198.51.100.2 0)" | printed >"$STATE/seen"
		assert_equal "add dst 198.51.100.1${NEWLINE}add dst 198.51.100.2" "$(cat "$STATE/seen")"
		assert_equal 1 "$(grep -c '^note: unreadable: ' "$STATE/printed.err")" "reasons"
	done <<-'END'

		x
		2026-11-24T13:21:09Z [ROUTE] [destination: 198.51.100.9/32] via fictitious aspath [65001] attrs [{Extcomms: [discard]}]
		null
		[1]
		[{"nlri":1}]
		[{}]
		[{"nlri":{}},
		[{"nlri":{}}}
		[{"nlri":{},"nlri":{}}]
		[{"nlri":{}}] [{"nlri":{}}]
		{"error":"rpc error: code = Unavailable desc = transport is closing"}
	END
	case_begin "what is not known is skipped"
	printf '%s\n' '[{"nlri":{"new":1},"attrs":null,"x":[1e300,123456789012345678901234567890,"\u0000"]}]' \
		'[{"nlri":{"value":[{"type":1,"value":{"prefix":"198.51.100.3/32 dport 1"}}]}}]' \
		'[{"nlri":{"value":[{"type":-1},{"type":1e9},3]}}]' '[]' "$good" | printed >"$STATE/seen"
	assert_equal "add dst 198.51.100.1" "$(cat "$STATE/seen")"
	case_begin "endless"
	# Memory is limited to what one route may need. Sanitizers need more, and time, in which the rule is renewed.
	(
		# shellcheck disable=SC3045 # dash has it
		[ -n "$REPORTS" ] || ulimit -v 65536
		{ echo "$good"; printf '[{"nlri":"'; head -c 100000000 /dev/zero | tr '\0' a; } | printed | uniq >"$STATE/seen"
	)
	assert_equal "add dst 198.51.100.1" "$(sort -u "$STATE/seen")" # it may have been renewed
	grep -q 'has a route of more than 256 KiB' "$STATE/printed.err" || fail "$(cat "$STATE/printed.err")"
	case_begin "one line of 100 MB"
	route=$(with 198.51.100.1 redirect ',"x":"'"$(head -c 100000 /dev/zero | tr '\0' a)"'"')
	route=${route#[}
	route=${route%]}
	(
		# shellcheck disable=SC3045 # dash has it
		[ -n "$REPORTS" ] || ulimit -v 65536
		{
			printf '[%s' "$route"
			yes ",$route" | head -n 1000 | tr -d '\n'
			printf ']\n%s\n' "$good"
		} | printed >"$STATE/seen"
	)
	assert_equal "add dst 198.51.100.1" "$(tail -n 1 "$STATE/seen")"
	case_begin "usage"
	assert_fails 3 'cannot connect to lines: ' xc flowspec lines --config "$STATE/flowspec.conf"
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/flowspec.conf"
	assert_fails 2 'no section \[flowspec\]' flowspec
	config 'own-prefixes = 198.51.100.0/24 x'
	assert_fails 2 "own-prefixes: 'x' is no prefix" flowspec
	config 'action = pass'
	assert_fails 2 'must be drop or monitor' flowspec
}

# ---- with gobgpd ----

# daemon NAMESPACE AS ADDRESS PEER PEER_AS [OPTION]: $DAEMON is its number.
daemon() {
	{
		printf '[global.config]\nas = %s\nrouter-id = "%s"\n' "$2" "$3"
		printf '[[neighbors]]\n[neighbors.config]\nneighbor-address = "%s"\npeer-as = %s\n' "$4" "$5"
		printf '[neighbors.timers.config]\nhold-time = 3\nkeepalive-interval = 1\nconnect-retry = 5\n'
		printf 'idle-hold-time-after-reset = 1\n'
		printf '[neighbors.graceful-restart.config]\nenabled = true\nrestart-time = 4\n'
		for family in ipv4-unicast ipv6-unicast ipv4-flowspec ipv6-flowspec; do
			printf '[[neighbors.afi-safis]]\n[neighbors.afi-safis.config]\nafi-safi-name = "%s"\n' "$family"
			printf '[neighbors.afi-safis.mp-graceful-restart.config]\nenabled = true\n'
		done
	} >"$STATE/$2.conf"
	nsenter --net="/run/netns/$1" "$GOBGP/gobgpd" -f "$STATE/$2.conf" --log-plain >"$STATE/$2.log" 2>&1 &
	DAEMON=$!
	on_exit "kill -9 $DAEMON 2>/dev/null; wait $DAEMON 2>/dev/null"
}

router_begin() {
	daemon "$TX" 65001 10.99.0.1 10.99.0.2 65002
	ROUTER=$DAEMON
}

local_begin() {
	daemon "$RX" 65002 10.99.0.2 10.99.0.1 65001
	LOCAL=$DAEMON
	wait_for "the daemon" gobgp_in "$RX" global
}

is_up() {
	gobgp_in "$RX" neighbor | grep -q Establ
}

# announce FAMILY WORD...: by the router. Also `del` in place of `add`.
announce() {
	gobgp_in "$TX" global rib -a "$@" >"$STATE/announce" 2>&1 || fail "gobgp: $(head -n 1 "$STATE/announce")"
}

# follow: as the units start it; $PIPE is the number of the tool.
follow() {
	[ -S "$STATE/gobgp" ] || serve_gobgp
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" flowspec "$STATE/gobgp" --config "$STATE/flowspec.conf" \
		>"$STATE/follow.out" 2>>"$STATE/follow.err" &
	PIPE=$!
	on_exit "kill $PIPE 2>/dev/null; wait $PIPE 2>/dev/null"
	WAIT_LOG=$STATE/follow.err
}

# v6 VERDICT ADDRESS
v6() {
	echo "$1 it proto udp src 2001:db8:1::1 dst $2 sport 1 dport 53" | traffic >"$STATE/judged" 2>&1
}

# session_is STATE: of the router.
session_is() {
	xc lists --json | jq -e ".[0].flows.peers == [.[0].flows.peers[] | select(.peer == \"10.99.0.1\" and .session == \"$1\")]" >/dev/null &&
		xc lists --json | jq -e '.[0].flows.peers[0].since' >/dev/null
}

test_gobgp_announces() {
	needs_gobgp
	config
	xc load vrx >/dev/null
	router_begin
	local_begin
	wait_for "the session" is_up
	announce ipv4-flowspec add match destination 198.51.100.1/32 'then' discard
	follow
	wait_for "a flow of the snapshot" judge drop 198.51.100.1
	wait_for "the state of the session" session_is up
	announce ipv4-flowspec add match destination 198.51.100.2/32 protocol udp destination-port 2 'then' discard
	announce ipv6-flowspec add match destination 2001:db8::1/128 source 2001:db8:1::/48 protocol udp port 53 'then' discard
	announce ipv6-flowspec add match destination 2001:db8::/64 32 'then' discard
	announce ipv4 add 198.51.100.66/32 community blackhole
	wait_for "a flow" judge drop 198.51.100.2
	wait_for "a flow of IPv6" v6 drop 2001:db8::1
	wait_for "a blackhole" judge drop 198.51.100.66
	case_begin "an offset"
	wait_for "the refusal" grep -q 'a prefix with an offset' "$STATE/follow.err"
	v6 pass 2001:db8::2 || fail "dropped"
	case_begin "withdrawn"
	announce ipv4-flowspec del match destination 198.51.100.2/32 protocol udp destination-port 2
	announce ipv4 del 198.51.100.66/32
	wait_for "the withdrawals" judge pass 198.51.100.2 198.51.100.66
	case_begin "a drop becomes a rate limit"
	announce ipv4-flowspec add match destination 198.51.100.1/32 'then' rate-limit 1000
	wait_for "the rate limit" judge pass 198.51.100.1
	assert_shows '^dst 198.51.100.1 rate 8kbit/s timeout ' xc list --list flowspec
	announce ipv4-flowspec add match destination 198.51.100.1/32 'then' discard
	wait_for "the drop" judge drop 198.51.100.1
	case_begin "the router is killed"
	kill -9 "$ROUTER"
	start=$(date +%s)
	wait_for "the end of the graceful restart" judge pass 198.51.100.1
	[ $(($(date +%s) - start)) -ge 4 ] || fail "it ended early"
	wait_for "the loss of the session" session_is down
	listed 0 || fail "rules stay: $(xc list)"
	case_begin "the router is back"
	router_begin
	wait_for "the session" is_up
	announce ipv4-flowspec add match destination 198.51.100.1/32 'then' discard
	wait_for "the flow" judge drop 198.51.100.1
	case_begin "the local daemon is killed"
	kill -9 "$LOCAL"
	status=0
	wait "$PIPE" || status=$?
	assert_equal 3 "$status" "status"
	judge drop 198.51.100.1 || fail "the rules have gone at once"
	case_begin "and comes back within the stale time"
	local_begin
	follow
	wait_for "the flow" judge drop 198.51.100.1
	kill -9 "$LOCAL"
	wait "$PIPE" || :
	wait_for "the end of the stale time" judge pass 198.51.100.1
}

# fed ANSWER: whether the metrics and status say that GoBGP is silent: 0 no, 1 yes.
fed() {
	xc metrics | grep -q "^xdp_cuckoo_list_not_fed{name=\"default\",list=\"flowspec\"} $1\$" || return 1
	status=0
	xc status >"$STATE/status" || status=$?
	[ "$(grep -cE '^not fed: *flowspec: (never|for )' "$STATE/status")" -eq "$1" ] && [ "$status" -ge "$1" ]
}

# A process that starts again and again says nothing of its source.
test_a_dead_gobgp_is_seen() {
	needs_gobgp
	STALE_S=8
	config
	xc load vrx >/dev/null
	mkdir "$STATE/bin"
	ln -s "$GOBGP/gobgpd" "$STATE/bin"
	GOBGP_REAL=$GOBGP
	GOBGP=$STATE/bin
	printf '#!/bin/sh\n[ "$1" != neighbor ] || echo "Peer AS Up/Down State |#Received Accepted"\n' >"$GOBGP/gobgp"
	chmod +x "$GOBGP/gobgp"
	serve_gobgp
	nsenter --net="/run/netns/$RX" sh -c 'while sleep 0.5; do "$@"; done' sh "$TOOL" --state "$STATE/store" \
		flowspec "$STATE/gobgp" --config "$STATE/flowspec.conf" >/dev/null 2>"$STATE/follow.err" &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
	WAIT_LOG=$STATE/follow.err
	case_begin "a monitor that ends at once, beside a table of peers"
	wait_for "the start" fed 1
	sleep 6
	fed 1 || fail "$(cat "$STATE/status")"
	case_begin "gobgpd was never started"
	ln -sf "$GOBGP_REAL/gobgp" "$GOBGP/gobgp"
	sleep 4
	fed 1 || fail "$(cat "$STATE/status")"
	case_begin "it has no flow"
	local_begin
	wait_for "the source" fed 0
	case_begin "the monitor of JSON ends, and both begin again"
	monitors() {
		pgrep -f "^$GOBGP/gobgp monitor .*${1:-}" | sort | tr '\n' ' '
	}
	wait_for "the monitors" eval '[ -n "$(monitors)" ]'
	before=$(monitors)
	# shellcheck disable=SC2046,SC2086 # numbers
	kill $(monitors -j)
	wait_for "other monitors" eval '! kill -0 $before 2>/dev/null'
	wait_for "the source" fed 0
	case_begin "it is killed"
	kill -9 "$LOCAL"
	wait_for "the silence" fed 1
	sleep 3
	fed 1 || fail "fed by a restart: $(cat "$STATE/status")"
	case_begin "it hangs"
	local_begin
	wait_for "the source" fed 0
	kill -STOP "$LOCAL"
	wait_for "the silence" fed 1
	kill -CONT "$LOCAL"
	wait_for "the source" fed 0
}

# peer_begin COUNT [RATE]: a router that is not gobgpd.
peer_begin() {
	nsenter --net="/run/netns/$TX" $PYTHON tests/helpers/flowspec_peer.py 10.99.0.2 65001 "$@" >"$STATE/peer.log" 2>&1 &
	PEER=$!
	on_exit "kill $PEER 2>/dev/null; wait $PEER 2>/dev/null"
}

children() {
	cat "/proc/$1/task/$1/children"
}

# cpu_ms PROCESS: its processor time.
cpu_ms() {
	awk '{ sub(/.*[)] /, ""); print 10 * ($12 + $13) }' "/proc/${1%% *}/stat"
}

has_last_flow() {
	xc lists | grep -q "^flowspec  *$1 " || return
	xc list --list flowspec >"$STATE/rules"
	[ "$(wc -l <"$STATE/rules")" -eq "$1" ]
}

test_thousands_of_flows() {
	flows=${FLOWS:-2500}
	needs_gobgp
	STALE_S=60
	config 'own-prefixes = any'
	xc load vrx >/dev/null
	local_begin
	follow
	start=$(date +%s%3N)
	peer_begin "$flows"
	wait_for "the session" is_up
	up=$(date +%s%3N)
	WAIT_S=600 wait_for "the flows" has_last_flow "$flows"
	note "$flows flows in $(($(date +%s%3N) - up)) ms from the session, $(($(date +%s%3N) - start)) ms from the start;" \
		"processor time: flowspec $(cpu_ms "$PIPE") and $(cpu_ms "$(children "$PIPE")") ms, gobgpd $(cpu_ms "$LOCAL") ms," \
		"its monitor $(cpu_ms "$(pgrep -f -n "^$GOBGP/gobgp monitor")") ms"
	seq 0 $((flows - 1)) | awk '{ printf "proto udp dst 10.0.%d.%d\n", $1 / 256, $1 % 256 }' | LC_ALL=C sort >"$STATE/expected"
	sed 's/ timeout .*//' "$STATE/rules" | LC_ALL=C sort | cmp - "$STATE/expected" || fail "other rules than flows"
	judge drop "10.0.$(((flows - 1) / 256)).$(((flows - 1) % 256))" || fail "not dropped"
	judge pass "10.0.$((flows / 256)).$((flows % 256))" || fail "dropped"
	kill -9 "$LOCAL"
	wait "$PIPE" || :
}

# JSON cannot say a rate that is no number: gobgp then prints an empty line for the whole event.
test_a_peer_that_sends_nonsense() {
	needs_gobgp
	config 'own-prefixes = any'
	xc load vrx >/dev/null
	local_begin
	peer_begin 6 0,nan,0,inf,-1
	wait_for "the session" is_up
	for start in first second; do
		case_begin "the $start start"
		follow
		wait_for "all but two flows" has_last_flow 4
		judge drop 10.0.0.0 10.0.0.2 10.0.0.4 10.0.0.5 || fail "not dropped"
		judge pass 10.0.0.1 10.0.0.3 || fail "dropped"
		grep -q 'refused flow destination 10.0.0.1/32 protocol =17: it asks for a rate that is no number' "$STATE/follow.err" ||
			fail "$(cat "$STATE/follow.err")"
		wait_for "the counts" shows_source 'flowspec: 6 flows, 2 refused, 0 unreadable'
		kill "$PIPE"
		wait "$PIPE" || fail "status $?"
	done
	case_begin "JSON"
	gobgp_in "$RX" global rib -a ipv4-flowspec add match destination 10.1.0.1/32 'then' discard >/dev/null
	{
		with 10.0.0.0 0
		timeout 2 nsenter --net="/run/netns/$RX" "$GOBGP/gobgp" monitor global rib -a ipv4-flowspec --current -j || :
	} | flowspec 2>"$STATE/json.err" || :
	grep -q 'line 2 of the input is empty: gobgp could not print' "$STATE/json.err" || fail "$(cat "$STATE/json.err")"
	assert_shows 'flowspec: 1 flows, 0 refused, 1 unreadable$' xc lists
	assert_shows '^xdp_cuckoo_list_unreadable_lines[{]name="default",list="flowspec"[}] 1$' xc metrics
	kill -9 "$LOCAL"
}

shows_source() {
	xc lists | grep -q "$1\$"
}

# Random flows and communities: what both forms say makes the same rules, flows with TCP flags by pieces of JSON. So does a route that prints another's line.
test_text_says_what_json_says() {
	needs_gobgp
	config 'own-prefixes = any'
	local_begin
	peer_begin 1000 "random:$SEED"
	wait_for "the session" is_up
	wait_for "the last flow" sh -c "$(printf '%s' "nsenter --net=/run/netns/$RX $GOBGP/gobgp global rib -a ipv4-flowspec") |
		grep -q 10.0.3.231/32"
	timeout 5 nsenter --net="/run/netns/$RX" "$GOBGP/gobgp" monitor global rib -a ipv4-flowspec --current -j \
		>"$STATE/json" || :
	timeout 5 nsenter --net="/run/netns/$RX" "$GOBGP/gobgp" monitor global rib -a ipv4-flowspec --current \
		>"$STATE/text" || :
	assert_equal 1000 "$(wc -l <"$STATE/text")" "routes"
	printed <"$STATE/json" | sort >"$STATE/expected"
	{ fold -bw4000 "$STATE/json" | sed s/^/J/; cat "$STATE/text"; } | packets | sort >"$STATE/seen"
	cmp "$STATE/expected" "$STATE/seen" || fail "other rules"
	note "$(wc -l <"$STATE/seen") rules of 1,000 flows"
	[ "$(wc -l <"$STATE/seen")" -gt 300 ] || fail "few rules"
	kill -9 "$LOCAL"
}

run_tests "$0" "$@"
