#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sent packets: what the look-up costs beyond an empty program with RULES rules, and how much throughput large packets
# (GSO) lose over veth. By turns, medians. RULES=N, ROUNDS=N say otherwise than usual.
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
in_rx "$BUILD/tests/bench/sent" "$ROUNDS" <"$STATE/some"

nsenter --net="/run/netns/$TX" python3 tests/helpers/outgoing.py serve 5001 >"$STATE/serve" 2>/dev/null &
on_exit "kill $!"
wait_for 'the server' grep -q listening "$STATE/serve"
# transfer with|without: appends its Gbit/s to $STATE/with or $STATE/without.
transfer() {
	seconds=$(in_rx python3 tests/helpers/outgoing.py push 10.99.0.1 5001 $((MEGABYTES * 1000000)))
	awk -v s="$seconds" -v mb="$MEGABYTES" 'BEGIN { printf "%.2f\n", mb * 8 / 1000 / s }' >>"$STATE/$1"
}
median() {
	sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
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
awk -v with="$(median "$STATE/with")" -v without="$(median "$STATE/without")" 'BEGIN {
	printf "large packets over veth: %.1f Gbit/s with --outgoing, %.1f without: %.1f %% less\n", with, without, 100 * (1 - with / without) }'
