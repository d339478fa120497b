#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# build.sh DIR TARBALL: builds source and binary RPM packages from the tarball into DIR. Debian's rpm does not know what
# Debian has installed, so there the dependencies go unchecked.
set -eu
mkdir -p "$1"
out=$(realpath "$1") tarball=$(realpath "$2")
nodeps=
[ ! -e /etc/debian_version ] || nodeps=--nodeps

rm -rf "$out"
mkdir -p "$out/BUILD"
env -u MAKEFLAGS -u MAKELEVEL -u BUILD rpmbuild -ba $nodeps --define "_topdir $out" \
	--define "_sourcedir $(dirname "$tarball")" user/package/rpm/xdp-cuckoo.spec
