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
#define COMMENT_MAX 128 /* nft's own limit, in bytes */
#define DEPTH_MAX 129   /* of nested prefixes */

/* The prefixes that contain the last prefix, the widest first, and the last one itself. */
struct nesting {
	union flow_addr address[DEPTH_MAX];
	__u8 length[DEPTH_MAX];
	size_t depth;
};

struct writing {
	const struct list_losses *losses;
	struct nesting nesting[FLOW_FAMILIES][RULE_ACTIONS][2]; /* by family, action, side */
};

/* ---- kinds ---- */

/* The rules are sorted: a prefix comes before the prefixes inside it. */
static unsigned int depth_of(struct nesting *nesting, const union flow_addr *address, __u8 length)
{
	while (nesting->depth) {
		const size_t last = nesting->depth - 1;

		if (rule_is_network_of(&nesting->address[last], nesting->length[last], address))
			break;
		nesting->depth--;
	}
	nesting->address[nesting->depth] = *address;
	nesting->length[nesting->depth] = length;
	return nesting->depth++;
}

static bool kind_of(const struct rule *rule, struct list_kind *kind, void *context)
{
	const bool is_dst = !rule->src_len && rule->dst_len;
	struct writing *writing = context;

	*kind = (struct list_kind){ .family = rule->family,
				    .action = rule->action,
				    .fields = rule->fields,
				    .src_len = rule->src_len,
				    .dst_len = rule->dst_len,
				    .is_icmp = rule->port_kind == FLOW_ICMP };
	/* Only a source or a destination. */
	if (!rule->fields && !(rule->src_len && rule->dst_len)) {
		*(is_dst ? &kind->dst_len : &kind->src_len) = LIST_ANY_LENGTH;
		kind->depth = depth_of(&writing->nesting[rule->family][rule->action][is_dst],
				       is_dst ? &rule->dst : &rule->src, is_dst ? rule->dst_len : rule->src_len);
	}
	if (rule->fields & (RULE_NEW | RULE_RATE | RULE_DETAILS)) {
		writing->losses
			->tell(rule,
			       rule->fields & RULE_RATE ?
				       "is left out: a set of nft has no rate; nft has it in rules: limit rate over" :
			       rule->fields & RULE_NEW ?
				       "is left out: a set of nft has no state; nft has it in rules: ct state new" :
			       rule->details.sport_free || rule->details.dport_free ?
				       "is left out: no set of nft is written with blocks of ports" :
				       "is left out: nft has flags, fragments and lengths in rules, not in sets",
			       writing->losses->context);
		return false;
	}
	if (strlen(rule->comment) > COMMENT_MAX)
		writing->losses->tell(rule, "is written without its comment: nft allows 128 bytes",
				      writing->losses->context);
	return true;
}

/* ---- columns ---- */

/* In the order of the rule text. */
enum column { COLUMN_PROTO, COLUMN_SRC, COLUMN_SPORT, COLUMN_DST, COLUMN_DPORT, COLUMNS };

static const struct {
	const char *name[2];    /* [is_icmp] */
	const char *type[2][2]; /* [is_icmp][is_ipv6] */
} columns[COLUMNS] = {
	[COLUMN_PROTO] = { { "proto", "proto" }, { { "inet_proto", "inet_proto" }, { "inet_proto", "inet_proto" } } },
	[COLUMN_SRC] = { { "src", "src" }, { { "ipv4_addr", "ipv6_addr" }, { "ipv4_addr", "ipv6_addr" } } },
	[COLUMN_SPORT] = { { "sport", "type" },
			   { { "inet_service", "inet_service" }, { "icmp_type", "icmpv6_type" } } },
	[COLUMN_DST] = { { "dst", "dst" }, { { "ipv4_addr", "ipv6_addr" }, { "ipv4_addr", "ipv6_addr" } } },
	[COLUMN_DPORT] = { { "dport", "code" },
			   { { "inet_service", "inet_service" }, { "icmp_code", "icmpv6_code" } } },
};

/* Returns the number of columns. */
static size_t columns_of(const struct list_kind *kind, enum column has[COLUMNS])
{
	const bool is_there[COLUMNS] = { [COLUMN_PROTO] = kind->fields & RULE_PROTO,
					 [COLUMN_SRC] = kind->src_len,
					 [COLUMN_SPORT] = kind->fields & RULE_SPORT,
					 [COLUMN_DST] = kind->dst_len,
					 [COLUMN_DPORT] = kind->fields & RULE_DPORT };
	size_t count = 0;

	for (enum column column = 0; column < COLUMNS; column++)
		if (is_there[column])
			has[count++] = column;
	return count;
}

