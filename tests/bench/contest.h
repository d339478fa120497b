/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Contenders in the packet path: programs of lookup.bpf.c, each with a map of its own that holds the same
 * rules, checked and then timed in interleaved slices of BPF_PROG_TEST_RUN. Before each timed slice runs one
 * that is not, so that the caches hold what the contender needs and not what another left.
 */
#ifndef XDP_CUCKOO_BENCH_CONTEST_H
#define XDP_CUCKOO_BENCH_CONTEST_H

#include "base/memory.h"
#include "bench/packet_path.h"
#include "bench/report.h"
#include "bench/rivals.h"

#define CONTEST_MAX 16
#define CONTEST_SLICES 31
#define CONTEST_PACKETS 100000 /* of a slice */
#define CONTEST_QUICK_SLICES 11
#define CONTEST_QUICK_PACKETS 50000
#define CONTEST_PRESSED_LINES (1 << 22) /* that a slice reads between its packets */
#define CONTEST_QUICK_PRESSED_LINES (1 << 21)
#define CONTEST_QUICK_PRESSED_SLICES 5
#define CONTEST_CHECKED 20000
#define CONTEST_OTHERS (1 << 28) /* flows without a rule, where all are */

enum contest_traffic { CONTEST_HIT, CONTEST_MISS, CONTEST_HALF, CONTEST_MIXED, CONTEST_TRAFFICS };

static const char *const contest_traffic_names[CONTEST_TRAFFICS] = { "hit", "miss", "half", "mixed" };

/* Packets of flows that have a rule, of LOOKUP_SHARES. */
static const __u32 contest_listed[CONTEST_TRAFFICS] = {
	[CONTEST_HIT] = LOOKUP_SHARES,
	[CONTEST_HALF] = LOOKUP_SHARES / 2,
	[CONTEST_MIXED] = LOOKUP_SHARES / 10,
};

struct contender_kind {
	const char *name, *program;
	enum rival rival;
	struct abi_options options; /* of a table */
	enum flow_family family;
	unsigned int shapes; /* 0: one */
	bool has_ends;       /* every rule has one, far away */
	bool has_hints;      /* which are read where they pay, as the tool sets them */
	double wrong;        /* the most false positives there may be; of tables the rate is known */
	double lost;         /* the most rules that may be missing */
	bool is_pressed;     /* it may read other memory between packets, and times itself */
};

struct contender {
	const struct contender_kind *kind;
	struct raw_filter filter;
	int program;
	double map_mib, available_mib; /* as the map's info says; as MemAvailable fell */
	double false_positives;        /* share of packets, as checked */
	double lines;                  /* of other memory that were read before a packet */
	double ns[CONTEST_SLICES];
	struct spread result;
};

struct contest {
	struct contender contender[CONTEST_MAX];
	size_t count;
	__u32 rules;
	struct lookup_parameters parameters;
	__u32 lines; /* of other memory that those which are pressed read before each packet of a timed slice */
};

/* ---- rules ---- */

/*
 * Rule `i` of a list in `shapes` shapes: each matches one source, which makes a flow hit one rule; shapes
 * differ in what else they name of the one flow that all packets share.
 */
static inline struct rule contest_rule(enum flow_family family, __u32 i, unsigned int shapes)
{
	static const __u8 lengths[] = { 32, 24, 16, 8 };
	const unsigned int shape = shapes ? i % shapes : 0, without = shape % 8;
	struct rule rule = packet_path_rule(family, lookup_source(RIVALS_LISTED + i));

	rule.dst_len = family == FLOW_IPV4 ? lengths[shape / 8] : 4 * lengths[shape / 8];
	rule.dst = rule_network(&rule.dst, rule.dst_len);
	if (without & 1)
		rule.sport = 0, rule.fields &= ~RULE_SPORT;
	if (without & 2)
		rule.dport = 0, rule.fields &= ~RULE_DPORT;
	if (without & 4)
		rule.proto = 0, rule.fields &= ~RULE_PROTO;
	if (!(rule.fields & (RULE_SPORT | RULE_DPORT)))
		rule.port_kind = FLOW_NO_PORTS;
	return rule;
}

