# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# For readme_plots.sh: gnuplot -e "scratch='DIRECTORY'" readme.gnuplot

set terminal svg size 760,400 dynamic background rgb "white" font "sans-serif,14" noenhanced
set grid
data(name) = scratch . '/' . name

set output 'lookup.svg'
set title 'Time for one packet, beyond parsing it'
set key outside right
set logscale xy
set xlabel 'rules in the list'
set ylabel 'nanoseconds (less is better)'
set xtics ('1,000' 1e3, '10,000' 1e4, '100,000' 1e5, '1 million' 1e6)
set xrange [800:1.3e6]
set yrange [5:4000]
plot data('miss') using 1:3 with linespoints lw 3 lc rgb '#0060ad' pt 7 title 'xdp-cuckoo, passes', \
	data('hit') using 1:3 with linespoints lw 2 dt 2 lc rgb '#0060ad' pt 6 title 'xdp-cuckoo, dropped', \
	data('miss') using 1:4 with linespoints lw 3 lc rgb '#dd181f' pt 7 title 'hash map, passes', \
	data('hit') using 1:4 with linespoints lw 2 dt 2 lc rgb '#dd181f' pt 6 title 'hash map, dropped', \
	data('miss') using 1:5 with linespoints lw 3 lc rgb '#777777' pt 7 title 'LPM trie, passes'

reset
set output 'changes.svg'
set title 'Time of a change'
set grid y
set key top left
set style data histograms
set bmargin 3.5
set style fill solid 0.9
set boxwidth 0.9
set logscale y
set ylabel 'milliseconds (less is better)'
set yrange [10:20000]
plot data('changes') using 2:xtic(1) lc rgb '#0060ad' title 'xdp-cuckoo', '' using 3 lc rgb '#777777' title 'ipset', \
	'' using 4 lc rgb '#dd181f' title 'nft'
