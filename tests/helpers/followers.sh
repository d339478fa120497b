#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# bash tests/helpers/followers.sh [HOSTS] [CHANGES]: so many real followers, each with a store of its own, in one new namespace with a
# broker and a publisher; prints how long `publish --wait 100` took for each change.
set -eu
hosts=${1:-100} changes=${2:-20} tool=$PWD/build/xdp-cuckoo dir=$(mktemp -d) pids=
end() {
	for pid in $pids; do kill "$pid" 2>/dev/null || :; done
	wait
	rm -rf "$dir"
}
[ "${IN_NAMESPACE:-}" ] || exec env IN_NAMESPACE=1 unshare --net bash "$0" "$@"
trap end EXIT
ip link set lo up
bash tests/helpers/redis-server.sh --port 6379 --bind 127.0.0.1 --save '' --appendonly yes --dir "$dir" >"$dir/redis.log" &
pids=$!
sleep 1
conf() {
	printf '[fleet]\nbroker = 127.0.0.1\nlists = bad\nresync-jitter = 1s\nhost = h%s\n' "$1" >"$dir/$1.conf"
}
conf 0
publish() {
	"$tool" --state "$dir/publisher" publish "$@" --config "$dir/0.conf"
}
"$tool" fleet init --config "$dir/0.conf" >"$dir/init.log"
publish add 192.0.2.1 --list bad >"$dir/first.log"
for host in $(seq "$hosts"); do
	conf "$host"
	"$tool" --state "$dir/$host" follow --config "$dir/$host.conf" >"$dir/$host.log" 2>&1 </dev/null &
	pids="$pids $!"
done
for try in $(seq 120); do
	[ "$(redis-cli ZCOUNT xc:default:L:bad:hosts 1 +inf)" = "$hosts" ] && break
	[ "$try" -lt 120 ] || { echo "not all hosts follow" >&2; exit 1; }
	sleep 0.5
done
echo "$hosts followers have the list; $(ps -o rss= -C xdp-cuckoo | awk '{ s += $1 } END { printf "%d MB", s / 1024 }') in their processes"
for change in $(seq "$changes"); do
	start=$(date +%s%N)
	publish add "198.51.100.$change" --list bad --wait 100 >"$dir/last.log"
	echo $((($(date +%s%N) - start) / 1000000))
done | sort -n | awk '{ ms[NR] = $1 } END { printf "all had a change after %d ms (median), %d ms (slowest)\n", ms[int((NR + 1) / 2)], ms[NR] }'
