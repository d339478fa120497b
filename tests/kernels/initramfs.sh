#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# initramfs.sh LINUX JOB OUT UNIT...: a root file system for the kernel unpacked in LINUX, as the cpio archive OUT:
# this host's own commands with their libraries, or those that fetch.sh unpacked; the project as it is built for ARCH
# with these unit tests, the modules that tests need, and the script JOB, which init.sh runs. LEAST=yes: what test_smoke.sh needs.
set -eu
linux=$1 job=$2 out=$3
shift 3
. tests/kernels/arch.sh

PYTHON=$(basename "$(readlink -f "$ROOT/usr/bin/python3")")
PACKAGES="$MACHINE_PACKAGES $PYTHON $PYTHON-minimal lib$PYTHON-minimal lib$PYTHON-stdlib"
# Of this host: the libraries that programs load. In Debian 13 their packages have other names.
LIBRARIES=$(dpkg-query -W -f '${Package} ' 'libmicrohttpd12*' 'libcurl4*' 'libhiredis[0-9]*' libncursesw6 libtinfo6 2>/dev/null) || :
MODULES='virtio_pci virtio_net vmxnet3 igb e1000e 8021q veth bonding dummy bridge macvlan tun ip_gre ipip sit wireguard vrf vxlan geneve ip6_gre ip6_tunnel fou nlmon tcp_diag inet_diag vcan sch_ingress
	sch_tbf cls_bpf act_bpf nf_tables nft_compat ip_set ip_set_hash_ip ip_set_hash_net ip_set_hash_ipport
	ip_set_hash_netport ip_set_hash_ipportip ip_set_hash_ipportnet ip_set_hash_netnet ip_set_hash_netportnet xt_set
	xt_tcpudp ipt_REJECT'

LEFT_OUT='^$'
[ -z "${LEAST-}" ] || LEFT_OUT=python

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

make_directories() {
	for dir in bin sbin lib lib64; do
		mkdir -p "$root/usr/$dir"
		ln -s "usr/$dir" "$root/$dir"
	done
	chmod 755 "$root"
	mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp" "$root/root" "$root/etc"
	printf '%s\n' 'root:x:0:0::/root:/bin/sh' 'nobody:x:65534:65534::/:/bin/sh' \
		'tcpdump:x:100:65534::/:/bin/sh' >"$root/etc/passwd"
}

# What is in the packages of the machine, with $ROOT as the root. One that was unpacked has nothing else, but for headers.
files() {
	if [ -n "$ROOT" ]; then
		find "$ROOT/usr" "$ROOT/etc" ! -type d | sed "s,^$ROOT,,"
	else
		# shellcheck disable=SC2086 # one word a package
		dpkg -L $PACKAGES $LIBRARIES 2>/dev/null
	fi
}

# What packages hold besides pages to read.
put_packages() {
	files | grep -E '/s?bin/|^/etc/|/bpf/|/terminfo/|\.so|/lib/python3|/lib/ssl/' | grep -v "$LEFT_OUT" | sort -u | while read -r file; do
		[ -d "$ROOT$file" ] || [ ! -e "$ROOT$file" ] || echo ".$file"
	done | (cd "$ROOT/" && xargs cp -d --parents -t "$root")
	(cd "$ROOT/" && cp -r --parents ./usr/lib/locale/C.utf8 "$root")
	cp "$(readlink -f "$ROOT/usr/bin/awk")" "$root/usr/bin/awk"
	cp "$ROOT/usr/bin/dash" "$root/usr/bin/sh"
	for command in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
		ln -s xtables-nft-multi "$root/usr/sbin/$command" # by update-alternatives, no file of the package
	done
}

# put_project UNIT...
put_project() {
	build=$root/project/build
	mkdir -p "$build/tests/helpers" "$build/tests/fault"
	cp -r bpf include tests user "$root/project"
	cp -r "$BUILD"/xdp-cuckoo* "$BUILD"/*.bpf.o "$BUILD/man" "$build"
	if [ -n "${LEAST-}" ]; then
		cp "$BUILD"/tests/helpers/verify "$BUILD"/tests/helpers/traffic "$build/tests/helpers"
	else
		[ ! -d "$BUILD/verify" ] || cp -r "$BUILD/verify" "$build"
		cp -r "$BUILD/tests/helpers" "$BUILD/tests/soak" "$build/tests"
		cp "$BUILD"/tests/fault/xdp-cuckoo* "$BUILD/tests/fault/faults" "$build/tests/fault"
	fi
	for unit; do
		mkdir -p "$build/${unit%/*}"
		cp "$BUILD/$unit" "$build/$unit"
	done
	find "$build" -type f -perm -100 -exec "$STRIP" {} + # half of the archive
	if [ "$BUILD" != build ]; then # where programs look for what they load
		mkdir -p "$root/project/${BUILD%/*}"
		ln -s /project/build "$root/project/$BUILD"
	fi
	cp tests/kernels/init.sh "$root/init"
	chmod 755 "$root/init"
	cp "$job" "$root/job.sh"
}

# What the programs there are linked with, and the libraries that they load. All of those that were unpacked are there.
put_libraries() {
	[ -z "$ROOT" ] || return 0
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
