// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "feed/feeds.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/sha.h>

#include "base/clock.h"
#include "base/safe_text.h"
#include "base/unprivileged.h"
#include "feed/http_get.h"
#include "io/whole_file.h"
#include "lists/list.h"

#define SHA256_PAGE_BYTES 65536
#define READ_MS 60000       /* to read the list after it was fetched */
#define MEMORY (1ULL << 30) /* for the bytes of a list, while they grow, for libraries and for the CA file */
#define NEIGHBOURS_LEN 10
#define RULE_MEMORY 512     /* for a rule, twice in the list, and for its text */

/* ---- the bytes of a list ---- */

const char *fetch_find_sha256(const char *text)
{
	static const char digits[] = "0123456789abcdefABCDEF";

	while (*text) {
		const size_t length = strspn(text, digits);

		if (length == FETCH_SHA256_HEX && (!text[length] || isspace((unsigned char)text[length])))
			return text;
		/* A longer word that contains such digits is not a hash. */
		text += strcspn(text, " \t\r\n");
		text += strspn(text, " \t\r\n");
	}
	return NULL;
}

/* Refuses archives and web pages, by their first bytes. */
static int check_kind(const char *bytes, size_t count, bool may_be_empty, struct reason *reason)
{
	const char *stranger = count ? list_stranger(bytes) : NULL;

	if (!count)
		return may_be_empty ? 0 : reason_set(reason, -EINVAL, "it is empty");
	return stranger ? reason_set(reason, -EINVAL, "it is %s, not a list", stranger) : 0;
}

struct fetch_rules {
	char *text; /* one rule per line, sorted */
	size_t bytes, count;
	__u64 bad_lines;
	struct reason first_bad;
};

struct reading {
	const struct config_list *config;
	struct list_part part; /* that is read now */
	struct rule_set set;
	struct fetch_rules *rules;
};

static void refuse(struct list_input *list, const char *text)
{
	struct reading *reading = list->context;

	/* A server may answer with the headers that it got. */
	if (reading->config->header_file)
		text = "not shown, it may repeat a header";
	if (!reading->rules->bad_lines++ || list->is_cut)
		reason_set(&reading->rules->first_bad, 0, "%s%sline %llu: %s", reading->part.what,
			   *reading->part.what ? ", " : "", (unsigned long long)list->reader.number, text);
}

/*
 * Link-local addresses (fe80::/10) are those of the neighbours, whoever is given the rest of a wider network: without them, no
 * router is found. 0: such a rule was added, or its part around them; 1: another one.
 */
static int add_around_neighbours(struct reading *reading, const struct rule *rule)
{
	static const union flow_addr neighbours = { .byte = { 0xfe, 0x80 } };
	const union flow_addr network = rule_network(&neighbours, rule->src_len);
	struct rule part = *rule;
	int error = 0;

	if (rule->action == RULE_PASS || rule->family != FLOW_IPV6 || !rule->src_len ||
	    rule->src_len >= NEIGHBOURS_LEN || memcmp(&network, &rule->src, sizeof(network)))
		return 1;
	while (!error && part.src_len < NEIGHBOURS_LEN) {
		part.src = rule_network(&neighbours, ++part.src_len);
		part.src.byte[(part.src_len - 1) / 8] ^= 0x80 >> (part.src_len - 1) % 8;
		error = rule_set_add(&reading->set, &part);
	}
	return error;
}

/* Allows twice as many rules as rules_max, because a list may repeat rules. The exact count follows after sorting. */
static int take(struct list_input *list, const struct rule *rule)
{
	struct reading *reading = list->context;
	const struct config_list *config = reading->config;
	const char *unfit = list_unfit(&config->limits, rule);
	int error;

	/* A list of such lines would be empty soon, although it has not shrunk. */
	if (rule->timeout_ms && rule->timeout_ms != config->timeout_ms && rule->timeout_ms < config->every_ms)
		unfit = "its timeout ends before the next fetch (every)";
	if (unfit) {
		refuse(list, unfit);
		return 0;
	}
	if (reading->set.count >= 2 * config->rules_max)
		return -E2BIG;
	error = config->preset ? add_around_neighbours(reading, rule) : 1;
	return error > 0 ? rule_set_add(&reading->set, rule) : error;
}

