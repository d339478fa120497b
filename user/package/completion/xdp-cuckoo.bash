# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# Completion for bash: xdp-cuckoo itself tells what fits, this asks it. `make install` puts it where bash-completion
# looks for it; without that: source it. Who types sudo before it has no sbin in the path.
_xdp_cuckoo() {
	local word=${COMP_WORDS[COMP_CWORD]} sbin=/usr/local/sbin:/usr/sbin:/sbin line names

	[[ $word != = ]] || word=
	COMPREPLY=()
	while IFS= read -r line; do
		names=()
		case $line in
		:file) mapfile -t names < <(compgen -f -- "$word") ;;
		:dir) mapfile -t names < <(compgen -d -- "$word") ;;
		*) names=("${line%%$'\t'*}") ;;
		esac
		[[ $line != :* ]] || compopt -o filenames 2>/dev/null
		COMPREPLY+=("${names[@]}")
	done < <(env PATH="$PATH:$sbin" "${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}

complete -F _xdp_cuckoo xdp-cuckoo
