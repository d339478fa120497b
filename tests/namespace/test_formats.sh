#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The formats of a table, on live traffic: what is listed is dropped in each; of innocent flows an exact
# table drops none, a compact one as many as its load and fingerprint bits say. SEED=N repeats the
# addresses of a run.
# Takes a minute.
. tests/lib.sh
. tests/namespace/traffic.sh

INNOCENT=32768
CAPACITY=31000 # a table of 2^15 slots
RULES=29491 # 90 % of them
SAMPLE=100   # flows that `test` is asked about

# field NAME: a figure of the last run, which was `load` or `status`.
field() {
	awk -F': +' -v name="$1" '{ sub(/^ +/, "") } $1 == name { print $2 }' "$STATE/out"
}

# load_format OPTION...: loads a filter; load and status agree on its format and size.
load_format() {
	# shellcheck disable=SC2086 # words
	assert_shows "^table: +$FORMAT_NAME\$" xc load vrx $FORMAT_OPTIONS "$@"
	loaded_bytes=$(field 'table bytes')
	assert_shows "^ *table: +$FORMAT_NAME\$" xc status --verbose
	assert_equal "$loaded_bytes" "$(field 'table bytes')" "bytes, by load and by status"
	assert_equal yes "$(field 'spare table')" "spare table"
	# Two tables and their hints; and a map that the format does not need has one element, of 16 bytes at most.
	above=$((loaded_bytes - 2 * ($(field 'room slots') * FORMAT_BYTES + 131072)))
	{ [ "$above" -ge 0 ] && [ "$above" -le 32 ]; } ||
		fail "$loaded_bytes bytes for two tables of $(field 'room slots') slots of $FORMAT_BYTES"
}

# judge_rate: whether the load of the table explains FALSE_POSITIVES of INNOCENT flows, and status shows that rate.
judge_rate() {
	expect_false_positives "$INNOCENT"
	{ [ "$FALSE_POSITIVES" -ge "$LEAST" ] && [ "$FALSE_POSITIVES" -le "$MOST" ]; } ||
		fail "$FALSE_POSITIVES false positives, expected $EXPECTED ($LEAST to $MOST)"
	assert_status 0 xc status --verbose
	awk -v told="$(field 'false positive rate ipv4')" -v expected="$EXPECTED" -v flows="$INNOCENT" '
	BEGIN {
		off = told - expected / flows
		exit off > expected / flows / 50 + 2e-15 || off < -expected / flows / 50
	}' || fail "status tells a rate of $(field 'false positive rate ipv4'), not $EXPECTED / $INNOCENT"
}

try_small_list() {
	case_begin "small list"
	small_flows >"$STATE/flows"
	small_list >"$STATE/list"
	assert_status 0 xc import "$STATE/list"
	judge_traffic "$STATE/flows"
	assert_equal 0 "$FALSE_POSITIVES" "innocent flows dropped by a table that is all but empty"
}

# Some thousands of rules of many shapes in a table of the default size.
try_generated_list() {
	case_begin "generated list"
	generated_list 5000 >"$STATE/list"
	# A random prefix may hold an address of this host.
	assert_status 0 xc import --force "$STATE/list"
	"$HELPERS/list_flows" --hosts 2 --outside "$INNOCENT" --seed "$SEED" "$STATE/list" >"$STATE/flows"
	judge_traffic "$STATE/flows"
	judge_rate
}

# `test` reports false positives, for flows that were dropped and for flows that were not.
judge_sample() {
	head -n "$SAMPLE" "$STATE/wrong" >"$STATE/sample"
	judge "$STATE/sample"
	assert_equal 0 "$MISMATCHES" "dropped flows that test does not call false positives"
	grep '^pass' "$STATE/flows" | grep -Fvx -f "$STATE/wrong" | head -n "$SAMPLE" >"$STATE/arrived"
	while read -r _ _ flow; do
		# shellcheck disable=SC2086 # words
		assert_status 1 xc test $flow
		assert_output 'running filter: agrees'
	done <"$STATE/arrived"
}

