#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Several writers at once, and writers killed at any moment: no acknowledged rule is lost, and the next
# command makes table and store equal again.
. tests/lib.sh

ROUNDS=${ROUNDS:-8}

test_writers_at_once() {
	xc load vrx >/dev/null
	for writer in 1 2 3 4 5 6 7 8; do
		(
			for i in $(seq 25); do
				xc add "10.$writer.0.$i" >/dev/null || exit 1
			done
		) &
		writers="${writers:-} $!"
	done
	for writer in $writers; do
		wait "$writer" || fail "a writer failed"
	done
	assert_equal 200 "$(xc list | wc -l)" "rules"
	assert_status 0 xc status --verbose
	assert_output '^generation: +200$'
	assert_output 'used slots: +200$'
	assert_output 'equal to the store'
	xc list | sed 's/^src /drop listed proto udp src /; s/$/ dst 198.51.100.7 sport 1 dport 2/' | traffic ||
		fail "a listed address passes"
}

# Adds one rule after the other and records each that the tool acknowledged.
add_forever() {
	i=0
	while :; do
		i=$((i + 1))
		xc add "10.$1.$((i / 250)).$((i % 250))" >/dev/null 2>&1 &&
			echo "src 10.$1.$((i / 250)).$((i % 250))" >>"$STATE/acknowledged"
	done
}

random_number() {
	od -An -N2 -tu2 /dev/urandom | tr -d ' '
}

# Kills tools, not the shell.
kill_tools() {
	for pid in $(ip netns pids "$RX"); do
		kill -9 "$pid" 2>/dev/null || :
	done
}

# Kills the tool at a random point of a command.
kill_a_tool() {
	sleep "0.0$(($(random_number) % 90 + 10))"
	kill_tools
}

every_acknowledged_rule_holds() {
	sort -u "$STATE/acknowledged" >"$STATE/expected"
	xc list | sort >"$STATE/listed"
	assert_equal '' "$(comm -23 "$STATE/expected" "$STATE/listed")" "acknowledged, not listed"
	assert_status 0 xc status --verbose
	assert_output 'equal to the store'
	assert_output "used slots: +$(wc -l <"$STATE/listed")\$"
	sed 's/^src /drop listed proto udp src /; s/$/ dst 198.51.100.7 sport 1 dport 2/' "$STATE/listed" | traffic ||
		fail "a listed address passes"
}

test_kill_9_while_adding() {
	xc load vrx >/dev/null
	: >"$STATE/acknowledged"
	for round in $(seq "$ROUNDS"); do
		add_forever "$round" &
		adder=$!
		kill_a_tool
		kill_a_tool
		kill "$adder"
		wait "$adder" 2>/dev/null || :
	done
	xc add 192.0.2.1 >/dev/null 2>&1 || :
	every_acknowledged_rule_holds
}

# Tries every 97th address of the list: the next command drops it if the import is stored, or else passes it.
import_is_whole() {
	expect=pass
	[ "$1" -eq 1 ] || expect=drop
	awk -v expect="$expect" 'NR % 97 == 0 {
		print expect " imported proto udp src " $1 " dst 198.51.100.7 sport 1 dport 2" }' "$STATE/list" | traffic ||
		fail "of a killed import that left $1 rules"
}

# All of the list or nothing of it.
test_kill_9_while_importing() {
	xc load vrx >/dev/null
	awk 'BEGIN { for (i = 0; i < 200000; i++) printf "10.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }' >"$STATE/list"
	for round in $(seq "$ROUNDS"); do
		xc flush >/dev/null
		xc import "$STATE/list" >/dev/null 2>&1 &
		importer=$!
		kill_a_tool
		wait "$importer" 2>/dev/null || :
		assert_status 0 xc add "192.0.2.$round"
		rules=$(xc list | wc -l)
		[ "$rules" -eq 1 ] || [ "$rules" -eq 200001 ] || fail "half of an import is stored: $rules rules"
		assert_status 0 xc status --verbose
		assert_output 'equal to the store'
		assert_output "used slots: +$rules\$"
		import_is_whole "$rules"
	done
}

# addresses FIRST: a list of 100,000, of which half are of every such list.
addresses() {
	awk -v first="$1" 'BEGIN { for (i = 0; i < 100000; i++)
		printf "src %d.%d.%d.%d\n", i % 2 ? 12 : first, i / 65536, i / 256 % 256, i % 256 }'
}

