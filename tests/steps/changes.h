/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Changes to a filter in memory_kernel.h, and a panel of frames that tells what they do. */
#ifndef XDP_CUCKOO_STEPS_CHANGES_H
#define XDP_CUCKOO_STEPS_CHANGES_H

#include "unit/test.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/if.h>

#include "change/change.h"
#include "change/internal.h"
#include "library/xdp-cuckoo.h"
#include "unit/clock_fixture.h"
#include "steps/every_store.h"

#define NAME "default"
#define FRAMES 48
#define FRAME_BYTES 96
#define CONFIRM_MS 60000
#define BURST 12 /* frames that use up what a meter of 10/s has */

static char state_dir[] = "/dev/shm/xdp-cuckoo-test.XXXXXX";

/* ---- the panel ---- */

struct frame {
	__u8 *bytes;
	size_t length;
	char text[200];
	int verdict[MEMORY_INTERFACES]; /* the last one */
	int way[MEMORY_INTERFACES];     /* to fewer drops: 1; to more: -1; 0: it has not changed */
};

static struct frame panel[FRAMES];
static __u8 *panel_memory;
static size_t panel_count;

/* A burst shows a rate, too: 0: all drop; 2: all pass. */
static inline int judge_frame(const struct frame *frame)
{
	int passed = 0;

	for (int i = 0; i < BURST; i++) {
		passed += path_judge(frame->bytes, frame->length).verdict != VERDICT_DROP;
		if (!path_used_count)
			return passed ? 2 : 0;
	}
	path_put_back();
	return passed == 0 ? 0 : passed == BURST ? 2 : 1;
}

static void add_frame(const char *src, const char *dst, __u16 sport, __u16 dport, bool is_tcp)
{
	struct frame *frame = &panel[panel_count];
	__u8 *at = panel_memory + panel_count++ * FRAME_BYTES;
	struct ethhdr *ethernet = (void *)at;
	const bool is_ipv6 = strchr(src, ':');
	__be16 *ports;

	memset(at, 0, FRAME_BYTES);
	frame->bytes = at;
	at += sizeof(*ethernet);
	if (is_ipv6) {
		struct ipv6hdr *ip = (void *)at;

		ethernet->h_proto = htons(ETH_P_IPV6);
		ip->version = 6;
		ip->nexthdr = is_tcp ? IPPROTO_TCP : IPPROTO_UDP;
		ip->payload_len = htons(20);
		inet_pton(AF_INET6, src, &ip->saddr);
		inet_pton(AF_INET6, dst, &ip->daddr);
		at += sizeof(*ip);
	} else {
		struct iphdr *ip = (void *)at;

		ethernet->h_proto = htons(ETH_P_IP);
		*ip = (struct iphdr){
			.version = 4, .ihl = 5, .tot_len = htons(40), .protocol = is_tcp ? IPPROTO_TCP : IPPROTO_UDP
		};
		inet_pton(AF_INET, src, &ip->saddr);
		inet_pton(AF_INET, dst, &ip->daddr);
		at += sizeof(*ip);
	}
	ports = (void *)at;
	ports[0] = htons(sport);
	ports[1] = htons(dport);
	at[13] = is_tcp ? FLOW_TCP_SYN : 0;
	at[12] = 0x50;
	frame->length = at + 20 - frame->bytes;
	snprintf(frame->text, sizeof(frame->text), "%s %s -> %s:%u", is_tcp ? "tcp" : "udp", src, dst, dport);
}

static const char *const sources4[] = { "10.77.0.1", "10.77.0.2", "10.77.0.129", "10.77.1.1", "10.78.0.1", "192.0.2.9" };
static const char *const sources6[] = { "2001:db8::1", "2001:db8::2", "2001:db8:1::1", "2001:db9::1" };

