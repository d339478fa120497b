#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Tables that get larger and smaller while packets keep coming: no verdict is wrong and no packet goes
# uncounted, whoever attached the program.
. tests/lib.sh

ROUNDS=${ROUNDS:-2}  # of four tables each
RULES=972 # what 1024 slots hold at 95 %
RATE=40000 # frames a second, half of which meet rules: so few that each is counted by rule

# Addresses with and without ports, and prefixes, one with a pass rule inside.
make_rules() {
	awk -v rules="$RULES" '
	BEGIN {
		print "198.51.100.0/24\n198.51.100.10 action pass"
		for (i = 0; i < rules - 2; i++) {
			low = int(i / 256) "." i % 256
			if (i % 4 == 0)
				print "10.0." low
			else if (i % 4 == 1)
				printf "2001:db8::%x\n", i
			else if (i % 4 == 2)
				print "proto udp src 172.16." low " dport 53"
			else
				printf "2001:db8:1:%x::/64\n", i
		}
	}' >"$STATE/rules"
}

# For each rule one flow that it blocks, and one that no rule blocks.
make_flows() {
	awk -v rules="$RULES" '
	function ipv4(what, source, port) {
		print what " proto udp src " source " dst 203.0.113.7 sport 1 dport " port
	}
	function ipv6(what, source) { print what " proto tcp src " source " dst 2001:db8:f::1 sport 1 dport 2" }
	BEGIN {
		ipv4("drop blocked", "198.51.100.9", 1)
		ipv4("pass allowed", "198.51.100.10", 1)
		for (i = 0; i < rules - 2; i++) {
			low = int(i / 256) "." i % 256
			if (i % 4 == 0) {
				ipv4("drop blocked", "10.0." low, 1)
				ipv4("pass innocent", "10.1." low, 1)
			} else if (i % 4 == 1) {
				ipv6("drop blocked", sprintf("2001:db8::%x", i))
				ipv6("pass innocent", sprintf("2001:db8::f:%x", i))
			} else if (i % 4 == 2) {
				ipv4("drop blocked", "172.16." low, 53)
				ipv4("pass innocent", "172.16." low, 54)
			} else {
				ipv6("drop blocked", sprintf("2001:db8:1:%x::%x", i, i))
				ipv6("pass innocent", sprintf("2001:db8:2:%x::%x", i, i))
			}
		}
	}' >"$STATE/flows"
}

# start_traffic PAIR...: sends all flows from vtx to vrx, or from vtx2 to vrx2, without end. Returns when packets of
# each have arrived.
start_traffic() {
	SENDERS=
	# shellcheck disable=SC2016 # those of then
	on_exit 'kill $SENDERS 2>/dev/null'
	for pair; do
		# shellcheck disable=SC2034 # eval reads it
		seen=$(counted 'drop-rule' dropped)
		"$HELPERS/traffic" --from "$TX:vtx$pair" --to "$RX:vrx$pair" --endless --rate "$RATE" --wrong "$STATE/wrong$pair" \
			<"$STATE/flows" >"$STATE/sent$pair" &
		SENDERS="$SENDERS $!"
		wait_for "traffic" eval '[ "$(counted drop-rule dropped)" -ne "$seen" ]'
	done
}

# stop_traffic: ends the traffic, and fails if a packet had the wrong verdict.
stop_traffic() {
	# shellcheck disable=SC2086 # one word a process
	kill $SENDERS
	senders=$SENDERS
	SENDERS=
	for sender in $senders; do
		wait "$sender" || fail "wrong verdicts: $(cat "$STATE"/sent* "$STATE"/wrong* | head -n 40)"
	done
}

# sent KIND: packets, over all pairs.
sent() {
	cat "$STATE"/sent* | awk -v kind="$1" '$1 == kind { sum += $2 } END { print sum }'
}

# counted OUTCOME passed|dropped [packets|bytes]: the program's count. The row ends in four figures.
counted() {
	xc stats | awk -v row="$1" -v verdict="$2" -v unit="${3:-packets}" '
	index($0, row " ") == 1 { print $(NF - 3 + 2 * (verdict == "dropped") + (unit == "bytes")) }' |
		grep . || echo 0
}

# Every packet was counted once, under the right outcome.
assert_all_counted() {
	assert_equal "$(sent blocked)" "$(counted 'drop-rule' dropped)" "blocked packets, sent and counted"
	assert_equal "$(sent innocent)" "$(counted 'no-rule' passed)" "innocent packets, sent and counted"
	assert_equal "$(sent allowed)" "$(counted 'pass-rule' passed)" "packets of the pass rule, sent and counted"
	assert_equal "$(sent total)" "$(($(counted all passed) + $(counted all dropped) - $(counted 'not-ip' passed)))" \
		"all packets"
}

