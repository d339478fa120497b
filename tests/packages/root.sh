# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced after tests/lib.sh: bare roots of Debian.
# shellcheck shell=sh

# make_root DIR RELEASE PACKAGE...: with what debootstrap needs and the packages. False if none can be made;
# $STATE/debootstrap says why.
make_root() {
	make_root_dir=$1
	make_root_release=$2
	shift 2
	debootstrap --variant=minbase --include="$(echo "$*" | tr ' ' ,)" "$make_root_release" "$make_root_dir" \
		>"$STATE/debootstrap" 2>&1
}

# run_in_root DIR: standard input, by a shell there, which ends at the first command that fails. Nothing of this environment
# goes in. What is mounted goes with the mount namespace.
run_in_root() {
	cat >"$1/tmp/steps"
	cp /etc/resolv.conf "$1/etc"
	# shellcheck disable=SC2016 # those of the shell there
	unshare -m sh -ec '
		mount --bind "$0" "$0"
		mount -t proc proc "$0/proc"
		mount -t sysfs sys "$0/sys"
		mount -t bpf bpf "$0/sys/fs/bpf"
		mount --bind /dev "$0/dev"
		exec env -i PATH="$PATH" HOME=/root DEBIAN_FRONTEND=noninteractive chroot "$0" sh -ex /tmp/steps' "$1"
}
