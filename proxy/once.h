/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-time ports: a host says that its next REQ from a source port means a target. It is for REQs
 * whose private data leave no room for a trailer. An entry is the host's own, is used by one REQ,
 * and ends after a while. A bounded table, searched from end to end: these are few, and not on the
 * packet path. Thread: the one that owns the edge.
 */
#ifndef PROXY_ONCE_H
#define PROXY_ONCE_H

#include "proxy/trailer.h"
#include "rwy/err.h"
#include "rwy/time.h"

#define PROXY_ONCE_MAX  512
#define PROXY_ONCE_HOST 64             /* of one host */
#define PROXY_ONCE_TTL  (30 * RWY_SEC) /* several repeats of a REQ */

struct proxy_once_entry {
	struct rwy_ip host, relay;
	uint16_t source_port; /* 0: free */
	struct proxy_target target;
	rwy_time since;
};

/* All zero: empty. */
struct proxy_once {
	struct proxy_once_entry entry[PROXY_ONCE_MAX];
};

/*
 * The next REQ of host to relay from source_port, which is not 0, means target. An entry of the
 * same host, relay and port is replaced. RWY_ENOMEM: the table is full, or the host has its part.
 */
RWY_MUST_CHECK int proxy_once_add(struct proxy_once *o, const struct rwy_ip *host, const struct rwy_ip *relay,
    uint16_t source_port, const struct proxy_target *target, rwy_time now);
/* The target of a REQ; NULL: there is no such entry, or its time is over. */
const struct proxy_target *proxy_once_find(const struct proxy_once *o, const struct rwy_ip *host,
    const struct rwy_ip *relay, uint16_t source_port, rwy_time now);
/* The entry is used. False: there is none. */
bool proxy_once_remove(
    struct proxy_once *o, const struct rwy_ip *host, const struct rwy_ip *relay, uint16_t source_port);

#endif
