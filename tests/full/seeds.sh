#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Runs the tests that draw their cases once for each seed: sh tests/full/seeds.sh [WORD...] takes those whose file names hold a
# WORD. SEEDS=100 says how many seeds, FROM=1 the first one, MAX_S=N that no run of a file starts after N seconds. Of a file
# of namespace/ only the functions that draw are run. Shows a line a file, and the output of each seed that failed.
set -u
cd "$(dirname "$0")/../.." || exit 1

SEEDS=${SEEDS:-100}
FROM=${FROM:-1}
MAX_S=${MAX_S:-0} # 0: as long as it takes
JOBS=${JOBS:-$(nproc)}

# drawing FILE: says which functions of a namespace test use $SEED, themselves or through a function that they call.
drawing() {
	# shellcheck disable=SC2046 # one word a file
	awk '
	FNR == 1 { files++ }
	/^[a-z_0-9]+\(\)/ {
		name = $1
		sub(/\(.*/, "", name)
		body[name] = ""
		if (files == 1 && name ~ /^test_/)
			test[++tests] = name
	}
	name != "" && !/^[ \t]*#/ { body[name] = body[name] "\n" $0 }
	/^[})]/ { name = "" }
	END {
		for (caller in body)
			draws[caller] = body[caller] ~ /\$[{(]*SEED/
		do {
			found = 0
			for (caller in body)
				for (name in body)
					if (!draws[caller] && draws[name] && body[caller] ~ ("(^|[^a-z_0-9])" name "([^a-z_0-9]|$)"))
						found = draws[caller] = 1
		} while (found)
		for (i = 1; i <= tests; i++)
			if (draws[test[i]])
				print test[i]
	}' "$1" $(sed -n 's,^\. \(tests/.*\.sh\)$,\1,p' "$1" | grep -v '/lib\.sh$')
}

# run_seeds FILE [FUNCTION...]: status 1 where a seed fails. A seed that is skipped is none that was run.
run_seeds() {
	file=$1
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	start=$(date +%s)
	seed=$FROM
	ran=0
	: >"$scratch/failed"
	while [ "$seed" -lt $((FROM + SEEDS)) ]; do
		[ "$MAX_S" -eq 0 ] || [ $(($(date +%s) - start)) -lt "$MAX_S" ] || break
		: >"$scratch/counts"
		COUNTS=$scratch/counts CMOCKA_MESSAGE_OUTPUT=TAP SEED=$seed sh tests/run-file.sh "$@" >"$scratch/out"
		read -r passed failed _ <"$scratch/counts"
		[ "$failed" -eq 0 ] || { echo "$seed" >>"$scratch/failed"; sed "s/^/    SEED=$seed /" "$scratch/out" >>"$scratch/shown"; }
		[ "$((passed + failed))" -eq 0 ] || ran=$((ran + 1))
		seed=$((seed + 1))
	done
	failed=$(wc -l <"$scratch/failed")
	# In one write: others write to the same place.
	{
		printf '%-40s %4d seeds %4d failed %5d s\n' "$file" "$ran" "$failed" $(($(date +%s) - start))
		[ "$ran" -gt 0 ] || cat "$scratch/out"
		[ "$failed" -eq 0 ] || cat "$scratch/shown"
	} >"$scratch/line"
	cat "$scratch/line"
	[ "$failed" -eq 0 ]
}

if [ "${1:-}" = --file ]; then
	# shellcheck disable=SC2046 # one word a function
	run_seeds "$2" $(case $2 in *.sh) drawing "$2" ;; esac)
	exit
fi

export SEEDS FROM MAX_S
for file in tests/unit/*/test_*.c tests/unit/*/*/test_*.c tests/namespace/test_*.sh; do
	case $file in
	*.c) grep -Eq 'seed_of_run\(\)|TEST_MAIN\(seed' "$file" ;;
	*) [ -n "$(drawing "$file")" ] ;;
	esac || continue
	[ $# -gt 0 ] || echo "$file"
	for word; do
		case $file in *"$word"*) echo "$file"; break ;; esac
	done
done | xargs -r -P "$JOBS" -n 1 sh tests/full/seeds.sh --file || { echo 'a seed failed' >&2; exit 1; }
