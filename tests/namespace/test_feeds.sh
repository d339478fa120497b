#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Lists by URL, from a provider in the namespace that also misbehaves. Whatever it does: the old list stays, there is one
# clear line, and status, lists and metrics show it until a fetch succeeds.
# Takes minutes.
. tests/lib.sh

PORT=8443
PLAIN=8080
OTHER=8444 # the provider's certificate is for another host there

# certificates: an authority, a certificate for 127.0.0.1, and one for another address.
certificates() {
	mkdir "$STATE/tls"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$STATE/tls/ca.key" -out "$STATE/tls/ca.crt" -days 2 \
		-subj '/CN=an authority of the test' 2>/dev/null
	for address in 127.0.0.1 192.0.2.1; do
		openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$STATE/tls/$address.key" -out "$STATE/tls/csr" \
			-subj "/CN=$address" 2>/dev/null
		echo "subjectAltName=IP:$address" >"$STATE/tls/ext"
		openssl x509 -req -in "$STATE/tls/csr" -CA "$STATE/tls/ca.crt" -CAkey "$STATE/tls/ca.key" \
			-CAcreateserial -days 2 -extfile "$STATE/tls/ext" -out "$STATE/tls/$address.crt" 2>/dev/null
	done
}

# serve PORT ADDRESS [PLAIN_PORT]: with the certificate of the address. Not by in_rx: $! must be the server.
serve() {
	rm -f "$STATE/www/ready.$1"
	# shellcheck disable=SC2086 # one word or none
	nsenter --net="/run/netns/$RX" $PYTHON tests/helpers/feed_server.py "$STATE/www" "$1" "$STATE/tls/$2.crt" "$STATE/tls/$2.key" ${3:-} \
		>"$STATE/server" 2>&1 &
	PROVIDER=$!
	on_exit "kill -9 $! 2>/dev/null; wait $! 2>/dev/null"
	WAIT_LOG=$STATE/server wait_for "a provider" [ -e "$STATE/www/ready.$1" ]
}

provider() {
	command -v openssl >/dev/null || skip "no openssl"
	$PYTHON -c 'import ctypes; ctypes.CDLL("libcurl.so.4")' 2>/dev/null || skip "no libcurl.so.4"
	mkdir "$STATE/www"
	certificates
	serve "$PORT" 127.0.0.1 "$PLAIN"
	publish 1 2 3
}

# publish N...: the file `list` of the provider.
publish() {
	printf '203.0.113.%s\n' "$@" >"$STATE/www/list.new"
	mv "$STATE/www/list.new" "$STATE/www/list"
}

# configure URL_OR_PATH [LINE...]: the list `feed` comes from there.
configure() {
	case $1 in
	*://*) configured_url=$1 ;;
	*) configured_url=https://127.0.0.1:$PORT/$1 ;;
	esac
	shift
	printf '%s\n' '[filter]' 'interfaces = vrx' '[list feed]' "url = $configured_url" "$@" >"$STATE/conf"
	case $configured_url in https:*) echo "ca = $STATE/tls/ca.crt" >>"$STATE/conf" ;; esac
}

refresh() {
	xc refresh --config "$STATE/conf" "$@"
}

# listed: the last bytes of the rules of the feed.
listed() {
	xc list --list feed | sed 's/^src 203\.0\.113\.//' | tr '\n' ' ' | sed 's/ $//'
}

# requests: how many the provider had.
requests() {
	grep -c . "$STATE/www/log"
}

# refused PATTERN [STATUS]: the fetch fails with one line like this, and nothing has changed.
refused() {
	assert_fails "${2:-3}" "^xdp-cuckoo: list 'feed', .*$1.*; it keeps its 3 rules\$" refresh feed
	assert_equal 1 "$(grep -c . "$STATE/err")" "lines of the failure"
	assert_equal '1 2 3' "$(listed)" "rules"
	assert_shows "^feed +3 .*$1" xc lists
	assert_shows "^failed fetches:.*feed: .*$1" xc status
}

# fetched N...: a list that was fetched once.
fetched() {
	xc load vrx >/dev/null 2>&1
	provider
	configure list
	assert_shows '^feed: added 3, removed 0; 3 rules$' refresh
	assert_equal '1 2 3' "$(listed)" "rules"
}

# A backup knows when the list was fetched, and what the provider said of it.
test_a_refresh_after_a_restore() {
	fetched
	xc lists --json >"$STATE/before"
	assert_status 0 xc backup "$STATE/b"
	assert_status 0 xc lists delete feed
	assert_status 0 xc restore "$STATE/b"
	xc lists --json | diff "$STATE/before" - || fail "the feed is not as it was"
	assert_status 0 refresh
	assert_equal 1 "$(requests)" "requests"
	assert_shows '^feed: not modified; 3 rules$' refresh feed
	publish 1 3 4
	assert_shows '^feed: added 1, removed 1; 3 rules$' refresh feed
	assert_equal '1 3 4' "$(listed)" "rules"
	case_begin "a backup of a list that was changed by hand"
	assert_status 0 xc del 203.0.113.1 --list feed
	assert_status 0 xc add 203.0.113.77 --list feed
	assert_status 0 xc backup "$STATE/b"
	assert_status 0 xc restore "$STATE/b"
	assert_shows '^feed: added 1, removed 1; 3 rules$' refresh feed
	assert_equal '1 3 4' "$(listed)" "rules"
}

# Each way to be dead, for fetches of which each is killed.
# shellcheck disable=SC2016 # for eval
test_a_dead_provider_is_seen() {
	provider
	xc load vrx >/dev/null 2>&1
	right=$PROVIDER
	serve "$OTHER" 192.0.2.1
	PROVIDER=$right
	case_begin "the certificate of another"
	configure "https://127.0.0.1:$OTHER/list" 'every = 1m'
	again "$TOOL" --state "$STATE/store" refresh feed --force --config "$STATE/conf"
	wait_for "word of it" silence_is feed 1
	configure list 'every = 1m'
	for way in 'kill -STOP $PROVIDER|kill -CONT $PROVIDER' \
		'in_rx iptables -I INPUT -p tcp --dport $PORT -j DROP|in_rx iptables -F INPUT' 'kill -9 $PROVIDER|serve $PORT 127.0.0.1' \
		'kill -9 $PROVIDER; write_list hand 7; xc import "$STATE/hand" --list feed|:'; do
		case_begin "$way"
		wait_for "the source" silence_is feed 0
		eval "${way%|*}" >/dev/null 2>&1
		assert_silent feed 181
		eval "${way#*|}"
	done
}

# What is changed in such a list by hand is gone after the next fetch, so each command says so.
test_changes_by_hand() {
	fetched
	assert_notes "^note: the list 'feed' comes from a URL: its next fetch undoes this" xc add 203.0.113.77 --list feed
	assert_shows '^feed: added 0, removed 1; 3 rules$' refresh feed
	assert_notes "its next fetch undoes this" xc del 203.0.113.1 --list feed
	echo 203.0.113.77 >"$STATE/hand"
	assert_notes "its next fetch undoes this" xc import "$STATE/hand" --list feed
	assert_notes "its next fetch undoes this" xc flush feed
	assert_notes "^note: lists by URL come back with their next fetch: feed$" xc flush --force
	assert_status 0 xc add 203.0.113.77 --list other
	! grep 'fetch' "$STATE/err" || fail "no feed has that list"
}

