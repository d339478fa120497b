#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The library as others get it: what it exports and needs, built against by pkg-config alone, and at work.
. tests/lib.sh

HEADER=user/core/library/xdp-cuckoo.h
SHARED=$BUILD/libxdp-cuckoo.so.1
CC=${CC:-gcc}

# The library must not write output, end the process, or touch signals, threads, children, privileges or other state of
# the process.
FORBIDDEN='printf|vprintf|__v?f?printf_chk|__printf_chk|f?puts|putchar|perror|stdout|stderr|stdin|error|warnx?|errx?
exit|_exit|abort|__assert_fail|signal|sigaction|sigprocmask|pthread_sigmask|pthread_create|fork|vfork|system|popen|exec.*
umask|f?chdir|chroot|setenv|putenv|unsetenv|set[ug]id|setre[ug]id|setres[ug]id|cap_set.*|cap_drop.*|prctl|setrlimit'

exported() {
	nm "$@" | awk '$2 ~ /^[A-Z]$/ && $2 != "A" { sub("@.*", "", $3); print $3 }' | sort
}

# Builds and installs the library as a package does.
install_library() {
	assert_status 0 make -s install DESTDIR="$STATE/root" PREFIX=/opt/xc
	export PKG_CONFIG_PATH="$STATE/root/opt/xc/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$STATE/root"
}

# compile FILE [FLAG...]: to $STATE/program. By pkg-config alone.
compile() {
	file=$1
	shift
	# shellcheck disable=SC2046,SC2086 # words
	assert_status 0 $CC -std=c99 -Wall -Wextra -Werror -pedantic "$file" -o "$STATE/program" \
		$(pkg-config --cflags xdp-cuckoo) "$@"
}

detector() {
	in_rx env LD_LIBRARY_PATH="$STATE/root/opt/xc/lib" "$STATE/program" "$@"
}

# --- what is in it

test_it_exports_what_the_header_says_and_no_more() {
	sed -n 's/^[a-z].*[ *]\(xdp_cuckoo_[a-z_]*\)(.*/\1/p' "$HEADER" | sort >"$STATE/header"
	[ -s "$STATE/header" ] || fail "no function in $HEADER"
	sed -n 's/^\t\(xdp_cuckoo_[a-z_]*\);$/\1/p' user/core/library/xdp-cuckoo.map | sort >"$STATE/map"
	diff "$STATE/header" "$STATE/map" || fail "the version script has others than the header"
	exported -D --defined-only "$SHARED" | diff "$STATE/header" - || fail "the library exports others"
	exported --defined-only "$BUILD/libxdp-cuckoo.a" | diff "$STATE/header" - || fail "the archive shows others"
	assert_equal '' "$(nm -D --defined-only "$SHARED" | grep -v '@@XDP_CUCKOO_[12]$' | grep -v ' A XDP_CUCKOO_[12]$')" \
		"symbols without that version"
}

test_its_name_and_what_it_needs() {
	readelf -d "$SHARED" >"$STATE/dynamic"
	grep -q 'SONAME.*\[libxdp-cuckoo.so.1\]' "$STATE/dynamic" || fail "soname"
	grep -q 'FLAGS_1.*NODELETE' "$STATE/dynamic" || fail "it would go while libbpf calls it"
	assert_status 0 ldd -r "$SHARED"
	assert_output liblmdb
	assert_equal '' "$(cat "$STATE/out" "$STATE/err" | grep undefined)" "undefined symbols"
	assert_equal '' "$(grep -o 'libjansson[^]]*' "$STATE/dynamic")" "what only the tool needs"
}

test_it_leaves_the_process_alone() {
	pattern=$(echo "$FORBIDDEN" | tr '\n' '|' | sed 's/|$//')
	nm -D --undefined-only "$SHARED" | awk '{ sub("@.*", "", $NF); print $NF }' >"$STATE/used"
	grep -qx mdb_env_open "$STATE/used" || fail "no symbols"
	assert_equal '' "$(grep -Ex "$pattern" "$STATE/used")" "functions that a library has no business with"
}