/* Adds the rules of one part of the list. A part that is no list is as bad as the whole. */
static int read_part(struct reading *reading, char *bytes, size_t count, struct reason *reason)
{
	const struct config_list *config = reading->config;
	struct fetch_rules *rules = reading->rules;
	const __u64 bad_before = rules->bad_lines, rules_before = reading->set.count;
	struct list_input list = { .format = config->format ? list_format_named(config->format) : LIST_UNKNOWN,
				   .timeout_ms = config->timeout_ms,
				   .is_strict = config->is_strict,
				   .action = config->action,
				   .is_new_only = config->is_new_only,
				   .set = config->set,
				   .json = config->json,
				   .may_lack = config->is_forced,
				   .take = take,
				   .refuse = refuse,
				   .context = reading };
	int error = check_kind(bytes, count, config->is_forced, reason);

	if (error)
		return error;
	list.reader.name = config->url;
	list.reader.file = fmemopen(bytes, count, "r");
	error = list.reader.file ? list_read(&list) : -ENOMEM;
	if (error == -EMSGSIZE)
		error = reason_set(reason, -EINVAL, "line %llu is longer than %d bytes: it is no list",
				   (unsigned long long)list.reader.number, READER_LINE_BYTES);
	else if (error == -E2BIG)
		error = reason_set(reason, -EINVAL, "it has more rules than max-rules = %llu",
				   (unsigned long long)config->rules_max);
	else if (error)
		reason_set(reason, error, "cannot read it: %s", strerror(-error));
	else if (list.is_cut)
		error = reason_set(reason, -EINVAL, "it cannot be read to its end: %s", rules->first_bad.text);
	else if (config->set && !list.has_set)
		error = reason_set(reason, -EINVAL, "it has no set '%s'", config->set);
	else if (*reading->part.what && rules->bad_lines - bad_before > reading->set.count - rules_before)
		error = reason_set(reason, -EINVAL, "more bad lines than rules: it is no list; the first: %s",
				   rules->first_bad.text);
	if (list.reader.file)
		reader_close(&list.reader);
	return error;
}

/* When all parts are read. */
static int finish_rules(struct reading *reading, struct reason *reason)
{
	const struct config_list *list = reading->config;
	struct fetch_rules *rules = reading->rules;
	FILE *to = open_memstream(&rules->text, &rules->bytes);
	int error = to ? 0 : -ENOMEM;

	rule_set_sort(&reading->set);
	for (size_t i = 0; i < reading->set.count && !error; i++) {
		struct rule rule;

		rule_set_get(&reading->set, i, &rule);
		list_write_text(to, &rule);
	}
	rules->count = reading->set.count;
	if (!error)
		error = fclose(to) ? -ENOMEM : rules->bytes > FEED_TEXT_MAX ? -E2BIG : 0;
	if (error == -E2BIG || (!error && rules->count > list->rules_max))
		return reason_set(reason, -EINVAL, "it has more rules than max-rules = %llu",
				  (unsigned long long)list->rules_max);
	if (error)
		return reason_set(reason, error, "cannot read it: %s", strerror(-error));
	if (rules->bad_lines && (list->is_strict || rules->bad_lines > rules->count))
		return reason_set(reason, -EINVAL, "%llu bad line%s and %zu rules%s; the first: %s",
				  (unsigned long long)rules->bad_lines, rules->bad_lines == 1 ? "" : "s", rules->count,
				  list->is_strict ? ", and strict = yes" : ": it is no list", rules->first_bad.text);
	if (!rules->count && !list->is_forced)
		return reason_set(reason, -EINVAL, "it holds no rule");
	return 0;
}

/* ---- in the process without privileges ---- */

struct fetching {
	const struct fetch_request *request;
	char *ca;      /* PEM text; NULL: the system's */
	char *headers; /* as in struct http_get */
};

static int get(const struct fetching *fetching, const char *url, bool is_known, size_t bytes_max, __s64 time_ms,
	       struct http_page *page, struct reason *reason)
{
	const struct fetch_request *request = fetching->request;
	const struct http_get wanted = { .url = url,
					 .headers = fetching->headers,
					 .home = request->list->url,
					 .etag = is_known ? request->etag : "",
					 .modified = is_known ? request->modified : "",
					 .pinned_key = request->list->pinned_key,
					 .ca = fetching->ca,
					 .bytes_max = bytes_max,
					 .time_ms = time_ms };

	return http_get(&wanted, page, reason);
}

