#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the running kernel makes of the programs, for each compiler, kind of table and program, and whether
# is within the budget below: sh tests/checks/verify.sh [CLANG[-OBJECT]|FILE...]; without, what there is of CLANGS, for
# all OBJECTS. A word with a slash is a file, compiled already, or FILE.figures, of its programs, as the helper `verify`
# writes them. Status: 0 within, 1 not, 2 nothing to judge.
set -eu
cd "$(dirname "$0")/../.."

# The most that one program may have. The kernel allows 1,000,000 processed and 512 bytes of stack. Older kernels process
# up to three times as many, so this leaves half of the million there, too.
BUDGET_COMPILED=${BUDGET_COMPILED:-7200}     # instructions in the object, with the functions it calls
BUDGET_XLATED=${BUDGET_XLATED:-6000}         # instructions that run: without what a kind of table has not
BUDGET_PROCESSED=${BUDGET_PROCESSED:-130000} # instructions that the verifier looked at
BUDGET_STACK=${BUDGET_STACK:-448}            # bytes, with the deepest function it calls
# The same for programs at tc, which exchange addresses, and for the one that bench measures, which has the parser twice.
BUDGET_TC_COMPILED=${BUDGET_TC_COMPILED:-8000}
BUDGET_TC_XLATED=${BUDGET_TC_XLATED:-6700}
BUDGET_TC_PROCESSED=${BUDGET_TC_PROCESSED:-130000}

OBJECTS=${OBJECTS-tc conntrack tc-conntrack bench}
CLANGS='clang-14 clang-16 clang-19' # where none of these is, clang
BUILD=${BUILD:-build}
HELPERS=${HELPERS:-$BUILD/tests/helpers}

# Sets `present`; names those that are absent with the package they are in.
find_clangs() {
	present=
	for clang in $CLANGS; do
		if command -v "$clang" >/dev/null; then
			present="$present $clang"
		else
			echo "no $clang here; on Debian: apt-get install $clang"
		fi
	done
	present=${present:- clang}
}

# measure CLANG|OBJECT: adds a line of figures for each table and program to $scratch/all.
measure() {
	object=$1
	case $1 in
	*.figures)
		sed "s/^/$(basename "$1" .figures) /" "$1" >>"$scratch/all"
		return
		;;
	*/*) ;;
	*)
		object=$BUILD/verify/$1.bpf.o
		make -s --no-print-directory "$object"
		;;
	esac
	# Status 1: a program was refused, which its line tells.
	"$HELPERS/verify" "$object" >"$scratch/one" || [ $? -eq 1 ] || exit 2
	sed "s/^/$(basename "$object" .bpf.o) /" "$scratch/one" >>"$scratch/all"
	objdump=$(command -v llvm-objdump llvm-objdump-14 llvm-objdump-16 llvm-objdump-19 | head -n 1)
	[ -z "$objdump" ] || python3 tests/helpers/older_kernels.py "$objdump" "$object" || for_older=1
}

# Prints the table, then what is not within the budget.
judge() {
	awk -v compiled="$BUDGET_COMPILED" -v xlated="$BUDGET_XLATED" -v processed="$BUDGET_PROCESSED" \
		-v tc_compiled="$BUDGET_TC_COMPILED" -v tc_xlated="$BUDGET_TC_XLATED" -v tc_processed="$BUDGET_TC_PROCESSED" \
		-v stack="$BUDGET_STACK" '
	function depth(frames, n, frame, i, deepest) {
		n = split(frames, frame, "+")
		for (i = 2; i <= n; i++)
			if (frame[i] > deepest + 0)
				deepest = frame[i]
		return frame[1] + deepest
	}
	function words_from(first, i, text) {
		for (i = first; i <= NF; i++)
			text = text " " $i
		return text
	}
	function complain(text) { complaint[++complaints] = $1 ", " $2 ", " $3 ": " text }
	function check(what, figure, budget) {
		if (figure > budget + 0)
			complain(what " " figure ", budget " budget)
	}
	BEGIN {
		row = "%-21s %-15s %-17s %8s %7s %6s %9s %6s %6s %13s %5s\n"
		printf row, "compiler", "table", "program", "compiled", "xlated", "JITed", "processed", \
			"states", "stack", "frames", "ms"
		printf row, "budget", "", "XDP", compiled, xlated, "", processed, "", stack, "", ""
		printf row, "budget", "", "tc, bench", tc_compiled, tc_xlated, "", tc_processed, "", stack, "", ""
	}
	{
		printf row, $1, $2, $3, $4, $5, $6, $7, $8, depth($9), $9, sprintf("%.0f", $10 / 1000)
		is_tc = $3 ~ /_(sent|ips?)$|^bench_/
		check("compiled", $4, is_tc ? tc_compiled : compiled)
		check("xlated", $5, is_tc ? tc_xlated : xlated)
		check("processed", $7, is_tc ? tc_processed : processed)
		check("stack", depth($9), stack)
		if ($11 != "ok")
			complain("refused:" words_from(11))
	}
	END {
		fflush()
		for (i = 1; i <= complaints; i++)
			print complaint[i] >"/dev/stderr"
		exit complaints > 0
	}' "$1"
}

[ "$(id -u)" -eq 0 ] || { echo "verify needs root, for BPF" >&2; exit 2; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for_older=
if [ $# -eq 0 ]; then
	find_clangs
	# shellcheck disable=SC2046,SC2086 # one word a compiler
	set -- $present $(for object in $OBJECTS; do printf " %s-$object" $present; done)
fi
for compiled_by; do
	case $compiled_by in
	*-conntrack)
		if ! grep -q ' bpf_xdp_ct_lookup' /proc/kallsyms; then
			echo "not $compiled_by: this kernel has no connection tracking"
			continue
		fi
		;;
	esac
	measure "$compiled_by"
done
echo "Linux $(uname -r)"
judge "$scratch/all"
[ -z "$for_older" ]
