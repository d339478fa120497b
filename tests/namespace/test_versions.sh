#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A filter of another version that runs: what the commands say of it, and how this one's gets its place.
. tests/lib.sh

# older [NAME [VERSION [IFACE...]]]: runs on vrx or those, as filled from the store, and drops 203.0.113.0/24.
older() {
	name=${1:-default} version=${2:-6}
	xc --name "$name" add 203.0.113.1 >/dev/null 2>&1 || :
	shift $(($# > 2 ? 2 : $#))
	in_rx "$HELPERS/older" "$STATE/store/$name" "$name" "$version" "${@:-vrx}" || fail "it does not run"
}

# meets VERDICT N: what a packet of 203.0.113.N does.
meets() {
	echo "$1 it proto udp src 203.0.113.$2 dst 10.99.0.2 sport 1 dport 2" | traffic >/dev/null || fail "203.0.113.$2 does not $1"
}

program() {
	ip -n "$RX" -d link show vrx | sed -n 's,.*prog/xdp id \([0-9]*\).*,\1,p'
}

# is_taken_over COMMAND...: exchanges it, and says so.
is_taken_over() {
	assert_status 0 "$@"
	assert_error "^note: replaced the filter of another version on vrx by this version's"
	meets drop 1
	meets pass 200
	assert_status 0 xc status
	assert_output 'equal to the store'
}

test_whoever_only_looks() {
	older
	assert_status 0 xc status
	assert_output '^  condition: +of another version: '
	assert_output '^  table version: +6$'
	assert_status 0 xc list
	for command in stats metrics 'list --counters' 'bench --seconds 1' 'monitor --seconds 1' 'top --count 1'; do
		# shellcheck disable=SC2086 # words
		assert_status 3 xc $command
		assert_error "'default' on 'vrx' is of another version of xdp-cuckoo \(.* 6, .* 7\); xdp-cuckoo .* load vrx"
	done
	meets drop 200
}

test_it_is_taken_off() {
	older
	assert_status 0 xc unload vrx
	meets pass 1
	older
	assert_status 0 xc unload --all
	older
	assert_status 0 xc down
	meets pass 1
}

# What changes rules does it, whatever it is.
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
	assert_output '^  slots: +32768$'
	xc unload vrx >/dev/null
	case_begin "a later version, where it leaves the store readable"
	older default 8
	is_taken_over xc add 203.0.113.5
}

# Every packet meets the one or the other.
test_without_a_gap() {
	older
	before=$(program)
	echo 'drop blocked proto udp src 203.0.113.1 dst 10.99.0.2 sport 1 dport 2' >"$STATE/flows"
	"$HELPERS/traffic" --from "$TX:vtx" --to "$RX:vrx" --endless --wrong "$STATE/wrong" <"$STATE/flows" >"$STATE/sent" &
	sender=$!
	on_exit "kill $sender 2>/dev/null"
	printf '203.0.113.%s\n' 1 2 3 >"$STATE/a"
	printf '[filter]\ninterfaces = vrx\n[list a]\nfile = %s\n' "$STATE/a" >"$STATE/conf"
	assert_status 0 xc up "$STATE/conf"
	assert_output '^renewed tables: +1$'
	[ "$before" != "$(program)" ] || fail "the same program"
	wait_for "packets that the new one drops" sh -c "nsenter --net=/run/netns/$RX $TOOL --state $STATE/store list --counters |
		grep -q '113.1 # packets [1-9]'" || :
	kill "$sender"
	wait "$sender" || fail "wrong verdicts: $(cat "$STATE/sent" "$STATE/wrong")"
	assert_status 0 xc stats
	dropped=$(awk '/^drop rule/ { print $5 }' "$STATE/out") sent=$(awk '$1 == "blocked" { print $2 }' "$STATE/sent")
	{ [ "$dropped" -gt 0 ] && [ "$dropped" -lt "$sent" ]; } || fail "$dropped of $sent packets met the new one"
}

test_two_interfaces_at_once() {
	veth "$TX" vone "$RX" vtwo
	older default 5 vrx vtwo
	is_taken_over xc load vrx
	assert_output 'vtwo'
	assert_equal 1 "$(xc status --json | grep -c '"table_version"')" "filters"
}

# Panic is heard by either version, and goes on.
test_panic() {
	older
	assert_status 0 xc panic
	assert_output '^filters: +1$'
	assert_status 0 xc load vrx
	assert_error 'PANIC'
	meets pass 1
	assert_status 0 xc panic off
	meets drop 1
}

test_it_stays_where_it_cannot_be_replaced() {
	older
	before=$(program)
	assert_status 3 in_rx "$TOOL" --state "$STATE/other" add 203.0.113.1
	assert_error "filled from another store"
	# Of another name it is nobody's business.
	assert_status 0 xc --name other add 203.0.113.7
	assert_error "no filter 'other' is running"
	assert_status 5 xc --name other load vrx
	assert_equal "$before" "$(program)" "program"
	meets drop 200
	# Versions whose config nobody knows.
	xc unload vrx >/dev/null
	older default 2
	assert_status 3 xc load vrx
	assert_error 'of another version of xdp-cuckoo; take it off'
}

# is_well: whoever asks for the filter 'default' meets only that, whatever runs beside it on vrx2.
is_well() {
	for command in stats 'list --counters' 'monitor --count 1 --seconds 1' 'top --json --count 1' 'test 203.0.113.1' check \
		'add 203.0.113.7' 'del 203.0.113.7' metrics expire 'resize 5000' 'resize 900' 'policy not-ip pass' panic 'panic off'; do
		# shellcheck disable=SC2086 # words
		assert_status 0 timeout 60 nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" $command
	done
	meets drop 1
	meets pass 200
}

test_beside_one_of_another_name() {
	veth "$TX" vone "$RX" vrx2
	xc load vrx >/dev/null
	xc add 203.0.113.1 >/dev/null
	older web 6 vrx2
	is_well
	assert_status 0 xc metrics
	assert_error "'web' on 'vrx2' is of another version"
	assert_status 3 xc --name web stats
	assert_status 1 xc --name wob stats
	assert_status 0 xc panic --all
	assert_output '^filters: +2$'
	assert_status 0 xc unload vrx
	assert_status 0 xc status
	assert_output '^  table version: +6$'
}

# It may be of any name: who asks for one that is there need not care.
test_beside_one_that_nobody_knows() {
	veth "$TX" vone "$RX" vrx2
	xc add 203.0.113.1 >/dev/null 2>&1
	for what in 'older web 2 vrx2' "in_rx $HELPERS/foreign vrx2 xc_buckets flags 0"; do
		case_begin "$what"
		xc load vrx >/dev/null
		$what || fail "it does not run"
		is_well
		assert_status 3 xc --name wob stats
		assert_error "on 'vrx2' is of another version"
		assert_status 3 xc status
		assert_output 'equal to the store'
		assert_error "on 'vrx2' is of another version"
		# All that can be done is done, and that it is not all is told.
		assert_status 3 xc panic --all
		assert_error "on 'vrx2' is of another version"
		meets pass 1
		assert_status 3 xc panic off --all
		meets drop 1
		assert_status 3 xc unload vrx2
		assert_error "on 'vrx2' is of another version"
		assert_status 0 xc unload vrx
		meets pass 1
		ip -n "$RX" link set dev vrx2 xdp off
		ip -n "$RX" link set dev vrx2 xdpgeneric off
	done
}

run_tests "$0" "$@"
