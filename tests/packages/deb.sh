#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The Debian packages as an administrator meets them, in a bare root of this machine's release: installed, used, upgraded
# while the filter runs, removed, purged. sh tests/packages/deb.sh, after make deb.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib.sh
. tests/packages/root.sh

DEBS=$PWD/$BUILD/deb
ROOT=$BUILD/deb/root

# in_root: standard input, by a shell in a copy of the root, which is made once, with the packages in /debs, what
# autopkgtest runs in /tests and the sources of the units in /units.
in_root() {
	if [ ! -d "$ROOT.made" ]; then
		rm -rf "$ROOT"
		make_root "$ROOT" "$(. /etc/os-release && echo "$VERSION_CODENAME")" iproute2 ||
			fail "debootstrap: $(tail -n 3 "$STATE/debootstrap")"
		mv "$ROOT" "$ROOT.made"
	fi
	cp -a "$ROOT.made" "$STATE/root"
	mkdir "$STATE/root/debs"
	cp "$DEBS"/*.deb "$STATE/root/debs"
	cp -r user/package/debian/tests "$STATE/root"
	cp -r user/package/systemd "$STATE/root/units"
	assert_status 0 run_in_root "$STATE/root"
}

test_install_upgrade_remove_purge() {
	in_root <<-'END'
		apt-get -q update
		apt-get -qy install --no-install-recommends systemd-standalone-sysusers
		apt-get -qy install --no-install-recommends /debs/xdp-cuckoo_*.deb
		grep '^xdp-cuckoo:.*/nologin$' /etc/passwd
		xdp-cuckoo version
		for unit in /units/*; do
			dpkg -L xdp-cuckoo | grep -q "/systemd/system/${unit##*/}\$"
		done
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
		[ -z "$(find / -xdev -name '*xdp*cuckoo*' -not -path '/debs/*' -not -path '/units/*' -not -path '/proc/*')" ]
	END
}

# The tests need what their control file says beside the packages.
test_autopkgtests() {
	in_root <<-'END'
		apt-get -q update
		apt-get -qy install --no-install-recommends gcc iproute2 iputils-ping libc6-dev pkgconf \
			/debs/xdp-cuckoo_*.deb /debs/libxdp-cuckoo1_*.deb /debs/libxdp-cuckoo-dev_*.deb
		/tests/filter
		/tests/library
	END
}

run_tests "$0" "$@"