test_fetch() {
	fetched
	flows drop 203.0.113.1 203.0.113.3 pass 203.0.113.4 | traffic || fail "packets meet other rules"
	assert_shows "^feed +3 .*https://127.0.0.1:$PORT/list" xc lists
	! xc status | grep -q 'failed fetches' || fail "status shows a failure"
	# It is not due, and says nothing. By its name it is fetched; the provider knows that nothing has changed.
	assert_status 0 refresh
	assert_equal '' "$(cat "$STATE/out" "$STATE/err")" "what it says"
	assert_equal 1 "$(requests)" "requests"
	assert_shows '^feed: not modified; 3 rules$' refresh feed
	assert_equal 2 "$(requests)" "requests"
	publish 1 3 4
	assert_shows '^feed: added 1, removed 1; 3 rules$' refresh feed
	assert_equal '1 3 4' "$(listed)" "rules"
	assert_shows '"result": "not modified"' refresh feed --json
	# Somebody else changes the list: all of it is fetched again.
	write_list other 7 8
	assert_status 0 xc import "$STATE/other" --list feed --replace
	assert_shows '^feed: added 3, removed 2; 3 rules$' refresh feed
	assert_status 0 xc flush --list feed
	assert_shows '^feed: added 3, removed 0; 3 rules$' refresh feed
	# Other options are another list.
	configure list 'action = monitor'
	assert_shows '^feed: added 3, removed 3; 3 rules$' refresh
	flows pass 203.0.113.1 | traffic || fail "a monitor rule drops"
}

test_good_answers() {
	fetched
	configure moved
	assert_shows '^feed: added 0' refresh feed
	configure gzip
	assert_shows '^feed: added 0' refresh feed
	configure closed
	assert_shows '^feed: added 0' refresh feed
	configure "http://127.0.0.1:$PLAIN/to-tls"
	echo "ca = $STATE/tls/ca.crt" >"$STATE/ca"
	assert_fails 3 'certificate' refresh feed
	configure 'list?key=secret'
	assert_status 0 refresh feed
	! xc lists | grep -q secret || fail "lists shows a secret"
	configure list "sha256-url = https://127.0.0.1:$PORT/sha256"
	publish 1 2 4
	assert_shows '^feed: added 1, removed 1' refresh feed
	configure bad-line
	assert_notes "list 'feed': 1 bad line left out; the first: line 4: '203\.0\.113\.\?\[2J'" refresh feed
	configure control
	assert_status 0 refresh feed
	! xc lists | grep -q '[[:cntrl:]]' || fail "a control character of a header"
}

# Each of the answers says that nothing has changed. The rules must be renewed all the same.
test_unmodified_rules_do_not_end() {
	fetched
	configure list 'timeout = 66m'
	for shift in 0 1000 1900 2900 3800 4700 5600; do
		at() {
			in_rx env LD_PRELOAD="$PWD/$HELPERS/clock_shift.so" CLOCK_SHIFT_S="$shift" BOOT_SHIFT_S="$shift" \
				"$TOOL" --state "$STATE/store" "$@"
		}
		assert_status 0 at refresh feed --config "$STATE/conf"
		assert_equal 3 "$(at list --list feed | grep -c timeout)" "rules"
	done
	grep -q '^/list "' "$STATE/www/log" || fail "the provider was never asked whether the list has changed"
}

test_bad_answers() {
	fetched
	serve "$OTHER" 192.0.2.1
	while read -r path pattern; do
		case_begin "$path"
		configure "$path" 'fetch-time = 2s'
		refused "$pattern"
	done <<-END
		slow timed out
		truncated bytes remaining
		cut ends within a line.* may be cut
		too-short 1 rules instead of 3: it lost more than max-shrink.*; if it is meant: xdp-cuckoo refresh feed --force
		304 the server answers 304
		429 429: this host comes too often; it asks to wait for 7200 s
		503 503: it has a problem; it asks to wait for (7200|71[0-9][0-9]) s
		loop [Rr]edirects
		to-plain redirects from https to http
		to-file redirects to a URL that is not http or https
		empty it is empty
		html a page of HTML
		text 3 bad lines and 1 rules: it is no list; the first: line 1: 'Sorry
		zip a zip archive
		gz a gzip file
		bad-gzip gzip data is damaged or incomplete
		short-gzip gzip data is damaged or incomplete
		long-gzip gzip data is damaged or incomplete
		brotli Content-Encoding is 'br', not gzip
		huge-line line 1 is longer than 65536 bytes
		header headers?
		missing 404: there is no such page
		https://127.0.0.1:$OTHER/list [Cc]ertificate
		https://127.0.0.1:1/list [Cc]onnect
		https://no.such.invalid/list [Rr]esolve
		http://127.0.0.1:$PORT/list (Empty reply|[Rr]eset|0\.9)
	END
	case_begin 'a large list'
	configure bomb
	refused 'larger than 128 MiB'
	configure endless
	refused 'larger than 128 MiB|timed out'
	case_begin 'a hash'
	configure list "sha256-url = https://127.0.0.1:$PORT/bad-sha256"
	refused 'SHA-256 is [0-9a-f]{64}, and not what sha256-url says'
	configure list "sha256-url = https://127.0.0.1:$PORT/missing"
	refused 'its sha256-url: the server answers 404'
	configure list "sha256-url = https://127.0.0.1:$PORT/list"
	refused 'its sha256-url has no hash'
	case_begin 'a pinned key'
	configure list 'pinned-key = sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
	refused 'public key'
	case_begin 'an authority'
	configure list
	sed -i '/^ca =/d' "$STATE/conf"
	refused '[Cc]ertificate'
	case_begin 'limits'
	configure list 'max-rules = 2'
	refused 'more rules than max-rules = 2'
	configure pass 'strict = yes'
	refused 'a pass rule'
	# The provider is well again.
	configure list
	assert_status 0 refresh feed
	! xc status | grep -q 'failed fetches' || fail "status shows a failure that is over"
}

# A list may name this host's own address or network. The rest of the list is in force, and the fetch says what is not.
# A rule that is left out enters later, if it does no harm then.
test_rules_that_would_lock_out_are_left_out() {
	fetched
	printf '%s\n' 203.0.113.1 203.0.113.4 10.99.0.2 10.99.0.0/16 >"$STATE/www/list"
	assert_notes "list 'feed': left out 2 rules that would lock this host out; the first: 'src 10.99.* would block .*; to have it" \
		refresh feed
	assert_output '^feed: added 1, removed 2; 2 rules$'
	assert_shows '"left_out": 2' xc lists --json
	write_list hand 1 4
	sleep 1 # the time of an import has seconds
	assert_status 0 xc import "$STATE/hand" --list feed
	assert_shows '"left_out": 0' xc lists --json
	assert_status 0 refresh feed
	assert_shows '"left_out": 2' xc lists --json
	flows drop 203.0.113.1 203.0.113.4 pass 203.0.113.3 10.99.0.1 | traffic || fail "packets meet other rules"
	# The list has not changed, but this host: now a pass rule protects its address.
	assert_status 0 xc add 10.99.0.0/24 action pass
	assert_shows '^feed: added 2, removed 0; 4 rules$' refresh feed
	! grep 'left out' "$STATE/err" || fail "still left out"
	assert_shows '"left_out": 0' xc lists --json
	flows drop 10.99.7.1 pass 10.99.0.1 | traffic || fail "packets meet other rules"
	assert_shows '^feed: not modified; 4 rules$' refresh feed
	# A rule for half of all addresses is a mistake. So is a list that has one.
	publish 1 4
	assert_status 0 refresh feed
	assert_status 0 xc del 10.99.0.0/24 action pass
	printf '%s\n' 203.0.113.1 203.0.113.4 0.0.0.0/1 >"$STATE/www/list"
	configure list 'max-space = 100%'
	assert_fails 3 "'src 0.0.0.0/1' would block .*; nothing was changed; first: .*; it keeps its 2 rules" refresh feed
	# Where it is meant: force = yes.
	printf '%s\n' 203.0.113.1 10.99.0.2 >"$STATE/www/list"
	configure list 'force = yes'
	assert_shows '^feed: added 1, removed 1; 2 rules$' refresh feed
	configure empty 'force = yes'
	assert_fails 3 'lost more than max-shrink' refresh feed
	assert_shows '^feed: added 0, removed 2; 0 rules$' refresh feed --force
}

