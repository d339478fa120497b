#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Live traffic between two virtio_net cards: as over veth (tests/namespace/test_traffic.sh), where packets lie in the
# buffers of another driver.
. tests/lib.sh
. tests/namespace/traffic.sh
. tests/kernels/virtio.sh

# begin: the cards alone lose nothing.
begin() {
	virtio_pair
	small_list >"$STATE/list"
	small_flows >"$STATE/flows"
	sed 's/^drop/pass/' "$STATE/flows" >"$STATE/innocent"
	traffic <"$STATE/innocent" || fail "packets are lost without a filter"
}

import_list() {
	assert_status 0 xc import --force "$STATE/list"
	judge_traffic "$STATE/flows"
}

# load MODE [OPTION...]
load() {
	assert_status 0 xc load vrx --mode "$@"
	assert_output " $1\$"
}

test_small_list_native() {
	begin
	load native
	import_list
	assert_status 0 xc resize 5000
	judge_traffic "$STATE/flows"
	assert_status 0 xc flush
	judge_traffic "$STATE/innocent"
}

test_small_list_compact() {
	begin
	load native --compact
	import_list
}

test_small_list_skb() {
	begin
	load skb
	import_list
}

test_ip_link() {
	begin
	in_rx ip link set dev vrx xdp obj "$OBJECT" sec xdp
	assert_status 0 xc import --force "$STATE/list"
	assert_error "adopted the filter on vrx as 'default'"
	judge_traffic "$STATE/flows"
}

run_tests "$0" "$@"
