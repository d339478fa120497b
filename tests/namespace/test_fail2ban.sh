#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The fail2ban action, under Debian's fail2ban with its own jails and filters: a server of its own, on logs that
# the test writes.
# Takes a minute.
. tests/lib.sh

FAIL2BAN=${FAIL2BAN:-$PWD/$BUILD/packages/fail2ban}

# --- the server

# configure [BANTIME [OPTIONS]]: the package's configuration, with jails that watch logs in $STATE, and our action with
# these options, as ", persist=no". The tool notes its commands in $STATE/commands.
configure() {
	[ -d "$FAIL2BAN" ] || skip "no fail2ban; make packages fetches it"
	cp -r "$FAIL2BAN/etc/fail2ban" "$STATE/etc"
	rm -rf "$STATE"/etc/jail.d/*
	cp user/integrations/fail2ban/xdp-cuckoo.py "$STATE/etc/action.d"
	tool=$STATE/tool
	printf '#!/bin/sh\necho "$1 $2" >>%s\nexec %s --state %s "$@"\n' "$STATE/commands" "$PWD/$TOOL" "$STATE/store" >"$tool"
	chmod +x "$tool"
	printf '[DEFAULT]\ndbfile = %s\nallowipv6 = yes\n' "$STATE/f2b.sqlite3" >"$STATE/etc/fail2ban.local"
	cat >"$STATE/etc/jail.local" <<-END
		[DEFAULT]
		banaction = xdp-cuckoo.py[type=multiport, tool="$tool"${2-}]
		banaction_allports = xdp-cuckoo.py[type=allports, tool="$tool"${2-}]
		backend = polling
		bantime = ${1:-1h}
		findtime = 1h
		maxretry = 3
		ignoreself = false
		[sshd]
		enabled = true
		logpath = $STATE/ssh.log
		[proxy]
		enabled = true
		filter = sshd
		port = http,https,8080,6000:6002
		logpath = $STATE/proxy.log
		[all]
		enabled = true
		filter = sshd
		banaction = %(banaction_allports)s
		logpath = $STATE/all.log
	END
	touch "$STATE/ssh.log" "$STATE/proxy.log" "$STATE/all.log"
}

# f2b COMMAND ARGUMENT...: a program of the package, in the namespace of the filter.
f2b() {
	program=$1
	shift
	in_rx env PYTHONPATH="$FAIL2BAN/usr/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 "$FAIL2BAN/usr/bin/fail2ban-$program" -c "$STATE/etc" -s "$STATE/f2b.sock" \
		-p "$STATE/f2b.pid" "$@"
}

server_start() {
	f2b server --logtarget "$STATE/f2b.log" start >"$STATE/out" 2>&1 || { cat "$STATE/out"; fail "no server"; }
	on_exit 'server_kill 2>/dev/null'
	WAIT_LOG=$STATE/f2b.log
	wait_for "the jails" f2b client status all
}

server_stop() {
	f2b client stop >/dev/null
	wait_for "the server's end" server_is_gone
}

server_is_gone() {
	! [ -e "$STATE/f2b.pid" ]
}

server_kill() {
	kill -9 "$(cat "$STATE/f2b.pid")"
	rm -f "$STATE/f2b.pid" "$STATE/f2b.sock"
}

# --- attackers

# attack LOG ADDRESS...: three failures of each, as sshd logs them, by a process for each address.
SSHD=4711
attack() {
	log=$STATE/$1.log
	shift
	for address; do
		SSHD=$((SSHD + 1))
		for failure in 1 2 3; do
			echo "$(LC_ALL=C date '+%b %e %H:%M:%S') host sshd[$SSHD]:" \
				"Failed password for root from $address port 4$failure ssh2"
		done
	done >>"$log"
}

# prefix ADDRESS: that is banned with it.
prefix() {
	case $1 in *:*) echo "${1%::*}::/64" ;; *) echo "$1" ;; esac
}

# is_banned JAIL ADDRESS: whether fail2ban says so; its action has run by then.
is_banned() {
	xc list | grep -Fq "src $(prefix "$2") " && f2b client get "$1" banip | grep -Fqw -- "$2"
}

# has_listed LIST ADDRESS
has_listed() {
	xc list --list "$1" | grep -Fqw -- "$2"
}

is_not_listed() {
	! xc list | grep -Fq "src $(prefix "$1") "
}

passes() {
	verdicts pass "$1" 22 | traffic >/dev/null 2>&1
}

# verdicts VERDICT ADDRESS PORT...: TCP to this host.
verdicts() {
	verdict=$1 address=$2
	shift 2
	case $address in *:*) to=fd99::2 ;; *) to=10.99.0.2 ;; esac
	for port; do
		echo "$verdict ban proto tcp src $address dst $to sport 1025 dport $port"
	done
}

assert_no_errors() {
	[ -s "$STATE/f2b.log" ] || fail "fail2ban wrote no log"
	grep -E ' (ERROR|CRITICAL) ' "$STATE/f2b.log" && fail "errors in fail2ban's log"
	return 0
}

# --- tests

test_bans_and_unbans() {
	configure
	xc load vrx >/dev/null
	server_start
	verdicts pass 192.0.2.66 22 | traffic >/dev/null || fail "blocked before"
	attack ssh 192.0.2.66 2001:db8:66::1
	attack proxy 192.0.2.67
	attack all 192.0.2.68 2001:db8:68::1
	wait_for "bans" is_banned sshd 192.0.2.66
	wait_for "bans" is_banned sshd 2001:db8:66::1
	wait_for "bans" is_banned proxy 192.0.2.67
	wait_for "bans" is_banned all 192.0.2.68
	wait_for "bans" is_banned all 2001:db8:68::1
	{
		verdicts drop 192.0.2.66 22
		verdicts pass 192.0.2.66 80
		verdicts drop 2001:db8:66::1 22
		verdicts drop 2001:db8:66:0:ffff::9 22
		verdicts pass 2001:db8:66:1::1 22
		verdicts pass 2001:db8:66::1 23
		verdicts drop 192.0.2.67 80 443 8080 6000 6001 6002
		verdicts pass 192.0.2.67 22 6003 5999
		verdicts drop 192.0.2.68 22 80 9999
		verdicts drop 2001:db8:68::1 22 80 9999
		verdicts pass 192.0.2.69 22 80
	} | traffic || fail "wrong verdicts"
	assert_status 0 xc list
	assert_output '^proto tcp src 192.0.2.66 dport 22 timeout (1h|59m[0-9]+s) comment "fail2ban sshd"$'
	assert_output '^src 2001:db8:68::/64 timeout (1h|59m[0-9]+s) comment "fail2ban all"$'
	for ban in 'sshd 192.0.2.66' 'sshd 2001:db8:66::1' 'proxy 192.0.2.67' 'all 192.0.2.68'; do
		f2b client set "${ban% *}" unbanip "${ban#* }" >/dev/null
		wait_for "unbans" is_not_listed "${ban#* }"
	done
	{
		verdicts pass 192.0.2.66 22
		verdicts pass 2001:db8:66::1 22
		verdicts pass 192.0.2.67 80 443 8080 6000
		verdicts pass 192.0.2.68 22
		verdicts drop 2001:db8:68::1 22
	} | traffic || fail "wrong verdicts after unbans"
	assert_no_errors
}

# What a pass rule lets through of a ban stands in the log.
test_bans_that_pass() {
	configure
	xc add 192.0.2.66 tcp dport 22 action pass >/dev/null 2>&1
	server_start
	attack ssh 192.0.2.66
	attack all 192.0.2.66 192.0.2.68
	wait_for "bans" is_banned sshd 192.0.2.66
	wait_for "bans" is_banned all 192.0.2.66
	wait_for "bans" is_banned all 192.0.2.68
	wait_for "a warning" grep -q 'not all packets of 192.0.2.66 are dropped: passed by proto tcp src 192.0.2.66 dport 22' "$STATE/f2b.log"
	wait_for "a warning" grep -q 'not all packets of 192.0.2.66 are dropped: partly blocked by src 192.0.2.66' "$STATE/f2b.log"
	! grep -q 'packets of 192.0.2.68' "$STATE/f2b.log" || fail "a ban that drops all"
	assert_no_errors
}

# Each jail has the address on its own ports.
test_jails_do_not_unban_for_each_other() {
	configure
	xc load vrx >/dev/null
	server_start
	for jail in ssh proxy all; do
		attack "$jail" 192.0.2.66
	done
	wait_for "bans" is_banned sshd 192.0.2.66
	wait_for "bans" is_banned proxy 192.0.2.66
	wait_for "bans" is_banned all 192.0.2.66
	verdicts drop 192.0.2.66 22 80 9999 | traffic >/dev/null || fail "wrong verdicts"
	f2b client set all unbanip 192.0.2.66 >/dev/null
	wait_for "the unban" sh -c "! '$TOOL' --state '$STATE/store' list | grep -q '^src 192.0.2.66 '"
	{ verdicts drop 192.0.2.66 22 80; verdicts pass 192.0.2.66 9999; } | traffic || fail "wrong verdicts"
	f2b client set sshd unbanip 192.0.2.66 >/dev/null
	wait_for "the unban" sh -c "! '$TOOL' --state '$STATE/store' list | grep -q ' dport 22 '"
	{ verdicts drop 192.0.2.66 80; verdicts pass 192.0.2.66 22; } | traffic || fail "wrong verdicts"
	assert_no_errors
}

# The rule ends with the ban, and no process is started for that.
test_bans_end() {
	configure 10s
	xc load vrx >/dev/null
	server_start
	attack ssh 192.0.2.66
	wait_for "the ban" is_banned sshd 192.0.2.66
	wait_for "the rule's end" is_not_listed 192.0.2.66
	wait_for "the end of the block" passes 192.0.2.66
	wait_for "the unban" grep -q 'Unban 192.0.2.66' "$STATE/f2b.log"
	assert_equal 1 "$(grep -c '^batch' "$STATE/commands")" "processes for a ban and its end"
	assert_no_errors
}

test_permanent_bans_have_no_timeout() {
	configure -1
	xc load vrx >/dev/null
	server_start
	attack ssh 192.0.2.66
	wait_for "the ban" is_banned sshd 192.0.2.66
	assert_shows '^proto tcp src 192.0.2.66 dport 22 comment "fail2ban sshd"$' xc list
	assert_no_errors
}

# begin_with_bans N: N addresses banned in the jail `all`, and one of IPv6.
begin_with_bans() {
	xc load vrx >/dev/null
	xc add 203.0.113.0/24 comment mine >/dev/null
	server_start
	for i in $(seq "$1"); do
		attack all "192.0.2.$i"
	done
	attack all 2001:db8:66::1
	wait_for "bans" is_banned all "192.0.2.$1"
	wait_for "bans" is_banned all 2001:db8:66::1
	assert_equal $(($1 + 2)) "$(xc list | wc -l)" "rules"
}

# calls: what the jail `all` has asked the tool for.
calls() {
	grep -Ec '^(batch|lists)' "$STATE/commands" || :
}

# Bans stay over stop, restart and crash, without a process for any; what was banned before can be unbanned after.
test_bans_outlive_a_restart() {
	configure
	begin_with_bans 12
	server_stop
	assert_equal 14 "$(xc list | wc -l)" "rules after the stop"
	{ verdicts drop 192.0.2.12 22; verdicts drop 2001:db8:66::1 80; } | traffic || fail "not blocked after the stop"
	: >"$STATE/commands"
	server_start
	wait_for "restored bans" is_banned all 192.0.2.12
	wait_for "restored bans" is_banned all 2001:db8:66::1
	assert_equal 0 "$(calls)" "processes for restored bans"
	f2b client set all unbanip 192.0.2.12 >/dev/null
	f2b client set all unbanip 2001:db8:66::1 >/dev/null
	{ verdicts pass 192.0.2.12 22; verdicts pass 2001:db8:66::1 80; verdicts drop 192.0.2.11 22; } | traffic ||
		fail "an unban of a restored ban has no effect"
	server_kill
	assert_equal 11 "$(xc list | grep -Ec ' timeout (1h|59m[0-9]+s)')" "rules that end, after the crash"
	: >"$STATE/commands"
	server_start
	wait_for "restored bans" is_banned all 192.0.2.11
	assert_equal 0 "$(calls)" "processes after the crash"
	f2b client unban --all >/dev/null
	wait_for "no bans" is_not_listed 192.0.2.11
	assert_equal 'src 203.0.113.0/24 comment "mine"' "$(xc list)" "rules after unban --all"
	attack all 192.0.2.70
	wait_for "bans" is_banned all 192.0.2.70
	assert_no_errors
}

# A store without the list, as after an upgrade from an action that flushed it, gets all bans back by one process.
test_a_lost_list_is_restored() {
	configure
	begin_with_bans 12
	server_stop
	xc lists delete fail2ban-all >/dev/null
	: >"$STATE/commands"
	server_start
	wait_for "restored bans" is_banned all 192.0.2.12
	wait_for "restored bans" is_banned all 2001:db8:66::1
	assert_equal 14 "$(xc list | wc -l)" "rules"
	assert_equal 1 "$(calls)" "processes"
	assert_equal 13 "$(xc list | grep -Ec ' timeout (1h|59m[0-9]+s|5[0-9]m) ')" "rules that end"
	assert_no_errors
}

test_without_persist_a_stop_ends_the_bans() {
	configure 1h ', persist=no'
	begin_with_bans 12
	server_stop
	assert_equal 'src 203.0.113.0/24 comment "mine"' "$(xc list)" "rules after the stop"
	verdicts pass 192.0.2.12 22 | traffic >/dev/null || fail "blocked after the stop"
	: >"$STATE/commands"
	server_start
	wait_for "restored bans" is_banned all 192.0.2.12
	assert_equal 1 "$(calls)" "processes for the restored bans"
	server_kill
	server_start
	wait_for "restored bans" f2b client get all banip
	server_stop
	assert_equal 'src 203.0.113.0/24 comment "mine"' "$(xc list)" "rules after crash, start and stop"
	assert_no_errors
}

# A reload keeps the bans and the action. An action that leaves the jail takes its bans along.
test_reload() {
	configure
	begin_with_bans 3
	f2b client reload >/dev/null
	assert_equal 5 "$(xc list | wc -l)" "rules after the reload"
	attack all 192.0.2.70
	wait_for "a ban after the reload" is_banned all 192.0.2.70
	sed -i '/^.all.$/,$s/^banaction = .*/banaction = dummy/' "$STATE/etc/jail.local"
	f2b client reload >/dev/null
	wait_for "no bans" is_not_listed 192.0.2.70
	assert_equal 'src 203.0.113.0/24 comment "mine"' "$(xc list)" "rules without the action"
	assert_no_errors
}