# Addresses fill 90 % of a table and spread over all of IPv4 (i * 2^32 / golden ratio), so that hints save no probe.
try_full_table() {
	case_begin "full table"
	awk -v rules="$RULES" 'BEGIN {
		for (i = 1; i <= rules; i++) {
			a = i * 2654435769 % 4294967296
			printf "%d.%d.%d.%d\n", a / 16777216, a / 65536 % 256, a / 256 % 256, a % 256
		}
	}' >"$STATE/list"
	assert_status 0 xc import "$STATE/list"
	"$HELPERS/list_flows" --outside "$INNOCENT" --seed "$SEED" "$STATE/list" >"$STATE/flows"
	traffic --wrong "$STATE/wrong" <"$STATE/flows" >"$STATE/table" || [ $? -eq 1 ] || fail "no traffic"
	! grep '^drop' "$STATE/wrong" || fail "listed flows passed"
	judge_sample
	FALSE_POSITIVES=$(grep -c '^pass' "$STATE/wrong") || :
	judge_rate
	assert_equal "$RULES" "$(xc list | wc -l)" "rules"
	note "$FALSE_POSITIVES of $INNOCENT dropped (expected $EXPECTED)"
}

# try_format NAME BYTES-A-SLOT OPTION...
try_format() {
	echo "SEED=$SEED"
	FORMAT_NAME=$1
	FORMAT_BYTES=$2
	shift 2
	FORMAT_OPTIONS=$*
	load_format
	try_small_list
	xc flush >/dev/null
	try_generated_list
	xc flush >/dev/null
	xc unload vrx >/dev/null
	load_format --capacity "$CAPACITY"
	try_full_table
}

test_exact() {
	try_format 'exact, counted by rule' 26
	assert_equal 0 "$FALSE_POSITIVES" "innocent flows that an exact table dropped"
}

test_exact_without_counters() {
	try_format exact 10 --no-counters
	assert_equal 0 "$FALSE_POSITIVES" "innocent flows that an exact table dropped"
	assert_fails 1 'does not count by rule' xc list --counters
}

test_compact() {
	try_format 'compact, 16 bits' 2 --compact
	assert_fails 1 'does not count by rule' xc list --counters
}

test_compact_8_bits() {
	try_format 'compact, 8 bits' 1 --compact --fingerprint 8
}

test_compact_17_bits() {
	try_format 'compact, 17 bits, semi-sorted' 2 --compact --fingerprint 17
}

test_compact_32_bits() {
	try_format 'compact, 32 bits' 4 --compact --fingerprint 32
}

# What would change the meaning of a rule is read, or the row is bad; it is never passed over.
test_columns_that_matter() {
	printf '%s\n' ip,expires,interface,verdict,enabled,country '192.0.2.1,4h,,,yes,x' '192.0.2.2,1798761600,,,,' \
		'192.0.2.3,,eth0,,,' '192.0.2.4,,any,pass,,' '192.0.2.5,,,,no,' '192.0.2.6,2020-01-01T00:00Z,,,,' >"$STATE/list"
	assert_status 2 xc import "$STATE/list" --format csv
	assert_error "list:3: timeout '1798761600'"
	assert_error "list:4: interface 'eth0': no rule can say this"
	assert_error "list:6: enabled 'no': no rule can say this"
	assert_error 'columns that are not used: country'
	assert_prints "$(printf '%s\n' 'src 192.0.2.1 timeout 4h' 'src 192.0.2.4 action pass')" xc list
}

test_iptables_fragments_and_lengths() {
	printf '%s\n' '# Generated by iptables-save v1' '*filter' '-A INPUT -s 192.0.2.1/32 -f -j DROP' \
		'-A INPUT -s 192.0.2.2/32 ! -f -j DROP' '-A INPUT -s 192.0.2.3/32 -m length --length 64:65 -j DROP' \
		'-A INPUT -s 192.0.2.4/32 -m length ! --length 64 -j DROP' COMMIT >"$STATE/list"
	assert_status 2 xc import "$STATE/list"
	assert_prints "$(printf '%s\n' 'src 192.0.2.1 fragment later' 'src 192.0.2.3 length 64' \
		'src 192.0.2.3 length 65')" xc list
}

run_tests "$0" "$@"
