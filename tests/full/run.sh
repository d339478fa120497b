#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The tests again, on builds that look on: sh tests/full/run.sh [STAGE...]. `sanitize`: everything, or the suites of namespace/
# that $SUITES names, with AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer; `memcheck`: what valgrind has
# time for; `race`: readers beside a writer, with ThreadSanitizer; `coverage`: everything, and which lines and branches of
# what is under test were run; `branches`: those of the parser and of the table, by their unit tests, each branch of the source
# counted once, however often it is inlined.
# Status 1 where a test failed or a tool has reported anything, also of a process in the background.
set -u
cd "$(dirname "$0")/../.." || exit 1

STAGES='sanitize memcheck race coverage branches'
ROOT=$PWD
LIMIT_S=${LIMIT_S:-3600} # of one test file
SUITES=${SUITES-}        # words, each a part of a name
export LIMIT_S

# Where user input and the store are read; the rest would take hours.
MEMCHECK_UNITS=${MEMCHECK_UNITS:-io/ host/ change/test_pending_keys lists/ rule/ store/test_store_undo store/test_store_open}
MEMCHECK_COMMANDS=${MEMCHECK_COMMANDS:-commands counters formats panic policies}

# place NAME: a directory for a build, and in it one for reports.
place() {
	BUILD=build/$1
	reports=$ROOT/$BUILD/reports
	rm -rf "$reports"
	mkdir -p "$reports"
}

# build CFLAGS LDFLAGS TARGET...
build() {
	build_cflags=$1
	build_ldflags=$2
	shift 2
	make --no-print-directory -s -j "$(nproc)" BUILD="$BUILD" CFLAGS="$build_cflags" LDFLAGS="$build_ldflags" "$@"
}

# with_tool COMMAND...: where tests look for the tool, which takes more CPU time; all else is that of the plain build.
with_tool() {
	env TOOL="$BUILD/xdp-cuckoo" BUILD=build CPU_S=20 "$@"
}

# has_reports: shows what a tool has written, about processes in the background too. valgrind 3.19 does not know every
# command of bpf(), and says so. LeakSanitizer says so if a process is killed while it searches.
has_reports() {
	grep -rv -e '-- WARNING: unhandled eBPF command' -e 'Unable to get registers from thread' "$reports" | sed "s,^$reports/,," | head -n 200 | grep .
}

# notices FAULT...: whether each fault in the tool fails a test that ignores its exit status and messages.
notices() {
	cat >"$BUILD/test_planted.sh" <<-'END'
		. tests/lib.sh
		test_fault() { env PLANTED="$FAULT" "$TOOL" version >/dev/null 2>&1 || :; }
		run_tests "$0"
	END
	for fault; do
		FAULT=$fault REPORTS=$reports TOOL=$BUILD/xdp-cuckoo sh "$BUILD/test_planted.sh" >"$BUILD/planted.log"
		grep -Eq '(Address|Leak)Sanitizer|runtime error' "$BUILD/planted.log" ||
			{ echo "a planted fault is not noticed: $fault"; return 1; }
		rm -r "$reports/test_planted.test_fault"
	done
}