# A list that would block a large part of the Internet is refused, whatever its lines look like.
test_a_list_covers_little_of_the_internet() {
	fetched
	insist='; if it is meant: xdp-cuckoo refresh feed --force'
	while IFS='|' read -r what lines pattern; do
		case_begin "$what"
		eval "$lines" >"$STATE/www/large"
		configure large
		refused "$pattern.*$insist"
	done <<-'END'
		half of IPv4|seq -f 8.8.%.0f.1 0 255; echo 128.0.0.0/1|it covers [45][0-9]\.[0-9]% of the public IPv4 addresses, more than max-space = 5%
		many /8|seq -f %.0f.0.0.0/8 1 222 | sed '/^127/d'|it covers 9[0-9]\.?[0-9]*% of the public IPv4
		nested|seq -f 20.%.0f.0.0/16 0 255; echo 20.0.0.0/8; seq -f %.0f.0.0.0/8 30 50|it covers 9\.97% of the public IPv4
		IPv6 in use|printf '%s::/12\n' 2400 2600 2a00 2c00|it covers 49\.[0-9]% of the public IPv6 addresses, more than max-space = 5%
		ten busy /8|seq -f %.0f.0.0.0/8 60 69|'src 6[0-9].0.0.0/8' alone is 0\.45[0-9]% of the public addresses, and one line may have 0.25% unless max-space is above 5%
		a line of IPv6|echo 2a00::/17|'src 2a00::/17' alone is 0\.38[0-9]% of the public addresses
		destinations|printf 'dst %s\n' 16.0.0.0/4 32.0.0.0/4|it covers 14\.5% of the public IPv4
		one port|echo 128.0.0.0/1 dport 443|it covers [45][0-9]
		rates|seq -f '9.9.9.%.0f rate 1/s' 0 255; seq -f '9.9.8.%.0f rate 1/s' 0 255; echo 9.9.7.1 rate 1/s|more than 512 of its rules have a rate
		kinds|for p in '' 'proto tcp'; do for s in '' 'sport 1' 'dport 1' 'sport 1 dport 1'; do for d in '' 'dst 9.9.9.1'; do for n in '' 'state new'; do for l in '' 'length 40'; do echo "src 9.9.9.9 $p $s $d $n $l"; done; done; done; done; done|it has more than 56 kinds of rule
		growth|for i in 0 1 2 3 4; do seq -f "9.9.$i.%.0f" 0 255; done|1280 rules instead of 3: it grew by more than max-grow = 400%
	END
	# Nested prefixes count once, and addresses that are not public do not count at all.
	{ echo 8.0.0.0/8; for i in 0 1 2 3; do seq -f "8.$i.%.0f.0/24" 0 255; done; } >"$STATE/www/large"
	configure large 'max-space = 6%' 'max-grow = 100000%'
	assert_shows '^feed: added 1025, removed 3; ' refresh feed
	printf '%s\n' 10.98.0.0/16 172.20.0.0/14 240.0.0.0/4 198.18.0.0/15 100.64.0.0/10 fd12::/16 4000::/3 3fff::/16 2001:6000::/19 2001:c000::/18 2c00::/19 >"$STATE/www/large"
	configure large 'max-space = 0%' 'max-shrink = 100%'
	assert_fails 3 'it covers 0\.09[0-9]*% of the public IPv6 addresses' refresh feed
	sed -i /2c00/d "$STATE/www/large"
	assert_shows '^feed: added 10, removed 1025; ' refresh feed
	# What is meant.
	publish 1 2 3
	echo 64.0.0.0/4 >>"$STATE/www/list"
	configure list 'max-shrink = 100%'
	assert_fails 3 'it covers 7\.25%' refresh feed
	assert_shows '^feed: added 4' refresh feed --force
	echo 64.0.0.0/4 >"$STATE/www/list"
	configure list 'max-shrink = 100%' 'max-space = 8%'
	assert_shows '^feed: added 0, removed 3' refresh feed
}

# Such a line costs only itself.
test_lines_that_hold_for_too_much() {
	fetched
	printf '%s\n' 203.0.113.1 203.0.113.2 203.0.113.5 203.0.113.6 203.0.113.7 'dport 443' 'proto sctp' 0.0.0.0/0 ::/0 203.0.113.4 11.0.0.0/8 12.0.0.0/7 2400::/16 >"$STATE/www/list"
	configure list 'min-prefix = 8 32' 'max-space = 50%'
	assert_notes '6 bad lines left out; the first: line 6: it names no address, so it holds for all; to allow it: max-space = 100%' refresh feed
	assert_output '^feed: added 5, removed 1; 7 rules'
	configure list 'max-space = 100%'
	assert_fails 3 'would block .*; nothing was changed' refresh feed
	sed -i '/\/0$/d' "$STATE/www/list"
	assert_status 0 refresh feed
	assert_shows '^dport 443$' xc list --list feed
	seq -f '9.9.9.%.0f timeout 1s' 0 9 >"$STATE/www/ends"
	configure ends
	assert_fails 3 '10 bad lines and 0 rules: it is no list; the first: line 1: its timeout ends before the next fetch' refresh feed
	# --force is about the whole, not about lines.
	configure list
	assert_notes '2 bad lines' refresh feed --force
	! xc list --list feed | grep dport || fail "a rule for a whole service"
}

# What real lists cover is far from that. They have bogons, which do not count.
test_real_lists_fit() {
	[ -e "$LISTS/firehol_level1.netset" ] || skip "no blocklists in $LISTS"
	fetched
	while read -r name options; do
		case_begin "$name"
		cp "$LISTS/$name" "$STATE/www/list"
		configure list 'max-shrink = 100%' 'max-grow = 1000000%'
		assert_status "$options" refresh feed
	done <<-END
		firehol_level1.netset 0
		firehol_level4.netset 0
		spamhaus_drop.netset 0
		stopforumspam_180d.ipset 0
		country_us.netset 3
		all_but_de.netset 3
	END
}

# A provider may not ask this host for what only this host can reach, unless it is there itself.
test_redirects_within() {
	fetched
	in_rx ip address add 192.0.2.80/32 dev lo
	in_rx ip address add 169.254.1.1/32 dev lo
	configure "http://127.0.0.1:$PLAIN/to-link-local"
	assert_shows '^feed: added 0' refresh feed
	for path in to-link-local to-tls; do
		configure "http://192.0.2.80:$PLAIN/$path"
		refused 'it redirects to an address that is (link-local|loopback), which is not followed'
	done
	configure "http://192.0.2.80:$PLAIN/list"
	assert_shows '^feed: added 0' refresh feed
}

