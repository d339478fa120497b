#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The first process of a kernel under test: runs /job.sh with its output on the second serial port, the first line of
# which is "booted" and the last one "status N"; then ends the machine. The first port is the kernel's.
export PATH=/usr/sbin:/usr/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir /dev/pts
ln -s /proc/self/fd /dev/fd
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t bpf bpf /sys/fs/bpf
modprobe -a virtio_pci virtio_net veth tun
ip link set lo up
: >/etc/resolv.conf # tests put another in its place
port=/dev/ttyAMA1 # of arm64
[ -c "$port" ] || port=/dev/ttyS1
stty -F "$port" raw
(
	echo booted
	cd /project || exit
	sh /job.sh
	echo "status $?"
) >"$port" 2>&1 </dev/null
sleep 1 # for the last characters to leave
echo b >/proc/sysrq-trigger