static int check_sha256(const struct fetching *fetching, const struct http_page *list, struct reason *reason)
{
	__u8 hash[SHA256_DIGEST_LENGTH];
	char text[FETCH_SHA256_HEX + 1];
	const char *wanted = NULL;
	struct http_page page;
	struct reason why;
	int error;

	error = get(fetching, fetching->request->list->sha256_url, false, SHA256_PAGE_BYTES,
		    fetching->request->list->fetch_ms, &page, &why);
	if (error)
		return reason_set(reason, error, "its sha256-url: %s", why.text);
	if (page.bytes)
		wanted = fetch_find_sha256(page.bytes);
	SHA256((const __u8 *)list->bytes, list->count, hash);
	for (size_t i = 0; i < sizeof(hash); i++)
		snprintf(text + 2 * i, 3, "%02x", hash[i]);
	if (!wanted)
		error = reason_set(reason, -EINVAL, "its sha256-url has no hash");
	else if (strncasecmp(wanted, text, FETCH_SHA256_HEX))
		error = reason_set(reason, -EKEYREJECTED, "its SHA-256 is %s, and not what sha256-url says", text);
	http_free(&page);
	return error;
}

static void fill(char *to, size_t room, const char *text)
{
	snprintf(to, room, "%.*s", (int)room - 1, text);
	text_clean(to);
	text_make_utf8(to);
}

/*
 * Fetches the parts and reads them, one after another; *page: the last. A country or an autonomous system may have no
 * networks of one family, and then no file. If both files are missing, that is an error.
 */
static int fetch_parts(const struct fetching *fetching, struct reading *reading, struct http_page *page,
		       struct reason *reason)
{
	const struct config_list *list = reading->config;
	const __s64 deadline_ms = clock_ms(CLOCK_MONOTONIC) + list->fetch_ms;
	const struct list_part *part = &reading->part;
	bool is_single, is_half_missing = false;
	size_t bytes = 0;
	int error = 0;

	is_single = !config_list_part(list, 1, &reading->part);
	for (size_t i = 0; !error && config_list_part(list, i, &reading->part); i++) {
		const __s64 left_ms = deadline_ms - clock_ms(CLOCK_MONOTONIC);
		struct reason why;

		http_free(page);
		error = left_ms > 0 ? get(fetching, part->url, is_single, FETCH_BYTES_MAX, left_ms, page, &why) :
				      reason_set(&why, -ETIMEDOUT, "timed out: all took longer than fetch-time");
		bytes += page->count;
		if (error == -ENOENT && part->is_pair && !is_half_missing) {
			is_half_missing = i % 2 == 0;
			error = 0;
			continue;
		}
		if (error == -ENOENT && part->is_pair)
			return reason_set(reason, error,
					  "%.*s: its provider has no networks of it, neither IPv4 nor IPv6",
					  (int)strcspn(part->what, ","), part->what);
		is_half_missing = false;
		if (!error && bytes > FETCH_BYTES_MAX)
			error = reason_set(&why, -EFBIG, "all are larger than %d MiB", FETCH_BYTES_MAX >> 20);
		if (!error && list->sha256_url && !page->is_unmodified)
			error = check_sha256(fetching, page, &why);
		if (!error && !page->is_unmodified)
			error = read_part(reading, page->bytes, page->count, &why);
		if (error)
			reason_set(reason, error, "%s%s%s", part->what, *part->what ? ": " : "", why.text);
	}
	/* What one server says of its part is not true of the whole. */
	if (!is_single)
		page->etag[0] = page->modified[0] = '\0';
	return error;
}

static void run(const void *context, int fd)
{
	const struct fetching *fetching = context;
	struct feed_message message = { .outcome = FEED_FAILED };
	struct fetch_rules rules = {};
	struct reading reading = { .config = fetching->request->list, .rules = &rules };
	struct http_page page = {};
	struct reason reason;
	int error;

	error = fetch_parts(fetching, &reading, &page, &reason);
	if (!error && !page.is_unmodified)
		error = finish_rules(&reading, &reason);
	message.retry_after_s = page.retry_after_s;
	strcpy(message.servers, http_servers());
	if (error) {
		fill(message.why, sizeof(message.why), reason.text);
	} else {
		message.outcome = page.is_unmodified ? FEED_UNMODIFIED : FEED_FETCHED;
		message.bytes = rules.bytes;
		message.bad_lines = rules.bad_lines < ~0U ? rules.bad_lines : ~0U;
		fill(message.first_bad, sizeof(message.first_bad), rules.bad_lines ? rules.first_bad.text : "");
		fill(message.etag, sizeof(message.etag), page.etag);
		fill(message.modified, sizeof(message.modified), page.modified);
	}
	unprivileged_send(fd, &message, sizeof(message), rules.text, message.bytes, UNPRIVILEGED_NO_DEADLINE);
	/* The end of the process frees the memory. */
}

/* ---- in the process that imports ---- */

