#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# sh tests/soak/run.sh soak|crowd [SECONDS [OPTION...]]: an hour where nothing is said. Leaves the journal of what was
# done, and what was wrong, in build/soak/. SEED=N repeats the choices, not the timing.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib.sh
. tests/soak/lib.sh

program=$1
seconds=${2:-3600}
shift $(($# < 2 ? $# : 2))
mkdir -p build/soak
JOURNAL=${JOURNAL:-build/soak/$program.journal}
echo "seed $SEED, journal $JOURNAL"
state
pair
soak "$program" --seconds "$seconds" "$@"
assert_nothing_left
