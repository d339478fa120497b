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

# Nine prefix lengths are one too many to look for one by one: two share a target from then on, and the table is
# another one. What was counted stays with its rule, and an expanded rule counts as one.
test_counts_go_on_when_prefix_lengths_are_joined() {
	xc load vrx >/dev/null
	for length in 10 12 14 16 18 20 22 24; do
		echo "$length.0.0.0/$length"
	done | xc import - >/dev/null
	for length in 10 12 14 16 18 20 22 24; do
		echo "drop net proto udp src $length.0.0.9 dst 198.18.0.1 sport 1 dport 2"
	done >"$STATE/flows"
	traffic <"$STATE/flows" || fail "wrong verdicts before"
	assert_notes 'prefix lengths are joined differently' xc add 32.0.0.0/25
	for length in 10 12 14 16 18 20 22 24; do
		assert_counted 1 "$UDP_BYTES" "src $length.0.0.0/$length"
	done
	traffic <"$STATE/flows" || fail "wrong verdicts after"
	echo 'drop net proto udp src 24.0.0.200 dst 198.18.0.1 sport 1 dport 2' | traffic ||
		fail "the end of an expanded prefix"
	assert_counted 2 $((2 * UDP_BYTES)) "src 10.0.0.0/10"
	assert_counted 3 $((3 * UDP_BYTES)) "src 24.0.0.0/24"
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
	for order in 'in turn' drawn; do
		case_begin "$order"
		printf '%s\n' 192.0.2.1 192.0.2.2 | xc import - >/dev/null
		awk -v seed="$SEED" -v is_drawn="$([ "$order" = drawn ] && echo 1)" 'BEGIN {
			srand(seed)
			for (i = 0; i < 4000; i++)
				first[i] = i % 4 == 0
			for (i = 3999; is_drawn && i > 0; i--) {
				other = int(rand() * (i + 1)); kept = first[i]; first[i] = first[other]; first[other] = kept
			}
			for (i = 0; i < 4000; i++)
				print "drop " (first[i] ? "one proto udp src 192.0.2.1" : "two proto tcp src 192.0.2.2") \
					" dst 198.18.0.1 sport 1 dport 2"
		}' >"$STATE/flows"
		traffic --repeat 300 <"$STATE/flows" >"$STATE/sent" || fail "a flow passed; seed $SEED"
		assert_shares 300000 900000
		xc flush >/dev/null
	done
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

# A short prefix does not take over the counts of long ones beside it. Trying its 2^31 keys would also take hours.
test_counts_of_nested_prefixes_go_on() {
	xc load vrx >/dev/null
	{
		echo 20.0.0.0/17
		seq 0 63 | sed 's,.*,20.0.&.0/24,'
		echo 2001:db8::/31
		seq 0 63 | awk '{ printf "2001:db8:0:%x::/62\n", $1 * 4 }'
	} >"$STATE/list"
	assert_status 0 xc import "$STATE/list"
	cat >"$STATE/flows" <<-END
	drop long proto udp src 20.0.0.9 dst 198.18.0.1 sport 1 dport 2
	drop short proto udp src 20.0.100.9 dst 198.18.0.1 sport 1 dport 2
	drop long6 proto udp src 2001:db8::9 dst 2001:db8:ffff::1 sport 1 dport 2
	END
	traffic <"$STATE/flows" || fail "wrong verdicts before"
	assert_status 0 in_rx timeout 60 "$TOOL" --state "$STATE/store" resize 50000
	assert_counted 1 "$UDP_BYTES" "src 20.0.0.0/24"
	assert_counted 1 "$UDP_BYTES" "src 20.0.0.0/17"
	assert_counted 1 "$UDP6_BYTES" "src 2001:db8::/62"
	assert_counted 0 0 "src 2001:db8::/31"
	traffic <"$STATE/flows" || fail "wrong verdicts after"
	assert_counted 2 $((2 * UDP_BYTES)) "src 20.0.0.0/24"
	assert_counted 2 $((2 * UDP_BYTES)) "src 20.0.0.0/17"
}

# counts_go_on COMMAND...: each rule keeps its count.
counts_go_on() {
	case_begin "$*"
	xc list --counters | sort >"$STATE/before"
	assert_status 0 "$@"
	xc list --counters | sort >"$STATE/after"
	assert_equal '' "$(comm -23 "$STATE/before" "$STATE/after")" "counts that are others now"
}