# A /64 is banned as long as one of its addresses is.
test_neighbours_in_ipv6() {
	configure
	xc load vrx >/dev/null
	server_start
	attack all 2001:db8:66::1 2001:db8:66::2
	wait_for "bans" is_banned all 2001:db8:66::2
	assert_equal 1 "$(xc list | wc -l)" "rules"
	f2b client set all unbanip 2001:db8:66::1 >/dev/null
	verdicts drop 2001:db8:66::1 22 | traffic >/dev/null || fail "the neighbour is not blocked any more"
	f2b client set all unbanip 2001:db8:66::2 >/dev/null
	verdicts pass 2001:db8:66::2 22 | traffic >/dev/null || fail "blocked after both unbans"
	assert_no_errors
}

test_options() {
	configure 1h ', ipv6=128, list=bans'
	xc load vrx >/dev/null
	server_start
	attack all 2001:db8:66::1
	wait_for "the ban" has_listed bans 2001:db8:66::1
	{ verdicts drop 2001:db8:66::1 22; verdicts pass 2001:db8:66::2 22; } | traffic || fail "wrong verdicts"
	server_stop
	sed -i 's/list=bans/persist=maybe/' "$STATE/etc/jail.local"
	f2b server --logtarget "$STATE/f2b.log" start >"$STATE/out" 2>&1 || :
	grep -q 'persist=maybe: must be yes or no' "$STATE/f2b.log" "$STATE/out" || fail "a bad option is not refused"
}

