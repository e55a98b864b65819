/* SPDX-License-Identifier: Apache-2.0 */
/* The made-up gateway's tunnels: carriers, keys, and what the engines say of them. */
#include <stdio.h>
#include <string.h>

#include "gateway/carrier/carrier.h"
#include "gateway/control/tunnels_int.h"
#include "gateway/keys/keys.h"
#include "gateway/tls/cert.h"
#include "tests/component/api/gateway.h"

/* The carrier changes at once, unless the kernel lacks bbr. */
static enum wan_carrier carrier_now[CONF_TUNNELS_MAX];

int gw_carrier_tunnel(struct gw_app *app, unsigned tunnel, const struct conf_tunnel *c)
{
	carrier_now[tunnel] = c ? (enum wan_carrier)c->carrier : WAN_CARRIER_NATIVE;
	return 0;
}

int gw_carrier_can(struct gw_app *app, unsigned tunnel, enum wan_carrier c, char *why, size_t size)
{
	if (c == WAN_CARRIER_TCP && !strcmp(app->conf->tunnel[tunnel].tcp_cc, "bbr")) {
		snprintf(
		    why, size, "tcp_congestion_control `bbr` is not in this kernel; the kernel has: reno");
		return RWY_EINVAL;
	}
	return 0;
}

int gw_carrier_set(struct gw_app *app, unsigned tunnel, enum wan_carrier c, char *why, size_t size)
{
	const int rc = gw_carrier_can(app, tunnel, c, why, size);

	if (!rc)
		carrier_now[tunnel] = c;
	return rc;
}

static enum wan_carrier detour_now[CONF_TUNNELS_MAX];
static unsigned detour_after[CONF_TUNNELS_MAX];

int gw_carrier_detour(
    struct gw_app *app, unsigned tunnel, enum wan_carrier by, unsigned after, char *why, size_t size)
{
	detour_now[tunnel] = by;
	detour_after[tunnel] = after;
	return 0;
}

void gw_carrier_info(const struct gw_app *app, unsigned tunnel, struct gw_carrier_info *out)
{
	*out = (struct gw_carrier_info){.wanted = carrier_now[tunnel],
	    .detour = detour_now[tunnel],
	    .detour_after = detour_after[tunnel],
	    .detouring = detour_now[tunnel] != WAN_CARRIER_NATIVE,
	    .sending = carrier_now[tunnel],
	    .connections = carrier_now[tunnel] ? 4 : 0,
	    .via = carrier_now[tunnel],
	    .congestion = "cubic",
	    .c.fallbacks = 3};
}

int gw_keys_tunnel(struct gw_app *app, unsigned tunnel, const struct conf_tunnel *c)
{
	return 0;
}

int gw_keys_read(struct gw_cert **out, const struct conf *c, char *why, size_t size)
{
	*out = NULL;
	return 0;
}

void gw_keys_take(struct gw_app *app, const struct conf *c, struct gw_cert *cert)
{
}

void gw_cert_free(struct gw_cert *c)
{
}

void gw_keys_info(const struct gw_app *app, unsigned tunnel, struct gw_keys_info *out)
{
	const bool keys = app->conf->tunnel[tunnel].security == CONF_SEC_KEYS;

	*out = (struct gw_keys_info){.state = keys ? GW_KEYS_USED : GW_KEYS_OFF,
	    .since = keys ? FAKE_UPTIME / 2 : 0,
	    .peer_expires = keys ? 1900000000 : 0,
	    .crl_expires = 1900000001,
	    .c.exchanges = keys,
	    .all.strangers = 2};
	snprintf(
	    out->peer_name, sizeof(out->peer_name), "%s", conf_tunnel_peer_name(&app->conf->tunnel[tunnel]));
}

const char *gw_keys_state_name(enum gw_keys_state s)
{
	return s == GW_KEYS_OFF ? "none" : "used";
}

/* Workers accept every tunnel, and release it at once. */
int gw_tunnel_build(struct gw_app *app, unsigned worker, const struct conf *c, unsigned i)
{
	return (int)worker == fake_gateway.stuck ? RWY_EAGAIN : 0;
}

int gw_tunnels_set(struct gw_app *app, unsigned worker, const struct conf *c)
{
	return 0;
}

int gw_tunnels_detach(struct gw_app *app, unsigned worker, uint64_t set, uint64_t *gone)
{
	*gone = set;
	return 0;
}

void eng_tunnel_stats(const struct eng *e, unsigned tunnel, struct wan_stats *out)
{
	memset(out, 0, sizeof(*out));
	out->up = !fake_gateway.down && tunnel != 1;
	out->since = fake_gateway.app.start + FAKE_UPTIME - (out->up ? 7200 : 190 - e->worker) * RWY_SEC;
	out->c.tx_bytes = UINT64_C(123456789012);
	out->c.lost = 42;
	out->detour_proven = detour_now[tunnel] != WAN_CARRIER_NATIVE;
	out->c.retransmit_detour = 22;
	out->srtt = out->up ? 20 * RWY_MS + 123456 : 0;
	out->min_rtt = out->up ? 20 * RWY_MS : RWY_NEVER;
	out->rate_Bps = 1187500000;
	out->inflight = 20 << 20;
	out->loss_ppm = 120;
	out->tx_flows = out->rx_flows = 5000;
	if (out->up)
		out->congest = (struct wan_congest_state){
		    .by = WAN_CONGEST_LOSS, .since = RWY_SEC, .loss_ppm = 52000, .begins = 1};
	snprintf(out->cc, sizeof(out->cc), "auto: steady");
}

bool eng_path_stats(const struct eng *e, unsigned tunnel, unsigned path, struct wan_path_stats *out)
{
	const struct conf_tunnel *t = &fake_gateway.conf->tunnel[tunnel];

	if (path > t->paths)
		return false;
	*out = (struct wan_path_stats){.state = path ? "silent" : "usable",
	    .srtt = 20 * RWY_MS,
	    .rate_Bps = 1000000,
	    .loss_ppm = 100 * path,
	    .silences = path,
	    .tx_bytes = 1000,
	    .moved = 7 * path};
	return true;
}
