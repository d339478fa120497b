// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Foreign text: what of it is printed, and what is UTF-8. The texts of errors. */
#include "unit/test.h"

#include <errno.h>

#include "base/error_reason.h"
#include "base/safe_text.h"

TEST(test_characters)
{
	static const struct {
		const char *text;
		size_t bytes; /* of the first character */
		bool is_control, is_safe;
		const char *clean, *utf8;
	} rows[] = {
		{ "a b", 1, false, true, "a b", "a b" },
		{ "\t", 1, true, false, "?", "\t" },
		{ "a\x7f", 1, false, false, "a?", "a\x7f" },
		{ "\xc3\xa4\x01", 2, false, false, "\xc3\xa4?", "\xc3\xa4\x01" },
		{ "\xc2\x7f", 0, false, false, "\xc2?", "?\x7f" },
		{ "\xc2\x80", 2, true, false, "??", "\xc2\x80" },
		{ "\xc2\x9f", 2, true, false, "??", "\xc2\x9f" },
		{ "\xc2\xa0", 2, false, true, "\xc2\xa0", "\xc2\xa0" },
		{ "\xc3\x80", 2, false, true, "\xc3\x80", "\xc3\x80" },
		{ "\x7f\x80", 1, true, false, "?\x80", "\x7f?" },
		{ "\x80z", 0, false, false, "\x80z", "?z" },
		{ "\xc1\xbf", 0, false, false, "\xc1\xbf", "??" },
		{ "\xdf\xbf", 2, false, true, "\xdf\xbf", "\xdf\xbf" },
		{ "\xe0\x9f\xbf", 0, false, false, "\xe0\x9f\xbf", "???" },
		{ "\xe0\xa0\x80", 3, false, true, "\xe0\xa0\x80", "\xe0\xa0\x80" },
		{ "\xe1\x80", 0, false, false, "\xe1\x80", "??" },
		{ "\xe1\x80\xc0", 0, false, false, "\xe1\x80\xc0", "???" },
		{ "\xed\x9f\xbf", 3, false, true, "\xed\x9f\xbf", "\xed\x9f\xbf" },
		{ "\xed\xa0\x80", 0, false, false, "\xed\xa0\x80", "???" },
		{ "\xef\xbf\xbf", 3, false, true, "\xef\xbf\xbf", "\xef\xbf\xbf" },
		{ "\xf0\x8f\xbf\xbf", 0, false, false, "\xf0\x8f\xbf\xbf", "????" },
		{ "\xf0\x90\x80\x80", 4, false, true, "\xf0\x90\x80\x80", "\xf0\x90\x80\x80" },
		{ "\xf1\x80\x80", 0, false, false, "\xf1\x80\x80", "???" },
		{ "\xf4\x8f\xbf\xbf", 4, false, true, "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf" },
		{ "\xf4\x90\x80\x80", 0, false, false, "\xf4\x90\x80\x80", "????" },
		{ "\xf5\x80\x80\x80", 0, false, false, "\xf5\x80\x80\x80", "????" },
		/* What ends a line or changes the direction, and its neighbours. */
		{ "\xd8\x9c.", 2, false, true, "??.", "\xd8\x9c." },
		{ "\xd8\x9b", 2, false, true, "\xd8\x9b", "\xd8\x9b" },
		{ "\xd9\x9c", 2, false, true, "\xd9\x9c", "\xd9\x9c" },
		{ "\xe2\x80\x8d", 3, false, true, "\xe2\x80\x8d", "\xe2\x80\x8d" },
		{ "\xe2\x80\x8e\xe2\x80\x8f", 3, false, true, "??????", "\xe2\x80\x8e\xe2\x80\x8f" },
		{ "\xe2\x80\x90", 3, false, true, "\xe2\x80\x90", "\xe2\x80\x90" },
		{ "\xe2\x80\xa7", 3, false, true, "\xe2\x80\xa7", "\xe2\x80\xa7" },
		{ "\xe2\x80\xa8\xe2\x80\xae", 3, false, true, "??????", "\xe2\x80\xa8\xe2\x80\xae" },
		{ "\xe2\x80\xaf", 3, false, true, "\xe2\x80\xaf", "\xe2\x80\xaf" },
		{ "\xe2\x81\xa5", 3, false, true, "\xe2\x81\xa5", "\xe2\x81\xa5" },
		{ "\xe2\x81\xa6\xe2\x81\xa9", 3, false, true, "??????", "\xe2\x81\xa6\xe2\x81\xa9" },
		{ "\xe2\x81\xaa", 3, false, true, "\xe2\x81\xaa", "\xe2\x81\xaa" },
		{ "\xe2\x81\xae", 3, false, true, "\xe2\x81\xae", "\xe2\x81\xae" },
		{ "\xe2\x82\xa8", 3, false, true, "\xe2\x82\xa8", "\xe2\x82\xa8" },
		{ "\xe3\x80\x8e", 3, false, true, "\xe3\x80\x8e", "\xe3\x80\x8e" },
		{ "\xe3\x81\xa6", 3, false, true, "\xe3\x81\xa6", "\xe3\x81\xa6" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *text = rows[i].text;
		char clean[16], utf8[16];

		assert_int_equal(text_character_bytes(text), rows[i].bytes);
		assert_int_equal(text_is_control(text), rows[i].is_control);
		assert_int_equal(text_is_safe(text, strlen(text) + 1), rows[i].is_safe);
		assert_false(text_is_safe(text, strlen(text)));
		text_clean(strcpy(clean, text));
		assert_string_equal(clean, rows[i].clean);
		text_make_utf8(strcpy(utf8, text));
		assert_string_equal(utf8, rows[i].utf8);
	}
	assert_true(text_is_safe("", 1));
}

TEST(test_parts_of_texts)
{
	char text[8] = "ab";

	text_append(text, sizeof(text), "%c%d", 'c', 1);
	assert_string_equal(text, "abc1");
	text_append(text, sizeof(text), "%s", "23456");
	assert_string_equal(text, "abc1234");
	text_append(text, sizeof(text), "x");
	assert_string_equal(text, "abc1234");
	assert_string_equal(text_behind_mark("\xef\xbb\xbfz"), "z");
	assert_string_equal(text_behind_mark("\xef\xbbz"), "\xef\xbbz");
	assert_string_equal(text_behind_mark(""), "");
}

TEST(test_reasons)
{
	char long_word[2 * REASON_BYTES];
	struct reason reason;

	errno = EIO;
	assert_int_equal(reason_set(&reason, -errno, "a\nword of %d", 5), -EIO);
	assert_string_equal(reason.text, "a?word of 5");
	memset(long_word, 'x', sizeof(long_word));
	long_word[sizeof(long_word) - 1] = '\0';
	reason_write(&reason, "%s", long_word);
	assert_int_equal(strlen(reason.text), REASON_BYTES - 1);
	assert_string_equal(reason_of_write(-EBADMSG), REASON_DAMAGED);
	assert_non_null(strstr(reason_of_write(-EFBIG), "ulimit"));
	assert_string_equal(reason_of_write(-ENOSPC), strerror(ENOSPC));
}

TEST_MAIN(NULL, NULL)
