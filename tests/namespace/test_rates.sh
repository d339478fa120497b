#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Rules with a rate: what passes, beside other rules, on one and on two processors, and through all that changes a table.
# Takes minutes.
. tests/lib.sh
. tests/namespace/safety.sh

FLOW='proto udp src 192.0.2.1 dst 198.18.0.1 sport 1 dport 2' # frames of 58 bytes

# flood WANTED [SENDERS [FLOW]]: for a second, on processor 0 from vtx, far more than WANTED; or with SENDERS 2 also on
# processor 1 from vtx2, as fast as it goes. Prints how many packets passed. Fails where more did than WANTED a second allows
# by the kernel's own ticks, or less than a rate saves up, which no pause of the senders makes less. What a meter gives from
# tick to tick is tested in unit/packets.
flood() {
	echo "drop shared ${3:-$FLOW}" >"$STATE/flow"
	sleep 0.3 # a pause of 100 ms at least fills the meter
	$PYTHON - "$1" "${2:-1}" "$HELPERS/traffic" "$TX" "$RX" "$STATE/flow" <<-'END'
		import json, re, subprocess, sys, time
		wanted, senders, (traffic, tx, rx, flow) = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
		def ticks():
		    return int(re.search(r"^jiffies: (\d+)", open("/proc/timer_list").read(), re.M).group(1))
		begin, first = time.monotonic(), ticks()
		pace = ["--rate", str(20000 + 4 * wanted)] if senders == 1 else []
		running = [subprocess.Popen(["taskset", "-c", str(i), traffic, "--from", f"{tx}:vtx{i + 1 if i else ''}",
		                             "--to", f"{rx}:vrx{i + 1 if i else ''}", "--json", "--endless", *pace], stdin=open(flow),
		                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for i in range(senders)]
		time.sleep(1)
		for sender in running:
		    sender.terminate()
		total = [json.loads(sender.communicate()[0])["total"] for sender in running]
		sent, passed = (sum(one[key] for one in total) for key in ("sent", "passed"))
		lasted, seconds = ticks() - first, time.monotonic() - begin
		hz = min((100, 250, 300, 1000), key=lambda hz: abs(lasted / seconds / hz - 1))
		burst = wanted and max(wanted / 10, 5)
		# Each processor may have a packet or a sixteenth of a tick's tokens too much.
		slack = wanted and senders * (2 + wanted / hz / 16)
		most, least = burst + wanted * (lasted + 1) / hz + slack, min(sent, burst - slack)
		print(passed)
		sys.exit(not least <= passed <= most)
	END
}

# is_near WANTED WHAT [SENDERS [FLOW]]: sets $seen.
is_near() {
	seen=$(flood "$1" "${3:-1}" "${4:-$FLOW}") || fail "$2: $seen packets in a second, not $1"
}

test_packets_and_bits() {
	silence # no packet but these is counted
	xc load vrx >/dev/null
	xc add 192.0.2.1 rate 2000/s >/dev/null
	is_near 2000 packets
	packets=$seen
	assert_shows '^updated: src 192.0.2.1 rate 4640kbit/s$' xc add 192.0.2.1 rate 4640kbit/s # 580,000 bytes
	is_near 10000 bits
	note "2000/s: $packets; 4640 kbit/s: $seen frames of 58 bytes"
	# What passed is not counted as dropped.
	xc stats --reset >/dev/null
	echo "drop it $FLOW" | traffic --json --repeat 100000 >"$STATE/sent" || :
	dropped=$(sed -n 's/.*"dropped":\([0-9]*\),"passed".*"total".*/\1/p' "$STATE/sent")
	assert_equal "$dropped" "$(counted drop-rule dropped)" 'dropped packets'
	assert_equal $((100000 - dropped)) "$(counted no-rule passed)" 'passed packets'
}

# Two interfaces, each served by a processor, share the rate.
test_two_processors() {
	[ "$(nproc)" -ge 2 ] || skip "one processor"
	second_pair
	xc load vrx vrx2 >/dev/null
	xc add 192.0.2.1 rate 20000/s >/dev/null
	is_near 20000 both 2
	both=$seen
	is_near 20000 'one alone'
	note "20000/s on two processors: $both; on one: $seen"
}

# Pass rules, drop rules, rates, monitor rules; a packet must be within each rate that matches it.
test_the_order() {
	xc load vrx >/dev/null
	xc add 192.0.2.0/24 rate 100000/s >/dev/null
	xc add 192.0.2.1 rate 500/s >/dev/null
	is_near 500 'the lower rate'
	xc add proto udp dport 2 >/dev/null
	is_near 0 'beside a drop rule'
	xc add proto udp sport 1 action pass >/dev/null
	assert_verdict pass 192.0.2.1
	echo "pass it $FLOW" | traffic --repeat 20000 || fail "a rate came before a pass rule"
	xc del proto udp sport 1 action pass >/dev/null
	xc del proto udp dport 2 >/dev/null
	xc add proto udp dport 2 action monitor >/dev/null
	xc stats --reset >/dev/null
	is_near 500 'beside a monitor rule'
	assert_equal "$seen" "$(counted monitor-rule would_drop)" 'what is within the rate goes on to the monitor rule'
	[ "$(counted drop-rule dropped)" -gt 0 ] || fail "nothing is dropped before the monitor rule"
	xc del proto udp dport 2 action monitor >/dev/null
	# One bucket for both families; and a key with two rules, each with its rate.
	xc flush >/dev/null
	xc add proto udp dport 2 rate 1000/s >/dev/null
	xc add proto udp src 0.0.0.0/0 dport 2 rate 300/s >/dev/null
	is_near 300 'two rules of one key'
	is_near 1000 IPv6 1 'proto udp src 2001:db8::1 dst 2001:db8::2 sport 1 dport 2'
}

test_a_monitor_rule_with_a_rate() {
	xc load vrx >/dev/null
	xc add 192.0.2.1 rate 1000/s action monitor >/dev/null
	await '[ "$(counted monitor-rule would_drop)" -gt 0 ]' \
		'echo "pass it $FLOW" | traffic --repeat 50000 >/dev/null || fail "a monitor rule drops"'
	[ "$(counted no-rule passed)" -ge 100 ] || fail "packets within the rate count as would-drop"
}

# Every kind of table: compact tables match by chance, but have no buckets then.
test_kinds_of_tables() {
	for options in '' --no-counters --compact '--compact --fingerprint 8' '--compact --fingerprint 17' '--compact --fingerprint 32'; do
		case_begin "load $options"
		# shellcheck disable=SC2086 # words
		xc load vrx $options >/dev/null 2>&1 || fail "cannot load"
		xc add 192.0.2.1 rate 1000/s >/dev/null 2>&1 || : # it is there from the kind before
		is_near 1000 "$options"
		flows pass 192.0.2.2 2001:db8::1 | traffic || fail "another flow is dropped"
		xc unload vrx >/dev/null
	done
}

# What changes the table, or the store, keeps rates; what is undone gives the old one back.
test_rates_stay() {
	xc load vrx >/dev/null
	xc add 192.0.2.1 rate 1000/s comment kept >/dev/null
	is_near 1000 'at first'
	for command in 'resize 100000' 'resize 2000000' 'load vrx' 'expire' 'check'; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		xc $command >/dev/null 2>&1 || fail "status $?"
		is_near 1000 "$command"
	done
	case_begin 'undo'
	timed add 192.0.2.1 rate 5/s --confirm 30m >/dev/null 2>&1
	assert_shows '^src 192.0.2.1 rate 5/s comment "kept"$' xc list
	is_near 5 'the new rate'
	time_is_over
	assert_shows '^src 192.0.2.1 rate 1000/s comment "kept"$' xc list
	is_near 1000 undone
	case_begin 'undo of a new rule'
	timed add 192.0.2.2 rate 5/s --confirm 30m >/dev/null 2>&1
	time_is_over
	! xc list | grep -q 192.0.2.2 || fail "not undone"
	assert_shows '^effect: +filters$' xc status
	case_begin 'unload and load'
	xc unload vrx >/dev/null
	xc load vrx >/dev/null
	is_near 1000 'loaded again'
	xc del 192.0.2.1 rate 1/s >/dev/null
	assert_verdict pass 192.0.2.1
}

# What commands say of a rate.
test_what_is_told() {
	host
	xc load vrx >/dev/null
	assert_shows '^added: proto tcp dport 22 rate 100/s$' xc_host add proto tcp dport 22 rate 100pps
	grep -q '^note: a rate of 100/s now limits this SSH session, from 203.0.113.9: packets above it are dropped$' \
		"$STATE/err" || fail "the session is limited without a note"
	assert_status 0 xc_host add 192.0.2.1 rate 1/s
	assert_equal '' "$(grep 'SSH session' "$STATE/err")" 'a note about another rule'
	assert_notes "^note: 2 rules, from '.* dport 80 rate 1/s' to '.* dport 81 rate 1/s', each with a rate of its own" \
		xc add 192.0.2.8 tcp dport 80,81 rate 1/s
	assert_status 1 xc_host add 192.0.2.1 rate 1/s
	assert_status 1 xc test 192.0.2.1
	assert_output '^verdict: +not blocked: only limited$'
	assert_output '^rule: +src 192.0.2.1 rate 1/s$'
	assert_output '^drops above: +1/s$'
	assert_output '^running filter: +agrees$'
	xc add proto udp dport 7 action monitor rate 5/s >/dev/null
	assert_status 1 xc test proto udp dport 7
	assert_output '^counts above: +5/s$'
	assert_shows '"rule": "src 192.0.2.1", "rate": "1/s", "action": "drop"' xc --json list 192.0.2.1
	assert_status 1 xc del 192.0.2.1
	assert_error "^xdp-cuckoo: no such rule: src 192.0.2.1, but 'src 192.0.2.1 rate 1/s' limits it; "
	xc add 203.0.113.76/31 >/dev/null
	assert_fails 1 "blocks it; to let it pass: xdp-cuckoo add src 203.0.113.77 action pass; " xc del 203.0.113.77 rate 1/s
	assert_status 1 xc del 203.0.113.77
	assert_shows '^added: +src 192.0.2.9 rate 1/s$' xc add 192.0.2.9 rate 1/s --dry-run
	! xc list | grep -q 192.0.2.9 || fail 'a dry run adds'
	assert_shows '^deleted: src 192.0.2.1 rate 1/s$' xc del 192.0.2.1 rate 7/s
	xc add 192.0.2.1 rate 10/s >/dev/null
	echo "drop it $FLOW" | traffic --repeat 5000 >/dev/null 2>&1 || :
	[ "$(xc --json list --counters 192.0.2.1 | sed -n 's/.*"src 192.0.2.1".*"packets": \([0-9]*\),.*/\1/p')" -gt 4000 ] ||
		fail "what is above the rate is not counted by rule"
	assert_shows ' src 192.0.2.1 rate 10/s *$' xc stats --by rule
	xc monitor --count 1 >"$STATE/seen" 2>/dev/null &
	await '[ -s "$STATE/seen" ]' 'echo "drop it $FLOW" | traffic --repeat 5000 >/dev/null 2>&1 || :'
	wait $!
	grep -q 'src 192.0.2.1 rate 10/s' "$STATE/seen" || fail "monitor names another rule: $(head -3 "$STATE/seen")"
}

# Each format keeps rates, or names what it leaves out.
test_formats() {
	printf '%s\n' 'src 192.0.2.1 rate 1000/s' 'src 192.0.2.2' 'proto udp dport 53 rate 8Mbit/s action monitor comment "x"' \
		>"$STATE/wanted"
	assert_status 0 xc import "$STATE/wanted"
	for format in text csv; do
		assert_status 0 xc export "$STATE/$format" --format "$format"
		assert_status 0 xc flush
		assert_status 0 xc import "$STATE/$format"
		assert_equal "$(cat "$STATE/wanted")" "$(xc list)" "by $format"
	done
	for format in ipset nft; do
		assert_status 1 xc export "$STATE/$format" --format "$format"
		assert_error "'src 192.0.2.1 rate 1000/s' is left out: a set of $format has no rate"
		grep -q '192\.0\.2\.2' "$STATE/$format" || fail "$format lacks a rule without a rate"
		! grep -q '192\.0\.2\.1[^0-9]' "$STATE/$format" || fail "$format has a rule with a rate"
	done
	assert_status 0 xc backup "$STATE/backup"
	assert_status 0 xc flush
	assert_status 0 xc restore "$STATE/backup"
	assert_equal "$(cat "$STATE/wanted")" "$(xc list)" 'by a backup'
	# A list in which only a rate has changed; and one that another list has with a higher rate.
	sed 's,1000/s,500/s,' "$STATE/wanted" >"$STATE/changed"
	assert_shows 'updated 3, kept 0' xc import "$STATE/changed" --list a --replace
	assert_shows 'updated 0, kept 3' xc import "$STATE/changed" --list a --replace
	assert_shows '^src 192.0.2.1 rate 500/s$' xc list
	assert_shows 'updated 0, kept 3' xc import "$STATE/wanted" --list a --replace
	assert_shows '^src 192.0.2.1 rate 500/s$' xc list
	# Whoever takes a list away learns that its rate stays.
	echo '192.0.2.1 rate 40/s' >"$STATE/lower"
	kept='^note: rules with a rate that are left to other lists: 1; each keeps the lowest rate that any list gave'
	for command in 'lists delete lower' 'flush lower' 'del 192.0.2.1 rate 1/s --list lower'; do
		case_begin "$command"
		assert_status 0 xc import "$STATE/lower" --list lower
		# shellcheck disable=SC2086 # words
		assert_notes "$kept" xc $command
		assert_shows '^src 192.0.2.1 rate 40/s$' xc list
	done
	case_begin 'no note of other rules'
	echo 192.0.2.2 >"$STATE/plain"
	assert_status 0 xc import "$STATE/plain" --list plain
	assert_status 0 xc flush plain
	assert_equal '' "$(grep 'left to other lists' "$STATE/err")" 'a note of a rule without a rate'
	case_begin 'lowest rates'
	assert_status 0 xc del 192.0.2.1 rate 1/s
	assert_status 0 xc import "$STATE/changed" --list a --replace
	# A list with a rate in another unit changes nothing, also the second time; and `add` says which rate there is.
	assert_status 0 xc add 192.0.2.7 rate 8Mbit/s
	echo '192.0.2.7 rate 9/s' >"$STATE/packets"
	assert_status 0 xc import "$STATE/packets" --list b --replace
	assert_shows 'updated 0, kept 1' xc import "$STATE/packets" --list b --replace
	assert_shows '^updated: src 192.0.2.7 rate 8Mbit/s$' xc add 192.0.2.7 rate 5/s --list c
	assert_status 0 xc del 192.0.2.7 rate 1/s
	sed 's,1000/s,300/s,' "$STATE/wanted" >"$STATE/changed"
	assert_shows 'updated 1, kept 2' xc import "$STATE/changed" --list a --replace
	assert_shows '^src 192.0.2.1 rate 300/s$' xc list
	printf '%s\n' 'add 192.0.2.3 rate 10/s' 'add 192.0.2.3 rate 20/s' 'test 192.0.2.3' 'del 192.0.2.3 rate 1/s' \
		'add 192.0.2.4 rate 1/s action pass' | xc batch >"$STATE/answers" 2>/dev/null || :
	printf '%s\n' added updated 'not blocked: only limited by src 192.0.2.3 rate 20/s' deleted \
		'error: standard input:5: a rate goes with action drop or monitor: packets above the rate are dropped' >"$STATE/expected"
	diff "$STATE/expected" "$STATE/answers" || fail "answers of batch"
}

# 1,024 rates, each with its own bucket; the next one is refused, and nothing has changed.
test_many_rates() {
	xc load vrx >/dev/null
	awk 'BEGIN { for (i = 0; i < 1024; i++) print "add 198.18." int(i / 256) "." i % 256 " rate " 1 + i % 5 "/s" }' |
		xc batch >"$STATE/answers" || fail "batch: $(grep -v added "$STATE/answers" | head -3)"
	assert_status 4 xc add 192.0.2.1 rate 1/s
	assert_error "'src 192.0.2.1 rate 1/s': there are 1024 rules with a rate, and there is room for no more"
	assert_equal 1024 "$(xc list | wc -l)" rules
	assert_status 0 xc add 198.18.0.0 rate 9/s
	assert_status 0 xc add 192.0.2.1
	xc del 192.0.2.1 >/dev/null
	# A pending change may free no room that its undo needs. What the undo would bring back may be added.
	xc flush --confirm 5m >/dev/null
	assert_status 4 xc add 192.0.2.1 rate 1/s
	assert_error 'with those that the undo of the pending change would bring back'
	awk 'BEGIN { for (i = 0; i < 1024; i++) print "add 198.18." int(i / 256) "." i % 256 " rate " 1 + i % 5 "/s" }' |
		xc batch >"$STATE/answers" || fail "batch again: $(grep -v added "$STATE/answers" | head -3)"
	assert_status 0 xc confirm
	# Each address gets its own burst, now, and in the next table.
	awk 'BEGIN { for (i = 0; i < 1024; i++) print "drop it proto udp src 198.18." int(i / 256) "." i % 256 \
		" dst 198.51.100.9 sport 1 dport 2" }' >"$STATE/flows"
	for command in 'list' 'resize 50000' 'resize 60000' 'resize 3000000'; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		xc $command >/dev/null || fail "status $?"
		sleep 6 # every bucket is full
		begin=$(date +%s)
		passed=$(traffic --repeat 60 --json <"$STATE/flows" 2>/dev/null | sed -n 's/.*"total".*"passed":\([0-9]*\),.*/\1/p')
		most=$((3 * 5120 + 3072 * ($(date +%s) - begin))) # 5, what a second may have more, and 3 a second on average
		{ [ "$passed" -ge 5120 ] && [ "$passed" -le "$most" ]; } || fail "$passed passed, not 5 for each of 1024 rules"
	done
	note "$passed of 61440 passed"
	# All go; then as many others come, by turns.
	for round in 1 2 3; do
		case_begin "round $round"
		xc flush >/dev/null
		flows pass 198.18.0.1 198.18.3.255 | traffic || fail "a rate is left"
		awk -v round="$round" 'BEGIN { for (i = 0; i < 1024; i++) print "add 10." round "." int(i / 256) "." i % 256 " rate 5/s" }' |
			xc batch >/dev/null || fail "cannot add"
		begin=$(date +%s)
		passed=$(echo "drop it proto udp src 10.$round.3.255 dst 198.51.100.9 sport 1 dport 2" |
			traffic --repeat 1000 --json 2>/dev/null | sed -n 's/.*"total".*"passed":\([0-9]*\),.*/\1/p')
		{ [ "$passed" -ge 5 ] && [ "$passed" -le $((50 + 5 * ($(date +%s) - begin))) ]; } || fail "$passed passed"
	done
}

# The filter finds the first place of a line without a search. A rule has it also after its rate has changed.
test_first_places() {
	xc load vrx >/dev/null
	for rate in 5/s 7/s 9Mbit/s 5/s; do
		case_begin "rate $rate"
		xc add 192.0.2.1 rate "$rate" >/dev/null
		for map in $(maps_of "$(program_of vrx)"); do
			bpftool map show id "$map" | grep -q 'name xc_rates ' || continue
			bpftool -j map lookup id "$map" key 0 0 0 0 | $PYTHON -c '
import json, struct, sys
value = bytes(int(byte, 16) for byte in json.load(sys.stdin)["value"])
def places(first): # of the lines in use, or of those before
    hashes = (struct.unpack_from("6Q", value, 64 * line) for line in range(first, first + 1024))
    return [place for line in hashes for place in range(6) if line[place]]
print(*max(places(0), places(1024)), end="")'
		done >"$STATE/places"
		assert_equal 0 "$(cat "$STATE/places")" 'places of the rule'
	done
}

test_sent_packets() {
	xc load vrx --outgoing >/dev/null 2>&1
	xc add proto udp src 10.99.0.1 rate 50/s >/dev/null
	xc stats --reset >/dev/null
	in_rx $PYTHON -c '
import socket
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(3000):
    try:
        udp.sendto(b"x", ("10.99.0.1", 9))
    except OSError:
        pass'
	[ "$(counted drop-rule dropped)" -gt 2500 ] || fail "too few of the sent packets are dropped"
	[ "$(counted drop-rule dropped)" -lt 2999 ] || fail "no sent packet passes"
}

run_tests "$0" "$@"
