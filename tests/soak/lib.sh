# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced after tests/lib.sh: programs that change a filter as a soak does.
# shellcheck shell=sh

SOAKS=${SOAKS:-build/tests/soak}

# Nothing but the soak's own frames, and no session that rules could cut off.
soak_prepare() {
	in_tx sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	in_rx sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	unset SSH_CONNECTION
}

# soak soak|crowd OPTION...: status 0 where nothing was wrong.
soak() {
	soak_prepare
	soak_program=$1
	shift
	in_own_bpffs "$SOAKS/$soak_program" --from "$TX:vtx" --to "$RX:vrx" --tool "$TOOL" --state "$STATE/store" \
		--journal "${JOURNAL:-$STATE/journal}" --seed "$SEED" "$@"
}

# has_leftovers TABLES PROGRAMS: what the kernel holds of the store.
has_leftovers() {
	[ "$("$HELPERS/leftovers" "$STATE/store/default")" = "tables $1 programs $2" ]
}

# await_leftovers TABLES PROGRAMS: the kernel frees others a moment later.
await_leftovers() {
	wait_for "$1 tables and $2 programs to be left" has_leftovers "$1" "$2"
}

# assert_nothing_left: one table, its program and three files; then, unloaded, neither table nor program; and nobody
# holds a lock.
assert_nothing_left() {
	await_leftovers 1 1
	assert_equal './default ./default/data.mdb ./default/lock.mdb ./default/writer.lock' \
		"$(cd "$STATE/store" && find . -mindepth 1 | sort | paste -s -d ' ')" "files of the store"
	assert_status 0 xc unload vrx
	await_leftovers 0 0
	assert_status 0 flock -n "$STATE/store/default/writer.lock" true
}

# in_own_bpffs COMMAND...: with a BPF file system of its own, in which nothing may be pinned.
in_own_bpffs() {
	# shellcheck disable=SC2016 # those of then
	unshare -m sh -c 'mount -t bpf bpf /sys/fs/bpf || exit
		before=$(ls -A /sys/fs/bpf)
		"$@" || exit
		[ "$(ls -A /sys/fs/bpf)" = "$before" ] || { echo "pinned: $(ls -A /sys/fs/bpf)"; exit 3; }' sh "$@"
}
