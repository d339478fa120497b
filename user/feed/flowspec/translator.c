// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/clock.h"
#include "feed/flowspec/flowspec.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <unistd.h>

#include "feed/flowspec/internal.h"

#define READ_BYTES 65536
#define PIECE 'J'     /* begins a packet with a piece of a line of JSON, and a line end */
#define NOTES_MAX 10 /* refused flows and unreadable lines that are named between two renewals */
#define RENEWALS 4   /* in each stale time */
#define RENEWAL_MIN_MS 1000
#define JSON_LATE_MS 10000 /* the longest that JSON is behind text, or text behind JSON */
#define BUSY_MS 1000 /* while input keeps coming, lines are sent this often */

#define PEERS_OLD_MS 60000   /* gobgp prints the table of peers more often */
#define REPORT_FLOWS_A_MS 10 /* between two reports: a second, and a millisecond for so many flows and rules */

#define STATUS_BYTES 128
#define MEMORY (256ULL << 20) /* with the refused flows, and the room that they leave in the heap */
#define RULE_MEMORY 512

struct translator {
	const struct translator_start *start;
	struct route_stream stream;
	struct announced announced;
	FILE *to;
	__s64 renewed_ms, sent_ms, period_ms, reported_ms, peers_ms;
	bool is_reported; /* nothing has changed since the last report */
	/*
	 * GoBGP has said a route, or a table of peers after an earlier one: ever, and since the last status. A pipe cannot show
	 * that it is silent. Before, nothing is sent: that a process starts says nothing of its source.
	 */
	bool is_heard, has_said;
	__u64 tables;     /* of peers */
	__u64 notes;      /* since the last renewal */
	__u64 unreadable; /* lines and routes */
	bool has_packets; /* each packet of standard input is one write of gobgp */
	bool has_json;    /* of these, packets of JSON came, */
	bool lost_json;   /* and one was unreadable */
	__s64 json_ms;    /* when the last of them came */
	__s64 json_due_ms; /* JSON has stopped if none comes by then; 0: none is missed */
	char told[STATUS_BYTES];
};

/* The timeouts of rules also run while the host sleeps. */
static __s64 now_ms(void)
{
	return clock_ms(CLOCK_BOOTTIME);
}

static void note(struct translator *translator, const char *what, const char *name, const char *why)
{
	struct reason text;

	if (translator->notes++ >= NOTES_MAX)
		return;
	reason_set(&text, 0, "%s%s: %s", what, name, why);
	translator->start->note(text.text);
}

/*
 * What is known stays in force. After an unreadable withdrawal, rules stay until gobgp is asked for all routes again.
 */
static void count_unreadable(struct translator *translator, const struct reason *reason)
{
	translator->unreadable++;
	note(translator, "unreadable", "", reason->text);
}

/* ---- lines ---- */

/* When the next report is due: at most a small part of the time is for reports. */
static __s64 report_at_ms(const struct translator *translator)
{
	const struct announced *announced = &translator->announced;

	if (translator->is_reported || !translator->start->reports)
		return LLONG_MAX;
	return translator->reported_ms + BUSY_MS +
	       (announced->accepted_count + announced->rules_count) / REPORT_FLOWS_A_MS;
}

static int send_lines(struct translator *translator)
{
	const struct announced *announced = &translator->announced;
	char status[STATUS_BYTES];
	const __s64 now = now_ms();
	int error;

	if (!translator->is_heard)
		return 0;
	error = announced_take_waiting(&translator->announced, translator->to);
	snprintf(status, sizeof(status), TRANSLATOR_STATUS,
		 (unsigned long long)(announced->accepted_count + announced->refused_count),
		 (unsigned long long)announced->refused_count, (unsigned long long)translator->unreadable);
	if (translator->has_said && strcmp(translator->told, status))
		fprintf(translator->to, "%s\n", strcpy(translator->told, status));
	translator->has_said = !translator->has_packets;
	if (now >= report_at_ms(translator)) {
		translator->announced.is_peers_table_old = now - translator->peers_ms > PEERS_OLD_MS;
		translator->is_reported = true;
		translator->reported_ms = now;
		announced_report(announced, translator->to);
	}
	translator->sent_ms = now_ms();
	return error ? error : fflush(translator->to) ? -EPIPE : 0;
}

static void renew(struct translator *translator)
{
	struct reason text;

	if (translator->notes > NOTES_MAX) {
		reason_set(&text, 0, "refused, or could not read, %llu more flows",
			   (unsigned long long)(translator->notes - NOTES_MAX));
		translator->start->note(text.text);
	}
	translator->notes = 0;
	translator->renewed_ms = now_ms();
	announced_renew(&translator->announced, translator->to);
	/* Sends the counts too: even without a flow, they show that the source is alive. */
	*translator->told = '\0';
	translator->is_reported = false;
}

/* ---- input ---- */

