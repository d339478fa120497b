#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What live traffic misses while the table changes as fast as one writer can: `live_churn.sh [PACKETS]`,
# 10^8 of each scenario, which takes minutes. SEED=N repeats the entries of a run. None may pass.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib.sh
. tests/namespace/churn.sh

PACKETS=${1:-100000000}

# measure TITLE FLOWS LOAD-OPTIONS [OPTION...]
measure() {
	echo "$1"
	# shellcheck disable=SC2086 # words
	churn_load "$2" $3
	shift 3
	churn_live "$PACKETS" "$@" >"$STATE/out" || [ $? -eq 1 ] || fail "no measurement"
	sed 's/^/    /' "$STATE/out"
	grep -Eq '^passed +0$' "$STATE/out" || fail "packets passed that a rule drops"
	awk '$1 == "moves" && $NF > 1000 { found = 1 } END { exit !found }' "$STATE/out" || fail "hardly an entry was moved"
	xc unload vrx >/dev/null
}

[ "$(nproc)" -ge 2 ] || fail "writer and traffic need a processor each"
echo "live traffic of flows in the table, native XDP over veth; SEED=$SEED"
state
pair
measure "exact, 1024 slots, 95 % load, half of the entries come and go" "$CHURN_RESIDENTS" ''
measure "exact, the flow's entry bounced between its two buckets" 4 '' --bounce
