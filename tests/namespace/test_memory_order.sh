#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Look-ups find every key on processors that reorder loads: the order of the writer's stores and of the reader's loads is
# enough, each part of it is needed, and compilers keep it in the object code for arm64, which the verifier takes.
# Takes minutes.
. tests/lib.sh

# try_all [PART]: all executions of the loads, beside the stores of the engine in $STATE/stores.
try_all() {
	$PYTHON -B tests/helpers/memory_order.py buckets "$@" <"$STATE/stores"
}

list_stores() {
	"$HELPERS/store_order" "$@" >"$STATE/stores" || fail "no stores"
}

test_no_execution_misses_a_key() {
	list_stores
	assert_status 0 try_all
	assert_output '^buckets: 6 changes, [0-9]+ executions, 8 parts needed$'
	assert_status 1 try_all 'buckets, record0 after bucket0'
	assert_output '^buckets, exact tenant: missed, not found: '
}

test_swapped_writer() {
	list_stores swapped
	assert_status 1 try_all
	assert_equal 6 "$(grep -c ': missed, not found' "$STATE/out")" "changes that go wrong"
}

# check_clang CLANG: uses the compiler or, without it, an object that it made before.
check_clang() {
	made=build/verify/$1-arm64.bpf.o
	if command -v "$1" >/dev/null; then
		make -s --no-print-directory "$made" || fail "cannot build $made"
	elif [ ! -e "$made" ]; then
		skip "no $1; on Debian: apt-get install $1"
	fi
	assert_status 0 $PYTHON tests/helpers/dependencies.py "$made"
	note "$(cat "$STATE/out")"
	assert_status 0 sh tests/checks/verify.sh "$made" # by any kernel: the bytecode is the same
	assert_equal 16 "$(grep -c ' xdp_cuckoo' "$STATE/out")" "programs judged"
}

test_clang_14() {
	check_clang clang-14
}

test_clang_16() {
	check_clang clang-16
}

test_clang_19() {
	check_clang clang-19
}

# compile_changed SCRIPT [FLAG...]: the program for arm64, its look-up changed by sed, as $STATE/changed.bpf.o.
compile_changed() {
	command -v "${CLANG:-clang}" >/dev/null || skip "no ${CLANG:-clang} here"
	mkdir -p "$STATE/bpf"
	cp bpf/* "$STATE/bpf"
	sed "$1" bpf/lookup_key.h >"$STATE/bpf/lookup_key.h"
	! cmp -s bpf/lookup_key.h "$STATE/bpf/lookup_key.h" || fail "nothing changed: $1"
	"${CLANG:-clang}" -O2 -g -target bpf -D__TARGET_ARCH_arm64 -mcpu=v3 -std=gnu11 -Iinclude -I"$STATE/bpf" \
		-idirafter "/usr/include/$(gcc -print-multiarch)" -c "$STATE/bpf/xdp_cuckoo.bpf.c" \
		-o "$STATE/changed.bpf.o"
}

test_folded_dependency() {
	compile_changed 's/asm volatile("%0 &= 0".*/seen \&= 0;/'
	assert_status 1 $PYTHON tests/helpers/dependencies.py "$STATE/changed.bpf.o"
	for need in 'bucket at [0-9]+ does not depend on sequence' 'again at [0-9]+ does not depend on bucket' \
		'again at [0-9]+ does not depend on record' 'record at [0-9]+ does not depend on bucket' \
		'active at [0-9]+ does not depend on run' 'deadline at [0-9]+ does not depend on run' \
		'hint at [0-9]+ does not depend on reads'; do
		assert_output ": $need at -?[0-9]+\$"
	done
}

run_tests "$0" "$@"
