#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# fetch.sh [--emulator] RELEASE...: the kernel of a Debian release for ARCH (see arch.sh), its newest version, unpacked
# under build/kernels unless one is there; RELEASE-16k is the kernel with pages of 16 KiB, RELEASE-full the one with the
# drivers of all cards. With --emulator, the QEMU of Debian 12's backports, too. For another processor than this host's,
# also what its machines are made of. Nothing is installed, and what the system's APT knows stays as it is.
set -eu
cd "$(dirname "$0")/../.."
. tests/kernels/arch.sh

MIRROR=${MIRROR:-http://deb.debian.org/debian}
SECURITY=${SECURITY:-http://security.debian.org/debian-security}

# configure DIR RELEASE ARCHITECTURE: sets APT_CONFIG: sources, lists and cache of their own, in DIR.
configure() {
	apt=$PWD/$1/apt
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	echo "deb $MIRROR $2 main" >"$apt/sources.list"
	case $2 in
	*-* | sid) ;; # without security updates
	*) echo "deb $SECURITY $2-security main" >>"$apt/sources.list" ;;
	esac
	: >"$apt/status"
	cat >"$apt/apt.conf" <<-END
		APT::Architecture "$3";
		APT::Architectures { "$3"; };
		APT::Sandbox::User "root";
		Dir::Etc::sourcelist "$apt/sources.list";
		Dir::Etc::sourceparts "-";
		Dir::State "$apt";
		Dir::State::lists "$apt/lists";
		Dir::State::status "$apt/status";
		Dir::Cache "$apt/cache";
	END
	export APT_CONFIG="$apt/apt.conf"
}

# The package that a metapackage names.
kernel_package() {
	apt-cache show --no-all-versions "$1" | sed -n 's/^Depends:.*\(linux-image-[^ ,]*\).*/\1/p'
}

# link_lib RELEASE PACKAGE: the modules of newer packages are below /usr. Here they are found at /lib, too.
link_lib() {
	[ -e "$OUT/$1/$2/lib" ] || [ ! -d "$OUT/$1/$2/usr/lib/modules" ] || ln -s usr/lib "$OUT/$1/$2/lib"
}

# put_parts RELEASE PACKAGE: since Debian 14 a kernel is in several packages, below /usr. They are put where it was before.
put_parts() {
	parts=$(apt-cache show --no-all-versions "$2" | sed -n 's/^Depends: //p' | grep -o -E 'linux-(base|binary|modules)-[^ ,]*') ||
		return 0
	# shellcheck disable=SC2086 # one word a package
	sh tests/packages/unpack.sh "$OUT/$1/parts" $parts
	cp -a "$OUT/$1"/parts/*/. "$OUT/$1/$2"
	rm -rf "$OUT/$1/parts"
	link_lib "$1" "$2"
	mkdir -p "$OUT/$1/$2/boot"
	version=$(ls "$OUT/$1/$2/lib/modules")
	ln -s "../lib/modules/$version/vmlinuz" "$OUT/$1/$2/boot/vmlinuz-$version"
}

# Those for clouds are the smallest.
fetch() {
	case $1 in
	*-16k) metapackage=linux-image-$ARCH-16k ;;
	*-full) metapackage=linux-image-$ARCH ;;
	*) metapackage=linux-image-cloud-$ARCH ;;
	esac
	release=${1%-16k}
	configure "$OUT/$1" "${release%-full}" "$ARCH"
	apt-get update -qq && package=$(kernel_package "$metapackage") && [ -n "$package" ] || return 1
	sh tests/packages/unpack.sh "$OUT/$1" "$package"
	link_lib "$1" "$package"
	put_parts "$1" "$package"
	is_there "$1"
}

is_there() {
	ls -d "$OUT/$1"/linux-image-* >/dev/null 2>&1
}

# For the shared libraries that it has in common with Debian 12's QEMU, that one is to be installed.
fetch_emulator() {
	configure "$EMULATOR" bookworm-backports amd64
	# shellcheck disable=SC2086 # one word a package
	apt-get update -qq && sh tests/packages/unpack.sh "$EMULATOR" $EMULATOR_PACKAGES
}

has_emulator() {
	for package in $EMULATOR_PACKAGES; do
		[ -d "$EMULATOR/$package" ] || return
	done
}

# What this host has installed to build and to test with, for the machines. Debian merges / into /usr only when it
# installs, and makes the last link then, too.
fetch_root() {
	configure "$OUT" bookworm "$ARCH"
	libraries=$(sed -n '/^Build-Depends:/,/^[A-Z]/s/^ \([a-z0-9-]*-dev\).*/\1/p' user/package/debian/control)
	# shellcheck disable=SC2086 # one word a package
	apt-get update -qq && apt-get install -qq --download-only --no-install-recommends $MACHINE_PACKAGES \
		$libraries libc6-dev libc-bin libcmocka-dev mawk >/dev/null || return
	rm -rf "$ROOT"
	mkdir -p "$ROOT.new/usr/bin" "$ROOT.new/usr/sbin" "$ROOT.new/usr/lib"
	ln -s usr/bin usr/sbin usr/lib "$ROOT.new"
	for deb in "$OUT"/apt/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$ROOT.new" || return
	done
	ln -s mawk "$ROOT.new/usr/bin/awk"
	mv "$ROOT.new" "$ROOT"
}

status=0
if [ "${1-}" = --emulator ]; then
	shift
	has_emulator || (fetch_emulator) || { echo "cannot fetch a newer QEMU" >&2; status=1; }
fi
[ -z "$ROOT" ] || [ -d "$ROOT" ] || (fetch_root) || { echo "cannot fetch packages for $ARCH" >&2; status=1; }
for release; do
	is_there "$release" && continue
	(fetch "$release") || { echo "cannot fetch the kernel of $release" >&2; status=1; }
done
exit $status
