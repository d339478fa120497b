#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The secret that keys are hashed under never leaves the kernel's memory: no output, no file, no core dump
# has it, and no binary lacks what the compiler and linker do against those who would look for it.
. tests/lib.sh

SECRET_AT=256 # in the config: that of table 0
SECRET_BYTES=304

# config_map: the id of the running filter's config map.
config_map() {
	for map in $(maps_of "$(program_of vrx)"); do
		bpftool map show id "$map" | grep -q 'name xc_config ' && echo "$map"
	done
}

# keep_secret: appends the running filter's hash key, raw, to $STATE/secrets.
keep_secret() {
	bpftool -j map dump id "$(config_map)" | $PYTHON -c '
import json, sys
at, count = int(sys.argv[1]), int(sys.argv[2])
value = json.load(sys.stdin)[0]["value"]
secret = bytes(int(byte, 16) for byte in value[at:at + count])
assert len(set(secret)) > 64, "no secret"
sys.stdout.buffer.write(secret)' "$SECRET_AT" "$SECRET_BYTES" >>"$STATE/secrets"
}

# finds_secret FILE...: whether a word of the key is there: raw, in hexadecimal, as a number, or in base64.
finds_secret() {
	$PYTHON - "$STATE/secrets" "$@" <<-'END'
		import base64, re, struct, sys
		secrets = open(sys.argv[1], "rb").read()
		files = [(name, open(name, "rb").read()) for name in sys.argv[2:]]
		needles = set()
		for at in range(0, len(secrets), 8):
		    word = secrets[at:at + 8]
		    number = struct.unpack("<Q", word)[0]
		    needles |= {word, b"%d" % number, b"%d" % struct.unpack("<q", word)[0]}
		    needles |= {digits.encode() for digits in (word.hex(), word[::-1].hex())}
		    # Three bytes are four letters: of words at all three places within them.
		    for before in range(3):
		        letters = base64.b64encode(b"x" * before + word)
		        needles.add(letters[4 * bool(before):][:8])
		pattern = re.compile(b"|".join(re.escape(needle) for needle in sorted(needles)))
		found = False
		for name, content in files:
		    # Digits may be written in capitals, or with something between two of them.
		    squeezed = re.sub(rb"(?:0x)?([0-9a-f]{2})[ ,:\"\n]+(?:0x)?", rb"\1", content.lower())
		    for text in content, content.lower(), squeezed:
		        match = pattern.search(text)
		        if match:
		            print(name, match.group())
		            found = True
		sys.exit(not found)
	END
}

# The search must find a key that is there; otherwise it proves nothing.
finds_what_is_there() {
	printf 'innocent\n' >"$STATE/planted"
	finds_secret "$STATE/planted" && fail "found where there is none"
	for planted in cat 'base64 -w 0' 'od -An -t u8 -w8' 'od -An -t x8 -w8' 'od -An -t x1' \
		"od -An -t x1 | tr -d ' \\n'" "od -An -t x1 | tr -d ' \\n' | tr a-f A-F" "od -An -t x1 | tr ' ' ,"; do
		tail -c +25 "$STATE/secrets" | head -c 32 | eval "$planted" >"$STATE/planted"
		finds_secret "$STATE/planted" >"$STATE/found" || fail "not found: $planted"
	done
}

# say ARGUMENT...: writes text, JSON and errors of a command to files.
said=0
say() {
	for json in '' --json; do
		said=$((said + 1))
		# shellcheck disable=SC2086 # an option, or none
		xc $json "$@" >"$STATE/said.$said" 2>&1 </dev/null || [ $? -lt 126 ] || fail "$*: ended by a signal"
	done
}

