#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A store that a machine with other memory pages has made: rules are read and changed as in one of this machine. And the
# program for a machine of the other byte order, or for one that keeps loads in order.
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
	cat >"$STATE/cc" <<-END
		#!/bin/sh
		[ "\$1" != -dumpmachine ] || exec cc -dumpmachine
		echo "#define __BYTE_ORDER__ __ORDER_$1_ENDIAN__"
	END
	chmod 755 "$STATE/cc"
}

test_byte_order_of_the_program() {
	command -v make >/dev/null || skip "no make"
	object=$STATE/build/xdp_cuckoo.bpf.o
	compiler LITTLE
	assert_shows ' -target bpfel ' env -u MAKEFLAGS make -n CC="$STATE/cc" BUILD="$STATE/build" "$object"
	compiler BIG
	assert_status 0 env -u MAKEFLAGS make -s CC="$STATE/cc" BUILD="$STATE/build" "$object"
	assert_equal 2 "$(od -A n -t u1 -j 5 -N 1 "$object" | tr -d ' ')" "byte order of the object"
}

# use_program_of_x86: on vrx, a filter of 16,384 slots whose program says that it was built for a processor that keeps
# loads in order.
use_program_of_x86() {
	xc object "$STATE/filter.o" --capacity 15000 >/dev/null
	$PYTHON - "$STATE/filter.o" <<-'END' || fail "the options are not found in the object"
		import sys
		options = bytes([0, 1, 1, 0, 1, 0, 0, 0])  # struct abi_options: 16 bits, exact, counted, orders its loads
		data = open(sys.argv[1], "rb").read()
		if data.count(options) != 1:
		    sys.exit(1)
		at = data.index(options) + 4
		open(sys.argv[1], "wb").write(data[:at] + bytes([0]) + data[at + 1:])
	END
	in_rx ip link set dev vrx xdp obj "$STATE/filter.o" sec xdp
}

# waits_of ARGUMENT...: how often the tool waits for a grace period, 8 ms or more each.
waits_of() {
	rm -f "$STATE/waits"
	assert_status 0 in_rx env LD_PRELOAD="$PWD/$HELPERS/count_waits.so" WAITS="$STATE/waits" \
		"$TOOL" --state "$STATE/store" "$@"
	waits=$(cat "$STATE/waits")
}

# The writer waits after each move, since such a program relies on an order that arm64 does not keep: but not while it
# fills a table that no packet uses yet.
test_program_that_relies_on_the_order_of_loads() {
	case $(uname -m) in x86_64 | s390x) skip "this processor keeps loads in order" ;; esac
	awk 'BEGIN { for (i = 0; i < 15000; i++) printf "60.%d.%d.%d\n", i * 7 % 251, i / 256, i % 256 }' >"$STATE/list"
	head -n 14000 "$STATE/list" >"$STATE/first"
	assert_status 0 xc import "$STATE/first" # as after a reboot: the rules are there before the filter
	use_program_of_x86
	waits_of add 192.0.2.1
	[ "$waits" -le 4 ] || fail "$waits waits for a table that is not in use"
	waits_of import "$STATE/list"
	[ "$waits" -ge 100 ] || fail "$waits waits for 1000 rules in a full table that is in use"
	assert_verdict drop "$(head -n 1 "$STATE/list")" "$(tail -n 1 "$STATE/list")"
	assert_status 0 xc check
	case_begin "a process that sets a filter up and goes on"
	in_rx ip link set dev vrx xdp off
	use_program_of_x86
	rm -rf "$STATE/store"
	waits_of import "$STATE/first"
	[ "$waits" -ge 100 ] || fail "$waits waits for 14000 rules in a table that is in use"
	assert_status 0 xc check
}

run_tests "$0" "$@"
