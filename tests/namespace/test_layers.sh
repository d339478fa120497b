#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The folders of user/ include only lower layers, and the check of that finds a wrong include.
. tests/lib.sh

NEEDS_ROOT=no

test_every_include_is_of_a_lower_layer() {
	assert_status 0 sh tests/layers.sh
}

test_a_wrong_include_is_named() {
	mkdir "$STATE/tree"
	cp -r user "$STATE/tree"
	assert_status 0 sh tests/layers.sh "$STATE/tree"
	echo '#include "commands/command.h"' >>"$STATE/tree/user/core/table/table.c"
	assert_status 1 sh tests/layers.sh "$STATE/tree"
	assert_output 'user/core/table/table.c includes commands/command.h'
}

run_tests "$0" "$@"
