/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows with a tunnel of their own, and with a rate of their own (reservations.h), in engines'
 * words, and their publication to workers (tunnels.h).
 */
#include <stdlib.h>
#include <string.h>

#include "gateway/control/reservations.h"
#include "gateway/control/tunnels.h"
#include "gateway/publish.h"

static struct gw_reservation reservation_of(const struct gw_assignment *a)
{
	struct gw_reservation r = {.vni = a->vni,
	    .src = a->src,
	    .dst = a->dst,
	    .src_qpn = a->src_qpn,
	    .dst_qpn = a->dst_qpn,
	    .rate_bps = a->rate_bps,
	    .priority = a->priority,
	    .has_dscp = a->has_dscp,
	    .dscp = a->dscp};

	memcpy(r.job, a->job, sizeof(r.job));
	memcpy(r.tunnel, a->tunnel, sizeof(r.tunnel));
	return r;
}

/*
 * The plan's rate is a reservation: as much is guaranteed, and no more is sent. Where workers steer
 * by queue pair those of one address pair may be at any of them, and each worker has an equal part.
 */
static struct wan_class_cfg share_of(const struct gw_app *app, const struct gw_reservation *r)
{
	const unsigned parts = app->directory && !r->src_qpn && !r->dst_qpn ? app->workers : 1;
	const uint64_t part = r->rate_bps / 8 / parts, Bps = part < WAN_RATE_MIN ? WAN_RATE_MIN : part;

	return (struct wan_class_cfg){.guarantee_Bps = Bps,
	    .limit_Bps = Bps,
	    .weight = 1,
	    .priority = r->priority,
	    .has_dscp = r->has_dscp,
	    .dscp = r->dscp};
}

static void assignment_put(const struct gw_app *app, struct eng_steer_cfg *v, unsigned *n,
    const struct gw_assignment *a, unsigned tunnel, const struct gw_reservation *r, bool turned)
{
	const uint32_t dqpn = turned ? a->src_qpn : a->dst_qpn;

	/* By QPs: a direction whose QP is not named is anybody's. */
	if (!dqpn && (a->src_qpn || a->dst_qpn))
		return;
	v[*n] = (struct eng_steer_cfg){.src = turned ? a->dst : a->src,
	    .dst = turned ? a->src : a->dst,
	    .vni = a->vni,
	    .dqpn = dqpn,
	    .tunnel = (uint8_t)tunnel};
	if (r && r->number) {
		v[*n].reservation = r->number;
		v[*n].share = share_of(app, r);
	}
	(*n)++;
}

static void steering_free(void *steering)
{
	eng_steering_free(steering);
}

static int steering_publish(struct gw_app *app, const struct eng_steer_cfg *v, unsigned n)
{
	struct eng_steering *s;
	uint64_t token;
	int rc = eng_steering_new(&s, v, n);

	if (rc)
		return rc;
	token = gw_publish(app->publisher, GW_STEERING, s, steering_free);
	if (!token) {
		eng_steering_free(s);
		return RWY_ENOMEM;
	}
	/* A worker that is late takes them up with its next turn. */
	(void)gw_publish_wait(app->publisher, token, GW_TAKE_UP_WAIT);
	return 0;
}

/* Numbers the reservations among the assignments; *r is the caller's to free. Returns how many. */
static int reserve(struct gw_app *app, struct gw_reservation **r, const struct gw_assignment *v, unsigned n)
{
	unsigned count = 0;

	*r = malloc((n + 1) * sizeof(**r));
	if (!*r)
		return RWY_ENOMEM;
	for (unsigned i = 0; i < n; i++)
		if (v[i].rate_bps && *v[i].tunnel)
			(*r)[count++] = reservation_of(&v[i]);
	return gw_reservations_set(app, *r, count);
}

int gw_assign(struct gw_app *app, const struct gw_assignment *v, unsigned n)
{
	struct eng_steer_cfg *c = malloc((2 * (size_t)n + 1) * sizeof(*c));
	struct gw_reservation *r = NULL;
	unsigned count = 0;
	int rc = c ? reserve(app, &r, v, n) : RWY_ENOMEM;
	const unsigned reserved = rc > 0 ? (unsigned)rc : 0;

	for (unsigned i = 0; rc >= 0 && i < n; i++) {
		const int at = *v[i].tunnel ? gw_tunnel_find(app, v[i].tunnel) : -1;
		const unsigned tunnel = at < 0 ? ENG_STEER_ANY : (unsigned)at;
		const struct gw_reservation key = reservation_of(&v[i]);
		const struct gw_reservation *own = gw_reservation_find(r, reserved, &key);

		assignment_put(app, c, &count, &v[i], tunnel, own, false);
		assignment_put(app, c, &count, &v[i], tunnel, own, true);
	}
	if (rc >= 0)
		rc = steering_publish(app, c, count);
	free(c);
	free(r);
	return rc;
}
