#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Live traffic over veth: what a packet costs in this filter, beside others with the same list of IPv4
# sources: `live.sh [--full]`. Each receiver has a namespace of its own; short slices by turns, medians. Sender and
# receiver share a processor, or each has its own: then a thread of the kernel receives (threaded NAPI), and what is told
# is how long it has run. --full has lists of up to 10 M, and all of it in generic mode too, and takes 10 minutes.
# BENCH_JSON=FILE appends each figure as a line of JSON; SIZES="N..." and ROUNDS=N say otherwise than usual.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib.sh

FULL=
[ "${1-}" != --full ] || FULL=yes
SIZES=${SIZES:-${FULL:+1000 }100000 1000000${FULL:+ 10000000}}
ROUNDS=${ROUNDS:-$([ -n "$FULL" ] && echo 9 || echo 3)}
SLICE_MS=${SLICE_MS:-80}
CHECKED=100000 # packets sent to a receiver before it is timed, or when its program is asked
INNOCENT=90    # percent, in mixed traffic
DRAW=1000      # how far the innocent ones of CHECKED packets may be from that: over six standard deviations
COUNTED=$([ -n "$FULL" ] && echo 3 || echo 1) # rounds in which programs are asked how long they take
GENERIC_SIZE=100000 # the one list in generic mode, but for --full

IFACE=rx$$ # of every receiver; the kernel names its threads after it

CUCKOOS="ours no_counters compact"
RIVALS=${RIVALS:-hash hash_source xdp_filter nft ipset}
BARE="drop pass mark none"
RECEIVERS="$BARE $CUCKOOS $RIVALS"
GENERIC="drop mark ours hash"
ON_TWO="drop mark $CUCKOOS hash hash_source" # measured on a processor of their own, too; the only ones with a large list, but for --full
[ -z "$FULL" ] || GENERIC="drop pass mark $CUCKOOS hash hash_source xdp_filter"

title() {
	case $1 in
	drop) echo "bare XDP_DROP" ;;
	pass) echo "bare XDP_PASS" ;;
	mark) echo "drop by a mark" ;;
	none) echo "no filter" ;;
	ours) echo "xdp-cuckoo" ;;
	no_counters) echo "xdp-cuckoo --no-counters" ;;
	compact) echo "xdp-cuckoo --compact" ;;
	hash) echo "BPF hash map" ;;
	hash_source) echo "BPF hash map, sources only" ;;
	xdp_filter) echo "xdp-filter" ;;
	nft) echo "nft set at ingress" ;;
	ipset) echo "ipset in raw PREROUTING" ;;
	esac
}

# mode_of RECEIVER: those that are no XDP program work in the network stack whatever the others do.
mode_of() {
	case $1 in
	none | nft | ipset) echo stack ;;
	*) echo "$MODE" ;;
	esac
}

# --- receivers: put on the interface in $MODE, native first, with the $RULES sources of $STATE/list

in_receiver() {
	in_receiver_name=$1
	shift
	in_ns "xc$$$in_receiver_name" "$@"
}

# rival RECEIVER PROGRAM
rival() {
	take_off "$1"
	# shellcheck disable=SC2046 # no word or one
	"$HELPERS/live_rival" --on "xc$$$1:$IFACE" --program "$2" --count "$RULES" \
		$([ "$MODE" = native ] || echo --skb)
}
put_drop() { rival drop drop; }
put_pass() { rival pass pass; }
put_mark() { rival mark mark; }
put_hash() { rival hash hash-flow; }
put_hash_source() { rival hash_source hash-source; }
put_none() { :; }

cuckoo() {
	cuckoo_name=$1
	shift
	in_receiver "$cuckoo_name" "$TOOL" --state "$STATE/$cuckoo_name" "$@"
}

# put_cuckoo RECEIVER OPTION...: loaded after the import, so that the table is that of every later start.
put_cuckoo() {
	put_cuckoo_name=$1
	shift
	if [ "$MODE" = native ]; then
		cuckoo "$put_cuckoo_name" import --force "$STATE/list"
	else
		cuckoo "$put_cuckoo_name" unload $IFACE
	fi
	cuckoo "$put_cuckoo_name" load $IFACE --mode "$MODE" "$@"
}
put_ours() { put_cuckoo ours; }
put_no_counters() { put_cuckoo no_counters --no-counters; }
put_compact() { put_cuckoo compact --compact; }

# It pins its maps, for all namespaces, so it gets a bpffs of its own. With no more features than it needs.
put_xdp_filter() {
	[ "$RULES" -le 10000 ] || { echo "its maps have 10,000 entries"; return 1; }
	take_off xdp_filter
	# shellcheck disable=SC2016 # the inner shell's
	in_receiver xdp_filter unshare --mount sh -euc '
		mount -t bpf bpf /sys/fs/bpf
		xdp-filter load "$3" --mode "$1" --features ipv4
		while read -r source; do
			xdp-filter ip --mode src "$source" </dev/null
		done <"$2"' - "$MODE" "$STATE/list" "$IFACE"
}

