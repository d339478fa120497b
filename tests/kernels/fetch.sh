#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# fetch.sh [--emulator] RELEASE...: the kernel that cloud images of a Debian release run, its newest version, unpacked
# under build/kernels/RELEASE unless one is there; with --emulator, the QEMU of Debian 12's backports, too, under
# build/kernels/emulator. Nothing is installed, and what the system's APT knows stays as it is.
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

# For the shared libraries that it has in common with Debian 12's QEMU, that one is to be installed.
fetch_emulator() {
	configure bookworm-backports
	apt-get update -qq && sh tests/unpack-packages.sh build/kernels/emulator qemu-system-x86 qemu-system-data seabios
}

status=0
if [ "${1-}" = --emulator ]; then
	shift
	[ -d build/kernels/emulator/seabios ] || (fetch_emulator) || { echo "cannot fetch a newer QEMU" >&2; status=1; }
fi
for release; do
	is_there "$release" && continue
	(fetch "$release") || { echo "cannot fetch the kernel of $release" >&2; status=1; }
done
exit $status
