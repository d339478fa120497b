#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# FastNetMon's notify script: called with what FastNetMon 1.2.4 was seen to write, then by Debian's fastnetmon itself,
# which watches the interface of the filter.
. tests/lib.sh

FASTNETMON=${FASTNETMON:-$BUILD/packages/fastnetmon/usr/sbin/fastnetmon}
NOTIFY=user/integrations/fastnetmon/xdp-cuckoo-notify

# notify ARGUMENT...: with the test's tool and store.
notify() {
	in_rx env XDP_CUCKOO="$PWD/$TOOL" XDP_CUCKOO_OPTIONS="--state $STATE/store" \
		XDP_CUCKOO_DROP="${DROP:-host}" "$NOTIFY" "$@"
}

# samples COUNT SOURCE HOST: lines of the report of attack_details.
samples() {
	for sample in $(seq "$1"); do
		echo "2026-11-23 02:58:41.8254$sample $2:123 > $3:80 protocol: udp frag: 0  packets: 1 size: 58 bytes ttl: 64 sample ratio: 1  "
	done
}

report() {
	printf 'IP: 198.51.100.7\nAttack type: udp_flood\nAttack direction: %s\n\n' "$1"
	printf 'UDP flows: 6\n198.51.100.7:80 < 203.0.113.1:123 44544 bytes 768 packets\n\n'
	samples 5 203.0.113.1 198.51.100.7
	samples 2 203.0.113.2 198.51.100.7
	samples 1 203.0.113.3 198.51.100.7
	samples 5 198.51.100.7 203.0.113.4
	samples 5 203.0.113.5 198.51.100.77
}

# flow VERDICT SOURCE DESTINATION
flow() {
	echo "$1 it proto udp src $2 dst $3 sport 1 dport 2"
}

test_drops_the_host_that_is_banned() {
	xc load vrx >/dev/null
	report incoming >"$STATE/report"
	assert_status 0 notify 198.51.100.7 incoming 2912 ban <"$STATE/report"
	assert_status 0 notify 198.51.100.7 incoming 2912 ban <"$STATE/report"
	assert_status 0 notify 198.51.100.7 incoming 2912 attack_details <"$STATE/report"
	assert_status 0 notify 2001:0db8:0001::0005 incoming 2831 ban <"$STATE/report"
	assert_status 0 notify 198.51.100.8 outgoing 500 ban <"$STATE/report"
	{
		flow drop 203.0.113.1 198.51.100.7
		flow drop 2001:db8:9::1 2001:db8:1::5
		flow drop 198.51.100.8 203.0.113.1
		flow pass 203.0.113.1 198.51.100.8
		flow pass 203.0.113.1 198.51.100.77
	} >"$STATE/flows"
	traffic <"$STATE/flows" || fail "wrong verdicts"
	assert_shows '^dst 198.51.100.7 timeout (1d|23h59m[0-9]+s) comment "fastnetmon incoming 2912 pps"$' xc list --list fastnetmon
	xc add dst 198.51.100.7 comment mine >/dev/null
	assert_status 0 notify 198.51.100.7 incoming 2912 unban </dev/null
	assert_status 0 notify 198.51.100.7 incoming 2912 unban </dev/null
	assert_status 0 notify 2001:0db8:0001::0005 incoming 2831 unban </dev/null
	assert_status 0 notify 198.51.100.8 outgoing 500 unban </dev/null
	{ flow drop 203.0.113.1 198.51.100.7; flow pass 198.51.100.8 203.0.113.1; } | traffic || fail "wrong verdicts after unban"
	assert_prints '' xc list --list fastnetmon
	case_begin "refusals are said"
	assert_fails 1 'would block' notify 10.99.0.2 incoming 1 ban <"$STATE/report"
	assert_fails 2 usage notify 198.51.100.7
	assert_fails 2 'is no address' notify '198.51.100.7 action pass' incoming 1 ban <"$STATE/report"
	assert_fails 2 'is no address' notify '198.51.100.7
add 192.0.2.1 action pass' incoming 1 ban <"$STATE/report"
}

