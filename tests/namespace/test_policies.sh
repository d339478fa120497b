#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What becomes of packets that no rule decides about, and a filter that drops nothing and says what it would.
. tests/lib.sh
. tests/namespace/safety.sh

AWAIT_S=240 # few look-ups meet a move

# --- policies

BESIDE='proto udp src 192.0.2.1 dst 10.99.0.2 sport 1 dport 2'

# OUTCOME|FLOW: a packet of each kind that `traffic` can make.
policy_flows() {
	cat <<-END
		later-fragment|proto udp src 192.0.2.1 dst 10.99.0.2 fragment later
		later-fragment|proto udp src 2001:db8::1 dst fd99::2 fragment later
		truncated|$BESIDE broken truncated
		truncated|proto tcp src 2001:db8::1 dst fd99::2 sport 1 dport 2 broken truncated
		malformed|$BESIDE broken malformed
		malformed|proto udp src 2001:db8::1 dst fd99::2 sport 1 dport 2 broken malformed
		too-many-headers|proto udp src 2001:db8::1 dst fd99::2 sport 1 dport 2 broken headers
	END
}

# Each policy is set, in force, counted separately, kept over a load, and taken back. All other packets pass.
test_policies() {
	silence
	xc load vrx >/dev/null 2>&1
	xc policy too-many-headers pass >/dev/null # the one that drops by default
	policy_flows | while IFS='|' read -r outcome flow; do
		case_begin "$flow"
		passed=$(counted "$outcome" passed)
		printf '%s\n' "pass other $BESIDE" "pass odd $flow" | traffic || fail "dropped by default"
		assert_equal $((passed + 1)) "$(counted "$outcome" passed)" "counted as passed"
		assert_shows 'policy: +drop' xc policy "$outcome" drop
		printf '%s\n' "pass other $BESIDE" "drop odd $flow" | traffic || fail "the policy is not in force"
		xc unload vrx >/dev/null
		xc load vrx >/dev/null
		printf '%s\n' "pass other $BESIDE" "drop odd $flow" | traffic || fail "the policy did not last"
		assert_equal 1 "$(counted "$outcome" dropped)" "counted as dropped"
		assert_equal 1 "$(counted all dropped)" "all that were dropped"
		assert_shows "^$outcome +drop\$" xc policy
		assert_equal 1 "$(grep -c 'drop$' "$STATE/out")" "policies that drop"
		assert_shows "policies that drop: +$outcome\$" xc status
		assert_status 0 xc policy "$outcome" pass
		echo "pass odd $flow" | traffic || fail "the policy was not taken back"
	done
}

# Rules come before policies if the packet has the fields that they name.
test_rules_come_before_policies() {
	xc load vrx >/dev/null
	xc policy later-fragment drop >/dev/null
	xc policy truncated drop >/dev/null
	xc add 192.0.2.1 action pass >/dev/null
	printf '%s\n' 'pass fragment proto udp src 192.0.2.1 dst 10.99.0.2 fragment later' \
		"pass truncated $BESIDE broken truncated" \
		'drop fragment proto udp src 192.0.2.2 dst 10.99.0.2 fragment later' | traffic || fail "wrong verdict"
	assert_shows 'blocked: no rule passes it \(policy later-fragment drop\)' xc test 192.0.2.2 fragment later
	assert_status 1 xc test 192.0.2.1 fragment later
	assert_status 1 xc test 192.0.2.2
	assert_status 1 xc test 192.0.2.0/24
	assert_output 'later fragments: +partly blocked'
	xc policy later-fragment pass >/dev/null
	xc policy no-rule drop --force >/dev/null
	assert_status 1 xc test 192.0.2.2 fragment later
}

# A monitor rule is a drop rule on trial. It counts what it would drop, and changes no verdict.
test_monitor_rules() {
	odd='proto udp src 192.0.2.1 dst 10.99.0.2 sport 1 dport 2'
	xc load vrx >/dev/null
	assert_shows 'added: src 192.0.2.0/24 action monitor' xc add 192.0.2.0/24 action monitor
	printf '%s\n' "pass monitored $odd" | traffic || fail "a monitor rule dropped"
	assert_equal 1 "$(counted 'monitor-rule' would_drop)" "packets that would be dropped"
	assert_shows '192.0.2.0/24 action monitor +# packets 1 ' xc list --counters
	assert_status 1 xc test 192.0.2.1
	assert_output 'not blocked: only monitored'
	assert_output 'running filter: +agrees'
	xc add 192.0.2.1 >/dev/null
	echo "drop narrow $odd" | traffic || fail "the monitor rule hides a drop rule"
	xc del 192.0.2.1 >/dev/null
	xc policy no-rule drop --force >/dev/null
	echo "drop policy $odd" | traffic || fail "the monitor rule hides a policy"
	assert_status 0 xc test 192.0.2.1
	assert_output 'blocked: no rule passes it'
	assert_output 'running filter: +agrees'
	xc add 192.0.2.1 action pass --force >/dev/null
	echo "pass exception $odd" | traffic || fail "the monitor rule hides a pass rule"
	printf 'test 192.0.2.1\ntest 192.0.2.2\n' | xc batch - >"$STATE/out" || :
	assert_output 'passed by src 192.0.2.1 action pass'
	xc policy no-rule pass >/dev/null
	xc export --format ipset >"$STATE/sets"
	xc flush --force >/dev/null
	xc import "$STATE/sets" 2>/dev/null >&2
	assert_shows 'src 192.0.2.0/24 action monitor' xc list
	unset odd
}

