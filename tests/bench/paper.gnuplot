# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The data of tests/bench/paper.c as plots: gnuplot -e "directory='build/bench'" tests/bench/paper.gnuplot

set terminal svg size 800,500 dynamic background rgb "white" font "sans-serif,14" noenhanced
set grid
set key outside right
set style data linespoints
data(name) = directory . '/' . name . '.dat'
columns(name) = int(system(sprintf("awk -F '\" \"' 'NR == 1 { print NF }' %s", data(name))))

set output directory . '/load_by_bits.svg'
set title 'Load factor by fingerprint bits, 4 slots a bucket'
set xlabel 'fingerprint bits'
set ylabel 'load factor, %'
set yrange [0:100]
plot data('load_by_bits') using 1:2 with points pointtype 6 pointsize 1.5 title columnheader, \
	for [i = 3 : columns('load_by_bits') : 3] data('load_by_bits') \
		using 1:i:i+1:i+2 with yerrorlines title columnheader(i)

set output directory . '/load_by_slots.svg'
set title 'Load factor by slots of a bucket, 16-bit fingerprints'
set xlabel 'slots'
set logscale x 2
plot data('load_by_slots') using 1:2 with points pointtype 6 pointsize 1.5 title columnheader, \
	data('load_by_slots') using 1:3:4:5 with yerrorlines title columnheader(3)
unset logscale x

set output directory . '/bits_by_rate.svg'
set title 'Bits an item by false-positive rate'
set xlabel 'false-positive rate, %'
set ylabel 'bits an item, packed'
set logscale x
set xrange [0.001:20]
set yrange [0:25]
stats data('bits_by_rate') using 1:2 nooutput
plot for [i = 0 : STATS_blocks - 1] data('bits_by_rate') index i using 1:2 title columnheader(1), \
	-log(x / 100) / log(2) with lines dashtype 2 title 'lower bound', \
	-log(x / 100) / log(2) / log(2) with lines dashtype 3 title 'Bloom, optimum'
unset logscale x

set output directory . '/table3.svg'
set title 'Construction'
set xlabel ''
set ylabel 'inserts, M/s'
set xrange [*:*]
set yrange [0:*]
set style fill solid 0.6
set boxwidth 0.7
plot data('table3') using 0:5:xticlabels(1) with boxes title 'here', \
	'' using 0:($8 > 0 ? $8 : NaN) with points pointtype 7 pointsize 1.2 title 'the paper, 2014'

set ylabel 'M/s'
set xlabel 'present keys, %'
set output directory . '/lookup_by_share.svg'
set title 'Look-ups of full filters by share of present keys (figure 5)'
plot for [i = 2 : columns('lookup_by_share')] data('lookup_by_share') using 1:i title columnheader

set xlabel 'occupancy, % of full'
titles = 'lookup_absent lookup_mixed lookup_present insert delete'
do for [name in titles] {
	set output directory . '/' . name . '.svg'
	set title name . ' by occupancy'
	plot for [i = 2 : columns(name)] data(name) using 1:i title columnheader
}
