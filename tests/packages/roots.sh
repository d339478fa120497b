#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What a newcomer does on a bare Debian with git and make only, and what a distribution asks of the packages:
# RELEASES='bookworm trixie' sh tests/packages/roots.sh. Each root is made anew; build/roots/RELEASE.log has what was printed there.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib.sh
. tests/packages/root.sh

RELEASES=${RELEASES:-bookworm trixie}
OUT=$BUILD/roots

# The steps of every release. A second build in another folder, by a user with another umask, must make the same packages.
# The programs and the library must be fortified, by the names of the checked functions that they call.
steps() {
	cat <<-'END'
		cd /src
		make demo WERROR=1
		make demo-fleet
		make deb >/deb.log 2>&1 || { cat /deb.log; exit 1; }
		apt-get install -y -qq --no-install-recommends blhc
		blhc --all --debian /deb.log

		mkdir -p /another/place
		cp -r Makefile README.md LICENSE bpf include tests user /another/place
		(umask 027; LC_ALL=C.UTF-8 TZ=Asia/Tokyo make -C /another/place deb)
		for file in build/deb/*.deb build/deb/*.dsc build/deb/*.tar.*; do
			cmp "$file" "/another/place/build/deb/${file##*/}"
		done

		for package in build/deb/*.deb; do
			dpkg-deb -x "$package" /unpacked
		done
		for file in /unpacked/usr/sbin/xdp-cuckoo /unpacked/usr/libexec/xdp-cuckoo/* /unpacked/usr/lib/*/libxdp-cuckoo.so.1; do
			objdump -T "$file" | grep -q __memcpy_chk
			readelf -d "$file" | grep -q BIND_NOW
		done

		make -s -j "$(nproc)" CC=clang WERROR=1 BUILD=build/clang all
		make rpm
		rpm -qpl build/rpm/RPMS/*/*.rpm

		apt-get install -y -qq --no-install-recommends autopkgtest
		autopkgtest build/deb/*.changes -- null
	END
}

# build_in RELEASE: the files that git knows are in /src.
build_in() {
	root=$STATE/$1
	make_root "$root" "$1" git make || skip "debootstrap: $(tail -n 1 "$STATE/debootstrap")"
	mkdir -p "$root/src" "$OUT"
	git ls-files -z | tar --null -T - -c | tar -x -C "$root/src"
	steps | run_in_root "$root" >"$OUT/$1.log" 2>&1 && return
	tail -n 30 "$OUT/$1.log"
	fail "see $OUT/$1.log"
}

test_bookworm() {
	build_in bookworm
}

test_trixie() {
	build_in trixie
}

# shellcheck disable=SC2046,SC2086 # one word a release
run_tests "$0" $(printf 'test_%s ' $RELEASES)
