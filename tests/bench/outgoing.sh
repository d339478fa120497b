#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sent packets: what the look-up costs beyond an empty program with RULES rules, and how much throughput large packets
# (GSO) lose over veth. By turns, medians. RULES=N, ROUNDS=N say otherwise than usual.
#
# What a rule matches costs most where its entry is in no cache. So the flows of rules are first few, then many; and beside
# them is what XDP needs for as many flows of the same table.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib.sh

RULES=${RULES:-1000000}
ROUNDS=${ROUNDS:-15}
MEGABYTES=${MEGABYTES:-2000} # of a transfer

state
pair
seq 0 $((RULES - 1)) | awk '{ i = $1 * 7; printf "%d.%d.%d.%d\n", 11 + i / 16777216, i / 65536 % 256, i / 256 % 256, i % 256 }' \
	>"$STATE/list"
xc load vrx --outgoing --capacity "$RULES" >/dev/null 2>&1
xc import "$STATE/list" --force >/dev/null 2>&1
echo "$(xc list | wc -l) rules"
shuf -n 262144 --random-source=/etc/services "$STATE/list" 2>/dev/null >"$STATE/some" || head -n 262144 "$STATE/list" >"$STATE/some"
for flows in 256 262144; do
	echo "flows of rules: $flows"
	head -n "$flows" "$STATE/some" | in_rx "$BUILD/tests/bench/sent" "$ROUNDS"
done
echo 'the same filter at XDP, 262,144 flows:'
xc bench

nsenter --net="/run/netns/$TX" python3 tests/helpers/outgoing.py serve 5001 >"$STATE/serve" 2>/dev/null &
on_exit "kill $!"
wait_for 'the server' grep -q listening "$STATE/serve"
# transfer with|without: appends its Gbit/s to $STATE/with or $STATE/without.
transfer() {
	seconds=$(in_rx python3 tests/helpers/outgoing.py push 10.99.0.1 5001 $((MEGABYTES * 1000000)))
	awk -v s="$seconds" -v mb="$MEGABYTES" 'BEGIN { printf "%.2f\n", mb * 8 / 1000 / s }' >>"$STATE/$1"
}
# The median, and the quartiles.
median() {
	sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)], v[int((NR + 3) / 4)], v[int((3 * NR + 1) / 4)] }'
}
# The filter for received packets stays, so the difference is that of the sent ones.
for how in with without; do
	printf '[filter]\ninterfaces = vrx\noutgoing = %s\n' "$([ $how = with ] && echo yes || echo no)" >"$STATE/$how.conf"
done
for _ in $(seq "$ROUNDS"); do
	for how in with without; do
		xc up "$STATE/$how.conf" >/dev/null 2>&1
		transfer "$how"
	done
done
{ median "$STATE/with"; median "$STATE/without"; } | awk '{ m[NR] = $1; text[NR] = sprintf("%.1f Gbit/s (%.1f to %.1f)", $1, $2, $3) }
END { printf "large packets over veth: %s with --outgoing, %s without: %.1f %% less\n", text[1], text[2], 100 * (1 - m[1] / m[2]) }'
