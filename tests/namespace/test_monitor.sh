#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# monitor: each packet that is dropped is seen once, and no other; whatever becomes of filter and listener.
. tests/lib.sh
. tests/namespace/safety.sh

# --- a listener in the background

# listen ARGUMENT...: starts a monitor and returns when it listens. Its output is in $STATE/heard and $STATE/said. Not
# by xc(): signals would hit only the shell in between.
listen() {
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" monitor "$@" >"$STATE/heard" 2>"$STATE/said" &
	LISTENER=$!
	on_exit "kill -9 $LISTENER 2>/dev/null"
	wait_for "the listener" is_listening
}

# listen_all ARGUMENT...: the same, with a limit that no test reaches.
listen_all() {
	listen --rate 1000000 "$@"
}

# When it waits for signals, it has the filter's samples.
is_listening() {
	! kill -0 "$LISTENER" 2>/dev/null || [ -n "$(find "/proc/$LISTENER/fd" -lname '*signalfd*')" ]
}

# stop: ends it as Ctrl-C would, and waits; it must end well.
stop() {
	kill -INT "$LISTENER"
	ended
}

ended() {
	wait "$LISTENER" || fail "the listener ended with status $?: $(cat "$STATE/said")"
}

# heard N: whether the monitor has written at least N lines.
heard() {
	[ "$(wc -l <"$STATE/heard")" -ge "$1" ]
}

# said NAME: a figure of the summary: seen, shown, limited or lost.
said() {
	case $1 in
	seen) grep -Eo '[0-9]+ packets were seen' "$STATE/said" ;;
	shown) grep -Eo '[0-9]+ shown' "$STATE/said" ;;
	limited) grep -Eo '[0-9]+ beyond' "$STATE/said" ;;
	lost) grep -Eo '[0-9]+ lost' "$STATE/said" ;;
	esac | grep -Eo '^[0-9]+'
}

# assert_heard: the lines without their times, in any order, are those of standard input.
assert_heard() {
	sort >"$STATE/expected"
	sed -E 's/^[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6} //' "$STATE/heard" | sort >"$STATE/seen"
	cmp -s "$STATE/expected" "$STATE/seen" || fail "$(diff -u "$STATE/expected" "$STATE/seen")"
}

# load ARGUMENT...
load() {
	silence
	xc load vrx "$@" >/dev/null
}

# drops N: sends so many packets that the rule of block() drops.
drops() {
	yes "drop blocked $BLOCKED" | head -n "$1" | traffic >/dev/null || fail "not dropped"
}

BLOCKED_LINE="vrx $BLOCKED length 58: dropped by rule src 192.0.2.66"
BLOCKED_LINE=$(echo "$BLOCKED_LINE" | sed 's/dst \([^ ]*\) sport 1/sport 1 dst \1/')

# need COMMAND...: virtual machines have not all of them.
need() {
	for needed; do
		command -v "$needed" >/dev/null || skip "$needed is not installed"
	done
}

# --- what is shown

# The error suggests a similar name or says how to load a filter.
test_nothing_runs() {
	assert_status 1 xc monitor
	assert_error "^xdp-cuckoo: no filter 'default' is running here; see xdp-cuckoo status, or run it: xdp-cuckoo load IFACE$"
	xc --name web load vrx >/dev/null
	for command in monitor 'list --counters' 'stats --by rule'; do
		# shellcheck disable=SC2086 # words
		assert_fails 1 "^xdp-cuckoo: no filter 'wep' is running here; did you mean 'web'" xc --name wep $command
	done
}

