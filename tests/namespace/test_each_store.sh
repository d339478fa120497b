#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What packets see while a change is made. Before each store of the tool into the filter's memory, and around each call of the
# kernel, the program is asked about a few flows: each flow gets the verdict of the old rules until it gets that of the new.
. tests/lib.sh
. tests/fault/fault.sh

flows_begin() {
	printf 'set --\n' >"$STATE/flows"
}

# flow SOURCE: one more flow that is asked for.
# shellcheck disable=SC2016 # of the shell that asks
flow() {
	printf 'set -- "$@" "proto udp src %s dst 10.99.0.2 sport 9 dport 9"\n' "$1" >>"$STATE/flows"
}

# once COMMAND...: the command, with the flows asked for at each of its stores. No verdict changes twice.
once() {
	{
		printf '#!/bin/sh\n'
		cat "$STATE/flows"
		printf 'exec %s vrx "$@" >>%s\n' "$HELPERS/verdicts" "$STATE/seen"
	} >"$STATE/ask"
	chmod +x "$STATE/ask"
	: >"$STATE/seen"
	assert_status 0 faulty FAULT_KINDS=snk FAULT_AT=1 FAULT_LASTS=1 "FAULT_RUN=$STATE/ask" "$@"
	in_rx "$STATE/ask"
	uniq "$STATE/seen" >"$STATE/verdicts"
	awk 'NR > 1 { for (i = 1; i <= length($0); i++) if (substr($0, i, 1) != substr(last, i, 1) && ++changes[i] > 1) wrong = 1 }
		{ last = $0 } END { exit wrong }' "$STATE/verdicts" ||
		fail "$*: a verdict changes more than once: $(xargs <"$STATE/verdicts")"
}

# rules LINE...: the lines of a batch that is all or nothing.
rules() {
	printf '%s\n' "$@" >"$STATE/lines"
	assert_status 0 xc batch --strict --force "$STATE/lines"
}

rules_once() {
	printf '%s\n' "$@" >"$STATE/lines"
	once batch --strict --force "$STATE/lines"
}

ends() {
	assert_equal "$1" "$(sed -n 1p "$STATE/verdicts") $(sed -n '$p' "$STATE/verdicts")" "first and last verdicts"
}

test_rules_that_change_their_kind() {
	xc load vrx >/dev/null
	rules 'add 10.77.0.0/24' 'add 10.78.0.0/25' 'add 10.78.0.128/25' 'add 10.79.0.1' 'add 10.80.0.1 proto udp'
	flows_begin
	flow 10.77.0.1
	flow 10.78.0.200
	flow 10.79.0.1
	flow 10.80.0.1
	rules_once 'del 10.77.0.0/24' 'add 10.77.0.0/25' 'add 10.77.0.128/25' 'del 10.78.0.0/25' 'del 10.78.0.128/25' \
		'add 10.78.0.0/24' 'del 10.79.0.1' 'add 10.79.0.1 proto udp dport 9' 'del 10.80.0.1 proto udp' \
		'add 10.80.0.1 proto udp rate 1/s' 'add 10.80.0.0/16'
	ends 'DDDD DDDD'
}

test_pass_rules_that_go_and_come() {
	xc load vrx >/dev/null
	rules 'add 10.77.0.0/24' 'add 10.77.0.1 action pass' 'add 10.78.0.0/16' 'add 10.78.1.1 action pass' 'add 10.79.0.1'
	flows_begin
	for source in 10.77.0.1 10.77.0.2 10.78.1.1 10.79.0.1 10.80.0.1; do
		flow "$source"
	done
	rules_once 'del 10.77.0.1 action pass' 'del 10.77.0.0/24' 'del 10.78.1.1 action pass' \
		'add 10.78.1.0/24 action pass' 'add proto udp action pass src 10.79.0.0/16' 'add 10.0.0.0/8' 'add 10.80.0.1 action pass'
	ends 'PDPDP DDPPP'
}

# An answer passes before, during and after: a shortcut is not for it.
test_new_only() {
	xc load vrx >/dev/null
	rules 'add 10.1.0.0/16' 'add 10.2.0.1'
	flows_begin
	printf 'set -- "$@" "proto tcp src 172.20.1.1 dst 10.99.0.2 sport 9 dport 9 flags 16"\n' >>"$STATE/flows"
	flow 172.20.1.1
	rules_once 'add 172.16.0.0/12 state new'
	ends 'PP PD'
}

