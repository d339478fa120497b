/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names of the sets that are written, in which ipset and nft keep what their types do not say:
 * the action, and of which side an address or port is: "xc-drop-src-dport-net4",
 * "xc_pass_proto_dst24_dport_4".
 */
#ifndef XDP_CUCKOO_LIST_SET_NAME_H
#define XDP_CUCKOO_LIST_SET_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define LIST_SET_COLUMNS_MAX 6

struct list_set_name {
	bool is_pass;
	const char *columns[LIST_SET_COLUMNS_MAX]; /* keywords of a rule text */
	size_t count;
	int family; /* 4, 6, or 0 where the name has none */
};

/* `separator` is what stands between the parts. false where the name is not one of ours. */
bool list_set_name_parse(const char *name, char separator, struct list_set_name *own);

#endif
