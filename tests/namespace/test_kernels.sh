#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The least of `make test-kernels`: the oldest kernel takes the program and filters. What it needs, make test fetches.
# Takes minutes.
. tests/lib.sh

test_oldest_kernel() {
	run sh tests/kernels/run.sh --smoke
	[ "$STATUS" -ne 77 ] || skip "$(cat "$STATE/err")"
	[ "$STATUS" -eq 0 ] || { show_run; fail "see above"; }
	note "$(sed -n 's/^==== linux-image-//p' "$STATE/out")"
}

test_what_is_missing_is_named() {
	mkdir "$STATE/bin"
	ln -s /usr/bin/* /usr/sbin/* "$STATE/bin" 2>/dev/null || : # some are in both
	rm -f "$STATE/bin/qemu-system-"*
	assert_fails 77 '^no qemu-system-x86_64$' env PATH="$STATE/bin" EMULATOR=none sh tests/kernels/run.sh
	ln -s /bin/true "$STATE/bin/qemu-system-x86_64"
	assert_status 77 env PATH="$STATE/bin" EMULATOR=none KERNELS='nosuch other' sh tests/kernels/run.sh
	assert_error '^no (cpio|modprobe|kernel package of nosuch)$'
}

run_tests "$0" "$@"
