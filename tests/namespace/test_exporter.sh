#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# exporter: what metrics prints, over HTTP, whatever its clients do and filters come and go; Prometheus itself reads it.
. tests/lib.sh
. tests/namespace/metrics.sh

PROMETHEUS=${PROMETHEUS:-$BUILD/packages/prometheus/usr/bin/prometheus}
HOST=127.0.0.1
PORT=9917

# serve ARGUMENT...: starts an exporter, waits until it listens, and sets EXPORTER to its process id.
serve() {
	: >"$STATE/exporter.err" # what an earlier one has said does not count
	# Not by in_rx: a signal would hit only the shell in between.
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" exporter "$@" >"$STATE/exporter.out" \
		2>"$STATE/exporter.err" &
	EXPORTER=$!
	on_exit "kill $EXPORTER 2>/dev/null; wait $EXPORTER 2>/dev/null"
	WAIT_LOG=$STATE/exporter.err
	wait_for "the exporter" grep -q 'serving http://' "$STATE/exporter.err"
}

# web: the process id of the exporter's process without privileges, which talks to clients.
web() {
	ps --ppid "$EXPORTER" -o pid= | tr -d ' '
}

# end_by SIGNAL: ends the exporter, whose status is 0.
end_by() {
	STATUS=0
	kill -s "$1" "$EXPORTER"
	wait "$EXPORTER" || STATUS=$?
	assert_equal 0 "$STATUS" "status after $1"
	assert_equal '' "$(cat "$STATE/exporter.out")" "standard output"
}

client() {
	in_rx $PYTHON tests/helpers/http_client.py "$@"
}

# send BYTES: with escapes as printf has them; writes what comes until the server closes. bash, since it starts quickly.
send() {
	in_rx timeout 60 bash -c 'exec 3<>"/dev/tcp/$1/$2" && printf %b "$3" >&3 && cat <&3' bash "$HOST" "$PORT" "$1" 2>/dev/null ||
		:
}

# ask METHOD PATH [HEADER]: the answer's head, without CR, in $STATE/head, its body in $STATE/metrics.
ask() {
	send "$1 $2 HTTP/1.1\r\nHost: x\r\n${3-}\r\n" >"$STATE/answer"
	sed '/^\r$/,$d; s/\r$//' "$STATE/answer" >"$STATE/head"
	sed '1,/^\r$/d' "$STATE/answer" >"$STATE/metrics"
	ASKED_MS=$(date +%s%3N)
}

# assert_answer STATUS METHOD PATH [HEADER]
assert_answer() {
	assert_answer_status=$1
	shift
	ask "$@"
	assert_equal "HTTP/1.1 $assert_answer_status" "$(sed 1q "$STATE/head" | cut -d' ' -f1,2)" "answer to $*"
}

# expire: waits until the exporter may not repeat its last answer.
ASKED_MS=0
expire() {
	left_ms=$((ASKED_MS + 1100 - $(date +%s%3N)))
	[ "$left_ms" -le 0 ] || sleep "$(printf '%d.%03d' $((left_ms / 1000)) $((left_ms % 1000)))"
}

# scrape: anew.
scrape() {
	expire
	assert_answer 200 GET /metrics
}

# steady FILE: the metrics, without the values of those that the host's own IPv6 packets change.
steady() {
	sed -E '/outcome="no-rule"|_interface_[a-z]+_(packets|bytes)_total/s/ [0-9]+$//' "$1"
}

test_a_scrape_is_what_metrics_prints() {
	filter_some
	serve
	assert_equal 'note: serving http://127.0.0.1:9917/metrics' "$(cat "$STATE/exporter.err")" "what it says"
	ask GET /metrics
	xc metrics >"$STATE/printed"
	steady "$STATE/printed" >"$STATE/expected"
	[ "$(wc -l <"$STATE/expected")" -gt 100 ] || fail "metrics prints little"
	steady "$STATE/metrics" | diff "$STATE/expected" - || fail "served are those with >"
	grep -qx 'Content-Type: text/plain; version=0.0.4; charset=utf-8' "$STATE/head" || fail "$(cat "$STATE/head")"
	end_by TERM
}

