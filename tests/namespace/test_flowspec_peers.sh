#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The 16 usual flows of a DDoS team, announced by each of three speakers of Debian: ExaBGP, GoBGP and BIRD. The GoBGP of this
# host takes them. Frames show which of them drop.
. tests/lib.sh
. tests/namespace/gobgp.sh

PACKAGES=$PWD/$BUILD/packages

# From each flow: frames that it matches, and near misses, which pass.
frames() {
	cat <<-'END'
		drop discard-32 proto udp src 192.0.2.1 dst 198.51.100.1 sport 1 dport 2
		pass discard-32 proto udp src 192.0.2.1 dst 198.51.100.99 sport 1 dport 2
		drop discard-24 proto tcp src 192.0.2.1 dst 203.0.113.77 sport 1 dport 2
		pass discard-24 proto tcp src 192.0.2.1 dst 203.0.112.77 sport 1 dport 2
	END
	for number in 3:53 4:123 5:389 6:1900 6:11211; do
		echo "drop udp-${number#*:} proto udp src 192.0.2.1 dst 198.51.100.${number%:*} sport ${number#*:} dport 9"
		echo "pass udp-${number#*:} proto udp src 192.0.2.1 dst 198.51.100.${number%:*} sport 54 dport 9"
		echo "pass udp-${number#*:} proto tcp src 192.0.2.1 dst 198.51.100.${number%:*} sport ${number#*:} dport 9"
	done
	cat <<-'END'
		drop syn proto tcp src 192.0.2.1 dst 198.51.100.8 sport 9 dport 80 flags 2
		pass syn proto tcp src 192.0.2.1 dst 198.51.100.8 sport 9 dport 80 flags 16
		drop fragments proto udp src 192.0.2.1 dst 198.51.100.9 fragment later
		pass fragments proto udp src 192.0.2.1 dst 198.51.100.9 sport 1 dport 2
		drop length proto udp src 192.0.2.1 dst 198.51.100.10 sport 1 dport 2 payload 1172
		drop length proto udp src 192.0.2.1 dst 198.51.100.10 sport 1 dport 2 payload 1272
		pass length proto udp src 192.0.2.1 dst 198.51.100.10 sport 1 dport 2 payload 1171
		drop ports proto udp src 192.0.2.1 dst 198.51.100.11 sport 1 dport 33434
		drop ports proto udp src 192.0.2.1 dst 198.51.100.11 sport 1 dport 33523
		pass ports proto udp src 192.0.2.1 dst 198.51.100.11 sport 1 dport 33433
		pass ports proto udp src 192.0.2.1 dst 198.51.100.11 sport 1 dport 33524
		drop icmp-type proto icmp src 192.0.2.1 dst 198.51.100.12 type 8 code 0
		pass icmp-type proto icmp src 192.0.2.1 dst 198.51.100.12 type 0 code 0
		pass dscp proto udp src 192.0.2.1 dst 198.51.100.14 sport 1 dport 2
		pass redirect proto udp src 192.0.2.1 dst 198.51.100.15 sport 1 dport 2
		drop ipv6-128 proto udp src 2001:db8:9::1 dst 2001:db8::1 sport 1 dport 2
		pass ipv6-128 proto udp src 2001:db8:9::1 dst 2001:db8::2 sport 1 dport 2
		drop ipv6-next-header proto udp src 2001:db8:9::1 dst 2001:db8:1::5 sport 1 dport 2
		pass ipv6-next-header proto tcp src 2001:db8:9::1 dst 2001:db8:1::5 sport 1 dport 2
	END
}

# speaker COMMAND...: in the namespace of the router, in the background.
speaker() {
	nsenter --net="/run/netns/$TX" "$@" >"$STATE/speaker.log" 2>&1 &
	SPEAKER=$!
	on_exit "kill -9 $SPEAKER 2>/dev/null; wait $SPEAKER 2>/dev/null"
	WAIT_LOG=$STATE/speaker.log
}