static void fill_panel(void)
{
	if (!panel_memory)
		panel_memory = mmap(NULL, FRAMES * FRAME_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	panel_count = 0;
	for (size_t i = 0; i < COUNT(sources4); i++) {
		add_frame(sources4[i], "198.51.100.7", 1111, 53, false);
		add_frame(sources4[i], "198.51.100.7", 1111, 22, true);
		add_frame(sources4[i], "198.51.100.8", 2222, 80, true);
	}
	for (size_t i = 0; i < COUNT(sources6); i++) {
		add_frame(sources6[i], "2001:db8:f::7", 1111, 53, false);
		add_frame(sources6[i], "2001:db8:f::8", 2222, 80, true);
	}
}

/* ---- a filter ---- */

static void open_session(struct session *session)
{
	struct reason reason;

	if (session_open(session, state_dir, NAME, &reason))
		fail_msg("%s", reason.text);
}

static struct {
	struct abi_options options;
	unsigned int interfaces;
} loaded;

/* Loads the rules of the store in `state`. False: see *reason. */
static bool load_from(const char *state, __u64 capacity, struct reason *reason)
{
	struct reason unseen;
	struct session session;
	struct filter *filter;

	if (session_open_to_load(&session, state, NAME, false, &unseen, reason) ||
	    session_load(&session, &loaded.options, capacity, &filter, reason))
		return false;
	for (unsigned int i = 0; i < loaded.interfaces; i++)
		memory_attach(&filter->kernel, i, false);
	session_start(&session);
	session_close(&session);
	return true;
}

static void plain_change(const char *const *lines, size_t count);

#define LINES(...) (const char *const[]){ __VA_ARGS__ }, COUNT(((const char *const[]){ __VA_ARGS__ }))

/* `addresses`: so many keys of addresses are enough for a part of their own, which an exact table then has; 0: none are. */
static void load(bool has_room, bool is_exact, __u64 addresses, uint64_t seed, unsigned int interfaces)
{
	struct reason reason;
	char command[64];

	loaded.options = (struct abi_options){
		.format = BUCKET_16, .is_exact = is_exact, .has_counts = is_exact, .is_alone = !has_room
	};
	loaded.interfaces = interfaces;
	filter_addresses_least = addresses ? addresses : ~0ULL;
	fake_clock = clock_start;
	memory_reset(seed);
	snprintf(command, sizeof(command), "rm -rf %s/*", state_dir);
	if (system(command))
		abort();
	if (!load_from(state_dir, 900, &reason))
		fail_msg("%s", reason.text);
	if (addresses)
		plain_change(LINES("at-once", "add 10.99.0.1", "add 10.99.0.2", "add 10.99.0.3"));
	memory_path(0);
	assert_int_equal(path.options.has_addresses, addresses && is_exact);
}

/* Time passes for the store and for packets. */
static inline void pass_time(__s64 ms)
{
	clock_advance(ms);
	path_jiffies += ms * MEMORY_JIFFIES_A_S / 1000;
}

/* A second filter with the same rules, of the other kind. */
static inline void load_second(void)
{
	struct abi_options options = loaded.options;
	struct reason reason, unseen;
	struct session session;
	struct filter *filter;

	options.is_exact = options.has_counts = !options.is_exact;
	if (session_open_to_load(&session, state_dir, NAME, false, &unseen, &reason) ||
	    session_load(&session, &options, 900, &filter, &reason))
		fail_msg("%s", reason.text);
	memory_attach(&filter->kernel, MEMORY_INTERFACES - 1, false);
	session_start(&session);
	session_close(&session);
}

/*
 * ---- changes: lines of words ----
 *
 * add RULE, del RULE, policy NAME VERDICT, monitor-only on|off, clear, more N, fewer N (unrelated addresses), at-once,
 * pending, which makes the change wait for `confirm`; expire; list NAME [SOURCE], of which the rules are from there on, hand;
 * give RULE, which the owner gives up; disk-full, so that the change cannot be stored; replace SEED, which gives the owner
 * drawn rules and no others; import NAME SEED, the same for a list with that source; drop NAME, which deletes a list;
 * alone: undo, confirm, wait MS: see do_wait(). "library" alone in front: library_line() does the lines.
 */

static int bulk(struct session *session, bool is_add, unsigned int count, struct reason *reason)
{
	int error = 0;

	for (unsigned int i = 0; i < count && !error; i++) {
		struct rule rule;
		enum store_added added;
		enum store_deleted deleted;
		char text[64];

		snprintf(text, sizeof(text), "10.99.%u.%u", i / 256, i % 256);
		error = rule_parse(text, &rule, reason);
		if (!error)
			error = is_add ? change_add(session, &rule, &added, reason) :
					 change_del(session, &rule, &deleted, reason);
	}
	return error;
}

static int set(struct session *session, const char *name, const char *value)
{
	struct store_settings settings = store_settings_kept;

	if (!strcmp(name, "monitor-only"))
		settings.is_monitor_only = !strcmp(value, "on");
	else
		settings.policy[!strcmp(name, "no-rule") ? OUTCOME_NO_RULE : OUTCOME_NOT_IP] =
			strcmp(value, "drop") ? VERDICT_PASS : VERDICT_DROP;
	return store_set_settings(session->store, &settings);
}

static const char *const rules[] = {
	"10.77.0.1",
	"10.77.0.2",
	"10.77.0.0/24",
	"10.77.0.0/25",
	"10.77.0.128/25",
	"10.76.0.0/14",
	"10.77.0.0/16",
	"10.77.0.1 action pass",
	"10.77.0.0/24 action pass",
	"10.77.0.0/25 action pass",
	"10.77.0.1 action monitor",
	"10.77.0.0/24 proto udp dport 53",
	"proto udp dport 53",
	"proto tcp dport 22",
	"proto tcp dport 80",
	"proto udp dport 53 action pass",
	"dst 198.51.100.7",
	"dst 198.51.100.8 action pass",
	"dst 198.51.100.0/24",
	"10.77.0.0/24 proto udp rate 10/s",
	"10.77.0.1 rate 10/s",
	"proto udp dport 53 rate 10/s",
	"proto tcp rate 10/s",
	"proto tcp state new",
	"10.77.0.0/24 state new",
	"10.77.0.1 state new",
	"proto tcp flags syn/syn,ack",
	"2001:db8::/32",
	"2001:db8::/48",
	"2001:db8::1",
	"2001:db8::1 action pass",
	"2001:db8::/33",
	"2001:db8::/31",
	"2001:db8::/32 proto udp dport 53",
	"10.77.0.1 timeout 1h",
	"10.77.0.0/24 timeout 1h",
	"10.77.0.1 action pass timeout 1h",
	"proto udp",
	"proto udp action pass",
	"10.64.0.0/10",
	"10.77.0.0/23",
	"10.77.0.0/22",
	"10.77.0.0/24 timeout 8s",
	"10.77.0.1 timeout 3s",
	"10.77.0.0/25 action pass timeout 5s",
	"10.77.0.0/24 proto udp rate 20/s",
	"proto udp dport 53 rate 2/s",
	"10.77.0.0/25 rate 3/s timeout 5s",
	"2001:db8::/32 rate 10/s",
	"2001:db8::1 timeout 5s",
	"proto udp length 32/12",
};

static int replace(struct session *session, uint64_t seed, struct reason *reason)
{
	struct rule_set wanted = {};
	struct change_equal equal = { .wanted = &wanted };
	struct rule rule;
	int error = 0;

	for (int i = 0; i < 6 && !error; i++) {
		error = rule_parse(rules[random_below(&seed, COUNT(rules))], &rule, reason);
		if (!error)
			error = reason_set(reason, rule_set_add(&wanted, &rule), "the test has no memory");
	}
	equal.is_at_once = random_below(&seed, 2);
	/* As `restore` does. */
	if (!error && !random_below(&seed, 3))
		error = set(session, "no-rule", random_below(&seed, 2) ? "drop" : "pass");
	equal.is_alone = !random_below(&seed, 3);
	equal.leaves_roomless = equal.is_entries = !equal.is_alone && !random_below(&seed, 4);
	if (!error)
		error = change_make_equal(session, &equal, reason);
	rule_set_close(&wanted);
	change_equal_close(&equal);
	return error;
}

/* As `import --list NAME --replace` and a fetch by URL do: the source is a text with the seed. */
static int import(struct session *session, const char *name, const char *seed, struct reason *reason)
{
	const struct store_feed feed = { .tried_s = 1, .config = atoi(seed) };
	int error = change_open_list(session, name, seed, reason);

	if (error)
		return error;
	store_list_expect(session->store, session->owner, atoi(seed));
	if (atoi(seed) % 2)
		error = store_feed_put(session->store, name, &feed);
	return error ? change_unwritten_reason(error, reason) : replace(session, atoi(seed), reason);
}

/* As `lists delete NAME` does. */
static int drop(struct session *session, const char *name, struct reason *reason)
{
	struct rule_set none = {};
	struct change_equal equal = { .wanted = &none };
	int error = change_find_list(session, name, reason);

	if (error)
		return error == -ESRCH ? 0 : error;
	error = change_make_equal(session, &equal, reason);
	change_equal_close(&equal);
	if (!error)
		error = store_list_delete(session->store, session->owner);
	session->owner = STORE_BY_HAND;
	return error;
}

/* For what stands in place of the C library's write functions: the error, after a call that notes it. */
static bool disk_is_full;
static void (*disk_refuses)(void);

static inline int disk_refused(void)
{
	if (disk_refuses)
		disk_refuses();
	errno = ENOSPC;
	return -1;
}

static int do_line(struct session *session, const char *line, struct reason *reason)
{
	char verb[16], first[16] = "", second[16] = "";
	struct rule rule;
	enum store_added added;
	enum store_deleted deleted;
	__u64 expired;
	int error;

	sscanf(line, "%15s %15s %15s", verb, first, second);
	if (!strcmp(verb, "policy") || !strcmp(verb, "monitor-only"))
		return *second ? set(session, first, second) : set(session, verb, first);
	if (!strcmp(verb, "clear"))
		return change_clear(session, reason);
	if (!strcmp(verb, "more") || !strcmp(verb, "fewer"))
		return bulk(session, *verb == 'm', atoi(first), reason);
	if (!strcmp(verb, "pending"))
		return change_set_pending(session, CONFIRM_MS, reason);
	if (!strcmp(verb, "expire"))
		return change_expire(session, &expired, reason);
	if (!strcmp(verb, "list") || !strcmp(verb, "hand"))
		return change_open_list(session, *first ? first : NULL, *second ? second : NULL, reason);
	if (!strcmp(verb, "import"))
		return import(session, first, second, reason);
	if (!strcmp(verb, "drop"))
		return drop(session, first, reason);
	if (!strcmp(verb, "disk-full")) {
		disk_is_full = true;
		return 0;
	}
	if (!strcmp(verb, "replace"))
		return replace(session, atoi(first), reason);
	if (!strcmp(verb, "at-once")) {
		change_at_once(session);
		return 0;
	}
	error = rule_parse(line + strlen(verb) + 1, &rule, reason);
	if (error)
		return error;
	if (!strcmp(verb, "give"))
		return change_give_up(session, &rule, &deleted, reason);
	return !strcmp(verb, "add") ? change_add(session, &rule, &added, reason) :
				      change_del(session, &rule, &deleted, reason);
}

static int do_lines(struct session *session, const char *const *lines, size_t count, struct reason *reason)
{
	bool was_waiting;
	int error;

	if (!strcmp(lines[0], "undo"))
		return change_undo(session, reason);
	if (!strcmp(lines[0], "confirm"))
		return change_confirm(session, &was_waiting, reason);
	error = change_begin(session, reason);
	if (error)
		return error;
	for (size_t i = 0; i < count && !error; i++)
		error = do_line(session, lines[i], reason);
	error = change_end(session, error, reason);
	disk_is_full = false;
	return error;
}

/* As a program with the library does: an error of one call does not end the change. */
static inline void library_line(struct xdp_cuckoo_filter *filter, const char *line, char list[16])
{
	struct xdp_cuckoo_rule rule[3] = {};
	char verb[16], first[16] = "";
	uint64_t seed;

	sscanf(line, "%15s %15s", verb, first);
	if (!strcmp(verb, "list"))
		strcpy(list, first);
	else if (!strcmp(verb, "drop"))
		xdp_cuckoo_list_delete(filter, first);
	else if (!strcmp(verb, "expire"))
		xdp_cuckoo_expire(filter, NULL);
	else if (!strcmp(verb, "monitor-only"))
		xdp_cuckoo_set_monitor_only(filter, !strcmp(first, "on"));
	else if (!strcmp(verb, "import") || !strcmp(verb, "replace")) {
		seed = strlen(line);
		for (size_t i = 0; i < COUNT(rule); i++)
			xdp_cuckoo_parse(filter, rules[random_below(&seed, COUNT(rules))], &rule[i]);
		xdp_cuckoo_list_replace(filter, *list ? list : "c", NULL, rule, COUNT(rule), NULL);
	} else if (!xdp_cuckoo_parse(filter, line + strlen(verb) + 1, rule)) {
		if (!strcmp(verb, "add"))
			*list ? xdp_cuckoo_list_add(filter, list, rule) : xdp_cuckoo_add(filter, rule);
		else
			strcmp(verb, "give") ? xdp_cuckoo_del(filter, rule) : xdp_cuckoo_list_del(filter, list, rule);
	}
}

/* One call is a change of its own. */
static inline int do_library(const char *const *lines, size_t count)
{
	struct xdp_cuckoo_filter *filter;
	char list[16] = "";
	int error = xdp_cuckoo_open(NAME, state_dir, XDP_CUCKOO_CHANGE | XDP_CUCKOO_FORCE, &filter);

	if (!error && count > 1)
		error = xdp_cuckoo_begin(filter);
	for (size_t i = 0; i < count && !error; i++)
		library_line(filter, lines[i], list);
	if (!error && count > 1)
		error = xdp_cuckoo_commit(filter);
	if (error)
		print_message("# library: %d, %s\n", error, xdp_cuckoo_error(filter));
	xdp_cuckoo_close(filter);
	return error;
}

static void plain_change(const char *const *lines, size_t count)
{
	struct reason reason = {};
	struct session session;

	open_session(&session);
	if (do_lines(&session, lines, count, &reason))
		fail_msg("%s", reason.text);
	session_close(&session);
}

/*
 * A change that reaches no filter, as after a lack of memory. Pass rules stay if a filter is compact: where it is repaired in
 * place, nothing tells which keys are theirs, and none of them can end.
 */
static inline void change_behind(uint64_t seed)
{
	char text[4][128];
	const char *lines[COUNT(text)];
	bool is_exact = true;

	for (size_t i = 0; i < memory.filters_count; i++)
		is_exact &= memory.filters[i].filter.options.is_exact;
	for (size_t i = 0; i < COUNT(text); i++) {
		const char *rule = rules[random_below(&seed, COUNT(rules))];

		snprintf(text[i], sizeof(text[i]), "%s %s",
			 random_below(&seed, 2) || (!is_exact && strstr(rule, "pass")) ? "add" : "del", rule);
		lines[i] = text[i];
	}
	memory.is_hidden = true;
	plain_change(lines, COUNT(text));
	memory.is_hidden = false;
}

/* "wait MS"; with "older" the first filter is of the version before; with "behind SEED" the filters lack a change. */
static inline void do_wait(const char *line)
{
	const char *behind = strstr(line, "behind");

	pass_time(atoi(line + 5));
	if (behind)
		change_behind(atoi(behind + 7));
	if (strstr(line, "older") && !memory.is_held && memory_path(0))
		path.config->version = ABI_VERSION - 1;
}

static const char *const others[] = {
	"policy no-rule drop",
	"policy no-rule pass",
	"monitor-only on",
	"monitor-only off",
	"clear",
	"more 20",
	"fewer 20",
	"more 400",
	"fewer 400",
	"at-once",
	"at-once",
	"expire",
	"disk-full",
	"list a",
	"list a drawn",
	"list b",
	"drop a",
};

/* `is_waiting`: a change waits for `confirm`. */
static inline void draw_change(uint64_t *seed, bool is_waiting, char (*text)[128], const char **lines, size_t *count)
{
	static const char *const waits[] = { "wait 4000", "wait 130000", "wait 0 older", "wait 0 behind" };

	*count = 0;
	if (!random_below(seed, 8)) {
		snprintf(*text, sizeof(*text), "%s %u", waits[random_below(seed, COUNT(waits))],
			 (unsigned int)random_below(seed, 100000));
		lines[(*count)++] = *text;
		return;
	}
	if (is_waiting && !random_below(seed, 3)) {
		lines[(*count)++] = random_below(seed, 3) ? "undo" : "confirm";
		return;
	}
	if (!random_below(seed, 6))
		lines[(*count)++] = "library";
	else if (!is_waiting && !random_below(seed, 3))
		lines[(*count)++] = "pending";
	if (!random_below(seed, 3))
		lines[(*count)++] = others[random_below(seed, COUNT(others))];
	for (size_t rules_left = 1 + random_below(seed, 5); rules_left; rules_left--) {
		static const char *const verbs[] = { "add", "add", "add", "del", "del", "give" };

		const unsigned int kind = random_below(seed, 12);

		if (kind > 1)
			snprintf(text[*count], sizeof(text[0]), "%s %s", verbs[random_below(seed, COUNT(verbs))],
				 rules[random_below(seed, COUNT(rules))]);
		else
			snprintf(text[*count], sizeof(text[0]), "%s %u", kind ? "replace" : "import a",
				 (unsigned int)random_below(seed, 100000));
		lines[*count] = text[*count];
		++*count;
	}
}

/* Whether a change waits for `confirm` after one that begins with this line. */
static inline bool still_waits(bool is_waiting, const char *line)
{
	return !strcmp(line, "pending") || (is_waiting && strcmp(line, "undo") && strcmp(line, "confirm"));
}

/* ---- what a store holds, in words ---- */

#define DUMP_BYTES (1 << 16)

struct dump {
	struct store *store;
	char *at;
	struct store_lists lists;
};

static int dump_rule(const struct rule *rule, void *context)
{
	struct dump *dump = context;
	struct store_addition addition;
	struct rule undone = *rule;
	char text[RULE_TEXT_BYTES];

	dump->at += sprintf(dump->at, "%s by", rule_format(rule, text));
	for (size_t i = 0; i <= STORE_LISTS_MAX; i++)
		if (rule_owners_now(rule) >> i & 1)
			dump->at += sprintf(dump->at, " %s%s", i ? dump->lists.list[i].name : "hand",
					    rule->owners.timed >> i & 1 ? " for a time" : "");
	if (!store_addition(dump->store, rule, &addition))
		dump->at += sprintf(dump->at, ", of user %u", addition.user);
	if (store_get_undone(dump->store, &undone))
		dump->at += sprintf(dump->at, ", or not");
	else if (strcmp(rule_format(&undone, text), rule_format(rule, (char[RULE_TEXT_BYTES]){})))
		dump->at += sprintf(dump->at, ", or %s", text);
	dump->at += sprintf(dump->at, "\n");
	return 0;
}

/* Settings, rules with owners and ends, lists; what waits for `confirm`, and what its undo would leave. */
static inline void dump_store(struct store *store, char *text, bool has_lists)
{
	struct store_settings settings[2];
	struct store_pending pending;
	struct store_feed feed;
	struct dump dump = { store, text, {} };

	if (store_settings(store, &settings[0]) || store_undone_settings(store, &settings[1]) ||
	    store_lists(store, &dump.lists) || store_pending(store, &pending))
		fail_msg("cannot read the store");
	for (size_t i = 0; i < COUNT(settings); i++) {
		for (size_t k = 0; k < OUTCOME_POLICIES; k++)
			dump.at += sprintf(dump.at, "%d", settings[i].policy[k]);
		dump.at += sprintf(dump.at, " %d, ", settings[i].is_monitor_only);
	}
	dump.at += sprintf(dump.at, "%llu rules wait\n", (unsigned long long)pending.rules);
	if (store_each(store, dump_rule, &dump) || dump.at > text + DUMP_BYTES)
		fail_msg("cannot read the rules");
	for (size_t i = 1; i <= STORE_LISTS_MAX && has_lists; i++) {
		const struct store_list *list = &dump.lists.list[i];

		if (!*list->name)
			continue;
		dump.at += sprintf(dump.at, "list %s: %llu rules of '%s'%s%s, silent for %u", list->name,
				   (unsigned long long)list->rules, list->source, list->imported_s ? ", imported" : "",
				   list->is_edited ? ", edited" : "", list->stale_s);
		if (!store_feed(store, list->name, &feed))
			dump.at += sprintf(dump.at, ", fed by %llu", (unsigned long long)feed.config);
		dump.at += sprintf(dump.at, "\n");
	}
}

static int setup_all(void **state)
{
	(void)state;
	return mkdtemp(state_dir) ? 0 : -1;
}

static int teardown_all(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", state_dir);
	return system(command);
}

#endif
