// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "feeds/feeds.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/sha.h>

#include "base/clock.h"
#include "base/safe_text.h"
#include "base/unprivileged.h"
#include "feeds/http_get.h"
#include "lists/list.h"

#define CA_BYTES_MAX (1 << 20)
#define SHA256_PAGE_BYTES 65536
#define READ_MS 60000       /* to read the list after it was fetched */
#define MEMORY (1ULL << 30) /* for the bytes of a list, while they grow, for libraries and for the CA file */
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
static int check_kind(const char *bytes, size_t count, struct reason *reason)
{
	const char *text;

	if (!bytes || !count)
		return reason_set(reason, -EINVAL, "it is empty");
	text = text_behind_mark(bytes);
	text += strspn(text, " \t\r\n");
	if (count > 4 && !memcmp(bytes, "PK", 2))
		return reason_set(reason, -EINVAL,
				  "it is a zip archive: unpack it by another program, and import the file");
	if ((__u8)bytes[0] == 0x1f && (__u8)bytes[1] == 0x8b)
		return reason_set(reason, -EINVAL,
				  "it is a gzip file: unpack it by another program, and import the file");
	if (*text == '<')
		return reason_set(reason, -EINVAL, "it is a page of HTML or XML, not a list");
	return 0;
}

struct reading {
	struct rule_set set;
	__u64 rules_max;
	struct fetch_rules *rules;
	const struct list_limits *limits;
};

static void refuse(struct list_input *list, const char *text)
{
	struct reading *reading = list->context;

	if (!reading->rules->bad_lines++)
		reason_set(&reading->rules->first_bad, 0, "line %llu: %s", (unsigned long long)list->reader.number,
			   text);
}

static void ignore(struct list_input *list, const char *text)
{
	(void)list;
	(void)text;
}

static int go_on(struct list_input *list)
{
	(void)list;
	return 0;
}

/* Allows twice as many rules as rules_max, because a list may repeat rules. The exact count follows after sorting. */
static int take(struct list_input *list, const struct rule *rule)
{
	struct reading *reading = list->context;
	const char *unfit = list_unfit(reading->limits, rule);

	if (unfit) {
		refuse(list, unfit);
		return 0;
	}
	if (reading->set.count >= 2 * reading->rules_max)
		return -E2BIG;
	return rule_set_add(&reading->set, rule);
}

static int read_list(struct reading *reading, const struct config_list *config, char *bytes, size_t count)
{
	struct list_input list = { .format = config->format ? list_format_named(config->format) : LIST_UNKNOWN,
				   .timeout_ms = config->timeout_ms,
				   .is_strict = config->is_strict,
				   .action = config->action,
				   .is_new_only = config->is_new_only,
				   .set = config->set,
				   .take = take,
				   .refuse = refuse,
				   .note = ignore,
				   .go_on = go_on,
				   .context = reading };
	int error;

	list.reader.name = config->url;
	list.reader.file = fmemopen(bytes, count, "r");
	if (!list.reader.file)
		return -ENOMEM;
	error = list_read(&list);
	if (error == -EMSGSIZE)
		reason_set(&reading->rules->first_bad, 0, "line %llu is longer than %d bytes",
			   (unsigned long long)list.reader.number, READER_LINE_BYTES);
	if (!error && config->set && !list.has_set)
		error = -ENOENT;
	reader_close(&list.reader);
	return error;
}

static int write_rules(const struct rule_set *set, struct fetch_rules *rules)
{
	FILE *to = open_memstream(&rules->text, &rules->bytes);
	struct rule rule;

	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < set->count; i++) {
		rule_set_get(set, i, &rule);
		list_write_text(to, &rule);
	}
	rules->count = set->count;
	return fclose(to) ? -ENOMEM : rules->bytes > FEED_TEXT_MAX ? -E2BIG : 0;
}

int fetch_read_rules(const struct config_list *list, char *bytes, size_t count, struct fetch_rules *rules,
		     struct reason *reason)
{
	struct reading reading = { .rules_max = list->rules_max, .rules = rules, .limits = &list->limits };
	int error = check_kind(bytes, count, reason);

	*rules = (struct fetch_rules){};
	if (error)
		return error;
	error = read_list(&reading, list, bytes, count);
	if (!error) {
		rule_set_sort(&reading.set);
		error = write_rules(&reading.set, rules);
	}
	rule_set_close(&reading.set);
	if (error == -EMSGSIZE)
		return reason_set(reason, -EINVAL, "%s: it is no list", rules->first_bad.text);
	if (error == -ENOENT)
		return reason_set(reason, -EINVAL, "it has no set '%s'", list->set);
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
		return reason_set(reason, -EINVAL, "it holds no rule; if it may be empty: force = yes");
	return 0;
}

