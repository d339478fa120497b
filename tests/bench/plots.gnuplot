# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The data that plot.sh has collected: gnuplot -e "directory='build/bench'" tests/bench/plots.gnuplot

set terminal svg size 900,560 dynamic background rgb "white" font "sans-serif,14" noenhanced
set grid
set key outside right
set datafile missing '?'
data(name) = directory . '/' . name . '.dat'
is_there(name) = int(system(sprintf("test -s %s && echo 1 || echo 0", data(name))))
columns(name) = int(system(sprintf("awk -F '\" \"' 'NR == 1 { print NF }' %s", data(name))))

# Columns 1 and 2 of look-ups are floors, which are 0.
lines(name, text, first) = sprintf("\
	set output '%s/%s.svg'; set title '%s'; \
	plot for [i = %d : %d] data('%s') using (real(strcol(1))):i with linespoints title columnheader(i)", \
	directory, name, text, first, columns(name), name)

set logscale xy
set xlabel 'rules'
set ylabel 'ns a packet over parsing'
set format x '10^%T'
do for [traffic in 'hit miss half'] {
	name = 'lookup_' . traffic
	if (is_there(name)) {
		eval(lines(name, 'Look-up of IPv4 5-tuples: ' . traffic, 4))
	}
}
do for [traffic in 'hit miss'] {
	name = 'scale_' . traffic
	if (is_there(name)) {
		eval(lines(name, 'Look-up by rules; dep.: each depends on the one before: ' . traffic, 4))
	}
}
if (is_there('lookup_memory')) {
	set ylabel 'MiB'
	eval(lines('lookup_memory', 'Memory of the maps', 4))
}

unset logscale
set logscale x 2
set format x '%g'
set xlabel 'shapes'
set ylabel 'ns a packet over parsing'
set yrange [0:*]
do for [traffic in 'hit miss'] {
	name = 'shapes_' . traffic
	if (is_there(name)) {
		eval(lines(name, 'Look-up by shapes, all probed: ' . traffic, 3))
	}
}
unset logscale x

set style data histograms
set style fill solid 0.8
set xtics rotate by -30
unset xlabel
bars(name, text) = sprintf("\
	set output '%s/%s.svg'; set title '%s'; \
	plot for [i = 2 : %d] data('%s') using i:xtic(1) title columnheader(i)", \
	directory, name, text, columns(name), name)

if (is_there('updates')) {
	set ylabel 'a second'
	set logscale y
	set yrange [*:*]
	eval(bars('updates', 'Changes of rules'))
	unset logscale y
}
set ylabel 'ns a packet over a bare drop'
set yrange [0:*]
do for [traffic in 'listed mixed'] {
	name = 'live_' . traffic
	if (is_there(name)) {
		eval(bars(name, 'Live traffic over veth, native XDP or the stack, by rules: ' . traffic))
	}
}
