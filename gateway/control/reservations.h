/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations: the rates that a job's plan gives to address pairs or queue pairs, as classes of
 * the tunnels' schedulers (engine/reservation.h). This file gives each a number that it keeps as
 * long as documents name it, and tells what each one has sent. Which flows use it is assignments.c.
 *
 * A queue pair belongs to one worker, and so does an address pair, unless workers steer by queue
 * pair: then each worker has an equal part of the pair's reservation. It cannot exceed what a
 * worker may send: with a configured rate, the tunnel's divided by the workers.
 */
#ifndef GATEWAY_CONTROL_RESERVATIONS_H
#define GATEWAY_CONTROL_RESERVATIONS_H

#include "engine/steering.h"
#include "gateway/app.h"

RWY_MUST_CHECK int gw_reservations_new(struct gw_app *app); /* RWY_ENOMEM */
void gw_reservations_free(struct gw_app *app);

struct gw_reservation {
	uint32_t vni, src_qpn, dst_qpn; /* qpn 0: any */
	struct rwy_ip src, dst;         /* src: the local host */
	uint64_t rate_bps;              /* on the WAN, guaranteed and not exceeded; 0: none */
	uint8_t priority;               /* below WAN_PRIORITIES */
	bool has_dscp;                  /* of its datagrams; else as tenant and tunnel say */
	uint8_t dscp;
	uint16_t number; /* 0: it has none */
	char job[CONF_NAME], tunnel[CONF_NAME];
};
/*
 * The present reservations, instead of those before; v is sorted and gets their numbers. Entries of
 * one pair become one, with the sum of their rates, the highest priority and the DSCP of the entry
 * with the highest priority that names one (of equals, the highest DSCP). Returns the number of
 * entries that remain in front of v, or RWY_ENOMEM: those before stay. Beyond ENG_RESERVATIONS_MAX,
 * entries have no number. Under gw_change_lock.
 */
RWY_MUST_CHECK int gw_reservations_set(struct gw_app *app, struct gw_reservation *v, unsigned n);
/* The entry of a pair among n sorted ones; NULL: none. */
const struct gw_reservation *gw_reservation_find(
    const struct gw_reservation *v, unsigned n, const struct gw_reservation *key);

struct gw_reservation_info {
	struct gw_reservation r;
	/* bytes on the WAN, with those of earlier owners of the number: only differences tell */
	uint64_t sent, sent_guaranteed;
	bool waiting, limited; /* data waits; only the rate stops it */
};
/* Copies all; the caller frees *out. Returns their number, 0 without memory. Any thread except a
 * worker's. */
unsigned gw_reservations_get(struct gw_app *app, struct gw_reservation_info **out);

#endif
