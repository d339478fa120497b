# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced after lib.sh by tests of a fleet: a broker in the sending namespace, publishers beside it, and a host that
# follows in the receiving one.
# shellcheck shell=sh disable=SC2034 # STATUS and others are for those who source this

BROKER=10.99.0.1
FLEET_CONF=
ENDED=
BROKER_SHIFT_S= # by which the broker's clock is off
BROKER_TLS=     # options of a broker with TLS

# end PID: kills a child of this shell, once: later its number may be that of another test's process.
end() {
	case " $ENDED " in *" $1 "*) return ;; esac
	ENDED="$ENDED $1"
	kill -9 "$1" 2>/dev/null || :
	wait "$1" 2>/dev/null || :
}

needs_redis() {
	command -v redis-check-rdb >/dev/null || skip "no Redis server; apt-get install redis-tools"
}

# broker_start [OPTION...]: in $TX; its data in $STATE/broker. Most tests need no option.
broker_start() {
	mkdir -p "$STATE/broker"
	# shellcheck disable=SC2086 # several words
	nsenter --net="/run/netns/$TX" env ${BROKER_SHIFT_S:+"LD_PRELOAD=$PWD/$HELPERS/clock_shift.so" \
		"CLOCK_SHIFT_S=$BROKER_SHIFT_S"} bash tests/helpers/redis-server.sh --port 6379 --bind "$BROKER" --protected-mode no \
		--save '' --appendonly yes --appendfsync always --dir "$STATE/broker" $BROKER_TLS "$@" >>"$STATE/broker.log" 2>&1 </dev/null &
	BROKER_PID=$!
	on_exit "end $BROKER_PID"
	WAIT_LOG=$STATE/broker.log
	wait_for "the broker" redis PING
}

# server PORT [OPTION...]: another Redis beside the broker, in $STATE/nodePORT. Sets SERVER, its process.
server() {
	server_port=$1
	shift
	mkdir -p "$STATE/node$server_port"
	nsenter --net="/run/netns/$TX" bash tests/helpers/redis-server.sh --port "$server_port" --bind "$BROKER" --protected-mode no \
		--save '' --appendonly yes --appendfsync always --dir "$STATE/node$server_port" --repl-diskless-sync-delay 0 "$@" \
		>>"$STATE/servers.log" 2>&1 </dev/null &
	SERVER=$!
	on_exit "end $SERVER"
	WAIT_LOG=$STATE/servers.log
	wait_for "the server" redis -p "$server_port" PING
	WAIT_LOG=$STATE/follow.log
}

# linked PORT: whether it is a replica that has a master.
linked() {
	redis -p "$1" INFO replication | grep -q 'master_link_status:up'
}

broker_kill() {
	end "$BROKER_PID"
}

# redis WORD...: fails where the answer is an error.
redis() {
	redis_answer=$(in_tx redis-cli -e -h "$BROKER" "$@" 2>&1) || {
		echo "redis $*: $redis_answer" >&2
		return 1
	}
	printf '%s\n' "$redis_answer"
}

