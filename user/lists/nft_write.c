// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes rules for nft -j -f. Prefixes in an interval set must not overlap, and nft must not merge them. So
 * rules of one prefix go into sets by nesting depth: "xc_drop_src_4", then "xc_drop_src_4_1" for prefixes
 * inside those. Rules with more columns go into one set for each pair of prefix lengths:
 * "xc_drop_src24_dport_4".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lists/internal.h"

#define TABLE "\"family\": \"inet\", \"table\": \"xdp_cuckoo\""
#define COLUMNS_MAX 5
#define NAME_BYTES 64
#define COMMENT_MAX 128 /* nft's own limit, in bytes */
#define DEPTH_MAX 129   /* of nested prefixes */

/* What all elements of a set have in common. */
struct kind {
	struct rule like; /* members that differ within the set are 0 */
	bool is_prefix;   /* only a source or a destination, of any length */
	bool is_dst;      /* the destination */
	unsigned int depth;
};

struct nft_set {
	struct kind kind;
	__u64 count;
	bool is_timed, has_prefix;
};

/* The prefixes that contain the last prefix, the widest first, and the last one itself. */
struct nesting {
	union flow_addr address[DEPTH_MAX];
	__u8 length[DEPTH_MAX];
	size_t depth;
};

struct writing {
	FILE *to;
	const struct rule_set *rules;
	struct nft_set *sets;
	size_t count;
	struct nesting nesting[FLOW_FAMILIES][2][2]; /* by family, action, side */
};

/* ---- kinds ---- */

static unsigned int address_bits(const struct rule *rule)
{
	return rule->family == FLOW_IPV4 ? 32 : 128;
}

/* The rules are sorted: a prefix comes before the prefixes inside it. */
static unsigned int depth_of(struct nesting *nesting, const union flow_addr *address, __u8 length)
{
	while (nesting->depth) {
		const size_t last = nesting->depth - 1;
		const union flow_addr wider = rule_network(address, nesting->length[last]);

		if (!memcmp(&wider, &nesting->address[last], sizeof(wider)))
			break;
		nesting->depth--;
	}
	nesting->address[nesting->depth] = *address;
	nesting->length[nesting->depth] = length;
	return nesting->depth++;
}

static struct kind kind_of(struct writing *writing, const struct rule *rule)
{
	struct kind kind = { .like = *rule };

	kind.is_dst = !rule->src_len && rule->dst_len;
	kind.is_prefix = !rule->fields && rule->family != FLOW_NO_FAMILY && !(rule->src_len && rule->dst_len);
	kind.like.src = kind.like.dst = (union flow_addr){};
	kind.like.sport = kind.like.dport = 0;
	kind.like.timeout_ms = 0;
	kind.like.comment[0] = '\0';
	if (rule->port_kind != FLOW_ICMP)
		kind.like.proto = 0;
	if (kind.is_prefix) {
		struct nesting *nesting = &writing->nesting[rule->family][rule->action == RULE_PASS][kind.is_dst];

		kind.like.src_len = kind.like.dst_len = 0;
		kind.depth = depth_of(nesting, kind.is_dst ? &rule->dst : &rule->src,
				      kind.is_dst ? rule->dst_len : rule->src_len);
	}
	return kind;
}

static bool is_same_kind(const struct kind *a, const struct kind *b)
{
	return a->is_prefix == b->is_prefix && a->is_dst == b->is_dst && a->depth == b->depth &&
	       !memcmp(&a->like, &b->like, offsetof(struct rule, comment));
}

static struct nft_set *set_of(struct writing *writing, const struct kind *kind)
{
	struct nft_set *grown;

