# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced after tests/lib.sh on machines of run.sh, which have two virtio_net cards, joined outside, for tests alone.
# shellcheck shell=sh

virtio_cards() {
	for driver in /sys/class/net/*/device/driver; do
		[ "$(basename "$(readlink "$driver")")" != virtio_net ] || grep -q '^52:54:00:ca:4d:' "${driver%/device/driver}/address" ||
			echo "$driver" | cut -d / -f 5
	done
}

# lend_card CARD NAMESPACE NAME: until the end of the test; a namespace's own end would give it back some time later.
lend_card() {
	ip link set "$1" netns "$2" name "$3"
	on_exit "ip -n $2 link set $3 netns 1 name $1"
	ip -n "$2" link set "$3" up
}

# virtio_pair: the cards, as vtx and vrx, in the place of the virtual pair. No program stays on them. One test has them
# at a time, until its end.
virtio_pair() {
	exec 9>/run/lock.virtio
	flock 9
	ip -n "$TX" link del vtx
	# shellcheck disable=SC2046 # one word a card
	set -- $(virtio_cards)
	assert_equal 2 $# "virtio_net cards"
	lend_card "$1" "$TX" vtx
	lend_card "$2" "$RX" vrx
	on_exit 'xc unload --all >/dev/null 2>&1'
}
