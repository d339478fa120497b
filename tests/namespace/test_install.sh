#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# make install: everything where it is looked for, and make uninstall takes it away again.
. tests/lib.sh

install_to() {
	assert_status 0 make -s "$1" DESTDIR="$STATE/root" PREFIX=/opt/xc
}

files() {
	(cd "$STATE/root" && find . ! -type d | sort)
}

test_install_and_uninstall() {
	mkdir -p "$STATE/root/etc/fail2ban/action.d"
	install_to install
	cat >"$STATE/expected" <<-'END'
		./etc/fail2ban/action.d/xdp-cuckoo.py
		./opt/xc/include/xdp-cuckoo.h
		./opt/xc/lib/libxdp-cuckoo.a
		./opt/xc/lib/libxdp-cuckoo.so
		./opt/xc/lib/libxdp-cuckoo.so.1
		./opt/xc/lib/pkgconfig/xdp-cuckoo.pc
		./opt/xc/lib/systemd/system/xdp-cuckoo-crowdsec@.service
		./opt/xc/lib/systemd/system/xdp-cuckoo-expire@.service
		./opt/xc/lib/systemd/system/xdp-cuckoo-expire@.timer
		./opt/xc/lib/systemd/system/xdp-cuckoo-exporter.service
		./opt/xc/lib/systemd/system/xdp-cuckoo-fetch@.service
		./opt/xc/lib/systemd/system/xdp-cuckoo-fetch@.timer
		./opt/xc/lib/systemd/system/xdp-cuckoo-flowspec@.service
		./opt/xc/lib/systemd/system/xdp-cuckoo-follow@.service
		./opt/xc/lib/systemd/system/xdp-cuckoo-gobgp.socket
		./opt/xc/lib/systemd/system/xdp-cuckoo-gobgp@.service
		./opt/xc/lib/systemd/system/xdp-cuckoo-log@.service
		./opt/xc/lib/systemd/system/xdp-cuckoo-refresh@.service
		./opt/xc/lib/systemd/system/xdp-cuckoo-refresh@.timer
		./opt/xc/lib/systemd/system/xdp-cuckoo-reload@.service
		./opt/xc/lib/systemd/system/xdp-cuckoo-reload@.timer
		./opt/xc/lib/systemd/system/xdp-cuckoo-resend@.service
		./opt/xc/lib/systemd/system/xdp-cuckoo-resend@.timer
		./opt/xc/lib/systemd/system/xdp-cuckoo@.service
		./opt/xc/lib/sysusers.d/xdp-cuckoo.conf
		./opt/xc/lib/xdp-cuckoo/fail2ban-action.py
		./opt/xc/lib/xdp-cuckoo/xdp-cuckoo-notify
		./opt/xc/lib/xdp-cuckoo/xdp_cuckoo.bpf.o
		./opt/xc/libexec/xdp-cuckoo/xdp-cuckoo-bench
		./opt/xc/libexec/xdp-cuckoo/xdp-cuckoo-exporter
		./opt/xc/libexec/xdp-cuckoo/xdp-cuckoo-feed
		./opt/xc/libexec/xdp-cuckoo/xdp-cuckoo-fleet
		./opt/xc/libexec/xdp-cuckoo/xdp-cuckoo-watch
		./opt/xc/sbin/xdp-cuckoo
		./opt/xc/share/bash-completion/completions/xdp-cuckoo
		./opt/xc/share/doc/xdp-cuckoo/default.conf
		./opt/xc/share/doc/xdp-cuckoo/integrations.md
		./opt/xc/share/man/man5/xdp-cuckoo-rules.5
		./opt/xc/share/man/man5/xdp-cuckoo.conf.5
		./opt/xc/share/man/man7/xdp-cuckoo-design.7
		./opt/xc/share/man/man7/xdp-cuckoo-drivers.7
		./opt/xc/share/man/man7/xdp-cuckoo-fleet.7
		./opt/xc/share/man/man7/xdp-cuckoo-flowspec.7
		./opt/xc/share/man/man7/xdp-cuckoo-operation.7
		./opt/xc/share/man/man8/xdp-cuckoo.8
		./opt/xc/share/xdp-cuckoo/grafana/xdp-cuckoo.json
		./opt/xc/share/xdp-cuckoo/prometheus/alerts.yml
		./opt/xc/share/zsh/site-functions/_xdp-cuckoo
	END
	files >"$STATE/installed"
	diff "$STATE/expected" "$STATE/installed" || fail "other files"
	assert_equal /opt/xc/lib/xdp-cuckoo/fail2ban-action.py \
		"$(readlink "$STATE/root/etc/fail2ban/action.d/xdp-cuckoo.py")" "the action"
	grep -q '^ExecStart=/opt/xc/sbin/xdp-cuckoo --name %i expire$' \
		"$STATE/root/opt/xc/lib/systemd/system/xdp-cuckoo-expire@.service" || fail "the tool's path"
	grep -q '^ExecStart=/opt/xc/sbin/xdp-cuckoo exporter ' \
		"$STATE/root/opt/xc/lib/systemd/system/xdp-cuckoo-exporter.service" || fail "the exporter's path"
	install_to uninstall
	assert_equal '' "$(files)" "files left"
}

