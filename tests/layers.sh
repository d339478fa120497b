#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Says which files of user/ include a header of a layer that is not below theirs, by user/layers:
# sh tests/layers.sh [DIR], for a tree at DIR. Exit status 1 where there are any.
set -u
cd "${1:-$(dirname "$0")/..}/user" || exit 2

find . -name '*.[ch]' -exec grep -Ho '^#include "[a-z]*/[^"]*"' {} + | sed 's|^\./||; s|:#include "| |; s|"$||' |
	awk '
	# The folder of user/layers that a file is in; a header is named without core/ or cli/.
	function folder(path, name) {
		for (name in layer)
			if (index(path, name "/") == 1)
				return name
		return ""
	}
	function folder_of_header(header, part, name) {
		split(header, part, "/")
		name = part[1]
		return ("core/" name in layer) ? "core/" name : ("cli/" name in layer) ? "cli/" name : name in layer ? name : ""
	}
	NR == FNR {
		gsub(/#.*|[*]/, "")
		for (i = 1; i <= NF; i++)
			layer[$i] = FNR
		next
	}
	{
		of = folder($1)
		from = folder_of_header($2)
		if (of == from || layer[from] && layer[from] < layer[of])
			next
		printf "user/%s includes %s, which is not of a lower layer\n", $1, $2
		found = 1
	}
	END { exit found }' layers -
