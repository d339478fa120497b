#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# `history.sh DIRECTORY COMMIT MACHINE`: one line for history.tsv, from the figures in DIRECTORY/*.jsonl. Each figure is ours
# divided by a rival's of the same run, so that machines compare; lower is better. "-": the run has no such figure.
#   hit, miss, half   packet path, counting, beyond parsing, to the hash map: 100,000 and 990,000 addresses
#   anywhere, listed  the same to the LPM trie: the first list of `cidr`
#   import, add       time of the commands, to ipset's (the largest list of both) and nft's
set -eu

[ $# -eq 3 ] || { echo "usage: history.sh DIRECTORY COMMIT MACHINE" >&2; exit 2; }
cat "$1"/*.jsonl | awk -v date="$(date -u +%F)" -v commit="$2" -v machine="$3" '
	function value(name, text) {
		if (!match($0, "\"" name "\": *(\"[^\"]*\"|[0-9.]+)"))
			return ""
		text = substr($0, RSTART, RLENGTH)
		sub(/^"[^"]*": */, "", text)
		gsub(/"/, "", text)
		return text
	}
	function ratio(a, b) {
		return figure[a] > 0 && figure[b] > 0 ? sprintf("%.3f", figure[a] / figure[b]) : "-"
	}
	{
		bench = value("bench")
		variant = value("variant")
		if (bench == "lookup")
			figure[value("rules"), value("traffic"), variant] = value("over_floor")
		if (bench == "cidr" && (list == "" || list == value("list"))) {
			list = value("list")
			figure[value("traffic"), variant] = value("over_floor")
		}
		if (bench == "manage") {
			figure[value("task"), variant] = value("median")
			size = value("task")
			if (sub(/^import-/, "", size) && figure["import-" size, "ours"] && figure["import-" size, "ipset"] &&
			    size + 0 > largest + 0)
				largest = size
		}
	}
	END {
		printf "%s\t%s\t%s", date, commit, machine
		for (rules = 100000; rules; rules = rules == 100000 ? 990000 : 0)
			for (i = 1; i <= split("hit miss half", traffic, " "); i++)
				printf "\t%s", ratio(rules SUBSEP traffic[i] SUBSEP "counting",
						     rules SUBSEP traffic[i] SUBSEP "hash map")
		printf "\t%s\t%s\t%s\t%s\n", ratio("from anywhere" SUBSEP "counting", "from anywhere" SUBSEP "LPM trie"),
			ratio("from listed networks" SUBSEP "counting", "from listed networks" SUBSEP "LPM trie"),
			ratio("import-" largest SUBSEP "ours", "import-" largest SUBSEP "ipset"),
			ratio("add" SUBSEP "ours", "add" SUBSEP "nft")
	}'
