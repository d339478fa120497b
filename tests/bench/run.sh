#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Runs every benchmark, one after the other: sh tests/bench/run.sh [WORD...] those whose names hold a WORD.
set -eu
cd "$(dirname "$0")/../.."

[ "$(id -u)" -eq 0 ] || { echo "the benchmarks need root, for BPF" >&2; exit 1; }
for source in tests/bench/*.c; do
	name=$(basename "$source" .c)
	case $name in *.bpf) continue ;; esac
	for word in "${@:-$name}"; do
		case $name in
		*"$word"*)
			"build/tests/bench/$name"
			echo
			;;
		esac
	done
done
