# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced after tests/lib.sh: GoBGP of Debian, unpacked by `make packages`.
# shellcheck shell=sh

GOBGP=${GOBGP:-$PWD/$BUILD/packages/gobgpd/usr/bin}

needs_gobgp() {
	[ -x "$GOBGP/gobgpd" ] || skip "no gobgpd; make packages unpacks it"
}

# gobgp_in NAMESPACE ARGUMENT...
gobgp_in() {
	gobgp_ns=$1
	shift
	in_ns "$gobgp_ns" "$GOBGP/gobgp" "$@"
}

# The socket from which the tool reads announcements, served as the unit xdp-cuckoo-gobgp@ does it.
serve_gobgp() {
	command=$(sed -n '/^ExecStart=/,/[^\\]$/p' user/package/systemd/xdp-cuckoo-gobgp@.service | tr -d '\\\n' |
		sed "s,^ExecStart=/bin/sh -c '\(.*\)'$,\1,; s,gobgp ,$GOBGP/&,g; s,[\$][\$],\$,g")
	nsenter --net="/run/netns/$RX" $PYTHON tests/helpers/seqpacket.py serve "$STATE/gobgp" sh -c "$command" &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
	wait_for "the socket" test -S "$STATE/gobgp"
}