test_each_dropped_packet_once() {
	load
	xc add 192.0.2.66 comment "a list" >/dev/null
	xc add proto tcp dport 22 >/dev/null
	xc add 2001:db8::/32 >/dev/null
	xc add 2001:db8::9 action pass >/dev/null
	xc add proto icmp type 8 >/dev/null
	xc policy malformed drop >/dev/null
	listen_all
	traffic <<-'END' >/dev/null || fail "verdicts"
		drop udp proto udp src 192.0.2.66 dst 10.99.0.2 sport 1 dport 2
		drop udp proto udp src 192.0.2.66 dst 10.99.0.2 sport 1 dport 3
		pass udp proto udp src 192.0.2.67 dst 10.99.0.2 sport 1 dport 2
		drop tcp proto tcp src 198.51.100.7 dst 10.99.0.2 sport 65535 dport 22
		pass tcp proto tcp src 198.51.100.7 dst 10.99.0.2 sport 22 dport 23
		drop ipv6 proto tcp src 2001:db8::5 dst fd99::2 sport 5 dport 80
		pass ipv6 proto tcp src 2001:db8::9 dst fd99::2 sport 5 dport 80
		drop vlan proto sctp src 192.0.2.66 dst 10.99.0.2 sport 1 dport 2 vlan 5
		drop vlans proto udp src 2001:db8::5 dst fd99::2 sport 1 dport 2 vlan 5 vlan 6
		drop icmp proto icmp src 198.51.100.7 dst 10.99.0.2 type 8 code 0
		drop fragment proto udp src 192.0.2.66 dst 10.99.0.2 sport 1 dport 2 fragment later
		drop malformed proto udp src 192.0.2.9 dst 10.99.0.2 sport 1 dport 2 broken malformed
		drop headers proto udp src 2001:db9::5 dst fd99::2 sport 1 dport 2 broken headers
		pass truncated proto udp src 192.0.2.9 dst 10.99.0.2 sport 1 dport 2 broken truncated
	END
	stop
	assert_heard <<-'END'
		vrx proto udp src 192.0.2.66 sport 1 dst 10.99.0.2 dport 2 length 58: dropped by rule src 192.0.2.66 comment "a list"
		vrx proto udp src 192.0.2.66 sport 1 dst 10.99.0.2 dport 3 length 58: dropped by rule src 192.0.2.66 comment "a list"
		vrx proto tcp src 198.51.100.7 sport 65535 dst 10.99.0.2 dport 22 length 70: dropped by rule proto tcp dport 22
		vrx proto tcp src 2001:db8::5 sport 5 dst fd99::2 dport 80 length 90: dropped by rule src 2001:db8::/32
		vrx proto sctp src 192.0.2.66 sport 1 dst 10.99.0.2 dport 2 length 66: dropped by rule src 192.0.2.66 comment "a list"
		vrx proto udp src 2001:db8::5 sport 1 dst fd99::2 dport 2 length 86: dropped by rule src 2001:db8::/32
		vrx proto icmp src 198.51.100.7 type 8 dst 10.99.0.2 code 0 length 58: dropped by rule proto icmp type 8
		vrx proto udp src 192.0.2.66 dst 10.99.0.2 length 58: dropped by rule src 192.0.2.66 comment "a list"
		vrx no addresses length 58: dropped by policy malformed
		vrx proto 60 src 2001:db9::5 dst fd99::2 length 94: dropped by policy too-many-headers
	END
	assert_equal '10 10 0 0' "$(said seen) $(said shown) $(said limited) $(said lost)" "summary"
}

test_a_full_disk() {
	[ -c /dev/full ] || skip "no /dev/full"
	load
	xc add 192.0.2.66 >/dev/null
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" monitor --count 2 >/dev/full 2>"$STATE/said" &
	LISTENER=$!
	on_exit "kill -9 $LISTENER 2>/dev/null"
	wait_for "the listener" is_listening
	drops 2
	STATUS=0
	wait "$LISTENER" || STATUS=$?
	assert_equal 3 "$STATUS" "status"
	assert_equal 'xdp-cuckoo: cannot write the output: No space left on device' "$(grep cannot "$STATE/said")" "error"
}

# poll() refuses more files than the process may have open.
test_an_end_by_an_error_is_no_success() {
	command -v prlimit >/dev/null || skip "no prlimit"
	block
	load
	listen_all
	prlimit --pid "$LISTENER" --nofile=2
	drops 1
	STATUS=0
	wait "$LISTENER" || STATUS=$?
	assert_equal 3 "$STATUS" "status"
}

test_monitor_only() {
	block
	load --monitor-only
	listen_all
	expect pass
	stop
	echo "$BLOCKED_LINE" | sed 's/: dropped/: would be dropped/' | assert_heard
	! grep 'were dropped' "$STATE/said" || fail "that packet passed"
}