static inline struct rule_key contest_key(const struct contender_kind *kind, __u32 i)
{
	const struct rule rule = contest_rule(kind->family, i, kind->shapes);
	struct rule_key keys[RULE_KEYS_MAX];

	rule_keys(&rule, keys);
	return keys[0];
}

/* ---- opening ---- */

static inline void contest_hint(struct contender *contender, __u32 rules)
{
	const enum flow_family family = contender->kind->family;
	struct abi_shape_list *list = raw_filter_shapes(&contender->filter, family);
	const struct hints hints = raw_filter_hints(&contender->filter);

	for (__u32 i = 0; i < rules; i++) {
		const struct rule_key key = contest_key(contender->kind, i);
		struct abi_shape compiled;

		rule_shape_compile(&key.shape, &compiled);
		for (__u32 s = 0; s < list->count; s++)
			if (abi_shape_at(list, s)->id == compiled.id)
				hints_mark(hints, &key, abi_shape_at(list, s)->hint);
	}
	list->reads_hints = hints_pay(hints, list, family);
}

static inline void contest_fill_table(struct contender *contender, __u32 rules)
{
	const struct contender_kind *kind = contender->kind;
	struct raw_filter *filter = &contender->filter;
	struct table_entry *entries = calloc(rules, sizeof(*entries));
	int error;

	if (!entries)
		die("entries", ENOMEM);
	for (__u32 i = 0; i < rules; i++) {
		const struct rule_key key = contest_key(kind, i);

		if (i < kind->shapes + 1)
			raw_filter_add_shape(filter, &key.shape);
		entries[i].key = rule_hash(&key, &filter->config->table[0].secret);
		entries[i].end = kind->has_ends ? ABI_END_MAX : 0;
	}
	error = table_build(&filter->table, entries, rules);
	if (error)
		die("table_build", error);
	free(entries);
	if (kind->has_hints)
		contest_hint(contender, rules);
}

/* Rules of sources alone, in the addresses of the table, which has nothing else. */
static inline void contest_fill_addresses(struct contender *contender, __u32 rules)
{
	struct raw_filter *filter = &contender->filter;
	struct abi_table *in_config = &filter->config->table[0];
	struct rule_shape shape = { .family = FLOW_IPV4, .fields = RULE_ADDRESSES, .src_len = 32 };
	const struct table_memory memory = { .bucket = filter->table.memory.bucket,
					     .counter = filter->table.memory.counter,
					     .sequence = &in_config->sequence };
	uint64_t random = 3;
	struct table table;
	int error = table_open(&table, BUCKET_ADDRESS, filter->table.geometry, &memory);

	in_config->addresses.geometry = table.geometry;
	in_config->addresses.reciprocal = table.reciprocal;
	random_fill(&random, &in_config->addresses.secret, sizeof(in_config->addresses.secret));
	raw_filter_add_shape(filter, &shape);
	for (__u32 i = 0; i < rules && !error; i++) {
		const __u64 number = permute_number(lookup_source(RIVALS_LISTED + i), ~0U);
		const struct hash_value key = { .hash = permute(&in_config->addresses.secret, number) };

		error = table_insert(&table, &key, 0);
	}
	if (error)
		die("the table of addresses", error);
	table_close(&table);
}

/* The rival with shapes looks for what the filter would: it has its shapes, and keys with their tags. */
static inline void contest_fill_rival(struct contender *contender, __u32 rules)
{
	const struct contender_kind *kind = contender->kind;
	struct rival_filling filling = { .rival = kind->rival, .filter = &contender->filter };

	rival_begin(&filling);
	for (__u32 i = 0; i < rules; i++) {
		struct rule_key key = contest_key(kind, i);

		if (kind->rival == RIVAL_HASH_SHAPES)
			raw_filter_add_shape(&contender->filter, &key.shape);
		else
			key.key.word[flow_key_last(kind->family)] &= (1ULL << FLOW_KEY_SHAPE_SHIFT) - 1;
		rival_put(&filling, &key.key);
	}
	rival_end(&filling);
}

