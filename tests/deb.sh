#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The Debian package as an administrator meets it, in a bare root made by debootstrap: installed, used, upgraded while it
# filters, removed, purged. sh tests/deb.sh, after make deb.
cd "$(dirname "$0")/.." || exit 1
. tests/lib.sh

DEBS=$PWD/$BUILD/deb
ROOT=$BUILD/deb/root

# make_root: once; it is copied for each test. What is mounted there goes with the mount namespace.
make_root() {
	[ ! -d "$ROOT.made" ] || return 0
	rm -rf "$ROOT"
	debootstrap --variant=minbase --include=iproute2 bookworm "$ROOT" >"$STATE/debootstrap" 2>&1 ||
		fail "debootstrap: $(tail -n 3 "$STATE/debootstrap")"
	mv "$ROOT" "$ROOT.made"
}

# in_root COMMAND: by a shell in a copy of the root, with network namespaces of its own and the packages in /debs.
in_root() {
	cat >"$STATE/steps"
	make_root
	cp -a "$ROOT.made" "$STATE/root"
	mkdir "$STATE/root/debs"
	cp "$DEBS"/*.deb "$STATE/steps" "$STATE/root/debs"
	cp /etc/resolv.conf "$STATE/root/etc"
	# shellcheck disable=SC2016 # those of the shell there
	assert_status 0 unshare -m sh -ec '
		mount --bind "$0" "$0"
		mount -t proc proc "$0/proc"
		mount -t sysfs sys "$0/sys"
		mount -t bpf bpf "$0/sys/fs/bpf"
		mount --bind /dev "$0/dev"
		exec chroot "$0" sh -ex /debs/steps' "$STATE/root"
}

test_install_upgrade_remove_purge() {
	in_root <<-'END'
		export DEBIAN_FRONTEND=noninteractive
		apt-get -q update
		apt-get -qy install --no-install-recommends /debs/xdp-cuckoo_*.deb
		xdp-cuckoo version
		[ -e /usr/lib/systemd/system/xdp-cuckoo@.service ]
		xdp-cuckoo check-config /usr/share/doc/xdp-cuckoo/default.conf

		unshare -n sh -ex <<-'IN_NET'
			ip link add vrx type veth peer name vtx
			ip link set vrx up
			xdp-cuckoo load vrx
			xdp-cuckoo add 192.0.2.1
			program=$(ip -d link show vrx | grep -o 'prog/xdp id [0-9]*')
			# The same package again: what an upgrade runs.
			dpkg -i /debs/xdp-cuckoo_*.deb
			[ "$(ip -d link show vrx | grep -o 'prog/xdp id [0-9]*')" = "$program" ]
			xdp-cuckoo test 192.0.2.1
			dpkg -r xdp-cuckoo
			[ -z "$(ip -d link show vrx | grep prog/xdp)" ]
			[ -e /var/lib/xdp-cuckoo/default ]
		IN_NET
		dpkg -P xdp-cuckoo
		[ ! -e /var/lib/xdp-cuckoo ]
		[ -z "$(find / -xdev -name '*xdp*cuckoo*' -not -path '/debs/*' -not -path '/proc/*')" ]
	END
}

test_a_program_is_built_with_the_library() {
	in_root <<-'END'
		export DEBIAN_FRONTEND=noninteractive
		apt-get -q update
		apt-get -qy install --no-install-recommends gcc libc6-dev pkg-config /debs/libxdp-cuckoo1_*.deb \
			/debs/libxdp-cuckoo-dev_*.deb
		gcc /usr/share/doc/libxdp-cuckoo-dev/examples/detector.c $(pkg-config --cflags --libs xdp-cuckoo) -o detector
		yes 192.0.2.1 | head -n 100 | unshare -n ./detector 50
	END
}

run_tests "$0" "$@"
