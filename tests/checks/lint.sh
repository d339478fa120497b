#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What static checks find, each tool over all files it knows: sh tests/checks/lint.sh [TOOL...], as `make lint` runs it, which
# gives the flags that files are compiled with, in USER_FLAGS and BPF_FLAGS. Status 1 where one finds anything.
# shellcheck disable=SC2086 # lists of files, of which none has a space in its name
set -u
cd "$(dirname "$0")/../.." || exit 1

TOOLS='layers analyzer tidy cppcheck shellcheck shadows format lengths'
JOBS=${JOBS:-$(nproc)}
BUILD=${BUILD:-build}

# What is compiled for the host (packets.c is rows, which others include); what for the kernel; and scripts, by their
# first line where they have no name of one.
c_files=$(find user tests -name '*.c' ! -name '*.bpf.c' ! -path tests/unit/packets.c | sort)
bpf_files=$(find bpf tests -name '*.bpf.c' | sort)
headers=$(find bpf include user tests -name '*.h' | sort)
scripts=$({ find .ci user tests -name '*.sh' -o -name '*.bash' && grep -rl '^#!/bin/sh' .ci user; } | sort -u)

# each FILES COMMAND: with each file as $file, some at once; what they write, a file's whole.
each() {
	each_files=$1
	printf '%s\n' $each_files | xargs -P "$JOBS" -I '{}' sh -c '
		file=$1
		found=$('"$2"' 2>&1) && exit 0
		printf "%s\n" "$found"
		exit 1' sh '{}'
}

layers() {
	sh tests/layers.sh
}

# At -O0: optimised code takes it long. That of gcc 12 takes for lost what is stored behind a pointer, which valgrind and
# LeakSanitizer know better, and believes that a look-up of a word that is there may fail, which clang's does not. Of the
# tests it would have every malloc() looked at, and with the engine included a dozen times it does not end.
analyzer() {
	each "$(find user -name '*.c' | sort)" "gcc $USER_FLAGS -O0 -fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-null-dereference \
		-Werror -c \$file -o /dev/null"
}

# Of tests and of programs for the kernel not all that .clang-tidy has:
# clang-analyzer-*: it does not know that a failed assertion of cmocka's ends the test, nor that benchmarks die();
# tests of the engine run under sanitizers instead: tests/full/run.sh.
# env33-c: tests may run a shell. flp30-c, incorrect-roundings: figures of benchmarks. redundant-expression: two draws of
# the same random numbers. suspicious-include: programs over the filter's own. macro-parentheses: of types and braces.
# sig30-c, signal-handler: the name of an input that crashes. no-int-to-ptr: the kernel has packets so.
TIDY_TESTS='-clang-analyzer-*,-cert-env33-c,-cert-flp30-c,-bugprone-incorrect-roundings,-misc-redundant-expression'
TIDY_TESTS="$TIDY_TESTS,-bugprone-suspicious-include,-bugprone-macro-parentheses,-cert-sig30-c,-bugprone-signal-handler"
TIDY_BPF='-bugprone-suspicious-include,-performance-no-int-to-ptr'

# tidy_some FILES CHECKS FLAGS
tidy_some() {
	each "$1" "clang-tidy --quiet --checks='$2' \$file -- $3"
}

# What bpftool has generated, which two files include, loses memory where there is none left.
tidy() {
	tidy_generated=$(grep -l 'skel[.]h"' user/*/*.c)
	tidy_status=0
	tidy_some "$(printf '%s\n' $c_files | grep '^user/' | grep -vF "$tidy_generated")" '' "$USER_FLAGS" || tidy_status=1
	tidy_some "$tidy_generated" -clang-analyzer-unix.Malloc "$USER_FLAGS" || tidy_status=1
	tidy_some "$(printf '%s\n' $c_files | grep '^tests/')" "$TIDY_TESTS" "$USER_FLAGS -DREPORTS='\"\"'" || tidy_status=1
	tidy_some "$bpf_files" "$TIDY_BPF,$TIDY_TESTS" "$BPF_FLAGS" || tidy_status=1
	return $tidy_status
}

# GNU C has arithmetic on void *. In lookup.c it takes the size of an array for what an index may be. With -D it looks at
# one configuration, the one that is built. NULL is a pointer here, also as the last of many arguments.
run_cppcheck() {
	cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr --library=gnu \
		--suppress=missingIncludeSystem --suppress=internalAstError:user/fleet/publisher.c \
		--suppress=arithOperationsOnVoidPointer --suppress=varFuncNullUB \
		--suppress=arrayIndexOutOfBoundsCond:tests/bench/lookup.c -j "$JOBS" \
		-D__x86_64__ --include=tests/checks/cppcheck.h -Iinclude -Iuser -Ibpf -Itests user tests bpf
}

# SC2317: tests are called by their names, which shellcheck does not see. SC2119, SC2120: functions whose arguments may be
# left out. SC2016: what another shell expands, or await and on_exit later. SC2031: each test runs in a shell of its own.
run_shellcheck() {
	shellcheck -x -e SC2317,SC2119,SC2120,SC2016,SC2031 $scripts
}

# A header that our include path shows under the name of one of the system's: -I comes first, also for <NAME>.
shadows() {
	system=$(gcc -E -Wp,-v -xc /dev/null 2>&1 >/dev/null | sed -n 's/^ //p')
	[ -n "$system" ] || return
	for header in user/*/*.h include/*.h bpf/*.h; do
		for directory in $system; do
			[ ! -e "$directory/${header#*/}" ] || echo "$header shadows $directory/${header#*/}"
		done
	done | { ! grep .; }
}

format() {
	clang-format --dry-run --Werror $c_files $bpf_files $headers
}

# A report, which finds nothing: how long functions and files are, of the tool and of the tests.
lengths() {
	sh tests/checks/lengths.sh && sh tests/checks/lengths.sh tests
}

failed=
[ $# -gt 0 ] || set -- $TOOLS
for tool; do
	start=$(date +%s)
	case $tool in
	cppcheck | shellcheck) run_$tool ;;
	*) $tool ;;
	esac || failed="$failed $tool"
	echo "$tool: $(($(date +%s) - start)) s"
done
[ -z "$failed" ] || { echo "findings:$failed" >&2; exit 1; }
