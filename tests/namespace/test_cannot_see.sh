#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# "Cannot see" is never "none": what a process may not look at, or cannot read, is an error with its reason.
. tests/lib.sh
. tests/namespace/safety.sh

# pins: makes a directory for root's pins, in $PINS.
pins() {
	mkdir "$STATE/bpf"
	mount -t bpf -o mode=0700 bpf "$STATE/bpf"
	on_exit "umount $STATE/bpf 2>/dev/null"
	PINS=$STATE/bpf/pins
	mkdir -m 0700 "$PINS"
}

# contained ARGUMENT...: runs the tool as root, with the privileges of a usual container.
contained() {
	in_rx setpriv --bounding-set=-sys_admin --inh-caps=-all "$TOOL" --state "$STATE/store" --pins "$PINS" "$@"
}

UNSEEN="cannot see what runs: 'vrx' runs a program"

# refuses_unseen: every command that must see the running filters fails.
refuses_unseen() {
	printf '192.0.2.7\n' >"$STATE/list"
	printf '[filter]\ninterfaces = vrx\n[list feed]\nfile = %s\n' "$STATE/list" >"$STATE/conf"
	while read -r command; do
		case_begin "$1: $command"
		# shellcheck disable=SC2086 # words
		assert_fails 3 "$UNSEEN.*with the --pins DIR that the filter was loaded with" contained $command
		assert_equal 1 "$(wc -l <"$STATE/err")" "lines on standard error"
	done <<-END
		add 192.0.2.9
		del 192.0.2.66
		flush
		import $STATE/list
		expire
		policy malformed drop
		monitor-only on
		panic
		panic --all
		panic off
		confirm
		resize 5000
		check
		status
		stats
		stats --by rule
		stats --reset
		top --count 1
		monitor --seconds 1
		metrics
		list --counters
		bench --seconds 1
		unload vrx
		unload --all
		down
	END
	case_begin "$1: batch"
	echo 'add 192.0.2.9' >"$STATE/lines"
	assert_status 3 contained batch "$STATE/lines"
	cat "$STATE/out" >>"$STATE/err"
	assert_error "$UNSEEN"
	case_begin "$1: what is in force"
	assert_equal 'src 192.0.2.66' "$(xc list)" "rules"
	expect drop
}

test_root_without_cap_sys_admin() {
	block
	assert_status 0 xc load vrx
	pins
	refuses_unseen 'a directory without its pins'
	assert_fails 5 "'vrx' runs an XDP program, maybe this filter" contained load vrx
	umount "$STATE/bpf"
	refuses_unseen 'no BPF file system'
	case_begin 'what the store alone tells'
	for command in list export lists policy; do
		assert_status 0 contained "$command"
	done
	assert_shows 'running filter: +not known: only CAP_SYS_ADMIN' contained test 192.0.2.66
	assert_status 3 contained --json add 192.0.2.9
	assert_error "^[{]\"error\": \"$UNSEEN.*\"status\": 3[}]\$"
}

# If no interface has a program, everybody can see that no filter runs.
test_where_no_interface_has_a_program() {
	pins
	assert_notes "no filter 'default' is running" contained add 192.0.2.66
	assert_status 1 contained panic
	assert_shows '^running: +none$' contained status
	assert_status 0 contained load vrx
	silence
	expect drop
	assert_status 0 contained panic
	expect pass
}

# What runs there now may be another filter, so it is not "unloaded".
test_unload_where_another_tool_has_put_what_cannot_be_seen() {
	silence
	pins
	veth "$TX" vone "$RX" vtwo
	assert_status 0 contained load vrx vtwo
	in_rx ip link set dev vtwo xdp off
	assert_status 0 xc --name other load vtwo
	assert_fails 3 "cannot see what runs: 'vtwo' runs a program" contained unload vtwo
	has_program vtwo || fail "vtwo runs no filter"
	assert_status 0 xc --name other unload vtwo
	assert_status 0 contained unload vtwo
	assert_status 0 contained status
}

# The tool sees its own filter, which works beside a program that it cannot see.
test_beside_a_program_that_cannot_be_seen() {
	silence
	pins
	veth "$TX" vone "$RX" vtwo
	assert_status 0 xc --name other load vtwo
	assert_fails 3 "cannot see what runs: 'vtwo' runs a program" contained add 192.0.2.66
	assert_notes "^note: cannot see what runs: 'vtwo' runs a program" contained load vrx
	assert_status 0 contained add 192.0.2.66
	expect drop
	assert_status 0 contained status
	assert_output "not seen: +cannot see what runs: 'vtwo'"
	assert_output 'equal to the store'
	assert_status 0 contained panic
	assert_status 0 contained panic off
	expect drop
	assert_fails 3 "'vtwo' runs a program" contained panic --all
	expect pass
	assert_status 0 xc --name other status --verbose
	grep -A 3 'name: *other' "$STATE/out" | grep -Eq 'panic: +no' || fail "the other one is in panic"
	assert_status 3 contained unload --all
	has_program vrx && fail "vrx runs the filter still"
	has_program vtwo || fail "the other's program is gone"
}

# without_proc ARGUMENT...: runs the tool without a mounted /proc, which LeakSanitizer needs.
without_proc() {
	in_rx unshare -m sh -c 'umount -l /proc && exec "$@"' sh "$TOOL" --state "$STATE/store" "$@"
}

test_without_proc() {
	block
	assert_status 0 xc load vrx
	echo 192.0.2.7 >"$STATE/list"
	while read -r command; do
		case_begin "$command"
		# shellcheck disable=SC2086 # words
		assert_status 3 without_proc $command
		assert_error 'through /proc, which is not mounted here: mount it: mount -t proc proc /proc$'
		assert_output_is_empty
	done <<-END
		list
		export
		lists
		status
		test 192.0.2.66
		stats --by rule
		policy
		add 192.0.2.9
		del 192.0.2.66
		import $STATE/list
		expire
		check
		confirm
		resize 5000
		flush
	END
	case_begin 'what needs no store'
	assert_status 0 without_proc stats
	assert_status 0 without_proc panic
	expect pass
	assert_shows '^src 192.0.2.66$' xc list
}

assert_output_is_empty() {
	[ ! -s "$STATE/out" ] || fail "standard output: $(cat "$STATE/out")"
}

# systemd's ProcSubset=pid hides parts of /proc. Rules and their times work.
test_with_a_part_of_proc() {
	assert_status 0 xc add 192.0.2.66 timeout 1h
	assert_status 0 in_rx unshare -m sh -c 'mount -t proc -o hidepid=2,subset=pid proc /proc && exec "$@"' sh \
		"$TOOL" --state "$STATE/store" list
	assert_output '^src 192.0.2.66 timeout (1h|59m)'
}

test_without_sys() {
	assert_status 0 xc load vrx
	for command in status stats; do
		assert_status 3 in_rx unshare -m sh -c 'umount -R -l /sys && exec "$@"' sh \
			"$TOOL" --state "$STATE/store" "$command"
		assert_error 'cannot tell how many CPUs there are: /sys is not mounted here'
	done
}

test_on_a_read_only_file_system() {
	assert_status 0 xc add 192.0.2.66
	read_only() {
		in_rx unshare -m sh -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"' sh \
			"$STATE/store" "$TOOL" --state "$STATE/store" "$@"
	}
	assert_shows '^src 192.0.2.66$' read_only list
	assert_fails 3 'Read-only file system: make it writable, or copy this directory' read_only add 192.0.2.9
}

run_tests "$0" "$@"
