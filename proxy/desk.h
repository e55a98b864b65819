/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The desk of a relay: answers what the libraries on hosts ask (proxy/ask.h). Whoever wants
 * something to be kept shows a cookie first, which only who receives at that address can know; so
 * nobody speaks for another host. The access list decides. The desk sends nothing: its answer is
 * the reply of the action.
 *
 * Thread: the worker that owns the edge.
 */
#ifndef PROXY_DESK_H
#define PROXY_DESK_H

#include "proxy/ask.h"
#include "proxy/edge.h"

/*
 * A UDP datagram of a host to a relay address and `ask_port`, `len` bytes from its IP header on.
 * The verdict is PROXY_DROP; the answer, if there is one, is the reply.
 */
void proxy_desk_packet(
    struct proxy_edge *e, const uint8_t *ip, uint32_t len, struct proxy_act *act, rwy_time now);

/* The same without IP and UDP: what the host says, and the answer to it. For tests, too. */
struct proxy_ask proxy_desk_answer(struct proxy_edge *e, const struct rwy_ip *host,
    const struct rwy_ip *relay, const struct proxy_ask *ask, rwy_time now);

#endif