# fleet [LINE...]: a broker with a fleet, a filter on vrx, and the configuration with these further lines.
fleet() {
	needs_redis
	FLEET_CONF=$STATE/fleet.conf
	{
		printf '%s\n' '[fleet]' "broker = $BROKER" 'lists = bad' 'host = h1' 'resync-jitter = 1s'
		[ $# -eq 0 ] || printf '%s\n' "$@"
	} >"$FLEET_CONF"
	broker_start
	xc load vrx >"$STATE/load.out" 2>&1 || fail "load: $(cat "$STATE/load.out")"
	assert_status 0 xc fleet init --config "$FLEET_CONF"
}

# fleet_tls: a fleet whose broker also has port 6390, with TLS, which all use. other.crt is the certificate of nobody.
fleet_tls() {
	command -v openssl >/dev/null || skip "no openssl"
	fleet
	for name in ca other; do
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$STATE/$name.key" -out "$STATE/$name.crt" -subj "/CN=$name" \
			-days 2 2>/dev/null
	done
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$STATE/broker.key" -out "$STATE/broker.csr" -subj '/CN=broker' 2>/dev/null
	echo "subjectAltName=IP:$BROKER" >"$STATE/extension"
	openssl x509 -req -in "$STATE/broker.csr" -CA "$STATE/ca.crt" -CAkey "$STATE/ca.key" -CAcreateserial -days 2 \
		-extfile "$STATE/extension" -out "$STATE/broker.crt" 2>/dev/null
	broker_kill
	BROKER_TLS="--tls-port 6390 --tls-cert-file $STATE/broker.crt --tls-key-file $STATE/broker.key --tls-ca-cert-file \
		$STATE/ca.crt --tls-auth-clients no"
	broker_start
	sed -i "s/^broker = .*/&:6390/" "$FLEET_CONF"
	echo "ca = $STATE/ca.crt" >>"$FLEET_CONF"
}

# publish WORD...: to the list bad, by a publisher with a store directory of its own.
publish() {
	in_tx "$TOOL" --state "$STATE/publisher" publish --config "$FLEET_CONF" "$@"
}

# follow_launch: in $RX. follow_start returns when it is connected.
follow_launch() {
	: >"$STATE/follow.log"
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" follow --config "$FLEET_CONF" \
		>>"$STATE/follow.log" 2>&1 </dev/null &
	FOLLOW_PID=$!
	on_exit "end $FOLLOW_PID"
	WAIT_LOG=$STATE/follow.log
}

follow_start() {
	follow_launch
	wait_for "the follower to be connected" followed 'follows the fleet'
}

follow_kill() {
	end "$FOLLOW_PID"
}

# level: whether the host has what the broker's log ends with.
level() {
	level_seq=$(redis HGET xc:default:L:bad:meta seq)
	level_epoch=$(redis HGET xc:default:L:bad:meta epoch)
	xc lists --json 2>/dev/null | grep -q " $level_epoch-$level_seq refused"
}

wait_level() {
	wait_for "the host to be level" level
}

# followed PATTERN: whether the follower has said so.
followed() {
	grep -Eq -- "$1" "$STATE/follow.log"
}

# host_rules, broker_rules: the rules of the list, sorted, without times.
host_rules() {
	xc list --list bad | sed 's/ timeout [0-9a-z]*//' | LC_ALL=C sort
}

broker_rules() {
	redis --scan --pattern 'xc:default:L:bad:b:*' | while read -r broker_key; do
		redis HGETALL "$broker_key" | awk 'NR % 2 { name = $0; next }
			sub(/ rate$/, "", name) {
				at = match(name, / action /) ? RSTART : length(name) + 1
				name = substr(name, 1, at - 1) " rate " $2 substr(name, at)
			}
			{ print name }'
	done | LC_ALL=C sort
}

assert_same_rules() {
	broker_rules >"$STATE/broker.rules"
	host_rules >"$STATE/host.rules"
	cmp -s "$STATE/broker.rules" "$STATE/host.rules" && return
	diff "$STATE/broker.rules" "$STATE/host.rules" | head -n 10
	fail "broker and host have other rules"
}

# dropped SOURCE, passed SOURCE: what becomes of a packet.
dropped() {
	echo "drop $1 proto udp src $1 dst 198.18.0.1 sport 1 dport 2" | traffic >"$STATE/traffic" 2>&1
}

# ends_in_time [WHAT]: a rule of some seconds ends after them, and not an hour sooner or later, whatever is done meanwhile.
ends_in_time() {
	ends_s=$((3 * SLOWER))
	ends_ms=$(($(now_ms) + 1000 * ends_s))
	assert_status 0 publish add 192.0.2.1 timeout "${ends_s}s" --list bad --wait 100
	dropped 192.0.2.1 || fail_by "$ends_ms" "the packet is not dropped"
	eval "${1:-}"
	wait_for "the end" passed 192.0.2.1
	[ "$(now_ms)" -ge "$ends_ms" ] || fail "ended early"
}

passed() {
	echo "pass $1 proto udp src $1 dst 198.18.0.1 sport 1 dport 2" | traffic >"$STATE/traffic" 2>&1
}
