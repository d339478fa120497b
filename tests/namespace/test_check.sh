#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A table that is damaged through its maps: `check` says what was wrong with it, and mends it.
. tests/lib.sh

RULES=40

# rule N, flow N: half of the rules are IPv4.
make_rules() {
	awk -v rules="$RULES" 'BEGIN {
		for (i = 1; i <= rules / 2; i++)
			printf "10.0.0.%d\n2001:db8::%x\n", i, i
	}' >"$STATE/rules"
	awk 'function flow(what, source, other) {
		print what, "proto udp src " source " dst " other " sport 1 dport 2"
	}
	{
		other = /:/ ? "2001:db8:f::1" : "198.51.100.7"
		for (i = 0; i < NR; i++)
			flow("drop blocked", $1, other)
	}' "$STATE/rules" >"$STATE/blocked"
	awk '{ print "pass innocent proto udp src " ($1 ~ /:/ ? "2001:db8:1::1 dst 2001:db8:f::" NR : \
		"10.0.1." NR " dst 198.51.100.7") " sport 1 dport 2" }' "$STATE/rules" >"$STATE/innocent"
}

# load_rules OPTION...
load_rules() {
	make_rules
	assert_status 0 xc load vrx --capacity 900 "$@"
	assert_status 0 xc import "$STATE/rules"
	assert_shows "^vrx +$RULES +0 +0 +0\$" xc check
}

# packets_by_rule FILE: the packets of each rule, sorted by the rules' text.
packets_by_rule() {
	xc list --counters | sed 's/^src \([^ ]*\) # packets \([0-9]*\) .*/\1 \2/' | sort >"$1"
}

# The rule on line N has N flows, so it must have counted exactly N more packets.
assert_counters() {
	packets_by_rule "$STATE/before"
	assert_verdicts
	packets_by_rule "$STATE/after"
	awk '{ print $1, NR }' "$STATE/rules" | sort >"$STATE/expected"
	join "$STATE/before" "$STATE/after" | awk '{ print $1, $3 - $2 }' >"$STATE/counted"
	cmp -s "$STATE/expected" "$STATE/counted" ||
		fail "a rule counts wrong: $(diff "$STATE/expected" "$STATE/counted")"
}

# Every rule drops its flows. An exact table drops nothing else.
assert_verdicts() {
	traffic <"$STATE/blocked" >"$STATE/sent" || fail "listed addresses pass: $(cat "$STATE/sent")"
	[ -z "$IS_EXACT" ] || traffic <"$STATE/innocent" >"$STATE/sent" ||
		fail "innocent packets are dropped: $(cat "$STATE/sent")"
}

# corrupt WHAT [BUCKET]: damages the table and sets MISSING, FOREIGN and ENDS to the damage.
corrupt() {
	case_begin "$*"
	in_rx "$HELPERS/corrupt" "$@" >"$STATE/damage" || fail "not damaged"
	read -r _ MISSING _ FOREIGN _ ENDS <"$STATE/damage"
}

# corrupt_all WHAT...: damages the table in several ways and adds up the damage.
corrupt_all() {
	missing=0
	foreign=0
	ends=0
	for damage; do
		# shellcheck disable=SC2086 # words
		corrupt $damage
		missing=$((missing + MISSING))
		foreign=$((foreign + FOREIGN))
		ends=$((ends + ENDS))
	done
	MISSING=$missing
	FOREIGN=$foreign
	ENDS=$ends
	case_begin "$*"
}

# The damage is real: a rule without its entry is not in force.
assert_passes_some() {
	! traffic <"$STATE/blocked" >"$STATE/sent" 2>&1 || fail "all is dropped without the missing entries"
}

assert_mends() {
	assert_status 1 xc check
	assert_output "^vrx +$((RULES - MISSING - ENDS)) +$MISSING +$FOREIGN +$ENDS\$"
	assert_error 'have been repaired'
	assert_shows "^vrx +$RULES +0 +0 +0\$" xc check
	assert_equal '' "$(cat "$STATE/err")" "notes"
	assert_status 0 xc status --verbose
	assert_output 'equal to the store'
	assert_output "used slots: +$RULES\$"
	assert_output 'slots: +1024$'
}

