#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The benchmarks of the packet path run: every contender's program loads, its verdicts are what they must be, which each
# benchmark checks before it times, and each leaves a figure. What the figures are is not judged.
. tests/lib.sh

BENCHES=$BUILD/tests/bench
RULES=500

# run_bench NAME [ARGUMENT...]: leaves its figures in $STATE/figures.
run_bench() {
	bench=$1
	shift
	assert_status 0 env BENCH_QUICK=once BENCH_JSON="$STATE/figures" "$BENCHES/$bench" "$@"
	[ -s "$STATE/figures" ] || fail "no figures of $bench"
	assert_equal 0 "$(grep -Evc "^[{]\"bench\": \"$bench\", .*\"median\": [1-9][0-9.]*[,}]" "$STATE/figures")" \
		"lines without a figure of $bench"
}

# assert_variants COUNT: so many contenders, each with as many figures as the others.
assert_variants() {
	sed -n 's/.*"variant": "\([^"]*\)".*/\1/p' "$STATE/figures" | sort | uniq -c >"$STATE/variants"
	assert_equal "$1" "$(wc -l <"$STATE/variants")" "variants"
	assert_equal 1 "$(awk '{ print $1 }' "$STATE/variants" | sort -u | wc -l)" "numbers of figures of a variant"
}

test_lookup() {
	run_bench lookup --full "$RULES"
	assert_variants 14
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
	LISTS=/nonexistent SIZES=2000 SINGLES=5 CHANGES=1000 LOADED=4000 BENCH_QUICK=once BENCH_JSON="$STATE/figures" \
		sh tests/bench/manage.sh "$@"
}

test_manage() {
	assert_status 0 manage
	assert_equal 0 "$(grep -Evc '^[{]"bench": "manage", .*"median": [0-9.]*[1-9][0-9.]*[}]' "$STATE/figures")" \
		"lines without a figure"
	assert_equal 5 "$(grep -c '"variant": "ours"' "$STATE/figures")" "figures of ours"
}

# Whoever does less than it is timed for is found out, though it says that it has done it.
test_manage_finds_what_is_not_done() {
	for undone in replace batch add del; do
		case_begin "$undone"
		cat >"$STATE/lazy" <<-END
			#!/bin/sh
			case "\$*" in
			*" import --replace "* | *" --replace "*) [ $undone != replace ] || exit 0 ;;
			*" $undone "*) exit 0 ;;
			esac
			exec $TOOL "\$@"
		END
		chmod +x "$STATE/lazy"
		run env TOOL="$STATE/lazy" LISTS=/nonexistent SIZES=2000 SINGLES=5 CHANGES=1000 LOADED=4000 BENCH_QUICK=once \
			sh tests/bench/manage.sh
		[ "$STATUS" -ne 0 ] || fail "it was taken for done"
		assert_output '^failed: ours: .* entries [0-9]+ are missing, and [0-9]+ more are there$'
	done
}

run_tests "$0" "$@"
