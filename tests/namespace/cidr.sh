# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced after tests/lib.sh: lists of prefixes made up to be difficult, and the comparison of the running
# filter with what the kernel's LPM tries and sorted intervals make of a list. SEED=N repeats the lists.
# shellcheck shell=sh disable=SC2034 # the variables are for those who source this

PACKETS=${PACKETS:-200000} # random ones for each comparison of a list

# In awk: random prefixes as text. An address of IPv4 is a number, one of IPv6 an array of 8.
CIDR_AWK='
function below(bound) { return int(rand() * bound) }
function number4() { return below(65536) * 65536 + below(65536) }
function text4(address, bits) {
	address -= address % 2 ^ (32 - bits)
	return sprintf("%d.%d.%d.%d/%d", address / 2 ^ 24, address / 65536 % 256, address / 256 % 256,
		address % 256, bits)
}
# A prefix somewhere inside one that is given as a number and its length.
function inside4(net, net_bits, bits) { return text4(net + below(2 ^ (32 - net_bits)), bits) }
# Of 16-bit words, of which the first ones are given.
function text6(first, bits,    given, words, i, word, left, text) {
	words = split(first, given, ":")
	for (i = 1; i <= 8; i++) {
		word = i <= words ? hex(given[i]) : below(65536)
		left = bits - 16 * (i - 1)
		left = left < 0 ? 0 : left > 16 ? 16 : left
		word -= word % 2 ^ (16 - left)
		text = text (i > 1 ? ":" : "") sprintf("%x", word)
	}
	return text "/" bits
}
function hex(text,    i, value) {
	for (i = 1; i <= length(text); i++)
		value = 16 * value + index("0123456789abcdef", substr(text, i, 1)) - 1
	return value
}
BEGIN { srand(seed) }'

# cidr_awk PROGRAM [OPERAND...]: runs it behind the functions.
cidr_awk() {
	cidr_awk_program=$1
	shift
	awk -v seed="$SEED" "$CIDR_AWK
$cidr_awk_program" "$@"
}

# Every length from 1 to 32. Short prefixes are nested in the upper half, from which others would learn
# nothing; of the others some are nested, some next to each other, some overlap by being there twice.
list_of_all_lengths() {
	cidr_awk 'BEGIN {
		for (bits = 1; bits < 8; bits++)
			print text4(2 ^ 32 - 2 ^ (32 - bits), bits)
		for (bits = 8; bits <= 32; bits++) {
			for (i = 0; i < 30; i++)
				print text4(below(2 ^ 31), bits)
			for (i = 0; i < 10; i++) {
				net = below(2 ^ 30)
				print text4(net, bits)
				print text4(net + 2 ^ (32 - bits), bits)
				print inside4(net - net % 2 ^ (32 - bits), bits, bits + below(33 - bits))
			}
		}
	}'
}

# Every length from 17 to 32 inside one /16, where hints tell nothing apart. One chain of them, each in the
# one before, takes half of it.
list_in_one_16() {
	cidr_awk 'BEGIN {
		net = (10 * 256 + 77) * 65536
		for (bits = 17; bits <= 32; bits++)
			print text4(net + 4660, bits)
		for (bits = 20; bits <= 32; bits++)
			for (i = 0; i < 60 && i < 2 ^ (bits - 20); i++)
				print inside4(net, 16, bits)
	}'
}

# Rules that pass, of any length, over and under rules that drop.
list_with_pass_rules() {
	cidr_awk 'BEGIN {
		for (i = 0; i < 400; i++) {
			bits = 8 + below(25)
			net = number4()
			print text4(net, bits)
			if (i % 3 == 0)
				print inside4(net - net % 2 ^ (32 - bits), bits, bits + below(33 - bits)) " action pass"
			if (i % 3 == 1 && bits > 9)
				print text4(net, 9 + below(bits - 8)) " action pass"
		}
	}'
}

# Lengths as registries and providers hand them out.
list_of_ipv6() {
	cidr_awk 'BEGIN {
		count = split("20 24 28 29 32 36 40 44 48 56 60 64 128", all, " ")
		for (i = 0; i < 3000; i++) {
			net = sprintf("2%03x:%x", below(4096), below(65536))
			print text6(net, all[1 + below(count)])
			if (i % 5 == 0)
				print text6(net, 128) (i % 2 ? " action pass" : "")
		}
	}'
}

# Every length from 16 to 128.
list_of_all_ipv6_lengths() {
	cidr_awk 'BEGIN {
		for (bits = 16; bits <= 128; bits++)
			for (i = 0; i < 2; i++) {
				net = sprintf("2%03x:%x", below(4096), below(65536))
				print text6(net, bits)
			}
	}'
}

# compare LIST [PACKETS] [OPTION...]: the test fails where the filter says otherwise than the references.
compare() {
	compare_list=$1
	compare_packets=${2:-$PACKETS}
	shift
	[ $# -eq 0 ] || shift
	run in_rx "$HELPERS/lpm_check" --packets "$compare_packets" --seed "$SEED" "$@" "$compare_list"
	[ "$STATUS" -eq 0 ] && return
	show_run
	fail "the filter differs from the references (status $STATUS)"
}

# compared NAME: a figure of the last comparison.
compared() {
	sed -n "s/^$1: *//p" "$STATE/out"
}