# A set of known size is the faster kind.
put_nft() {
	[ "$RULES" -le 1000000 ] || { echo "not tried beyond a million entries"; return 1; }
	{
		echo "table netdev filter {
			set block { type ipv4_addr; size $RULES; }
			chain ingress {
				type filter hook ingress device $IFACE priority 0
				ip saddr @block drop
			}
		}
		add element netdev filter block {"
		sed 's/$/,/' "$STATE/list"
		echo "}"
	} | in_receiver nft nft -f -
}

put_ipset() {
	[ "$RULES" -le 1000000 ] || { echo "not tried beyond a million entries"; return 1; }
	command -v iptables || { echo "iptables, by which a set comes to be used, is not installed"; return 1; }
	{
		echo "create block hash:ip hashsize $RULES maxelem $RULES"
		sed 's/^/add block /' "$STATE/list"
	} | in_receiver ipset ipset restore
	in_receiver ipset iptables -t raw -A PREROUTING -m set --match-set block src -j DROP
}

# take_off RECEIVER: any XDP program that is there.
take_off() {
	ip -n "xc$$$1" link set dev $IFACE xdpdrv off
	ip -n "xc$$$1" link set dev $IFACE xdpgeneric off
}

# put RECEIVER: adds it to $HERE. What others cannot do is said once and left out.
put() {
	case " $LEFT_OUT " in *" $1 "*) return ;; esac
	# Not in a condition, where the shell would go on behind a command that fails.
	set +e
	put_why=$(exec 2>&1; set -e; "put_$1")
	put_status=$?
	set -e
	case $1:$put_status in
	*:0)
		HERE="$HERE $1" ;;
	xdp_filter:* | nft:* | ipset:*)
		LEFT_OUT="$LEFT_OUT $1"
		echo "left out at $RULES: $(title "$1"): $(echo "$put_why" | head -n 1)" ;;
	*) fail "$(title "$1"), $MODE, $RULES rules: $put_why" ;;
	esac
}

# --- two processors

threads() {
	ps -e -o pid=,comm= | awk -v name="napi/$IFACE-" 'index($2, name) == 1 { print $1 }' | sort
}

# thread RECEIVER 1|0: gives it a thread that receives, on the last processor, or takes it away.
thread() {
	threads >"$STATE/threads.before"
	ip netns exec "xc$$$1" sh -c "echo $2 >/sys/class/net/$IFACE/threaded"
	[ "$2" -eq 1 ] || return 0
	threads | comm -13 "$STATE/threads.before" - >"$STATE/thread.$1"
	taskset -cp "$LAST_CPU" "$(cat "$STATE/thread.$1")" >/dev/null
}

# --- traffic

# Namespaces neither forward nor send by themselves: all that comes in is the traffic, and its destination is
# unknown, so that the stack drops what a receiver passes, at one place for all of them, and counts it.
quiet_namespace() {
	ip netns add "$1"
	in_ns "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 \
		net.ipv4.ip_forward=0 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
}

# renew_namespaces: with every interface goes what was put there for the list before.
renew_namespaces() {
	for receiver in $RECEIVERS; do
		rm -rf "${STATE:?}/$receiver"
		ip -n "$TX" link del "$receiver" 2>/dev/null || :
		ip netns del "xc$$$receiver" 2>/dev/null || :
		quiet_namespace "xc$$$receiver"
		veth "$TX" "$receiver" "xc$$$receiver" $IFACE
	done
}

drop_namespaces() {
	for receiver in $RECEIVERS; do
		ip netns del "xc$$$receiver" 2>/dev/null || :
	done
}

# send RECEIVER PACKETS [OPTION...]: and half as many before the time begins, to warm up.
sends=0
send() {
	send_receiver=$1 send_packets=$2
	shift 2
	sends=$((sends + 1))
	"$HELPERS/live_sender" --from "$TX:$send_receiver" --to "xc$$$send_receiver:$IFACE" --count "$RULES" \
		--innocent "$innocent" --warm-up "$((send_packets / 2))" --packets "$send_packets" \
		--seed "$((SEED + sends))" \
		--thread "$([ "$cpus" -eq 1 ] && echo 0 || cat "$STATE/thread.$send_receiver")" "$@" >"$STATE/sent" 2>&1 ||
		fail "$(title "$send_receiver"): nothing sent, or packets lost: $(tr '\n' ' ' <"$STATE/sent")"
}

# said NAME: by the sender.
said() {
	sed -n "s/^$1 //p" "$STATE/sent"
}

