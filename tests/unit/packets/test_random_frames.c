// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Frames with random changes: both BPF programs must do what the host's parser says about each frame. For the
 * flow that the parser finds, a rule that matches it must hit, or a rule that differs in one bit must not
 * hit. FRAMES=FILE adds frames from a file: hexadecimal digits, one frame a line. ROUNDS=n changes each frame
 * n times.
 */
#include "unit/packets_fixture.h"

#include <endian.h>

#include "unit/random_fill.h"

#define ROUNDS 150
#define CHANGES_MAX 6
#define FRAME_BYTES_MAX (PACKET_BYTES - 512) /* a copy of the kernel's parts, and room to grow */

struct frame {
	size_t length;
	__u8 before[PACKET_ALIGN];
	__u8 byte[PACKET_BYTES];
};

static uint64_t random_state;
static unsigned long hits, misses, with_details, hits_of_details, results[OUTCOMES];

static size_t below(size_t bound)
{
	return random_below(&random_state, bound);
}

/* ---- changes ---- */

static void set_byte(struct frame *frame)
{
	static const __u8 values[] = { 0, 1, 4, 6, 17, 44, 51, 60, 0x45, 0x60, 0x81, 0xff };
	__u8 *byte = &frame->byte[below(frame->length)];

	*byte = below(2) ? values[below(sizeof(values))] : random_next(&random_state);
}

static void flip_bit(struct frame *frame)
{
	frame->byte[below(frame->length)] ^= 1 << below(8);
}

static void cut(struct frame *frame)
{
	frame->length = below(frame->length) + 1;
}

static void pad(struct frame *frame)
{
	const size_t more = below(64);

	if (frame->length + more > FRAME_BYTES_MAX)
		return;
	random_fill(&random_state, frame->byte + frame->length, more);
	frame->length += more;
}

/* Inserts a VLAN tag of any kind after the addresses. */
static void add_tag(struct frame *frame)
{
	static const __u16 kinds[] = { ETH_P_8021Q, ETH_P_8021AD, ETH_P_PPP_SES, 0x9100 };

	if (frame->length < 14 || frame->length + 4 > FRAME_BYTES_MAX)
		return;
	memmove(frame->byte + 16, frame->byte + 12, frame->length - 12);
	packet_put16(frame->byte + 12, kinds[below(COUNT(kinds))]);
	frame->length += 4;
}

/* Replaces the rest of the frame by the rest of another packet. */
static void splice_parts(struct frame *frame)
{
	const struct packet_frame *other = &frames[below(PACKETS)];
	const size_t at = below(frame->length + 1), from = below(other->length + 1);

	if (at + other->length - from > FRAME_BYTES_MAX)
		return;
	memcpy(frame->byte + at, other->byte + from, other->length - from);
	frame->length = at + other->length - from;
}

static void change(struct frame *frame)
{
	static void (*const changes[])(struct frame * frame) = { set_byte, set_byte, flip_bit, flip_bit,
								 cut,      pad,      add_tag,  splice_parts };

	for (size_t count = below(CHANGES_MAX); count && frame->length; count--)
		changes[below(COUNT(changes))](frame);
}

/* ---- checks ---- */

static void check_run(struct scene *scene, const struct frame *frame, const struct flow *flow, enum parse_result result)
{
	enum abi_verdict verdict;
	const enum abi_outcome outcome = scene_expect(scene, result, flow, &verdict);

	for (size_t i = 0; i < scene->filter.programs; i++) {
		const struct raw_filter_run run = raw_filter_run(&scene->filter, i, frame->byte, frame->length);
		const unsigned long before = failures;

		check(!run.error, "random frame", raw_filter_program_names[i], -run.error);
		check(run.outcome == outcome, "random frame", "outcome", run.outcome);
		check(run.verdict == verdict, "random frame", "verdict", run.verdict);
		check(scene_may_count(scene, flow, result, outcome, run.number), "random frame", "counted rule",
		      run.number);
		if (failures == before || failures > FAILURES_SHOWN)
			continue;
		print_error("expected outcome %d of %zu bytes: ", outcome, frame->length);
		for (size_t b = 0; b < frame->length; b++)
			print_error("%02x", frame->byte[b]);
		print_error("\n");
	}
	hits += outcome == OUTCOME_DROP_RULE;
	misses += outcome != OUTCOME_DROP_RULE;
}

/* Changes one bit of the rule, in a field that it has. */
static void spoil(struct rule *rule)
{
	union flow_addr *address = rule->src_len ? &rule->src : &rule->dst;
	const unsigned int length = rule->src_len ? rule->src_len : rule->dst_len;
	const unsigned int bit = length ? below(length) : 0;

	switch (below(4)) {
	case 0:
		rule->sport ^= rule->fields & RULE_SPORT ? bpf_htons(1 << below(16)) : 0;
		break;
	case 1:
		rule->dport ^= rule->fields & RULE_DPORT ? bpf_htons(1 << below(16)) : 0;
		break;
	case 2:
		rule->proto ^= rule->fields & RULE_PROTO ? 1 << below(8) : 0;
		break;
	default:
		address->byte[bit / 8] ^= length ? 0x80 >> bit % 8 : 0;
	}
}

