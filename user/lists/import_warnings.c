// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Warns of rules in a list that are rarely meant, before they block anything. */
#include <string.h>

#include "lists/import_internal.h"
#include "io/output.h"

#define DESTINATIONS_CHECKED 64

static void count(struct import_warning *warning, const struct rule *rule, const char *what)
{
	if (!warning->count++)
		rule_format(rule, warning->first);
	warning->what = what;
}

void import_warnings_check(struct import_warnings *warnings, const struct guard *guard, const struct rule *rule)
{
	const char *what = guard_special(rule);
	size_t i = 0;

	if (what) {
		while (i < IMPORT_WARNINGS_MAX - 1 && warnings->kinds[i].what && strcmp(warnings->kinds[i].what, what))
			i++;
		count(&warnings->kinds[i], rule, what);
	}
	/* Each check asks the kernel; a list of destinations elsewhere shows it early. */
	if (rule->dst_len && !*warnings->elsewhere && warnings->destinations++ < DESTINATIONS_CHECKED &&
	    guard_is_elsewhere(rule))
		rule_format(rule, warnings->elsewhere);
	if (guard->count && rule->action == RULE_DROP && guard_concerns(guard, rule))
		count(&warnings->blocking, rule, "");
}

void import_warnings_print(const struct import_warnings *warnings)
{
	const struct import_warning *blocking = &warnings->blocking;

	for (size_t i = 0; i < IMPORT_WARNINGS_MAX && warnings->kinds[i].count; i++) {
		const struct import_warning *kind = &warnings->kinds[i];

		output_note("rarely meant to be dropped: %s; %llu rule%s, the first is '%s'", kind->what,
			    (unsigned long long)kind->count, kind->count == 1 ? "" : "s", kind->first);
	}
	if (*warnings->elsewhere)
		output_note(GUARD_ELSEWHERE, warnings->elsewhere);
	if (blocking->count)
		output_note("%llu rule%s would block packets to or from this host, the first is '%s'; without "
			    "--force or pass rules the import is refused",
			    (unsigned long long)blocking->count, blocking->count == 1 ? "" : "s", blocking->first);
}
