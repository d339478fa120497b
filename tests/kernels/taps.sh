#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# taps.sh COMMAND...: runs it in a network namespace of its own, where a bridge joins the taps of some cards of run.sh.
# Nothing is left when the command ends.
set -eu
if [ -z "${IN_TAPS-}" ]; then
	export IN_TAPS=1
	exec unshare --net sh "$0" "$@"
fi
ip link add cards mtu 9000 type bridge mcast_snooping 0
ip link set cards up
ip tuntap add tap0 mode tap
ip tuntap add tap6 mode tap
ip tuntap add tap7 mode tap multi_queue
for tap in tap0 tap6 tap7; do
	ip link set "$tap" mtu 9000 master cards up
done
# Filters of bridges cut off what follows an IP packet in its frame.
for filter in iptables ip6tables; do
	filter=/proc/sys/net/bridge/bridge-nf-call-$filter
	[ ! -e "$filter" ] || echo 0 >"$filter"
done
exec "$@"
