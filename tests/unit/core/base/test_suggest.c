// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* suggest_for(): finds the word meant by a mistyped one, and nothing for a different word. */
#include "unit/test.h"
#include "base/suggest.h"

#define WORDS "load|unload|status|stats|add|del|test|list|flush|import|export|expire|monitor-only|confirm"

static void assert_suggests(const char *word, const char *choices, const char *expected)
{
	struct suggest suggest = suggest_for(word);

	suggest_offer_choices(&suggest, choices);
	if (strcmp(suggest.nearest, expected))
		fail_msg("'%s': expected '%s', suggested '%s'", word, expected, suggest.nearest);
}

TEST(test_slips)
{
	assert_suggests("stauts", WORDS, "status"); /* two letters swapped */
	assert_suggests("lod", WORDS, "load");      /* one missing */
	assert_suggests("loadd", WORDS, "load");    /* one too many */
	assert_suggests("lost", WORDS, "list");     /* one wrong */
	assert_suggests("imoprt", WORDS, "import");
	assert_suggests("dprt", "sport|dport", "dport");
	assert_suggests("monitor_only", WORDS, "monitor-only");
	assert_suggests("mnoitor-olny", WORDS, "monitor-only");
	assert_suggests("STATUS", WORDS, "status");
	assert_suggests("of", "on|off", "off");
	assert_suggests("fast", "auto|native|skb", "");
	assert_suggests("natvie", "auto|native|skb", "native");
}

TEST(test_words_cut_short_and_longer_ones)
{
	assert_suggests("delete", WORDS, "del");
	assert_suggests("mon", WORDS, "monitor-only");
	assert_suggests("mo", WORDS, "");
	/* A typing mistake is nearer than a word cut short. */
	assert_suggests("stat", WORDS, "stats");
}

TEST(test_other_words)
{
	assert_suggests("", WORDS, "");
	assert_suggests("x", WORDS, "");
	assert_suggests("nosuch", WORDS, "");
	assert_suggests("block", WORDS, "");
	assert_suggests("frobnicate", WORDS, "");
	assert_suggests("monitor-only-and-so-on-and-so-forth", WORDS, "");
	assert_suggests("status", "", "");
	assert_suggests("\xff\xfe\xfd", WORDS, "");
	/* A distance of 4 is too far, even for long words. */
	assert_suggests("abcdefghijklmnop", "abcdefghijklwxyz", "");
	assert_suggests("abcdefghijklmnop", "abcdefghijklmxyz", "abcdefghijklmxyz");
	/* No letter is left out for nothing, and half a swap is none. */
	assert_suggests("oadx", "load", "");
	assert_suggests("abef", "xaef", "");
	assert_suggests("baef", "axef", "");
}

/* What stands around a word is no part of it. */
TEST(test_neighbours_of_a_word)
{
	struct suggest suggest = suggest_for_part("xaefgh" + 1, 5);

	suggest_offer(&suggest, "zaxefg");
	assert_string_equal(suggest.nearest, "");
	assert_suggests("zb|efg", "|befgh", "");
}

TEST(test_words_of_a_list)
{
	static const struct advice advices[] = { { "drop|DROP|cut", "one" }, { "reject|", "two" } };
	static const struct {
		const char *word;
		bool has_case, is_there;
		const char *advice;
	} rows[] = {
		{ "drop", true, true, "one" },   { "cut", true, true, "one" },    { "Cut", true, false, NULL },
		{ "Cut", false, true, "one" },   { "cu", false, false, NULL },    { "cuts", false, false, NULL },
		{ "rop", false, false, NULL },   { "drop|", false, false, NULL }, { "reject", true, false, "two" },
		{ "Reject", true, false, NULL }, { "", true, false, NULL },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *word = rows[i].word;
		const size_t length = strlen(word);

		assert_int_equal(suggest_has("drop|DROP|cut", word, length, rows[i].has_case), rows[i].is_there);
		assert_ptr_equal(advice_find(advices, 1, word, length, rows[i].has_case),
				 rows[i].is_there ? advices[0].text : NULL);
		assert_ptr_equal(advice_find(advices, COUNT(advices), word, length, rows[i].has_case),
				 rows[i].advice ? advices[*rows[i].advice == 't'].text : NULL);
	}
	assert_true(suggest_has("cut", "cutting", 3, true));
	assert_false(suggest_has("", "", 0, true));
}

TEST(test_the_first_of_equals)
{
	assert_suggests("xport", "sport|dport", "sport");
	assert_suggests("xport", "dport|sport", "dport");
}

/* Words of 31 bytes are compared, words of 32 bytes are not. */
TEST(test_the_longest_word)
{
	char word[SUGGEST_WORD_BYTES + 1], slip[SUGGEST_WORD_BYTES + 1];

	memset(word, 'a', sizeof(word));
	word[SUGGEST_WORD_BYTES - 1] = '\0';
	strcpy(slip, word);
	slip[0] = 'b';
	assert_suggests(slip, word, word);
	word[SUGGEST_WORD_BYTES - 1] = 'a';
	word[SUGGEST_WORD_BYTES] = '\0';
	assert_suggests(slip, word, "");
	assert_suggests(word, slip, "");
}

TEST(test_a_part_of_a_text)
{
	struct suggest suggest = suggest_for_part("dprt=5", 4);

	suggest_offer(&suggest, "dport");
	assert_string_equal(suggest.nearest, "dport");
}

TEST(test_text)
{
	struct suggest suggest = suggest_for("stauts");
	char text[SUGGEST_TEXT_BYTES];

	assert_string_equal(suggest_text(&suggest, NULL, text), "");
	assert_string_equal(suggest_text(&suggest, "xdp-cuckoo help", text), "; see xdp-cuckoo help");
	suggest_offer(&suggest, "status");
	assert_string_equal(suggest_text(&suggest, NULL, text), "; did you mean 'status'?");
	assert_string_equal(suggest_text(&suggest, "xdp-cuckoo help", text),
			    "; did you mean 'status'? See xdp-cuckoo help");
}

TEST_MAIN(NULL, NULL)