test_fewer() {
	block
	load
	listen_all --every 10
	drops 500
	stop
	assert_equal 50 "$(wc -l <"$STATE/heard")" "lines"
	assert_equal '500 50 0 0' "$(said seen) $(said shown) $(said limited) $(said lost)" "summary"
	listen --rate 1
	drops 200
	wait_for "word of the rate" grep -q '^note: more packets came than the rate of 1 per second on each CPU' "$STATE/said"
	drops 1
	stop
	assert_equal 1 "$(grep -c 'more packets came' "$STATE/said")" "notes"
	# However long it takes, it is less than two minutes.
	[ "$(said shown)" -ge 1 ] || fail "none shown"
	[ "$(said shown)" -lt 120 ] || fail "$(said shown) shown"
	assert_equal '201 201' "$(said seen) $(($(said shown) + $(said limited)))" "seen; shown, and beyond the rate"
}

test_only_what_a_rule_would_match() {
	load
	xc add 192.0.2.0/24 >/dev/null
	xc add 2001:db8::/32 >/dev/null
	xc policy malformed drop >/dev/null
	listen_all dport 53 src 192.0.2.64/26 --count 2
	traffic <<-'END' >/dev/null || fail "verdicts"
		drop other proto udp src 192.0.2.1 dst 10.99.0.2 sport 53 dport 53
		drop wanted proto udp src 192.0.2.65 dst 10.99.0.2 sport 1 dport 53
		drop other proto udp src 192.0.2.65 dst 10.99.0.2 sport 53 dport 1
		drop other proto udp src 2001:db8::5 dst fd99::2 sport 1 dport 53
		drop other proto udp src 192.0.2.65 dst 10.99.0.2 sport 1 dport 53 broken malformed
		drop wanted proto tcp src 192.0.2.66 dst 10.99.0.2 sport 9 dport 53
		drop toomany proto tcp src 192.0.2.67 dst 10.99.0.2 sport 9 dport 53
	END
	ended
	assert_heard <<-'END'
		vrx proto udp src 192.0.2.65 sport 1 dst 10.99.0.2 dport 53 length 58: dropped by rule src 192.0.2.0/24
		vrx proto tcp src 192.0.2.66 sport 9 dst 10.99.0.2 dport 53 length 70: dropped by rule src 192.0.2.0/24
	END
	assert_fails 2 '0 to 65535' xc monitor dport 70000
}

# Alternative names have up to 127 bytes; samples name the interface by its own.
test_an_interface_by_another_name() {
	other=another-name-of-this-interface
	ip -n "$RX" link property add dev vrx altname "$other" 2>/dev/null || skip "no other names here"
	block
	load
	listen_all --interface "$other" --count 1
	drops 1
	wait_for "the packet" heard 1
	ended
	assert_equal "$BLOCKED_LINE" "$(sed 's/^[^ ]* //' "$STATE/heard")" "the line"
	assert_notes 'these are the counts of vrx' xc stats "$other"
	assert_output '^drop-rule +0 +0 +1 +58$'
}

# The monitor names the rules that are stored now: it reads the store again each second.
test_rules_as_they_are_stored() {
	block
	load
	listen_all
	drops 1
	wait_for "the first packet" heard 1
	assert_equal "$BLOCKED_LINE" "$(sed 's/^[^ ]* //' "$STATE/heard")" "the first line"
	xc add proto udp dport 2 >/dev/null
	xc del 192.0.2.66 >/dev/null
	drops 1
	wait_for "the second packet" heard 2
	assert_equal "${BLOCKED_LINE%rule *}rule proto udp dport 2" "$(sed -n '2s/^[^ ]* //p' "$STATE/heard")" "the second line"
	mv "$STATE/store" "$STATE/elsewhere"
	drop_and_look() {
		drops 1
		grep -qF "${BLOCKED_LINE%rule *}a rule that is not stored (any more)" "$STATE/heard"
	}
	wait_for "a packet of no stored rule" drop_and_look
	stop
}

# ---- other forms

