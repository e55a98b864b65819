/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows with a tunnel of their own, in engines' words, and their publication to workers
 * (tunnels.h).
 */
#include <stdlib.h>

#include "gateway/control/tunnels.h"
#include "gateway/publish.h"

static void assignment_put(
    struct eng_steer_cfg *v, unsigned *n, const struct gw_assignment *a, unsigned tunnel, bool turned)
{
	const uint32_t dqpn = turned ? a->src_qpn : a->dst_qpn;

	/* By QPs: a direction whose QP is not named is anybody's. */
	if (!dqpn && (a->src_qpn || a->dst_qpn))
		return;
	v[(*n)++] = (struct eng_steer_cfg){.src = turned ? a->dst : a->src,
	    .dst = turned ? a->src : a->dst,
	    .vni = a->vni,
	    .dqpn = dqpn,
	    .tunnel = (uint8_t)tunnel};
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

int gw_assign(struct gw_app *app, const struct gw_assignment *v, unsigned n)
{
	struct eng_steer_cfg *c = malloc((2 * (size_t)n + 1) * sizeof(*c));
	unsigned count = 0;
	int rc;

	if (!c)
		return RWY_ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		const int at = *v[i].tunnel ? gw_tunnel_find(app, v[i].tunnel) : -1;
		const unsigned tunnel = at < 0 ? ENG_STEER_ANY : (unsigned)at;

		assignment_put(c, &count, &v[i], tunnel, false);
		assignment_put(c, &count, &v[i], tunnel, true);
	}
	rc = steering_publish(app, c, count);
	free(c);
	return rc;
}