# What the configuration says now holds, and so does what the list has now, even if the provider has nothing newer.
test_not_modified_is_not_enough() {
	fetched
	for line in 'max-rules = 2' 'max-space = 0%' "sha256-url = https://127.0.0.1:$PORT/missing"; do
		printf '%s\n' 8.8.8.8 9.9.9.9 1.1.1.1 >"$STATE/www/list"
		configure list
		assert_status 0 refresh feed
		configure list "$line"
		assert_status 3 refresh feed
	done
	publish 1 2 3
	configure list
	assert_status 0 refresh feed
	assert_status 0 xc del 203.0.113.2
	assert_status 0 xc add 203.0.113.77 --list feed
	assert_shows '^feed: added 1, removed 1; 3 rules' refresh feed
	assert_equal '1 2 3' "$(listed)" rules
}

# silent_lists N [LINE...]: N lists whose server says nothing, then those that the lines configure.
silent_lists() {
	printf '%s\n' '[filter]' 'interfaces = vrx' >"$STATE/conf"
	for n in $(seq "$1"); do
		printf '%s\n' "[list silent$n]" "url = http://127.0.0.1:$PLAIN/silent$n" 'fetch-time = 10m' >>"$STATE/conf"
	done
	shift
	printf '%s\n' "$@" >>"$STATE/conf"
}

# The test waits for the good list only while the other fetches, which last 60 s, are at work.
test_slow_servers_do_not_hold_up_others() {
	xc load vrx >/dev/null 2>&1
	provider
	silent_lists 5 '[list good]' "url = http://127.0.0.1:$PLAIN/list"
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" refresh --config "$STATE/conf" >"$STATE/slow" 2>&1 &
	parent=$!
	on_exit "kill $parent 2>/dev/null; wait $parent 2>/dev/null"
	wait_for "the good list" xc test 203.0.113.3
	kill -0 "$parent" || fail "the other fetches have ended"
	# A service that is stopped ends at once. That is no fault of the providers.
	kill -TERM "$parent"
	wait "$parent" && fail "status 0"
	grep -q "silent1': interrupted" "$STATE/slow" || fail "$(cat "$STATE/slow")"
	! xc status | grep 'failed fetches' || fail "a failure"
}

# A refresh that is stopped takes back only its own note, not what another refresh has noted meanwhile.
test_another_refresh_has_ended_meanwhile() {
	xc load vrx >/dev/null 2>&1
	provider
	silent_lists 1
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" refresh --config "$STATE/conf" >"$STATE/slow" 2>&1 &
	parent=$!
	on_exit "kill $parent 2>/dev/null; wait $parent 2>/dev/null"
	wait_for "a fetch" sh -c "[ \$(pgrep -u nobody -P $parent | grep -c .) -eq 1 ]"
	printf '%s\n' '[list silent1]' "url = http://127.0.0.1:$PLAIN/list" >"$STATE/other"
	printf '%s\n' '[filter]' 'interfaces = vrx' >>"$STATE/other"
	assert_shows '^silent1: added 3' xc refresh --config "$STATE/other" --force
	kill -TERM "$parent"
	wait "$parent" && fail "status 0"
	assert_status 0 xc refresh --config "$STATE/other"
	assert_equal 1 "$(grep -c '^/list ' "$STATE/www/log")" "fetches: the next is not due"
}

# The import is interrupted, and with it all of refresh: no list counts as failed, and the others are not touched.
test_an_import_is_interrupted() {
	xc load vrx >/dev/null 2>&1
	provider
	for i in $(seq 60); do seq -f "2001:db8:$i:%g::1" 1 9999; done >"$STATE/www/list"
	silent_lists 2 '[list large]' "url = http://127.0.0.1:$PLAIN/list"
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" refresh --config "$STATE/conf" >"$STATE/slow" 2>&1 &
	parent=$!
	on_exit "kill $parent 2>/dev/null; wait $parent 2>/dev/null"
	# Of three processes that fetch, one has ended: its list is imported.
	wait_for "three fetches" sh -c "[ \$(pgrep -u nobody -P $parent | grep -c .) -eq 3 ]"
	wait_for "an import" sh -c "[ \$(pgrep -u nobody -P $parent | grep -c .) -eq 2 ]"
	kill -TERM "$parent"
	wait "$parent" && fail "status 0"
	grep -q "silent1': interrupted" "$STATE/slow" || fail "$(cat "$STATE/slow")"
	! xc status | grep 'failed fetches' || fail "a failure"
}

# refresh_trusting: in a view of the files in which the system trusts the authority of the test.
refresh_trusting() {
	in_rx unshare --mount sh -c 'mount --bind "$0" /etc/ssl/certs/ca-certificates.crt && exec "$@"' "$STATE/tls/ca.crt" \
		"$TOOL" --state "$STATE/store" refresh feed --config "$STATE/conf"
}

test_from_http_to_https_and_back() {
	[ -e /etc/ssl/certs/ca-certificates.crt ] || skip "no ca-certificates"
	fetched
	configure "http://127.0.0.1:$PLAIN/to-tls"
	assert_shows '^feed: added 0' refresh_trusting
	configure "http://127.0.0.1:$PLAIN/there-and-back"
	assert_fails 3 'redirects from https to http, which is not followed; it keeps its 3 rules$' refresh_trusting
}

# by_own FILE COMMAND...: with FILE as the filter's own configuration.
by_own() {
	[ -d "$STATE/etc" ] || cp -a /etc "$STATE/etc"
	mkdir -p "$STATE/etc/xdp-cuckoo"
	cp "$1" "$STATE/etc/xdp-cuckoo/default.conf"
	shift
	unshare --mount sh -c 'mount --bind "$1" /etc; shift; exec "$@"' sh "$STATE/etc" \
		nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" "$@"
}

# A feed that never worked is seen, too. A server that asks to wait is not asked again, but for --force.
test_a_server_asks_to_wait() {
	provider
	configure 429
	assert_fails 3 'this host comes too often; .*; it was never fetched$' refresh
	assert_shows '^feed +0 .*429' xc lists
	assert_equal 1 "$(requests)" "requests"
	assert_status 0 refresh
	assert_fails 1 "'feed': its provider allows the next fetch in (2h|1h5[0-9]m)[0-9ms]*; --force" refresh feed
	assert_equal 1 "$(requests)" "requests"
	assert_fails 3 'this host comes too often' refresh feed --force
	assert_equal 2 "$(requests)" "requests"
	assert_status 0 xc lists delete feed
	assert_equal '[]' "$(xc lists --json)" "lists"
	# A list that is not fetched any more has no failures, and is not waited for.
	assert_status 3 refresh
	xc load vrx >/dev/null 2>&1
	assert_status 1 xc status
	assert_output '^not fed: +feed: never'
	# A backup knows that, too.
	assert_status 0 xc backup "$STATE/b"
	assert_status 0 xc restore "$STATE/b"
	assert_status 1 xc status
	assert_output '^not fed: +feed: never'
	# Only the filter's own configuration says what is not fetched any more.
	printf '%s\n' '[filter]' 'interfaces = vrx' >"$STATE/conf"
	assert_status 0 refresh
	assert_status 1 xc status
	assert_status 0 by_own "$STATE/conf" refresh
	assert_status 0 xc status
	! grep -q 'failed fetches' "$STATE/out" || fail "status shows a list that the file does not name"
}

# ---- several files

RAW=raw.githubusercontent.com