test_json() {
	need $PYTHON
	load
	xc add 192.0.2.66 comment '"not" plain' >/dev/null 2>&1 && fail "quotes in a comment"
	xc add 192.0.2.66 comment "a list" >/dev/null
	xc policy malformed drop >/dev/null
	ip -n "$RX" link set vrx down
	ip -n "$RX" link set vrx name "$(printf 'v\033[31m')"
	ip -n "$RX" link set "$(printf 'v\033[31m')" up
	listen_all --json
	printf '%s\n' "$BLOCKED" 'proto icmp src 192.0.2.66 dst 10.99.0.2 type 8 code 0' \
		"$BLOCKED broken malformed" | sed 's/^/drop some /' |
		"$HELPERS/traffic" --from "$TX:vtx" --to "$RX:$(printf 'v\033[31m')" >/dev/null || fail "verdicts"
	stop
	$PYTHON -c '
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
for row in rows:
    time = row.pop("time")
    assert time.endswith("Z") and len(time) == len("2026-01-01T00:00:00.000000Z"), time
both = {"interface": "v?[31m", "direction": "received", "length": 58, "verdict": "drop"}
rule = {"rule": "src 192.0.2.66 comment \"a list\"", "src": "192.0.2.66", "dst": "10.99.0.2", **both}
wanted = [{"proto": "udp", "sport": 1, "dport": 2, **rule}, {"proto": "icmp", "type": 8, "code": 0, **rule},
          {"policy": "malformed", **both}]
assert rows == wanted, rows
summary = json.loads(open(sys.argv[2]).read())
assert summary == {"seen": 3, "shown": 3, "limited": 0, "lost": 0}, summary
' "$STATE/heard" "$STATE/said" || fail "$(cat "$STATE/heard" "$STATE/said")"
}

# packets FILE: interface, lengths and comment of each packet in it, with its first bytes.
packets() {
	$PYTHON tests/helpers/pcapng.py "$1" >"$STATE/packets" || fail "$1 is not sound"
	cut -f 1,3,4,6 "$STATE/packets"
}

# Two interfaces of one filter, and jumbo frames whose first buffer is shorter than the written part.
test_pcapng() {
	need $PYTHON tcpdump
	block
	second_pair
	for iface in vtx vtx2; do
		in_tx ip link set "$iface" mtu 9000
		in_rx ip link set "vrx${iface#vtx}" mtu 9000
	done
	silence
	xc load vrx vrx2 >/dev/null
	xc add src 10.99.0.1 dport 7 >/dev/null
	xc policy malformed drop >/dev/null
	listen_all --write "$STATE/drops.pcapng"
	date +%s >"$STATE/start"
	packets "$STATE/drops.pcapng"
	assert_prints '' tcpdump -n -r "$STATE/drops.pcapng"
	drops 1
	echo "drop other proto udp src 192.0.2.66 dst fe80::1 sport 1 dport 2 broken malformed" | sed 's/fe80::1/10.0.0.1/' |
		"$HELPERS/traffic" --from "$TX:vtx2" --to "$RX:vrx2" >/dev/null || fail "verdicts"
	in_tx $PYTHON -c '
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(bytes(range(250)) * 32, ("10.99.0.2", 7))'
	has_three() { [ "$(packets "$STATE/drops.pcapng" | wc -l)" -ge 3 ]; }
	wait_for "three packets, while it listens" has_three
	stop
	packets "$STATE/drops.pcapng" >"$STATE/seen"
	assert_equal "vrx	58	58	dropped by rule src 192.0.2.66
vrx2	58	58	dropped by policy malformed
vrx	8042	256	dropped by rule src 10.99.0.1 dport 7" "$(cat "$STATE/seen")" "packets"
	tail -n 1 "$STATE/packets" | cut -f 5 | grep -q "$($PYTHON -c 'print(bytes(range(214)).hex())')\$" ||
		fail "other bytes than were sent: $(tail -n 1 "$STATE/packets")"
	awk -v start="$(cat "$STATE/start")" -v now="$(date +%s)" '$2 < start - 1 || $2 > now + 1 { exit 1 }' FS='\t' \
		"$STATE/packets" || fail "other times than from $(cat "$STATE/start") on: $(cut -f 2 "$STATE/packets")"
	assert_equal 3 "$(tcpdump -n -r "$STATE/drops.pcapng" 2>/dev/null | wc -l)" "packets that tcpdump reads"
	assert_equal '' "$(cat "$STATE/heard")" "lines beside the file"
	assert_fails 3 "cannot write '.*/none/file': No such file" xc monitor --write "$STATE/none/file"
}

