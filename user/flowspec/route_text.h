/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A route as `gobgp monitor global rib --current` prints it, without -j: the version for people. JSON cannot say a rate
 * that is no number, and gobgp then prints nothing of all routes of the event. In this form each route is printed alone.
 * Routes of any family may have line ends and forged routes in their attributes. So the caller must know where a route
 * ends: gobgp writes each with one write(2), and a socket of packets (SOCK_SEQPACKET) keeps them apart.
 */
#ifndef XDP_CUCKOO_ROUTE_TEXT_H
#define XDP_CUCKOO_ROUTE_TEXT_H

#include <jansson.h>

/*
 * What gobgp would print of it with -j, as far as it matters: the route's NLRI, its communities and whether it is
 * withdrawn. NULL: it is no route, or there is no memory.
 */
json_t *route_text_read(const char *text);

#endif
