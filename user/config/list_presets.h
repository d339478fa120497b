/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lists of well-known providers, by name: their URLs, and what the providers ask of those who fetch them. */
#ifndef XDP_CUCKOO_LIST_PRESETS_H
#define XDP_CUCKOO_LIST_PRESETS_H

#include <stddef.h>

#include <linux/types.h>

struct list_preset {
	const char *name, *url, *format;
	__s64 every_ms; /* the shortest time between two fetches that the provider allows, or that is useful */
	const char *terms;
	const char *about;
	unsigned int space_max; /* percent of the public addresses that it may cover */
};

/* Number `index`; NULL after the last. */
const struct list_preset *list_preset(size_t index);

/* NULL: there is none of this name. */
const struct list_preset *list_preset_named(const char *name);

#endif
