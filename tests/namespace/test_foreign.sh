#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A program whose maps have the names of a filter's and are others, or hold nonsense: nothing is read or
# written beyond what is there, and the commands say so.
. tests/lib.sh

# Every command that looks at running filters fails with an error, and none ends by a signal.
is_refused() {
	for command in status stats 'add 192.0.2.1' 'list --counters' 'test 192.0.2.1' check panic 'resize 1000' \
		'bench --seconds 1' 'monitor --seconds 1' 'load vrx' 'unload vrx'; do
		# shellcheck disable=SC2086 # words
		assert_fails 3 "$1" xc $command
	done
}

# refuses MAP WHAT N
refuses() {
	case_begin "$1 with $2 $3"
	in_rx "$HELPERS/foreign" vrx "$1" "$2" "$3" || fail "the kernel does not take it"
	is_refused 'another version of xdp-cuckoo; take it off'
	ip -n "$RX" link set dev vrx xdpgeneric off
}

test_maps_of_other_types_and_sizes() {
	xc add 192.0.2.7 >/dev/null 2>&1
	refuses xc_config value 100000
	refuses xc_config entries 2
	refuses xc_buckets value 24
	refuses xc_buckets flags 0
	refuses xc_records value 40
	refuses xc_counters value 4096
	refuses xc_counters entries 3
	refuses xc_counters type 2 # an array
	refuses xc_hints entries 8
	refuses xc_hints value 16
	refuses xc_samples entries 4096
	refuses xc_counts value 24
	refuses xc_counts flags 0
	refuses xc_sampling value 128
	refuses xc_sampling entries 2
}

test_a_config_of_nonsense() {
	xc add 192.0.2.7 >/dev/null 2>&1
	for what in name format other-format records shapes; do
		case_begin "$what"
		assert_status 0 xc load vrx
		in_rx "$HELPERS/foreign" config "$what" || fail "no filter"
		is_refused 'is damaged: .* replace it'
		ip -n "$RX" link set dev vrx xdp off
	done
}

# `status` can show this filter, because it opens no table.
test_a_geometry_of_nonsense() {
	xc add 192.0.2.7 >/dev/null 2>&1
	assert_status 0 xc load vrx
	in_rx "$HELPERS/foreign" config geometry || fail "no filter"
	assert_status 0 xc status --verbose
	assert_fails 3 'cannot use a table of' xc add 192.0.2.8
	assert_status 0 xc unload vrx
}

run_tests "$0" "$@"
