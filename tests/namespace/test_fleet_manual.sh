#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The steps of PRODUCTION in xdp-cuckoo-fleet(7), run as they are, and `fleet check`, which notices each step that is left out.
. tests/lib.sh
. tests/namespace/fleet.sh

PAGE=$PWD/user/package/man/xdp-cuckoo-fleet.7
ETC=
EXEC= # exec: in_broker takes the place of its shell, so that its process can be killed

# in_broker WORD...: in $TX, with a directory of this test in place of /etc/redis and of /etc/xdp-cuckoo.
in_broker() {
	$EXEC nsenter --net="/run/netns/$TX" unshare --mount sh -c 'mount --bind "$1/redis" /etc/redis &&
		mount --bind "$1/xdp-cuckoo" /etc/xdp-cuckoo && shift && exec env PATH="$STATE/bin:$PATH" "$@"' sh "$ETC" "$@"
}

# What Debian's redis-server would have, and commands of the steps that a test cannot run.
prepare() {
	needs_redis
	command -v openssl >/dev/null || skip "no openssl"
	redis-cli --help 2>&1 | grep -q -- --tls || skip "redis-cli has no TLS"
	ETC=$STATE/etc
	mkdir -p "$ETC/redis" "$ETC/xdp-cuckoo" "$STATE/bin" "$STATE/data" "$STATE/data2"
	for dir in /etc/redis /etc/xdp-cuckoo; do
		[ -d "$dir" ] || { mkdir "$dir" && on_exit "rmdir $dir"; }
	done
	printf '%s\n' 'bind 127.0.0.1 -::1' 'port 6379' "dir $STATE/data" 'save ""' >"$ETC/redis/redis.conf"
	printf '#!/bin/sh\n' | tee "$STATE/bin/chown" >"$STATE/bin/systemctl"
	printf '#!/bin/sh\nexec "%s" --state "%s" "$@"\n' "$TOOL" "$STATE/publisher" >"$STATE/bin/xdp-cuckoo"
	printf '#!/bin/sh\nexec bash "%s/tests/helpers/redis-server.sh" "$@"\n' "$PWD" >"$STATE/bin/redis-server"
	chmod +x "$STATE"/bin/*
	export STATE
	sed -n '/^\.SH PRODUCTION/,/^\.SH SEE/p' "$PAGE" | sed -n '/^\.EX/,/^\.EE/p' |
		sed "/^\.E[XE]/d; s/\\\\-/-/g; s/192\.0\.2\.10/$BROKER/g" >"$STATE/steps"
	sed '/^xdp-cuckoo /d' "$STATE/steps" >"$STATE/steps.files"
	sed -n '/^xdp-cuckoo /p' "$STATE/steps" >"$STATE/steps.commands"
}

cli() {
	in_broker redis-cli -e --no-auth-warning --tls --cacert /etc/redis/ca.crt --user admin --pass ADMIN -h "$BROKER" "$@"
}

# server PORT [OPTION...]: the Redis of these steps. Sets SERVER, its process.
server() {
	server_port=$1
	shift
	(EXEC='exec' && in_broker redis-server /etc/redis/redis.conf --repl-diskless-sync-delay 0 "$@") >>"$STATE/servers.log" 2>&1 </dev/null &
	SERVER=$!
	on_exit "end $SERVER"
	listens() {
		in_tx $PYTHON -c 'import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)' "$BROKER" "$server_port"
	}
	WAIT_LOG=$STATE/servers.log
	wait_for "the server" listens
}

replica() {
	server 6380 --tls-port 6380 --replicaof "$BROKER 6379" --dir "$STATE/data2"
	REPLICA=$SERVER
}

# Its link is up before it has loaded what it got.
has_fleet() {
	linked && [ "$(cli -p 6380 DBSIZE)" != 0 ]
}

linked() {
	cli -p 6380 INFO replication | grep -q 'master_link_status:up'
}

counted() {
	cli INFO replication | grep -q 'min_slaves_good_slaves:1'
}

make_broker() {
	prepare
	in_broker sh -eu "$STATE/steps.files" >"$STATE/steps.out" 2>&1 || fail "$(cat "$STATE/steps.out")"
	server 6379
	MASTER=$SERVER
	replica
	wait_for "replication" linked
	wait_for "the replica to be counted" counted
}

check() {
	in_broker xdp-cuckoo fleet check --config /etc/xdp-cuckoo/admin.conf
}

test_the_steps_of_the_manual() {
	make_broker
	in_broker sh -eu "$STATE/steps.commands" >"$STATE/steps.out" 2>&1 || fail "$(cat "$STATE/steps.out")"
	assert_status 0 check
	[ ! -s "$STATE/err" ] || fail "fleet check has notes: $(cat "$STATE/err")"
	case_begin "a publisher and a host"
	printf '%s\n' '[fleet]' "broker = $BROKER" 'lists = bad' 'host = host1' 'user = host1' "ca = $ETC/redis/ca.crt" \
		"password-file = $ETC/xdp-cuckoo/fleet.password" >"$STATE/host.conf"
	FLEET_CONF=$STATE/host.conf
	xc load vrx >/dev/null 2>&1
	follow_start
	assert_status 0 in_broker xdp-cuckoo publish add 192.0.2.1 --list bad --wait 100
	assert_output '^replicas: +1$'
	dropped 192.0.2.1 || fail "the packet is not dropped"
	! followed refuses || fail "$(cat "$STATE/follow.log")"
	assert_status 3 in_broker xdp-cuckoo publish add 192.0.2.1 --list other
	assert_error NOPERM
	assert_status 3 in_broker xdp-cuckoo publish accept bad
	assert_error NOPERM
	case_begin "the rights of the manual for more"
	assert_status 0 in_broker xdp-cuckoo fleet status --config /etc/xdp-cuckoo/admin.conf
	assert_status 0 in_broker xdp-cuckoo publish panic on --config /etc/xdp-cuckoo/admin.conf
	assert_status 0 in_broker xdp-cuckoo publish panic off --config /etc/xdp-cuckoo/admin.conf
	case_begin "a new sentinel takes the settings, and the user of sentinels may ask the broker"
	(EXEC='exec' && in_broker redis-server /etc/redis/sentinel.conf --sentinel --dir "$STATE/data") >"$STATE/sentinel.log" 2>&1 </dev/null &
	on_exit "end $!"
	sees_replica() {
		in_broker redis-cli --no-auth-warning --tls --cacert /etc/redis/ca.crt -a SENTINEL -h "$BROKER" -p 26379 \
			SENTINEL REPLICAS fleet | grep -q 6380
	}
	WAIT_LOG=$STATE/sentinel.log
	wait_for "the sentinel" sees_replica
	case_begin "a restart keeps users and rules"
	end "$MASTER"
	server 6379
	wait_for "replication" linked
	wait_for "the replica to be counted" counted
	assert_status 0 check
}

# without NAME MESSAGE STATUS SED FILE: what `fleet check` says when the file is changed so.
without() {
	case_begin "$1"
	cp -p "$ETC/$5" "$STATE/kept"
	sed -i "$4" "$ETC/$5"
	end "$MASTER"
	server 6379
	MASTER=$SERVER
	[ "$3" = 3 ] || wait_for "the replica" linked
	assert_status "$3" check
	assert_error "$2"
	cp -p "$STATE/kept" "$ETC/$5"
}

test_what_is_left_out_is_noticed() {
	make_broker
	in_broker sh -eu "$STATE/steps.commands" >"$STATE/steps.out" 2>&1 || fail "$(cat "$STATE/steps.out")"
	case_begin "modes of files"
	chmod 644 "$ETC/redis/users.acl"
	assert_status 1 check
	assert_error "others can read '/etc/redis/users.acl': chmod o-rwx it"
	chmod 640 "$ETC/redis/users.acl"
	chmod 644 "$ETC/redis/redis.key"
	assert_status 1 check
	assert_error "others can read '/etc/redis/redis.key'"
	chmod 640 "$ETC/redis/redis.key"
	chmod 644 "$ETC/xdp-cuckoo/admin.password"
	assert_status 3 check
	assert_error 'others can read or change it'
	chmod 600 "$ETC/xdp-cuckoo/admin.password"
	case_begin "a replica that is cut off"
	sed -i "s/^broker = .*/broker = $BROKER $BROKER:6380/" "$ETC/xdp-cuckoo/admin.conf"
	wait_for "the replica" has_fleet
	assert_status 0 check
	end "$REPLICA"
	assert_status 3 check
	assert_error "cannot connect to the broker at $BROKER port 6380"
	assert_error 'replicas = 1, but it has none'
	replica
	wait_for "replication" linked
	without "masterauth" 'it cannot log in at another master: set masteruser and masterauth' 1 '/^master/d' redis/redis.conf
	sed -i "s/^broker = .*/broker = $BROKER/" "$ETC/xdp-cuckoo/admin.conf"
	without "min-replicas-to-write" 'set min-replicas-to-write 1' 1 '/^min-replicas/d' redis/redis.conf
	without "appendonly" 'set appendonly yes' 1 '/^appendonly/d' redis/redis.conf
	without "appendfsync" 'set appendfsync always' 0 's/^appendfsync.*/appendfsync everysec/' redis/redis.conf
	without "maxmemory-policy" 'set maxmemory-policy noeviction' 1 's/^maxmemory-policy.*/maxmemory-policy allkeys-lru/' \
		redis/redis.conf
	without "port 0" 'its port 6390 takes clients without TLS: set port 0' 1 's/^port 0/port 6390/' redis/redis.conf
	echo 'protected-mode no' >>"$ETC/redis/redis.conf" # else the open broker refuses all
	without "user default off" "anybody can use it without a password: write 'user default off'" 1 \
		's/^user default off/user default on nopass/' redis/users.acl
	without "rights of the user default" "it loses all rules when it restarts: write 'user default off" 1 \
		's/^user default off.*/user default off/' redis/users.acl
	in_broker xdp-cuckoo fleet init --config /etc/xdp-cuckoo/admin.conf >"$STATE/steps.out" 2>&1 || fail "$(cat "$STATE/steps.out")"
	without "aclfile" "refuses the user 'admin'" 3 '/^aclfile/d; /^masteruser/d; /^masterauth/d' redis/redis.conf
	without "tls-auth-clients" 'does it have tls-auth-clients no?' 3 's/^tls-auth-clients no/tls-auth-clients yes/' redis/redis.conf
	case_begin "subjectAltName"
	sed 's/subjectAltName=[^ ]*/subjectAltName=DNS:elsewhere/' "$STATE/steps.files" | sed -n '/redis\.ext/p' >"$STATE/certificate"
	in_broker sh -euc "cd /etc/redis && $(cat "$STATE/certificate")" >/dev/null 2>&1
	end "$MASTER"
	server 6379
	assert_status 3 check
	assert_error 'its certificate is refused: .*its subjectAltName must have the name or address'
}

run_tests "$0" "$@"