/* With room for `rules`, and none in it. */
static inline void contest_open_empty(struct contender *contender, const struct contender_kind *kind, __u32 rules)
{
	const __u64 slots = kind->options.has_addresses ? table_address_slots(table_slots_for(rules)) :
			    kind->rival == RIVAL_TABLE  ? table_slots_for(rules) :
							  1024;
	struct raw_filter *filter = &contender->filter;
	int error;

	*contender = (struct contender){ .kind = kind };
	error = raw_filter_prepare(PACKET_PATH_OBJECT, &kind->options, table_geometry(slots), filter);
	if (!error)
		error = rival_size(filter, kind->rival, rules);
	if (!error && kind->is_pressed)
		error = packet_path_press(filter);
	if (error)
		die(kind->name, error);
	contender->program = packet_path_load(filter, kind->program);
	raw_filter_set_up(filter);
	if (kind->is_pressed)
		packet_path_fill_pressure(filter);
}

static inline void contest_open_one(struct contender *contender, const struct contender_kind *kind, __u32 rules)
{
	const double before = memory_available_kib();
	const struct raw_filter *filter = &contender->filter;

	contest_open_empty(contender, kind, rules);
	if (kind->options.has_addresses)
		contest_fill_addresses(contender, rules);
	else if (kind->rival == RIVAL_TABLE)
		contest_fill_table(contender, rules);
	else
		contest_fill_rival(contender, rules);
	contender->available_mib = (before - memory_available_kib()) / 1024;
	contender->map_mib = kind->rival == RIVAL_TABLE ? packet_path_table_mib(filter, &kind->options) :
							  rival_mib(filter, kind->rival);
}

static inline void contest_open(struct contest *contest, const struct contender_kind *kinds, size_t count, __u32 rules)
{
	contest->count = count;
	contest->rules = rules;
	for (size_t i = 0; i < count; i++)
		contest_open_one(&contest->contender[i], &kinds[i], rules);
}

static inline void contest_close(struct contest *contest)
{
	for (size_t i = 0; i < contest->count; i++)
		raw_filter_close(&contest->contender[i].filter);
}

/* ---- packets ---- */

static inline void contest_choose(struct contest *contest, enum contest_traffic traffic)
{
	contest->parameters = (struct lookup_parameters){
		.flows = traffic == CONTEST_MISS ? CONTEST_OTHERS : contest->rules,
		.base = traffic == CONTEST_MISS ? RIVALS_OTHER : RIVALS_LISTED,
		.other = RIVALS_OTHER - RIVALS_LISTED,
		.share = traffic == CONTEST_MISS ? 0 : LOOKUP_SHARES - contest_listed[traffic],
	};

	for (size_t i = 0; i < contest->count; i++)
		packet_path_choose(&contest->contender[i].filter, &contest->parameters);
}

static inline double contest_wrong_allowed(const struct contest *contest, const struct contender_kind *kind)
{
	const double load = (double)contest->rules / table_slots_for(contest->rules);

	if (kind->rival != RIVAL_TABLE)
		return kind->wrong;
	return kind->options.is_exact ?
		       0 :
		       2 * (kind->shapes ? kind->shapes : 1) * table_false_positive_rate(kind->options.format, load);
}

/* Packets of flows without a rule that may be dropped; where flows are few, each comes many times. */
static inline double contest_wrong_packets(const struct contest *contest, const struct contender_kind *kind,
					   enum contest_traffic traffic, double others)
{
	const double wrong = contest_wrong_allowed(contest, kind);
	const double times = traffic == CONTEST_MISS ? 1 : (double)CONTEST_CHECKED / contest->rules;

	return wrong * others + 10 * !!wrong * (times > 1 ? times : 1);
}

/*
 * By what the one exit has counted: as many are dropped as are listed, give or take the contender's false
 * positives, its losses, and six standard deviations of the draw.
 */
static inline void contest_check(const struct contest *contest, struct contender *contender,
				 enum contest_traffic traffic)
{
	const struct contender_kind *kind = contender->kind;
	const double share = (double)contest_listed[traffic] / LOOKUP_SHARES;
	const double listed = CONTEST_CHECKED * share;
	const double chance = 6 * sqrt(CONTEST_CHECKED * share * (1 - share));
	const __u64 before = packet_path_counted(&contender->filter, OUTCOME_DROP_RULE, VERDICT_DROP);
	double dropped;
	__u32 verdict;