test_values_follow_traffic_and_filters() {
	serve
	ask GET /metrics
	assert_equal 'xdp_cuckoo_build_info{version="0.3.0"} 1' "$(grep -v '^#' "$STATE/metrics")" "samples"
	filter_some
	scrape
	assert_value 30 'xdp_cuckoo_packets_total{name="default",outcome="drop-rule",verdict="drop"}'
	assert_value 2 'xdp_cuckoo_rules{name="default"}'
	send_from 0 vtx vrx 1 >/dev/null 2>&1 || :
	xc del 192.0.2.0/24 timeout 1h >/dev/null
	xc resize 50000 >/dev/null 2>&1
	echo 'drop listed proto udp src 203.0.113.7 dst 198.18.0.1 sport 1 dport 2' | traffic || fail "a wrong verdict"
	scrape
	assert_value 32 'xdp_cuckoo_packets_total{name="default",outcome="drop-rule",verdict="drop"}'
	assert_value 1 'xdp_cuckoo_rules{name="default"}'
	xc unload vrx >/dev/null
	scrape
	assert_equal 1 "$(grep -vc '^#' "$STATE/metrics")" "samples without a filter"
	xc load vrx >/dev/null
	scrape
	assert_value 0 'xdp_cuckoo_packets_total{name="default",outcome="drop-rule",verdict="drop"}'
	end_by INT
}

test_nothing_is_left_open_by_scrapes() {
	filter_some
	serve
	assert_answer 200 GET /metrics
	find "/proc/$EXPORTER/fd" "/proc/$EXPORTER/map_files" "/proc/$(web)/fd" -type l | wc -l >"$STATE/before"
	for _ in 1 2; do
		scrape
	done
	assert_equal "$(cat "$STATE/before")" \
		"$(find "/proc/$EXPORTER/fd" "/proc/$EXPORTER/map_files" "/proc/$(web)/fd" -type l | wc -l)" \
		"open files and mappings"
	assert_equal 1 "$(web | wc -l)" "processes of its own"
}

test_methods_and_paths() {
	filter_some
	serve
	assert_answer 200 GET /
	grep -q 'href="/metrics"' "$STATE/metrics" || fail "the index names no /metrics"
	assert_answer 200 GET '/metrics?x=y'
	assert_answer 404 GET /metric
	assert_answer 404 GET /../etc/passwd
	assert_answer 404 HEAD /metrics/
	assert_answer 405 POST /metrics 'Content-Length: 0\r\n'
	assert_answer 405 DELETE /metrics
	assert_answer 405 POST /metrics 'Content-Length: 1000000000\r\n'
	grep -qx 'Allow: GET, HEAD' "$STATE/head" || fail "$(cat "$STATE/head")"
	assert_answer 200 HEAD /metrics
	[ ! -s "$STATE/metrics" ] || fail "HEAD has a body"
	length=$(sed -n 's/^Content-Length: //p' "$STATE/head")
	[ "$length" -gt 1000 ] || fail "HEAD tells no length: $(cat "$STATE/head")"
}

# hold COUNT BYTES: starts so many clients, which send these bytes and wait until the server closes them. $HELD tells
# when.
hold() {
	HELD=$(mktemp -p "$STATE")
	nsenter --net="/run/netns/$RX" $PYTHON tests/helpers/http_client.py hold "$HOST" "$PORT" "$1" "$2" >"$HELD" 2>&1 &
	on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
	WAIT_LOG=$HELD
	wait_for "clients that hold" grep -q held "$HELD"
}

# Garbage gets no answer or an error, and the next client is served. All run at once and beside slow clients, to save
# time.
test_garbage_and_slow_clients() {
	filter_some
	serve
	hold 2 ''
	first_held=$HELD
	hold 2 'GET /metr'
	mkdir "$STATE/answers"
	number=0
	senders=
	for bytes in '\r\n\r\n' 'GET\r\n\r\n' '\x16\x03\x01\x02\x00\x01\x00' 'GET /metrics HTTP/9.9\r\n\r\n' \
		"GET /$(printf '%09999d' 0) HTTP/1.1\r\nHost: x\r\n\r\n" \
		"GET /metrics HTTP/1.1\r\nHost: x\r\nX: $(printf '%09999d' 0)\r\n\r\n" '\x00\xff\xfe\r\n\r\n' \
		'GET /metrics HTTP/1.1\r\n\r\n' 'GET /%00%ff%2e%2e HTTP/1.1\r\nHost: x\r\n\r\n'; do
		number=$((number + 1))
		send "$bytes" >"$STATE/answers/$number" &
		senders="$senders $!"
		assert_answer 200 GET /metrics
	done
	head -c 100000 /dev/urandom >"$STATE/noise"
	in_rx timeout 60 bash -c 'cat "$1" >"/dev/tcp/$2/$3"' bash "$STATE/noise" "$HOST" "$PORT" 2>/dev/null || :
	assert_answer 200 GET /metrics
	# shellcheck disable=SC2086 # one word each
	wait $senders
	for answer in "$STATE"/answers/*; do
		case_begin "garbage ${answer##*/} of $number"
		! grep -aq '^HTTP/1.1 200' "$answer" || fail "answered as if it were a request"
		[ ! -s "$answer" ] || grep -aEq '^HTTP/1.[01] (4[0-9][0-9]|505) ' "$answer" || fail "$(head -c 200 "$answer")"
	done
	case_begin ''
	wait_for "the end of slow clients" grep -q '^closed' "$HELD"
	wait_for "the end of slow clients" grep -q '^closed' "$first_held"
	assert_answer 200 GET /metrics
	assert_value 30 'xdp_cuckoo_packets_total{name="default",outcome="drop-rule",verdict="drop"}'
	end_by TERM
}

