#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Somebody who knows the hash key asks for rules that all belong into the same two buckets: eight fit,
# and the ninth must cost a new hash key, not the rule, the table or its size.
. tests/lib.sh

ATTACKS=${ATTACKS:-5}
ATTACK=9
REBUILT='note: rebuilt the table of .default. on vrx with a new hash key: too many keys fell into one pair of buckets'

load_small() {
	assert_status 0 xc load vrx --capacity 900 "$@"
}

# attack N: writes N addresses that collide under the present hash key to the file "addresses".
attack() {
	in_rx "$HELPERS/collisions" "$1" >"$STATE/attack" || fail "no collisions found"
	sed '/^#/d' "$STATE/attack" >"$STATE/addresses"
	assert_equal "$1" "$(wc -l <"$STATE/addresses")" "addresses that collide"
}

hash_key() {
	in_rx "$HELPERS/collisions" 0
}

# assert_rebuilt KEY SLOTS: the hash key differs from KEY, the size is SLOTS, and check finds nothing.
assert_rebuilt() {
	[ "$(hash_key)" != "$1" ] || fail "the hash key is the same as before"
	assert_status 0 xc status --verbose
	assert_output "slots: +$2\$"
	assert_output 'equal to the store'
	assert_status 0 xc check
}

assert_all_dropped() {
	sed 's/.*/drop listed proto udp src & dst 198.51.100.7 sport 1 dport 2/' "$@" | traffic >"$STATE/sent" ||
		fail "listed addresses pass: $(cat "$STATE/sent")"
}

# Eight rules are added silently; the ninth reports the new hash key.
add_one_by_one() {
	attack "$ATTACK"
	key=$(hash_key)
	last=$(tail -n 1 "$STATE/addresses")
	while read -r address; do
		assert_equal "$key" "$(hash_key)" "hash key before the last address"
		assert_status 0 xc add "$address"
		[ "$address" = "$last" ] || assert_equal '' "$(cat "$STATE/err")" "notes"
	done <"$STATE/addresses"
	assert_error "$REBUILT"
	assert_rebuilt "$key" 1024
	assert_all_dropped "$STATE/addresses"
	assert_equal "$ATTACK" "$(xc list | wc -l)" "rules"
}

test_add() {
	load_small
	add_one_by_one
}

test_add_compact() {
	for bits in 8 16 17; do
		case_begin "$bits bits"
		load_small --compact --fingerprint "$bits"
		add_one_by_one
		xc unload vrx >/dev/null
		xc flush >/dev/null 2>&1
	done
}

test_add_without_counters() {
	load_small --no-counters
	add_one_by_one
}

test_import() {
	load_small
	attack "$ATTACK"
	key=$(hash_key)
	assert_notes "$REBUILT" xc import "$STATE/addresses"
	assert_rebuilt "$key" 1024
	assert_all_dropped "$STATE/addresses"
}

# The eight rules keep their counts under the new hash key.
test_counters_carry_over() {
	load_small
	attack "$ATTACK"
	head -n 8 "$STATE/addresses" >"$STATE/eight"
	assert_status 0 xc import "$STATE/eight"
	assert_equal '' "$(cat "$STATE/err")" "notes"
	assert_all_dropped "$STATE/eight"
	assert_notes "$REBUILT" xc add "$(tail -n 1 "$STATE/addresses")"
	assert_all_dropped "$STATE/addresses"
	assert_equal '1 2 2 2 2 2 2 2 2' \
		"$(xc list --counters | sed 's/.* packets \([0-9]*\) .*/\1/' | sort | xargs)" "packets of the rules"
}

# Several attacks, each under the present key. Old rules stay.
test_many_attacks() {
	load_small
	assert_status 0 xc add 192.0.2.1
	echo 192.0.2.1 >"$STATE/all"
	for round in $(seq "$ATTACKS"); do
		case_begin "attack $round"
		attack "$ATTACK"
		key=$(hash_key)
		assert_notes "$REBUILT" xc import "$STATE/addresses"
		assert_rebuilt "$key" 1024
		cat "$STATE/addresses" >>"$STATE/all"
	done
	sort -u "$STATE/all" >"$STATE/expected"
	assert_all_dropped "$STATE/expected"
	assert_equal "$(wc -l <"$STATE/expected")" "$(xc list | wc -l)" "rules"
	printf 'pass other proto udp src 10.1.%d.1 dst 198.51.100.7 sport 1 dport 2\n' $(seq 200) | traffic >/dev/null ||
		fail "innocent packets dropped"
}

# A full table grows when one more rule comes, and only then.
test_attack_on_a_full_table() {
	load_small
	awk 'BEGIN { for (i = 0; i < 960; i++) printf "10.0.%d.%d\n", i / 256, i % 256 }' >"$STATE/list"
	assert_status 0 xc import "$STATE/list"
	attack "$ATTACK"
	key=$(hash_key)
	assert_notes "$REBUILT" xc import "$STATE/addresses"
	assert_rebuilt "$key" 1024
	assert_all_dropped "$STATE/addresses" "$STATE/list"
}

run_tests "$0" "$@"
