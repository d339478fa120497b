/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names of the sets that list_write_ipset() and list_write_nft() write. A name tells what the type of the
 * set cannot: the action, and whether an address or port is source or destination. Examples:
 * "xc-drop-src-dport-net4", "xc_pass_proto_dst24_dport_4".
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
	int family; /* 4, 6, or 0: not in the name */
};

/* `separator` divides the parts of the name. false: the name is not one of ours. */
bool list_set_name_parse(const char *name, char separator, struct list_set_name *own);

#endif