# Each rule has one flow, so all have counted the same: as many as rounds were sent.
assert_rules_counted() {
	xc list --counters >"$STATE/counters"
	assert_equal "$RULES" "$(wc -l <"$STATE/counters")" "rules"
	assert_equal "$(sent allowed)" "$(sed 's/.* # packets \([0-9]*\) .*/\1/' "$STATE/counters" | sort -u)" \
		"packets of each rule"
	assert_equal "$(($(counted 'drop-rule' dropped bytes) + $(counted 'pass-rule' passed bytes)))" \
		"$(awk '{ sum += $NF } END { print sum }' "$STATE/counters")" "bytes of all rules"
}

# assert_slots SLOTS [TARGETS]: of every table that runs.
assert_slots() {
	assert_shows 'equal to the store' xc status --verbose
	assert_equal "$1" "$(awk '$1 == "slots:" { print $2 }' "$STATE/out" | sort -u)" "slots"
}

# resize CAPACITY SLOTS
resize() {
	assert_status 0 xc resize "$1"
	assert_slots "$2"
}

# Four tables: one rule too many, back, a large table, and back.
swap() {
	assert_notes "note: the table of 'default' on vrx went from 1024 to 2048 slots" xc add 10.255.0.1
	assert_slots 2048
	assert_status 0 xc del 10.255.0.1
	resize "$RULES" 1024
	resize 60000 65536
	resize "$RULES" 1024
}

# load_all INTERFACE...: loads a filter with as many rules as a table of 1024 slots takes.
load_all() {
	silence
	make_rules
	make_flows
	assert_status 0 xc load "$@"
	assert_status 0 xc import "$STATE/rules"
}

# swap_all_counted: replaces table after table under the running traffic, and then ends the traffic.
swap_all_counted() {
	for _ in $(seq "$ROUNDS"); do
		swap
	done
	stop_traffic
	assert_all_counted
	assert_rules_counted
	note "$(sent total) packets during $((4 * ROUNDS)) tables, none wrong or uncounted"
}

# programs: what runs on the interfaces.
programs() {
	ip -n "$RX" -d link show | grep -o 'prog/xdp id [0-9]*'
}

# If the maps have room for two tables, tables are exchanged without a new program.
test_no_new_program_where_there_is_room() {
	second_pair
	load_all vrx vrx2 --capacity "$RULES"
	before=$(programs)
	start_traffic '' 2
	swap
	assert_status 0 xc import "$STATE/rules" --replace --force
	stop_traffic
	assert_equal "$before" "$(programs)" "programs"
	assert_rules_counted
	assert_status 0 xc resize 140000
	[ "$before" != "$(programs)" ] || fail "140,000 rules fit into maps for 131,072"
}

# If the maps have no room for a second table, each exchange needs new maps and new programs.
test_one_interface_without_a_spare_table() {
	load_all vrx --capacity "$RULES" --no-spare
	before=$(programs)
	start_traffic ''
	swap
	[ "$before" != "$(programs)" ] || fail "the same program"
	swap_all_counted
}

test_two_interfaces_under_traffic() {
	second_pair
	load_all vrx vrx2 --capacity "$RULES"
	start_traffic '' 2
	swap_all_counted
}

# Compact formats have false positives, also of pass rules. These lists have no pass rule.
make_compact() {
	sed -i 's/.* action pass/192.0.2.1/' "$STATE/rules"
	sed -i '/^pass/d' "$STATE/flows"
}

test_all_formats_under_traffic() {
	for format in --no-counters '--compact --fingerprint 8' --compact '--compact --fingerprint 17' \
		'--compact --fingerprint 32'; do
		case_begin "$format"
		make_flows
		make_rules
		[ "$format" = --no-counters ] || make_compact
		# shellcheck disable=SC2086 # words
		assert_status 0 xc load vrx --capacity "$RULES" $format
		assert_status 0 xc import "$STATE/rules"
		start_traffic ''
		resize 60000 65536
		resize "$RULES" 1024
		assert_status 0 xc check
		stop_traffic
		assert_equal "$(sent blocked)" "$(counted 'drop-rule' dropped)" "blocked packets, sent and counted"
		xc unload vrx >/dev/null
		xc flush >/dev/null 2>&1
	done
}

# A list larger than the table.
test_import_grows() {
	assert_status 0 xc load vrx --capacity 900
	xc add 192.0.2.1 >/dev/null
	awk 'BEGIN { for (i = 0; i < 100000; i++) printf "10.%d.%d.%d\n", i / 65536, i / 256 % 256, i % 256 }' >"$STATE/list"
	assert_status 0 xc import "$STATE/list"
	assert_error "note: the table of 'default' on vrx went from 1024 to [0-9]+ slots"
	assert_output '\badded 100000\b'
	assert_shows 'used slots: +100001$' xc status --verbose
	awk 'NR % 41 == 1 { print "drop listed proto udp src " $1 " dst 198.51.100.7 sport 1 dport 2" }
		END { print "drop before proto udp src 192.0.2.1 dst 198.51.100.7 sport 1 dport 2"
			print "pass other proto udp src 11.0.0.1 dst 198.51.100.7 sport 1 dport 2" }' "$STATE/list" | traffic ||
		fail "wrong verdicts"
	assert_shows 'vrx +100001 +0 +0 +0$' xc check
}