is_cuckoo() {
	case " $CUCKOOS " in *" $1 "*) ;; *) return 1 ;; esac
}

# dropped_by_rule RECEIVER: as the filter itself has counted; nothing of others.
dropped_by_rule() {
	! is_cuckoo "$1" || cuckoo "$1" --json stats |
		sed -n '/"outcome": "drop-rule"/,/}/ s/.*"dropped_packets": \([0-9]*\).*/\1/p'
}

# check RECEIVER: sends packets to it, and ends the benchmark where they do not fare as they must: what passes
# is counted by the stack behind the receiver, what our filters drop by themselves as well. Between two processors
# packets get lost before the receiver: then about as many of those that arrive are innocent as of those sent.
check() {
	dropped_before=$(dropped_by_rule "$1")
	send "$1" "$CHECKED"
	passed=$(said delivered) arrived=$(said arrived)
	case $1-$cpus in
	drop-*) expected=0 ;;
	pass-* | none-*) expected=$arrived ;;
	*-1) expected=$(said innocent) ;;
	*) expected=$((arrived * innocent / 100)) ;;
	esac
	least=$expected most=$expected
	if [ "$cpus" -eq 2 ] && [ "$expected" -gt 0 ]; then
		least=$((expected - DRAW)) most=$((expected + DRAW))
	fi
	# Twice what a full table of 16 bits drops by chance, and some for luck.
	[ "$1" != compact ] || least=$((least - expected * 24 / 100000 - 10))
	if [ "$arrived" -eq 0 ] || [ "$passed" -lt "$least" ] || [ "$passed" -gt "$most" ]; then
		fail "$(title "$1"), $MODE, $RULES rules, $traffic, $cpus processors:" \
			"of $arrived packets $passed passed, not $expected"
	fi
	! is_cuckoo "$1" || assert_equal "$((arrived - passed))" \
		"$(($(dropped_by_rule "$1") - dropped_before))" "$(title "$1"): packets it counts as dropped"
}

# --- measuring

# slice_packets: how many take SLICE_MS, by what a packet took when it was checked.
slice_packets() {
	said ns | awk -v ms="$SLICE_MS" '{ n = ms * 1e6 / $1; printf "%d", n < 50000 ? 50000 : n }'
}

# ask_program RECEIVER: what its XDP program takes. Not while it is timed: the kernel takes long to tell.
ask_program() {
	case $(mode_of "$1")-$cpus in stack-* | *-2) return 0 ;; esac
	send "$1" "$CHECKED" --program
	said program_ns | sed "s/^/program $1 /" >>"$STATE/figures"
}

# measure_traffic NAME PERCENT RECEIVER...
measure_traffic() {
	traffic=$1 innocent=$2
	shift 2
	: >"$STATE/figures"
	for receiver; do
		check "$receiver"
		slice_packets >"$STATE/packets.$receiver"
	done
	for round in $(seq "$ROUNDS"); do
		for receiver; do
			send "$receiver" "$(cat "$STATE/packets.$receiver")"
			said "$([ "$cpus" -eq 1 ] && echo ns || echo thread_ns)" |
				sed "s/^/slice $receiver /" >>"$STATE/figures"
			[ "$round" -gt "$COUNTED" ] || ask_program "$receiver"
		done
	done
	report "$@"
}

