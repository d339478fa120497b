#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Writes the seeds of every fuzz target into DIR/TARGET: sh tests/fuzz/seeds.sh DIR
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../.."
dir=$1
rm -rf "$dir"
for target in tests/fuzz/fuzz_*.c; do
	target=$(basename "$target" .c)
	mkdir -p "$dir/${target#fuzz_}"
done

build/tests/fuzz/seeds "$dir"
rm -rf "$dir"/state-*

# byte NUMBER: as printf writes it.
byte() {
	# shellcheck disable=SC2059
	printf "\\$(printf %03o "$1")"
}

# piece TEXT: a piece of the input of batch, a line of fewer than 254 bytes.
piece() {
	byte "$((${#1} + 1))"
	printf '%s\n' "$1"
}

number=0
while read -r line; do
	number=$((number + 1))
	printf '%s' "$line" >"$dir/rule/$number"
	for verb in add del test; do
		piece "$verb $line"
	done >"$dir/batch/$number"
done <tests/fuzz/rules.txt
sed 's/^/add /; p; s/^add/test/; p; s/^test/del/' tests/fuzz/rules.txt >"$dir/change/each"
{ sed 's/^/add /' tests/fuzz/rules.txt; sed 's/^/test /' tests/fuzz/rules.txt; } | head -n 90 >"$dir/change/all"
printf '%s\n' 'add 192.0.2.0/24' 'add 192.0.2.1 action pass' 'test 192.0.2.1' 'test 192.0.2.2 proto tcp dport 80' \
	'add 192.0.2.0/24 timeout 9' 'del 192.0.2.0/24' 'add 192.0.2.0/24 timeout 9' 'add 192.0.2.0/24' >"$dir/change/again"
{ piece "# a comment"; piece ""; byte 254; piece "drop it"; printf '\003add'; } >"$dir/batch/pieces"
{ byte 255; printf x; byte 255; byte 255; piece ""; piece "add 192.0.2.1"; } >"$dir/batch/long"

# What gobgp has printed: each line, all of them, and each announced, withdrawn and announced with another action.
number=0
while read -r line; do
	number=$((number + 1))
	printf '%s\n' "$line" >"$dir/flowspec/$number"
	printf '%s\n' "$line" | sed 'p; s/"stale":false/&,"withdrawal":true/p; s/"rate":0/"rate":5/' >"$dir/flowspec/$number.changes"
done <tests/fuzz/flowspec.jsonl
cp tests/fuzz/flowspec.jsonl "$dir/flowspec/all"
cp tests/fuzz/flowspec.text "$dir/flowspec/text"
tr '\n' ' ' <tests/fuzz/flowspec.jsonl | sed 's/\[\] //; s/\] \[/,/g' >"$dir/flowspec/snapshot"

# bulk TEXT...: strings as a broker sends them.
bulk() {
	for text; do
		printf '$%d\r\n%s\r\n' "${#text}" "$text"
	done
}

number=0
while read -r line; do
	number=$((number + 1))
	bulk "+ 0 $line" "- $line" "+ 1800000060000 $line" "* $line" >"$dir/fleet/line.$number"
done <tests/fuzz/rules.txt
{ printf '*2\r\n'; bulk 1795403549366-1; printf '*2\r\n'; bulk rules "+ 0 src 192.0.2.1
- src 192.0.2.2 comment \"a b\""; } >"$dir/fleet/entry"
{ printf '*2\r\n'; bulk 1795403549366-0; printf '*2\r\n'; bulk base 1795403549300-77; } >"$dir/fleet/epoch"
{ printf '*4\r\n'; bulk 1795403549366 7 100 2; printf '*-1\r\n$-1\r\n:12\r\n-ERR no\r\n+OK\r\n'; } >"$dir/fleet/head"
printf '*1000000000\r\n$1000000000\r\nx' >"$dir/fleet/huge"

# Told from the content, and by name; with a default timeout.
format=0
for name in unknown text ipset nft spamhaus csv; do
	for list in tests/lists/*.list; do
		base=$(basename "$list" .list)
		case $base in
		"$name".*) { printf %s "$format"; cat "$list"; } >"$dir/list/$base.$format" ;;
		esac
		[ "$format" -ne 0 ] || { printf 8; cat "$list"; } >"$dir/list/$base.8"
	done
	format=$((format + 1))
done
{ printf 1; grep -v '^1h' tests/fuzz/rules.txt; echo '192.0.2.1-192.0.2.9 sport 80-90'; } >"$dir/list/rules.1"

# Deep, which a list of nft never is.
{
	printf '3{"nftables": ['
	awk 'BEGIN { for (i = 0; i < 20000; i++) printf "{\"add\": "; for (i = 0; i < 20000; i++) printf "}" }'
	printf ']}\n'
} >"$dir/list/nested"
