#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Draws lookup.svg, which README.md of the project shows, and changes.svg, which that of this folder shows, from results.txt.
set -eu
cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# section NAME: the lines of a section of results.txt.
section() {
	awk -v name="$1" '/^======== / { is_it = index($0, "======== " name) == 1; next } is_it' results.txt
}

# The first table of look-ups, before the one under cache pressure: rules, then ns of a packet that passes and of one
# that is dropped, for our counted table, a hash map and an LPM trie. "bare drop" is the first column of figures.
section 'lookup (quick)' | awk '
	/^under cache pressure/ { exit }
	/^ *rules / {
		sub(/.*bare drop/, "bare_drop"); gsub(/parse only/, "parse_only"); gsub(/hash map/, "hash_map"); gsub(/LRU map/, "LRU_map")
		gsub(/LPM trie/, "LPM_trie"); gsub(/Bloom map/, "Bloom_map"); gsub(/([0-9]+) bits/, "bits")
		for (i = 1; i <= NF; i++)
			at[$i] = i + 2
	}
	$2 == "miss" || $2 == "hit" {
		print $1, $2, $at["counting"], $at["hash_map"], $at["LPM_trie"]
	}' >"$scratch/lookup"
grep ' miss ' "$scratch/lookup" >"$scratch/miss"
grep ' hit ' "$scratch/lookup" >"$scratch/hit"

# The times of changes, in ms: what, ours, ipset, nft.
section 'manage --full 1' | awk '
	/^import [0-9]+ \(/ { last = $2 == 1000000 ? "1 million" : $2 / 1000 ",000"; name = "import\\n" last }
	/^replace/ && last { name = "replace 1 %\\nof " last }
	/^(import [0-9]+ \(|replace)/ && last { printf "\"%s\" %s %s %s\n", name, $(NF - 3), $(NF - 2), $(NF - 1) }' >"$scratch/changes"

for file in miss hit changes; do
	[ -s "$scratch/$file" ] || { echo "results.txt has no figures for $file" >&2; exit 1; }
done
gnuplot -e "scratch='$scratch'" readme.gnuplot
