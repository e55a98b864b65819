/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of one host of a capture with one other host, played on a LAN: rp_host for each,
 * the raw socket, the clock. One thread.
 */
#ifndef TOOLS_REPLAY_LIVE_LIVE_H
#define TOOLS_REPLAY_LIVE_LIVE_H

#include <signal.h>

#include "tools/replay/host.h"
#include "tools/replay/live/cm.h"
#include "tools/replay/live/pair.h"
#include "tools/replay/live/raw.h"

/* Fields of the packets that it sends. */
#define RP_LIVE_SPORT 0xc000u
#define RP_LIVE_PKEY  0xffffu
#define RP_LIVE_TTL   64

struct rp_live_cfg {
	const struct rp_schedule *schedule;
	struct rwy_ip as, with; /* in the capture: the host that is played, and its peer */
	struct rwy_ip to;       /* the peer on the LAN */
	double speed;
	rwy_dur patience;                  /* a message of the peer is waited for so long */
	rwy_dur stall;                     /* the run ends when nothing moved for so long */
	const volatile sig_atomic_t *stop; /* it ends, too, when this is set */
	/* Called about once a second; NULL: not. */
	void (*progress)(uint64_t done, uint64_t all);
};

struct rp_live_conn {
	const struct rp_conn *conn;
	unsigned side; /* that is played */
	struct rp_host host;
};

struct rp_live {
	struct rp_live_cfg cfg;
	struct rp_lan *lan;
	struct rp_pair *pair;
	struct rp_live_conn *conn;
	struct rp_end *mine;
	uint32_t conns, qpn; /* qpn: of the first; the others follow */
	rwy_time *next;
	struct rp_live_cm *cm; /* of each connection */
	uint32_t cms;          /* connections that CM sets up */
	uint64_t cm_differ;    /* CM messages that came otherwise than the capture has them */
	uint64_t unknown, bad; /* packets of other queue pairs; without a good ICRC */
	rwy_time began, ended;
	bool stalled, stopped, alone; /* alone: the other side went before it had all */
};

/*
 * Chooses the connections of `as` with `with`, their queue pair numbers and PSNs. lan is open, pair
 * too; both must outlive *out. 0, or -1 and *err: there are none, or the packets do not fit the
 * interface.
 */
int rp_live_new(struct rp_live **out, const struct rp_live_cfg *cfg, struct rp_lan *lan, struct rp_pair *pair,
    struct rp_error *err);
/* Agrees with the other side and plays. 0, or -1 and *err: it did not begin. */
int rp_live_run(struct rp_live *l, struct rp_error *err);
void rp_live_free(struct rp_live *l); /* NULL allowed */

#endif