test_no_output_and_no_file_has_it() {
	printf '192.0.2.1\n2001:db8::1\n10.0.0.0/8 dport 53 proto udp\n' >"$STATE/list"
	say load vrx
	keep_secret
	say import "$STATE/list" --force
	say add 192.0.2.7 timeout 1h comment x
	say test 192.0.2.7
	say list
	say list --counters
	say status
	say stats
	say policy
	say check
	for format in text ipset nft csv; do
		say export - --format "$format"
	done
	say export "$STATE/exported"
	say bench --seconds 1
	say resize 50000
	keep_secret
	say monitor-only on
	say panic
	say confirm
	say expire
	say del 192.0.2.7
	say load nosuch
	say add nonsense
	say resize 99999999999
	say batch "$STATE/list"
	say help load
	say version
	say flush
	say unload vrx
	finds_what_is_there
	finds_secret "$STATE"/said.* "$STATE"/store/default/* "$STATE/exported" && fail "the secret is there"
	assert_equal $((2 * SECRET_BYTES)) "$(wc -c <"$STATE/secrets")" "bytes of two secrets"
	[ "$(head -c "$SECRET_BYTES" "$STATE/secrets" | md5sum)" != "$(tail -c "$SECRET_BYTES" "$STATE/secrets" | md5sum)" ] ||
		fail "the new table has the secret of the old one"
}

needs_usual_build() {
	[ -z "${CFLAGS+x}${LDFLAGS+x}" ] || skip "built with other CFLAGS or LDFLAGS"
	[ "$TOOL" = "$BUILD/xdp-cuckoo" ] || skip "another build of the tool"
}

# The dump has every kind of memory except the maps, which the kernel leaves out. So this test finds copies of the key.
test_no_core_dump_has_it() {
	needs_usual_build
	[ "$(cat /proc/sys/kernel/core_pattern)" = core ] || skip "core dumps do not go to the working directory"
	xc load vrx >/dev/null
	keep_secret
	mkfifo "$STATE/feed"
	tool=$PWD/$TOOL
	(
		cd "$STATE" || exit
		# shellcheck disable=SC3045 # dash has it
		ulimit -c unlimited
		echo 0x7f >/proc/self/coredump_filter
		exec nsenter --net="/run/netns/$RX" "$tool" --state "$STATE/store" batch "$STATE/feed" >"$STATE/acknowledged"
	) &
	batch=$!
	exec 3>"$STATE/feed"
	echo 'add 192.0.2.1' >&3
	wait_for "an acknowledgement" test -s "$STATE/acknowledged"
	kill -ABRT "$batch"
	wait "$batch" || :
	exec 3>&-
	core=$(find "$STATE" -maxdepth 1 -name 'core*')
	[ -s "$core" ] || fail "no core dump"
	grep -q xc_config "$core" || fail "a core dump without the tool's memory"
	finds_secret "$core" && fail "the secret is there"
	:
}

test_the_binary_is_hardened() {
	command -v readelf >/dev/null || skip "readelf is not installed"
	needs_usual_build
	readelf -W -h -l -d --dyn-syms "$TOOL" >"$STATE/elf"
	for pattern in 'Type: +DYN' 'GNU_RELRO' 'FLAGS_1.*NOW.*PIE' 'FUNC.* __stack_chk_fail' 'FUNC.* __snprintf_chk'; do
		grep -Eq "$pattern" "$STATE/elf" || fail "not there: $pattern"
	done
	grep -q 'GNU_STACK.* RW ' "$STATE/elf" || fail "an executable stack"
}

# The tool reads only SSH_CONNECTION, TERM, NO_COLOR, NOTIFY_SOCKET and SUDO_UID, and nothing if the binary has privileges of its own.
test_no_program_is_run_and_no_environment_trusted() {
	command -v readelf >/dev/null || skip "readelf is not installed"
	needs_usual_build
	readelf -W --dyn-syms "$TOOL" >"$STATE/symbols"
	grep -q ' UND secure_getenv' "$STATE/symbols" || fail "no symbols"
	grep -v ' execveat@' "$STATE/symbols" | grep -E ' UND (exec|fexec|system|popen|posix_spawn|getenv|putenv)' && fail "called"
	assert_equal 6 "$(find user -name '*.c' -exec grep -h 'secure_getenv(' {} + | wc -l)" "variables"
	# The tool starts the other programs, in one place.
	assert_equal '		execveat(folder, programs[number].name, words, environ, 0);' "$(find user -name '*.c' -exec grep -hE '\<(f?exec[vl][a-z]*|system|popen)[(]' {} +)" "programs that are run"
}

run_tests "$0" "$@"
