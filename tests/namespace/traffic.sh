# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced after tests/lib.sh: a small blocklist with traffic that tries all of it, a generated one, and
# how to tell a wrong verdict from a false positive of the fingerprints. `xc` and $STATE are lib.sh's.
# shellcheck shell=sh disable=SC2034 # the variables are for those who source this

small_list() {
	cat <<-EOF
	192.0.2.66
	198.51.100.0/24
	src 198.51.100.10 action pass
	proto tcp src 203.0.113.5 sport 4444 dst 198.18.0.1 dport 443
	proto icmp src 203.0.113.0/24 type 8 code 0
	2001:db8:0:bad::/64
	EOF
}

# Flows for `traffic`, a hundred of each line below.
small_flows() {
	awk '
	function both(i) { return i % 2 ? "tcp" : "udp" }
	function ports(i) { return "sport " 1024 + i " dport 53" }
	function ipv4(proto, source, rest) { return "proto " proto " src " source " dst 198.18.0.1 " rest }
	function ipv6(proto, net, i, rest) {
		return "proto " proto " src 2001:db8:0:" net "::" i " dst 2001:db8::1 " rest
	}
	BEGIN {
		for (i = 0; i < 100; i++) {
			host = i == 10 ? 110 : i # 198.51.100.10 has a rule that lets it pass
			blocked = ipv4(both(i), "198.51.100." host, ports(i))
			innocent = ipv4(both(i), "192.0.2." i % 60, ports(i))
			print "drop tcp4 " ipv4("tcp", "192.0.2.66", ports(i))
			print "drop tcp4 " ipv4("tcp", "203.0.113.5", "sport 4444 dport 443")
			print "pass tcp4 " ipv4("tcp", "203.0.113.5", "sport " 5000 + i " dport 443")
			print "drop udp4 " ipv4("udp", "198.51.100." host, ports(i))
			print "pass udp4 " ipv4("udp", "198.51.100.10", ports(i))
			print "pass udp4 " ipv4("udp", "203.0.113.5", "sport 4444 dport 443")
			print "drop icmp4 " ipv4("icmp", "203.0.113." i, "type 8 code 0")
			print "pass icmp4 " ipv4("icmp", "203.0.113." i, "type 0 code 0")
			print "drop ipv6 " ipv6(both(i), "bad", i, ports(i))
			print "pass ipv6 " ipv6(both(i), "bae", i, ports(i))
			print "drop ipv6 " ipv6("ipv6-icmp", "bad", i, "type 128 code 0")
			print "pass ipv6 " ipv6("ipv6-icmp", "bae", i, "type 128 code 0")
			print "drop vlan " blocked " vlan 7"
			print "pass vlan " innocent " vlan 7"
			print "drop vlan " blocked " vlan 7 vlan 8"
			print "pass vlan " innocent " vlan 7 vlan 8"
			print "drop fragments " blocked " fragment " (i % 2 ? "first" : "later")
			print "drop fragments " ipv6("udp", "bad", i, "fragment later")
			print "pass fragments " innocent " fragment " (i % 2 ? "first" : "later")
			# A later fragment has no ports, so no 5-tuple names it.
			print "pass fragments " ipv4("tcp", "203.0.113.5", "fragment later")
		}
	}'
}

# generated_list ENTRIES: random addresses, as prefixes of 14 to 31 bits and, for the most part, alone.
generated_list() {
	"$HELPERS/list_flows" --outside "$1" --seed "$SEED" /dev/null | awk '
	/^#/ { next }
	NR % 5 { print $6; next }
	{
		length_bits = 14 + NR / 5 % 18
		split($6, byte, ".")
		net = ((byte[1] * 256 + byte[2]) * 256 + byte[3]) * 256 + byte[4]
		net -= net % 2 ^ (32 - length_bits)
		printf "%d.%d.%d.%d/%d\n", net / 2 ^ 24, net / 2 ^ 16 % 256, net / 256 % 256,
			net % 256, length_bits
	}'
}