test_drops_sources_only() {
	DROP=sources
	xc load vrx >/dev/null
	report incoming >"$STATE/report"
	assert_status 0 notify 198.51.100.7 incoming 2912 ban <"$STATE/report"
	assert_status 0 notify 198.51.100.7 incoming 2912 attack_details <"$STATE/report"
	assert_status 0 notify 198.51.100.77 incoming 2912 attack_details <"$STATE/report"
	{
		flow drop 203.0.113.1 198.51.100.7
		flow drop 203.0.113.2 198.51.100.7
		flow drop 203.0.113.5 198.51.100.77
		flow pass 203.0.113.3 198.51.100.7
		flow pass 203.0.113.1 198.51.100.9
		flow pass 198.51.100.7 203.0.113.4
	} | traffic || fail "wrong verdicts"
	assert_status 0 notify 198.51.100.7 incoming 2912 unban </dev/null
	{ flow pass 203.0.113.1 198.51.100.7; flow drop 203.0.113.5 198.51.100.77; } | traffic || fail "wrong verdicts after unban"
	assert_equal 1 "$(xc list | wc -l)" "rules"
}

# has_rule PATTERN
has_rule() {
	xc list --list fastnetmon | grep -q "$1"
}

has_no_rules() {
	[ -z "$(xc list)" ]
}

test_fastnetmon_bans_and_unbans() {
	[ -x "$FASTNETMON" ] || skip "no fastnetmon; make packages"
	xc load vrx >/dev/null
	printf '#!/bin/sh\nXDP_CUCKOO=%s XDP_CUCKOO_OPTIONS="--state %s" exec %s "$@"\n' \
		"$PWD/$TOOL" "$STATE/store" "$PWD/$NOTIFY" >"$STATE/notify"
	chmod +x "$STATE/notify"
	echo 198.51.100.0/24 >"$STATE/networks"
	: >"$STATE/whitelist"
	cat >"$STATE/fastnetmon.conf" <<-END
		disable_usage_report = on
		enable_ban = on
		enable_ban_ipv6 = on
		process_incoming_traffic = on
		process_outgoing_traffic = on
		ban_details_records_count = 20
		ban_time = 5
		unban_only_if_attack_finished = on
		check_period = 1
		average_calculation_time = 1
		speed_calculation_delay = 1
		ban_for_pps = on
		threshold_pps = 200
		mirror_afpacket = on
		interfaces = vrx
		networks_list_path = $STATE/networks
		white_list_path = $STATE/whitelist
		monitor_local_ip_addresses = off
		notify_script_path = $STATE/notify
		cli_stats_file_path = $STATE/statistics
		cli_stats_ipv6_file_path = $STATE/statistics6
	END
	nsenter --net="/run/netns/$RX" "$FASTNETMON" --configuration_file "$STATE/fastnetmon.conf" --log_to_console --disable_pid_logic \
		>"$STATE/fastnetmon.log" 2>&1 &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
	WAIT_LOG=$STATE/fastnetmon.log
	wait_for "FastNetMon" grep -q 'Start AF_PACKET worker' "$STATE/fastnetmon.log"
	flow pass 203.0.113.1 198.51.100.7 >"$STATE/flow"
	"$HELPERS/traffic" --from "$TX:vtx" --to "$RX:vrx" --repeat 100000000 --rate 2000 <"$STATE/flow" >/dev/null 2>&1 &
	flood=$!
	on_exit "kill $flood 2>/dev/null; wait $flood 2>/dev/null"
	wait_for "the ban" has_rule '^dst 198.51.100.7 '
	kill "$flood"
	wait "$flood" || :
	{ flow drop 203.0.113.1 198.51.100.7; flow pass 203.0.113.1 198.51.100.8; } | traffic || fail "wrong verdicts"
	wait_for "the unban" has_no_rules
	{ flow pass 203.0.113.1 198.51.100.7; } | traffic || fail "blocked after the unban"
}

run_tests "$0" "$@"
