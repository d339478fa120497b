#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What an exact table counts by rule, on live traffic: each packet and its bytes once, under the rule that
# decided, from several processors at once, and wherever the writer moves the rule's entry.
. tests/lib.sh

CAPACITY=900 # a table of 1024 slots
UDP_BYTES=58 # Ethernet 14, IPv4 20, UDP 8, the trailer of `traffic` 16
TCP_BYTES=70
UDP6_BYTES=78

# counted RULE: "PACKETS BYTES" of it.
counted() {
	xc list --counters | sed -n "s|^$1 # packets \([0-9]*\) bytes \([0-9]*\)\$|\1 \2|p"
}

# assert_counted PACKETS BYTES RULE
assert_counted() {
	assert_equal "$1 $2" "$(counted "$3")" "packets and bytes of '$3'"
}

# sources FIRST COUNT: addresses 10.0.0.0 + FIRST and on.
sources() {
	awk -v first="$1" -v count="$2" 'BEGIN {
		for (i = first; i < first + count; i++)
			printf "10.0.%d.%d\n", i / 256, i % 256
	}'
}

# send_steps COUNT: of the first COUNT sources, 1 packet of the first, 2 of the second, and so on.
send_steps() {
	sources 0 "$1" | awk '{
		for (i = 0; i < NR; i++)
			print "drop step proto udp src " $1 " dst 198.18.0.1 sport 1 dport 2"
	}' | traffic || fail "a listed flow passed"
}

# assert_steps COUNT TIMES: the first COUNT sources have counted TIMES calls of send_steps.
assert_steps() {
	sources 0 "$1" | awk -v times="$2" -v bytes="$UDP_BYTES" '{
		print "src " $1 " # packets " NR * times " bytes " NR * times * bytes
	}' >"$STATE/expected"
	xc list --counters | grep -Ff "$STATE/expected" -x >"$STATE/counted" || :
	assert_equal "$1" "$(wc -l <"$STATE/counted")" "rules with right counts"
}

test_each_packet_under_its_rule() {
	xc load vrx >/dev/null
	cat >"$STATE/list" <<-END
	192.0.2.0/24
	192.0.2.7 action pass
	proto tcp src 203.0.113.5 sport 4444 dst 198.18.0.1 dport 443
	2001:db8::/32
	proto udp dport 53
	198.18.7.0/24 comment "of no packet"
	END
	xc import "$STATE/list" >/dev/null
	cat >"$STATE/flows" <<-END
	drop net proto udp src 192.0.2.1 dst 198.18.0.1 sport 1 dport 2
	drop net proto tcp src 192.0.2.2 dst 198.18.0.1 sport 1 dport 2
	pass host proto udp src 192.0.2.7 dst 198.18.0.1 sport 1 dport 2
	drop tuple proto tcp src 203.0.113.5 dst 198.18.0.1 sport 4444 dport 443
	pass tuple proto tcp src 203.0.113.5 dst 198.18.0.1 sport 4445 dport 443
	drop ipv6 proto udp src 2001:db8::1 dst fd00::1 sport 1 dport 2
	drop port proto udp src 198.51.100.1 dst 198.18.0.1 sport 1 dport 53
	drop port proto udp src fd00::2 dst fd00::1 sport 1 dport 53
	END
	traffic --repeat 300 <"$STATE/flows" || fail "wrong verdicts"
	assert_counted 600 $((300 * (UDP_BYTES + TCP_BYTES))) 'src 192.0.2.0/24'
	assert_counted 300 $((300 * UDP_BYTES)) 'src 192.0.2.7 action pass'
	assert_counted 300 $((300 * TCP_BYTES)) \
		'proto tcp src 203.0.113.5 sport 4444 dst 198.18.0.1 dport 443'
	assert_counted 300 $((300 * UDP6_BYTES)) 'src 2001:db8::/32'
	assert_counted 600 $((300 * (UDP_BYTES + UDP6_BYTES))) 'proto udp dport 53'
	assert_counted 0 0 'src 198.18.7.0/24 comment "of no packet"'
}

