/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The version of the tool. The formats have their own versions: ABI_VERSION, STORE_SCHEMA. */
#ifndef XDP_CUCKOO_VERSION_H
#define XDP_CUCKOO_VERSION_H

#define VERSION "0.3.0"

#endif
