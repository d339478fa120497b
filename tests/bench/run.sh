#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Runs every benchmark, one after the other: sh tests/bench/run.sh [WORD...] those whose names hold a WORD.
set -eu
cd "$(dirname "$0")/../.."

[ "$(id -u)" -eq 0 ] || { echo "the benchmarks need root, for BPF" >&2; exit 1; }

run() {
	case $1 in
	*.c) "build/${1%.c}" ;;
	*.sh) sh "$1" ;;
	esac
	echo
}

for source in tests/bench/*.c tests/bench/*.sh; do
	name=$(basename "${source%.*}")
	case $source in *.bpf.c | */run.sh) continue ;; esac
	for word in "${@:-$name}"; do
		case $name in
		*"$word"*)
			run "$source"
			break
			;;
		esac
	done
done
