/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel's datagrams over TCP, QUIC or RDMA connections (docs/carriers.md). One thread of the
 * gateway has all of them; workers exchange datagrams with it through rings and never wait for
 * it. A tunnel moves from one carrier to another while traffic runs.
 *
 * Functions may be called from any thread except a worker's, unless noted.
 */
#ifndef GATEWAY_CARRIER_CARRIER_H
#define GATEWAY_CARRIER_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/app.h"
#include "gateway/carrier/quic.h"
#include "wan/record.h"

struct gw_pools;

/* X(field, sentence): counters of one tunnel, monotonic. */
#define GW_CARRIER_COUNTERS(X)                                                                               \
	X(moves_to_tcp, "times the tunnel began to send by TCP")                                             \
	X(moves_to_quic, "times the tunnel began to send by QUIC")                                           \
	X(moves_to_rdma, "times the tunnel began to send by RDMA")                                           \
	X(moves_to_native, "times it was moved back on request")                                             \
	X(detours_began, "times that its connections became ready for detours")                              \
	X(fallbacks, "times its connections were lost while in use: back to native")                         \
	X(opened, "connections that proved to be of the tunnel")                                             \
	X(connect_failed, "connections that could not be opened, or were not answered in time")              \
	X(refused_tunnel, "connections of the peer that could not prove to be of the tunnel")                \
	X(refused_malformed, "connections ended because of a malformed record")                              \
	X(refused_forged, "connections ended because the peer did not seal a message (RDMA)")                \
	X(refused_full, "connections refused because the tunnel had enough of them")                         \
	X(tx_datagrams, "datagrams written to connections")                                                  \
	X(tx_bytes, "bytes written to connections")                                                          \
	X(tx_credits, "empty messages that told the peer of receives (RDMA)")                                \
	X(key_updates, "times that a connection went on with a new key for sending (RDMA)")                  \
	X(rx_datagrams, "datagrams read from connections")                                                   \
	X(rx_bytes, "bytes read from connections")                                                           \
	X(rx_stalls, "reading stopped for a while: a worker or packet memory was behind")                    \
	X(drop_unknown_worker, "datagram for a worker that does not exist: both ends need the same number")
struct gw_carrier_counters {
#define X(f, s) uint64_t f;
	GW_CARRIER_COUNTERS(X)
#undef X
};

/*
 * The path as a tunnel's connections measure it, in this end's sending direction: by TCP of the
 * kernel, by QUIC, or by the acknowledgements of RDMA's datagrams.
 */
struct gw_carrier_path {
	rwy_dur srtt, min_rtt, rttvar;
	/* smoothed share of TCP segments retransmitted, except those that arrived twice; of QUIC's
	 * parts of streams; of RDMA's datagrams that were gone back for */
	uint32_t loss_ppm;
	rwy_time at; /* time of the last acknowledgement; 0: none yet */
};

struct gw_carrier_info {
	enum wan_carrier wanted, sending;
	bool by_peer; /* the other end asked for `wanted` */
	/* Carrier of what is lost `detour_after` times, WAN_CARRIER_NATIVE: none; and whether there
	 * are connections for it. */
	enum wan_carrier detour;
	unsigned detour_after;
	bool detouring;
	unsigned connections;
	enum wan_carrier via;        /* of these connections */
	char congestion[16];         /* TCP's congestion control by the kernel's name */
	char problem[192];           /* reason why it does not send by `wanted`; "" */
	struct gw_carrier_path path; /* the path as the present connections measure it */
	struct gw_carrier_counters c;
	struct gw_quic_counters quic; /* of all tunnels that share its QUIC address and port */
	/*
	 * Counts of all tunnels. Connections that were refused or ended. strangers: from an address
	 * without a tunnel, or for no tunnel of this gateway; slow: named no tunnel in time; early:
	 * ended before that, by wrong TLS or a malformed record; rate: came too often from a peer's
	 * address; many: came while too many had named no tunnel.
	 */
	uint64_t strangers, slow, early, rate, many;
};

/* Starts the thread with the tunnels of app->conf, before the workers. RWY_EINVAL: a tunnel needs a
 * congestion control that the kernel lacks, or TCP on a port in use; logged. gw_carriers_stop must
 * be called in any case. */
RWY_MUST_CHECK int gw_carriers_start(struct gw_app *app, struct gw_pools *pools);
/* Call it after the workers have ended. */
void gw_carriers_stop(struct gw_app *app);
/* A tunnel was added (the workers have it), or is about to be removed (c is NULL). Errors as
 * gw_carriers_start; then the tunnel is there without that carrier, gw_carrier_info says why. */
RWY_MUST_CHECK int gw_carrier_tunnel(struct gw_app *app, unsigned tunnel, const struct conf_tunnel *c);

/* Moves a tunnel, in both directions, as soon as it has connections. Returns 0, or RWY_E* with one
 * sentence in `why`; then nothing changed. */
RWY_MUST_CHECK int gw_carrier_set(
    struct gw_app *app, unsigned tunnel, enum wan_carrier c, char *why, size_t size);
/* Whether it would: nothing changes. */
RWY_MUST_CHECK int gw_carrier_can(
    struct gw_app *app, unsigned tunnel, enum wan_carrier c, char *why, size_t size);
/* Changes what is lost so often goes by which carrier; WAN_CARRIER_NATIVE: none does. Errors as
 * before. */
RWY_MUST_CHECK int gw_carrier_detour(
    struct gw_app *app, unsigned tunnel, enum wan_carrier by, unsigned after, char *why, size_t size);
/*
 * Copies a tunnel's state; all 0 but the counts of all tunnels if it has no carrier beside the
 * native one.
 */
void gw_carrier_info(const struct gw_app *app, unsigned tunnel, struct gw_carrier_info *out);

/* An RDMA device of this machine has the address. */
bool gw_carrier_rdma_there(const struct rwy_ip *addr);

/* The certificates have changed: new connections use them; those whose peer is not valid by them
 * end. The caller has read the same files without an error. */
void gw_carrier_certs(struct gw_app *app, const struct conf_tunnel_keys *k);

/* --- the worker's end: called on its own thread ----------------------------------------------- */
struct gw_worker;
struct wan_tx;
/* Called before the engine's turn: processes received datagrams, the carrier in use, and the room.
 * Returns the amount of work. */
unsigned gw_carrier_turn(struct gw_worker *w);
/* Sends a datagram with wan_tx.stream set; ownership as in eng_ops.wan_tx. */
void gw_carrier_tx(struct gw_worker *w, unsigned tunnel, const struct wan_tx *tx);
/* Called at the end of a turn: wakes the carrier thread if there is work for it. */
void gw_carrier_flush(struct gw_worker *w);
/* Returns whether something was received, so that the worker must not sleep. */
bool gw_carrier_pending(const struct gw_worker *w);

#endif