	packet_path_run_family(contender->program, kind->family, CONTEST_CHECKED, &verdict);
	dropped = packet_path_counted(&contender->filter, OUTCOME_DROP_RULE, VERDICT_DROP) - before;
	if (kind->rival == RIVAL_NONE)
		return;
	if (dropped < listed * (1 - kind->lost) - chance ||
	    dropped > listed + chance + contest_wrong_packets(contest, kind, traffic, CONTEST_CHECKED - listed))
		die(kind->name, EPROTO);
	if (traffic == CONTEST_MISS)
		contender->false_positives = dropped / CONTEST_CHECKED;
}

/* ---- measuring ---- */

static inline int contest_slices(void)
{
	return report_slices(CONTEST_SLICES, CONTEST_QUICK_SLICES);
}

static inline __u32 contest_packets(void)
{
	return report_is_quick() ? CONTEST_QUICK_PACKETS : CONTEST_PACKETS;
}

static inline __u32 contest_pressed_packets(__u32 lines)
{
	if (!lines)
		return contest_packets();
	return (report_is_quick() ? CONTEST_QUICK_PRESSED_LINES : CONTEST_PRESSED_LINES) / lines;
}

/* The other memory is read while it is timed, and not before: so caches hold what they would of long traffic. */
static inline double contest_pressed(const struct contest *contest, struct contender *contender)
{
	const __u32 packets = contest_pressed_packets(contest->lines);
	struct lookup_parameters parameters = contest->parameters;
	struct lookup_state since;

	parameters.lines = contest->lines;
	packet_path_choose(&contender->filter, &parameters);
	since = packet_path_run_pressed(&contender->filter, contender->program, parameters.lines, packets);
	packet_path_choose(&contender->filter, &contest->parameters);
	contender->lines = (double)since.lines / packets;
	return (double)since.ns / packets;
}

static inline double contest_slice(const struct contest *contest, struct contender *contender)
{
	const enum flow_family family = contender->kind->family;
	__u32 verdict;

	if (contest_slices() > 1)
		packet_path_run_family(contender->program, family, contest_packets(), &verdict);
	if (contender->kind->is_pressed)
		return contest_pressed(contest, contender);
	return packet_path_run_family(contender->program, family, contest_packets(), &verdict);
}

static inline void contest_measure(struct contest *contest, enum contest_traffic traffic)
{
	const bool is_pressed = contest->contender[0].kind->is_pressed;
	const int slices = is_pressed ? report_slices(CONTEST_SLICES, CONTEST_QUICK_PRESSED_SLICES) : contest_slices();

	contest_choose(contest, traffic);
	/* Before a run without the other memory, which changes no verdict. */
	for (size_t i = 0; i < contest->count && !contest->lines; i++)
		contest_check(contest, &contest->contender[i], traffic);
	for (int slice = 0; slice < slices; slice++)
		for (size_t i = 0; i < contest->count; i++)
			contest->contender[i].ns[slice] = contest_slice(contest, &contest->contender[i]);
	for (size_t i = 0; i < contest->count; i++)
		contest->contender[i].result = spread_of(contest->contender[i].ns, slices);
}

/* Of contender `i`, over that of contender `floor`. */
static inline double contest_over(const struct contest *contest, size_t i, size_t floor)
{
	return contest->contender[i].result.median - contest->contender[floor].result.median;
}

/* `what`: the members that say of which benchmark, as JSON. */
static inline void contest_report(const struct contest *contest, const char *what, enum contest_traffic traffic,
				  size_t floor)
{
	for (size_t i = 0; i < contest->count; i++) {
		const struct contender *contender = &contest->contender[i];
		const struct spread *ns = &contender->result;

		report_json("%s, \"rules\": %u, \"traffic\": \"%s\", \"variant\": \"%s\", "
			    "\"unit\": \"ns\", \"median\": %.2f, \"low\": %.2f, \"high\": %.2f, "
			    "\"over_floor\": %.2f, \"map_mib\": %.2f, \"available_mib\": %.1f, "
			    "\"lines\": %.0f",
			    what, contest->rules, contest_traffic_names[traffic], contender->kind->name, ns->median,
			    ns->low, ns->high, contest_over(contest, i, floor), contender->map_mib,
			    contender->available_mib, contender->lines);
	}
}

#endif