# It is no failure if somebody else has added or deleted the rule.
test_bans_twice_and_unbans_of_nothing() {
	configure
	xc load vrx >/dev/null
	xc add 192.0.2.66 comment mine >/dev/null
	server_start
	attack all 192.0.2.66 192.0.2.67
	wait_for "bans" is_banned all 192.0.2.67
	wait_for "bans" is_banned all 192.0.2.66
	xc del 192.0.2.67 >/dev/null
	xc del 192.0.2.66 >/dev/null
	f2b client set all unbanip 192.0.2.67 >/dev/null
	f2b client set all unbanip 192.0.2.66 >/dev/null
	assert_prints '' xc list
	assert_no_errors
}

# A ban that ends, or a jail that stops, leaves what you, a feed or another jail blocks.
test_bans_leave_the_rules_of_others() {
	configure
	sed -i '/^.proxy.$/a banaction = %(banaction_allports)s' "$STATE/etc/jail.local"
	xc load vrx >/dev/null
	xc add 192.0.2.66 comment mine >/dev/null
	printf '192.0.2.67\n198.51.100.0/24\n' >"$STATE/feed"
	xc import "$STATE/feed" --list feed >/dev/null 2>&1
	server_start
	attack all 192.0.2.66 192.0.2.67 192.0.2.68 192.0.2.69
	attack proxy 192.0.2.68
	wait_for "bans" is_banned all 192.0.2.69
	wait_for "bans" is_banned proxy 192.0.2.68
	assert_shows 'fail2ban-all +4 ' xc lists
	assert_shows 'fail2ban-proxy +1 ' xc lists
	for address in 66 67 68 69; do
		f2b client set all unbanip "192.0.2.$address" >/dev/null
	done
	assert_verdict drop 192.0.2.66 192.0.2.67 192.0.2.68 198.51.100.1 pass 192.0.2.69
	attack all 192.0.2.67
	wait_for "the second ban" has_listed fail2ban-all 192.0.2.67
	f2b client unban --all >/dev/null
	assert_verdict drop 192.0.2.66 192.0.2.67 198.51.100.1 pass 192.0.2.68
	assert_equal 3 "$(xc list | wc -l)" "rules after unban --all"
	assert_no_errors
}