/* ---- elements ---- */

static void write_prefix(FILE *to, const struct rule *rule, const union flow_addr *address, unsigned int length)
{
	const unsigned int bits = rule_address_bits(rule->family);
	char text[RULE_PREFIX_BYTES];

	rule_prefix_format(rule->family, address, bits, text);
	if (length < bits)
		fprintf(to, "{\"prefix\": {\"addr\": \"%s\", \"len\": %u}}", text, length);
	else
		fprintf(to, "\"%s\"", text);
}

static void write_value(FILE *to, const struct list_kind *kind, const struct rule *rule)
{
	const unsigned int numbers[COLUMNS] = {
		[COLUMN_PROTO] = rule->proto, [COLUMN_SPORT] = ntohs(rule->sport), [COLUMN_DPORT] = ntohs(rule->dport)
	};
	enum column has[COLUMNS];
	const size_t count = columns_of(kind, has);

	fputs(count > 1 ? "{\"concat\": [" : "", to);
	for (size_t i = 0; i < count; i++) {
		fputs(i ? ", " : "", to);
		if (has[i] == COLUMN_SRC)
			write_prefix(to, rule, &rule->src, rule->src_len);
		else if (has[i] == COLUMN_DST)
			write_prefix(to, rule, &rule->dst, rule->dst_len);
		else
			fprintf(to, "%u", numbers[has[i]]);
	}
	fputs(count > 1 ? "]}" : "", to);
}

static void write_element(FILE *to, const struct list_kind *kind, const struct rule *rule)
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

int list_write_nft(FILE *to, const struct rule_set *set, const struct list_losses *losses)
{
	struct writing *writing = calloc(1, sizeof(*writing));
	struct list_groups groups = {};
	enum column has[COLUMNS];
	int error = -ENOMEM;

	if (writing) {
		writing->losses = losses;
		error = list_groups_make(&groups, set, kind_of, writing);
	}
	if (!error)
		fprintf(to, "{\"nftables\": [\n{\"table\": {\"family\": \"inet\", \"name\": \"xdp_cuckoo\"}}");
	for (size_t i = 0; i < groups.count && !error; i++) {
		const struct list_group *group = &groups.group[i];
		const struct list_kind *kind = &group->kind;
		const size_t count = columns_of(kind, has);
		struct rule rule;

		fprintf(to, ",\n{\"set\": {" TABLE ", \"name\": \"xc_%s", rule_action_name(kind->action));
		for (size_t c = 0; c < count; c++) {
			const __u8 length = has[c] == COLUMN_SRC ? kind->src_len :
					    has[c] == COLUMN_DST ? kind->dst_len :
								   0;

			fprintf(to, "_%s", columns[has[c]].name[kind->is_icmp]);
			if (length && length < rule_address_bits(kind->family))
				fprintf(to, "%u", length);
		}
		if (kind->family != FLOW_NO_FAMILY)
			fprintf(to, "_%d", kind->family == FLOW_IPV4 ? 4 : 6);
		if (kind->depth)
			fprintf(to, "_%u", kind->depth);
		fprintf(to, "\", \"type\": %s", count > 1 ? "[" : "");
		for (size_t c = 0; c < count; c++)
			fprintf(to, "%s\"%s\"", c ? ", " : "",
				columns[has[c]].type[kind->is_icmp][kind->family == FLOW_IPV6]);
		fputs(count > 1 ? "]" : "", to);
		if (group->has_prefix || group->is_timed)
			fprintf(to, ", \"flags\": [%s%s%s]", group->has_prefix ? "\"interval\"" : "",
				group->has_prefix && group->is_timed ? ", " : "", group->is_timed ? "\"timeout\"" : "");
		fputs(", \"elem\": [", to);
		for (size_t k = 0, first = 1; list_groups_next(&groups, group, &k, &rule); first = 0) {
			fputs(first ? "\n" : ",\n", to);
			write_element(to, kind, &rule);
		}
		fputs("\n]}}", to);
	}
	if (!error)
		fputs("\n]}\n", to);
	list_groups_close(&groups);
	free(writing);
	return error;
}