# A new prefix does not take over the counts of the rules inside it.
test_counts_of_covered_prefixes_go_on() {
	xc load vrx --capacity "$CAPACITY" >/dev/null
	printf '%s\n' 10.0.0.0 10.0.0.1 10.0.0.0/31 10.0.1.0 10.0.1.1 10.0.1.2/31 | xc import - >/dev/null
	for address in 0.0 0.1 0.1 1.0 1.1 1.1 1.1 1.2 1.3 1.3; do
		echo "drop covered proto udp src 10.0.$address dst 198.18.0.1 sport 1 dport 2"
	done | traffic >/dev/null || fail "wrong verdicts"
	counts_go_on xc resize 2000
	counts_go_on xc add 10.0.1.0/31
	counts_go_on xc resize 3000
	assert_counted 0 0 "src 10.0.1.0/31"
	seq 0 4000 | awk '{ printf "11.0.%d.%d\n", $1 / 256, $1 % 256 } END { print "10.0.1.0/30" }' >"$STATE/list"
	counts_go_on xc import "$STATE/list"
	assert_counted 0 0 "src 10.0.1.0/30"
}

# other_kinds COUNT: rules of so many kinds, each of which needs a probe of its own.
other_kinds() {
	printf '%s\n' 'dst 198.51.100.1' 'proto gre' 'dport 53' 'proto udp dport 123' 'proto tcp sport 80' \
		'src 192.0.2.1 dport 99' 'proto tcp src 192.0.2.1 dport 99' | head -n "$1"
}

# send_nested NUMBER...: a packet of 45.0.NUMBER.9 each.
send_nested() {
	printf 'drop nested proto udp src 45.0.%d.9 dst 198.18.0.1 sport 1 dport 2\n' "$@" | traffic ||
		fail "wrong verdicts"
}

# A wide rule keeps its count under a key that no narrower rule has.
test_counts_of_a_wide_prefix_do_not_go_to_a_narrower_one() {
	xc load vrx >/dev/null
	{ other_kinds 7; echo 45.0.0.0/20; } | xc import - >/dev/null
	send_nested 4 8 15
	assert_notes 'prefix lengths are joined differently' xc add 45.0.0.0/22
	assert_counted 3 $((3 * UDP_BYTES)) "src 45.0.0.0/20"
	assert_counted 0 0 "src 45.0.0.0/22"
	send_nested 1
	assert_counted 1 "$UDP_BYTES" "src 45.0.0.0/22"
}

# All keys of the narrower rule become keys of the wider one, too. Each rule keeps its own count.
test_counts_of_a_prefix_that_is_covered_go_on() {
	xc load vrx >/dev/null
	{ other_kinds 6; printf '%s\n' 45.0.0.0/20 45.0.0.0/22 46.0.0.0/22 47.0.0.0/22; } | xc import - >/dev/null
	send_nested 0 1 4
	assert_counted 2 $((2 * UDP_BYTES)) "src 45.0.0.0/22"
	assert_counted 1 "$UDP_BYTES" "src 45.0.0.0/20"
	{ other_kinds 7; echo 45.0.12.0/23; } >"$STATE/list"
	assert_notes 'prefix lengths are joined differently' xc import "$STATE/list"
	assert_counted 2 $((2 * UDP_BYTES)) "src 45.0.0.0/22"
	assert_counted 3 $((3 * UDP_BYTES)) "src 45.0.0.0/20"
	assert_counted 0 0 "src 45.0.12.0/23"
}

# SEED= replays; ROUNDS is how often.
test_counts_of_random_nested_prefixes() {
	xc load vrx >/dev/null
	run in_rx $PYTHON tests/helpers/nested_counts.py "$SEED" "${ROUNDS:-3}" \
		"$HELPERS/traffic --from $TX:vtx --to $RX:vrx" "$TOOL" --state "$STATE/store"
	cat "$STATE/out" "$STATE/err"
	[ "$STATUS" -eq 0 ] || fail "seed $SEED"
}

# The same where prefix lengths are joined: nothing tells how the new rule was kept before, and it was not.
test_counts_of_covered_prefixes_go_on_when_others_are_joined() {
	xc load vrx --capacity "$CAPACITY" >/dev/null
	{
		for length in 10 12 14 16 18 20 22; do echo "$length.0.0.0/$length"; done
		seq 0 127 | sed 's/^/30.0.0./'
	} | xc import - >/dev/null
	for address in 10.0.0.9 12.0.0.9 22.0.0.9 30.0.0.0 30.0.0.1 30.0.0.1 30.0.0.127; do
		echo "drop covered proto udp src $address dst 198.18.0.1 sport 1 dport 2"
	done | traffic >/dev/null || fail "wrong verdicts"
	counts_go_on xc add 30.0.0.0/25
	assert_error 'prefix lengths are joined differently'
	assert_counted 0 0 "src 30.0.0.0/25"
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
