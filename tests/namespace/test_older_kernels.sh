#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The program for Linux 5.10, on this kernel: its verdicts, and what the tool does where it has no other program.
# tests/kernels/ runs it on Linux 5.10.
. tests/lib.sh

# judge UNIT: a unit test, with that object.
judge() {
	assert_status 0 env OBJECT="$BUILD/xdp_cuckoo_5_10.bpf.o" "$BUILD/tests/unit/packets/test_$1"
}

test_packets() {
	judge packets
}

test_hints() {
	judge packets_hints
}

test_look_ups() {
	judge lookup_key
}

# on RELEASE COMMAND...: the tool, on a kernel that is as old as that, as far as the tool can see.
on() {
	on_release=$1
	shift
	set -- "$TOOL" --state "$STATE/store" "$@"
	in_rx ${LIMITS:+prlimit $LIMITS} ${BOUNDS:+setpriv $BOUNDS} \
		env LD_PRELOAD="$PWD/$HELPERS/older_kernel.so" RELEASE="$on_release" "$@"
}

program_name() {
	ip -n "$RX" -j link show vrx | jq '.[].xdp.prog.id' | xargs bpftool -j prog show id | jq -r .name
}

NOTE='cannot filter jumbo frames in native mode \(Linux 5.18 can\): if the MTU .* more than 3490, use --mode skb'

test_load_and_status_say_what_is_missing() {
	for release in 5.11.0 5.14.0 5.15.0-100-generic; do
		case_begin "$release"
		assert_notes "Linux $release $NOTE" on "$release" load vrx --mode native
		assert_notes "Linux $release $NOTE" on "$release" status
		[ "$release" != 5.11.0 ] || assert_status 0 on "$release" add 192.0.2.1
		printf '%s\n' 'drop blocked proto udp src 192.0.2.1 dst 198.51.100.7 sport 1111 dport 53' \
			'pass innocent proto udp src 192.0.2.2 dst 198.51.100.7 sport 1111 dport 53' |
			traffic || fail "wrong verdicts"
		assert_status 0 on "$release" resize 100000
		assert_status 0 on "$release" unload --all
	done
	assert_status 0 on 5.18.0 load vrx
	! grep jumbo "$STATE/err" || fail "a note on Linux 5.18"
}

# The program looks up 32 shapes. A store may have more, from a newer kernel.
test_32_kinds_of_rules() {
	on 5.15.0 load vrx >/dev/null
	for n in $(seq 33); do
		echo "src 192.0.2.$n $(printf '%s' "$n" | awk '{
			print ($1 % 2 ? "sport 7 " : "") (int($1 / 2) % 2 ? "dport 8 " : "") \
				(int($1 / 4) % 2 ? "dst 198.51.100.7 " : "") (int($1 / 8) % 2 ? "proto udp " : "") \
				"action " ($1 == 33 ? "drop state new" : int($1 / 16) % 2 ? "pass" : "drop")
		}')"
	done >"$STATE/kinds"
	head -n 32 "$STATE/kinds" >"$STATE/list"
	assert_status 0 on 5.15.0 import "$STATE/list"
	# shellcheck disable=SC2046 # words
	assert_fails 4 '32 kinds of rule' on 5.15.0 add $(sed -n 33p "$STATE/kinds")
	echo 'drop last proto udp src 192.0.2.15 dst 198.51.100.7 sport 7 dport 8' | traffic || fail "wrong verdict"
	assert_status 0 on 5.15.0 unload --all
	# shellcheck disable=SC2046 # words
	assert_status 0 on 5.18.0 add $(sed -n 33p "$STATE/kinds")
	assert_fails 4 '33 kinds of rule.*before Linux 5.18 the filter looks up 32' on 5.15.0 load vrx
}

test_object_for_this_kernel() {
	command -v readelf >/dev/null || skip "no readelf"
	assert_status 0 on 5.15.0 object "$STATE/object"
	! readelf -SW "$STATE/object" | grep -q ' xdp.frags ' || fail "it is for Linux 5.18"
	assert_status 0 on 5.18.0 object "$STATE/object"
	readelf -SW "$STATE/object" | grep -q ' xdp.frags ' || fail "it is for Linux 5.10"
}