# Only pass rules let packets through, so they may not be deleted.
test_whitelist() {
	host
	xc load vrx >/dev/null
	assert_fails 2 'no pass rule names.*--confirm' xc_host policy no-rule drop
	assert_equal 1 "$(wc -l <"$STATE/err")" "lines of $(cat "$STATE/err")"
	assert_status 0 xc_host policy no-rule drop --force
	printf '%s\n' "drop any $BESIDE" "drop peer proto tcp src $PEER dst 10.99.0.2 sport 50000 dport 22" | traffic ||
		fail "not dropped"
	assert_shows 'blocked: no rule passes it \(policy no-rule drop\)' xc test 192.0.2.1
	assert_status 0 xc_host add "$PEER" action pass
	printf '%s\n' "drop any $BESIDE" "pass peer proto tcp src $PEER dst 10.99.0.2 sport 50000 dport 22" | traffic ||
		fail "the pass rule is not in force"
	assert_status 2 xc_host del "$PEER" action pass
	assert_error "the policy 'no-rule drop' would block this SSH session, from $PEER"
	assert_status 2 xc_host flush
	assert_equal 1 "$(xc list | wc -l)" "rules"
	assert_status 0 xc_host flush --force
	xc_host unload vrx >/dev/null
	assert_notes "note: the policy no-rule drop blocks this SSH session" xc_host load vrx
	assert_status 0 xc_host policy no-rule pass
	echo "pass any $BESIDE" | traffic || fail "still dropped"
}

# mac NAMESPACE INTERFACE
mac() {
	ip -n "$1" -o link show dev "$2" | sed 's/.*link\/ether \([0-9a-f:]*\).*/\1/'
}

# One packet over IPv4, for which the sender has to find its neighbour first.
say_something() {
	in_tx bash -c 'echo >/dev/udp/10.99.0.2/9'
}

# ARP is not IP. Without ARP only neighbours that are set by hand are known.
test_not_ip() {
	silence
	xc load vrx >/dev/null
	await '[ "$(counted "no-rule" passed)" -gt 0 ]' say_something
	assert_fails 2 'ARP.*--confirm' xc policy not-ip drop
	assert_status 0 xc policy not-IP drop --force
	in_tx ip neigh flush all
	in_rx ip neigh flush all
	before=$(counted 'no-rule' passed)
	await '[ "$(counted "not-ip" dropped)" -gt 2 ]' say_something
	assert_equal "$before" "$(counted 'no-rule' passed)" "packets that found their neighbour"
	in_tx ip neigh replace 10.99.0.2 dev vtx lladdr "$(mac "$RX" vrx)" nud permanent
	await '[ "$(counted "no-rule" passed)" -gt "$before" ]' say_something
	assert_status 0 xc policy not-ip pass
}

# unsettle: starts process $unsettler, which makes look-ups end without an answer. It must run while packets come, on another
# processor, so beside other work both are urgent.
unsettle() {
	nice -n -20 taskset -c 1 nsenter --net="/run/netns/$RX" "$HELPERS/unsettle" >"$STATE/unsettled" &
	unsettler=$!
	on_exit "kill $unsettler 2>/dev/null"
	await '[ -s "$STATE/unsettled" ]'
}

# urgent_traffic ARGUMENT...: traffic that unsettle meets.
urgent_traffic() {
	nice -n -20 taskset -c 0 "$HELPERS/traffic" --from "$TX:vtx" --to "$RX:vrx" --repeat 100 "$@" <"$STATE/flows"
}

# load_hasty: the filter that gives a look-up few tries.
load_hasty() {
	in_rx ip link set dev vrx xdp obj "$HELPERS/hasty.bpf.o" sec xdp
}

# The table changes all the time. Each look-up without an answer is counted as such, and the policy drops its packet.
test_unsettled() {
	[ "$(nproc)" -ge 2 ] || skip "one processor: nothing moves during a look-up"
	silence
	load_hasty
	xc add 192.0.2.250 >/dev/null
	for i in $(seq 200); do
		echo "pass other proto udp src 192.0.2.$i dst 10.99.0.2 sport 1 dport 2"
	done >"$STATE/flows"
	unsettle
	await '[ "$(counted unsettled passed)" -gt 0 ]' \
		'urgent_traffic >/dev/null || fail "dropped by default"'
	assert_status 0 xc policy unsettled drop
	await '[ "$(counted unsettled dropped)" -gt 0 ]' \
		'urgent_traffic --wrong "$STATE/wrong" >/dev/null || :'
	assert_equal "$(counted unsettled dropped)" "$(counted all dropped)" "all that were dropped"
	note "$(counted unsettled passed) passed, $(counted unsettled dropped) dropped"
	kill "$unsettler"
}

