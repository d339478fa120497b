// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sends a frame for each flow from one end of a veth pair, and checks at the other end whether it
 * arrived as expected; as often as asked for, or until it is told to stop; at full speed, or at a rate. Loss-free
 * without sleeping: a batch fits the veth's queue, a marker frame follows it, and a veth keeps the order, so once the
 * marker is there nothing is under way. A card with several queues does not keep the order: use --settle MS.
 */
#include <getopt.h>
#include <signal.h>
#include <sys/random.h>
#include <time.h>

#include "frame.h"
#include "wire.h"

#define MARKER_INDEX UINT32_MAX
#define MARKER_MS 30000
#define MISMATCHES_SHOWN 10
#define KIND_BYTES 24

struct tally {
	char name[KIND_BYTES];
	uint64_t sent, passed, expected_passed, wrong;
};

struct flow {
	struct frame_flow frame;
	char *line;
	unsigned int kind;
	uint32_t passed; /* frames that arrived */
	bool expect_pass;
};

struct run {
	struct flow *flow;
	size_t flows, flow_room;
	struct tally *kind;
	unsigned int kinds;
	struct wire_end from, to;
	uint8_t mac[2][ETH_ALEN];
	uint32_t id;
	long settle_ms;             /* frames may come so long after another, even after the last marker */
	unsigned long repeat, rate; /* rate: frames a second at most; 0: as fast as it goes */
	bool is_endless;            /* until SIGTERM; then `repeat` becomes the number of rounds */
	const char *wrong_path;
	bool json;
};

/* Doubles the room of a growing array where it is full. */
static void *grow(void *array, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return array;
	*room = *room ? 2 * *room : 1024;
	array = reallocarray(array, *room, size);
	if (!array)
		abort();
	return array;
}

static unsigned int kind_find(struct run *run, const char *name)
{
	unsigned int i = 0;

	while (i < run->kinds && strcmp(run->kind[i].name, name) != 0)
		i++;
	if (i < run->kinds)
		return i;
	run->kind = reallocarray(run->kind, run->kinds + 1, sizeof(*run->kind));
	if (!run->kind)
		abort();
	run->kind[run->kinds] = (struct tally){ 0 };
	snprintf(run->kind[run->kinds].name, KIND_BYTES, "%s", name);
	return run->kinds++;
}

/* `line` is EXPECT KIND FLOW. */
static int flow_read(struct run *run, const char *line)
{
	struct flow flow = { .line = strdup(line) };
	char text[512], *rest = text;
	const char *expect, *kind;

	snprintf(text, sizeof(text), "%s", line);
	expect = strtok_r(NULL, " \t", &rest);
	kind = strtok_r(NULL, " \t", &rest);
	if (!flow.line || !expect || !kind || strlen(kind) >= KIND_BYTES)
		return -EINVAL;
	flow.expect_pass = strcmp(expect, "pass") == 0;
	if ((!flow.expect_pass && strcmp(expect, "drop") != 0) || frame_parse(rest, &flow.frame))
		return -EINVAL;
	flow.kind = kind_find(run, kind);
	run->flow = grow(run->flow, run->flows, &run->flow_room, sizeof(flow));
	run->flow[run->flows++] = flow;
	return 0;
}

static int flows_read(struct run *run, FILE *file)
{
	unsigned long number = 0;
	char line[512];

	while (fgets(line, sizeof(line), file)) {
		number++;
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '\0' || line[0] == '#')
			continue;
		if (flow_read(run, line)) {
			fprintf(stderr, "traffic: line %lu: not a flow: %s\n", number, line);
			return -EINVAL;
		}
	}
	if (!run->flows)
		fputs("traffic: no flows on standard input\n", stderr);
	return run->flows ? 0 : -EINVAL;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Counts arrivals until none has come for so long: -ETIMEDOUT; or until the marker has come: 0; or other -errno. */
static int arrivals_count(struct run *run, long quiet_ms)
{
	struct frame_trailer trailer[WIRE_BATCH_FRAMES];
	long end = now_ms() + quiet_ms;

	for (long left = quiet_ms; left > 0; left = end - now_ms()) {
		const int count = wire_receive(&run->to, (int)left, trailer);
		bool is_complete = false;

		if (count < 0)
			return count;
		for (int i = 0; i < count; i++) {
			if (trailer[i].run != run->id)
				continue;
			end = now_ms() + quiet_ms;
			if (trailer[i].index == MARKER_INDEX)
				is_complete = true;
			else if (trailer[i].index < run->flows)
				run->flow[trailer[i].index].passed++;
		}
		if (is_complete)
			return 0;
	}
	return -ETIMEDOUT;
}