# Bans made while no filter runs take effect at load. Refused bans are in fail2ban's log.
test_no_filter_and_refused_bans() {
	configure
	server_start
	attack ssh 192.0.2.66
	wait_for "the ban" is_banned sshd 192.0.2.66
	assert_no_errors
	xc load vrx >/dev/null
	verdicts drop 192.0.2.66 22 | traffic >/dev/null || fail "not blocked after load"
	attack all 10.99.0.2
	wait_for "the refusal" grep -q 'would block' "$STATE/f2b.log"
	verdicts pass 10.99.0.2 22 | traffic >/dev/null || fail "this host is blocked"
}

test_why_nothing_can_be_stored_is_in_the_log() {
	configure
	server_start
	rm -rf "$STATE/store"
	: >"$STATE/store"
	attack ssh 192.0.2.66
	wait_for "the reason" grep -q 'Not a directory' "$STATE/f2b.log"
}

test_unknown_ports_are_errors() {
	configure
	sed -i 's/^port = http,https.*/port = http,no-such-service/' "$STATE/etc/jail.local"
	xc load vrx >/dev/null
	server_start
	attack proxy 192.0.2.66
	wait_for "the error" grep -q 'no port no-such-service/tcp' "$STATE/f2b.log"
	wait_for "the failure" grep -q 'Failed to execute ban' "$STATE/f2b.log"
}

run_tests "$0" "$@"