/* The text says what JSON has not said. JSON may have been first, and something else since, but not long ago. */
static void miss_json(struct translator *translator)
{
	const __s64 late_ms = MIN(translator->period_ms, JSON_LATE_MS), now = now_ms();

	if (translator->has_json && !translator->json_due_ms && now - translator->json_ms > late_ms)
		translator->json_due_ms = now + late_ms;
}

/*
 * gobgp's text does not say all TCP flags: 0x102 looks like 0x2. So the service has it print JSON, too, for the flows with
 * flags. Other flows are read from text, because JSON of an event fails as a whole. The text of a flow with flags makes only
 * known that there is one; it ends only what it has made known, unless JSON may have missed the end.
 */
static bool is_right_form(struct translator *translator, struct route *route, bool is_json)
{
	const struct node *known = node_find(&translator->announced.flows, route->key, strlen(route->key));

	if (!translator->has_packets || is_json == (route->has_flags && route->kind == ROUTE_FLOW))
		return true;
	if (is_json)
		return false;
	if (!known == !route->is_withdrawn)
		miss_json(translator);
	if (route->is_withdrawn)
		return !translator->has_json || translator->lost_json || (known && known->flow->waits_for_json);
	if (known)
		return false;
	rule_set_close(&route->rules); /* what an earlier run has left of it stays until JSON says more */
	route->is_drop = false;
	route->waits_for_json = true;
	route->refusal = REFUSAL_VALUE;
	reason_set(&route->why, 0, "tcp-flags: GoBGP's text does not say all of them, and its JSON has not come");
	return true;
}

static int take_route(struct translator *translator, const char *text)
{
	struct reason reason;
	struct route route;
	bool is_refused = false;
	int error;

	/* Most routes may be of other families. */
	route = (struct route){};
	if (translator->has_packets && *text == '{' && !strstr(text, "\"type\":9,\"value\":["))
		return 0;
	error = route_read(&route, text, translator->start->options, &reason);

	if (error == -EBADMSG)
		count_unreadable(translator, &reason);
	else
		translator->is_heard = translator->has_said = true;
	if (!error && route.key && is_right_form(translator, &route, *text == '{'))
		error = announced_take(&translator->announced, &route, translator->to, &is_refused);
	translator->is_reported &= error != 0;
	if (is_refused && !(route.waits_for_json && translator->has_json))
		note(translator, "refused flow ", route.name, route.why.text);
	route_close(&route);
	return error == -EBADMSG ? 0 : error;
}

static int take_bytes(struct translator *translator, const char *bytes, size_t length)
{
	struct reason reason;
	int error = 0;
	size_t taken;

	while (length && !error) {
		const int got = route_stream_take(&translator->stream, bytes, length, &taken, &reason);

		bytes += taken;
		length -= taken;
		if (got < 0)
			count_unreadable(translator, &reason);
		if (got > 0)
			error = take_route(translator, translator->stream.route);
		/* One line may have a million routes. */
		if (!error && translator->has_said && now_ms() - translator->renewed_ms >= translator->period_ms)
			renew(translator);
	}
	return error;
}

/*
 * `bytes`: a J, a piece of a line, and a line end, without which something is missing. Between pieces of a line, as within a
 * route, there is no line end. An empty line is an event that gobgp cannot print in JSON. Its text says of all routes but flows
 * with flags what they are.
 */
static int take_piece(struct translator *translator, const char *bytes, size_t length)
{
	const bool is_cut = length < 2 || bytes[length - 1] != '\n';
	const __u64 unreadable = translator->unreadable;
	struct reason reason;
	int error = is_cut ? 0 : take_bytes(translator, bytes + 1, length - 2);

	if (is_cut) {
		reason_set(&reason, 0, "a piece of JSON without a line end");
		count_unreadable(translator, &reason);
	}
	translator->has_json = true;
	translator->lost_json |= length <= 2;
	translator->json_ms = now_ms();
	translator->json_due_ms = 0;
	/* Behind a last piece, and where one is missing, the line ends. */
	if (length > 2 && !error && is_cut == (translator->stream.depth || translator->stream.is_in_array))
		error = take_bytes(translator, "\n", 1);
	translator->lost_json |= translator->unreadable != unreadable;
	return error;
}

/* Only a packet surely is what gobgp wrote of one route: see route_text_read(). Line ends within it mean nothing. */
static int take_input(struct translator *translator, char *bytes, size_t length)
{
	struct flow_peer told;
	struct reason reason;
	int error;

	if (!translator->has_packets || *bytes == '[' || *bytes == '{')
		return take_bytes(translator, bytes, length);
	if (*bytes == PIECE)
		return take_piece(translator, bytes, length);
	/* What is cut off could be another action of the route. */
	if (length == READ_BYTES) {
		reason_set(&reason, 0, "a route has more than %d bytes: %.100s", READ_BYTES - 1, bytes);
		count_unreadable(translator, &reason);
		return 0;
	}
	bytes[length] = bytes[length - (bytes[length - 1] == '\n')] = '\0';
	if (!session_read(bytes, clock_ms(CLOCK_REALTIME) / 1000, &told))
		return take_route(translator, bytes);
	translator->peers_ms = now_ms();
	/* Beside a monitor that ends at once, at most one table comes. */
	if (!*told.address && translator->tables++)
		translator->is_heard = translator->has_said = true;
	error = announced_take_session(&translator->announced, &told);
	translator->is_reported &= !error;
	return error < 0 ? error : 0;
}