# judge WRONG: reads the flows that fared otherwise than expected, and sets FALSE_POSITIVES, where the
# tool itself says so, and MISMATCHES, all others.
judge() {
	FALSE_POSITIVES=0
	MISMATCHES=0
	while read -r expect kind flow; do
		bare=$(echo "$flow" | sed 's/ vlan [0-9]*//g; s/ fragment [a-z]*//')
		# shellcheck disable=SC2086 # one word an argument
		if [ "$expect" = pass ] && xc test $bare </dev/null 2>&1 | grep -q 'false.positive'; then
			FALSE_POSITIVES=$((FALSE_POSITIVES + 1))
		else
			MISMATCHES=$((MISMATCHES + 1))
			[ "$MISMATCHES" -gt 10 ] || echo "wrong: expected $expect: $flow ($kind)"
		fi
	done <"$1"
}

# judge_traffic FLOWS: sends them, judges, and compares with what the filter counted itself.
judge_traffic() {
	before=$(dropped_by_rule)
	traffic --wrong "$STATE/wrong" <"$1" >"$STATE/table" || [ $? -eq 1 ] || fail "no traffic"
	cat "$STATE/table"
	judge "$STATE/wrong"
	[ "$MISMATCHES" -eq 0 ] || fail "$MISMATCHES flows fared otherwise than expected"
	assert_equal "$(total 3 "$STATE/table")" "$(($(dropped_by_rule) - before))" \
		"packets dropped, by the receiver's count and by the filter's"
}

# expect_false_positives FLOWS: sets EXPECTED, how many of so many innocent IPv4 flows with random
# sources meet an equal fingerprint, and LEAST and MOST, what is still chance; in an exact table all 0.
#
# A probe of a key that no rule has hits with p = 8 * load / 2^bits. All flows of one /L have the same
# key in a shape of that length, so they fall together: the deviation is that of 2^L keys, if there
# are fewer of those than flows.
expect_false_positives() {
	expected=$(xc status --verbose | awk -v flows="$1" '
	$1 == "table:" && $2 == "compact," { bits = $3 }
	$1 == "slots:" { slots = $2 }
	$1 == "used" && $2 == "slots:" { used = $3 }
	$1 == "mean" && $2 == "probes" && $3 == "ipv4:" { mean = $4 }
	$1 == "shapes:" {
		sub(/^ *shapes: */, "")
		shapes = split($0, shape, /; /)
	}
	END {
		for (i = 1; i <= shapes; i++)
			ipv4 += shape[i] ~ /^ipv4/
		# By the hints most flows are not looked up by most shapes.
		p = bits && ipv4 ? 8 * used / slots / 2 ^ bits * mean / ipv4 : 0
		for (i = 1; i <= shapes; i++) {
			if (shape[i] !~ /^ipv4/ || shape[i] ~ /pass/)
				continue
			length_bits = match(shape[i], /src\/[0-9]+/) ? \
				substr(shape[i], RSTART + 4, RLENGTH - 4) : 32
			together = 1 + flows / 2 ^ length_bits
			expected += p * flows
			variance += p * flows * together
			if (together > most_together)
				most_together = together
		}
		chance = expected < 0.001 ? 0 : 5 * sqrt(variance) + 3 * most_together
		least = expected > chance ? expected - chance : 0
		printf "%.4g %d %d\n", expected, least, expected + chance
	}')
	EXPECTED=${expected%% *}
	MOST=${expected##* }
	LEAST=${expected#* }
	LEAST=${LEAST% *}
}

# dropped_by_rule: how many packets the running filter has counted as dropped by a rule.
dropped_by_rule() {
	xc stats | awk '/^drop-rule / { print $(NF - 1) }'
}

# total COLUMN FILE: a figure of the last line of the table that `traffic` printed.
total() {
	awk -v column="$1" '$1 == "total" { print $column }' "$2"
}
