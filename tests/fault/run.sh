#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Kills the tool about N times, makes a quarter as many calls of it fail, and lets others meddle with the filter under
# it, spread over its commands and their steps: sh tests/fault/run.sh N. A row for each command; SEED repeats a run.
set -eu
cd "$(dirname "$0")/../.." || exit 1
. tests/lib.sh
. tests/fault/fault.sh

test_many_faults() {
	echo "SEED=$SEED"
	second_pair
	faults --kills "$KILLS" --errors "$((KILLS / 4))" --meddles "$((KILLS / 50))" >&3
}

KILLS=${1:?sh tests/fault/run.sh N}
exec 3>&1
run_tests "$0" test_many_faults
