#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# How long functions and files are: sh tests/checks/lengths.sh [DIR...]. This only reports; no length is an error.
set -eu
cd "$(dirname "$0")/../.." || exit 1
[ $# -gt 0 ] || set -- user bpf include
SHOWN=${SHOWN:-20}
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT

# Rows of "function LINES FILE:LINE NAME", "file LINES FILE" and "static REFERENCES". In code that clang-format has laid
# out, a { or a } alone in the first column is that of a function. A word in a comment is no reference.
find "$@" -name '*.[ch]' -exec awk '
	FNR == 1 { file_done(); head = "" }
	{ lines = FNR }
	/^\/\*/ { in_comment = 1 }
	!in_comment {
		code = $0
		gsub(/\/\*.*\*\/|\/\/.*|"([^"\\]|\\.)*"/, "", code)
		while (match(code, /[A-Za-z_][A-Za-z_0-9]*/)) {
			seen[substr(code, RSTART, RLENGTH)]++
			code = substr(code, RSTART + RLENGTH)
		}
	}
	/\*\/$/ { in_comment = 0; next }
	/^[A-Za-z_].*;$/ { head = ""; next }
	/^[A-Za-z_]/ { head = $0; at = FNR; next }
	/^\t/ && head != "" && !in_body { head = head $0 }
	/^{$/ { in_body = 1 }
	/^}$/ && in_body {
		in_body = 0
		name = name_of(head)
		print "function", FNR - at + 1, FILENAME ":" at, name
		if (head ~ /^static / && FILENAME ~ /[.]c$/)
			statics[name]
		head = ""
	}
	# Of TEST(name) and the like: what is in the parentheses.
	function name_of(head,    name) {
		gsub(/__attribute__\(\([^)]*\)\)|SEC\([^)]*\)/, "", head)
		name = head
		sub(/\(.*/, "", name)
		sub(/.*[ *]/, "", name)
		if (name ~ /^[A-Z_]+$/) {
			sub(/^[^(]*\(/, "", head)
			sub(/[,)].*/, "", head)
			return head
		}
		return name
	}
	# Each mention of a function but its definition is a reference.
	function file_done(    name) {
		if (file != "")
			print "file", lines, file
		for (name in statics)
			print "static", seen[name] - 1
		file = FILENAME
		in_comment = in_body = 0
		delete seen
		delete statics
	}
	END { file_done() }' {} + >"$rows"

# summary KIND
summary() {
	awk -v kind="$1" '$1 == kind { print $2 }' "$rows" | sort -n |
		awk -v kind="$1" '{ of[NR] = $1 }
			END {
				printf "%ss: %d, median %d lines, 90 %% up to %d, longest %d\n", kind, NR, of[int((NR + 1) / 2)],
					of[int(NR * 0.9 + 0.5)], of[NR]
			}'
	awk -v kind="$1" '$1 == kind { printf "%6d  %s\n", $2, $4 ? $3 " " $4 : $3 }' "$rows" | sort -rn | head -n "$SHOWN"
}

summary function
summary file
awk '$1 == "static" { all++; one += $2 == 1 }
	END { printf "static functions with one caller: %d of %d, %d %%\n", one, all, all ? 100 * one / all : 0 }' "$rows"
