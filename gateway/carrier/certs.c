/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates of connections, at the start and when they change. */
#include <stdio.h>
#include <string.h>

#include "gateway/carrier/internal.h"

int gw_carriers_certs_read(struct gw_carriers *cs, const struct conf_tunnel_keys *k)
{
	const struct gw_cert_files f = {k->certificate, k->key, k->ca, k->crl};
	char why[256];
	int rc;

	cs->alg = k->alg;
	cs->rekey = k->rekey;
	if (!k->certificate[0])
		return 0;
	rc = gw_quic_tls_new(&cs->tls, &f, why, sizeof(why));
	if (rc)
		gw_log(GW_LOG_ERROR, "keys", "%s", why);
	return rc;
}

static bool still(struct gw_carriers *cs, const struct gw_conn *c)
{
	const char *name = conf_tunnel_peer_name(&c->t->conf);

	if (c->tls)
		return gw_conn_tls_still(cs, c, name);
	return !c->quic ||
	       gw_quic_peer_verify(c->quic, gw_quic_tls_cert(cs->tls), name, cs->why, sizeof(cs->why));
}

/* Ends connections whose peer's certificate is not valid any more. */
static void check_all(struct gw_carriers *cs, rwy_time now)
{
	for (unsigned i = 0; i < cs->top; i++) {
		struct gw_conn *c = &cs->conn[i];

		if ((c->state == GW_CONN_OPEN || c->state == GW_CONN_HELLO) && c->t && !still(cs, c))
			cs->conn_ops->lost(cs, c, cs->why, now);
	}
}

void gw_carrier_certs(struct gw_app *app, const struct conf_tunnel_keys *k)
{
	struct gw_carriers *cs = app->carriers;
	struct gw_quic_tls *old;

	if (!cs)
		return;
	gw_carriers_lock(cs);
	old = cs->tls;
	cs->tls = NULL;
	if (gw_carriers_certs_read(cs, k) != 0 || !cs->tls) {
		cs->tls = old; /* the caller has read the same files: rare */
		old = NULL;
	}
	for (unsigned i = 0; old && i < CONF_TUNNELS_MAX; i++)
		if (cs->quic[i].fd >= 0)
			gw_quic_end_tls(cs->quic[i].end, cs->tls);
	gw_quic_tls_free(old);
	if (cs->tls)
		check_all(cs, gw_now());
	pthread_mutex_unlock(&cs->lock);
	gw_carriers_wake(cs);
}