# A name that is a type and a function at once would be hidden in C++, so there is none.
test_the_header_is_c_and_cxx() {
	sed -n 's/^\(struct\|enum\) \([a-z_]*\).*/\2/p' "$HEADER" | sort -u >"$STATE/types"
	[ -s "$STATE/types" ] || fail "no type in $HEADER"
	sed -n 's/^\t\(xdp_cuckoo_[a-z_]*\);$/\1/p' user/core/library/xdp-cuckoo.map >"$STATE/functions"
	assert_equal '' "$(comm -12 "$STATE/types" "$STATE/functions")" "types that are functions too"
	echo '#include "xdp-cuckoo.h"' >"$STATE/header.c"
	for standard in c99 c11 c17; do
		# shellcheck disable=SC2086 # words
		assert_status 0 $CC -std=$standard -Wall -Wextra -Werror -pedantic -Iuser/core/library -c "$STATE/header.c" -o "$STATE/header.o"
	done
	command -v g++ >/dev/null || skip "C++: no g++"
	cat >"$STATE/main.cc" <<-'END'
		#include "xdp-cuckoo.h"

		static int see(const xdp_cuckoo_sample *sample, void *seen)
		{
			*static_cast<uint64_t *>(seen) += sample->packet_bytes;
			return 0;
		}

		int main()
		{
			xdp_cuckoo_filter *filter;
			xdp_cuckoo_info info;
			xdp_cuckoo_rule rule = {};
			uint64_t seen = 0;
			int error = xdp_cuckoo_open(nullptr, "/nonexistent", XDP_CUCKOO_READ | XDP_CUCKOO_NO_WAIT, &filter);

			if (!error && !xdp_cuckoo_get_info(filter, &info) && !xdp_cuckoo_list_add(filter, XDP_CUCKOO_BY_HAND, &rule))
				error = xdp_cuckoo_samples_read(filter, see, &seen);
			xdp_cuckoo_close(filter);
			return error == -2 && *xdp_cuckoo_version() ? 0 : 1;
		}
	END
	for standard in c++11 c++20; do
		assert_status 0 g++ -std="$standard" -Wall -Wextra -Werror -pedantic -Wshadow -Iuser/core/library "$STATE/main.cc" \
			"$SHARED" -o "$STATE/main"
	done
	assert_status 0 env LD_LIBRARY_PATH="$BUILD" "$STATE/main"
}

# --- at work

test_a_detector_blocks_what_comes_too_often() {
	install_library
	# shellcheck disable=SC2046 # words
	compile user/integrations/examples/detector.c $(pkg-config --libs xdp-cuckoo)
	xc load vrx >/dev/null
	xc add 192.0.2.9 >/dev/null
	assert_verdict pass 192.0.2.1 2001:db8::1
	{ for _ in 1 2 3 4; do echo 192.0.2.1; echo 2001:db8::1; echo 192.0.2.9; done; echo 192.0.2.2; echo nonsense; } |
		detector 3 "$STATE/store" || fail "the detector"
	assert_verdict drop 192.0.2.1 2001:db8::1 pass 192.0.2.2
	assert_status 0 xc list
	assert_equal 3 "$(wc -l <"$STATE/out")" "rules"
	assert_output '^src 192.0.2.1 timeout (10m|9m5.s)$'
	assert_output '^src 192.0.2.9$'
	assert_shows 'condition: +equal to the store' xc status
}

test_a_detector_says_what_is_wrong() {
	install_library
	# shellcheck disable=SC2046 # words
	compile user/integrations/examples/detector.c $(pkg-config --libs xdp-cuckoo)
	echo x >"$STATE/file"
	assert_fails 1 '^detector: store .*/file/default: ' detector 1 "$STATE/file"
	for _ in 1 2; do echo 10.99.0.2; done >"$STATE/own"
	run sh -c "nsenter --net=/run/netns/$RX env LD_LIBRARY_PATH=$STATE/root/opt/xc/lib $STATE/program 1 $STATE/store <$STATE/own"
	assert_equal 1 "$STATUS" "status"
	assert_error "would block packets from this host's address 10.99.0.2"
	assert_prints '' xc list
}

