#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Prints the man page of the tool: make.sh TOOL UNITDIR. The description of the commands is the tool's own help.
set -eu
here=$(dirname "$0")
tool=$1 units=$2

version=$("$tool" version | awk '$1 == "xdp-cuckoo:" || $1 == "xdp-cuckoo" { print $2 }')
[ -n "$version" ] || { echo "cannot make the man page: $tool does not run here" >&2; exit 1; }

commands() {
	"$tool" help --json | sed -n 's/.*"command": "\([^"]*\)".*/\1/p' | while read -r command; do
		"$tool" help "$command" | awk -f "$here/commands.awk"
	done
}

while IFS= read -r line; do
	case $line in
	@COMMANDS@) commands ;;
	*) printf '%s\n' "$line" ;;
	esac
done <"$here/xdp-cuckoo.8.in" | sed "s,@VERSION@,$version,; s,@UNITDIR@,$units,"
