#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The Debian package and its services under a live systemd, as an operator meets them: sh tests/systemd/machine.sh, after make
# deb. An emulated machine with Debian 12 (qemu, no KVM needed) boots twice from one disk; tests/systemd/NAME_boot.sh is
# what runs in it then, and writes TAP. What the machine's console showed is left in build/systemd.
cd "$(dirname "$0")/../.." || exit 1
. tests/lib.sh
. tests/packages/root.sh

OUT=$BUILD/systemd
ROOT=$OUT/root
DISK=$OUT/disk
QEMU=qemu-system-x86_64
CPU=${CPU:-max,-cx16} # as in tests/kernels/run.sh
LIMIT_S=${LIMIT_S:-1800} # a machine that runs longer has hung

missing() {
	echo "ok systemd # SKIP $*"
	exit 0
}

need_all() {
	[ "$(id -u)" -eq 0 ] || missing "needs root"
	[ "$(uname -m)" = x86_64 ] || missing "x86_64 only"
	for command in "$QEMU" debootstrap mke2fs; do
		command -v "$command" >/dev/null || missing "no $command"
	done
	ls "$BUILD"/deb/xdp-cuckoo_*.deb >/dev/null 2>&1 || missing "no package; make deb"
}

# What the package depends on stays when it is purged again. The driver of the network cards is left out of the
# initramfs: as on most machines, udev loads it while services start already.
install_system() {
	run_in_root "$ROOT" <<-'END_OF_STEPS'
		apt-get -q update
		apt-get -qy install --no-install-recommends systemd systemd-sysv udev initramfs-tools curl iputils-ping \
			procps bash-completion man-db redis-tools gobgpd python3 /debs/*.deb
		dpkg -P xdp-cuckoo-exporter xdp-cuckoo-feed xdp-cuckoo-fleet xdp-cuckoo
		echo MODULES=list >/etc/initramfs-tools/conf.d/modules
		printf '%s\n' virtio_pci virtio_blk ext4 >>/etc/initramfs-tools/modules
		apt-get -qy install --no-install-recommends linux-image-cloud-amd64
		systemctl enable systemd-networkd
	END_OF_STEPS
}

# The same packages with a higher version, for an upgrade.
make_newer() {
	mkdir "$ROOT/newer"
	for package in "$ROOT"/debs/*.deb; do
		rm -rf "$STATE/newer"
		dpkg-deb -R "$package" "$STATE/newer"
		version=$(dpkg-deb -f "$package" Version)
		sed -i "s/$version/&+1/" "$STATE/newer/DEBIAN/control"
		dpkg-deb -b "$STATE/newer" "$ROOT/newer/${package##*/}" >/dev/null
	done
}

configure_system() {
	echo guest >"$ROOT/etc/hostname"
	echo '/dev/vda / ext4 defaults 0 1' >"$ROOT/etc/fstab"
	mkdir -p "$ROOT/var/log/journal" "$ROOT/project"
	cp -r tests "$ROOT/project"
	cat >"$ROOT/etc/systemd/network/10-front.network" <<-'END_OF_FILE'
		[Match]
		MACAddress=52:54:00:00:00:01
		[Network]
		Address=198.51.100.7/24
		LinkLocalAddressing=no
	END_OF_FILE
	cat >"$ROOT/etc/systemd/system/tests.service" <<-'END_OF_FILE'
		[Unit]
		After=multi-user.target
		[Service]
		ExecStart=/bin/sh /project/tests/systemd/run.sh
		[Install]
		WantedBy=multi-user.target
	END_OF_FILE
	ln -s ../tests.service "$ROOT/etc/systemd/system/multi-user.target.wants"
}

make_disk() {
	make_root "$ROOT" bookworm iproute2 || missing "debootstrap: $(tail -n 1 "$STATE/debootstrap")"
	mkdir "$ROOT/debs"
	cp "$BUILD"/deb/xdp-cuckoo*.deb "$ROOT/debs"
	rm -f "$ROOT"/debs/*-dbgsym_*.deb
	install_system >"$OUT/install" 2>&1 || {
		tail -n 5 "$OUT/install" | sed 's/^/# /'
		echo "not ok systemd: cannot install"
		exit 1
	}
	make_newer
	configure_system
	cp "$ROOT"/boot/vmlinuz-* "$OUT/kernel"
	cp "$ROOT"/boot/initrd.img-* "$OUT/initramfs"
	mke2fs -q -t ext4 -d "$ROOT" "$DISK" 2G >/dev/null
}

# machine NAME: boots once, until it would boot again, with two network cards joined by a hub inside the emulator.
machine() {
	card='virtio-net-pci,romfile='
	timeout --foreground "$LIMIT_S" "$QEMU" -accel tcg,thread=multi -cpu "$CPU" -smp 2 -m 1024 \
		-display none -no-reboot -nodefaults -serial "file:$OUT/console.$1" -serial stdio \
		-kernel "$OUT/kernel" -initrd "$OUT/initramfs" \
		-append "root=/dev/vda rw console=ttyS0 panic=-1 nowatchdog no_timer_check tests=$1" \
		-drive "file=$DISK,format=raw,if=virtio,cache=unsafe" \
		-netdev hubport,hubid=0,id=hub0 -device "$card,netdev=hub0,mac=52:54:00:00:00:01" \
		-netdev hubport,hubid=0,id=hub1 -device "$card,netdev=hub1,mac=52:54:00:00:00:02" </dev/null 2>"$OUT/emulator"
}

# boot NAME: shows its tests as they run. False where one failed, or the machine ended before.
boot() {
	machine "$1" | tee "$OUT/tests.$1" | grep --line-buffered -v "^status "
	grep -q '^status 0$' "$OUT/tests.$1" && return
	grep -q '^status ' "$OUT/tests.$1" || {
		tail -n 20 "$OUT/console.$1" | sed 's/^/# /'
		echo "not ok $1 boot: the machine ended before its tests did"
	}
	return 1
}

state
need_all
rm -rf "$OUT"
mkdir -p "$OUT"
on_exit 'rm -rf "$ROOT" "$DISK" "$OUT/kernel" "$OUT/initramfs"'
make_disk
status=0
boot first || status=1
boot second || status=1
exit $status