# Between begin and commit the old rules are in force.
test_a_change_is_not_in_force_before_its_end() {
	install_library
	cat >"$STATE/change.c" <<-'END'
		#include <stdlib.h>
		#include <xdp-cuckoo.h>

		/* STATE COMMAND RULE...: runs the command within a change of these rules, and takes it back. */
		int main(int argc, char **argv)
		{
			struct xdp_cuckoo_filter *filter;
			struct xdp_cuckoo_rule rule;
			int error = xdp_cuckoo_open(NULL, argv[1], XDP_CUCKOO_CHANGE, &filter);

			if (!error)
				error = xdp_cuckoo_begin(filter);
			for (int i = 3; i < argc && !error; i++) {
				error = xdp_cuckoo_parse(filter, argv[i], &rule);
				if (!error)
					error = xdp_cuckoo_add(filter, &rule);
			}
			if (error || system(argv[2]) || xdp_cuckoo_abort(filter))
				return 1;
			xdp_cuckoo_close(filter);
			return 0;
		}
	END
	# shellcheck disable=SC2046 # words
	compile "$STATE/change.c" $(pkg-config --libs xdp-cuckoo)
	xc load vrx >/dev/null
	printf '192.0.2.9\n100.64.0.0/24\n203.0.113.9 action pass\n' | xc import - >/dev/null
	printf '%s\n' 'pass address proto udp src 192.0.2.77 dst 198.18.0.1 sport 1 dport 2' \
		'pass network proto udp src 198.51.100.7 dst 198.18.0.1 sport 1 dport 2' >"$STATE/flows"
	assert_status 0 detector "$STATE/store" \
		"'$HELPERS/traffic' --from '$TX:vtx' --to '$RX:vrx' <'$STATE/flows'" 192.0.2.77 198.51.100.0/24
	traffic <"$STATE/flows" || fail "blocked after the change"
}

# start COMMAND...: in the receiving namespace, in the background, until it has printed its first line to $STATE/seen.
# Not by detector(): a signal would hit only the shell in between.
start() {
	LD_LIBRARY_PATH="$STATE/root/opt/xc/lib" nsenter --net="/run/netns/$RX" "$@" >"$STATE/seen" 2>"$STATE/said" &
	STARTED=$!
	on_exit "kill -9 $STARTED 2>/dev/null"
	WAIT_LOG=$STATE/said
	wait_for "the program" test -s "$STATE/seen"
}