static bool has_input(int timeout_ms)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&input, 1, timeout_ms) > 0;
}

/* Takes input, and renews the rules in time, until the input ends or an error. */
static int run(struct translator *translator, struct reason *reason)
{
	char *bytes = malloc(READ_BYTES + 1);
	int error = bytes && translator->to && !route_stream_open(&translator->stream) ? 0 : -ENOMEM;
	ssize_t got = 1;

	while (got && !error) {
		const __s64 now = now_ms(), renewal_ms = translator->renewed_ms + translator->period_ms - now;
		/* To the socket GoBGP says something every five seconds, unless it is dead or hangs. */
		const bool waits = renewal_ms <= 0 && translator->has_packets;
		const __s64 due_ms = translator->json_due_ms ? translator->json_due_ms : LLONG_MAX;
		const __s64 left_ms =
			MIN(waits ? translator->period_ms : renewal_ms, MIN(report_at_ms(translator), due_ms) - now);

		got = 1;
		if (renewal_ms <= 0 && !waits)
			renew(translator);
		/* JSON may be in a long queue. */
		if (has_input(left_ms <= 0 ? 0 : left_ms) && now - JSON_LATE_MS < due_ms) {
			got = read(STDIN_FILENO, bytes, READ_BYTES);
			if (got > 0)
				error = take_input(translator, bytes, got);
			if (waits && translator->has_said)
				renew(translator);
			if (got < 0 && errno != EINTR && errno != EAGAIN)
				error = reason_set(reason, -errno, "cannot read standard input: %s", strerror(errno));
		} else if (now >= due_ms) {
			error = reason_set(reason, -ENODATA,
					   "gobgp's JSON, which alone says all TCP flags, has stopped");
		}
		if (!error && (now_ms() - translator->sent_ms >= BUSY_MS || !got || !has_input(0)))
			error = send_lines(translator);
	}
	free(bytes);
	if (!error)
		return route_stream_is_whole(&translator->stream) ?
			       reason_set(reason, 0, "the input has ended") :
			       reason_set(reason, -EBADMSG, "the input has ended within a line");
	return error == -ENOMEM ? reason_set(reason, error, "not enough memory") : error;
}

void translator_run(const void *context, int out)
{
	const struct translator_start *start = context;
	const __s64 stale_ms = start->options->stale_ms;
	socklen_t length = sizeof(int);
	struct translator translator = {
		.start = start,
		.renewed_ms = now_ms(),
		.is_reported = true,
		.period_ms = stale_ms / RENEWALS > RENEWAL_MIN_MS ? stale_ms / RENEWALS : RENEWAL_MIN_MS,
		.to = fdopen(dup(out), "w"),
	};
	struct reason reason;
	int error, type = SOCK_STREAM;

	getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &length);
	translator.has_packets = type == SOCK_SEQPACKET;
	if (translator.has_packets && start->options->peer_flows_max)
		start->note("GoBGP's text does not name the peers of flows: max-flows-peer limits all flows together; "
			    "see xdp-cuckoo-flowspec(7)");
	announced_open(&translator.announced, start->options, stale_ms + translator.period_ms);
	translator.announced.limits_kinds = start->reports;
	error = run(&translator, &reason);
	/* Sends the lines of all complete routes, unless nobody reads them any more. */
	if (error != -EPIPE) {
		if (translator.to)
			send_lines(&translator);
		start->note(reason.text);
	}
	if (translator.to)
		fclose(translator.to);
	route_stream_close(&translator.stream);
	announced_close(&translator.announced);
}

/* ---- for the keeper of the list ---- */

bool translator_may_add(const void *context, const struct rule *rule)
{
	return flow_is_own(((const struct translator_start *)context)->options, rule);
}

bool translator_take_status(const char *line, char source[STORE_SOURCE_BYTES])
{
	struct store_source flows = { .kind = STORE_SOURCE_FLOWSPEC };

	if (sscanf(line, TRANSLATOR_STATUS, &flows.flows, &flows.refused, &flows.unreadable) != 3)
		return false;
	store_source_format(&flows, source);
	return true;
}

size_t translator_report_bytes(const struct flowspec_options *options)
{
	return MEMORY / 64 + options->flows_max * 2 * FLOW_NAME_BYTES + options->rules_max * 2 * RULE_PREFIX_BYTES * 2;
}

size_t translator_memory(const struct flowspec_options *options)
{
	return MEMORY + options->flows_max * ROUTE_KEY_BYTES + options->rules_max * RULE_MEMORY;
}
