#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Lists of prefixes: whatever lengths they have, a packet costs few probes, and every verdict is that of
# the kernel's LPM trie; also while prefixes inside each other come and go. SEED=N repeats the lists of a
# run, LISTS=DIR says where blocklists are.
# Takes minutes.
. tests/lib.sh
. tests/namespace/cidr.sh

PROBES_MAX=8
BLOCKS=${BLOCKS:-15}    # of changes
CHANGES=${CHANGES:-100} # in each
BLOCK_PACKETS=20000     # compared after each

# load_list LIST [OPTION...]: loads a new filter with the list.
load_list() {
	list=$1
	shift
	echo "SEED=$SEED"
	silence
	assert_status 0 xc load vrx "$@"
	assert_status 0 xc import --force "$list"
}

# try_list LIST [OPTION...]: every verdict is right, and few shapes are probed.
try_list() {
	load_list "$@"
	compare "$1"
	[ "$(compared 'shapes ipv4')" -le "$PROBES_MAX" ] || fail "$(compared 'shapes ipv4') shapes of IPv4"
	[ "$(compared 'most probes')" -le "$PROBES_MAX" ] || fail "$(compared 'most probes') probes of a packet"
	note "$(compared packets) packets, $(compared 'in a drop rule') in a drop rule," \
		"$(compared 'in a pass rule') in a pass rule, none differs;" \
		"$(compared 'shapes ipv4') + $(compared 'shapes ipv6') shapes," \
		"$(compared 'most probes') probes at most"
	[ "$(compared 'in a drop rule')" -gt 0 ] || fail "no packet met the list"
}

try_blocklist() {
	[ -r "$LISTS/$1" ] || skip "no $LISTS/$1; LISTS=DIR says where it is"
	try_list "$LISTS/$1"
}

test_firehol_level4() {
	try_blocklist firehol_level4.netset
}

test_country_us() {
	try_blocklist country_us.netset
}

test_spamhaus_drop() {
	try_blocklist spamhaus_drop.netset
}

test_all_lengths() {
	list_of_all_lengths >"$STATE/list"
	try_list "$STATE/list"
}

test_pass_rules() {
	list_with_pass_rules >"$STATE/list"
	try_list "$STATE/list"
	[ "$(compared 'in a pass rule')" -gt 0 ] || fail "no packet met a pass rule"
}

test_ipv6() {
	list_of_ipv6 >"$STATE/list"
	try_list "$STATE/list"
	[ "$(compared 'shapes ipv6')" -le "$PROBES_MAX" ] || fail "$(compared 'shapes ipv6') shapes of IPv6"
}

# There are more prefix lengths than 8 probes can serve. With hints a packet still needs few look-ups.
test_all_ipv6_lengths() {
	list_of_all_ipv6_lengths >"$STATE/list"
	try_list "$STATE/list"
}

# The whole /16 is added to the list, and deleted again.
test_one_16() {
	list_in_one_16 >"$STATE/list"
	try_list "$STATE/list"
	cp "$STATE/list" "$STATE/more"
	echo 10.77.0.0/16 >>"$STATE/more"
	assert_status 0 xc add 10.77.0.0/16
	compare "$STATE/more"
	assert_status 0 xc del 10.77.0.0/16
	compare "$STATE/list"
	assert_status 0 xc check
}

