#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The Debian package as an administrator meets it, in a bare root made by debootstrap: installed, used, upgraded while it
# filters, removed, purged. sh tests/deb.sh, after make deb.
cd "$(dirname "$0")/.." || exit 1
. tests/lib.sh
. tests/root.sh

DEBS=$PWD/$BUILD/deb
ROOT=$BUILD/deb/root

# in_root: standard input, by a shell in a copy of the root, which is made once, with the packages in /debs.
in_root() {
	if [ ! -d "$ROOT.made" ]; then
		rm -rf "$ROOT"
		make_root "$ROOT" || fail "debootstrap: $(tail -n 3 "$STATE/debootstrap")"
		mv "$ROOT" "$ROOT.made"
	fi
	cp -a "$ROOT.made" "$STATE/root"
	mkdir "$STATE/root/debs"
	cp "$DEBS"/*.deb "$STATE/root/debs"
	assert_status 0 run_in_root "$STATE/root"
}

test_install_upgrade_remove_purge() {
	in_root <<-'END'
		apt-get -q update
		apt-get -qy install --no-install-recommends /debs/xdp-cuckoo_*.deb
		xdp-cuckoo version
		[ -e /lib/systemd/system/xdp-cuckoo@.service ]
		[ -d /etc/xdp-cuckoo ]
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
		apt-get -q update
		apt-get -qy install --no-install-recommends gcc libc6-dev pkg-config /debs/libxdp-cuckoo1_*.deb \
			/debs/libxdp-cuckoo-dev_*.deb
		gcc /usr/share/doc/libxdp-cuckoo-dev/examples/detector.c $(pkg-config --cflags --libs xdp-cuckoo) -o detector
		yes 192.0.2.1 | head -n 100 | unshare -n ./detector 50
	END
}

run_tests "$0" "$@"