# The runtimes are linked statically: gcc's shared ones do not know each other's log_path. A report fails the namespace test
# that caused it: see report_in() in lib.sh. The directory is open to all, because some processes run as another user.
sanitize() {
	place asan
	chmod 1777 "$reports"
	checks="-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all"
	# shellcheck disable=SC2086 # words
	gcc $checks -D_GNU_SOURCE -DREPORTS="\"$reports/other\"" -c tests/full/sanitizers.c -o "$BUILD/sanitizers.o" || return
	build "$checks" \
		"-static-libasan -static-libubsan -Wl,--wrap=_exit,--wrap=setrlimit,--wrap=prctl $ROOT/$BUILD/sanitizers.o" sanitized-programs || return
	ln -sf "$ROOT"/build/tests/helpers/*.so "$ROOT"/build/tests/helpers/*.bpf.o "$BUILD/tests/helpers"
	notices overflow undefined leak || return
	status=0
	[ -n "$SUITES" ] || BUILD=$BUILD sh tests/run.sh tests/unit/ || status=1
	# shellcheck disable=SC2086 # words
	with_tool env HELPERS="$BUILD/tests/helpers" SOAKS="$BUILD/tests/soak" REPORTS="$reports" \
		TESTS='tests/namespace/test_*.sh' sh tests/run.sh $SUITES || status=1
	! has_reports && return $status
}

# Where the tool is, stands a script that runs it.
memcheck() {
	place memcheck
	status=0
	valgrind="valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite"
	valgrind="$valgrind --suppressions=$ROOT/tests/full/valgrind.supp --log-file=$reports/%p"
	printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$valgrind" "$ROOT/build/xdp-cuckoo" >"$BUILD/xdp-cuckoo"
	chmod +x "$BUILD/xdp-cuckoo"
	# shellcheck disable=SC2046,SC2086 # words
	RUNNER=$valgrind BUILD=build sh tests/run.sh $(printf 'tests/unit/%s ' $MEMCHECK_UNITS) || status=1
	# shellcheck disable=SC2046,SC2086 # words
	with_tool sh tests/run.sh $(printf 'tests/namespace/test_%s ' $MEMCHECK_COMMANDS) || status=1
	! has_reports && return $status
}

# Volatile accesses are told from others, and are loads and stores that may race: tests/full/tsan_volatile.c.
race() {
	place tsan
	gcc -O1 -fPIC -c tests/full/tsan_volatile.c -o "$BUILD/volatile.o" || return
	build "-O1 -g -fsanitize=thread --param=tsan-distinguish-volatile=1" "$ROOT/$BUILD/volatile.o" unit-programs || return
	# Without random addresses, among which this runtime does not find its own.
	TSAN_OPTIONS="exitcode=99 halt_on_error=1" RUNNER="setarch -R" CHURN_LOOKUPS=1000000 BUILD=$BUILD \
		sh tests/run.sh unit/core/table/
}

# _exit() writes no counts: tests/full/coverage_exit.c does.
coverage() {
	place coverage
	gcc -O1 -fPIC -c tests/full/coverage_exit.c -o "$BUILD/exit.o" || return
	build "-O0 -g --coverage -fprofile-update=atomic" "-Wl,--wrap=_exit $ROOT/$BUILD/exit.o" all unit-programs || return
	find "$BUILD" -name '*.gcda' -delete
	# What the tool counts, so that it can also where it runs as somebody else.
	"$BUILD/xdp-cuckoo" version >/dev/null
	find "$BUILD/user" -name '*.gcda' -exec chmod a+rw {} +
	status=0
	BUILD=$BUILD sh tests/run.sh tests/unit/ || status=1
	with_tool sh tests/run.sh tests/namespace/ || status=1
	show_coverage
	return $status
}

# A line for each file, those least run first.
show_coverage() {
	gcovr --root . --object-directory "$BUILD" --filter user/ --filter bpf/ --filter include/ \
		--csv "$BUILD/coverage.csv" --html-details "$BUILD/coverage.html" "$BUILD" || return
	awk -F , '
	NR > 1 {
		printf "%s %d %d %d %d\n", $1, $3, $2, $6, $5
	}' "$BUILD/coverage.csv" | sort | awk '
	function percent(part, whole) { return whole ? sprintf("%.1f", 100 * part / whole) : "" }
	function row(name, lines, of_lines, branches, of_branches) {
		printf "%-32s %6d of %6d %6s %% %8d of %6d %6s %%\n", name, lines, of_lines, percent(lines, of_lines), \
			branches, of_branches, percent(branches, of_branches)
	}
	BEGIN { printf "%-32s %25s %27s\n", "file", "lines", "branches" }
	{
		row($1, $2, $3, $4, $5)
		sub("/.*", "", $1)
		for (i = 2; i <= 5; i++)
			sum[$1, i] += $i
		seen[$1] = 1
	}
	END { for (part in seen) row(part "/", sum[part, 2], sum[part, 3], sum[part, 4], sum[part, 5]) }'
}

branches() {
	place branches
	counted=$(ls tests/unit/core/table/test_*.c tests/unit/packets/test_parse_packet.c tests/unit/packets/test_random_frames.c)
	programs=
	objects=
	for file in $counted; do
		programs="$programs $BUILD/${file%.c}"
		objects="$objects -object $BUILD/${file%.c}"
	done
	# shellcheck disable=SC2086 # words
	build "-O1 -g -fprofile-instr-generate -fcoverage-mapping -Wno-pass-failed" "" CC=clang $programs || return
	# shellcheck disable=SC2086 # words
	LLVM_PROFILE_FILE=$reports/%p BUILD=$BUILD sh tests/run.sh $counted || return
	llvm-profdata merge -o "$BUILD/profile" "$reports"/* || return
	# shellcheck disable=SC2086 # words
	llvm-cov report ${objects# -object } -instr-profile="$BUILD/profile" include/parse_packet.h include/fingerprint.h include/bucket.h user/table
}

failed=
# shellcheck disable=SC2086 # words
[ $# -gt 0 ] || set -- $STAGES
for stage; do
	start=$(date +%s)
	$stage || failed="$failed $stage"
	echo "== $stage: $(($(date +%s) - start)) s"
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