# Many more clients than it serves at a time: it closes the oldest at once.
test_too_many_clients() {
	filter_some
	serve
	hold 300 'GET /metr'
	assert_answer 200 GET /metrics
	[ "$(find "/proc/$(web)/fd" -lname 'socket:*' | wc -l)" -le 19 ] || fail "more than 17 connections are open"
	assert_equal 10 "$(client get "$HOST" "$PORT" 10)" "of 10 that ask at once, those that are answered"
	end_by TERM
}

test_it_ends_while_clients_wait() {
	serve
	hold 5 'GET /metr'
	end_by TERM
	wait_for "the end of clients" grep -q '^closed' "$HELD"
}

test_a_store_that_cannot_be_read() {
	filter_some
	serve
	truncate -s 8192 "$STATE/store/default/data.mdb"
	for _ in 1 2; do
		scrape
		assert_value 0 'xdp_cuckoo_store_readable{name="default"}'
		assert_value 30 'xdp_cuckoo_packets_total{name="default",outcome="drop-rule",verdict="drop"}'
	done
	assert_equal 1 "$(grep -c "^note: no rules of 'default': " "$STATE/exporter.err")" "notes"
	end_by TERM
}

# The disk freezes under a scrape. The process that hangs there must not keep the port from the next exporter.
test_a_frozen_disk() {
	mkdir "$STATE/store"
	truncate -s 64M "$STATE/disk"
	mkfs.ext4 -q "$STATE/disk"
	mount -o loop "$STATE/disk" "$STATE/store" 2>/dev/null || skip "no loop devices here"
	on_exit "umount -l $STATE/store"
	filter_some
	serve
	fsfreeze -f "$STATE/store"
	on_exit "fsfreeze -u $STATE/store 2>/dev/null || :"
	# A signal ends the wait for the disk, too.
	ask GET /metrics &
	wait_for "a process that reads the store" sh -c "[ \$(ps --ppid $EXPORTER -o pid= | wc -l) -eq 2 ]"
	end_by TERM
	! grep 'was not read' "$STATE/exporter.err" || fail "it has waited for the disk"
	wait "$!" || :
	serve
	assert_answer 200 GET /metrics
	assert_value 0 'xdp_cuckoo_store_readable{name="default"}'
	end_by TERM
	serve
	assert_answer 200 GET /
	fsfreeze -u "$STATE/store"
	end_by TERM
}

# field NAME PID: of /proc/PID/status.
field() {
	sed -n "s/^$1:[[:space:]]*//p" "/proc/$2/status" | tr '\t' ' '
}

# Root has no socket of the network. The process that has it can do little.
test_http_is_parsed_without_privileges() {
	serve
	assert_equal '' "$(in_rx ss -Htlnp | grep "pid=$EXPORTER,")" "sockets of root"
	in_rx ss -Htlnp | grep -q "127.0.0.1:9917.*pid=$(web)," || fail "$(in_rx ss -Htlnp)"
	user=$(awk -F: '$1 == "xdp-cuckoo" { found = $3 } END { print found ? found : 65534 }' /etc/passwd)
	assert_equal "$user $user $user $user" "$(field Uid "$(web)")" "its user"
	assert_equal '0000000000000000 0000000000000000' "$(field CapEff "$(web)") $(field CapPrm "$(web)")" "its capabilities"
	assert_equal 1 "$(field NoNewPrivs "$(web)")"
	grep -Eq '^Max core file size +0 +0 ' "/proc/$(web)/limits" || fail "it may dump core"
	end_by TERM
}

