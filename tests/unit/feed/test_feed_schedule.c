// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* When lists by URL are fetched, what counts as a hash, and which messages of the fetching process are taken. */

#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/safe_text.h"
#include "feed/feeds.h"

#define NOW_S 1800000000
#define HOUR_S 3600

static const struct config_list hourly = { .name = "a", .url = "https://a/b?key=c", .every_ms = HOUR_S * 1000LL };

TEST(test_a_feed_is_due)
{
	struct store_feed feed = {};
	struct config_list other = hourly;

	assert_true(feed_is_due(&feed, &hourly, NOW_S));
	feed_note_success(&feed, &hourly, NOW_S, 0);
	assert_false(feed_is_due(&feed, &hourly, NOW_S + HOUR_S - 1));
	assert_true(feed_is_due(&feed, &hourly, NOW_S + HOUR_S));
	other.url = "https://a/c";
	assert_true(feed_is_due(&feed, &other, NOW_S));
	/* The clock was years ahead. */
	assert_true(feed_is_due(&feed, &hourly, NOW_S - 30 * 86400));
	/* It was some hours ahead, as after a boot, or is corrected by a second. */
	assert_true(feed_is_due(&feed, &hourly, NOW_S - 2 * HOUR_S));
	assert_false(feed_is_due(&feed, &hourly, NOW_S - 1));
}

TEST(test_tries_after_failures)
{
	char long_why[STORE_WHY_BYTES + 2];
	struct store_feed feed = {};
	__s64 least_s = FEED_RETRY_MIN_S / 2;

	for (__u32 failures = 1; failures < 20; failures++) {
		feed_note_failure(&feed, &hourly, "why", 0, NOW_S, failures * 2654435761U);
		assert_int_equal(feed.failures, failures);
		assert_in_range(feed.next_s, NOW_S + least_s, NOW_S + 2 * least_s);
		least_s = 2 * least_s < FEED_RETRY_MAX_S / 2 ? 2 * least_s : FEED_RETRY_MAX_S / 2;
	}
	assert_string_equal(feed.why, "why");
	feed_note_failure(&feed, &hourly, "why", 2 * 86400, NOW_S, 0);
	assert_int_equal(feed.next_s, NOW_S + 2 * 86400);
	assert_int_equal(feed_forbidden_s(&feed, &hourly, NOW_S + 100), 2 * 86400 - 100);
	/* What is cut within a character must not make the entry unsound. */
	memset(long_why, 0xbc, sizeof(long_why) - 1);
	for (size_t i = 0; i < sizeof(long_why) - 1; i += 2)
		long_why[i] = '\xc3';
	long_why[sizeof(long_why) - 1] = '\0';
	feed_note_failure(&feed, &hourly, long_why, 0, NOW_S, 0);
	assert_true(text_is_safe(feed.why, sizeof(feed.why)));
	feed_note_success(&feed, &hourly, NOW_S, 0);
	assert_int_equal(feed.failures, 0);
	assert_string_equal(feed.why, "");
	assert_int_equal(feed_forbidden_s(&feed, &hourly, NOW_S), 0);
}

TEST(test_a_preset_has_a_shortest_time)
{
	struct store_feed feed = {};
	struct config_list list = hourly;

	list.preset = list_preset_named("spamhaus-drop");
	feed_note_success(&feed, &list, NOW_S, 0);
	assert_int_equal(feed_forbidden_s(&feed, &list, NOW_S + 600), HOUR_S - 600);
	assert_int_equal(feed_forbidden_s(&feed, &list, NOW_S + HOUR_S), 0);
}

TEST(test_the_server_need_not_send_what_is_here)
{
	struct store_list stored = { .source = "https://a/b", .imported_s = NOW_S, .rules = 3 };
	struct store_feed feed = { .imported_s = NOW_S, .rules = 3 };
	struct config_list list = hourly;

	feed.config = config_list_hash(&list);
	assert_true(feed_is_level(&feed, &list, &stored, NOW_S + 86400));
	stored.rules = 2;
	assert_false(feed_is_level(&feed, &list, &stored, NOW_S));
	stored.rules = 3;
	stored.imported_s++;
	assert_false(feed_is_level(&feed, &list, &stored, NOW_S));
	stored.imported_s--;
	strcpy(stored.source, "/a/file");
	assert_false(feed_is_level(&feed, &list, &stored, NOW_S));
	strcpy(stored.source, "https://a/b");
	/* Rules that end must start again in time. */
	list.timeout_ms = HOUR_S * 1000LL;
	feed.config = config_list_hash(&list);
	assert_true(feed_is_level(&feed, &list, &stored, NOW_S + 1700));
	assert_false(feed_is_level(&feed, &list, &stored, NOW_S + 1800));
	/* Their age is not known: the clock was ahead when they came. */
	assert_false(feed_is_level(&feed, &list, &stored, NOW_S - HOUR_S));
}

#define HASH "0123456789abcdef0123456789abcdef0123456789ABCDEF0123456789abcdef"

TEST(test_hashes)
{
	static const char *const good[] = { HASH, HASH "\n", HASH "  list\n", "SHA256 (list) = " HASH "\n", "\n" HASH };
	static const char *const bad[] = { "", " ", "0" HASH, "x" HASH, HASH "0", HASH ".txt", "no hash" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (fetch_find_sha256(good[i]) != strstr(good[i], HASH))
			fail_msg("not found in '%s'", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (fetch_find_sha256(bad[i]))
			fail_msg("found in '%s'", bad[i]);
}

TEST(test_unsound_messages)
{
	const struct feed_message sound = { .outcome = FEED_FETCHED, .bytes = 5, .etag = "\"a\"" };
	struct feed_message message = sound;

	assert_true(feed_message_is_sound(&message));
	message.outcome = FEED_OUTCOMES;
	assert_false(feed_message_is_sound(&message));
	message = sound;
	message.bytes = FEED_TEXT_MAX + 1;
	assert_false(feed_message_is_sound(&message));
	message = sound;
	message.outcome = FEED_UNMODIFIED;
	assert_false(feed_message_is_sound(&message));
	message = sound;
	strcpy(message.etag, "a\r\nHost: b");
	assert_false(feed_message_is_sound(&message));
	message = sound;
	memset(message.modified, 'a', sizeof(message.modified));
	assert_false(feed_message_is_sound(&message));
	message = sound;
	message.retry_after_s = -1;
	assert_false(feed_message_is_sound(&message));
	message = (struct feed_message){ .outcome = FEED_FAILED, .retry_after_s = 1LL << 60 };
	assert_false(feed_message_is_sound(&message));
	strcpy(message.why, "why");
	assert_true(feed_message_is_sound(&message));
	assert_int_equal(message.retry_after_s, FEED_WAIT_MAX_S);
}

TEST_MAIN(NULL, NULL)