/* ---- in the process without privileges ---- */

struct fetching {
	const struct fetch_request *request;
	char *ca; /* PEM text; NULL: the system's */
	size_t ca_bytes;
};

static int get(const struct fetching *fetching, const char *url, size_t bytes_max, struct http_page *page,
	       struct reason *reason)
{
	const struct fetch_request *request = fetching->request;
	const bool is_list = url == request->list->url;
	const struct http_get wanted = { .url = url,
					 .etag = is_list ? request->etag : "",
					 .modified = is_list ? request->modified : "",
					 .pinned_key = request->list->pinned_key,
					 .ca = fetching->ca,
					 .ca_bytes = fetching->ca_bytes,
					 .bytes_max = bytes_max,
					 .time_ms = request->list->fetch_ms };

	return http_get(&wanted, page, reason);
}

static int check_sha256(const struct fetching *fetching, const struct http_page *list, struct reason *reason)
{
	__typeof__(SHA256) *sha256;
	__u8 hash[SHA256_DIGEST_LENGTH];
	char text[FETCH_SHA256_HEX + 1];
	const char *wanted = NULL;
	struct http_page page;
	struct reason why;
	void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
	int error;

	sha256 = library ? (__typeof__(sha256))dlsym(library, "SHA256") : NULL;
	if (!sha256)
		return reason_set(reason, -ELIBACC, "no libcrypto.so.3 here; apt-get install libssl3");
	error = get(fetching, fetching->request->list->sha256_url, SHA256_PAGE_BYTES, &page, &why);
	if (error)
		return reason_set(reason, error, "its sha256-url: %s", why.text);
	if (page.bytes)
		wanted = fetch_find_sha256(page.bytes);
	sha256((const __u8 *)list->bytes, list->count, hash);
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
	snprintf(to, room, "%s", text);
	text_clean(to);
	text_make_utf8(to);
}

static void run(const void *context, int fd)
{
	const struct fetching *fetching = context;
	struct feed_message message = { .outcome = FEED_FAILED };
	struct fetch_rules rules = {};
	struct http_page page;
	struct reason reason;
	int error;

	error = get(fetching, fetching->request->list->url, FETCH_BYTES_MAX, &page, &reason);
	if (!error && fetching->request->list->sha256_url && !page.is_unmodified)
		error = check_sha256(fetching, &page, &reason);
	if (!error && !page.is_unmodified)
		error = fetch_read_rules(fetching->request->list, page.bytes, page.count, &rules, &reason);
	message.retry_after_s = page.retry_after_s;
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
	feed_send(fd, &message, rules.text);
	/* The end of the process frees the memory. */
}

/* ---- in the process that imports ---- */

/* Reads the file here: the process without privileges may not be allowed to. */
static int read_ca(struct fetching *fetching, const char *path, struct reason *reason)
{
	FILE *file = fopen(path, "re");

	if (!file)
		return reason_set(reason, -errno, "ca = '%s': %s", path, strerror(errno));
	fetching->ca = malloc(CA_BYTES_MAX);
	if (fetching->ca)
		fetching->ca_bytes = fread(fetching->ca, 1, CA_BYTES_MAX, file);
	fclose(file);
	return fetching->ca_bytes && fetching->ca_bytes < CA_BYTES_MAX ?
		       0 :
		       reason_set(reason, -EINVAL, "ca = '%s': must be a file of certificates", path);
}

int fetch_start(struct fetch *fetch, const struct fetch_request *request, struct reason *reason)
{
	struct fetching fetching = { .request = request };
	const __u64 memory = MEMORY + request->list->rules_max * RULE_MEMORY;
	int error = 0;

	*fetch = (struct fetch){ .process.fd = -1,
				 .deadline_ms = clock_ms(CLOCK_MONOTONIC) + 2 * request->list->fetch_ms + READ_MS };
	if (request->list->ca)
		error = read_ca(&fetching, request->list->ca, reason);
	if (!error)
		error = unprivileged_start(&fetch->process, run, &fetching, memory, reason);
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
	snprintf(message->why, sizeof(message->why), "the process that fetches it %s",
		 error == -ETIMEDOUT  ? "hangs" :
		 error == -EPROTO     ? "sent nonsense" :
		 error == -ECONNRESET ? "has ended early" :
					strerror(-error));
}
