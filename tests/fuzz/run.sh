#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Fuzzes: sh tests/fuzz/run.sh libfuzzer|afl SECONDS [TARGET...], each target that long. Starts from the seeds
# and from what earlier runs have found worth keeping (build/fuzz/corpus), and says of each target how much was
# tried, how much of the code it is about has been run, and what was found. Status 1 where something was.
set -eu
cd "$(dirname "$0")/../.."

flavour=$1
seconds=$2
shift 2
# shellcheck disable=SC2046 # one word a target
[ $# -gt 0 ] || set -- $(for file in tests/fuzz/fuzz_*.c; do basename "$file" .c | cut -c 6-; done)

SEEDS=build/fuzz/seeds
MEMORY_MB=2048
INPUT_S=10 # what takes longer hangs
export ASAN_OPTIONS="abort_on_error=1:symbolize=0"
export UBSAN_OPTIONS="halt_on_error=1:abort_on_error=1:symbolize=0"

# What the target is about, of which the lines run are counted.
sources() {
	case $1 in
	parse) echo include/parse_packet.h ;;
	rule) echo user/core/rule/parse.c user/core/rule/format.c user/core/rule/protocol_names.c user/core/rule/encode.c user/core/rule/duration.c \
		user/core/rule/key.c ;;
	list) echo user/cli/lists/*.c user/cli/io/line_file.c user/cli/io/json_walk.c ;;
	store) echo user/core/store/*.c user/core/rule/shapes.c user/core/rule/validate.c ;;
	batch) echo user/cli/io/line_pipe.c user/tool/batch_line.c ;;
	feed) echo user/feed/feed_message.c user/core/base/safe_text.c ;;
	flowspec) echo user/feed/flowspec/*.c ;;
	fleet) echo user/fleet/redis_codec.c user/fleet/fleet.c user/fleet/snapshot.c ;;
	change) echo user/tool/batch_line.c user/core/change/commit.c user/core/change/rules.c user/core/store/rules.c ;;
	*) echo "no such target: $1" >&2; exit 2 ;;
	esac
}

input_bytes_max() {
	case $1 in parse | store) echo 2048 ;; feed | flowspec) echo 4096 ;; *) echo 1024 ;; esac
}

# dictionary TARGET OPTION: the option with the file of the words of its input, if there is one.
dictionary() {
	case $1 in
	change) words=tests/fuzz/batch.dict ;;
	fleet) words=tests/fuzz/rule.dict ;;
	*) words=tests/fuzz/$1.dict ;;
	esac
	[ ! -e "$words" ] || echo "$2$words"
}

# Where what was found before stands, if anything was.
found_before() {
	[ ! -d "tests/fuzz/found/$1" ] || echo "tests/fuzz/found/$1"
}

# Of each file: lines run, and lines.
coverage() {
	target=$1
	shift
	# shellcheck disable=SC2046 # one word or none
	LLVM_PROFILE_FILE=build/fuzz/$target.profraw timeout 120 build/fuzz/cover/fuzz_"$target" \
		"$SEEDS/$target" "build/fuzz/corpus/$target" \
		$(found_before "$target") >/dev/null 2>&1 ||
		echo "  (the coverage is that of a run that failed)"
	llvm-profdata merge -o "build/fuzz/$target.profdata" "build/fuzz/$target.profraw"
	# shellcheck disable=SC2046 # one word a file
	llvm-cov report build/fuzz/cover/fuzz_"$target" -instr-profile="build/fuzz/$target.profdata" \
		$(sources "$target") 2>/dev/null |
		awk '$1 ~ /\.[ch]$/ { sub(/.*\//, "", $1); printf "    %-24s %5d of %5d lines, %s\n", $1, $8 - $9, $8, $10 }'
}

run_libfuzzer() {
	# shellcheck disable=SC2046 # one word or none
	timeout $((seconds + 120)) build/fuzz/libfuzzer/fuzz_"$1" -max_total_time="$seconds" \
		-timeout="$INPUT_S" -rss_limit_mb="$MEMORY_MB" -max_len="$(input_bytes_max "$1")" \
		$(dictionary "$1" -dict=) -artifact_prefix="build/fuzz/findings/$1/" -print_final_stats=1 \
		"build/fuzz/corpus/$1" "$SEEDS/$1" $(found_before "$1") >"build/fuzz/$1.log" 2>&1 || :
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$1.log")
	edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "build/fuzz/$1.log" | tail -1)
}

run_afl() {
	work=build/fuzz/afl-$1
	rm -rf "$work" "$work.in"
	mkdir -p "$work.in"
	cp "$SEEDS/$1"/* "$work.in"
	for file in "build/fuzz/corpus/$1"/* tests/fuzz/found/"$1"/*; do
		[ ! -f "$file" ] || cp "$file" "$work.in"
	done
	# shellcheck disable=SC2046 # one word or none
	AFL_SKIP_CPUFREQ=1 AFL_NO_AFFINITY=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_UI=1 \
		timeout $((seconds + 120)) afl-fuzz -i "$work.in" -o "$work" -V "$seconds" \
		-t $((INPUT_S * 1000)) $(dictionary "$1" -x) build/fuzz/afl/fuzz_"$1" \
		>"build/fuzz/$1.log" 2>&1 || :
	[ -e "$work/default/fuzzer_stats" ] || return 0
	runs=$(sed -n 's/^execs_done *: *//p' "$work/default/fuzzer_stats")
	edges=$(sed -n 's/^edges_found *: *//p' "$work/default/fuzzer_stats")
	for file in "$work"/default/crashes/id* "$work"/default/hangs/id*; do
		[ ! -f "$file" ] || cp "$file" "build/fuzz/findings/$1/$(basename "$file" | tr ,: __)"
	done
	for file in "$work"/default/queue/id*; do
		[ ! -f "$file" ] || cp "$file" "build/fuzz/corpus/$1/afl-$(sha1sum <"$file" | cut -c 1-16)"
	done
}

# Stores, in memory where that can be.
shared=/dev/shm
[ -w "$shared" ] || shared=/tmp
TMPDIR=$(mktemp -d -p "$shared")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

sh tests/fuzz/seeds.sh "$SEEDS"
found=0
for target; do
	mkdir -p "build/fuzz/corpus/$target" "build/fuzz/findings/$target"
	runs='' edges=''
	rm -f "build/fuzz/findings/$target"/*
	"run_$flavour" "$target"
	findings=$(find "build/fuzz/findings/$target" -type f | wc -l)
	[ -n "$runs" ] || { tail -20 "build/fuzz/$target.log"; findings=$((findings + 1)); }
	printf '%-8s %10s runs, %6s edges, %6d inputs kept, %d found%s\n' "$target" "${runs:-?}" "${edges:-?}" \
		"$(find "build/fuzz/corpus/$target" -type f | wc -l)" "$findings" \
		"$([ "$findings" -eq 0 ] || echo ": build/fuzz/findings/$target, build/fuzz/$target.log")"
	coverage "$target"
	found=$((found + findings))
done
[ "$found" -eq 0 ]
