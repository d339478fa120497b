# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced after tests/lib.sh: roots of Debian 12, for packages to be installed in.
# shellcheck shell=sh

# make_root DIR: a bare one. False where there is none to be had; $STATE/debootstrap says why.
make_root() {
	debootstrap --variant=minbase --include=iproute2 bookworm "$1" >"$STATE/debootstrap" 2>&1
}

# run_in_root DIR: standard input, by a shell there, which ends at the first command that fails. What is mounted goes
# with the mount namespace.
run_in_root() {
	cat >"$1/tmp/steps"
	cp /etc/resolv.conf "$1/etc"
	# shellcheck disable=SC2016 # those of the shell there
	DEBIAN_FRONTEND=noninteractive unshare -m sh -ec '
		mount --bind "$0" "$0"
		mount -t proc proc "$0/proc"
		mount -t sysfs sys "$0/sys"
		mount -t bpf bpf "$0/sys/fs/bpf"
		mount --bind /dev "$0/dev"
		exec chroot "$0" sh -ex /tmp/steps' "$1"
}