# github: this host's provider of countries and networks by number, under the name that the presets have.
github() {
	xc load vrx >/dev/null 2>&1
	provider
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$STATE/tls/$RAW.key" -out "$STATE/tls/csr" -subj "/CN=$RAW" 2>/dev/null
	echo "subjectAltName=DNS:$RAW" >"$STATE/tls/ext"
	openssl x509 -req -in "$STATE/tls/csr" -CA "$STATE/tls/ca.crt" -CAkey "$STATE/tls/ca.key" -CAcreateserial -days 2 \
		-extfile "$STATE/tls/ext" -out "$STATE/tls/$RAW.crt" 2>/dev/null
	serve 443 "$RAW"
	echo "127.0.0.1 $RAW" >"$STATE/hosts"
}

# networks PATH FAMILY LINE...: what the provider has.
networks() {
	networks_file=$STATE/www/ipverse/$1/ipv$2-aggregated.txt
	mkdir -p "$(dirname "$networks_file")"
	shift 2
	printf '%s\n' '# a comment of the provider' "$@" >"$networks_file"
}

# refresh_github WORD...: in a view of the files in which the provider has its name.
refresh_github() {
	in_rx unshare --mount sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' "$STATE/hosts" \
		"$TOOL" --state "$STATE/store" refresh --config "$STATE/conf" "$@"
}

# names LINE...: the configuration of the list `feed`.
names() {
	printf '%s\n' '[filter]' 'interfaces = vrx' '[list feed]' "ca = $STATE/tls/ca.crt" "$@" >"$STATE/conf"
}

test_countries() {
	github
	for family in 4 6; do
		[ "$family" = 4 ] && net=198.51.100.0/24 || net=2001:db8:c::/48
		networks country-ip-blocks/master/country/cn "$family" "$net"
		networks as-ip-blocks/master/as/64496 "$family" "$net"
	done
	networks country-ip-blocks/master/country/ru 4 203.0.113.0/25
	networks as-ip-blocks/master/as/64497 6 2001:db8:d::/48
	names 'preset = country' 'country = cn, RU'
	assert_shows '^feed: added 3, removed 0; 3 rules$' refresh_github
	assert_prints "$(printf '%s\n' 'src 198.51.100.0/24 state new' 'src 203.0.113.0/25 state new' \
		'src 2001:db8:c::/48 state new')" xc list feed
	assert_shows '^feed +3 .* country CN RU' xc lists
	assert_equal 1 "$(cut -d' ' -f5 "$STATE/www/keys" | sort -u | grep -c .)" "connections"
	# The same networks again are no change.
	assert_shows '^feed: added 0, removed 0; 3 rules$' refresh_github feed --force
	assert_fails 1 'its provider allows the next fetch in (1d|23h)' refresh_github feed
	names 'preset = country' 'country = CN RU' 'new-only = no' 'action = monitor'
	assert_shows '^feed: added 3, removed 3; 3 rules$' refresh_github
	assert_shows '^src 198.51.100.0/24 action monitor$' xc list feed
	# What passes needs no `state new`.
	names 'preset = country' 'country = CN' 'action = pass' 'max-shrink = 100%'
	assert_status 0 refresh_github
	assert_shows '^src 198.51.100.0/24 action pass$' xc list feed
	names 'preset = asn' 'asn = AS64496 64497' 'max-shrink = 100%'
	assert_shows '^feed: added 3, removed 2; 3 rules$' refresh_github
	assert_shows '^feed +3 .* AS64496 AS64497' xc lists
	assert_shows '^src 2001:db8:d::/48 state new$' xc list feed
}

# As xdp-cuckoo.conf(5) says it, with a load that is not confirmed.
test_only_one_country() {
	github
	assert_status 0 xc unload vrx
	networks country-ip-blocks/master/country/de 4 198.51.100.0/24
	names 'preset = country' 'country = DE' 'action = pass'
	assert_status 0 xc add 10.99.0.0/24 action pass
	assert_status 0 xc add fe80::/10 action pass
	assert_status 0 refresh_github
	assert_status 0 xc policy no-rule drop --force
	assert_status 0 xc load vrx --confirm 10m
	assert_verdict pass 198.51.100.1 pass 10.99.0.1
	flows drop 203.0.113.1 pass 198.51.100.1 | traffic || fail "packets meet other rules"
	assert_status 0 xc confirm
}

# All files or none: whatever is wrong with one, the rules stay.
test_a_file_of_several_is_bad() {
	github
	networks country-ip-blocks/master/country/cn 4 198.51.100.0/24
	networks country-ip-blocks/master/country/ru 4 203.0.113.0/25
	names 'preset = country' 'country = CN RU'
	assert_status 0 refresh_github
	xc list >"$STATE/rules"
	networks country-ip-blocks/master/country/cn 4 198.51.100.0/23
	while IFS='|' read -r what config pattern; do
		case_begin "$what"
		eval "names $config"
		echo 'Sorry' >"$STATE/www/no-list"
		: >"$STATE/www/empty-file"
		assert_fails 3 "$pattern; it keeps its 2 rules" refresh_github feed
		xc list | diff "$STATE/rules" - || fail "the rules are not as they were"
	done <<-END
		a country that is not there|'preset = country' 'country = CN VA RU'|country CN VA RU: country VA: its provider has no networks of it, neither IPv4 nor IPv6
		an AS that is not there|'preset = asn' 'asn = 64999'|AS64999: its provider has no networks of it, neither IPv4 nor IPv6
		a URL that is not there|"url = https://127.0.0.1:$PORT/list https://127.0.0.1:$PORT/missing"|URL 2: the server answers 404: there is no such page
		a server that fails|"url = https://127.0.0.1:$PORT/503 https://127.0.0.1:$PORT/list"|URL 1: the server answers 503.*
		one that is no list|"url = https://127.0.0.1:$PORT/list https://127.0.0.1:$PORT/no-list"|URL 2: more bad lines than rules: it is no list; the first: URL 2, line 1: 'Sorry.*
		one that is empty|"url = https://127.0.0.1:$PORT/list https://127.0.0.1:$PORT/empty-file"|URL 2: it is empty
		HTML|"url = https://127.0.0.1:$PORT/list https://127.0.0.1:$PORT/html"|URL 2: it is a page of HTML.*
		time of the whole|"url = https://127.0.0.1:$PORT/list https://127.0.0.1:$PORT/silent" 'fetch-time = 1s'|URL 2: .*timed out.*
		rules of the whole|"url = https://127.0.0.1:$PORT/list https://127.0.0.1:$PORT/gzip https://127.0.0.1:$PORT/bad-line" 'max-rules = 2'|it has more rules than max-rules = 2
	END
	networks country-ip-blocks/master/country/cn 4 16.0.0.0/4
	networks country-ip-blocks/master/country/ru 4 32.0.0.0/4
	names 'preset = country' 'country = CN RU' 'max-space = 10%'
	assert_fails 3 'it covers 14\.5% of the public IPv4 addresses, more than max-space = 10%' refresh_github feed
	# One bad line costs itself.
	names "url = https://127.0.0.1:$PORT/list https://127.0.0.1:$PORT/bad-line"
	assert_notes "list 'feed': 1 bad line left out; the first: URL 2, line 4: '203" refresh_github feed
	assert_output '^feed: added 3, removed 2; 3 rules$'
	assert_shows "^feed +3 .* https://127.0.0.1:$PORT/list https://127.0.0.1:$PORT/bad-line" xc lists
	# What one of the servers says of its file is not true of the list.
	publish 1 2 3 4
	assert_shows '^feed: added 1, removed 0; 4 rules$' refresh_github feed
}

