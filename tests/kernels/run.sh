#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Runs tests on other kernels, those that fetch.sh unpacked, each in a virtual machine: sh tests/kernels/run.sh
# [--smoke] [WORD...] runs the files whose names hold a WORD, with --smoke only the least, on the first kernel.
# KERNELS='RELEASE...' says which, in this order, ARCH for which processor (see arch.sh). Ends with a table; it and what
# the machines wrote are in build/kernels.
# Status: 0 passed, 1 failed, 77 there is nothing to run with, and standard error says what is missing.
set -eu
cd "$(dirname "$0")/../.."

. tests/kernels/arch.sh

LIMIT_S=${LIMIT_S:-3600} # a file that takes longer has hung
MACHINE_LIMIT_S=${MACHINE_LIMIT_S:-21600}
BOOT_S=${BOOT_S:-240}
ACCEL=${ACCEL:-tcg}

# They need daemons, compilers, shells of their own, or machines such as these; or ask the kernel nothing.
LEFT_OUT='fail2ban install kernels library benches fuzz exporter grafana completion terminal lacking_kernels'
# Emulated, a machine is ten to twenty times as slow: fewer rounds, packets and the like, and longer waits.
FEWER='ROUNDS=2 KILLS=4 PACKETS=50000 LINES=1000 ATTACKS=2 BLOCKS=4 CHANGES=40 LATE_S=300'
FEWER="$FEWER AWAIT_S=300 WAIT_S=300 BENCH_S=8 CPU_S=20 SLOWER=4"

missing() {
	echo "$*" >&2
	exit 77
}

# Sets QEMU and CPU. Debian 12's QEMU 7.2 takes the least on 6.1; Linux 6.12 crashes in it: with cx16 at once, without
# it after an hour or so, where it patches code that the other processor runs.
find_emulator() {
	if [ "$ARCH" = arm64 ]; then
		QEMU="$EMULATOR/qemu-system-arm/usr/bin/qemu-system-aarch64 -machine virt"
		CPU=${CPU:-max,pauth-impdef=on} # the architecture's way to sign pointers is slow to emulate
	elif [ -d "$EMULATOR/seabios" ]; then
		QEMU="$EMULATOR/qemu-system-x86/usr/bin/qemu-system-x86_64 -machine q35 -L $EMULATOR/seabios/usr/share/seabios"
		QEMU="$QEMU -L $EMULATOR/qemu-system-data/usr/share/qemu -L $EMULATOR/qemu-system-data/usr/share/seabios"
		CPU=${CPU:-max}
	else
		QEMU="qemu-system-x86_64 -machine q35"
		CPU=${CPU:-max,-cx16}
	fi
}

# linux_of RELEASE: where its kernel is unpacked.
# shellcheck disable=SC2012 # no such names
linux_of() {
	ls -d "$OUT/$1"/linux-image-* 2>/dev/null | tail -n 1
}

releases_there() {
	for there in "$OUT"/*/linux-image-*; do
		[ ! -d "$there" ] || basename "$(dirname "$there")"
	done | sort | tr '\n' ' '
}

need_all() {
	[ "$(uname -m)" = x86_64 ] || missing "kernels are run on x86_64 only"
	find_emulator
	for command in "${QEMU%% *}" cpio modprobe; do
		command -v "$command" >/dev/null || missing "no $command"
	done
	KERNELS=${KERNELS:-$(releases_there)}
	[ -n "$KERNELS" ] || missing "no kernel package; tests/kernels/fetch.sh gets one"
	for release in $KERNELS; do
		[ -n "$(linux_of "$release")" ] || missing "no kernel package of $release"
	done
}

# suite_of FILE: its name, without what all names have.
suite_of() {
	basename "$1" | sed 's/^test_//; s/\..*//'
}

holds_word() {
	held_in=$1
	shift
	for word; do
		case $held_in in *"$word"*) return 0 ;; esac
	done
	return 1
}

# wanted_files WORD...: with no WORD, all that are not left out.
wanted_files() {
	# shellcheck disable=SC2086 # one word a test
	for file in tests/kernels/test_*.sh $UNITS tests/namespace/test_*.sh; do
		suite=$(suite_of "$file")
		case " $LEFT_OUT " in *" $suite "*) continue ;; esac
		if [ $# -eq 0 ] || holds_word "$suite" "$@"; then
			echo "$file"
		fi
	done
}

# cards TAPS: the devices, as arguments of QEMU. Hub 0 joins two cards. Hub 1 joins the cards of test_cards.sh; a bridge
# adds those that need taps, for several queues or for guest offloads. QEMU 7.2 has no igb.
cards() {
	# Without ctrl_vlan=off the card itself drops frames of VLANs that nobody asked it for.
	virtio='virtio-net-pci,ctrl_vlan=off,rx_queue_size=1024'
	echo "-netdev hubport,hubid=0,id=a -device $virtio,romfile=,netdev=a"
	echo "-netdev hubport,hubid=0,id=b -device $virtio,romfile=,netdev=b"
	card 1 "$virtio"
	card 2 vmxnet3
	card 3 "$virtio,mrg_rxbuf=off,host_mtu=9000"
	case $($QEMU -device igb,help 2>&1) in
	*'not found'*) ;;
	*)
		echo '-device pcie-root-port,id=pcie'
		card 4 igb,bus=pcie
		;;
	esac
	card 5 e1000e
	card 8 "$virtio"
	if [ "$1" ]; then
		echo '-netdev tap,id=tap,ifname=tap0,script=no,downscript=no -netdev hubport,hubid=1,id=hub,netdev=tap'
		card 6 "$virtio,ctrl_guest_offloads=off" tap,ifname=tap6,script=no,downscript=no
		card 7 "$virtio,mq=on,vectors=10" tap,ifname=tap7,script=no,downscript=no,queues=4
	fi
}

