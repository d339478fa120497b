// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lists/import_warnings.h"

#include <string.h>

#include "io/output.h"

static void count(struct import_special *special, const struct rule *rule, const char *what)
{
	if (!special->count++)
		rule_format(rule, special->first);
	special->what = what;
}

void import_specials_look(struct import_specials *specials, const struct guard *guard, const struct rule *rule)
{
	const char *what = guard_special(rule);
	size_t i = 0;

	if (what) {
		while (i < IMPORT_SPECIALS_MAX - 1 && specials->kinds[i].what && strcmp(specials->kinds[i].what, what))
			i++;
		count(&specials->kinds[i], rule, what);
	}
	if (guard->count && rule->action == RULE_DROP && guard_concerns(guard, rule))
		count(&specials->blocking, rule, "");
}

void import_specials_note(const struct import_specials *specials)
{
	const struct import_special *blocking = &specials->blocking;

	for (size_t i = 0; i < IMPORT_SPECIALS_MAX && specials->kinds[i].count; i++) {
		const struct import_special *kind = &specials->kinds[i];

		output_note("rarely meant to be dropped: %s; %llu rule%s, the first is '%s'", kind->what,
			    (unsigned long long)kind->count, kind->count == 1 ? "" : "s", kind->first);
	}
	if (blocking->count)
		output_note("%llu rule%s would block packets to or from this host, the first is '%s'; without "
			    "--force or pass rules the import is refused",
			    (unsigned long long)blocking->count, blocking->count == 1 ? "" : "s", blocking->first);
}