static int batch_await(struct run *run)
{
	const int error = arrivals_count(run, MARKER_MS);

	if (error == -ETIMEDOUT)
		fprintf(stderr, "traffic: the marker frame did not come within %d ms\n", MARKER_MS);
	return error;
}

static int batch_run(struct run *run, struct wire_batch *batch)
{
	const struct frame_trailer marker = { FRAME_TRAILER_MAGIC, run->id, MARKER_INDEX };
	int error;

	wire_add(batch, frame_build_marker(run->mac, &marker, wire_frame(batch)));
	error = wire_send(&run->from, batch);
	return error ? error : batch_await(run);
}

/* At the end of a round: whether there is another. A pending SIGTERM interrupts no system call. */
static bool has_next_round(struct run *run, size_t rounds)
{
	sigset_t pending;

	if (!run->is_endless)
		return rounds < run->repeat;
	if (!sigpending(&pending) && !sigismember(&pending, SIGTERM))
		return true;
	run->repeat = rounds;
	return false;
}

/* Until so many frames may have been sent since the start. */
static void keep_pace(const struct run *run, const struct timespec *start, size_t sent)
{
	const uint64_t ns = start->tv_nsec + sent * 1000000000ULL / (run->rate ? run->rate : 1);
	const struct timespec until = { start->tv_sec + ns / 1000000000, ns % 1000000000 };

	while (run->rate && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static int flows_send(struct run *run)
{
	static struct wire_batch batch;
	struct frame_trailer trailer = { .magic = FRAME_TRAILER_MAGIC, .run = run->id };
	struct timespec start;
	int error = 0;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (size_t i = 0; !error; i++) {
		const struct flow *flow = &run->flow[i % run->flows];

		if (i % run->flows == 0 && !has_next_round(run, i / run->flows))
			break;
		trailer.index = (uint32_t)(i % run->flows);
		wire_add(&batch, frame_build(&flow->frame, run->mac, &trailer, wire_frame(&batch)));
		if (batch.count < WIRE_BATCH_FRAMES)
			continue;
		error = batch_run(run, &batch);
		keep_pace(run, &start, i + 1);
	}
	if (!error && batch.count)
		error = batch_run(run, &batch);
	if (error || !run->settle_ms)
		return error;
	error = arrivals_count(run, run->settle_ms);
	return error == -ETIMEDOUT ? 0 : error;
}

static void tally_add(struct tally *tally, const struct tally *more)
{
	tally->sent += more->sent;
	tally->passed += more->passed;
	tally->expected_passed += more->expected_passed;
	tally->wrong += more->wrong;
}

/* Adds every flow to its kind; writes the wrong ones to `file` and shows some. Returns their sum. */
static struct tally flows_judge(struct run *run, FILE *file)
{
	struct tally total = { .name = "total" };
	unsigned int shown = 0;

	for (size_t i = 0; i < run->flows; i++) {
		const struct flow *flow = &run->flow[i];
		const uint64_t expected = flow->expect_pass ? run->repeat : 0;
		const struct tally one = {
			.sent = run->repeat,
			.passed = flow->passed,
			.expected_passed = expected,
			.wrong = flow->passed > expected ? flow->passed - expected : expected - flow->passed,
		};

		tally_add(&run->kind[flow->kind], &one);
		tally_add(&total, &one);
		if (one.wrong && file)
			fprintf(file, "%s\n", flow->line);
		else if (one.wrong && shown++ < MISMATCHES_SHOWN)
			fprintf(stderr, "wrong: %u of %lu passed: %s\n", flow->passed, run->repeat, flow->line);
	}
	return total;
}

static void tally_print(const struct tally *tally)
{
	printf("%-16s %9lu %9lu %9lu %10lu %10lu %6lu\n", tally->name, tally->sent, tally->sent - tally->passed,
	       tally->passed, tally->sent - tally->expected_passed, tally->expected_passed, tally->wrong);
}

static void report_print(const struct run *run, const struct tally *total, double ns)
{
	printf("%-16s %9s %9s %9s %10s %10s %6s\n", "kind", "sent", "dropped", "passed", "to drop", "to pass", "wrong");
	for (unsigned int i = 0; i < run->kinds; i++)
		tally_print(&run->kind[i]);
	tally_print(total);
	if (ns < 0)
		puts("n/a ns a packet in the XDP program");
	else
		printf("%.0f ns a packet in the XDP program\n", ns);
}

static void tally_print_json(const struct tally *tally)
{
	printf("{\"kind\":\"%s\",\"sent\":%lu,\"dropped\":%lu,\"passed\":%lu,"
	       "\"expected_dropped\":%lu,\"expected_passed\":%lu,\"wrong\":%lu}",
	       tally->name, tally->sent, tally->sent - tally->passed, tally->passed,
	       tally->sent - tally->expected_passed, tally->expected_passed, tally->wrong);
}

static void report_print_json(const struct run *run, const struct tally *total, double ns)
{
	printf("{\"kinds\":[");
	for (unsigned int i = 0; i < run->kinds; i++) {
		fputs(i ? "," : "", stdout);
		tally_print_json(&run->kind[i]);
	}
	printf("],\"total\":");
	tally_print_json(total);
	if (ns < 0)
		puts(",\"ns_per_packet\":null}");
	else
		printf(",\"ns_per_packet\":%.1f}\n", ns);
}

/* 0 where every flow fared as expected, else 1. */
static int report(struct run *run, double ns)
{
	FILE *file = run->wrong_path ? fopen(run->wrong_path, "we") : NULL;
	struct tally total;

	if (run->wrong_path && !file) {
		wire_failed(run->wrong_path);
		return 2;
	}
	total = flows_judge(run, file);
	if (file)
		fclose(file);
	if (run->json)
		report_print_json(run, &total, ns);
	else
		report_print(run, &total, ns);
	return total.wrong ? 1 : 0;
}

/* Ends in the receiver's namespace, where its XDP program can be asked for. */
static int run_prepare(struct run *run, const char *from, const char *to)
{
	int error = wire_open(from, 0, &run->from);

	if (!error)
		error = wire_open(to, ETH_P_ALL, &run->to);
	if (!error)
		error = wire_pin_cpu();
	if (error)
		return error;
	memcpy(run->mac[0], run->to.mac, ETH_ALEN);
	memcpy(run->mac[1], run->from.mac, ETH_ALEN);
	if (getrandom(&run->id, sizeof(run->id), 0) != sizeof(run->id))
		return wire_failed("getrandom");
	return 0;
}

static void hold_back_sigterm(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static int run_all(struct run *run, const char *from, const char *to)
{
	struct wire_timing timing;
	double ns;

	if (run->is_endless)
		hold_back_sigterm();
	if (flows_read(run, stdin) || run_prepare(run, from, to))
		return 2;
	timing = wire_timing_start(&run->to);
	if (flows_send(run))
		return 2;
	ns = wire_timing_stop(&timing);
	return report(run, ns);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ .name = "from", .has_arg = required_argument, .val = 'f' },
		{ .name = "to", .has_arg = required_argument, .val = 't' },
		{ .name = "repeat", .has_arg = required_argument, .val = 'r' },
		{ .name = "rate", .has_arg = required_argument, .val = 's' },
		{ .name = "endless", .val = 'e' },
		{ .name = "settle", .has_arg = required_argument, .val = 'm' },
		{ .name = "wrong", .has_arg = required_argument, .val = 'w' },
		{ .name = "json", .val = 'j' },
		{ 0 },
	};
	const char *value[UINT8_MAX + 1] = { ['r'] = "1", ['s'] = "0", ['m'] = "0" };
	struct run run = { 0 };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1 && option != '?')
		value[option] = optarg ? optarg : "";
	run.repeat = strtoul(value['r'], NULL, 10);
	run.rate = strtoul(value['s'], NULL, 10);
	run.settle_ms = strtol(value['m'], NULL, 10);
	if (option == '?' || optind != argc || !run.repeat || !value['f'] || !value['t'] || !strchr(value['f'], ':') ||
	    !strchr(value['t'], ':')) {
		fputs("usage: traffic --from NETNS:IFACE --to NETNS:IFACE [--json] "
		      "[--repeat N | --endless] [--rate FRAMES] [--settle MS] [--wrong FILE] <flows\n",
		      stderr);
		return 2;
	}
	run.is_endless = value['e'];
	run.json = value['j'];
	run.wrong_path = value['w'];
	return run_all(&run, value['f'], value['t']);
}
