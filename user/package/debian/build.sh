#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# build.sh DIR TARBALL: builds Debian's source and binary packages from the tarball into DIR; lintian checks them.
set -eu
umask 022
out=$1 tarball=$2
version=$(basename "$tarball" .tar.gz)
version=${version#xdp-cuckoo-}
tree=$out/xdp-cuckoo-$version

rm -rf "$out"
mkdir -p "$out"
cp "$tarball" "$out/xdp-cuckoo_$version.orig.tar.gz"
tar -xzf "$tarball" -C "$out"
cp -r "$tree/user/package/debian" "$tree/debian"
rm "$tree/debian/build.sh"
# What was said to the outer make is not for the packages: others must get the same ones.
(cd "$tree" && env -u MAKEFLAGS -u MAKELEVEL -u BUILD -u CFLAGS -u LDFLAGS -u CPPFLAGS \
	DEB_BUILD_OPTIONS="parallel=$(nproc)" dpkg-buildpackage -us -uc)
# A Debian maintainer closes the bug that asks for the package; here there is none.
lintian --no-cfg --fail-on error,warning --tag-display-limit 0 --suppress-tags initial-upload-closes-no-bugs \
	"$out"/*.changes