# Into a pipe, whose reader goes away.
test_pipes() {
	need tcpdump
	block
	load
	(nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" monitor --write - 2>"$STATE/said"
		echo $? >"$STATE/ended") | tcpdump -n -l -c 2 -r - >"$STATE/read" 2>/dev/null &
	on_exit "kill $! 2>/dev/null"
	drop_and_look() {
		drops 1
		[ -s "$STATE/ended" ]
	}
	wait_for "the end of the listener" drop_and_look
	assert_equal 0 "$(cat "$STATE/ended")" "status"
	[ "$(grep -c '192.0.2.66.1 > 10.99.0.2.2' "$STATE/read")" -eq 2 ] || fail "$(cat "$STATE/read")"
	[ "$(said shown)" -ge 2 ] || fail "$(cat "$STATE/said")"
	# Also if there is nothing to write.
	xc monitor 2>"$STATE/said" | true
	assert_equal '0 0' "$(said seen) $(said shown)" "summary"
}

# Nobody reads the pipe, and it is full. Signals end the monitor all the same.
test_a_full_pipe() {
	block
	load
	mkfifo "$STATE/unread"
	for options in '' --json '--write -'; do
		case_begin "$options"
		exec 9<>"$STATE/unread"
		# shellcheck disable=SC2086 # words
		nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" monitor --rate 1000000 $options \
			>"$STATE/unread" 2>"$STATE/said" &
		LISTENER=$!
		on_exit "kill -9 $LISTENER 2>/dev/null"
		wait_for "the listener" is_listening
		drops 2000
		wait_for "a full pipe" is_full_pipe 9
		kill -TERM "$LISTENER"
		wait_for "its end" has_ended "$LISTENER"
		ended
		grep -q shown "$STATE/said" || fail "no summary"
		exec 9<&-
	done
}

# ---- what becomes of filter and listener

# sampling FIELD: of the filter's maps: `listener` of the config, `seen` by all CPUs.
sampling() {
	for map in $(maps_of "$(program_of vrx)"); do
		bpftool map show id "$map" | grep -Eq 'name xc_(config|sampling) ' && bpftool -j map dump id "$map"
	done | grep -Eo "\"$1\": *[0-9]+" | awk -F: '{ sum += $2 } END { printf "%.0f\n", sum }'
}

is_sampling() {
	[ "$(sampling listener)" != 0 ]
}

