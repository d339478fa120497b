#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Runs benchmarks one after the other: `run.sh [--full] [WORD...]`, those whose names hold a WORD. Shows their tables,
# and leaves in build/bench: NAME.txt (the same), NAME.jsonl (a figure a line), results.json (all figures that are there,
# with the machine they are of), and plots. Quick ones only without --full. A run of all adds a line to history.tsv here.
set -eu
cd "$(dirname "$0")/../.."

BUILD=${BUILD:-build}
OUT=$BUILD/bench
QUICK="lookup shapes scale cidr updates manage live" # in this order
FULL="$QUICK table paper live_churn hundred_million"

[ "$(id -u)" -eq 0 ] || { echo "the benchmarks need root, for BPF" >&2; exit 1; }
mode=quick
[ "${1-}" != --full ] || { mode=full; shift; }
if [ "$mode" = full ]; then benches=$FULL; else benches=$QUICK; fi

# Whether NAME holds one of the words; with none, every one does.
is_wanted() {
	name=$1
	shift
	[ $# -gt 0 ] || return 0
	for word; do
		case $name in *"$word"*) return 0 ;; esac
	done
	return 1
}

machine() {
	printf '"date": "%s", "mode": "%s", "kernel": "%s", "cpu": "%s", "cpus": %s, "memory_mib": %s, ' \
		"$(date -u +%FT%TZ)" "$mode" "$(uname -r)" \
		"$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" \
		"$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)"
	printf '"jit": "%s", "virtual": "%s", "governor": "%s", ' \
		"$(cat /proc/sys/net/core/bpf_jit_enable)" \
		"$(grep -qw hypervisor /proc/cpuinfo && echo yes || echo no)" \
		"$(cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2>/dev/null || echo unknown)"
	printf '"clang": "%s", "gcc": "%s", "libbpf": "%s", "commit": "%s"' \
		"$(clang --version | sed -n 's/.*version \([0-9.]*\).*/\1/p' | head -n 1)" "$(gcc -dumpfullversion)" \
		"$(pkg-config --modversion libbpf)" "$(git describe --always --dirty 2>/dev/null || echo unknown)"
}

# The status of the benchmark, and not that of tee.
# shellcheck disable=SC2086 # an option or none
run() {
	rm -f "$OUT/$1.jsonl"
	status=$OUT/$1.status
	{
		{
			if [ -x "$BUILD/tests/bench/$1" ]; then
				"$BUILD/tests/bench/$1" $2
			else
				sh "tests/bench/$1.sh" $2
			fi
		} 2>&1 && echo 0 >"$status" || echo 1 >"$status"
	} | tee "$OUT/$1.txt"
	read -r code <"$status"
	rm -f "$status"
	return "$code"
}

# An option that the benchmark knows for the mode.
option() {
	[ "$mode" = full ] || return 0
	case $1 in lookup | shapes | scale | live | manage) echo --full ;; esac
}

# A BPF_PROG_TEST_RUN waits for two grace periods, 13 ms in which processor and caches cool down: shorter ones make the
# figures steadier, and all of it four times as fast. The kernel's setting is put back at the end.
EXPEDITED=/sys/kernel/rcu_expedited
expedited_before=$(cat $EXPEDITED 2>/dev/null || :)

restore() {
	[ -z "$expedited_before" ] || echo "$expedited_before" >$EXPEDITED
}

mkdir -p "$OUT"
trap restore EXIT
trap 'exit 1' INT TERM HUP
[ -z "$expedited_before" ] || echo 1 >$EXPEDITED
failed=
for name in $benches; do
	is_wanted "$name" "$@" || continue
	printf '======== %s\n\n' "$name"
	export BENCH_JSON="$OUT/$name.jsonl"
	BENCH_QUICK=
	[ "$mode" = full ] || BENCH_QUICK=yes
	export BENCH_QUICK
	run "$name" "$(option "$name")" || failed="$failed $name"
	echo
done

{
	printf '{\n "machine": { %s },\n "results": [\n' "$(machine)"
	cat "$OUT"/*.jsonl 2>/dev/null | sed '$!s/$/,/; s/^/  /'
	printf ' ]\n}\n'
} >"$OUT/results.json"
sh tests/bench/plot.sh "$OUT"
echo "figures: $OUT/results.json; tables: $OUT/*.txt; plots: $OUT/*.svg"
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
# Only a run of all benchmarks has figures of one version.
[ $# -gt 0 ] || sh tests/bench/history.sh "$OUT" "$(git describe --always --dirty 2>/dev/null || echo unknown)" \
	"$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cpus, Linux $(uname -r)" >>tests/bench/history.tsv
