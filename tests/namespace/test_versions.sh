#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A filter of another version that runs: what the commands say of it, and how this one's gets its place.
. tests/lib.sh

VERSION=$(sed -n 's/^#define ABI_VERSION //p' include/abi.h) # of the table

# older [NAME [VERSION [IFACE...]]]: runs a filter of an older version on vrx or these interfaces, which drops
# 203.0.113.0/24.
older() {
	name=${1:-default} version=${2:-6}
	xc --name "$name" add 203.0.113.1 >/dev/null 2>&1 || :
	shift $(($# > 2 ? 2 : $#))
	in_rx "$HELPERS/older" "$STATE/store/$name" "$name" "$version" "${@:-vrx}" || fail "it does not run"
}

# is_taken_over COMMAND...: the command exchanges the filter and says so.
is_taken_over() {
	assert_notes "^note: replaced the filter of another version on vrx by this version's" "$@"
	assert_verdict drop 203.0.113.1 pass 203.0.113.200
	assert_shows 'equal to the store' xc status
}

test_whoever_only_looks() {
	older
	assert_status 0 xc status --verbose
	assert_output '^  condition: +of another version: '
	assert_output '^  table version: +6$'
	assert_status 0 xc list
	for command in stats metrics 'list --counters' 'bench --seconds 1' 'monitor --seconds 1' 'top --count 1'; do
		# shellcheck disable=SC2086 # words
		assert_status 3 xc $command
		assert_error "'default' on 'vrx' is of another version of xdp-cuckoo \(.* 6, .* $VERSION\); xdp-cuckoo .* load vrx"
	done
	assert_verdict drop 203.0.113.200
}

test_it_is_taken_off() {
	older
	assert_status 0 xc unload vrx
	assert_verdict pass 203.0.113.1
	older
	assert_status 0 xc unload --all
	older
	assert_status 0 xc down
	assert_verdict pass 203.0.113.1
}

# Every command that changes rules replaces the older version.
test_commands_that_take_its_place() {
	echo '[filter]' >"$STATE/conf"
	echo 'interfaces = vrx' >>"$STATE/conf"
	echo 203.0.113.2 >"$STATE/list"
	for command in 'load vrx' "up $STATE/conf" 'add 203.0.113.3' "import $STATE/list" expire; do
		case_begin "$command"
		older
		# shellcheck disable=SC2086 # words
		is_taken_over xc $command
		xc unload vrx >/dev/null
	done
	case_begin "as large as it was"
	older
	is_taken_over xc add 203.0.113.4
	assert_output '^slots: +[0-9]+ of 32768 used'
}

# More rules than its table holds: the larger table is in the other half of the new maps.
test_one_that_its_rules_have_outgrown() {
	awk 'BEGIN { for (i = 0; i < 40000; i++) printf "10.0.%d.%d\n", i / 256, i % 256 }' >"$STATE/rules"
	xc import "$STATE/rules" >/dev/null 2>&1
	for command in 'add 203.0.113.3' 'load vrx' expire; do
		case_begin "$command"
		older
		# shellcheck disable=SC2086 # words
		is_taken_over xc $command
		assert_shows 'effect: +filters$' xc status
		assert_verdict drop 10.0.0.0 10.0.156.63 pass 10.0.156.64
		xc unload vrx >/dev/null
	done
}

# Nothing could bring the old filter back, so no trial replaces it.
test_no_trial_replaces_it() {
	second_pair
	older
	before=$(program_id vrx)
	for interface in vrx vrx2; do
		assert_fails 2 "on 'vrx' is of an older version .* replace it without --confirm" xc load "$interface" --confirm 5s
	done
	assert_equal "$before $(program_id vrx2)" "$(program_id vrx) " "programs"
	assert_verdict drop 203.0.113.200
	is_taken_over xc load vrx
}

# refuses PATTERN: no command changes anything, also one that ran before the newer version came.
refuses() {
	before=$(program_id vrx)
	xc list >"$STATE/before"
	echo 203.0.113.9 >"$STATE/list"
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/conf"
	while read -r command; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		assert_fails 3 "$1" xc $command
	done <<-END
		add 203.0.113.9
		del 203.0.113.1
		import $STATE/list --replace
		load vrx
		load vrx --confirm 5s
		up $STATE/conf
		expire
		resize 50000
		monitor-only on
		confirm
	END
	case_begin 'afterwards'
	assert_equal "$before" "$(program_id vrx)" "program"
	assert_prints "$(cat "$STATE/before")" xc list
}

# A table that a newer version has made stays, and also the tables that this version could change.
test_a_newer_table_stays() {
	second_pair
	older default $((VERSION + 1))
	refuses "of a newer version of xdp-cuckoo .* unload vrx, then load it here"
	assert_verdict drop 203.0.113.200
	assert_fails 3 "of a newer version" xc stats
	in_rx ip link set dev vrx2 xdp obj "$OBJECT" sec xdp
	assert_fails 3 "of a newer version" xc add 203.0.113.9
	assert_shows 'condition: +of a newer version: use that one' xc status
	assert_output 'vrx2: passes everything until the next add'
	assert_status 0 xc unload vrx
	assert_status 0 xc load vrx
	assert_verdict drop 203.0.113.1 pass 203.0.113.200
}

# An old `batch` that waits for its input while a newer version comes changes nothing any more.
test_a_newer_store_stays() {
	assert_status 0 xc load vrx
	assert_status 0 xc add 203.0.113.1
	mkfifo "$STATE/lines"
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" batch - <"$STATE/lines" >"$STATE/said" 2>&1 &
	batch=$!
	on_exit "kill $batch 2>/dev/null"
	exec 5>"$STATE/lines"
	echo add 203.0.113.2 >&5
	wait_for "the first line" sh -c "nsenter --net=/run/netns/$RX $TOOL --state $STATE/store list | grep -q 113.2"
	"$HELPERS/newer" "$STATE/store/default" || fail "the store cannot be marked"
	refuses "a newer version than .* has written it: use that version, or go back: "
	echo add 203.0.113.3 >&5
	exec 5>&-
	STATUS=0
	wait "$batch" || STATUS=$?
	assert_equal 3 "$STATUS" "status of batch: $(cat "$STATE/said")"
	grep -q 'a newer version than' "$STATE/said" || fail "batch says: $(cat "$STATE/said")"
	assert_verdict drop 203.0.113.1 203.0.113.2 pass 203.0.113.3
	case_begin "the way back"
	assert_status 0 xc backup "$STATE/backup"
	assert_status 0 xc unload vrx
	mv "$STATE/store/default/data.mdb" "$STATE/"
	assert_status 0 xc restore "$STATE/backup"
	assert_status 0 xc load vrx
	assert_verdict drop 203.0.113.1 203.0.113.2 pass 203.0.113.3
}

# Every packet meets the old filter or the new one.
test_without_a_gap() {
	older
	before=$(program_id vrx)
	echo 'drop blocked proto udp src 203.0.113.1 dst 10.99.0.2 sport 1 dport 2' >"$STATE/flows"
	"$HELPERS/traffic" --from "$TX:vtx" --to "$RX:vrx" --endless --wrong "$STATE/wrong" <"$STATE/flows" >"$STATE/sent" &
	sender=$!
	on_exit "kill $sender 2>/dev/null"
	printf '203.0.113.%s\n' 1 2 3 >"$STATE/a"
	printf '[filter]\ninterfaces = vrx\n[list a]\nfile = %s\n' "$STATE/a" >"$STATE/conf"
	assert_shows '^renewed tables: +1$' xc up "$STATE/conf"
	[ "$before" != "$(program_id vrx)" ] || fail "the same program"
	wait_for "packets that the new one drops" sh -c "nsenter --net=/run/netns/$RX $TOOL --state $STATE/store list --counters |
		grep -q '113.1 # packets [1-9]'" || :
	kill "$sender"
	wait "$sender" || fail "wrong verdicts: $(cat "$STATE/sent" "$STATE/wrong")"
	assert_status 0 xc stats
	dropped=$(awk '/^drop-rule/ { print $4 }' "$STATE/out") sent=$(awk '$1 == "blocked" { print $2 }' "$STATE/sent")
	{ [ "$dropped" -gt 0 ] && [ "$dropped" -lt "$sent" ]; } || fail "$dropped of $sent packets met the new one"
}

test_two_interfaces_at_once() {
	veth "$TX" vone "$RX" vtwo
	older default 5 vrx vtwo
	is_taken_over xc load vrx
	assert_output 'vtwo'
	assert_equal 1 "$(xc status --json | grep -c '"table_version"')" "filters"
}

# panic reaches either version, and stays on.
test_panic() {
	older
	assert_shows '^filters: +1$' xc panic
	assert_notes 'PANIC' xc load vrx
	assert_verdict pass 203.0.113.1
	assert_status 0 xc panic off
	assert_verdict drop 203.0.113.1
}

test_it_stays_where_it_cannot_be_replaced() {
	older
	before=$(program_id vrx)
	assert_fails 3 "filled from another store" in_rx "$TOOL" --state "$STATE/other" add 203.0.113.1
	# A filter of another name is left alone.
	assert_notes "no filter 'other' is running" xc --name other add 203.0.113.7
	assert_status 5 xc --name other load vrx
	assert_equal "$before" "$(program_id vrx)" "program"
	assert_verdict drop 203.0.113.200
	# Versions with an unknown config.
	xc unload vrx >/dev/null
	older default 2
	assert_fails 3 'of another version of xdp-cuckoo; take it off' xc load vrx
}

# is_well: commands for the filter 'default' work, whatever runs on vrx2.
is_well() {
	for command in stats 'list --counters' 'monitor --count 1 --seconds 1' 'top --json --count 1' 'test 203.0.113.1' check \
		'add 203.0.113.7' 'del 203.0.113.7' metrics expire 'resize 5000' 'resize 900' 'policy not-ip pass' panic 'panic off'; do
		# shellcheck disable=SC2086 # words
		assert_status 0 timeout 60 nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" $command
	done
	assert_verdict drop 203.0.113.1 pass 203.0.113.200
}

test_beside_one_of_another_name() {
	veth "$TX" vone "$RX" vrx2
	xc load vrx >/dev/null
	xc add 203.0.113.1 >/dev/null
	older web 6 vrx2
	is_well
	assert_notes "'web' on 'vrx2' is of another version" xc metrics
	assert_status 3 xc --name web stats
	assert_status 1 xc --name wob stats
	assert_shows '^filters: +2$' xc panic --all
	assert_status 0 xc unload vrx
	assert_shows '^  table version: +6$' xc status --verbose
}

# An unknown filter may have any name. Commands for a known filter work beside it.
test_beside_one_that_nobody_knows() {
	veth "$TX" vone "$RX" vrx2
	xc add 203.0.113.1 >/dev/null 2>&1
	for what in 'older web 2 vrx2' "in_rx $HELPERS/foreign vrx2 xc_buckets flags 0"; do
		case_begin "$what"
		xc load vrx >/dev/null
		$what || fail "it does not run"
		is_well
		assert_fails 3 "on 'vrx2' is of another version" xc --name wob stats
		assert_status 3 xc status --verbose
		assert_output 'equal to the store'
		assert_error "on 'vrx2' is of another version"
		# The tool does what it can, and reports the rest.
		assert_fails 3 "on 'vrx2' is of another version" xc panic --all
		assert_verdict pass 203.0.113.1
		assert_status 3 xc panic off --all
		assert_verdict drop 203.0.113.1
		assert_fails 3 "on 'vrx2' is of another version" xc unload vrx2
		assert_status 0 xc unload vrx
		assert_verdict pass 203.0.113.1
		ip -n "$RX" link set dev vrx2 xdp off
		ip -n "$RX" link set dev vrx2 xdpgeneric off
	done
}

run_tests "$0" "$@"