# What xdp-cuckoo-log@.service runs, with no capability beyond the unit's: an object a line, up to the limit of each CPU.
test_the_log_unit() {
	unit=user/package/systemd/xdp-cuckoo-log@.service
	caps=$(sed -n 's/^CapabilityBoundingSet=//p' "$unit" | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
	command=$(sed -n 's/^ExecStart=@SBINDIR@\/xdp-cuckoo --name %i //p' "$unit")
	rate=$(sed -n 's/^Environment=RATE=//p' "$unit")
	load
	block
	# shellcheck disable=SC2086 # words
	nsenter --net="/run/netns/$RX" setpriv --bounding-set "-all,$caps" "$TOOL" --state "$STATE/store" ${command%' ${RATE}'} "$rate" \
		>"$STATE/heard" 2>"$STATE/said" &
	LISTENER=$!
	on_exit "kill -9 $LISTENER 2>/dev/null"
	wait_for "the listener" is_listening
	drops 2
	wait_for "the packets" heard 2
	jq -e -s 'length == 2 and all(.verdict == "drop" and .interface == "vrx" and .rule)' "$STATE/heard" >/dev/null ||
		fail "other lines: $(cat "$STATE/heard" "$STATE/said")"
	assert_equal 2 "$(wc -l <"$STATE/heard")" "lines"
	start=$(now_ms)
	drops 2000
	stop
	most=$((2 + rate * $(nproc) * (2 + ($(now_ms) - start) / 1000)))
	count=$(grep -c '"time"' "$STATE/heard")
	[ "$count" -le "$most" ] || fail "$count lines, and the limit is $rate a second on each CPU"
	[ "$most" -lt 2000 ] || fail_by 0 "no packet was above the limit"
}

# A second monitor is refused while one runs. After a kill, the kernel or the next monitor ends the sampling.
test_one_at_a_time() {
	block
	load
	echo kept >"$STATE/kept"
	listen_all
	assert_fails 5 "another monitor or program listens to the filter on 'vrx'" xc monitor --write "$STATE/kept"
	assert_equal kept "$(cat "$STATE/kept")" "the file of the second"
	drops 1
	wait_for "the packet" heard 1
	kill -STOP "$LISTENER"
	drops 3 # in the ring they stay, for nobody
	kill -9 "$LISTENER"
	listen_all
	drops 2
	stop
	assert_equal '2 2' "$(said seen) $(said shown)" "of the next one"
	assert_equal 0 "$(sampling listener)" "who listens when nobody does"
	listen_all
	kill -9 "$LISTENER"
	is_over() {
		drops 1
		[ "$(sampling listener)" = 0 ]
	}
	wait_for "the end of sampling" is_over
	seen=$(sampling seen)
	drops 3
	assert_equal "$seen" "$(sampling seen)" "packets seen when nobody listens"
}

# send: what is blocked, without end; sent: ends that, and says how many in $SENT.
send() {
	echo "drop blocked $BLOCKED" | "$HELPERS/traffic" --from "$TX:vtx" --to "$RX:vrx" --endless >"$STATE/traffic" &
	SENDER=$!
	on_exit "kill $SENDER 2>/dev/null"
}

sent() {
	kill "$SENDER"
	wait "$SENDER" || fail "not dropped: $(cat "$STATE/traffic")"
	SENT=$(awk '$1 == "total" { print $2 }' "$STATE/traffic")
}

# The monitor goes on over a new table and a filter loaded by another tool, and joins new filters.
test_goes_on() {
	block
	silence
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	listen_all --every 5000
	xc add 192.0.2.67 >/dev/null 2>&1
	send
	for capacity in 50000 1000; do
		xc resize "$capacity" >/dev/null
	done
	sent
	xc unload vrx >/dev/null
	wait_for "the end of the filter" grep -q 'no filter .default. is running here any more' "$STATE/said"
	xc load vrx >/dev/null
	WAIT_LOG=$STATE/said
	wait_for "the listener at the new filter" is_sampling
	drops 300
	stop
	assert_equal "$((SENT + 300))" "$(said seen)" "packets seen, of those sent"
	[ "$(said shown)" -ge 1 ] || fail "$(cat "$STATE/said")"
	assert_equal "$(said shown)" "$(wc -l <"$STATE/heard")" "lines"
	note "$SENT packets during three tables, none unseen"
}

# One of the two monitors listens to a filter that nobody has set up, until it gets a name.
test_two_names() {
	block
	load
	veth "$TX" vweb "$RX" vweb
	veth "$TX" vnew "$RX" vnew
	xc --name web load vweb >/dev/null
	listen_all
	ours=$LISTENER
	mv "$STATE/heard" "$STATE/ours" # it goes on writing there
	listen_all --name web
	in_rx ip link set dev vnew xdp obj "$OBJECT" sec xdp
	sleep 1.1 # until both have looked
	assert_status 0 xc --name web add 192.0.2.66
	drop_and_look() {
		echo "drop blocked $BLOCKED" | "$HELPERS/traffic" --from "$TX:vnew" --to "$RX:vnew" >/dev/null
		grep -q ' vnew .*dropped by rule' "$STATE/heard"
	}
	wait_for "a packet of the filter that got a name" drop_and_look
	drops 1
	stop
	LISTENER=$ours
	kill -INT "$LISTENER"
	ended
	assert_equal "$BLOCKED_LINE" "$(sed 's/^[^ ]* //' "$STATE/ours")" "what the other one heard"
	! grep ' vrx ' "$STATE/heard" || fail "heard of another name"
}

# Samples that are not read in time are lost, and the monitor says so.
test_lost() {
	block
	load
	listen_all
	kill -STOP "$LISTENER"
	drops 2000
	kill -CONT "$LISTENER"
	stop
	[ "$(said lost)" -gt 500 ] || fail "$(cat "$STATE/said")"
	assert_equal '2000 2000' "$(said seen) $(($(said shown) + $(said lost)))" "seen; shown, and lost"
	assert_equal "$(said shown)" "$(wc -l <"$STATE/heard")" "lines"
}

run_tests "$0" "$@"
