#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# make demo-fleet: three hosts and a broker in network namespaces. A rule is published, and packets stop on all three; the
# broker is killed, and the filters go on; it comes back, and the hosts catch up.
. tests/lib.sh

set -eu
command -v redis-check-rdb >/dev/null || { echo "no Redis server here: apt-get install redis-tools"; exit 1; }
HUB=xc$$hub
BROKER=10.88.0.1
ATTACKER=192.0.2.1
SECOND=192.0.2.2
HOSTS='1 2 3'

# say TEXT
say() {
	printf '\n%s\n' "$*"
}

host() {
	host_number=$1
	shift
	in_ns "xc$$h$host_number" "$TOOL" --state "$STATE/host$host_number" "$@"
}

publish() {
	echo "\$ xdp-cuckoo publish $*"
	in_ns "$HUB" "$TOOL" --state "$STATE/publisher" publish --config "$STATE/publisher.conf" "$@" | grep -E 'changed|hosts' || :
}

# ask_all SOURCE: which hosts answer to it.
ask_all() {
	for i in $HOSTS; do
		if in_ns "$HUB" python3 tests/helpers/udp_echo.py ask "$1" "10.88.0.1$i" >/dev/null 2>&1; then
			echo "  host $i answers $1"
		else
			echo "  host $i drops $1"
		fi
	done
}

broker_start() {
	nsenter --net="/run/netns/$HUB" bash tests/helpers/redis-server.sh --bind "$BROKER" --protected-mode no --save '' \
		--appendonly yes --appendfsync always --dir "$STATE" >"$STATE/broker.log" 2>&1 </dev/null &
	BROKER_PID=$!
	on_exit "kill -9 $BROKER_PID 2>/dev/null"
	wait_for "the broker" in_ns "$HUB" redis-cli -h "$BROKER" PING
}

state
namespace "$HUB"
ip -n "$HUB" link add br0 type bridge
ip -n "$HUB" address add "$BROKER/24" dev br0
ip -n "$HUB" address add "$ATTACKER/32" dev br0
ip -n "$HUB" address add "$SECOND/32" dev br0
ip -n "$HUB" link set br0 up
printf '%s\n' '[fleet]' "broker = $BROKER" >"$STATE/publisher.conf"
say "A broker, and three hosts that follow its list 'bad':"
broker_start
in_ns "$HUB" "$TOOL" --state "$STATE/publisher" fleet init --config "$STATE/publisher.conf" | sed 's/^/  /'
for i in $HOSTS; do
	namespace "xc$$h$i"
	veth "$HUB" "port$i" "xc$$h$i" eth0
	ip -n "$HUB" link set "port$i" master br0
	ip -n "xc$$h$i" address add "10.88.0.1$i/24" dev eth0
	ip -n "xc$$h$i" route add default via "$BROKER"
	nsenter --net="/run/netns/xc$$h$i" python3 tests/helpers/udp_echo.py serve >/dev/null 2>&1 </dev/null &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
	host "$i" load eth0 >/dev/null 2>&1
	printf '%s\n' '[fleet]' "broker = $BROKER" 'lists = bad' "host = host$i" 'resync-jitter = 1s' >"$STATE/host$i.conf"
	nsenter --net="/run/netns/xc$$h$i" "$TOOL" --state "$STATE/host$i" follow --config "$STATE/host$i.conf" \
		>"$STATE/follow$i.log" 2>&1 </dev/null &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
done
for i in $HOSTS; do
	wait_for "host $i" grep -q 'follows the fleet' "$STATE/follow$i.log"
done
ask_all "$ATTACKER"
say "One rule is published:"
publish add "$ATTACKER" --list bad --wait 100
ask_all "$ATTACKER"
say "The broker is killed (-9). The filters go on:"
kill -9 "$BROKER_PID"
wait "$BROKER_PID" 2>/dev/null || :
ask_all "$ATTACKER"
say "The broker comes back, another rule is published, and the hosts catch up:"
broker_start
publish add "$SECOND" timeout 1h --list bad --wait 100
ask_all "$SECOND"
in_ns "$HUB" "$TOOL" --state "$STATE/publisher" fleet status --config "$STATE/publisher.conf"