# Every 97th address of each list: dropped if the filter has that list, else passed.
filter_has() {
	for list in 10 11; do
		expect=pass
		[ "$list" -ne "$1" ] || expect=drop
		awk -v expect="$expect" 'NR % 97 == 0 {
			print expect " listed proto udp " $0 " dst 198.51.100.7 sport 1 dport 2" }' "$STATE/$list"
	done | sort -k 6,6 -k 1,1 | awk '$6 != last { print } { last = $6 }' | traffic ||
		fail "the filter does not have list $1, or has more"
}

# The old list or the new one, in the store and in the filter.
test_kill_9_while_replacing() {
	xc load vrx >/dev/null
	addresses 10 >"$STATE/10"
	addresses 11 >"$STATE/11"
	xc import "$STATE/11" >/dev/null 2>&1
	started=$(date +%s%N)
	xc import "$STATE/10" --replace >/dev/null 2>&1
	took_ms=$((($(date +%s%N) - started) / 1000000))
	old=10 new=11 killed=0 replaced=0
	for round in $(seq "$ROUNDS"); do
		xc import "$STATE/$new" --replace >/dev/null 2>&1 &
		importer=$!
		sleep "$(awk -v ms=$((took_ms * ($(random_number) % 120) / 100)) 'BEGIN { print ms / 1000 }')"
		kill_tools
		wait "$importer" 2>/dev/null || killed=$((killed + 1))
		xc check >/dev/null 2>&1 || : # repairs
		assert_status 0 xc check
		xc list | sort >"$STATE/listed"
		for list in $old $new; do
			sort "$STATE/$list" | cmp -s - "$STATE/listed" && break
		done || fail "neither the old list nor the new one: $(wc -l <"$STATE/listed") rules"
		assert_shows 'equal to the store' xc status
		filter_has "$list"
		[ "$list" = "$new" ] || continue
		replaced=$((replaced + 1))
		new=$old
		old=$list
	done
	note "$killed of $ROUNDS were killed, $replaced had replaced the list"
}

# Ctrl-C while rules are stored, not only while they are read, leaves the old list.
test_interrupted_replace_keeps_the_old_list() {
	xc load vrx >/dev/null
	addresses 10 >"$STATE/10"
	addresses 11 >"$STATE/11"
	xc import "$STATE/10" >/dev/null 2>&1
	interrupted=0
	for round in $(seq "$ROUNDS"); do
		in_rx sh -c 'echo $$ >"$1/pid"; exec "$2" --state "$1/store" import "$1/11" --replace' sh "$STATE" "$TOOL" \
			>"$STATE/out" 2>"$STATE/err" &
		importer=$!
		sleep "0.0$(($(random_number) % 90 + 10))"
		kill -INT "$(cat "$STATE/pid")" 2>/dev/null || :
		STATUS=0
		wait "$importer" || STATUS=$?
		[ "$STATUS" -ne 0 ] || { xc import "$STATE/10" --replace >/dev/null; continue; }
		interrupted=$((interrupted + 1))
		[ "$STATUS" -eq 130 ] || { # before it has caught the signal
			assert_equal 3 "$STATUS" "status"
			assert_error 'interrupted: nothing was changed'
		}
		assert_shows 'equal to the store' xc status
		filter_has 10
	done
	assert_equal "$(sort "$STATE/10")" "$(xc list | sort)" "rules"
	note "$interrupted of $ROUNDS were interrupted"
}

# Ctrl-C is an orderly end, also while the import waits for more input: the pipe stays open.
test_interrupted_import_changes_nothing() {
	xc load vrx >/dev/null
	mkfifo "$STATE/pipe"
	in_rx sh -c 'echo $$ >"$1/pid"; exec "$2" --state "$1/store" import "$1/pipe"' sh "$STATE" "$TOOL" \
		>"$STATE/out" 2>"$STATE/err" &
	importer=$!
	exec 7>"$STATE/pipe"
	awk 'BEGIN { for (i = 0; i < 50000; i++) printf "10.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }' >&7
	kill -INT "$(cat "$STATE/pid")"
	STATUS=0
	wait "$importer" || STATUS=$?
	exec 7>&-
	assert_equal 3 "$STATUS" "status of the interrupted import"
	assert_error 'interrupted: nothing was changed'
	assert_prints '' xc list
	assert_shows 'used slots: +0$' xc status --verbose
}

run_tests "$0" "$@"
