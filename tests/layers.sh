#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Says which files of user/ include a header of a layer that is not below theirs, by user/layers:
# sh tests/layers.sh [DIR], for a tree at DIR. Exit status 1 where there are any.
set -u
cd "${1:-$(dirname "$0")/..}/user" || exit 2

grep -Ho '^#include "[a-z]*/[^"]*"' ./*.c ./*/*.[ch] | sed 's|^\./||; s|:#include "| |; s|"$||' |
	awk '
	NR == FNR { # user/layers
		gsub(/#.*|[*]/, "")
		for (i = 1; i <= NF; i++)
			layer[$i] = FNR
		next
	}
	{
		split($1, of, "/")
		split($2, from, "/")
		if ($1 == "main.c" || of[1] == from[1] || layer[from[1]] && layer[from[1]] < layer[of[1]])
			next
		printf "user/%s includes %s, which is not of a lower layer\n", $1, $2
		found = 1
	}
	END { exit found }' layers -
