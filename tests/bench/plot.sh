#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# From the figures in DIRECTORY/*.jsonl to plots beside them: `plot.sh DIRECTORY`.
set -eu
cd "$(dirname "$0")/../.."
DIRECTORY=$1

command -v gnuplot >/dev/null || { echo "no plots: gnuplot is missing"; exit 0; }

# grid FILE ROW COLUMN FIGURE [KEY VALUES]...: of the objects whose KEYs match the VALUES, FIGURE by ROW and COLUMN, as
# gnuplot reads it: a head of columns, a line a row, ? where there is none. Fails where there is no object.
grid() {
	awk -v row="$2" -v column="$3" -v figure="$4" -v wanted="$(shift 4; echo "$*")" '
	# The value of a key; strings without quotes. No value of ours holds a comma or a quote.
	function value(key, rest) {
		if (!match($0, "\"" key "\": ?"))
			return ""
		rest = substr($0, RSTART + RLENGTH)
		sub(/, ?".*/, "", rest)
		sub(/}$/, "", rest)
		gsub(/"/, "", rest)
		return rest
	}
	BEGIN { pairs = split(wanted, want, " ") }
	{
		for (i = 1; i <= pairs; i += 2)
			if (value(want[i]) !~ "^(" want[i + 1] ")$")
				next
		r = value(row); c = value(column)
		if (!(r in seen_row)) { seen_row[r] = 1; rows[++n] = r }
		if (!(c in seen_column)) { seen_column[c] = 1; columns[++m] = c }
		cell[r, c] = value(figure)
	}
	END {
		if (!n)
			exit 1
		printf "\"%s\"", row
		for (j = 1; j <= m; j++)
			printf " \"%s\"", columns[j]
		print ""
		for (i = 1; i <= n; i++) {
			printf "\"%s\"", rows[i]
			for (j = 1; j <= m; j++)
				printf " %s", (rows[i], columns[j]) in cell ? cell[rows[i], columns[j]] : "?"
			print ""
		}
	}' "$DIRECTORY/$1.jsonl"
}

# data NAME GRID-ARGUMENT...: into NAME.dat, if the figures are there.
data() {
	name=$1
	shift
	if ! [ -s "$DIRECTORY/$1.jsonl" ] || ! grid "$@" >"$DIRECTORY/$name.dat"; then
		rm -f "$DIRECTORY/$name.dat"
	fi
}

for traffic in hit miss half; do
	data "lookup_$traffic" lookup rules variant over_floor bench lookup traffic "$traffic"
done
data lookup_memory lookup rules variant map_mib bench lookup traffic hit
for traffic in hit miss; do
	data "scale_$traffic" scale rules variant over_floor bench scale traffic "$traffic"
	data "shapes_$traffic" shapes shapes variant over_floor rules 1000 family IPv4 traffic "$traffic"
done
data updates updates variant task median bench updates
for traffic in listed mixed; do
	data "live_$traffic" live variant rules over_drop_ns traffic "$traffic" cpus 1 mode 'native|stack'
done
gnuplot -e "directory='$DIRECTORY'" tests/bench/plots.gnuplot
