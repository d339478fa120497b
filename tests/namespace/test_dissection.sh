#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The parser, on the host and in the kernel, on frames that it has no part in making, beside scapy and tshark, which know
# nothing of it. COUNT=n frames; PCAP='FILE|DIR...' adds those of captures; SEED=n repeats a run.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib.sh

COUNT=${COUNT:-5000}

frames() {
	$PYTHON tests/helpers/dissect.py generate "$SEED" "$COUNT" >"$STATE/frames"
	# shellcheck disable=SC2086 # one word a file
	[ -z "${PCAP:-}" ] || $PYTHON tests/helpers/dissect.py pcap $PCAP >>"$STATE/frames"
}

# beside scapy|tshark
beside() {
	frames
	run $PYTHON tests/helpers/dissect.py "$1" "$HELPERS/dissect" "$STATE/frames"
	[ "$STATUS" -eq 0 ] || { show_run; fail "the parser and $1 differ"; }
	note "$(tail -1 "$STATE/out")"
}

test_scapy_says_the_same() {
	$PYTHON -c 'import scapy' 2>/dev/null || skip "python3-scapy is not installed: make dissect"
	beside scapy
}

test_tshark_says_the_same() {
	command -v tshark >/dev/null || skip "tshark is not installed: make dissect"
	beside tshark
}

test_kernel_does_the_same() {
	frames
	run env FRAMES="$STATE/frames" ROUNDS=10 build/tests/unit/packets/test_random_frames
	[ "$STATUS" -eq 0 ] || { show_run; fail "the kernel and the host differ"; }
	note "$(grep -ho '[0-9]* frames hit.*' "$STATE/out" "$STATE/err" | head -1)"
}

run_tests "$0" "$@"
