/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of the controller.
 * Thread: any.
 */
#ifndef CONTROLLER_STATE_COUNTERS_H
#define CONTROLLER_STATE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#define COUNTERS(X)                                                                                          \
	X(requests, "requests answered")                                                                     \
	X(refused, "requests refused: 4xx")                                                                  \
	X(store_errors, "requests that the store did not accept: 503")                                       \
	X(unauthenticated, "requests without a valid certificate")                                           \
	X(slow_clients, "connections ended because a request or an answer took too long")                    \
	X(too_large, "requests with a body above the limit")                                                 \
	X(registrations, "registrations taken")                                                              \
	X(host_leases, "leases renewed by the agents of hosts")                                              \
	X(leases, "leases renewed")                                                                          \
	X(takeovers, "takeovers in pairs of gateways that nobody ordered")                                   \
	X(takeovers_planned, "hand-overs in pairs of gateways")                                              \
	X(pair_conflicts, "times that gateways of a pair contradicted each other, or were refused as one")   \
	X(expired, "leases that ran out")                                                                    \
	X(documents, "documents sent")                                                                       \
	X(sessions_opened, "sessions reported as opened")                                                    \
	X(relay_links_lost, "sessions of relays that are not shown as links: memory was short")              \
	X(sessions_refused, "sessions not kept: too many")                                                   \
	X(decisions, "decisions answered")                                                                   \
	X(links, "link measurements taken")                                                                  \
	X(links_unknown, "link measurements to gateways without a tunnel")                                   \
	X(tunnel_changes, "tunnels written")                                                                 \
	X(commits, "transactions that the store accepted")                                                   \
	X(commit_conflicts, "transactions that failed because another one was first")                        \
	X(network_calls, "calls to networks' controllers")                                                   \
	X(network_errors, "of those, calls without an answer, or with an invalid one")                       \
	X(network_refusals, "of those, calls that were refused")                                             \
	X(network_made, "tunnels in networks made or changed")                                               \
	X(network_dropped, "tunnels in networks given back")                                                 \
	X(watch_restarts, "times that the store's watch began again")

#define COUNTER_BUCKETS 12 /* of decisions: up to 50 us, 100 us, ...; then all longer ones */

struct ctlr_counters {
#define X(name, text) _Atomic uint64_t name;
	COUNTERS(X)
#undef X
	_Atomic uint64_t decision_bucket[COUNTER_BUCKETS + 1], decision_ns;
	/* open connections; requests that wait for a change */
	_Atomic unsigned connections, waiting;
};
#define COUNT(c, name) atomic_fetch_add_explicit(&(c)->counters.name, 1, memory_order_relaxed)

#endif
