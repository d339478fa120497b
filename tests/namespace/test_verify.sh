#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The running kernel takes the program with every kind of table, at a cost within the budget of verify.sh,
# and a cost beyond it is noticed and named.
# Takes minutes.
. tests/lib.sh

KINDS='compact-8 compact-16 compact-17 compact-32 exact exact-counting addresses addresses-counting'

# figures: the lines of the last run's table that are about programs.
figures() {
	grep -E '^[^ ]+ +(compact|exact|addresses)' "$STATE/out"
}

# most_processed: of the last run.
most_processed() {
	figures | awk '$7 > most { most = $7 } END { print most }'
}

# judge_within CLANG|OBJECT|FIGURES [PROGRAM]: the programs of the object; PROGRAM: it has only that one.
judge_within() {
	assert_status 0 sh tests/checks/verify.sh "$1"
	# shellcheck disable=SC2086 # one word a program
	set -- ${2:-xdp_cuckoo xdp_cuckoo_frags}
	for kind in $KINDS; do
		for program; do
			assert_output " $kind +$program +[1-9]"
		done
	done
	assert_equal $((8 * $#)) "$(figures | wc -l)" "programs judged"
	note "at most $(most_processed) instructions processed"
}

# Uses the compiler or, without it, an object that it made before.
judge_clang() {
	made=build/verify/$1.bpf.o
	if command -v "$1" >/dev/null; then
		judge_within "$1"
	elif [ -e "$made" ]; then
		judge_within "$made"
	else
		skip "no $1; on Debian: apt-get install $1"
	fi
}

# measure OBJECT [PROGRAM]: what the kernel makes of it, once, in $FIGURES.
measure() {
	FIGURES=$STATE/$(basename "$1" .bpf.o).figures
	"$HELPERS/verify" "$@" >"$FIGURES" || fail "$(cat "$FIGURES")"
}

need_clang() {
	command -v "${CLANG:-clang}" >/dev/null || skip "no ${CLANG:-clang} here"
}

test_programs_as_built() {
	measure "$BUILD/bench.bpf.o" bench_packet # its others are those of the filter
	judge_within "$FIGURES" bench_packet
	! grep -q ' bpf_xdp_ct_lookup' /proc/kallsyms || for object in conntrack tc_conntrack; do
		assert_status 0 sh tests/checks/verify.sh "$BUILD/xdp_cuckoo_$object.bpf.o"
	done
}

test_programs_for_tc() {
	measure "$BUILD/xdp_cuckoo_tc.bpf.o"
	judge_within "$FIGURES" 'xdp_cuckoo_sent xdp_cuckoo_ip xdp_cuckoo_ips'
	most=$(most_processed)
	assert_status 1 env BUDGET_TC_PROCESSED=$((most - 1)) sh tests/checks/verify.sh "$FIGURES"
	assert_error "^xdp_cuckoo_tc, [a-z0-9-]+, xdp_cuckoo_[a-z]+: processed $most, budget $((most - 1))\$"
	assert_status 1 env BUDGET_TC_COMPILED=101 BUDGET_TC_XLATED=102 sh tests/checks/verify.sh "$FIGURES"
	assert_equal 48 "$(grep -cE ': (compiled [0-9]*, budget 101|xlated [0-9]*, budget 102)$' "$STATE/err")" "complaints"
}

test_clang_14() {
	judge_clang clang-14
}

test_clang_16() {
	judge_clang clang-16
}

test_clang_19() {
	judge_clang clang-19
}

test_program_as_built_and_other_budgets() {
	measure "$OBJECT"
	judge_within "$FIGURES"
	most=$(most_processed)
	assert_status 0 env BUDGET_PROCESSED="$most" sh tests/checks/verify.sh "$FIGURES"
	assert_status 1 env BUDGET_PROCESSED=$((most - 1)) sh tests/checks/verify.sh "$FIGURES"
	assert_equal 1 "$(wc -l <"$STATE/err")" "programs over the budget"
	assert_error "^xdp_cuckoo, [a-z0-9-]+, [a-z_]+: processed $most, budget $((most - 1))\$"
	assert_status 1 env BUDGET_COMPILED=101 BUDGET_XLATED=102 BUDGET_PROCESSED=103 BUDGET_STACK=104 \
		sh tests/checks/verify.sh "$FIGURES"
	for complaint in 'compiled [0-9]*, budget 101' 'xlated [0-9]*, budget 102' \
		'processed [0-9]*, budget 103' 'stack [0-9]*, budget 104'; do
		assert_equal 16 "$(grep -c ": $complaint\$" "$STATE/err")" "programs with '$complaint'"
	done
}

# compile_programs LINE: two programs with the names, maps and options of the filter's, which only do that.
compile_programs() {
	need_clang
	printf '%s\n' '#include "maps.h"' 'static __always_inline int only(struct xdp_md *ctx) {' "$1" '	return XDP_PASS; }' \
		'SEC("xdp") int xdp_cuckoo(struct xdp_md *ctx) { return only(ctx); }' \
		'SEC("xdp.frags") int xdp_cuckoo_frags(struct xdp_md *ctx) { return only(ctx); }' >"$STATE/changed.bpf.c"
	"${CLANG:-clang}" -O2 -g -target bpf -mcpu=v3 -std=gnu11 -Iinclude -Ibpf \
		-idirafter "/usr/include/$(gcc -print-multiarch)" -c "$STATE/changed.bpf.c" -o "$STATE/changed.bpf.o"
}

test_longer_program() {
	compile_programs 'asm volatile(".rept 8000; r0 = 0; .endr" ::: "r0");'
	assert_status 1 sh tests/checks/verify.sh "$STATE/changed.bpf.o"
	assert_error '^changed, exact, xdp_cuckoo: compiled [0-9]+, budget [0-9]+$'
	assert_error '^changed, exact, xdp_cuckoo: xlated [0-9]+, budget [0-9]+$'
}

# 264 and 232 bytes are 496, but rounded up 544; with 224 bytes, 512.
test_stack_of_older_kernels() {
	need_clang
	objdump=$(command -v llvm-objdump llvm-objdump-14 llvm-objdump-16 llvm-objdump-19 | head -n 1)
	[ -n "$objdump" ] || skip "no llvm-objdump"
	for words in 28 29; do
		printf '%s\n' '#define SEC(name) __attribute__((section(name), used))' \
			'__attribute__((noinline)) long inner(void *at) {' "	volatile long words[$words] = {};" \
			'	return words[(long)at & 15]; }' \
			'SEC("xdp") int outer(void *at) {' '	volatile long words[33] = {};' \
			'	return inner(at) + words[(long)at & 15]; }' >"$STATE/deep.bpf.c"
		"${CLANG:-clang}" -O2 -target bpf -mcpu=v3 -c "$STATE/deep.bpf.c" -o "$STATE/deep$words.bpf.o"
	done
	for object in "$STATE/deep28.bpf.o" "$OBJECT" "$BUILD/bench.bpf.o"; do
		assert_status 0 $PYTHON tests/helpers/older_kernels.py "$objdump" "$object"
	done
	assert_status 1 $PYTHON tests/helpers/older_kernels.py "$objdump" "$STATE/deep29.bpf.o"
	assert_output 'outer > inner: [0-9]+ bytes of stack; Linux before 6.8 allows 512$'
}

test_refused_program() {
	compile_programs 'if (*(volatile char *)(long)ctx->data_end) return XDP_DROP;'
	assert_fails 1 '^changed, exact, xdp_cuckoo: refused: .*pkt_end' sh tests/checks/verify.sh "$STATE/changed.bpf.o"
	assert_equal 16 "$(grep -c refused "$STATE/err")" "programs refused"
}

# What is judged is whatever `make` builds then.
test_absent_compilers() {
	need_clang
	mkdir "$STATE/bin"
	ln -s /usr/bin/* "$STATE/bin"
	rm -f "$STATE/bin/clang-"[0-9]* "$STATE/bin/make" "$STATE/bin/llvm-objdump"*
	ln -s /bin/true "$STATE/bin/make"
	printf '#!/bin/sh\necho "exact xdp_cuckoo 1 1 1 1 1 0 1 ok"\n' >"$STATE/verify"
	chmod 755 "$STATE/verify"
	assert_shows '^no clang-16 here; on Debian: apt-get install clang-16$' env PATH="$STATE/bin" BUILD="$STATE" HELPERS="$STATE" \
		OBJECTS=tc sh tests/checks/verify.sh
	assert_output '^clang +exact +xdp_cuckoo '
	assert_output '^clang-tc +exact +xdp_cuckoo '
	assert_status 2 sh tests/checks/verify.sh clang-none
	assert_status 2 sh tests/checks/verify.sh "$STATE/none.bpf.o"
}

run_tests "$0" "$@"