# The user of the package, where there is one.
test_the_user_of_the_package() {
	{
		cat /etc/passwd
		echo 'xdp-cuckoo:x:4321:4322::/nonexistent:/usr/sbin/nologin'
	} | awk -F: '!seen[$1]++ || $3 == 4321' >"$STATE/passwd"
	nsenter --net="/run/netns/$RX" unshare --mount sh -c 'mount --bind "$1" /etc/passwd && shift && exec "$@"' sh \
		"$STATE/passwd" "$TOOL" --state "$STATE/store" exporter >"$STATE/exporter.out" 2>"$STATE/exporter.err" &
	EXPORTER=$!
	on_exit "kill $EXPORTER 2>/dev/null; wait $EXPORTER 2>/dev/null"
	WAIT_LOG=$STATE/exporter.err
	wait_for "the exporter" grep -q 'serving http://' "$STATE/exporter.err"
	assert_equal '4321 4321 4321 4321' "$(field Uid "$(web)")" "user"
	assert_equal '4322 4322 4322 4322' "$(field Gid "$(web)")" "group"
	assert_equal '' "$(field Groups "$(web)" | tr -d ' ')" "other groups"
	assert_answer 200 GET /metrics
	end_by TERM
}

# The process that talks to clients is ended, or hangs. Neither costs more than what it serves, and the port is free.
test_the_web_process_ends_or_hangs() {
	serve
	assert_answer 200 GET /metrics
	old=$(web)
	kill -9 "$old"
	wait_for "another one" client get "$HOST" "$PORT" 1
	[ "$(web)" != "$old" ] || fail "the same process"
	assert_equal 1 "$(grep -c '^note: the process that serves HTTP has ended; starts another one$' "$STATE/exporter.err")"
	assert_answer 200 GET /metrics
	# It stops although nobody asks it.
	kill -STOP "$(web)"
	wait_for "another one" grep -q '^note: the process that serves HTTP hangs; starts another one$' "$STATE/exporter.err"
	wait_for "its answers" client get "$HOST" "$PORT" 1
	assert_answer 200 GET /metrics
	kill -STOP "$(web)"
	end_by TERM
	serve
	kill -STOP "$(web)"
	old=$(web)
	kill -9 "$EXPORTER"
	wait "$EXPORTER" 2>/dev/null || :
	wait_for "its end" sh -c "! kill -0 $old"
	serve
	assert_answer 200 GET /metrics
	end_by TERM
}