# A rule of a whole network drops such a packet, whether or not a pass rule could be read.
test_unsettled_in_a_network() {
	[ "$(nproc)" -ge 2 ] || skip "one processor: nothing moves during a look-up"
	silence
	load_hasty
	xc add proto tcp action pass >/dev/null
	xc add 192.0.0.0/16 >/dev/null
	for i in $(seq 100); do
		echo "drop listed proto udp src 192.0.2.$i dst 10.99.0.2 sport 1 dport 2"
		echo "pass other proto udp src 198.18.0.$i dst 10.99.0.2 sport 1 dport 2"
	done >"$STATE/flows"
	unsettle
	await '[ "$(counted unsettled passed)" -gt 10 ]' \
		'urgent_traffic >"$STATE/traffic" || fail "$(cat "$STATE/traffic")"'
	note "$(counted unsettled passed) passed unsettled, $(counted "drop-rule" dropped) dropped by the rule"
	kill "$unsettler"
}

# --- monitor-only

test_monitor_only() {
	silence
	small_safety_list >"$STATE/list"
	xc load vrx >/dev/null
	xc policy malformed drop >/dev/null
	assert_status 0 xc import "$STATE/list"
	judge_flows drop
	assert_shows 'monitor only: yes' xc monitor-only on
	dropped=$(counted all dropped)
	judge_flows pass
	assert_equal 2 "$(counted 'drop-rule' would_drop)" "would be dropped by a rule"
	assert_equal 1 "$(counted malformed would_drop)" "would be dropped by a policy"
	assert_equal 3 "$(counted all would_drop)" "would be dropped"
	assert_equal "$dropped" "$(counted all dropped)" "dropped"
	assert_status 0 xc stats
	assert_error 'MONITOR-ONLY: drops nothing'
	assert_output '^outcome .* would drop packets'
	assert_status 0 xc status --verbose
	assert_error 'MONITOR-ONLY: drops nothing'
	assert_output 'effect: +MONITOR-ONLY'
	assert_shows 'agrees, and drops nothing: monitor-only' xc test 192.0.2.66
	# The rules go on counting.
	assert_shows '^src 192.0.2.66 # packets 2 ' xc list --counters
	xc unload vrx >/dev/null
	xc load vrx --mode skb >/dev/null 2>&1
	judge_flows pass
	assert_status 0 xc monitor-only off
	judge_flows drop
}

test_monitor_only_from_the_first_packet_on() {
	silence
	small_safety_list >"$STATE/list"
	xc import "$STATE/list" >/dev/null 2>&1
	xc policy malformed drop >/dev/null 2>&1
	assert_status 2 xc load nosuch0 --monitor-only
	assert_shows '^monitor only: +no$' xc status --verbose
	assert_notes 'MONITOR-ONLY: drops nothing' xc load vrx --monitor-only
	judge_flows pass
	assert_equal 0 "$(counted all dropped)" "dropped"
	assert_shows '^monitor only: +yes$' xc status --verbose
}

# monitor-only is switched under traffic. Each packet is counted once, and its fate agrees with its count.
test_monitor_only_switched_under_traffic() {
	silence
	xc load vrx >/dev/null
	xc add 192.0.2.66 >/dev/null
	echo 'drop listed proto udp src 192.0.2.66 dst 10.99.0.2 sport 1 dport 2' >"$STATE/flows"
	echo 'pass other proto udp src 192.0.2.67 dst 10.99.0.2 sport 1 dport 2' >>"$STATE/flows"
	"$HELPERS/traffic" --from "$TX:vtx" --to "$RX:vrx" --endless --wrong "$STATE/wrong" \
		<"$STATE/flows" >"$STATE/sent" &
	sender=$!
	on_exit "kill $sender 2>/dev/null"
	for _ in $(seq 10); do
		before=$(counted 'drop-rule' would_drop)
		xc monitor-only on >/dev/null
		await '[ "$(counted "drop-rule" would_drop)" -gt "$before" ]'
		before=$(counted 'drop-rule' dropped)
		xc monitor-only off >/dev/null
		await '[ "$(counted "drop-rule" dropped)" -gt "$before" ]'
	done
	kill "$sender"
	wait "$sender" || [ $? -eq 1 ] || fail "no traffic"
	passed=$(awk '$1 == "listed" { print $4 }' "$STATE/sent")
	dropped=$(awk '$1 == "listed" { print $3 }' "$STATE/sent")
	assert_equal "$passed" "$(counted 'drop-rule' would_drop)" "arrived, and counted as such that would be dropped"
	assert_equal "$dropped" "$(counted 'drop-rule' dropped)" "dropped, and counted so"
	assert_equal 0 "$(awk '$1 == "other" { print $NF }' "$STATE/sent")" "other flows that were dropped"
	note "$dropped packets dropped, $passed passed"
}

run_tests "$0" "$@"
