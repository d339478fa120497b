#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# unpack.sh DIR PACKAGE...: fetches the Debian packages that are missing in DIR and unpacks each there, in a
# directory of its name, without installing it: no daemon is started, and none is left behind. One that cannot be had
# is told; the tests that need it are skipped then. Shared libraries that its programs lack are installed.
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
	# As the package does when it is installed; else each start of such a program compiles it.
	[ ! -d "$scratch/files/usr/lib/python3" ] || python3 -m compileall -q "$scratch/files/usr/lib/python3" >/dev/null 2>&1 || :
	mv "$scratch/files" "$dir/$1"
	rm -rf "$scratch"
}

lacks_libraries() {
	ldd "$dir/$1"/usr/bin/* "$dir/$1"/usr/sbin/* 2>/dev/null | grep -q 'not found'
}

# needs PACKAGE: the packages that apt would install before it.
needs() {
	apt-get install -s -qq --no-install-recommends "$1" | awk -v package="$1" '/^Inst / && $2 != package { print $2 }'
}

for package; do
	if [ ! -d "$dir/$package" ]; then
		echo "fetching Debian package: $package"
		(unpack "$package") || { echo "cannot fetch $package" >&2; continue; }
	fi
	# shellcheck disable=SC2046 # one word a package
	! lacks_libraries "$package" || sh tests/packages/install.sh $(needs "$package")
done