/* Lines "NAME: VALUE". The reason shows nothing of them. */
static int check_headers(const char *path, const char *text, struct reason *reason)
{
	static const char name[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	unsigned int number = 0;

	for (const char *line = text; *line; line += *line == '\n') {
		const size_t length = strcspn(line, "\n"), colon = strspn(line, name);
		const char *wrong = length >= HTTP_HEADER_BYTES  ? "is too long" :
				    !colon || line[colon] != ':' ? "is no header like 'NAME: VALUE'" :
				    strspn(line + colon + 1, " ") == length - colon - 1 ? "has no value" :
											  NULL;

		number++;
		for (size_t i = 0; i < length && !wrong; i++)
			if (line[i] < ' ' || line[i] > '~')
				wrong = line[i] == '\r' ? "has a carriage return (CR)" :
							  "has a character that a header may not have";
		if (wrong)
			return reason_set(reason, -EINVAL, "header-file = '%s': line %u %s", path, number, wrong);
		line += length;
	}
	return number ? 0 : reason_set(reason, -EINVAL, "header-file = '%s': it is empty", path);
}

bool feed_message_is_sound(struct feed_message *message)
{
	if (message->retry_after_s > FEED_WAIT_MAX_S)
		message->retry_after_s = FEED_WAIT_MAX_S;
	return message->outcome < FEED_OUTCOMES && message->retry_after_s >= 0 && message->bytes <= FEED_TEXT_MAX &&
	       (message->outcome == FEED_FETCHED || !message->bytes) &&
	       text_is_safe(message->etag, sizeof(message->etag)) &&
	       text_is_safe(message->modified, sizeof(message->modified)) &&
	       text_is_safe(message->servers, sizeof(message->servers)) &&
	       text_is_safe(message->why, sizeof(message->why)) &&
	       text_is_safe(message->first_bad, sizeof(message->first_bad)) &&
	       (message->outcome == FEED_FAILED) == (*message->why != '\0');
}

int feed_receive(int fd, __s64 deadline_ms, struct feed_message *message, int *text)
{
	char piece[65536];
	int error = unprivileged_receive(fd, message, sizeof(*message), deadline_ms);

	*text = -1;
	if (error)
		return error;
	if (!feed_message_is_sound(message))
		return -EPROTO;
	if (message->outcome != FEED_FETCHED)
		return 0;
	*text = memfd_create("list", MFD_CLOEXEC);
	if (*text < 0)
		return -errno;
	for (__u64 left = message->bytes; left && !error;) {
		const size_t count = left < sizeof(piece) ? left : sizeof(piece);

		error = unprivileged_receive(fd, piece, count, deadline_ms);
		if (!error)
			error = io_write_all(*text, piece, count);
		left -= count;
	}
	if (error) {
		close(*text);
		*text = -1;
	}
	return error;
}

int fetch_start(struct fetch *fetch, const struct fetch_request *request, struct reason *reason)
{
	const struct config_list *list = request->list;
	struct fetching fetching = { .request = request };
	int error = 0;

	*fetch = (struct fetch){ .process.fd = -1,
				 .deadline_ms = clock_ms(CLOCK_MONOTONIC) + 2 * list->fetch_ms + READ_MS };
	/* The files are read here: the process without privileges is not allowed to. */
	if (list->ca)
		error = io_read_secret("ca", list->ca, 0, &fetching.ca, reason);
	if (!error && fetching.ca && !*fetching.ca)
		error = reason_set(reason, -EINVAL, "ca = '%s': must be a file of certificates", list->ca);
	if (!error && list->header_file)
		error = io_read_secret("header-file", list->header_file, S_IRWXG | S_IRWXO, &fetching.headers, reason);
	if (!error && fetching.headers)
		error = check_headers(list->header_file, fetching.headers, reason);
	if (!error)
		error = unprivileged_start(&fetch->process, run, &fetching, MEMORY + list->rules_max * RULE_MEMORY,
					   reason);
	if (fetching.headers)
		explicit_bzero(fetching.headers, strlen(fetching.headers));
	free(fetching.headers);
	free(fetching.ca);
	return error;
}

void fetch_end(struct fetch *fetch, struct feed_message *message, int *text)
{
	struct pollfd file = { .fd = fetch->process.fd, .events = POLLIN };
	int error = -ETIMEDOUT;

	*text = -1;
	if (poll(&file, 1, 0) > 0)
		error = feed_receive(file.fd, clock_ms(CLOCK_MONOTONIC) + READ_MS, message, text);
	unprivileged_stop(&fetch->process);
	if (!error)
		return;
	*message = (struct feed_message){ .outcome = FEED_FAILED };
	snprintf(message->why, sizeof(message->why), "the process that fetches it %s", unprivileged_failure(error));
}