# Live traffic: what a program hears of it by its descriptor, and the counts of rules and lists.
test_samples_and_counts_of_lists() {
	install_library
	silence
	cat >"$STATE/samples.c" <<-'END'
		#include <inttypes.h>
		#include <poll.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <xdp-cuckoo.h>

		static int show(const struct xdp_cuckoo_sample *sample, void *left)
		{
			static const char *const causes[] = { "rule", "unknown rule", "policy" };
			char flow[XDP_CUCKOO_TEXT_BYTES], rule[XDP_CUCKOO_TEXT_BYTES];

			xdp_cuckoo_format(&sample->flow, flow, sizeof(flow));
			xdp_cuckoo_format(&sample->rule, rule, sizeof(rule));
			printf("%s: %s by %s (%s) %s, %u of %u bytes, type %02x%02x\n", flow,
			       sample->is_dropped ? "dropped" : "would drop", causes[sample->cause], sample->outcome, rule,
			       (unsigned)sample->frame_bytes, (unsigned)sample->packet_bytes, sample->frame[12], sample->frame[13]);
			return --*(int *)left ? 0 : 1;
		}

		static int show_counts(const struct xdp_cuckoo_rule *rule, const struct xdp_cuckoo_matched *matched, void *list)
		{
			char text[XDP_CUCKOO_TEXT_BYTES];

			xdp_cuckoo_format(rule, text, sizeof(text));
			printf("%s %s: %" PRIu64 " packets, %" PRIu64 " bytes\n", (char *)list, text, matched->packets, matched->bytes);
			return 0;
		}

		/* STATE SAMPLES LIST... */
		int main(int argc, char **argv)
		{
			struct pollfd file = { .events = POLLIN };
			struct xdp_cuckoo_sampled sampled;
			struct xdp_cuckoo_filter *filter;
			int left = atoi(argv[2]), error = xdp_cuckoo_open(NULL, argv[1], XDP_CUCKOO_READ, &filter);

			setlinebuf(stdout);
			if (!error)
				error = xdp_cuckoo_samples_open(filter, 1, 1000000, &file.fd);
			if (!error)
				puts("ready");
			while (!error && left && poll(&file, 1, 60000) == 1)
				error = xdp_cuckoo_samples_read(filter, show, &left);
			if (error < 0 || xdp_cuckoo_samples_counts(filter, &sampled) || xdp_cuckoo_samples_close(filter)) {
				fprintf(stderr, "%s\n", xdp_cuckoo_error(filter));
				return 1;
			}
			printf("seen %" PRIu64 " limited %" PRIu64 " lost %" PRIu64 "\n", sampled.seen, sampled.limited, sampled.lost);
			for (int i = 3; i < argc; i++)
				if (xdp_cuckoo_each_counted(filter, strcmp(argv[i], "hand") ? argv[i] : "", show_counts, argv[i]))
					puts(xdp_cuckoo_error(filter));
			xdp_cuckoo_close(filter);
			return 0;
		}
	END
	# shellcheck disable=SC2046 # words
	compile "$STATE/samples.c" -D_DEFAULT_SOURCE $(pkg-config --libs xdp-cuckoo)
	xc load vrx >/dev/null
	printf '192.0.2.66\n2001:db8::/32\n' >"$STATE/feed"
	xc import --list feed "$STATE/feed" >/dev/null
	xc add 198.51.100.0/24 action monitor >/dev/null
	xc policy malformed drop >/dev/null
	start "$STATE/program" "$STATE/store" 5 feed hand none
	assert_fails 5 'listens' xc monitor --seconds 1
	# Its lease outlives 5 seconds, and a new table of the filter.
	sleep 6
	xc resize 300000 >/dev/null
	traffic <<-'END' >/dev/null || fail "verdicts"
		drop udp proto udp src 192.0.2.66 dst 10.99.0.2 sport 1 dport 2
		drop udp proto udp src 192.0.2.66 dst 10.99.0.2 sport 1 dport 3
		pass udp proto udp src 192.0.2.67 dst 10.99.0.2 sport 1 dport 2
		drop ipv6 proto tcp src 2001:db8::5 dst fd99::2 sport 5 dport 80
		pass trial proto udp src 198.51.100.9 dst 10.99.0.2 sport 1 dport 2
		drop malformed proto udp src 192.0.2.9 dst 10.99.0.2 sport 1 dport 2 broken malformed
	END
	wait "$STARTED" || fail "the program: $(cat "$STATE/said")"
	sed '/^seen\|:.*packets\|^no list/!d' "$STATE/seen" >"$STATE/counts"
	grep -v '^ready\|^seen\|packets\|^no list' "$STATE/seen" | sort >"$STATE/samples"
	diff - "$STATE/samples" <<-'END' || fail "samples"
		: dropped by policy (malformed) , 58 of 58 bytes, type 0800
		proto tcp src 2001:db8::5 sport 5 dst fd99::2 dport 80: dropped by rule (drop-rule) src 2001:db8::/32, 90 of 90 bytes, type 86dd
		proto udp src 192.0.2.66 sport 1 dst 10.99.0.2 dport 2: dropped by rule (drop-rule) src 192.0.2.66, 58 of 58 bytes, type 0800
		proto udp src 192.0.2.66 sport 1 dst 10.99.0.2 dport 3: dropped by rule (drop-rule) src 192.0.2.66, 58 of 58 bytes, type 0800
		proto udp src 198.51.100.9 sport 1 dst 10.99.0.2 dport 2: would drop by rule (monitor-rule) src 198.51.100.0/24 action monitor, 58 of 58 bytes, type 0800
	END
	diff - "$STATE/counts" <<-'END' || fail "counts"
		seen 5 limited 0 lost 0
		feed src 192.0.2.66: 2 packets, 116 bytes
		feed src 2001:db8::/32: 1 packets, 90 bytes
		hand src 198.51.100.0/24 action monitor: 1 packets, 58 bytes
		no list 'none'
	END
}

