#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The object for Linux 5.10 gives the same verdicts on this kernel. tests/kernels/ runs it on Linux 5.10.
. tests/lib.sh

# judge UNIT: a unit test, with that object.
judge() {
	assert_status 0 env OBJECT="$BUILD/xdp_cuckoo_5_10.bpf.o" "$BUILD/tests/unit/packets/test_$1"
}

test_packets() {
	judge packets
}

test_hints() {
	judge packets_hints
}

test_look_ups() {
	judge lookup_key
}

run_tests "$0" "$@"
