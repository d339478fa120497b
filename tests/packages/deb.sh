#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The Debian packages as an administrator meets them, in a bare root of this machine's release: installed, used, upgraded
# while the filter runs, removed, purged. sh tests/packages/deb.sh, after make deb.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib.sh
. tests/packages/root.sh

DEBS=$PWD/$BUILD/deb
ROOT=$BUILD/deb/root

# in_root [FILE...]: standard input, by a shell in a copy of the root, which is made once, with the packages and files in
# /debs, what autopkgtest runs in /tests and the sources of the units in /units.
in_root() {
	if [ ! -d "$ROOT.made" ]; then
		rm -rf "$ROOT"
		make_root "$ROOT" "$(. /etc/os-release && echo "$VERSION_CODENAME")" iproute2 ||
			fail "debootstrap: $(tail -n 3 "$STATE/debootstrap")"
		mv "$ROOT" "$ROOT.made"
	fi
	cp -a "$ROOT.made" "$STATE/root"
	mkdir "$STATE/root/debs"
	cp "$DEBS"/*.deb "$@" "$STATE/root/debs"
	rm -f "$STATE"/root/debs/*-dbgsym_*.deb
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
		! ldd /usr/sbin/xdp-cuckoo | grep -E 'curl|ssl|crypto|hiredis|microhttpd|ncurses' || exit 1
		# Where only the tool is, one line says what another command needs.
		for command in publish:fleet refresh:feed exporter:exporter; do
			xdp-cuckoo "${command%:*}" 2>/said && exit 1 || [ $? -eq 3 ]
			[ "$(wc -l </said)" -eq 1 ]
			grep "install the package xdp-cuckoo-${command#*:}\$" /said
		done
		rm /said
		apt-get -qy install --no-install-recommends /debs/xdp-cuckoo-[ef]*.deb
		for unit in /units/*; do
			dpkg -L xdp-cuckoo xdp-cuckoo-feed xdp-cuckoo-fleet xdp-cuckoo-exporter >/files
			[ "$(grep -c "/systemd/system/${unit##*/}\$" /files)" -eq 1 ]
		done
		rm /files
		for command in publish refresh exporter top bench; do
			xdp-cuckoo "$command" --help
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
			! dpkg -r xdp-cuckoo || exit 1 # others need it
			dpkg -P xdp-cuckoo-feed xdp-cuckoo-fleet xdp-cuckoo-exporter
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

# OLD_DEB: the single package of 0.2.0. Without it, one of these files and that version stands for it.
make_single() {
	mkdir -p "$STATE/single"
	if [ -n "${OLD_DEB:-}" ]; then
		cp "$OLD_DEB" "$STATE/single/single.deb"
		return
	fi
	for package in "$DEBS"/xdp-cuckoo-[ef]*.deb "$DEBS"/xdp-cuckoo_*.deb; do
		case $package in *-dbgsym_*) continue ;; esac
		dpkg-deb -x "$package" "$STATE/single/tree"
	done
	mkdir "$STATE/single/tree/DEBIAN"
	dpkg-deb -f "$DEBS"/xdp-cuckoo_*.deb | sed -E '/^ xdp-cuckoo|^(Recommends|Breaks):/d; s/^Version: .*/Version: 0.2.0-1/' \
		>"$STATE/single/tree/DEBIAN/control"
	dpkg-deb -b "$STATE/single/tree" "$STATE/single/single.deb" >/dev/null
}

# What is enabled keeps its program, or is warned of.
test_upgrade_from_the_single_package() {
	make_single
	(cd "$DEBS" && dpkg-scanpackages . 2>/dev/null) >"$STATE/single/Packages"
	in_root "$STATE/single/single.deb" "$STATE/single/Packages" <<-'END'
		apt-get -q update
		apt-get -qy install --no-install-recommends libncursesw6 /debs/single.deb # the tool needs it now
		# enable UNIT[@INSTANCE]...
		enable() {
			mkdir -p /etc/systemd/system/multi-user.target.wants
			for unit in "$@"; do
				file=$(find /lib/systemd/system /usr/lib/systemd/system -name "$(echo "$unit" | sed 's/@[a-z]*/@/')" | head -n 1)
				ln -sf "$file" "/etc/systemd/system/multi-user.target.wants/$unit"
			done
		}
		enable xdp-cuckoo@default.service xdp-cuckoo-follow@default.service xdp-cuckoo-fetch@default.timer \
			xdp-cuckoo-exporter.service

		# It alone: a warning for each that has no program now.
		dpkg -i /debs/xdp-cuckoo_*.deb >/said 2>&1
		[ "$(grep -c ^warning: /said)" -eq 3 ]
		for unit in follow@default.service:fleet fetch@default.timer:feed exporter.service:exporter; do
			grep "^warning: xdp-cuckoo-${unit%:*} is enabled and cannot start: install the package xdp-cuckoo-${unit#*:}\$" /said
		done

		# By apt: all four, from the single one again.
		dpkg -i --force-downgrade /debs/single.deb
		echo 'deb [trusted=yes] file:/debs ./' >/etc/apt/sources.list.d/debs.list
		apt-get -q update
		apt-get -qy -o APT::Install-Recommends=true --with-new-pkgs upgrade >/said 2>&1 || { cat /said; exit 1; }
		! grep -E '^warning:.*enabled' /said || exit 1
		[ "$(dpkg-query -W -f '${db:Status-Status} ' xdp-cuckoo xdp-cuckoo-feed xdp-cuckoo-fleet xdp-cuckoo-exporter)" = \
			'installed installed installed installed ' ]
		for link in /etc/systemd/system/multi-user.target.wants/xdp-cuckoo*; do
			[ -e "$link" ]
		done
		dpkg --audit

		# A newer tool alone would not start the programs of this version.
		dpkg-deb -R /debs/xdp-cuckoo_*.deb /newer
		sed -i 's/^Version: .*/&+1/; /^Breaks:/,/^[^ B]/s/(<< [^)]*/&+1/' /newer/DEBIAN/control
		dpkg-deb -b /newer /newer.deb
		! dpkg -i /newer.deb || exit 1
		xdp-cuckoo publish --help
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
