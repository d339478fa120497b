#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The least that a kernel must do: take the program for every kind of table, and filter in the driver of a card.
. tests/lib.sh
. tests/kernels/virtio.sh

# Of every object, and each leaves half of what the verifier is ready to do. The other programs of bench are those of the filter.
test_every_table_is_taken() {
	for object in "$BUILD"/*.bpf.o; do
		program=
		case $object in
		*_conntrack.*) grep -q ' bpf_xdp_ct_lookup' /proc/kallsyms || continue ;;
		*/bench.*) program=bench_packet ;;
		esac
		assert_status 0 "$HELPERS/verify" "$object" ${program:+"$program"}
		assert_equal 0 "$(($(grep -c ' ok$' "$STATE/out") % 8))" "programs taken for some tables only"
		most=$(awk '$6 > most { most = $6 } END { print most }' "$STATE/out")
		[ "$most" -le 500000 ] || fail "$object: $most instructions processed"
		taken="${taken-}${taken+, }$(basename "$object") $most"
	done
	note "at most so many instructions processed: $taken"
}

test_virtio_net() {
	virtio_pair
	assert_status 0 xc load vrx --mode native
	assert_output 'vrx +native'
	assert_status 0 xc add 192.0.2.1
	printf '%s\n' 'drop blocked proto udp src 192.0.2.1 dst 198.51.100.7 sport 1111 dport 53' \
		'pass innocent proto udp src 192.0.2.2 dst 198.51.100.7 sport 1111 dport 53' |
		traffic || fail "wrong verdicts"
	assert_status 0 xc stats
	assert_output '^drop-rule .* 1 +[0-9]+$'
	assert_status 0 xc unload --all
}

run_tests "$0" "$@"
