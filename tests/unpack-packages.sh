#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# unpack-packages.sh DIR PACKAGE...: fetches the Debian packages that are missing in DIR and unpacks each there, in a
# directory of its name, without installing it: no daemon is started, and none is left behind. One that cannot be had
# is told; the tests that need it are skipped then.
set -eu
dir=$1
shift

# fetch PACKAGE: as the only file of the working directory.
fetch() {
	apt-get download -qq "$1" 2>/dev/null || { apt-get update -qq && apt-get download -qq "$1"; }
}

unpack() {
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	chmod 755 "$scratch" # apt fetches as a user of its own
	(cd "$scratch" && fetch "$1") || return 1
	mkdir -p "$dir"
	dpkg-deb -x "$scratch"/*.deb "$scratch/files"
	mv "$scratch/files" "$dir/$1"
	rm -rf "$scratch"
}

for package; do
	[ ! -d "$dir/$package" ] || continue
	echo "fetching Debian package: $package"
	(unpack "$package") || echo "cannot fetch $package" >&2
done