# RHEL 9 has a 5.14 with most of the BPF of later kernels. A process that may not ask goes by the release.
test_backports() {
	needs_linux 5.18
	export BACKPORTS=1
	assert_status 0 on 5.14.0-570.el9 object "$STATE/object"
	grep -q xdp_cuckoo_frags "$STATE/object" || fail "no program for frames in several buffers"
	in_rx ip link set vrx mtu 9000
	for bounds in '' --bounding-set=-bpf,-perfmon; do
		case_begin "$bounds"
		BOUNDS=$bounds
		assert_status 0 on 5.14.0-570.el9 load vrx --mode native
		assert_equal xdp_cuckoo_frags "$(program_name)" "program"
		assert_status 0 on 5.14.0-570.el9 status
		! grep jumbo "$STATE/err" || fail "a note"
		assert_status 0 on 5.14.0-570.el9 unload vrx
	done
	case_begin 'without the capabilities'
	BOUNDS=--bounding-set=-bpf,-perfmon,-sys_admin
	assert_status 0 on 5.14.0-570.el9 object "$STATE/object"
	! grep -q xdp_cuckoo_frags "$STATE/object" || fail "a program for frames in several buffers"
	BOUNDS=--bounding-set=-net_admin,-sys_admin
	assert_status 0 on 5.14.0-570.el9 object "$STATE/object"
	! grep -q xdp_cuckoo_frags "$STATE/object" || fail "a program for frames in several buffers"
}

# This kernel has the other program, and must not be asked for it.
test_large_mtu() {
	ip -n "$TX" link set vtx mtu 3491
	ip -n "$RX" link set vrx mtu 3491
	assert_notes "MTU of 'vrx' is 3491: .*; make the MTU smaller, or .* --mode skb" on 5.15.0 load vrx --mode native
	assert_equal xdp_cuckoo "$(program_name)" "program"
	assert_notes "MTU of 'vrx' is 3491: .*; make the MTU smaller, or .* --mode skb" on 5.15.0 status
	assert_status 0 on 5.15.0 unload --all
	ip -n "$TX" link set vtx mtu 9000
	ip -n "$RX" link set vrx mtu 9000
	assert_status 3 on 5.15.0 load vrx --mode native
	assert_error "'vrx' does not take the filter in its driver: .*; use --mode skb or --mode auto$"
	assert_status 0 on 5.15.0 load vrx
	assert_output '^  vrx +skb'
}

test_object_file() {
	assert_status 0 on 5.15.0 object "$STATE/older.o"
	! grep -q xdp_cuckoo_frags "$STATE/older.o" || fail "a program for frames in several buffers"
	assert_status 0 xc object "$STATE/newer.o"
	grep -q xdp_cuckoo_frags "$STATE/newer.o" || fail "no program for frames in several buffers"
}

test_bench() {
	assert_status 0 on 5.15.0 load vrx
	assert_status 0 on 5.15.0 bench --seconds 1
}

# Linux before 5.11 counts BPF memory as locked memory.
test_limit_of_locked_memory() {
	LIMITS=--memlock=65536:65536
	BOUNDS=--bounding-set=-sys_resource
	assert_status 3 on 5.10.0 load vrx
	assert_error 'counts BPF memory as locked memory, .* too low; raise it \(ulimit -l unlimited, or LimitMEMLOCK=infinity'
	assert_status 0 on 5.11.0 load vrx
	for unit in user/package/systemd/*.service; do
		! grep -q '^CapabilityBoundingSet=.*CAP_BPF' "$unit" ||
			assert_equal 1 "$(grep -c '^LimitMEMLOCK=infinity$' "$unit")" "$unit"
	done
}

test_limit_of_locked_memory_is_raised() {
	prlimit --memlock=unlimited:unlimited true 2>/dev/null || skip "no CAP_SYS_RESOURCE here"
	LIMITS=--memlock=65536:65536
	assert_status 0 on 5.10.0 load vrx
}

test_too_old() {
	assert_status 3 on 5.4.0-26-generic load vrx
	assert_error "this kernel is too old; xdp-cuckoo needs Linux 5.10 or newer$"
	assert_shows 'running: +none' xc status
}

run_tests "$0" "$@"
