#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# fetch.sh RELEASE...: the kernel that cloud images of a Debian release run, its newest version, unpacked under
# build/kernels/RELEASE unless one is there. Nothing is installed, and what the system's APT knows stays as it is.
set -eu
cd "$(dirname "$0")/../.."

MIRROR=${MIRROR:-http://deb.debian.org/debian}
SECURITY=${SECURITY:-http://security.debian.org/debian-security}
METAPACKAGE=linux-image-cloud-amd64

# Sets APT_CONFIG: sources, lists and cache of the release's own.
configure() {
	apt=$PWD/build/kernels/$1/apt
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	echo "deb $MIRROR $1 main" >"$apt/sources.list"
	case $1 in
	*-*) ;;
	*) echo "deb $SECURITY $1-security main" >>"$apt/sources.list" ;;
	esac
	cat >"$apt/apt.conf" <<-END
		APT::Architecture "amd64";
		APT::Sandbox::User "root";
		Dir::Etc::sourcelist "$apt/sources.list";
		Dir::Etc::sourceparts "-";
		Dir::State "$apt";
		Dir::State::lists "$apt/lists";
		Dir::State::status "/dev/null";
		Dir::Cache "$apt/cache";
	END
	export APT_CONFIG="$apt/apt.conf"
}

# The package that the metapackage names.
kernel_package() {
	apt-cache show --no-all-versions "$METAPACKAGE" |
		sed -n 's/^Depends: \(linux-image-[^ ,]*\).*/\1/p'
}

fetch() {
	configure "$1"
	apt-get update -qq && package=$(kernel_package) && [ -n "$package" ] || return 1
	sh tests/unpack-packages.sh "build/kernels/$1" "$package"
	is_there "$1"
}

is_there() {
	ls -d "build/kernels/$1"/linux-image-* >/dev/null 2>&1
}

status=0
for release; do
	is_there "$release" && continue
	(fetch "$release") || { echo "cannot fetch the kernel of $release" >&2; status=1; }
done
exit $status