# serve_hostile WHAT: with a web process that a client has taken over.
serve_hostile() {
	: >"$STATE/exporter.err"
	# shellcheck disable=SC2016 # the inner shell's
	HOSTILE_WEB=$1 nsenter --net="/run/netns/$RX" unshare --mount sh -c '
		for file in /usr/lib/*/libmicrohttpd.so.12; do mount --bind "$1" "$(readlink -f "$file")"; done
		shift; exec "$@"' sh "$PWD/$HELPERS/hostile_web.so" \
		"$TOOL" --state "$STATE/store" exporter >"$STATE/exporter.out" 2>"$STATE/exporter.err" &
	EXPORTER=$!
	on_exit "kill $EXPORTER 2>/dev/null; wait $EXPORTER 2>/dev/null"
	WAIT_LOG=$STATE/exporter.err
}

# Root answers once a second at most, whatever it asks, and does not wait for it without end. It cannot take all memory.
test_a_hostile_web_process() {
	filter_some
	serve_hostile flood
	wait_for "answers" grep -q '^answers ' "$STATE/exporter.err"
	[ "$(sed -n 's/^answers //p;T;q' "$STATE/exporter.err")" -le 4 ] || fail "$(cat "$STATE/exporter.err")"
	end_by TERM
	serve_hostile deaf
	wait_for "a hang" grep -q '^note: the process that serves HTTP hangs; starts another one$' "$STATE/exporter.err"
	end_by TERM
	serve_hostile grow
	wait_for "its end" grep -q '^note: the process that serves HTTP has ended; starts another one$' "$STATE/exporter.err"
	[ -n "$REPORTS" ] || ! grep -q grew "$STATE/exporter.err" || fail "it has taken a gigabyte"
	end_by TERM
}

# A failure is reported once.
test_filters_that_cannot_be_read() {
	serve
	in_rx "$HELPERS/foreign" vrx xc_config value 100000 || fail "the kernel does not take it"
	for _ in 1 2; do
		expire
		assert_answer 503 GET /metrics
		grep -q "^the filter on 'vrx' is of another version" "$STATE/metrics" || fail "$(cat "$STATE/metrics")"
	done
	assert_equal 1 "$(grep -c "^note: the filter on 'vrx'" "$STATE/exporter.err")" "notes"
	ip -n "$RX" link set dev vrx xdpgeneric off
	filter_some
	scrape
	end_by TERM
}

test_bad_addresses() {
	for address in '' 9917 :9917 127.0.0.1 127.0.0.1: 127.0.0.1:0 127.0.0.1:65536 127.0.0.1:x 127.0.0.1:-1 localhost:9917 \
		127.1:9917 ::1:9917 '[::1]' '[::1]9917' '[127.0.0.1]:9917' '[::1%nosuch]:9917' '[]:9917' \
		"$(printf '%099d' 0):9917"; do
		assert_status 2 in_rx timeout 20 "$TOOL" exporter --listen "$address"
		assert_error "^xdp-cuckoo: --listen '.*': must be an address and a port"
		assert_equal 1 "$(wc -l <"$STATE/err")" "lines"
	done
	assert_fails 3 'this host has no such address' in_rx timeout 20 "$TOOL" exporter --listen 192.0.2.77:9917
	assert_status 2 in_rx timeout 20 "$TOOL" metrics --listen 127.0.0.1:9917
}

test_port_in_use() {
	serve
	assert_status 3 in_rx timeout 20 "$TOOL" exporter
	assert_error "^xdp-cuckoo: cannot listen on '127.0.0.1:9917': Address already in use; another process has that port$"
	assert_equal 1 "$(wc -l <"$STATE/err")" "lines"
	in_rx timeout 20 "$TOOL" exporter --json >"$STATE/out" 2>"$STATE/err" || :
	"$HELPERS/json_check" <"$STATE/err" || fail "not JSON"
	end_by TERM
	# Closed connections do not keep the next exporter from the port.
	serve
	assert_answer 200 GET /metrics
}

test_ipv6() {
	serve --listen '[::1]:9917'
	HOST=::1
	assert_answer 200 GET /metrics
	! client get 127.0.0.1 "$PORT" 1 2>/dev/null || fail "it listens on more than ::1"
	! grep -q 'not only' "$STATE/exporter.err" || fail "::1 is the host's own"
}

# The exporter serves other hosts only if told to, and says so.
test_other_hosts() {
	serve
	! in_tx $PYTHON tests/helpers/http_client.py get 10.99.0.2 "$PORT" 1 2>/dev/null || fail "another host reads what it serves"
	end_by TERM
	for address in 0.0.0.0 '[::]' 10.99.0.2; do
		serve --listen "$address:9917"
		grep -q '^note: other hosts can read the counters' "$STATE/exporter.err" || fail "no warning"
		assert_equal 1 "$(in_tx $PYTHON tests/helpers/http_client.py get 10.99.0.2 "$PORT" 1)" "answers at $address"
		end_by TERM
	done
}

# query EXPRESSION: the value of the one sample that Prometheus has of it.
query() {
	in_rx $PYTHON -c 'import json, sys, urllib.parse, urllib.request
url = "http://127.0.0.1:19090/api/v1/query?" + urllib.parse.urlencode({"query": sys.argv[1]})
(sample,) = json.load(urllib.request.urlopen(url, timeout=10))["data"]["result"]
print(sample["value"][1])' "$1"
}

test_prometheus_reads_it() {
	[ -x "$PROMETHEUS" ] || skip "no prometheus; make packages fetches it"
	filter_some
	serve
	cat >"$STATE/prometheus.yml" <<-'END'
		global: { scrape_interval: 1s }
		scrape_configs:
		  - job_name: xdp-cuckoo
		    static_configs: [{ targets: ["127.0.0.1:9917"] }]
	END
	nsenter --net="/run/netns/$RX" "$PROMETHEUS" --config.file="$STATE/prometheus.yml" \
		--storage.tsdb.path="$STATE/tsdb" --web.listen-address=127.0.0.1:19090 --log.level=error \
		>"$STATE/prometheus.log" 2>&1 &
	prometheus=$!
	on_exit "kill -9 $prometheus 2>/dev/null; wait $prometheus 2>/dev/null"
	WAIT_LOG=$STATE/prometheus.log
	wait_for "a scrape" query 'xdp_cuckoo_build_info'
	assert_equal 1 "$(query up)" "up"
	assert_equal 30 "$(query 'xdp_cuckoo_packets_total{outcome="drop-rule",verdict="drop"}')" "packets dropped"
	assert_equal 2 "$(query 'xdp_cuckoo_table_used_slots{name="default"}')" "slots that are filled"
}

run_tests "$0" "$@"
