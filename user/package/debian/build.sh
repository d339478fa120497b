#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Builds the Debian packages of this tree, and asks lintian about them: sh user/package/debian/build.sh DIR PACKAGE..., into
# DIR, with the PACKAGEs that building needs. Run from the top of the tree.
set -eu

out=$1
shift
version=$(sed -n 's/^#define VERSION "\(.*\)"$/\1/p' user/base/version.h)
tree=$out/xdp-cuckoo-$version

rm -rf "$out"
mkdir -p "$tree"
cp -a Makefile README.md LICENSE bpf include tests user "$tree"
cp -a user/package/debian "$tree/debian"
rm "$tree/debian/build.sh"
sed "s/@BUILD_PACKAGES@/$(echo "$*" | sed 's/ /, /g')/" user/package/debian/control.in >"$tree/debian/control"
rm "$tree/debian/control.in"
# The time of the newest file, so that the same tree makes the same packages.
newest=$(find Makefile bpf include user -type f -printf '%T@\n' | sort -n | tail -n 1)
{
	printf 'xdp-cuckoo (%s) unstable; urgency=medium\n\n  * See README.md.\n\n' "$version"
	printf ' -- The xdp-cuckoo authors <packages@xdp-cuckoo.example.org>  %s\n' "$(LC_ALL=C date -R -u -d "@${newest%.*}")"
} >"$tree/debian/changelog"
(cd "$tree" && DEB_BUILD_OPTIONS=parallel=$(nproc) dpkg-buildpackage -b -us -uc)
lintian --no-cfg --fail-on error,warning --tag-display-limit 0 "$out"/*.changes
