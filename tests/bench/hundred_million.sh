#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A blocklist of 100 million addresses, exact: time and memory of its import, `check`, and a million packets over veth,
# half of them of listed addresses. Needs 8 GiB of memory and of disk. `hundred_million.sh [COUNT]`
set -eu
cd "$(dirname "$0")/../.."
. tests/lib.sh
. tests/namespace/traffic.sh

COUNT=${1:-100000000}
FLOWS=500000 # of listed addresses, and of others

# addresses COUNT FIRST STEP: of a permutation of all IPv4 addresses every STEP-th one.
addresses() {
	awk -v count="$1" -v first="$2" -v step="$3" 'BEGIN {
		for (i = 0; i < count; i++) {
			a = (first + i * step) * 40503 % 4294967296
			printf "%d.%d.%d.%d\n", a / 16777216, a / 65536 % 256, a / 256 % 256, a % 256
		}
	}'
}

# timed WHAT COMMAND...
timed() {
	shift
	/usr/bin/time -o "$STATE/time" -f '%e s, %M KiB' "$@" >"$STATE/out" 2>"$STATE/err" || {
		tail -n 3 "$STATE/err"
		fail "$what"
	}
	printf '%-42s %s\n' "$what" "$(tail -n 1 "$STATE/time")"
}

run_tool() {
	what=$1
	shift
	timed "$what" nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" "$@"
}

state
pair
silence
addresses "$COUNT" 0 1 >"$STATE/list"
run_tool "load without a rule" load vrx --no-counters --no-spare
# Addresses of this host are among them.
run_tool "import $COUNT addresses" import "$STATE/list" --force --format text
rm "$STATE/list"
xc status | sed -n 's/^slots: */slots: /p'
run_tool check check
awk -v count="$COUNT" '$1 == "vrx" { if ($2 != count || $3 || $4) exit 1; is_there = 1 } END { exit !is_there }' "$STATE/out" ||
	fail "check: $(cat "$STATE/out")"

{
	addresses "$FLOWS" 0 "$((COUNT / FLOWS))" | sed 's/.*/drop listed proto udp src & dst 198.18.0.1 sport 1024 dport 53/'
	addresses "$FLOWS" "$COUNT" 1 | sed 's/.*/pass others proto udp src & dst 198.18.0.1 sport 1024 dport 53/'
} >"$STATE/flows"
traffic <"$STATE/flows" || fail "a wrong verdict"
