#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The benchmarks run: every contender's program loads, its verdicts are what they must be, which each benchmark checks
# before it times, and each leaves a figure. What the figures are is not judged, but that they are of what they say.
# Takes a minute.
. tests/lib.sh

BENCHES=$BUILD/tests/bench
RULES=500

# Runs wait for grace periods most of the time: shorter ones, as run.sh has them.
EXPEDITED=/sys/kernel/rcu_expedited
if [ -w $EXPEDITED ]; then
	on_exit "echo $(cat $EXPEDITED) >$EXPEDITED"
	echo 1 >$EXPEDITED
fi

# run_bench NAME [ARGUMENT...]: leaves its figures in $STATE/figures.
run_bench() {
	bench=$1
	shift
	assert_status 0 env BENCH_QUICK=once BENCH_JSON="$STATE/figures" "$BENCHES/$bench" "$@"
	[ -s "$STATE/figures" ] || fail "no figures of $bench"
	assert_equal 0 "$(grep -Evc "^[{]\"bench\": \"[a-z ]*\", .*\"median\": -?[0-9][0-9.]*[,}]" "$STATE/figures")" \
		"lines without a figure of $bench"
}

# assert_variants COUNT [TABLE]: so many contenders in this part of the benchmark, each with as many figures as the others.
assert_variants() {
	sed -n 's/^[{]"bench": "'"${2:-$bench}"'",.*"variant": "\([^"]*\)".*/\1/p' "$STATE/figures" | sort | uniq -c >"$STATE/variants"
	assert_equal "$1" "$(wc -l <"$STATE/variants")" "variants"
	assert_equal 1 "$(awk '{ print $1 }' "$STATE/variants" | sort -u | wc -l)" "numbers of figures of a variant"
}

test_lookup() {
	run_bench lookup --full "$RULES"
	assert_variants 16
	# Before every packet it reads so many lines of other memory, each once: it compares a sum of them itself.
	assert_variants 16 pressure
	for kib in 0 256 1024; do
		assert_equal "48 of $((kib * 16)) lines" "$(sed -n 's/.*"kib": '"$kib"',.*"lines": \([0-9]*\).*/of \1 lines/p' \
			"$STATE/figures" | sort | uniq -c | sed 's/^ *//')" "figures of 16 contenders and 3 kinds of traffic"
	done
}

# The line of a run: ours by a rival's; the largest list that both import; no figure where one of them has none.
test_history() {
	mkdir "$STATE/run"
	while read -r bench of what variant figure; do
		case $bench in
		lookup) echo "{\"bench\": \"lookup\", \"rules\": $of, \"traffic\": \"$what\", \"variant\": \"$variant\", \"over_floor\": $figure}" ;;
		cidr) echo "{\"bench\": \"cidr\", \"list\": \"$of\", \"traffic\": \"from $what\", \"variant\": \"$variant\", \"over_floor\": $figure}" ;;
		manage) echo "{\"bench\": \"manage\", \"task\": \"$what\", \"variant\": \"$variant\", \"median\": $figure}" ;;
		esac | sed 's/hash_map/hash map/; s/LPM_trie/LPM trie/'
	done >"$STATE/run/all.jsonl" <<-END
		lookup 100000 hit counting 20.5
		lookup 100000 hit hash_map 205.0
		lookup 990000 half counting 30
		lookup 990000 half hash_map 40
		cidr first anywhere counting 10
		cidr first anywhere LPM_trie 50
		cidr second anywhere counting 49
		manage - import-1000 ours 5
		manage - import-1000 ipset 1
		manage - import-200000 ours 50
		manage - import-200000 ipset 100
		manage - import-10000000 ours 5000
		manage - add ours 3
		manage - add nft 2
	END
	sh tests/bench/history.sh "$STATE/run" 12ab "a machine" >"$STATE/line" || fail "no line"
	assert_equal "$(printf '12ab\ta machine\t0.100\t-\t-\t-\t-\t0.750\t0.200\t-\t0.500\t1.500')" "$(cut -f 2- "$STATE/line")" line
	assert_equal "$(head -n 1 tests/bench/history.tsv | tr '\t' '\n' | wc -l)" "$(tr '\t' '\n' <"$STATE/line" | wc -l)" columns
}

# All packets of one rule, on one processor and on all of them.
test_scale() {
	run_bench scale "$RULES"
	assert_variants 8
	assert_variants 6 processors
	assert_variants 6 "hot rule"
	assert_variants 6 model
	for processors in 1 "$(nproc)"; do
		share=0
		[ "$processors" -eq 1 ] || share='(0\.(0[1-9]|[1-9].)|1\.00)'
		assert_equal 6 "$(grep -Ec '"traffic": "hits of one rule", "processors": '"$processors"',.*"share": '"$share" "$STATE/figures")" \
			"figures of $processors processors at one rule"
	done
}

test_shapes() {
	run_bench shapes "$RULES"
	grep -q '"family": "IPv6"' "$STATE/figures" || fail "no figures of IPv6"
}

test_cidr() {
	seq 1 200 | sed 's,.*,198.18.&.0/24,' >"$STATE/nets"
	run_bench cidr "$STATE/nets"
	assert_variants 5
}

test_updates() {
	run_bench updates "$RULES"
	assert_variants 5
}

# manage ARGUMENT...: the benchmark that is a script, with little to do.
manage() {
	LISTS=/nonexistent SIZES=2000 BESIDE=1000 SINGLES=5 CHANGES=1000 LOADED=4000 BENCH_QUICK=once BENCH_JSON="$STATE/figures" \
		sh tests/bench/manage.sh "$@"
}

test_manage() {
	assert_status 0 manage
	assert_equal 0 "$(grep -Evc '^[{]"bench": "manage", .*"median": [0-9.]*[1-9][0-9.]*[}]' "$STATE/figures")" \
		"lines without a figure"
	assert_equal 5 "$(grep -c '"variant": "ours"' "$STATE/figures")" "figures of ours"
}

# live [NAME=VALUE...]: the benchmark that is a script, with little to send.
live() {
	env SIZES=1000 ROUNDS=1 SLICE_MS=1 BENCH_JSON="$STATE/figures" "$@" sh tests/bench/live.sh
}

# One receiver is on the sender's processor, one on another; the kernel confirms that it has run.
test_live() {
	assert_status 0 live
	if [ "$(nproc)" -lt 2 ]; then
		return
	fi
	for cpus in 1 2; do
		for traffic in listed mixed; do
			for receiver in "drop by a mark" xdp-cuckoo "xdp-cuckoo --no-counters" "xdp-cuckoo --compact" "BPF hash map"; do
				assert_equal 1 "$(grep -c '^{"bench":"live","cpus":'"$cpus"',"mode":"native","traffic":"'"$traffic"'",.*"variant":"'"$receiver"'".*"median":[1-9]' "$STATE/figures")" \
					"figures of $receiver, $traffic, $cpus processors"
			done
		done
	done
}

run_tests "$0" "$@"