# For half of all addresses the hints alone decide, unless a rule ends, a pass rule lies inside or rules are counted:
# then packets look up the rule.
test_whole_networks_need_no_probe() {
	xc load vrx --no-counters >/dev/null
	while read -r probes rule; do
		case_begin "$rule"
		# shellcheck disable=SC2086 # words
		assert_status 0 xc add $rule
		assert_shows "mean probes ipv4: +$probes\$" xc status --verbose
	done <<-'END'
		0.5 128.0.0.0/1 timeout 1h
		0 128.0.0.0/1
		0 128.0.0.0/8
		0 192.0.0.0/2 dport 53
		0.5 128.0.0.0/1 dport 53 action pass
	END
	assert_whole_networks drop
	echo 'pass passed proto udp src 128.1.2.3 dst 198.51.100.7 sport 1 dport 53' | traffic || fail "not passed"
	assert_status 0 xc del 128.0.0.0/1 dport 53 action pass
	for command in check 'resize 50000' check; do
		case_begin "$command"
		# shellcheck disable=SC2086
		assert_status 0 xc $command
		assert_whole_networks drop
		assert_shows 'mean probes ipv4: +0$' xc status --verbose
	done
	assert_status 0 xc del 128.0.0.0/8
	assert_whole_networks drop
	assert_status 0 xc del 128.0.0.0/1
	assert_whole_networks pass
}

test_whole_networks_are_counted() {
	xc load vrx >/dev/null
	printf '%s\n' 128.0.0.0/1 128.0.0.0/8 '192.0.0.0/2 dport 53' | xc import --force - >/dev/null
	assert_whole_networks drop
	assert_whole_networks drop
	assert_equal 4 "$(xc list --counters | awk '{ sum += $(NF - 2) } END { print sum }')" "packets of all rules"
}

# Of two addresses in 128/1, one of them in 128/8.
assert_whole_networks() {
	printf '%s\n' "$1 in-8 proto udp src 128.1.2.3 dst 198.51.100.7 sport 1 dport 2" \
		"$1 in-1 proto udp src 129.1.2.3 dst 198.51.100.7 sport 1 dport 2" | traffic || fail "wrong verdicts"
}

# In a compact table a fingerprint decides. No listed address is missed.
test_compact_table() {
	list_of_all_lengths >"$STATE/list"
	load_list "$STATE/list" --compact --fingerprint 32
	compare "$STATE/list" "$PACKETS" --allow-false-positives
	note "$(compared 'false positives') false positives of $(compared packets), none missed"
	# 8 probes of 8 slots each, all of them full, and chance.
	[ "$(compared 'false positives')" -le 2 ] || fail "$(compared 'false positives') false positives"
}

# ---- prefixes that come and go ----

# make_changes COUNT: writes random changes of the rules in $STATE/expected to $STATE/changes, as lines for `batch`, and
# the rules after them to $STATE/expected. Rules lie in a few networks, so that most overlap; some pass, some name more
# than a source, some end in a day.
make_changes() {
	SEED=$((SEED + 1))
	cidr_awk '
	function rule(    bits, text) {
		bits = 8 + below(25)
		if (rand() < 0.2)
			text = "src " text6("2001:db8:" below(3) ":" below(2), 24 + below(105))
		else
			text = "src " text4((10 + below(2)) * 2 ^ 24 + 257 * 65536 * below(2) + below(256), bits)
		if (rand() < 0.1 && text !~ /:/)
			text = text " dst " text4((192 * 256 + below(2)) * 65536, 16 + below(9))
		if (rand() < 0.1)
			text = text " dport " 53 + below(2)
		return text (rand() < 0.15 ? " action pass" : "")
	}
	function drop(at,    gone) {
		gone = there[at]
		print "del " gone >changes
		there[at] = there[--rules]
		number[there[at]] = at
		delete number[gone]
	}
	{ number[$0] = rules; there[rules++] = $0 }
	END {
		most = below(2) ? 400 : 30 # rules, towards which they go
		for (i = 0; i < count; i++) {
			if (rules && rand() < (rules > most ? 0.7 : 0.3)) {
				drop(below(rules))
				continue
			}
			text = rule()
			print "add " text (rand() < 0.2 ? " timeout 1d" : "") >changes
			if (!(text in number)) {
				number[text] = rules
				there[rules++] = text
			}
		}
		for (i = 0; i < rules; i++)
			print there[i]
	}' count="$1" changes="$STATE/changes" "$STATE/expected" >"$STATE/next"
	mv "$STATE/next" "$STATE/expected"
}