# Bogons of IPv6 contain the link-local addresses. The rest of their network is blocked, and the neighbours are not.
test_bogons_without_neighbours() {
	github
	in_rx ip -6 route replace default via fe80::1 dev vrx
	networks country-ip-blocks/master/country/cn 6 8000::/1 400::/6
	names 'preset = country' 'country = CN' 'new-only = no' 'max-space = 100%'
	assert_status 0 refresh_github feed
	assert_equal '8000::/2 c000::/3 e000::/4 f000::/5 400::/6 f800::/6 ff00::/8 fe00::/9 fec0::/10' \
		"$(xc list | sed 's/^src //' | sort -t/ -k2,2n | xargs)" "rules but fc00::/7, which has this host's address"
	flows drop 8000::1 c000::1 fe7f:ffff::1 fec0::1 pass fe80::1 febf:ffff::1 2001:db8::1 | traffic ||
		fail "packets meet other rules"
}

# JSON as providers of networks publish it. A name that they change costs nothing but the news.
test_json_by_a_path() {
	fetched
	json() { printf '{"n": 1, "prefixes": [{"p": "203.0.113.1"}, {"p": "203.0.113.2"},\n%s], "%s": ["%s"]}' "$@" >"$STATE/www/json"; }
	json '{"p": "203.0.113.x"}' v6 203.0.113.9
	configure json 'json = .prefixes[].p .v6[]'
	assert_notes "list 'feed': 1 bad line left out; the first: line 2: '203.0.113.x' is not" refresh feed
	assert_output '^feed: added 1, removed 1; 3 rules$'
	json '{"p": "203.0.113.3"}' ipv6 203.0.113.9
	assert_fails 3 "list 'feed', .*: it cannot be read to its end: line 2: '.v6\[\]' leads to no value; it keeps its 3 rules" \
		refresh feed
	assert_equal '1 2 9' "$(listed)" "rules"
	configure json 'json = .prefixes[].p .v6[]' 'force = yes'
	assert_shows '^feed: added 1, removed 1; 3 rules$' refresh feed
	assert_equal '1 2 3' "$(listed)" "rules"
	for path in html text json; do
		configure "$path" 'json = .x'
		refused "(page of HTML|: not JSON; not all|leads to no value)"
	done
	for words in 'json = x' 'json = .x .' 'json = .x[1]|preset = cins' 'json = .x|format = csv'; do
		configure json "$(echo "$words" | tr '|' '\n')"
		assert_fails 2 'json' refresh feed
	done
	# An allow list lets pass, and nothing else.
	configure json 'json = .prefixes[].p' 'action = pass'
	assert_shows 'added 3, removed 3' refresh feed --force
	assert_equal 3 "$(xc list | grep -c '^src 203.0.113.[123] action pass$')" "pass rules"
}

# The section comes behind all that the file has, or not at all.
test_lists_add() {
	fetched
	add() { xc lists add "$@" --config "$STATE/conf"; }
	printf '[filter]\ninterfaces = vrx # mine\n[list hand]\nfile = /nonexistent' >"$STATE/conf"
	chmod 640 "$STATE/conf"
	cp "$STATE/conf" "$STATE/before"
	url=http://127.0.0.1:$PLAIN/list
	while IFS='|' read -r status pattern words; do
		case_begin "$words"
		eval "assert_fails $status '$pattern' add $words"
		diff "$STATE/before" "$STATE/conf" || fail "the configuration has changed"
	done <<-END
		2|.list hand. is there twice|hand $url
		2|there is a list .feed. already|feed $url
		2|which list|
		2|which list|new
		2|with such a section has mistakes|.bad $url
		2|or --preset PRESET|new spamhaus-drop
		2|KEY=VALUE|new "\$(printf 'http://127.0.0.1/\nforce=yes')"
		2|every must be at least 1m|new $url every=1s
		2|unknown key .everi.|new $url everi=1h
		2|must have one of these|new $url --preset cins
		2|write also country|new --preset country
		2|no URL and no --preset|new file=/x
		2|KEY=VALUE|new $url '#foo=1'
		2|KEY=VALUE|new $url 'every=2h #x'
		2|control character|"\$(printf 'x]\nurl = http://a/\n[list y')" $url
		2|control character|new --preset "\$(printf 'cins\nforce = yes')"
		2|go with lists delete|new $url --dry-run
	END
	case_begin "a new list"
	assert_notes "wrote \[list new\] into $STATE/conf; to take it back" add new "$url" action=pass every=2h
	assert_output '^new: added 3, removed 0; 3 rules$'
	{ cat "$STATE/before" && printf '\n\n[list new]\nurl = %s\naction = pass\nevery = 2h\n' "$url"; } | diff - "$STATE/conf" ||
		fail "another configuration"
	assert_equal 640 "$(stat -c %a "$STATE/conf")" "mode"
	assert_notes '^\{"note": "wrote .*to take it back' add json "$url" --json
	assert_fails 2 "there is a list 'new' already" add new "$url"
	assert_fails 3 'answers 404.*never fetched' add none "http://127.0.0.1:$PLAIN/missing"
	grep -q '^\[list none\]$' "$STATE/conf" || fail "no section"
	assert_fails 2 "to fetch it: xdp-cuckoo refresh none --config $STATE/conf" add none "$url"
	case_begin "two at once"
	cp "$STATE/conf" "$STATE/before"
	in_rx flock "$STATE/conf" sh -c 'for _ in $(seq 50); do ! grep -q -e "-> FLOCK" /proc/locks || break; sleep 0.1; done
		sed "$ a # edited" "$1" >"$1.new" && mv "$1.new" "$1"' sh "$STATE/conf" &
	until ! in_rx flock -n "$STATE/conf" true; do sleep 0.1; done
	assert_status 0 add more "$url"
	wait $!
	grep -q '^# edited$' "$STATE/conf" || fail "it has written over what the other process has written"
	case_begin "a key that is gone"
	printf '[fleet]\nbroker = a\nreport = b\n' >>"$STATE/conf"
	assert_notes "$STATE/conf:[0-9]+: the key 'report' is gone" add gone "$url"
	! grep -q "conf[.]......:" "$STATE/err" || fail "the name of a temporary file: $(cat "$STATE/err")"
	case_begin "not a configuration"
	mkfifo "$STATE/fifo"
	assert_fails 2 'not a regular file' xc lists add x "$url" --config "$STATE/fifo"
	cp "$STATE/conf" "$STATE/before"
	chown nobody:adm "$STATE/conf"
	assert_fails 3 'must belong to root or to you' add x "$url"
	chown root:adm "$STATE/conf"
	assert_fails 3 'another owner or group' add x "$url"
	diff "$STATE/before" "$STATE/conf" || fail "the configuration has changed"
	assert_equal "conf" "$(cd "$STATE" && ls conf*)" "files"
}

test_a_list_that_up_makes_is_a_change() {
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/conf"
	xc up "$STATE/conf" >/dev/null
	assert_shows '"changed": false' xc --json up "$STATE/conf"
	printf '[list made]\nurl = http://127.0.0.1:%s/list\n' "$PLAIN" >>"$STATE/conf"
	assert_shows '"changed": true' xc --json up "$STATE/conf"
	assert_shows '"changed": false' xc --json up "$STATE/conf"
}

# Of a redirect within, it does not matter that the connection is one of an earlier file.
test_redirects_within_of_several() {
	fetched
	in_rx ip address add 192.0.2.80/32 dev lo
	configure "http://127.0.0.1:$PLAIN/list http://192.0.2.80:$PLAIN/to-link-local"
	refused 'URL 2: it redirects to an address that is link-local, which is not followed'
	in_rx ip address add 169.254.1.1/32 dev lo
	configure "http://169.254.1.1:$PLAIN/list http://192.0.2.80:$PLAIN/to-link-local"
	refused 'URL 2: it redirects to an address that is link-local, which is not followed'
}

