/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel's datagrams over kernel TCP connections instead of UDP (docs/carriers.md): one thread of the
 * gateway has all sockets; workers give it datagrams and get some from it through rings, and never wait for
 * it. A tunnel moves to TCP and back while traffic runs.
 *
 * Functions may be called from any thread but a worker's, unless they say otherwise.
 */
#ifndef GATEWAY_CARRIER_CARRIER_H
#define GATEWAY_CARRIER_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/app.h"
#include "wan/record.h"

struct gw_pools;

/* X(field, sentence): of one tunnel, monotonic. */
#define GW_CARRIER_COUNTERS(X)                                                                               \
	X(moves_to_tcp, "times the tunnel began to send by TCP")                                             \
	X(moves_to_native, "times it was moved back, as somebody asked for it")                              \
	X(fallbacks, "times its TCP connections were lost while in use: back to native")                     \
	X(opened, "TCP connections that proved to be of the tunnel")                                         \
	X(connect_failed, "TCP connections that could not be opened, or were not answered in time")          \
	X(refused_tunnel, "connections of the peer that could not prove to be of the tunnel")                \
	X(refused_malformed, "connections ended because what came is no record")                             \
	X(refused_full, "connections refused because the tunnel had enough of them")                         \
	X(tx_datagrams, "datagrams written to TCP")                                                          \
	X(tx_bytes, "bytes written to TCP")                                                                  \
	X(rx_datagrams, "datagrams read from TCP")                                                           \
	X(rx_bytes, "bytes read from TCP")                                                                   \
	X(rx_stalls, "reading stopped for a while: a worker or packet memory was behind")                    \
	X(drop_unknown_worker, "datagram for a worker that there is not: both ends need the same number")
struct gw_carrier_counters {
#define X(f, s) uint64_t f;
	GW_CARRIER_COUNTERS(X)
#undef X
};

/* The path as the kernel measures it on a tunnel's connections, in the direction that this end sends. */
struct gw_carrier_path {
	rwy_dur srtt, min_rtt, rttvar;
	uint32_t
	    loss_ppm; /* of TCP segments, smoothed: those that it sent again, but for what arrived twice */
	rwy_time at;  /* when something was acknowledged last; 0: nothing yet */
};

struct gw_carrier_info {
	enum wan_carrier wanted, sending;
	bool by_peer; /* what is wanted was asked for at the other end */
	unsigned connections;
	char congestion[16];         /* the kernel's name for TCP's congestion control */
	char problem[192];           /* why it does not send by what is wanted; "" */
	struct gw_carrier_path path; /* of the connections that there are */
	struct gw_carrier_counters c;
	/* of all tunnels: connections from addresses that are no tunnel's peer; that did not say in time
	 * which tunnel they are of */
	uint64_t strangers, slow;
};

/* Starts the thread, with the tunnels of app->conf; before the workers. RWY_EINVAL: a tunnel asks for a
 * congestion control that the kernel has not, or for TCP on a port that is taken; logged. gw_carriers_stop is
 * due in any case. */
RWY_MUST_CHECK int gw_carriers_start(struct gw_app *app, struct gw_pools *pools);
/* After the workers have ended. */
void gw_carriers_stop(struct gw_app *app);
/* A tunnel came (the workers have it), or is about to go (c is NULL). Errors as above, nothing changed then.
 */
RWY_MUST_CHECK int gw_carrier_tunnel(struct gw_app *app, unsigned tunnel, const struct conf_tunnel *c);

/* Moves a tunnel, both directions, as soon as connections are there. 0; else RWY_E* with one sentence in
 * `why`, and nothing changed. */
RWY_MUST_CHECK int gw_carrier_set(
    struct gw_app *app, unsigned tunnel, enum wan_carrier c, char *why, size_t size);
void gw_carrier_info(const struct gw_app *app, unsigned tunnel, struct gw_carrier_info *out);

/* --- the worker's end: its own thread -------------------------------------------------------- */
struct gw_worker;
struct wan_tx;
/* Before the engine's turn: what came, which carrier is used, how much room there is. Returns how much there
 * was to do. */
unsigned gw_carrier_turn(struct gw_worker *w);
/* A datagram with wan_tx.stream set; ownership as of eng_ops.wan_tx. */
void gw_carrier_tx(struct gw_worker *w, unsigned tunnel, const struct wan_tx *tx);
/* At the end of a turn: the thread is told if there is something for it. */
void gw_carrier_flush(struct gw_worker *w);
bool gw_carrier_pending(const struct gw_worker *w); /* something came: no time to sleep */

#endif