test_a_program_in_python() {
	command -v $PYTHON >/dev/null || skip "python3 is not installed"
	install_library
	silence
	xc load vrx >/dev/null
	xc add 192.0.2.1 >/dev/null
	xc add 192.0.2.2 >/dev/null
	xc add 203.0.113.1 >/dev/null
	xc add 2001:db8::1 >/dev/null
	xc add 2001:db8::2 >/dev/null
	start $PYTHON user/integrations/examples/escalate.py 2 "$STATE/store"
	assert_verdict drop 192.0.2.1 203.0.113.1 2001:db8::1 pass 192.0.2.9 2001:db8::9
	assert_verdict drop 192.0.2.2 2001:db8::2
	wait_for "the network's rule" xc test 192.0.2.9
	wait_for "the IPv6 network's rule" xc test 2001:db8::9
	assert_verdict drop 192.0.2.9 192.0.2.10 2001:db8::9 pass 203.0.113.2
	kill -INT "$STARTED"
	wait "$STARTED" || fail "the program: $(cat "$STATE/said")"
	diff - "$STATE/seen" <<-'END' || fail "counts"
		watching
		192.0.2.0/24: 2 packets, 116 bytes
		2001:db8::/48: 1 packets, 78 bytes
	END
	assert_shows '^escalated +2 ' xc lists
	assert_status 0 xc lists delete escalated
	assert_verdict drop 192.0.2.1 pass 192.0.2.9
	echo x >"$STATE/file"
	assert_fails 1 '^escalate: store .*/file/default: ' env LD_LIBRARY_PATH="$STATE/root/opt/xc/lib" \
		$PYTHON user/integrations/examples/escalate.py 2 "$STATE/file"
}

passes_again() {
	! xc test 192.0.2.9
}

# When the rule of a network has ended, the program blocks the network again.
test_a_program_in_python_goes_on() {
	command -v $PYTHON >/dev/null || skip "python3 is not installed"
	install_library
	silence
	xc load vrx >/dev/null
	xc add 192.0.2.1,192.0.2.2 >/dev/null 2>&1
	sed 's/^BLOCKED_MS = .*/BLOCKED_MS = 5000/' user/integrations/examples/escalate.py >"$STATE/escalate.py"
	start $PYTHON "$STATE/escalate.py" 2 "$STATE/store"
	for which in first second; do
		assert_verdict drop 192.0.2.1 192.0.2.2
		wait_for "the $which rule" xc test 192.0.2.9
		wait_for "the end of the $which rule" passes_again
	done
}

test_the_archive_will_do() {
	install_library
	rm "$STATE/root/opt/xc/lib/libxdp-cuckoo.so"
	# shellcheck disable=SC2046 # words
	compile user/integrations/examples/detector.c -L"$STATE/root/opt/xc/lib" -lxdp-cuckoo -pthread $(pkg-config --libs libbpf lmdb libmnl)
	assert_equal '' "$(readelf -d "$STATE/program" | grep libxdp-cuckoo)" "the shared library"
	run sh -c "for i in 1 2; do echo 192.0.2.1; done | nsenter --net=/run/netns/$RX $STATE/program 1 $STATE/store"
	assert_equal 0 "$STATUS" "status"
	assert_status 0 xc test 192.0.2.1
}

run_tests "$0" "$@"
