#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# BGP FlowSpec: lines that gobgp 3.10 was seen to print (tests/fuzz/flowspec.jsonl), then real daemons of gobgp that peer
# over the interface of the filter.
. tests/lib.sh

RECORDED=tests/fuzz/flowspec.jsonl
GOBGP=${GOBGP:-$BUILD/packages/gobgpd/usr/bin}
STALE_S=3
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

# each: for each recorded line, what becomes of it alone.
each() {
	while read -r line; do
		printf '%s\n' "$line" | flowspec --print >"$STATE/each.out" 2>"$STATE/each.err" || :
		sed -n 's/^note: refused flow //p' "$STATE/each.err"
		sed -n 's/ timeout 4s$//; s/^add //p' "$STATE/each.out"
		echo .
	done <"$RECORDED" | tr '\n' ';' | sed 's/;\.;/\n/g; s/^\.;//; s/\n\.;/\n/g'
}

test_each_row_of_the_table() {
	config
	cat >"$STATE/expected" <<-'END'
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
		destination 198.51.100.32/32 tcp-flags: tcp-flags: a rule cannot match it
		destination 198.51.100.33/32 packet-length: packet-length: a rule cannot match it
		destination 198.51.100.34/32 dscp: dscp: a rule cannot match it
		destination 198.51.100.35/32 fragment: fragment: a rule cannot match it
		destination 2001:db8::3/128 label: label: a rule cannot match it
		destination 2001:db8:1::/64: destination: a rule cannot match a prefix with an offset
		destination 198.51.100.36/32 protocol: protocol: only single values and closed ranges can be matched
		destination 198.51.100.37/32 protocol destination-port: destination-port: only single values and closed ranges can be matched
		destination 198.51.100.38/32 protocol destination-port: destination-port: only single values and closed ranges can be matched
		destination 198.51.100.39/32 protocol destination-port: destination-port: more than 1024 values
		destination 198.51.100.40/32 protocol destination-port source-port: it takes more than 1024 rules
		destination 198.51.100.41/32 protocol port destination-port: port together with source-port or destination-port
		destination 198.51.100.42/32 protocol destination-port: no packet of this protocol has ports that FlowSpec knows
		destination 198.51.100.43/32 destination-port icmp-type: no packet has both ports and an ICMP type
		protocol: it names neither a destination nor a source
		destination 203.0.113.1/32: its destination is in none of own-prefixes
		source 203.0.113.1/32: its destination is in none of own-prefixes
		destination 198.51.100.48/32: it asks for a rate limit above 0, not for a drop
		destination 198.51.100.49/32: it asks for the action redirect, not for a drop
		destination 198.51.100.50/32: it asks for the action mark, not for a drop
		destination 198.51.100.51/32: it asks for the action sample or terminal, not for a drop
		destination 198.51.100.52/32: it asks for the action sample or terminal, not for a drop
		destination 198.51.100.53/32: it asks for no action, not for a drop
		destination 198.51.100.54/32: it asks for the action mark, not for a drop
		destination 198.51.100.55/32: it asks for a rate limit above 0, not for a drop
		?: gobgp cannot print it
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

# with ADDRESS RATE [MORE]: the flow to an address, with a rate limit.
with() {
	printf '[{"nlri":{"value":[{"type":1,"value":{"prefix":"%s/32"}}]},"age":1,"best":false,"attrs":[{"type":16,"value":' "$1"
	printf '[{"type":128,"subtype":6,"as":0,"rate":%s}]},{"type":14,"nexthop":"0.0.0.0","afi":1,"safi":133}]%s}]\n' "$2" "${3:-}"
}

withdrawn() {
	with "$1" 0 ',"withdrawal":true'
}

# feed_begin ARGUMENT...: flowspec in the background, fed by descriptor 7; $FEEDER is its number.
feed_begin() {
	rm -f "$STATE/feed"
	mkfifo "$STATE/feed"
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" flowspec - --config "$STATE/flowspec.conf" "$@" \
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
	config
	xc load vrx >/dev/null
	feed_begin
	with 198.51.100.1 0 >&7
	with 198.51.100.2 0 >&7
	wait_for "the flows" listed 2
	judge drop 198.51.100.1 198.51.100.2 || fail "a flow is not dropped: $(cat "$STATE/judged")"
	assert_shows '^dst 198.51.100.1 timeout [1-4]s$' xc list --list flowspec
	case_begin "withdrawn"
	withdrawn 198.51.100.1 >&7
	wait_for "the withdrawal" listed 1
	judge pass 198.51.100.1 || fail "dropped after the withdrawal"
	case_begin "with another action"
	with 198.51.100.2 1000 >&7
	wait_for "the other action" listed 0
	judge pass 198.51.100.2 || fail "dropped though it is to be limited"
	assert_shows 'flowspec: 1 flows, 1 refused$' xc lists
	assert_shows '^xdp_cuckoo_list_refused_flows[{]name="default",list="flowspec"[}] 1$' xc metrics
	case_begin "needed by two"
	with 198.51.100.3 0 >&7
	printf '[{"nlri":{"prefix":"198.51.100.3/32"},"attrs":[{"type":8,"communities":[4294902426]}]}]\n' >&7
	wait_for "both" listed 1
	withdrawn 198.51.100.3 >&7
	with 198.51.100.4 0 >&7
	wait_for "the next flow" listed 2
	judge drop 198.51.100.3 || fail "passed though it is a blackhole"
	case_begin "longer than the stale time"
	sleep "$((LEASE_S + 2))"
	judge drop 198.51.100.3 198.51.100.4 || fail "a rule has ended while its source lives"
	case_begin "the input ends"
	exec 7>&-
	status=0
	wait "$FEEDER" || status=$?
	assert_equal 3 "$status" "status"
	grep -q "rules of the list 'flowspec' end after the stale time" "$STATE/feed.err" || fail "it is not said"
	judge drop 198.51.100.3 198.51.100.4 || fail "the rules have gone at once"
	sleep "$((LEASE_S + 1))"
	judge pass 198.51.100.3 198.51.100.4 || fail "the rules stay"
	xc expire >/dev/null
	assert_prints '' xc list
}

# Whoever is killed: nothing stays, and what is announced is blocked again after a restart.
test_killed_readers_leave_nothing() {
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
	kill -9 "$FEEDER"
	wait "$FEEDER" || :
	exec 7>&-
	judge drop 198.51.100.1 198.51.100.2 || fail "the rules have gone at once"
	# What another run of it leaves is taken over, or ends.
	feed_begin
	with 198.51.100.1 0 >&7
	sleep "$((LEASE_S + 1))"
	judge drop 198.51.100.1 || fail "not blocked after a restart"
	judge pass 198.51.100.2 || fail "blocked, though it is not announced any more"
	with 198.51.100.1 1000 >&7
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
	with 198.51.100.1 1000 | flowspec >/dev/null 2>&1 || :
	judge pass 198.51.100.1 || fail "blocked, though its action is another now"
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
	case_begin "a host's own addresses"
	config 'own-prefixes = any'
	xc load vrx >/dev/null
	{ with 10.99.0.2 0; with 198.51.100.1 0; } | flowspec >"$STATE/out" 2>"$STATE/err" || :
	assert_error '^note: .*10.99.0.2.* would block'
	assert_shows '^dst 198.51.100.1 ' xc list
	assert_equal 1 "$(wc -l <"$STATE/out")" "rules"
	case_begin "many refused flows"
	for last in $(seq 100); do
		with "198.51.100.$last" 1
	done | printed >/dev/null
	assert_equal 10 "$(grep -c 'refused flow' "$STATE/printed.err")" "lines about refused flows"
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

test_bad_input() {
	config
	good=$(with 198.51.100.1 0)
	while read -r line; do
		case_begin "$line"
		printf '%s\n%s\n%s\n' "$good" "$line" "$(with 198.51.100.2 0)" | printed >"$STATE/seen"
		assert_equal "add dst 198.51.100.1" "$(cat "$STATE/seen")"
		assert_equal 1 "$(grep -c '^note: \(line 2 of the input\|the input\|gobgp says\)' "$STATE/printed.err")" "reasons"
	done <<-'END'

		x
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
	# Memory is limited to what one route may need.
	(
		ulimit -v 65536
		{ echo "$good"; printf '[{"nlri":"'; head -c 100000000 /dev/zero | tr '\0' a; } | printed >"$STATE/seen"
	)
	assert_equal "add dst 198.51.100.1" "$(cat "$STATE/seen")"
	grep -q 'has a route of more than 256 KiB' "$STATE/printed.err" || fail "$(cat "$STATE/printed.err")"
	case_begin "one line of 100 MB"
	route=$(with 198.51.100.1 1000 ',"x":"'"$(head -c 100000 /dev/zero | tr '\0' a)"'"')
	route=${route#[}
	route=${route%]}
	(
		ulimit -v 65536
		{
			printf '[%s' "$route"
			yes ",$route" | head -n 1000 | tr -d '\n'
			printf ']\n%s\n' "$good"
		} | printed >"$STATE/seen"
	)
	assert_equal "add dst 198.51.100.1" "$(tail -n 1 "$STATE/seen")"
	case_begin "usage"
	assert_fails 2 'standard input only' xc flowspec lines
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/flowspec.conf"
	assert_fails 2 'no section \[flowspec\]' flowspec
	config 'own-prefixes = 198.51.100.0/24 x'
	assert_fails 2 "own-prefixes: 'x' is no prefix" flowspec
	config 'action = pass'
	assert_fails 2 'must be drop or monitor' flowspec
}

run_tests "$0" "$@"