# gobgpd_config AS ROUTER-ID PEER PEER-AS
gobgpd_config() {
	printf '[global.config]\nas = %s\nrouter-id = "%s"\n' "$1" "$2"
	printf '[[neighbors]]\n[neighbors.config]\nneighbor-address = "%s"\npeer-as = %s\n' "$3" "$4"
	printf '[neighbors.timers.config]\nconnect-retry = 2\nidle-hold-time-after-reset = 1\n'
	for family in ipv4-flowspec ipv6-flowspec; do
		printf '[[neighbors.afi-safis]]\n[neighbors.afi-safis.config]\nafi-safi-name = "%s"\n' "$family"
	done
}

# The GoBGP of this host, with what the units start, and the tool.
host_begin() {
	needs_gobgp
	gobgpd_config 65002 10.99.0.2 10.99.0.1 65001 >"$STATE/host.conf"
	nsenter --net="/run/netns/$RX" "$GOBGP/gobgpd" -f "$STATE/host.conf" --log-plain >"$STATE/host.log" 2>&1 &
	on_exit "kill -9 $! 2>/dev/null; wait $! 2>/dev/null"
	wait_for "the daemon" gobgp_in "$RX" global
	printf '[flowspec]\nown-prefixes = 198.51.100.0/24 203.0.113.0/24 2001:db8::/32\n' >"$STATE/flowspec.conf"
	xc load vrx >/dev/null
	serve_gobgp
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" flowspec "$STATE/gobgp" --config "$STATE/flowspec.conf" \
		>"$STATE/follow.out" 2>"$STATE/follow.err" &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
}

has_flows() {
	xc lists --json 2>/dev/null | jq -e ".[0].flows.announced == $1" >/dev/null
}

# judge: all 16 flows have come. 14 of them have rules; the others are refused, each by its name.
judge() {
	WAIT_LOG=$STATE/speaker.log wait_for "16 flows" has_flows 16
	frames | traffic >"$STATE/judged" 2>&1 || fail "$(cat "$STATE/judged")"
	xc list | grep -qx 'proto udp dst 198.51.100.13 rate 1Mbit/s.*' || fail "no rate: $(xc list)"
	xc lists flows --json >"$STATE/flows"
	jq -r '.[] | select(.refused) | .refused + " " + (.flow | capture("(?<a>[0-9.]*/32)").a)' "$STATE/flows" | sort >"$STATE/refused"
	diff - "$STATE/refused" <<-'END' || fail "other flows are refused: $(cat "$STATE/follow.err")"
		action 198.51.100.15/32
		component 198.51.100.14/32
	END
	note "$1: $(jq 'map(select(.refused == null)) | length' "$STATE/flows") of 16 flows have rules: $(frames | wc -l) frames"
}