# assert_within PERCENT EXPECTED SEEN WHAT
assert_within() {
	awk -v percent="$1" -v expected="$2" -v seen="$3" 'BEGIN {
		difference = seen > expected ? seen - expected : expected - seen
		exit difference > expected * percent / 100
	}' || fail "$4: expected $2, $1 % more or less, seen $3"
}

# dropped: "PACKETS BYTES" that the program has counted as dropped by a rule.
dropped() {
	xc stats | awk '/^drop-rule / { print $(NF - 1), $NF }'
}

# A processor counts packet by packet what it saves up in 64 jiffies (at most 0.64 s), and a flood by sample.
test_a_flood_is_counted_by_sample() {
	xc load vrx >/dev/null
	xc add 192.0.2.1 >/dev/null
	send_from 0 vtx vrx 8000 >"$STATE/sent" || fail "the flow passed"
	assert_counted 8000 $((8000 * UDP_BYTES)) 'src 192.0.2.1'
	send_from 0 vtx vrx 1000000 >"$STATE/sent" || fail "the flow passed"
	assert_equal "1008000 $((1008000 * UDP_BYTES))" "$(dropped)" "packets and bytes of all rules"
	# shellcheck disable=SC2046 # words
	set -- $(counted 'src 192.0.2.1')
	assert_within 2 1008000 "$1" packets
	assert_equal $(($1 * UDP_BYTES)) "$2" bytes
	sleep 1
	send_from 0 vtx vrx 8000 >"$STATE/sent" || fail "the flow passed"
	assert_counted $(($1 + 8000)) $((($1 + 8000) * UDP_BYTES)) 'src 192.0.2.1'
	note "$1 counted of 1008000"
}

# assert_shares FIRST SECOND: the two rules have counted so many packets, within the error of a sample.
assert_shares() {
	for share in "$1 $UDP_BYTES 192.0.2.1" "$2 $TCP_BYTES 192.0.2.2"; do
		# shellcheck disable=SC2086 # words
		set -- $share
		# shellcheck disable=SC2046 # words
		set -- "$@" $(counted "src $3")
		assert_within 5 "$1" "$4" "packets of $3"
		assert_equal $(($4 * $2)) "$5" "bytes of $3"
	done
}

# Packets of two rules in turn: the random sample does not keep step with them.
test_shares_of_a_flood() {
	xc load vrx >/dev/null
	printf '%s\n' 192.0.2.1 192.0.2.2 | xc import - >/dev/null
	awk 'BEGIN {
		for (i = 0; i < 4000; i++)
			print "drop " (i % 4 ? "two proto tcp src 192.0.2.2" : "one proto udp src 192.0.2.1") \
				" dst 198.18.0.1 sport 1 dport 2"
	}' >"$STATE/flows"
	traffic --repeat 300 <"$STATE/flows" >"$STATE/sent" || fail "a flow passed"
	assert_shares 300000 900000
}

# Packets of one rule over two interfaces. One processor can count all of them, should it handle both interfaces.
test_no_hit_is_lost_between_processors() {
	[ "$(nproc)" -ge 2 ] || skip "one processor"
	second_pair
	xc load vrx vrx2 >/dev/null
	xc add 192.0.2.1 >/dev/null
	send_from 0 vtx vrx 6000 >"$STATE/first" &
	first=$!
	send_from 1 vtx2 vrx2 6000 >"$STATE/second" || fail "the flow passed on the second interface"
	wait "$first" || fail "the flow passed on the first interface"
	assert_counted 12000 $((12000 * UDP_BYTES)) 'src 192.0.2.1'
}