	for (size_t i = 0; i < writing->count; i++)
		if (is_same_kind(&writing->sets[i].kind, kind))
			return &writing->sets[i];
	grown = realloc(writing->sets, (writing->count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	writing->sets = grown;
	grown[writing->count] = (struct nft_set){ .kind = *kind };
	return &grown[writing->count++];
}

static int survey(struct writing *writing, const struct list_losses *losses)
{
	for (size_t i = 0; i < writing->rules->count; i++) {
		struct nft_set *set;
		struct kind kind;
		struct rule rule;

		rule_set_get(writing->rules, i, &rule);
		kind = kind_of(writing, &rule);
		set = set_of(writing, &kind);
		if (!set)
			return -ENOMEM;
		set->is_timed |= rule.timeout_ms != 0;
		set->has_prefix |=
			(rule.src_len != address_bits(&rule) && (rule.src_len || kind.is_prefix) && !kind.is_dst) ||
			(rule.dst_len && rule.dst_len != address_bits(&rule));
		if (strlen(rule.comment) > COMMENT_MAX)
			losses->tell(&rule, "is written without its comment: nft allows 128 bytes", losses->context);
	}
	return 0;
}

/* ---- columns ---- */

enum column { COLUMN_PROTO, COLUMN_SRC, COLUMN_SPORT, COLUMN_DST, COLUMN_DPORT };

/* In the order of the rule text. Returns the number of columns. */
static size_t columns_of(const struct kind *kind, enum column columns[COLUMNS_MAX])
{
	const struct rule *like = &kind->like;
	size_t count = 0;

	if (like->fields & RULE_PROTO)
		columns[count++] = COLUMN_PROTO;
	if (like->src_len || (kind->is_prefix && !kind->is_dst))
		columns[count++] = COLUMN_SRC;
	if (like->fields & RULE_SPORT)
		columns[count++] = COLUMN_SPORT;
	if (like->dst_len || (kind->is_prefix && kind->is_dst))
		columns[count++] = COLUMN_DST;
	if (like->fields & RULE_DPORT)
		columns[count++] = COLUMN_DPORT;
	return count;
}

static const char *column_name(const struct rule *like, enum column column)
{
	const bool is_icmp = like->port_kind == FLOW_ICMP;

	switch (column) {
	case COLUMN_PROTO:
		return "proto";
	case COLUMN_SRC:
		return "src";
	case COLUMN_SPORT:
		return is_icmp ? "type" : "sport";
	case COLUMN_DST:
		return "dst";
	default:
		return is_icmp ? "code" : "dport";
	}
}

static const char *column_type(const struct rule *like, enum column column)
{
	const bool is_icmp = like->port_kind == FLOW_ICMP, is_v6 = like->family == FLOW_IPV6;

	switch (column) {
	case COLUMN_PROTO:
		return "inet_proto";
	case COLUMN_SRC:
	case COLUMN_DST:
		return is_v6 ? "ipv6_addr" : "ipv4_addr";
	case COLUMN_SPORT:
		return !is_icmp ? "inet_service" : is_v6 ? "icmpv6_type" : "icmp_type";
	default:
		return !is_icmp ? "inet_service" : is_v6 ? "icmpv6_code" : "icmp_code";
	}
}

static void name_of(const struct kind *kind, char name[NAME_BYTES])
{
	const struct rule *like = &kind->like;
	enum column columns[COLUMNS_MAX];
	const size_t count = columns_of(kind, columns);
	size_t used = snprintf(name, NAME_BYTES, "xc_%s", like->action == RULE_PASS ? "pass" : "drop");

	for (size_t i = 0; i < count; i++) {
		const unsigned int length = columns[i] == COLUMN_SRC ? like->src_len :
					    columns[i] == COLUMN_DST ? like->dst_len :
								       0;

		used += snprintf(name + used, NAME_BYTES - used, "_%s", column_name(like, columns[i]));
		if (length && length < address_bits(like))
			used += snprintf(name + used, NAME_BYTES - used, "%u", length);
	}
	if (like->family != FLOW_NO_FAMILY)
		used += snprintf(name + used, NAME_BYTES - used, "_%d", like->family == FLOW_IPV4 ? 4 : 6);
	if (kind->depth)
		snprintf(name + used, NAME_BYTES - used, "_%u", kind->depth);
}

/* ---- elements ---- */

static void write_prefix(FILE *to, const struct rule *rule, const union flow_addr *address, unsigned int length)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(rule->family == FLOW_IPV4 ? AF_INET : AF_INET6, address, text, sizeof(text));
	if (length < address_bits(rule))
		fprintf(to, "{\"prefix\": {\"addr\": \"%s\", \"len\": %u}}", text, length);
	else
		fprintf(to, "\"%s\"", text);
}

static void write_column(FILE *to, const struct rule *rule, enum column column)
{
	switch (column) {
	case COLUMN_PROTO:
		fprintf(to, "%u", rule->proto);
		break;
	case COLUMN_SRC:
		write_prefix(to, rule, &rule->src, rule->src_len);
		break;
	case COLUMN_SPORT:
		fprintf(to, "%u", ntohs(rule->sport));
		break;
	case COLUMN_DST:
		write_prefix(to, rule, &rule->dst, rule->dst_len);
		break;
	case COLUMN_DPORT:
		fprintf(to, "%u", ntohs(rule->dport));
		break;
	}
}

static void write_value(FILE *to, const struct kind *kind, const struct rule *rule)
{
	enum column columns[COLUMNS_MAX];
	const size_t count = columns_of(kind, columns);

	fputs(count > 1 ? "{\"concat\": [" : "", to);
	for (size_t i = 0; i < count; i++) {
		fputs(i ? ", " : "", to);
		write_column(to, rule, columns[i]);
	}
	fputs(count > 1 ? "]}" : "", to);
}

static void write_element(FILE *to, const struct kind *kind, const struct rule *rule)
{
	const bool has_comment = rule->comment[0] && strlen(rule->comment) <= COMMENT_MAX;

	if (!rule->timeout_ms && !has_comment) {
		write_value(to, kind, rule);
		return;
	}
	fputs("{\"elem\": {\"val\": ", to);
	write_value(to, kind, rule);
	if (rule->timeout_ms)
		fprintf(to, ", \"timeout\": %lld", (long long)(rule->timeout_ms + 999) / 1000);
	if (has_comment) {
		json_t *comment = json_string(rule->comment);

		fputs(", \"comment\": ", to);
		json_dumpf(comment, to, JSON_ENCODE_ANY);
		json_decref(comment);
	}
	fputs("}}", to);
}

/* ---- sets ---- */

static void write_heading(FILE *to, const struct nft_set *set)
{
	enum column columns[COLUMNS_MAX];
	const size_t count = columns_of(&set->kind, columns);
	char name[NAME_BYTES];

	name_of(&set->kind, name);
	fprintf(to, ",\n{\"set\": {" TABLE ", \"name\": \"%s\", \"type\": %s", name, count > 1 ? "[" : "");
	for (size_t i = 0; i < count; i++)
		fprintf(to, "%s\"%s\"", i ? ", " : "", column_type(&set->kind.like, columns[i]));
	fputs(count > 1 ? "]" : "", to);
	if (set->has_prefix || set->is_timed)
		fprintf(to, ", \"flags\": [%s%s%s]", set->has_prefix ? "\"interval\"" : "",
			set->has_prefix && set->is_timed ? ", " : "", set->is_timed ? "\"timeout\"" : "");
	fputs(", \"elem\": [", to);
}

static void write_set(struct writing *writing, const struct nft_set *set)
{
	bool is_first = true;

	memset(writing->nesting, 0, sizeof(writing->nesting));
	write_heading(writing->to, set);
	for (size_t i = 0; i < writing->rules->count; i++) {
		struct kind kind;
		struct rule rule;

		rule_set_get(writing->rules, i, &rule);
		kind = kind_of(writing, &rule);
		if (!is_same_kind(&kind, &set->kind))
			continue;
		fputs(is_first ? "\n" : ",\n", writing->to);
		write_element(writing->to, &kind, &rule);
		is_first = false;
	}
	fputs("\n]}}", writing->to);
}

int list_write_nft(FILE *to, const struct rule_set *set, const struct list_losses *losses)
{
	struct writing *writing = calloc(1, sizeof(*writing));
	int error = -ENOMEM;

	if (writing) {
		writing->to = to;
		writing->rules = set;
		error = survey(writing, losses);
	}
	if (!error) {
		fprintf(to, "{\"nftables\": [\n{\"table\": {\"family\": \"inet\", \"name\": \"xdp_cuckoo\"}}");
		for (size_t i = 0; i < writing->count; i++)
			write_set(writing, &writing->sets[i]);
		fputs("\n]}\n", to);
	}
	if (writing)
		free(writing->sets);
	free(writing);
	return error;
}