# report RECEIVER...: a line of the table for each, and one of JSON.
report() {
	for receiver; do
		echo "title $receiver $(mode_of "$receiver") $(title "$receiver")"
	done | awk -v traffic="$traffic" -v rules="$RULES" -v cpus="$cpus" -v json="${BENCH_JSON:-/dev/null}" '
	# Of values v[1...n], which it sorts; between two of them in proportion.
	function quantile(v, n, q,    i, j, x, at) {
		for (i = 2; i <= n; i++) {
			x = v[i]
			for (j = i - 1; j && v[j] > x; j--)
				v[j + 1] = v[j]
			v[j + 1] = x
		}
		at = 1 + q * (n - 1)
		i = int(at)
		return v[i] + (at - i) * (v[i < n ? i + 1 : i] - v[i])
	}
	function collect(kind, name,    i, n) {
		n = count[kind, name]
		for (i = 1; i <= n; i++)
			values[i] = figure[kind, name, i]
		return n
	}
	$1 == "title" {
		order[++titles] = $2
		mode[$2] = $3
		sub(/^[^ ]* [^ ]* [^ ]* /, "")
		title[order[titles]] = $0
		next
	}
	# What a packet takes beyond a known verdict, as a share of what it takes with the hash map; of filters.
	function share(name, ns) {
		return name ~ /^(drop|pass|mark|none)$/ ? "" : sprintf("%.2f", (ns - known) / (rival - known))
	}
	NF == 3 { figure[$1, $2, ++count[$1, $2]] = $3 }
	END {
		n = collect("slice", "drop")
		floor = quantile(values, n, 0.5)
		n = collect("slice", "mark")
		known = quantile(values, n, 0.5)
		n = collect("slice", "hash")
		rival = quantile(values, n, 0.5)
		for (t = 1; t <= titles; t++) {
			name = order[t]
			n = collect("slice", name)
			ns = quantile(values, n, 0.5)
			low = quantile(values, n, 0.25)
			high = quantile(values, n, 0.75)
			n = collect("program", name)
			own = n ? quantile(values, n, 0.5) : 0
			printf "%8d %-6s %4d %-6s %-26s %10.0f %6.0f %5.0f-%-5.0f %6.0f %6.0f %6s %7s %5.0f %%\n",
				rules, traffic, cpus, mode[name], title[name], 1e9 / ns, ns, low, high,
				ns - floor, ns - known, share(name, ns), n ? sprintf("%.0f", own) : "-",
				100 * floor / ns
			printf "{\"bench\":\"live\",\"cpus\":%d,\"mode\":\"%s\",\"traffic\":\"%s\",\"rules\":%d," \
				"\"variant\":\"%s\",\"unit\":\"ns\",\"median\":%.2f,\"low\":%.2f,\"high\":%.2f," \
				"\"packets_per_second\":%.0f,\"over_drop_ns\":%.2f,\"over_mark_ns\":%.2f," \
				"\"of_hash\":%s,\"receiver_share_ns\":%s}\n", cpus,
				mode[name], traffic, rules, title[name], ns, low, high, 1e9 / ns, ns - floor,
				ns - known, share(name, ns) "" == "" ? "null" : share(name, ns), n ? sprintf("%.1f", own) : "null" >>json
		}
	}' - "$STATE/figures"
	echo
}

# measure_traffics PROCESSORS RECEIVER...
measure_traffics() {
	cpus=$1
	shift
	measure_traffic listed 0 "$@"
	measure_traffic mixed "$INNOCENT" "$@"
}

# measure_mode MODE RECEIVER...
measure_mode() {
	MODE=$1
	shift
	HERE=
	for receiver; do
		put "$receiver"
	done
	# shellcheck disable=SC2086 # words
	measure_traffics 1 $HERE
	[ "$MODE" = native ] && [ "$(nproc)" -ge 2 ] || return 0
	for receiver in $ON_TWO; do
		thread "$receiver" 1
	done
	# shellcheck disable=SC2086 # words
	measure_traffics 2 $ON_TWO
	for receiver in $ON_TWO; do
		thread "$receiver" 0
	done
}

# has_room: for the largest lists, of which there are five in memory, with three stores.
has_room() {
	[ "$RULES" -le 1000000 ] && return
	awk '/^MemAvailable:/ { exit $2 < 8e6 }' /proc/meminfo
}

# --- all of it

[ "$(id -u)" -eq 0 ] || { echo "network namespaces need root" >&2; exit 1; }
state
LAST_CPU=$(taskset -cp $$ | sed "s/.*[^0-9]//")
on_exit drop_namespaces
quiet_namespace "$TX"
on_exit "ip netns del $TX"

cat <<END
live traffic over veth, random sources; Linux $(uname -r)
ns a packet: median and quartiles of $ROUNDS slices; SEED=$SEED
CPUs:          1: of sender and receiver together; 2: of the receiver alone, on a processor of its own
listed, mixed: all packets are to be dropped; $INNOCENT % are innocent, and go on into the network stack
stack:         receivers there, compared with those in native mode
+drop, +mark:  beyond a bare XDP_DROP; beyond a program that is told by a mark in the packet what to drop
/hash:         the latter as a share of the BPF hash map's
program:       what the XDP program takes, by the kernel's statistics; those take what bare programs show
floor:         the part of the time that sending and a bare drop take

END
printf '%8s %-6s %4s %-6s %-26s %10s %6s %11s %6s %6s %6s %7s %7s\n' rules sent CPUs mode receiver packets/s ns \
	quartiles '+drop' '+mark' /hash program floor
for RULES in $SIZES; do
	has_room || { echo "left out: $RULES rules: 8 GB of memory are needed"; continue; }
	LEFT_OUT=
	renew_namespaces
	"$HELPERS/live_sender" --list --count "$RULES" >"$STATE/list"
	receivers=$RECEIVERS
	[ -n "$FULL" ] || [ "$RULES" -le "$GENERIC_SIZE" ] || receivers=$ON_TWO
	# shellcheck disable=SC2086 # words
	measure_mode native $receivers
	[ -n "$FULL" ] || [ "$RULES" -eq "$GENERIC_SIZE" ] || continue
	# shellcheck disable=SC2086 # words
	measure_mode skb $GENERIC
done
