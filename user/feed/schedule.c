// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "feed/feeds.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/safe_text.h"

#define NAMES_SHOWN_BYTES 80
#define AND_MORE_BYTES 16
#define CLOCK_WRONG_S (2 * 86400) /* a next time that is later than `every` by this much was set by a wrong clock */

__s64 feed_stale_s(const struct config_list *list)
{
	return 3 * list->every_ms / 1000;
}

const char *feed_source(const struct config_list *list, char text[CONFIG_URL_BYTES])
{
	const char *words = list->country ? list->country : list->asn ? list->asn : list->url;
	const size_t room = words == list->url ? CONFIG_URL_BYTES : NAMES_SHOWN_BYTES;
	size_t used = snprintf(text, room, "%s", list->country ? "country" : ""), more = 0;

	for (const char *word = words, *next; *word; word = next) {
		const size_t length = strcspn(word, list->country || list->asn ? " " : "?# ");

		next = word + strcspn(word, " ");
		next += strspn(next, " ");
		if (more || (used + (used != 0) + length + (*next ? AND_MORE_BYTES : 1) > room && word != words))
			more++;
		else
			used += snprintf(text + used, room - used, "%s%.*s", used ? " " : "", (int)length, word);
	}
	if (more)
		snprintf(text + used, CONFIG_URL_BYTES - used, " and %zu more", more);
	return text;
}

bool feed_is_due(const struct store_feed *feed, const struct config_list *list, __s64 now_s)
{
	/* The last try lies ahead: the clock has been set back. */
	return feed->config != config_list_hash(list) || now_s >= feed->next_s ||
	       feed->tried_s > now_s + FEED_RETRY_MIN_S || feed->next_s > now_s + list->every_ms / 1000 + CLOCK_WRONG_S;
}

__s64 feed_forbidden_s(const struct store_feed *feed, const struct config_list *list, __s64 now_s)
{
	const __s64 least_s = list->preset ? list->preset->every_ms / 1000 : 0;
	__s64 until_s = 0;

	if (feed->config != config_list_hash(list) || feed->tried_s > now_s)
		return 0;
	if (feed->fetched_s)
		until_s = feed->fetched_s + least_s;
	if (feed->wait_until_s > until_s)
		until_s = feed->wait_until_s;
	return until_s > now_s ? until_s - now_s : 0;
}

bool feed_is_level(const struct store_feed *feed, const struct config_list *list, const struct store_list *stored,
		   __s64 now_s)
{
	char source[CONFIG_URL_BYTES];

	return feed->config == config_list_hash(list) && !strcmp(feed_source(list, source), stored->source) &&
	       feed->imported_s && stored->imported_s == feed->imported_s && stored->rules == feed->rules &&
	       !stored->is_edited &&
	       (!list->timeout_ms || (now_s >= feed->imported_s && now_s - feed->imported_s < list->timeout_ms / 2000));
}

void feed_note_success(struct store_feed *feed, const struct config_list *list, __s64 now_s, __u32 random)
{
	const __s64 every_s = list->every_ms / 1000;

	feed->config = config_list_hash(list);
	feed->tried_s = feed->fetched_s = now_s;
	feed->next_s = now_s + every_s + random % (every_s / 10 + 1);
	feed->wait_until_s = 0;
	feed->failures = 0;
	memset(feed->why, 0, sizeof(feed->why));
}

void feed_note_failure(struct store_feed *feed, const struct config_list *list, const char *why, __s64 retry_after_s,
		       __s64 now_s, __u32 random)
{
	const __u64 hash = config_list_hash(list);
	__s64 wait_s = 0;

	/* The URL has changed: forget what the old one answered. */
	if (feed->config != hash)
		*feed = (struct store_feed){ .config = hash };
	for (__u32 i = 0; i <= feed->failures && wait_s < FEED_RETRY_MAX_S; i++)
		wait_s = pause_longer(wait_s, FEED_RETRY_MIN_S, FEED_RETRY_MAX_S);
	wait_s = pause_spread(wait_s, random);
	feed->failures += feed->failures < ~0U;
	feed->tried_s = now_s;
	feed->wait_until_s = retry_after_s ? now_s + retry_after_s : 0;
	feed->next_s = now_s + (wait_s > retry_after_s ? wait_s : retry_after_s);
	memset(feed->why, 0, sizeof(feed->why));
	snprintf(feed->why, sizeof(feed->why), "%s", why);
	text_make_utf8(feed->why); /* the last character may be cut */
}