test_restore_with_a_policy() {
	xc load vrx >/dev/null
	xc backup "$STATE/empty" >/dev/null
	flows_begin
	flow 10.77.0.1
	flow 10.78.0.1
	rules 'add 10.77.0.1 action pass'
	xc policy no-rule drop --force >/dev/null
	xc backup "$STATE/closed" >/dev/null
	once restore "$STATE/empty" --force
	ends 'PD PP'
	once restore "$STATE/closed" --force
	ends 'PP PD'
	xc restore "$STATE/empty" --force
	rules 'add 10.78.0.1'
	once restore "$STATE/closed" --force
	ends 'PD PD'
	xc policy no-rule pass
	rules 'del 10.77.0.1 action pass' 'add 10.78.0.1'
	xc backup "$STATE/open" >/dev/null
	xc restore "$STATE/closed" --force
	once restore "$STATE/open" --force
	ends 'PD PD'
}

test_monitor_only_and_a_restore() {
	xc load vrx >/dev/null
	xc monitor-only on >/dev/null
	xc add 10.77.0.1 >/dev/null 2>&1
	xc backup "$STATE/monitor" >/dev/null
	xc del 10.77.0.1 >/dev/null
	xc monitor-only off >/dev/null
	xc add 10.78.0.1 >/dev/null 2>&1
	xc backup "$STATE/real" >/dev/null
	flows_begin
	flow 10.77.0.1
	flow 10.78.0.1
	once restore "$STATE/monitor" --force
	ends 'PD PP'
	once restore "$STATE/real" --force
	ends 'PP PD'
}

# A drop rule that has ended comes back while the rule goes that had the same packets meanwhile.
test_a_rule_that_had_ended() {
	xc load vrx >/dev/null
	rules 'add 10.77.0.1 timeout 1s' 'add 10.77.0.0/24' 'add 10.78.0.0/24'
	flows_begin
	flow 10.77.0.1
	wait_for "the end of a rule" ended
	rules_once 'del 10.77.0.0/24' 'add 10.77.0.1 timeout 1h'
	ends 'D D'
}

ended() {
	! xc list 10.77.0.1/32 | grep -q 'src 10.77.0.1 '
}

# Killed at each of its last steps: neither what is left nor the repair by the next command shows a mixture.
test_repair() {
	xc load vrx >/dev/null
	flows_begin
	flow 10.77.0.1
	flow 10.78.0.1
	set -- 'add 10.77.0.1' 'add 10.78.0.0/16' 'add 10.78.0.1 action pass' 'del 10.79.0.1' 'del 10.77.0.1 proto udp dport 9'
	printf '%s\n' "$@" >"$STATE/old"
	printf '%s\n' "$@" | sed 's/^del/ADD/; s/^add/del/; s/^ADD/add/' >"$STATE/new"
	xc batch "$STATE/old" >/dev/null 2>&1 || :
	steps=$(stores 0 batch --strict "$STATE/new")
	for back in $(seq 0 2 32); do
		xc batch "$STATE/old" >/dev/null 2>&1
		case_begin "killed $back stores before the end"
		run faulty FAULT_KINDS=s "FAULT_AT=$((steps - back))" batch --strict "$STATE/new"
		once expire
		assert_equal DP "$(xargs <"$STATE/verdicts")" "verdicts"
	done
}

# A signal finds the rule stored and in force, or neither.
test_a_signal_during_a_change() {
	xc load vrx >/dev/null
	flows_begin
	flow 10.77.0.1
	once add 10.99.9.9
	stores 0 add 10.77.0.1 >/dev/null
	steps=$(awk '$1 ~ /[sd]/ { steps += $2 } END { print steps }' "$STATE/count")
	# shellcheck disable=SC2016 # of the shell that runs it
	export FAULT_RUN='kill -TERM $PPID'
	for at in $(seq "$steps"); do
		case_begin "step $at of $steps"
		xc del 10.77.0.1 >/dev/null
		run faulty FAULT_KINDS=sd "FAULT_AT=$at" add 10.77.0.1
		verdict=$(in_rx "$STATE/ask" && tail -n 1 "$STATE/seen")
		case $verdict:$(xc list | grep -c 10.77) in
		D:1 | P:0) ;;
		*) fail "status $STATUS, verdict $verdict, stored: $(xc list | xargs)" ;;
		esac
	done
}

run_tests "$0" "$@"