/* Lets the rule compare random details, with the values that the flow has there. */
static void add_details(struct rule *rule, const struct flow *flow)
{
	struct rule_details *details = &rule->details;
	const bool has_flags = flow->tcp_flags && below(2);

	details->flags_mask = has_flags ? random_next(&random_state) : 0;
	details->fragment_mask = flow->fragment && below(2) ? FLOW_FRAGMENT_ANY | below(2) : 0;
	if (details->fragment_mask == FLOW_FRAGMENT_ANY && flow->fragment == FLOW_FRAGMENT_NO)
		details->fragment_mask = FLOW_FRAGMENT_MASK;
	details->length_bits = RULE_BLOCK_BITS * below(5);
	if (rule->port_kind == FLOW_PORTS) {
		details->sport_free = rule->fields & RULE_SPORT ? RULE_BLOCK_BITS * below(4) : 0;
		details->dport_free = rule->fields & RULE_DPORT ? RULE_BLOCK_BITS * below(4) : 0;
	}
	rule->flags = flow->tcp_flags & details->flags_mask;
	rule->fragment = flow->fragment & details->fragment_mask;
	rule->length = flow->length & 0xffffU << (RULE_PORT_BITS - details->length_bits);
	rule_mark_details(&rule->fields, details);
	if (has_flags) {
		rule->fields |= RULE_PROTO;
		rule->proto = IPPROTO_TCP;
	}
}

/* Changes one bit of the details that the rule compares. */
static void spoil_details(struct rule *rule)
{
	const struct rule_details *details = &rule->details;

	switch (below(3)) {
	case 0:
		rule->flags ^= details->flags_mask & 1 << below(8);
		break;
	case 1:
		rule->fragment ^= details->fragment_mask == FLOW_FRAGMENT_MASK ? 1 : 0;
		if (details->fragment_mask && !rule->fragment)
			rule->fragment = FLOW_FRAGMENT_LATER;
		break;
	default:
		rule->length ^= details->length_bits ? 0x8000 >> below(details->length_bits) : 0;
	}
}

static void check_frame(struct scene *scene, const struct frame *frame)
{
	static const struct rule_kind other_kinds[] = { { .fields = RULE_NEW, .src_len = WHOLE },
							{ .fields = RULE_NEW | RULE_PROTO, .src_len = 20 },
							{ .fields = RULE_NEW, .src_len = 15 },
							{ .src_len = 12 } };
	const struct rule_kind *kind = below(3) ? &rule_kinds[below(RULE_KINDS)] :
						  &other_kinds[below(COUNT(other_kinds))];
	enum parse_result result;
	struct rule_key keys[RULE_KEYS_MAX];
	struct flow flow = {};
	struct rule rule;

	if (frame->length < RAW_FILTER_RUN_MIN)
		return;
	result = parse_frame(frame->byte, frame->byte + frame->length, &flow);
	results[result]++;
	scene->filter.reads_hints = below(2);
	scene_set_up(scene);
	scene->filter.config->table[0].drops = below(2) << result;
	if (rule_from_flow(&flow, kind, RULE_DROP, &rule)) {
		/* Only one family, so one key: in so small a table two keys may need the same place. */
		rule.family = flow.family;
		if (below(2))
			add_details(&rule, &flow);
		if (below(3) == 0)
			spoil(&rule);
		if (below(6) == 0)
			spoil_details(&rule);
		rule.sport &= htobe16(0xffff << rule.details.sport_free);
		rule.dport &= htobe16(0xffff << rule.details.dport_free);
		with_details += !!(rule.fields & RULE_DETAILS);
		scene_add(scene, &rule);
		hits_of_details += rule.fields & RULE_DETAILS && rule_matches(&rule, &flow, result);
		rule_keys(&rule, keys);
		if (below(2))
			hints_set_shortcuts(raw_filter_hints(&scene->filter), &keys[0]);
	}
	check_run(scene, frame, &flow, result);
}

/* ---- frames ---- */

static unsigned long count_rounds(void)
{
	const char *text = getenv("ROUNDS");

	return text ? strtoul(text, NULL, 10) : ROUNDS;
}

static void check_changed_rows(struct scene *scene)
{
	const unsigned long rounds = count_rounds();

	for (size_t i = 0; i < PACKETS; i++)
		for (unsigned long round = 0; round < rounds; round++) {
			struct frame frame = { .length = frames[i].length };

			memcpy(frame.byte, frames[i].byte, frame.length);
			change(&frame);
			check_frame(scene, &frame);
		}
}

static bool read_hex(const char *line, struct frame *frame)
{
	unsigned int byte;

	frame->length = 0;
	for (; *line && *line != '\n'; line += 2) {
		if (frame->length == FRAME_BYTES_MAX || !line[1] || sscanf(line, "%2x", &byte) != 1)
			return false;
		frame->byte[frame->length++] = byte;
	}
	return true;
}

static void check_file(struct scene *scene, const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned long count = 0;
	struct frame frame;
	char *line = NULL;
	size_t room = 0;

	assert_non_null(file);
	for (; getline(&line, &room, file) > 0; count++)
		if (read_hex(line, &frame))
			check_frame(scene, &frame);
	print_message("%lu frames of %s\n", count, path);
	free(line);
	fclose(file);
}

SCENE_TEST(test_random_frames)
{
	const char *path = getenv("FRAMES");

	random_state = seed_of_run();
	if (path)
		check_file(scene, path);
	check_changed_rows(scene);
	print_message("%lu frames hit their rule, %lu did not\n", hits, misses);
	print_message("%lu rules compared details, %lu of these hit\n", with_details, hits_of_details);
	assert_true(hits_of_details > count_rounds() && with_details > hits_of_details + count_rounds());
	for (size_t i = 0; i < OUTCOME_POLICIES; i++)
		print_message("result %zu: %lu\n", i, results[i]);
	assert_true(hits > 10 * count_rounds() && misses > 10 * count_rounds());
}

int main(void)
{
	build_frames();
	return cmocka_run_group_tests(tests, scene_open_exact, scene_close);
}
