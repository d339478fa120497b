// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* suggest_for(): finds the word meant by a mistyped one, and nothing for a different word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/suggest.h"

#define WORDS "load|unload|status|stats|add|del|test|list|flush|import|export|expire|monitor-only|confirm"

static void assert_suggests(const char *word, const char *choices, const char *expected)
{
	struct suggest suggest = suggest_for(word);

	suggest_offer_choices(&suggest, choices);
	if (strcmp(suggest.nearest, expected))
		fail_msg("'%s': expected '%s', suggested '%s'", word, expected, suggest.nearest);
}

static void test_slips(void **state)
{
	(void)state;
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

static void test_words_cut_short_and_longer_ones(void **state)
{
	(void)state;
	assert_suggests("delete", WORDS, "del");
	assert_suggests("mon", WORDS, "monitor-only");
	assert_suggests("mo", WORDS, "");
	/* A typing mistake is nearer than a word cut short. */
	assert_suggests("stat", WORDS, "stats");
}

static void test_other_words(void **state)
{
	(void)state;
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
}

static void test_the_first_of_equals(void **state)
{
	(void)state;
	assert_suggests("xport", "sport|dport", "sport");
	assert_suggests("xport", "dport|sport", "dport");
}

/* Words of 31 bytes are compared, words of 32 bytes are not. */
static void test_the_longest_word(void **state)
{
	char word[SUGGEST_WORD_BYTES + 1], slip[SUGGEST_WORD_BYTES + 1];

	(void)state;
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

static void test_a_part_of_a_text(void **state)
{
	struct suggest suggest = suggest_for_part("dprt=5", 4);

	(void)state;
	suggest_offer(&suggest, "dport");
	assert_string_equal(suggest.nearest, "dport");
}

static void test_text(void **state)
{
	struct suggest suggest = suggest_for("stauts");
	char text[SUGGEST_TEXT_BYTES];

	(void)state;
	assert_string_equal(suggest_text(&suggest, NULL, text), "");
	assert_string_equal(suggest_text(&suggest, "xdp-cuckoo help", text), "; see xdp-cuckoo help");
	suggest_offer(&suggest, "status");
	assert_string_equal(suggest_text(&suggest, NULL, text), "; did you mean 'status'?");
	assert_string_equal(suggest_text(&suggest, "xdp-cuckoo help", text),
			    "; did you mean 'status'? See xdp-cuckoo help");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slips),
		cmocka_unit_test(test_words_cut_short_and_longer_ones),
		cmocka_unit_test(test_other_words),
		cmocka_unit_test(test_the_first_of_equals),
		cmocka_unit_test(test_the_longest_word),
		cmocka_unit_test(test_a_part_of_a_text),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
