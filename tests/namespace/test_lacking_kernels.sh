#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A kernel without bpf_loop() or without XDP for frames in several buffers: the tool says so, and changes nothing.
. tests/lib.sh

LOOP=181 FRAGS=188 # BPF_FUNC_loop, BPF_FUNC_xdp_get_buff_len

# lacking HELPERS COMMAND...: the tool, as if the kernel had no such helpers.
lacking() {
	lacks=" $1 "
	shift
	in_rx env LD_PRELOAD="$PWD/$HELPERS/lacking_kernel.so" LACKS="$lacks" "$TOOL" --state "$STATE/store" "$@"
}

# says WHAT: the pattern of the line.
says() {
	echo "this kernel \($(uname -r)\) lacks $1, which xdp-cuckoo needs and Linux 6.1 has; a filter that an older xdp-cuckoo \
started here goes on filtering\$"
}

configure() {
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/conf"
	echo 203.0.113.3 >"$STATE/list"
}

test_the_line_says_what_is_missing() {
	configure
	assert_status 0 lacking '' object "$STATE/object"
	rm "$STATE/object"
	for command in 'load vrx' 'load vrx --mode skb' 'load vrx --outgoing' "up $STATE/conf" "object $STATE/object"; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		{
			assert_fails 3 "$(says 'bpf_loop\(\)')" lacking $LOOP $command
			assert_fails 3 "$(says 'XDP for frames in several buffers')" lacking $FRAGS $command
			assert_fails 3 "$(says 'bpf_loop\(\) and XDP for frames in several buffers')" lacking "$LOOP  $FRAGS" $command
		}
		assert_equal 1 "$(wc -l <"$STATE/err")" "lines: $(cat "$STATE/err")"
	done
	assert_equal '' "$(program_id vrx)" "program"
	[ ! -e "$STATE/object" ] || fail "a file was written"
	assert_status 0 lacking '' load vrx
}

# A filter whose program such a kernel still took is of an older version. It cannot be replaced, but taken off.
test_an_older_filter_goes_on() {
	configure
	xc add 203.0.113.1 >/dev/null 2>&1
	in_rx "$HELPERS/older" "$STATE/store/default" default 14 vrx
	before=$(program_id vrx)
	xc list >"$STATE/before"
	for command in 'load vrx' "up $STATE/conf" 'add 203.0.113.4' "import $STATE/list" expire 'resize 50000'; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		assert_fails 3 "$(says 'bpf_loop\(\)')" lacking $LOOP $command
	done
	case_begin 'afterwards'
	assert_equal "$before" "$(program_id vrx)" "program"
	assert_prints "$(cat "$STATE/before")" xc list
	assert_verdict drop 203.0.113.200
	assert_status 0 lacking $LOOP panic
	assert_status 0 lacking $LOOP unload vrx
	assert_verdict pass 203.0.113.200
}

test_the_library_says_it() {
	command -v $PYTHON >/dev/null || skip "python3 is not installed"
	cat >"$STATE/load.py" <<-END
		import ctypes, sys
		library = ctypes.CDLL(sys.argv[1])
		library.xdp_cuckoo_error.restype = ctypes.c_char_p
		handle = ctypes.c_void_p()
		print(library.xdp_cuckoo_open(None, sys.argv[2].encode(), 1, ctypes.byref(handle)))
		print(library.xdp_cuckoo_load(handle, b"vrx", 0))
		print(library.xdp_cuckoo_error(handle).decode())
	END
	assert_shows "$(says 'bpf_loop\(\)')" in_rx env LD_PRELOAD="$PWD/$HELPERS/lacking_kernel.so libbpf.so.1" LACKS=" $LOOP " \
		$PYTHON "$STATE/load.py" "$PWD/$BUILD/libxdp-cuckoo.so.1" "$STATE/store"
	assert_equal '0 -38' "$(head -n 2 "$STATE/out" | xargs)" "what the functions return"
	assert_equal '' "$(program_id vrx)" "program"
}

run_tests "$0" "$@"
