#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# initramfs.sh LINUX JOB OUT UNIT...: a root file system for the kernel unpacked in LINUX, as the cpio archive OUT:
# this host's own commands with their libraries, the project as it is built with these unit tests, the modules that
# tests need, and the script JOB, which init.sh runs.
set -eu
linux=$1 job=$2 out=$3
shift 3
project=$(dirname "$0")/../..

# Whole packages: all commands that tests may call, without a list of them.
PYTHON=$(basename "$(readlink -f /usr/bin/python3)")
PACKAGES="dash coreutils grep sed findutils diffutils util-linux mount bsdutils procps kmod iproute2 bpftool
	xdp-tools libxdp1 ipset nftables netbase bash tcpdump libcap2-bin ncurses-base libmicrohttpd12
	python3-minimal $PYTHON $PYTHON-minimal lib$PYTHON-minimal lib$PYTHON-stdlib"
MODULES='virtio_pci virtio_net vmxnet3 igb e1000e veth bonding dummy bridge macvlan tun sch_ingress cls_bpf act_bpf nf_tables nft_compat ip_set ip_set_hash_ip ip_set_hash_net ip_set_hash_ipport
	ip_set_hash_netport ip_set_hash_ipportip ip_set_hash_ipportnet ip_set_hash_netnet ip_set_hash_netportnet xt_set'

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# put PATH...: from this host, under the same path.
put() {
	cp -d --parents "$@" "$root"
}

make_directories() {
	for dir in bin sbin lib lib64; do
		mkdir -p "$root/usr/$dir"
		ln -s "usr/$dir" "$root/$dir"
	done
	chmod 755 "$root"
	mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp" "$root/root" "$root/etc"
	printf '%s\n' 'root:x:0:0::/root:/bin/sh' 'nobody:x:65534:65534::/:/bin/sh' \
		"$(getent passwd tcpdump || :)" >"$root/etc/passwd"
}

# What packages hold besides pages to read.
put_packages() {
	# shellcheck disable=SC2086 # one word a package
	dpkg -L $PACKAGES 2>/dev/null | grep -E '/s?bin/|^/etc/|/bpf/|/terminfo/|\.so|/lib/python3' | sort -u | while read -r file; do
		[ -d "$file" ] || [ ! -e "$file" ] || put "$file"
	done
	cp -r --parents /usr/lib/locale/C.utf8 "$root"
	cp "$(command -v awk)" "$root/usr/bin/awk"
	cp "$(command -v dash)" "$root/usr/bin/sh"
}

# put_project UNIT...
put_project() {
	mkdir -p "$root/project/build/tests/unit/packets"
	cp -r "$project/bpf" "$project/include" "$project/tests" "$project/user" "$root/project"
	cp -r "$project/build/xdp-cuckoo" "$project"/build/*.bpf.o "$root/project/build"
	[ ! -d "$project/build/verify" ] || cp -r "$project/build/verify" "$root/project/build"
	cp -r "$project/build/man" "$root/project/build"
	cp -r "$project/build/tests/helpers" "$project/build/tests/soak" "$root/project/build/tests"
	mkdir "$root/project/build/tests/fault"
	cp "$project/build/tests/fault/xdp-cuckoo" "$project/build/tests/fault/faults" "$root/project/build/tests/fault"
	for unit; do
		cp "$project/build/tests/unit/packets/test_$unit" "$root/project/build/tests/unit/packets"
	done
	find "$root/project/build" -type f -perm -100 -exec strip {} + # half of the archive
	cp "$project/tests/kernels/init.sh" "$root/init"
	chmod 755 "$root/init"
	cp "$job" "$root/job.sh"
}

# What the programs there are linked with, and the libraries that they load.
put_libraries() {
	find "$root/usr" "$root/project/build" -type f '(' -perm -100 -o -name '*.so*' ')' -exec ldd {} + 2>/dev/null |
		grep -o '/[^ ]*\.so[^ :]*' | grep -v "^$root/" | sort -u | while read -r library; do
		[ -e "$root$library" ] || cp -L --parents "$library" "$root"
	done
}

put_modules() {
	version=$(ls "$linux/lib/modules")
	modules=$root/lib/modules/$version
	mkdir -p "$modules"
	cp "$linux/lib/modules/$version"/modules.builtin* "$linux/lib/modules/$version/modules.order" "$modules"
	depmod -b "$linux" "$version"
	for module in $MODULES; do
		modprobe -q -d "$linux" -S "$version" --show-depends "$module" || : # Debian's kernels for clouds lack some
	done | sed -n 's,^insmod .*/\(lib/modules/[^ ]*\).*,\1,p' | sort -u | (cd "$linux" && xargs cp --parents -t "$root")
	depmod -b "$root" "$version"
}

make_directories
put_packages
put_project "$@"
put_libraries
put_modules
(cd "$root" && find . | cpio --quiet -o -H newc) >"$out"