# apply_changes WAY: makes the changes one by one, by a replacing list, or by additions and deletions.
apply_changes() {
	case $1 in
	batch) run xc batch --force "$STATE/changes" ;;
	replace) run xc import --force --replace "$STATE/expected" ;;
	whole) run xc import --force --replace --confirm 1h "$STATE/expected" && xc confirm >/dev/null ;;
	esac
	[ "$STATUS" -le 1 ] && return
	show_run
	fail "status $STATUS"
}

assert_equal_to_list() {
	compare "$STATE/expected" "$BLOCK_PACKETS"
	assert_status 0 xc check
	assert_equal "$(wc -l <"$STATE/expected")" "$(xc list | wc -l)" "rules"
}

used_slots() {
	xc status --verbose | awk '/used slots:/ { print $NF }'
}

test_changes_of_nested_prefixes() {
	echo "SEED=$SEED"
	silence
	assert_status 0 xc load vrx
	: >"$STATE/expected"
	for block in $(seq "$BLOCKS"); do
		case_begin "block $block, SEED=$SEED"
		make_changes "$CHANGES"
		case $((block % 5)) in
		0) apply_changes replace ;;
		*) apply_changes batch ;;
		esac
		assert_equal_to_list
	done
	sed 's/^/del /' "$STATE/expected" >"$STATE/changes"
	: >"$STATE/expected"
	apply_changes batch
	assert_equal_to_list
	assert_equal 0 "$(used_slots)" "slots in use without rules"
	note "$((BLOCKS * CHANGES)) changes, compared after each $CHANGES"
}

# In whatever order a chain of prefixes is deleted, the remaining ones drop.
test_deleting_a_chain() {
	echo "SEED=$SEED"
	silence
	assert_status 0 xc load vrx
	list_in_one_16 | sort -u | cidr_awk '{ print rand(), $0 }' | sort | cut -d ' ' -f 2- >"$STATE/order"
	assert_status 0 xc import --force "$STATE/order"
	while [ -s "$STATE/order" ]; do
		head -n 20 "$STATE/order" | sed 's/^/del /' >"$STATE/changes"
		sed -i 1,20d "$STATE/order"
		cp "$STATE/order" "$STATE/expected"
		apply_changes batch
		assert_equal 0 "$STATUS" "status of deletions"
		assert_equal_to_list
	done
	assert_equal 0 "$(used_slots)" "slots in use without rules"
}

is_as_listed() {
	in_rx "$HELPERS/lpm_check" --packets "$BLOCK_PACKETS" --seed "$SEED" "$1" >"$STATE/out" 2>"$STATE/err"
}

# Some prefixes end soon, inside and around others that stay or end later. The kernel ends them without a command.
test_prefixes_that_end() {
	echo "SEED=$SEED"
	silence
	assert_status 0 xc load vrx
	list_in_one_16 | sort -u >"$STATE/all"
	awk 'NR % 3' "$STATE/all" >"$STATE/stays"
	awk 'NR % 2 { $0 = $0 " timeout 1d" } 1' "$STATE/stays" >"$STATE/list"
	assert_status 0 xc import --force "$STATE/list"
	awk 'NR % 3 == 0 { print $0 " timeout 1s" }' "$STATE/all" >"$STATE/list"
	assert_status 0 xc import --force "$STATE/list"
	wait_for "those that end to have ended" is_as_listed "$STATE/stays"
	assert_status 0 xc expire
	compare "$STATE/stays" "$BLOCK_PACKETS"
	assert_status 0 xc check
	assert_equal "$(wc -l <"$STATE/stays")" "$(xc list | wc -l)" "rules"
	sed 's/^/del /' "$STATE/stays" >"$STATE/changes"
	apply_changes batch
	assert_equal 0 "$STATUS" "status of deletions"
	assert_equal 0 "$(used_slots)" "slots in use without rules"
}

run_tests "$0" "$@"
