#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tarball.sh DIR: packs the sources as DIR/xdp-cuckoo-VERSION.tar.gz, and prints that name. The same sources make the
# same bytes: the time in it is that of Debian's changelog. Run from the top of the tree.
set -eu
out=$1
version=$(sed -n 's/^#define VERSION "\(.*\)"$/\1/p' user/core/base/version.h)
changelog=user/package/debian/changelog
spec=user/package/rpm/xdp-cuckoo.spec

fail() {
	echo "$*" >&2
	exit 1
}

head -n 1 "$changelog" | grep -Fq "($version-" || fail "$changelog: no entry for version $version"
grep -Eq "^Version: +$version\$" "$spec" || fail "$spec: not of version $version"
date=$(sed -n 's/^ -- .*>  //p' "$changelog" | head -n 1)

mkdir -p "$out"
tarball=$out/xdp-cuckoo-$version.tar.gz
tar --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="$date" \
	--transform="s,^,xdp-cuckoo-$version/," -c Makefile README.md LICENSE bpf include tests user | gzip -9n >"$tarball"
echo "$tarball"