# card NUMBER DEVICE [NETDEV]: on hub 1 by itself. Tests know the card by its number, the last byte of its address.
card() {
	echo "-netdev ${3-hubport,hubid=1},id=n$1 -device $2,romfile=,netdev=n$1,mac=52:54:00:ca:4d:0$1"
}

# boot LINUX DIR: from DIR/initramfs.
boot() {
	taps= # where this host may not make them, the tests of their cards are skipped
	! sh tests/kernels/taps.sh true 2>/dev/null || taps='sh tests/kernels/taps.sh'
	rm -f "$2/pid" # of a QEMU that was killed
	# shellcheck disable=SC2046,SC2086 # words
	$taps timeout --foreground "$MACHINE_LIMIT_S" $QEMU -accel "$ACCEL" -cpu "$CPU" -smp 2 -m 2048 \
		-nographic -no-reboot -nodefaults -pidfile "$2/pid" -serial "file:$2/console" -serial stdio \
		-kernel "$1"/boot/vmlinuz-* -initrd "$2/initramfs" \
		-append "console=$CONSOLE loglevel=5 panic=-1 nowatchdog no_timer_check ${LEAST:+mitigations=off}" $(cards "$taps") </dev/null 2>"$2/emulator"
}

# await_boot DIR: passes on what the machine there writes, and ends it where that is nothing for $BOOT_S seconds. Now and
# then an emulated processor loses its timer while Linux boots.
await_boot() {
	# shellcheck disable=SC2016 # for that shell
	if timeout --foreground "$BOOT_S" sh -c 'read -r line && echo "$line"'; then
		cat
	else
		kill "$(cat "$1/pid")" 2>/dev/null || :
	fi
}

# programs FILE...: the unit tests that are run, also by other tests.
programs() {
	for file; do
		case $file in
		*.c) echo "${file%.c}" ;;
		*/test_dissection.sh) echo tests/unit/packets/test_random_frames ;;
		esac
	done
}

# complaints CONSOLE: of the kernel; true where there is one. It always complains where generic mode begins on a card that
# cannot turn its offloads off.
complaints() {
	grep -E '\] .*(BUG:|WARNING:|Oops|Kernel panic)' "$1" | grep -v 'WARNING: .* generic_xdp_install'
}

# run_on RELEASE FILE...: what the machine writes to standard output and to $OUT/RELEASE/tests. False where a test
# failed, none was run, or the kernel complained.
run_on() {
	on=$OUT/$1
	linux=$(linux_of "$1")
	shift
	echo "TESTS='$*' LIMIT_S=$LIMIT_S $FEWER sh tests/run.sh" >"$on/job.sh"
	# shellcheck disable=SC2046 # one word a program
	sh tests/kernels/initramfs.sh "$linux" "$on/job.sh" "$on/initramfs" $(programs "$@") || return
	for try in 1 2 3; do
		boot "$linux" "$on" | await_boot "$on" | tee "$on/tests"
		! grep -q '^booted$' "$on/tests" || break
		echo "the machine did not boot: try $try of 3"
	done
	rm -f "$on/initramfs"
	if ! grep -q '^status ' "$on/tests"; then
		cat "$on/emulator"
		tail -n 20 "$on/console"
		echo "the machine ended before its tests did"
		return 1
	fi
	if complaints "$on/console"; then
		echo "the kernel complained: see $on/console"
		return 1
	fi
	if grep 'takes no freplace' "$on/tests"; then
		echo "these kernels do take such programs"
		return 1
	fi
	grep -q '^status 0' "$on/tests"
}

# summarise RELEASE...: a line a suite, a column a kernel.
summarise() {
	for release; do
		sed "s,^,$(basename "$(linux_of "$release")" | sed 's/^linux-image-//') ," "$OUT/$release/tests"
	done | awk '
	!($1 in column) { column[$1] = ++kernels; name[kernels] = $1 }
	$2 ~ /^tests\// && $4 == "passed" && $8 == "skipped" {
		suite = $2
		sub(/.*test_/, "", suite)
		sub(/\..*/, "", suite)
		if (!(suite in row)) {
			row[suite] = ++rows
			title[rows] = suite
		}
		cell[row[suite], column[$1]] = $3 " / " $5 " / " $7
	}
	END {
		line = "| passed / failed / skipped |"
		rule = "|---|"
		for (k = 1; k <= kernels; k++) {
			line = line " " name[k] " |"
			rule = rule "---|"
		}
		print line "\n" rule
		for (r = 1; r <= rows; r++) {
			line = "| " title[r] " |"
			for (k = 1; k <= kernels; k++)
				line = line " " ((r, k) in cell ? cell[r, k] : "not run") " |"
			print line
		}
	}'
}

if [ "${1-}" = --smoke ]; then
	export LEAST=yes
	[ "$ARCH" != amd64 ] || CPU=${CPU:-Nehalem} # with what boot() says, 40 % less to emulate
	set -- smoke
fi
need_all
[ -z "${LEAST-}" ] || KERNELS=${KERNELS%% *}
files=$(wanted_files "$@")
[ -n "$files" ] || missing "no test holds one of: $*"
status=0
ran=
# shellcheck disable=SC2086 # one word a file
for release in $KERNELS; do
	case $release in
	*-full) here=$(echo "$files" | grep '^tests/kernels/') || continue ;; # no other test needs its drivers
	*) here=$files ;;
	esac
	echo "==== $(basename "$(linux_of "$release")")"
	run_on "$release" $here || status=1
	ran="$ran $release"
done
[ -n "$ran" ] || missing "these tests need none of: $KERNELS"
# shellcheck disable=SC2086 # one word a release
summarise $ran | tee "$OUT/table"
exit $status
