#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The man page of the tool, on stdout: `make.sh TOOL UNITDIR`. What it says of the commands is what the tool says.
set -eu
here=$(dirname "$0")
tool=$1 units=$2

version=$("$tool" version | awk '$1 == "xdp-cuckoo:" || $1 == "xdp-cuckoo" { print $2 }')

commands() {
	"$tool" help | sed -n 's/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p' | while read -r command; do
		"$tool" help "$command" | awk -f "$here/commands.awk"
	done
}

while IFS= read -r line; do
	case $line in
	@COMMANDS@) commands ;;
	*) printf '%s\n' "$line" ;;
	esac
done <"$here/xdp-cuckoo.8.in" | sed "s,@VERSION@,$version,; s,@UNITDIR@,$units,"
