/* SPDX-License-Identifier: GPL-2.0-only */
/* How programs read packets: at XDP or, in an object compiled with AT_TC, at tc. */
#ifndef XDP_CUCKOO_PACKET_H
#define XDP_CUCKOO_PACKET_H

#ifdef AT_TC
#include "skb.h"
#else
#include "multi_buffer.h"
#endif

#endif