# ---- headers

# keys: what the provider has seen, without the number of the connection.
keys() {
	cut -d' ' -f1-4 "$STATE/www/keys"
}

# header_file LINE...: what only root can read.
header_file() {
	printf '%s\n' "$@" >"$STATE/headers"
	chmod 600 "$STATE/headers"
}

test_headers() {
	fetched
	serve "$OTHER" 127.0.0.1
	header_file 'X-Key: 0123secret' 'Authorization: Basic;hidden'
	with="header-file = $STATE/headers"
	while read -r path status seen; do
		case_begin "$path"
		rm -f "$STATE/www/keys"
		configure "$path" "$with"
		run refresh feed
		assert_equal "$status" "$STATUS" "status of: $(cat "$STATE/err")"
		assert_equal "$seen" "$(keys | sed 's/ Basic;hidden$/ both/; s/0123secret both/both/' | tr '\n' ',')" "headers"
		! grep -e secret -e hidden "$STATE/out" "$STATE/err" || fail "it shows a header"
	done <<-END
		list 0 $PORT list both,
		moved 0 $PORT moved both,$PORT list both,
		to-port 0 $PORT to-port both,$OTHER list - -,
		http://127.0.0.1:$PLAIN/list 0 $PLAIN list both,
		to-plain 3 $PORT to-plain both,
		echo 0 $PORT echo both,
	END
	configure to-other "$with"
	rm -f "$STATE/www/keys"
	run refresh feed
	! keys | grep 'list 0123' || fail "another host sees the headers"
	assert_notes '1 bad line left out; the first: line 4: not shown, it may repeat a header' refresh_echo
	for words in lists 'lists --json' status 'status --json' metrics "check-config $STATE/conf"; do
		# shellcheck disable=SC2086 # words
		run xc $words
		! grep -e secret -e hidden "$STATE/out" "$STATE/err" || fail "$words shows a header"
	done
	! grep -r secret "$STATE/store" || fail "the store has a header"
	# The page of the hash may be elsewhere.
	rm -f "$STATE/www/keys"
	configure list "$with" "sha256-url = https://127.0.0.1:$OTHER/sha256"
	publish 1 2 3
	assert_status 0 refresh feed --force
	assert_equal "$PORT list 0123secret Basic;hidden,$OTHER sha256 - -," "$(keys | tr '\n' ',')" "headers"
}

refresh_echo() {
	configure echo "$with"
	refresh feed --force
}

test_bad_header_files() {
	fetched
	configure list "header-file = $STATE/headers"
	rm -f "$STATE/www/keys"
	while IFS='|' read -r what change pattern; do
		case_begin "$what"
		rm -rf "$STATE/headers"
		header_file 'X-Key: secret'
		eval "$change"
		refused "header-file = '$STATE/headers': $pattern"
		! grep secret "$STATE/err" || fail "it shows a header"
	done <<-'END'
		readable|chmod 640 "$STATE/headers"|others can read or change it; chown root and chmod go-rwx it
		of another user|chown nobody "$STATE/headers"|others can read or change it; chown root and chmod go-rwx it
		missing|rm "$STATE/headers"|No such file
		a directory|rm "$STATE/headers"; mkdir -m 700 "$STATE/headers"|no file of at most
		empty|: >"$STATE/headers"|it is empty
		a CR|printf 'X-Key: secret\r\n' >"$STATE/headers"|line 1 has a carriage return
		a control character|printf 'A: b\nX-Key: se\033cret\n' >"$STATE/headers"|line 2 has a character that a header may not have
		a NUL|printf 'X-Key: secret\000\n' >"$STATE/headers"|it has a NUL byte
		no colon|echo secret >"$STATE/headers"|line 1 is no header like 'NAME: VALUE'
		a blank name|echo 'X Key: secret' >"$STATE/headers"|line 1 is no header like 'NAME: VALUE'
		no value|echo 'X-Key: ' >"$STATE/headers"|line 1 has no value
		an empty line|printf 'X-Key: secret\n\nA: b\n' >"$STATE/headers"|line 2 is no header like 'NAME: VALUE'
	END
	[ ! -e "$STATE/www/keys" ] || fail "the server was asked: $(keys)"
}

test_metrics() {
	fetched
	xc metrics >"$STATE/metrics"
	grep -q '^xdp_cuckoo_list_failed_fetches{name="default",list="feed"} 0$' "$STATE/metrics" || fail "no failures"
	grep -q '^xdp_cuckoo_list_fetch_timestamp_seconds{name="default",list="feed"} [0-9]*$' "$STATE/metrics" ||
		fail "no time"
	configure empty
	assert_status 3 refresh
	configure empty
	assert_status 3 refresh feed
	xc metrics | grep -q '^xdp_cuckoo_list_failed_fetches{name="default",list="feed"} 2$' || fail "not 2 failures"
}

# What can be read of a damaged list does not take the place of the list, also not by hand.
test_a_part_of_a_list() {
	fetched
	set_of='{"nftables": [{"set": {"family": "ip", "table": "t", "name": "s", "type": "ipv4_addr", "elem": ["203.0.113.9"'
	printf '%s\n' "$set_of]}}]}" "$set_of" >"$STATE/www/nft"
	printf '%s\n' ip,what '203.0.113.9,"a' 203.0.113.1,b 203.0.113.2,c >"$STATE/www/csv"
	while read -r path pattern; do
		case_begin "$path"
		configure "$path"
		refused "$pattern"
	done <<-END
		nft it cannot be read to its end: line 3: '': not JSON as nft -j writes it; not all of it was read
		csv 3 bad lines and 0 rules: it is no list; the first: line 2: a quote is not closed
	END
	assert_fails 2 'nft was not read to its end, see above; nothing was changed$' \
		xc import "$STATE/www/nft" --list feed --replace
	assert_equal '1 2 3' "$(listed)" "rules"
	assert_status 2 xc import "$STATE/www/nft" --list feed
	assert_equal '1 2 3 9' "$(listed)" "rules"
}

# There is room for 63 lists.
test_one_list_too_many() {
	xc load vrx >/dev/null 2>&1
	provider
	for i in $(seq 63); do echo "add 198.51.100.$i list l$i"; done | xc batch - >/dev/null
	configure list
	assert_fails 3 "^xdp-cuckoo: list 'feed': there are 63 lists already; delete one that nothing feeds: xdp-cuckoo lists delete NAME\$" refresh
	assert_fails 4 "^xdp-cuckoo: list 'feed': there are 63 lists already; delete one that nothing feeds: xdp-cuckoo lists delete NAME\$" \
		xc up "$STATE/conf"
	case_begin "another list, which has a place"
	assert_status 0 xc lists delete l62
	configure list
	printf '%s\n' '[list other]' 'url = http://127.0.0.1:9/' >>"$STATE/conf"
	assert_status 4 xc up "$STATE/conf"
	assert_shows '^feed .* never ' xc lists
	configure list
	assert_status 0 xc lists delete l63
	assert_shows '^feed: added 3, removed 0; 3 rules$' refresh
}

