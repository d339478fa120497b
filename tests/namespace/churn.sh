# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced after tests/lib.sh: a running filter whose table changes without pause, under live traffic of
# flows that are in it all the time.
# shellcheck shell=sh disable=SC2034 # the variables are for those who source this

CHURN_CAPACITY=900  # a table of 1024 slots: so small that reader and writer meet often
CHURN_RESIDENTS=486 # half of what stands in it at 95 % load

# churn_load FLOWS OPTION...: a filter as the options of `load` say, with so many flows in its table.
churn_load() {
	CHURN_FLOWS=$1
	shift
	# What the sender's own stack sends would be counted with the flows.
	in_tx sysctl -qw net.ipv6.conf.vtx.disable_ipv6=1
	xc load vrx --mode native --capacity "$CHURN_CAPACITY" "$@" >/dev/null
	awk -v flows="$CHURN_FLOWS" 'BEGIN {
		for (i = 0; i < flows; i++)
			printf "10.64.%d.%d\n", i / 256, i % 256
	}' | xc import - >/dev/null
}

# churn_live PACKETS OPTION...: status 0 where every packet was dropped, 1 where some passed. Says what
# was counted.
churn_live() {
	churn_packets=$1
	shift
	"$HELPERS/churn_live" --from "$TX:vtx" --to "$RX:vrx" --first 10.64.0.0 \
		--flows "$CHURN_FLOWS" --packets "$churn_packets" --seed "$SEED" "$@"
}
