# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced in the root of the repository: what depends on ARCH, the processor of the machines: amd64, or arm64, for which
# everything is compiled by a cross compiler.
# shellcheck shell=sh disable=SC2034 # the variables are for those who source this

OUT=build/kernels
BUILD=build
ROOT= # where the commands, headers and libraries of the machines are; empty is this host's root
EMULATOR=${EMULATOR:-build/kernels/emulator}
ARCH=${ARCH:-amd64}
case $ARCH in
amd64 | x86 | x86_64)
	ARCH=amd64
	EMULATOR_PACKAGES='qemu-system-x86 qemu-system-data seabios'
	UNITS=$(printf 'tests/unit/%s.c ' packets/test_packets packets/test_packets_hints packets/test_lookup_key \
		packets/test_random_frames core/host/test_protected_flows) # they ask the kernel
	STRIP='strip'
	CONSOLE=ttyS0
	;;
arm64)
	OUT=build/kernels/arm64
	BUILD=$OUT/build
	ROOT=$OUT/root
	EMULATOR_PACKAGES='qemu-system-arm qemu-system-data'
	UNITS=$(echo tests/unit/*/test_*.c tests/unit/*/*/test_*.c) # another processor may differ in all of them
	STRIP='aarch64-linux-gnu-strip'
	CONSOLE=ttyAMA0
	;;
*)
	echo "no machines of ARCH '$ARCH'; there are: amd64 arm64" >&2
	exit 77
	;;
esac

# What a machine has. Whole packages: all commands that tests may call, without a list of them.
MACHINE_PACKAGES='dash coreutils gzip grep sed findutils diffutils util-linux mount bsdutils procps kmod iproute2 bpftool
	xdp-tools libxdp1 ipset nftables netbase bash tcpdump ethtool libcap2-bin ncurses-base libmicrohttpd12 libcurl4
	libhiredis0.14 redis-tools openssl iptables python3-minimal python3 wireguard-tools'