# The process that talks to the network, while it does.
test_who_fetches() {
	fetched
	configure slow 'fetch-time = 20s'
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" refresh feed --config "$STATE/conf" >"$STATE/slow" 2>&1 &
	parent=$!
	on_exit "kill $parent 2>/dev/null; wait $parent 2>/dev/null"
	wait_for "a process that fetches" pgrep -u nobody -P "$parent"
	child=$(pgrep -u nobody -P "$parent")
	assert_equal 0000000000000000 "$(sed -n 's/^Cap\(Inh\|Prm\|Eff\|Amb\):[[:space:]]*//p' "/proc/$child/status" | sort -u)" \
		"capabilities"
	assert_equal '65534 65534 65534 65534' "$(awk '/^Uid:/ { print $2, $3, $4, $5 }' "/proc/$child/status")" "users"
	assert_equal 1 "$(awk '/^NoNewPrivs:/ { print $2 }' "/proc/$child/status")" "no_new_privs"
	grep -q libcurl "/proc/$child/maps" || fail "it does not use libcurl"
	# No lock is held meanwhile.
	assert_status 0 xc add 198.51.100.1
	write_list other 7 8
	assert_status 0 xc import "$STATE/other" --list feed --replace
	# kill -9 of either: the list stays, and the failure shows.
	kill -9 "$child"
	wait "$parent" || :
	grep -q 'the process that fetches it has ended early; it keeps its 3 rules' "$STATE/slow" || fail "$(cat "$STATE/slow")"
	assert_equal '7 8' "$(listed)" "rules"
	nsenter --net="/run/netns/$RX" "$TOOL" --state "$STATE/store" refresh feed --config "$STATE/conf" >"$STATE/slow" 2>&1 &
	parent=$!
	wait_for "a process that fetches" pgrep -u nobody -P "$parent"
	kill -9 "$parent"
	wait "$parent" || :
	assert_shows 'failed fetches:.*feed: a fetch has begun, and has not ended' xc status
	assert_equal '7 8' "$(listed)" "rules"
	configure list
	assert_shows '^feed: added 3, removed 2; 3 rules$' refresh
}

# Imports by hand and by refresh at once: at the end the list is one of the two, whole, and the next fetch brings its own.
test_beside_an_import() {
	fetched
	write_list other 7 8
	for round in 1 2 3; do
		publish 1 2 3 "$((round + 10))"
		refresh feed >/dev/null 2>&1 &
		refreshing=$!
		xc import "$STATE/other" --list feed --replace >/dev/null 2>&1
		wait "$refreshing" || :
		case $(listed) in '7 8' | "1 2 3 $((round + 10))") ;; *) fail "rules: $(listed)" ;; esac
	done
	assert_status 0 xc import "$STATE/other" --list feed --replace
	assert_status 0 refresh feed
	assert_equal '1 2 3 13' "$(listed)" "rules"
}

test_up_does_not_wait() {
	provider
	configure slow
	sed -i 's/^ca = .*//' "$STATE/conf"
	assert_notes "the list 'feed' was not fetched yet; run xdp-cuckoo refresh, or" xc up "$STATE/conf"
	assert_status 1 xc status # until it is fetched
	assert_output '^not fed: +feed: never$'
	printf '[filter]\ninterfaces = vrx\n' >"$STATE/conf.other"
	assert_status 0 by_own "$STATE/conf.other" refresh # it is not in the configuration any more
	assert_status 0 xc status
	assert_notes "the list 'feed' was not fetched yet" xc up "$STATE/conf"
	assert_status 0 xc check-config "$STATE/conf" --strict
	assert_equal 0 "$(grep -c . "$STATE/www/log" 2>/dev/null || echo 0)" "requests"
	xc unload vrx >/dev/null
}

test_presets() {
	assert_shows '^spamhaus-drop +1h +spamhaus' xc lists presets
	xc lists presets --json | sed -n 's/.*"preset": "\([^"]*\)".*/\1/p' >"$STATE/presets"
	[ "$(grep -c . "$STATE/presets")" -gt 5 ] || fail "few presets"
	while read -r preset; do
		printf '%s\n' '[filter]' 'interfaces = vrx' '[list feed]' "preset = $preset" >"$STATE/conf"
		case $preset in
		country) echo 'country = CN ru' >>"$STATE/conf" ;;
		asn) echo 'asn = 64496 as64497' >>"$STATE/conf" ;;
		esac
		assert_status 0 xc check-config "$STATE/conf"
	done <"$STATE/presets"
	while read -r line pattern; do
		case_begin "$line"
		printf '%s\n' '[filter]' 'interfaces = vrx' '[list feed]' "$line" |
			sed 's/,/\n/g; s/=/ = /g; s/_/ /g' >"$STATE/conf"
		assert_fails 2 "$pattern" xc check-config "$STATE/conf"
	done <<-END
		preset=spamhaus-drop,every=10m every must be at least 1h, as its provider asks
		preset=nobody must be a name that xdp-cuckoo lists presets shows
		preset=tor-exits,file=/a must have one of these: file = /PATH, url = https://..., preset = NAME
		file=/a,every=1h has a file: every, fetch-time, sha256-url
		url=ftp://a/b must be https://HOST/PATH
		url=https://user:password@a/b must be https://HOST/PATH
		url=https://a/b,timeout=5s timeout must be at least 1h6m: the next fetch comes after every
		url=https://a/b,every=1d,timeout=26h timeout must be at least 1d2h24m:
		url=https://a/b,every=1s every must be at least 1m
		url=https://a/b,fetch-time=1h fetch-time must be at most 10m
		url=https://a/b,pinned-key=md5 must be sha256//BASE64
		url=http://a/b,ca=/a pinned-key and ca need a URL with https://
		file=/a,max-space=5% max-grow, max-space and min-prefix are for lists by URL
		url=https://a/b,max-space=101% must be a percentage, 0% to 100%
		url=https://a/b,max-grow=many must be a percentage, 0% to 1000000%
		preset=country has preset = country: write also country = XX
		preset=asn has preset = asn: write also asn = NUMBER
		country=CN must have one of these: file = /PATH, url = https://..., preset = NAME
		preset=asn,country=CN country goes with preset = country, asn with preset = asn
		preset=tor-exits,asn=64496 country goes with preset = country, asn with preset = asn
		preset=country,country=UK country: 'UK' is no code of ISO 3166: the United Kingdom is GB
		preset=country,country=EU country: 'EU' is no country
		preset=country,country=CHN country: 'CHN' is no country: write the two letters of ISO 3166, like CN
		preset=country,country=XX country: 'XX' is no country
		preset=country,country=CN_cn country: 'cn' is there twice
		preset=asn,asn=64496_AS64496 asn: 'AS64496' is there twice
		preset=asn,asn=0 asn: '0' is no autonomous system: write its number
		preset=asn,asn=4294967296 asn: '4294967296' is no autonomous system
		preset=asn,asn=AS-SET asn: 'AS-SET' is no autonomous system
		preset=country,country=CN,every=1h every must be at least 1d, as its provider asks
		url=https://a/b_ftp://c/d must be https://HOST/PATH
		url=https://a/b_https://c/d,sha256-url=https://a/e sha256-url is for a list with one URL
		url=https://a/b_http://a/d,ca=/a pinned-key and ca need a URL with https://
		url=http://a/b,header-file=/h header-file needs a URL with https://, or http:// and a loopback or private address
		url=http://192.0.2.1/b,header-file=/h header-file needs a URL with https://
		url=https://a/b_https://c/d,header-file=/h header-file is for one server, and the URLs name several
		file=/a,header-file=/h header-file, max-grow, max-space and min-prefix are for lists by URL
	END
	printf '%s\n' '[filter]' 'interfaces = vrx' '[list feed]' 'file = /a' >"$STATE/conf"
	assert_fails 2 'has no \[list feed\] with a url or a preset' refresh feed
}

run_tests "$0" "$@"