# A full table stays until it must take one more rule.
test_nothing_grows_needlessly() {
	make_rules
	assert_status 0 xc load vrx --capacity "$RULES"
	assert_status 0 xc import "$STATE/rules"
	assert_status 1 xc add 198.51.100.0/24
	assert_shows "\bkept $RULES\b" xc import "$STATE/rules"
	assert_status 0 xc del 198.51.100.0/24
	assert_status 0 xc add 198.51.100.0/24
	assert_status 0 xc flush
	assert_status 0 xc import "$STATE/rules"
	assert_slots 1024
	xc unload vrx >/dev/null
	assert_status 0 xc load vrx --capacity "$RULES"
	assert_slots 1024
	assert_status 0 xc add 192.0.2.1
	assert_slots 2048
}

# Another process holds a link to the program. The program is replaced and taken off through the link.
test_bpf_link() {
	silence
	make_rules
	make_flows
	mkfifo "$STATE/says"
	nsenter --net="/run/netns/$RX" "$HELPERS/attach_link" vrx "$OBJECT" >"$STATE/says" 2>"$STATE/link_err" &
	holder=$!
	on_exit "kill $holder 2>/dev/null"
	read -r said <"$STATE/says" || said=nothing
	assert_equal attached "$said" "what the holder of the link says ($(cat "$STATE/link_err"))"
	assert_notes "adopted the filter on vrx" xc import "$STATE/rules"
	start_traffic ''
	resize "$RULES" 1024
	swap
	stop_traffic
	assert_all_counted
	assert_rules_counted
	assert_status 0 xc unload vrx
	assert_shows 'running: +none' xc status
	kill -0 "$holder" || fail "the link's holder is gone"
}

test_ip_link() {
	silence
	make_rules
	make_flows
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	assert_notes "adopted the filter on vrx" xc import "$STATE/rules"
	assert_slots 524288
	silence
	start_traffic ''
	resize "$RULES" 1024
	swap
	stop_traffic
	assert_all_counted
	assert_rules_counted
}

test_skb_mode() {
	load_all vrx --mode skb --capacity "$RULES"
	start_traffic ''
	swap
	stop_traffic
	assert_all_counted
	assert_shows 'vrx +skb' xc status --verbose
}

# program: what runs on vrx, with the table that it looks at.
program() {
	xc status --verbose | awk '$1 == "vrx" || $1 == "slots:" || $1 == "used"'
}

# A refused resize, its status and its error. Nothing changes.
test_refused_resizes_change_nothing() {
	assert_fails 1 "no filter 'default' is running here" xc resize 1000
	load_all vrx --capacity "$RULES"
	before=$(program)
	while IFS='|' read -r expected says size; do
		case_begin "$size"
		assert_status "$expected" xc resize "$size"
		assert_error "$says"
		assert_equal "$before" "$(program)" "the running filter"
	done <<-END
		4|the store holds $RULES keys: more than the capacity of 971|971
		2|'0'|0
		2|'-1'|-1
		2|'many'|many
		2|'1e6'|1e6
		2|at most 1020054732 rules|1020054733
		2|at most|99999999999999
		2|must be a number|99999999999999999999999
	END
	assert_slots 1024
	traffic <"$STATE/flows" >"$STATE/sent" || fail "wrong verdicts: $(cat "$STATE/sent")"
}

# xc_with_memory KIB ARGUMENT...: runs the tool as if only this much memory were available.
xc_with_memory() {
	echo "MemAvailable: $1 kB" >"$STATE/meminfo"
	shift
	unshare -m sh -c 'mount --bind "$1" /proc/meminfo; shift; exec "$@"' sh "$STATE/meminfo" \
		nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" "$@"
}

# A table never asks for memory that is not available, neither by hand nor by itself.
test_short_memory_changes_nothing() {
	load_all vrx --capacity "$RULES" --no-spare
	before=$(program)
	listed=$(xc list)
	assert_fails 4 'needs 26625 MiB and 100 MiB are available' xc_with_memory 102400 resize 1000000000
	assert_fails 4 'needs 1 MiB and 0 MiB are available' xc_with_memory 64 add 192.0.2.1
	awk 'BEGIN { for (i = 0; i < 2000; i++) printf "10.2.%d.%d\n", i / 256, i % 256 }' >"$STATE/list"
	assert_fails 4 'needs 1 MiB and 0 MiB are available' xc_with_memory 64 import "$STATE/list"
	assert_equal "$before" "$(program)" "the running filter"
	assert_equal "$listed" "$(xc list)" "rules"
	assert_slots 1024
	assert_status 0 xc check
	echo 'pass refused proto udp src 10.2.0.1 dst 203.0.113.7 sport 1 dport 2' >>"$STATE/flows"
	traffic <"$STATE/flows" >"$STATE/sent" || fail "wrong verdicts: $(cat "$STATE/sent")"
	assert_status 0 xc add 192.0.2.1
	assert_slots 2048
}

run_tests "$0" "$@"