test_exabgp() {
	exabgp=$PACKAGES/python3-exabgp/usr
	{ [ -x "$exabgp/sbin/python3-exabgp" ] && python3 -c 'import pkg_resources' 2>/dev/null; } ||
		skip "no python3-exabgp; make packages unpacks it"
	host_begin
	{
		cat <<-'END'
			neighbor 10.99.0.2 {
			router-id 10.99.0.1; local-address 10.99.0.1; local-as 65001; peer-as 65002;
			family { ipv4 flow; ipv6 flow; }
			flow {
		END
		while IFS='|' read -r match action; do
			flow=$((flow + 1))
			printf 'route f%s { match { %s } then { %s; } }\n' "$flow" "$match" "${action:-discard}"
		done <<-'END'
			destination 198.51.100.1/32;
			destination 203.0.113.0/24;
			destination 198.51.100.3/32; protocol udp; source-port =53;
			destination 198.51.100.4/32; protocol udp; source-port =123;
			destination 198.51.100.5/32; protocol udp; source-port =389;
			destination 198.51.100.6/32; protocol udp; source-port [ =1900 =11211 ];
			destination 198.51.100.8/32; protocol tcp; tcp-flags [ =syn ];
			destination 198.51.100.9/32; fragment [ is-fragment ];
			destination 198.51.100.10/32; packet-length >=1200&<=1300;
			destination 198.51.100.11/32; protocol udp; destination-port >=33434&<=33523;
			destination 198.51.100.12/32; protocol icmp; icmp-type [ echo-request ];
			destination 198.51.100.13/32; protocol udp;|rate-limit 125000
			destination 198.51.100.14/32; dscp [ =10 ];
			destination 198.51.100.15/32;|redirect 65001:100
			destination 2001:db8::1/128/0;
			destination 2001:db8:1::/64/0; next-header udp;
		END
		echo '} }'
	} >"$STATE/exabgp.conf"
	PYTHONPATH=$exabgp/lib/python3/dist-packages speaker env exabgp_daemon_user=root exabgp_api_cli=false \
		exabgp_daemon_drop=false python3 "$exabgp/sbin/python3-exabgp" "$STATE/exabgp.conf"
	judge ExaBGP
}

test_gobgp() {
	host_begin
	gobgpd_config 65001 10.99.0.1 10.99.0.2 65002 >"$STATE/speaker.conf"
	speaker "$GOBGP/gobgpd" -f "$STATE/speaker.conf" --log-plain
	wait_for "the speaker" gobgp_in "$TX" global
	while IFS='|' read -r match action; do
		case $match in *:*) family=ipv6-flowspec ;; *) family=ipv4-flowspec ;; esac
		# shellcheck disable=SC2086 # words
		gobgp_in "$TX" global rib -a $family add match $match 'then' ${action:-discard} || fail "$match"
	done <<-'END'
		destination 198.51.100.1/32
		destination 203.0.113.0/24
		destination 198.51.100.3/32 protocol udp source-port 53
		destination 198.51.100.4/32 protocol udp source-port 123
		destination 198.51.100.5/32 protocol udp source-port 389
		destination 198.51.100.6/32 protocol udp source-port ==1900 ==11211
		destination 198.51.100.8/32 protocol tcp tcp-flags =S
		destination 198.51.100.9/32 fragment is-fragment
		destination 198.51.100.10/32 packet-length >=1200&<=1300
		destination 198.51.100.11/32 protocol udp destination-port >=33434&<=33523
		destination 198.51.100.12/32 protocol icmp icmp-type 8
		destination 198.51.100.13/32 protocol udp|rate-limit 125000
		destination 198.51.100.14/32 dscp 10
		destination 198.51.100.15/32|redirect 65001:100
		destination 2001:db8::1/128
		destination 2001:db8:1::/64 protocol udp
	END
	judge GoBGP
}

test_bird() {
	bird=$PACKAGES/bird2/usr/sbin/bird
	"$bird" --version >/dev/null 2>&1 || skip "no bird2; make packages unpacks it"
	host_begin
	{
		cat <<-'END'
			router id 10.99.0.1;
			protocol device {}
			flow4 table flows4;
			flow6 table flows6;
			protocol bgp {
				local 10.99.0.1 as 65001;
				neighbor 10.99.0.2 as 65002;
				connect delay time 1;
				flow4 { table flows4; import none; export all; };
				flow6 { table flows6; import none; export all; };
			}
		END
		while IFS='|' read -r match action; do
			case $match in *:*) family=flow6 ;; *) family=flow4 ;; esac
			printf 'protocol static { %s { table flows%s; }; route %s { %s } { bgp_ext_community.add((generic, %s)); }; }\n' \
				"$family" "${family#flow}" "$family" "$match" "${action:-0x80060000, 0x0}"
		done <<-'END'
			dst 198.51.100.1/32;
			dst 203.0.113.0/24;
			dst 198.51.100.3/32; proto = 17; sport = 53;
			dst 198.51.100.4/32; proto = 17; sport = 123;
			dst 198.51.100.5/32; proto = 17; sport = 389;
			dst 198.51.100.6/32; proto = 17; sport 1900,11211;
			dst 198.51.100.8/32; proto = 6; tcp flags 0x2/0x3f;
			dst 198.51.100.9/32; fragment is_fragment;
			dst 198.51.100.10/32; length 1200..1300;
			dst 198.51.100.11/32; proto = 17; dport 33434..33523;
			dst 198.51.100.12/32; proto = 1; icmp type = 8;
			dst 198.51.100.13/32; proto = 17;|0x80060000, 0x47f42400
			dst 198.51.100.14/32; dscp = 10;
			dst 198.51.100.15/32;|0x8008fde9, 0x64
			dst 2001:db8::1/128;
			dst 2001:db8:1::/64; next header = 17;
		END
	} >"$STATE/bird.conf"
	speaker "$bird" -f -c "$STATE/bird.conf" -s "$STATE/bird.ctl"
	judge BIRD
}

run_tests "$0" "$@"
