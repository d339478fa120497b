// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The lines of a configuration: sections, keys, comments. */
#include "unit/test.h"
#include "base/ini_line.h"

TEST(test_lines)
{
	static const struct {
		const char *line;
		enum ini_kind kind;
		const char *name, *value;
	} rows[] = {
		{ "", INI_EMPTY, NULL, NULL },
		{ " \t\r\n", INI_EMPTY, NULL, NULL },
		{ " # a = b", INI_EMPTY, NULL, NULL },
		{ ";[a]", INI_EMPTY, NULL, NULL },
		{ "[a]\n", INI_SECTION, "a", "" },
		{ " [ list b ] # c", INI_SECTION, "list b", "" },
		{ "[a]#b", INI_SECTION, "a", "#b" },
		{ "[a] b = c", INI_SECTION, "a", "b = c" },
		{ "[a", INI_OPEN, NULL, NULL },
		{ "a=b\r\n", INI_KEY, "a", "b" },
		{ "a : b, c ; d", INI_KEY, "a", "b, c" },
		{ "a = [2001:db8::1]:6379", INI_KEY, "a", "[2001:db8::1]:6379" },
		{ "a = b#c;d", INI_KEY, "a", "b#c;d" },
		{ "a = # b", INI_KEY, "a", "" },
		{ "a", INI_WRONG, NULL, NULL },
		{ "a # b = c", INI_WRONG, NULL, NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[64];
		struct ini_line line;

		snprintf(text, sizeof(text), "%s", rows[i].line);
		line = ini_line_parse(text);
		assert_int_equal(line.kind, rows[i].kind);
		assert_int_equal(!line.name, !rows[i].name);
		if (!line.name)
			continue;
		assert_string_equal(line.name, rows[i].name);
		assert_string_equal(line.value, rows[i].value);
	}
}

TEST_MAIN(NULL, NULL)