test_exact() {
	IS_EXACT=yes
	load_rules
	assert_counters
	for damage in bucket foreign double tag end; do
		corrupt "$damage"
		case $damage in bucket | tag | end) assert_passes_some ;; esac
		assert_mends
		assert_counters
	done
}

test_exact_without_counters() {
	IS_EXACT=yes
	load_rules --no-counters
	for damage in bucket foreign double tag; do
		corrupt "$damage"
		case $damage in bucket | tag) assert_passes_some ;; esac
		assert_mends
		assert_verdicts
	done
}

try_compact() {
	IS_EXACT=
	load_rules --compact --fingerprint "$1"
	for damage in bucket foreign double; do
		corrupt "$damage"
		assert_mends
		assert_verdicts
	done
	corrupt_all foreign foreign foreign
	assert_mends
	assert_verdicts
}

# If an entry is in the table twice, both may have counted. The entry that stays has the sum.
test_what_stands_twice_keeps_its_count() {
	IS_EXACT=yes
	load_rules
	assert_verdicts
	packets_by_rule "$STATE/before_damage"
	for damage in double half-moved; do
		corrupt "$damage"
		assert_mends
		packets_by_rule "$STATE/after_damage"
		cmp -s "$STATE/before_damage" "$STATE/after_damage" ||
			fail "counts: $(diff "$STATE/before_damage" "$STATE/after_damage")"
	done
	assert_counters
}

# Without hints no packet looks for a rule. Filling the table again also restores the hints.
test_hints() {
	IS_EXACT=yes
	load_rules
	corrupt hints
	assert_passes_some
	assert_shows "^vrx +$RULES +0 +0 +0\$" xc check
	assert_verdicts
}

test_compact_8() {
	try_compact 8
}

test_compact_16() {
	try_compact 16
}

test_compact_17() {
	try_compact 17
}

test_compact_32() {
	try_compact 32
}

# The table is damaged in several ways at once.
test_all_at_once() {
	IS_EXACT=yes
	load_rules
	corrupt_all 'foreign 0' 'double 64' 'tag 128' 'bucket 192'
	assert_mends
	assert_counters
}

# Every rule comes back into an emptied table.
test_an_emptied_table() {
	IS_EXACT=yes
	load_rules
	lost=0
	while [ "$lost" -lt "$RULES" ]; do
		corrupt bucket
		lost=$((lost + MISSING))
	done
	assert_status 1 xc check
	assert_output "^vrx +0 +$RULES +0 +0\$"
	assert_status 0 xc check
	assert_counters
}

test_json() {
	IS_EXACT=yes
	load_rules
	corrupt foreign
	assert_status 1 xc --json check
	"$HELPERS/json_check" <"$STATE/out" || fail "not JSON: $(cat "$STATE/out")"
	assert_equal '[{"interface":"vrx","right":40,"missing":0,"foreign":1,"other_end":0,"changed":true}]' "$(tr -d ' \n' <"$STATE/out")"
	assert_status 0 xc check --json
	assert_equal '[{"interface":"vrx","right":40,"missing":0,"foreign":0,"other_end":0,"changed":false}]' "$(tr -d ' \n' <"$STATE/out")"
}

# Two tables have one name, and one of them is damaged.
test_two_tables() {
	IS_EXACT=yes
	second_pair
	load_rules
	corrupt tag
	in_rx ip link set dev vrx2 xdp obj "$OBJECT" sec xdp
	assert_status 1 xc check
	assert_error "adopted the filter on vrx2"
	assert_output '^vrx +39 +1 +1 +0$'
	assert_output '^vrx2 +40 +0 +0 +0$'
	assert_verdicts
}

test_without_a_filter() {
	assert_fails 1 "no filter 'default' is running here; see xdp-cuckoo status" xc check
	assert_equal 1 "$(wc -l <"$STATE/err")" "lines of the error"
	assert_status 0 xc --name other load vrx
	assert_fails 1 "no filter 'default' is running here" xc check
	assert_status 0 xc --name other check
	assert_status 1 xc --json check
	assert_error '^{"error": "no filter .default. is running here; see xdp-cuckoo status, or run it: xdp-cuckoo load IFACE", "status": 1}$'
}

run_tests "$0" "$@"