# Each rule gets its only packet while the table is replaced again and again.
test_no_first_packet_is_lost_between_tables() {
	xc load vrx >/dev/null
	sources 0 60000 >"$STATE/list"
	xc import "$STATE/list" >/dev/null
	sed 's/.*/drop first proto udp src & dst 198.18.0.1 sport 1 dport 2/' "$STATE/list" >"$STATE/flows"
	traffic --rate 20000 <"$STATE/flows" >"$STATE/sent" &
	sender=$!
	replaced=0
	while kill -0 "$sender" 2>/dev/null; do
		replaced=$((replaced + 1))
		{ cat "$STATE/list"; echo "192.0.2.$replaced"; } | xc import --replace - >/dev/null 2>&1
	done
	wait "$sender" || fail "a listed flow passed"
	assert_equal "60000 0" "$(xc list --counters | awk '/^src 10[.]/ && $5 == 1 { once++ } /^src 10[.]/ && $5 > 1 { more++ }
		END { print once + 0, more + 0 }')" "rules counted once, and more than once, after $replaced tables"
	note "$replaced tables"
}

# The table grows by itself and by command.
test_counts_go_on_in_a_larger_table() {
	xc load vrx --capacity "$CAPACITY" >/dev/null
	sources 0 100 | xc import - >/dev/null
	send_steps 100
	sources 1000 2000 | xc import - >/dev/null
	assert_shows '^ *slots: +4096$' xc status --verbose
	assert_steps 100 1
	send_steps 100
	assert_status 0 xc resize 20000
	send_steps 100
	assert_steps 100 3
}

# Such a list needs no records. A rule that gets an end, or loses it, counts on in the other part of the table.
test_counts_of_a_long_list() {
	xc load vrx >/dev/null
	sources 0 100 >"$STATE/first"
	awk 'BEGIN { for (i = 0; i < 510000; i++) printf "11.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }' >"$STATE/rest"
	cat "$STATE/first" "$STATE/rest" >"$STATE/all"
	xc import --list long "$STATE/all" >/dev/null
	xc status --json --verbose >"$STATE/status"
	assert_equal true "$(jq '[.. | .address_slots? // empty][0] > 510000' "$STATE/status")" "room for addresses"
	send_steps 100
	assert_steps 100 1
	xc import --list timed --timeout 1h "$STATE/first" >/dev/null
	xc import --list long --replace "$STATE/rest" >/dev/null
	assert_equal 100 "$(xc list | grep -c ' timeout ')" "rules with an end"
	send_steps 100
	xc import --list long --replace "$STATE/all" >/dev/null
	send_steps 100
	assert_steps 100 3
	assert_status 0 xc check
	for damage in bucket foreign double; do
		in_rx "$HELPERS/corrupt" "$damage" >"$STATE/damage" || fail "not damaged"
		read -r _ missing _ foreign _ <"$STATE/damage"
		assert_status 1 xc check
		assert_output "^vrx +$((510100 - missing)) +$missing +$foreign +0\$"
		assert_status 0 xc check
		send_steps 100
	done
	xc test 10.0.0.77 | grep -q 'src 10.0.0.77$' || fail "no rule is named"
}

# SEED= replays; ROUNDS is how often.
test_counts_of_random_nested_prefixes() {
	xc load vrx >/dev/null
	run in_rx $PYTHON tests/helpers/nested_counts.py "$SEED" "${ROUNDS:-3}" \
		"$HELPERS/traffic --from $TX:vtx --to $RX:vrx" "$TOOL" --state "$STATE/store"
	cat "$STATE/out" "$STATE/err"
	[ "$STATUS" -eq 0 ] || fail "seed $SEED"
}

test_a_rule_that_comes_back_counts_from_0() {
	xc load vrx >/dev/null
	sources 0 3 | xc import - >/dev/null
	send_steps 3
	xc del 10.0.0.1 >/dev/null
	xc add 10.0.0.1 >/dev/null
	assert_counted 0 0 'src 10.0.0.1'
	assert_counted 1 "$UDP_BYTES" 'src 10.0.0.0'
	assert_counted 3 $((3 * UDP_BYTES)) 'src 10.0.0.2'
	send_steps 3
	assert_counted 2 $((2 * UDP_BYTES)) 'src 10.0.0.1'
}

run_tests "$0" "$@"
