#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A store that a machine with other memory pages has made: rules are read and changed as in one of this machine. And the
# program for a machine of the other byte order.
. tests/lib.sh

# there BYTES ARGUMENT...: the tool, on a machine with such pages.
there() {
	there_bytes=$1
	shift
	in_rx env LD_PRELOAD="$PWD/$HELPERS/page_size.so" PAGE_BYTES="$there_bytes" "$TOOL" --state "$STATE/store" "$@"
}

# page_bytes: those of the store, from the description of the first of its pages.
page_bytes() {
	od -A n -t u4 -j 40 -N 4 "$STATE/store/default/data.mdb" | tr -d ' '
}

# addresses FIRST LAST
addresses() {
	seq "$1" "$2" | awk '{ printf "192.%d.%d.%d\n", $1 / 65536, $1 / 256 % 256, $1 % 256 }'
}

test_pages_of_another_machine() {
	for bytes in 4096 16384 32768; do
		case_begin "$bytes"
		rm -rf "$STATE/store"
		addresses 70000 75000 >"$STATE/first"
		addresses 75001 80000 >"$STATE/second"
		assert_status 0 there "$bytes" import "$STATE/first"
		assert_equal "$bytes" "$(page_bytes)" "bytes of a page"
		assert_fails 2 "nothing was changed" xc add 203.0.113.0/24 10.99.0.2 # gives its change up
		assert_status 0 xc import "$STATE/second"
		assert_status 0 xc load vrx
		assert_status 0 xc check
		xc list | sed 's/^src //' | sort >"$STATE/listed"
		sort "$STATE/first" "$STATE/second" | diff - "$STATE/listed" >"$STATE/difference" || fail "other rules"
		sed 's/^/del /' "$STATE/first" | xc batch >/dev/null || fail "batch"
		assert_status 0 xc unload vrx
		assert_status 0 there "$bytes" add 198.51.100.1
		there "$bytes" list | sed 's/^src //' | sort >"$STATE/listed"
		{ echo 198.51.100.1; cat "$STATE/second"; } | sort | diff - "$STATE/listed" >"$STATE/difference" ||
			fail "other rules, after a change"
		assert_equal "$bytes" "$(page_bytes)" "bytes of a page"
	done
}

# compiler ORDER: a compiler for a machine of that byte order, as far as the Makefile asks it.
compiler() {
	printf '#!/bin/sh\necho "#define __BYTE_ORDER__ __ORDER_%s_ENDIAN__"\n' "$1" >"$STATE/cc"
	chmod 755 "$STATE/cc"
}

test_byte_order_of_the_program() {
	command -v make >/dev/null || skip "no make"
	for order in LITTLE:1 BIG:2; do
		case_begin "$order"
		compiler "${order%:*}"
		object=$STATE/build/xdp_cuckoo.bpf.o
		rm -f "$object"
		assert_status 0 env -u MAKEFLAGS make -s CC="$STATE/cc" BUILD="$STATE/build" "$object"
		assert_equal "${order#*:}" "$(od -A n -t u1 -j 5 -N 1 "$object" | tr -d ' ')" "byte order of the object"
	done
}

run_tests "$0" "$@"