# By the tool that is about to go; the filter itself is in the kernel.
# The same sources make the same bytes; the SPDX file names them and what they are built with; the signature is one of them.
test_a_release_can_be_checked() {
	(cd "$STATE" && signify-openbsd -G -n -p key.pub -s key.sec)
	assert_status 0 make -s dist BUILD="$STATE/first" SIGN_KEY="$STATE/key.sec"
	assert_status 0 make -s dist BUILD="$STATE/second"
	tarball=$(basename "$STATE"/first/dist/*.tar.gz)
	assert_status 0 cmp "$STATE/first/dist/$tarball" "$STATE/second/dist/$tarball"
	assert_status 0 signify-openbsd -V -p "$STATE/key.pub" -m "$STATE/first/dist/$tarball"
	assert_equal "$(sha256sum <"$STATE/first/dist/$tarball" | cut -d ' ' -f 1)" \
		"$(jq -r '.packages[0].checksums[0].checksumValue' "$STATE"/first/dist/*.spdx.json)"
	assert_equal "$(dpkg-query -W -f '${Version}' libbpf-dev)" \
		"$(jq -r '.packages[] | select(.name == "libbpf-dev").versionInfo' "$STATE"/first/dist/*.spdx.json)"
	printf x >>"$STATE/first/dist/$tarball"
	assert_status 1 signify-openbsd -V -p "$STATE/key.pub" -m "$STATE/first/dist/$tarball"
}

test_uninstall_warns_of_a_running_filter() {
	install_to install
	assert_status 0 xc load vrx
	assert_status 0 in_rx make -s uninstall DESTDIR="$STATE/root" PREFIX=/opt/xc
	assert_error "^warning: vrx keeps its filter; .*/xdp-cuckoo unload vrx removes it$"
	assert_equal '' "$(files)" "files left"
	install_to uninstall
	assert_equal '' "$(cat "$STATE/err")" "a warning with no filter here"
}

test_without_fail2ban_its_directory_is_not_made() {
	install_to install
	[ ! -e "$STATE/root/etc" ] || fail "made $(find "$STATE/root/etc")"
}

# Distributions put the library elsewhere; the other files stay where they are.
test_the_library_has_a_directory_of_its_own() {
	assert_status 0 make -s install DESTDIR="$STATE/root" PREFIX=/usr LIBDIR=/usr/lib/multiarch
	(cd "$STATE/root/usr/lib/multiarch" && find . ! -type d | sort) >"$STATE/installed"
	printf './%s\n' libxdp-cuckoo.a libxdp-cuckoo.so libxdp-cuckoo.so.1 pkgconfig/xdp-cuckoo.pc |
		diff - "$STATE/installed" || fail "other files"
	grep -qx 'libdir=/usr/lib/multiarch' "$STATE/root/usr/lib/multiarch/pkgconfig/xdp-cuckoo.pc" || fail "libdir"
	assert_status 0 make -s uninstall DESTDIR="$STATE/root" PREFIX=/usr LIBDIR=/usr/lib/multiarch
	assert_equal '' "$(files)" "files left"
}

# The timer that reads files again had the name of the command that fetches lists by URL.
test_the_old_name_of_a_unit() {
	command -v systemctl >/dev/null || skip "no systemctl"
	assert_status 0 make -s install DESTDIR="$STATE/root" PREFIX=/usr
	wants=$STATE/root/etc/systemd/system/xdp-cuckoo@default.service.wants
	for action in enable enable disable; do
		assert_status 0 systemctl --root "$STATE/root" "$action" xdp-cuckoo-refresh@default.timer
		[ "$action" = disable ] || [ -L "$wants/xdp-cuckoo-reload@default.timer" ] || fail "not enabled"
	done
	[ ! -L "$wants/xdp-cuckoo-reload@default.timer" ] || fail "not disabled"
}

# systemd makes the user of the processes without privileges. It has no shell, and no file is its.
test_its_user() {
	command -v systemd-sysusers >/dev/null || skip "no systemd-sysusers"
	mkdir -p "$STATE/root/etc"
	assert_status 0 make -s install DESTDIR="$STATE/root" PREFIX=/usr
	assert_status 0 systemd-sysusers --root "$STATE/root" xdp-cuckoo.conf
	grep -Eq '^xdp-cuckoo:[x!*]*:[1-9][0-9]*:[1-9][0-9]*:[^:]*:/:.*nologin$' "$STATE/root/etc/passwd" ||
		fail "$(cat "$STATE/root/etc/passwd")"
}

test_units_are_sound() {
	command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
	mkdir "$STATE/units"
	for unit in user/package/systemd/*; do
		sed "s,@SBINDIR@,$PWD/$BUILD," "$unit" >"$STATE/units/$(basename "$unit")"
	done
	for unit in "$STATE"/units/*@.*; do
		cp "$unit" "${unit%@.*}@web.${unit##*.}"
	done
	assert_status 0 systemd-analyze verify --man=no "$STATE"/units/*@web.* "$STATE/units/xdp-cuckoo-exporter.service"
	assert_equal '' "$(cat "$STATE/err")" "complaints"
	# What changes filters may start the process that undoes what nobody confirms: a restart of the unit must not end it.
	assert_equal '' "$(grep -L '^KillMode=process$' $(grep -l '^Cap.*CAP_NET_ADMIN' user/package/systemd/*))" "units that end it"
}

# The exporter listens on the network, so its unit is confined: systemd rates it at most 3 of 10.
test_the_exporter_is_confined() {
	command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
	unit=$STATE/xdp-cuckoo-exporter.service
	sed "s,@SBINDIR@,$PWD/$BUILD," user/package/systemd/xdp-cuckoo-exporter.service >"$unit"
	assert_status 0 systemd-analyze security --offline=true --threshold=30 --no-pager "$unit"
	note "systemd-analyze security: $(sed -n 's/.*Overall exposure.*: \([0-9.]*\) .*/\1/p' "$STATE/out")"
}

test_the_example_is_right() {
	cp user/integrations/examples/default.conf "$STATE/conf"
	chmod 0644 "$STATE/conf"
	assert_status 0 xc check-config "$STATE/conf"
	sed 's/^# \([][a-z-]* *[=a-z].*[]a-z0-9]\)$/\1/' user/integrations/examples/default.conf >"$STATE/conf"
	grep -q '^\[list spamhaus\]' "$STATE/conf" || fail "what is commented out was not found"
	assert_shows '^lists: +3$' xc check-config "$STATE/conf"
}

run_tests "$0" "$@"
