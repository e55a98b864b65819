/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the tunnels and tenants of both sides, and numbers the tunnels. tunnels.c applies a
 * change. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/control/tunnels_int.h"

static int err_merge(struct conf_error *err, int rc, const char *text)
{
	*err = (struct conf_error){0};
	snprintf(err->msg, sizeof(err->msg), "%s", text);
	return rc;
}

/* The least IP packet that a path of t takes, without IP and UDP headers. */
static uint32_t least_datagram(const struct conf *c, const struct conf_tunnel *t)
{
	uint32_t least = UINT32_MAX;

	for (unsigned k = 0; k <= t->paths; k++) {
		const struct conf_path p = conf_tunnel_path(t, k);
		const uint32_t is = c->port[p.port_idx].mtu - (rwy_ip_is4(&p.local) ? 20 : 40);

		least = is < least ? is : least;
	}
	return least;
}

static bool same_paths(const struct conf_tunnel *a, const struct conf_tunnel *b)
{
	if (a->paths != b->paths || a->own_path != b->own_path || a->path_probe != b->path_probe)
		return false;
	for (unsigned i = 0; i < a->paths; i++) {
		const struct conf_path *p = &a->path[i], *q = &b->path[i];

		if (strcmp(p->port, q->port) != 0 || !rwy_ip_eq(&p->local, &q->local) ||
		    !rwy_ip_eq(&p->remote, &q->remote) || p->udp_port != q->udp_port ||
		    p->source_port != q->source_port || p->rate_Bps != q->rate_Bps || p->dscp != q->dscp ||
		    p->use != q->use || strcmp(p->label, q->label) != 0)
			return false;
	}
	return true;
}

bool gw_tunnel_same_ends(const struct conf *c, const struct conf_tunnel *a, const struct conf_tunnel *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->peer, b->peer) && !strcmp(a->port, b->port) &&
	       rwy_ip_eq(&a->local, &b->local) && rwy_ip_eq(&a->remote, &b->remote) &&
	       a->udp_port == b->udp_port && a->security == b->security && a->fec == b->fec &&
	       a->ecn == b->ecn && !strcmp(a->cc, b->cc) && a->tcp_port == b->tcp_port &&
	       a->tcp_connections == b->tcp_connections && !strcmp(a->tcp_cc, b->tcp_cc) &&
	       a->quic_port == b->quic_port && a->rdma_port == b->rdma_port &&
	       a->rdma_buffers == b->rdma_buffers && a->keys_port == b->keys_port &&
	       !strcmp(a->peer_name, b->peer_name) && a->standby == b->standby &&
	       a->standby_beat == b->standby_beat && a->standby_wait == b->standby_wait &&
	       rwy_ip_eq(&a->tcp_local, &b->tcp_local) && rwy_ip_eq(&a->tcp_remote, &b->tcp_remote) &&
	       rwy_ip_eq(&a->rdma_local, &b->rdma_local) && rwy_ip_eq(&a->rdma_remote, &b->rdma_remote) &&
	       least_datagram(c, b) >= least_datagram(c, a);
}

static bool same_prefixes(const struct conf_tunnel *a, const struct conf_tunnel *b)
{
	if (a->prefixes != b->prefixes)
		return false;
	for (unsigned i = 0; i < a->prefixes; i++)
		if (a->prefix[i].len != b->prefix[i].len ||
		    !rwy_ip_eq(&a->prefix[i].addr, &b->prefix[i].addr))
			return false;
	return true;
}

bool gw_tunnel_same(const struct conf *c, const struct conf_tunnel *a, const struct conf_tunnel *b)
{
	return gw_tunnel_same_ends(c, a, b) && same_prefixes(a, b) && same_paths(a, b) &&
	       a->rate_Bps == b->rate_Bps && a->weight == b->weight && a->carrier == b->carrier &&
	       a->detour == b->detour && a->detour_after == b->detour_after &&
	       !memcmp(&a->dscp, &b->dscp, sizeof(a->dscp)) &&
	       !memcmp(&a->dscp_congested, &b->dscp_congested, sizeof(a->dscp)) &&
	       wan_congest_cfg_same(&a->congest, &b->congest);
}

/* --- tunnels --------------------------------------------------------------------------------- */

/* Appends the running tunnels of a side to those of c; map: number to index. */
static int add_tunnels(struct gw_app *app, struct conf *c, enum gw_side side, uint8_t map[CONF_TUNNELS_MAX],
    struct conf_error *err)
{
	const struct conf *now = app->conf;

	for (unsigned i = 0; i < now->tunnels; i++) {
		if (!*now->tunnel[i].name || gw_tunnel_side(app, i) != side)
			continue;
		if (c->tunnels == CONF_TUNNELS_MAX)
			return err_merge(
			    err, RWY_EINVAL, "expected at most 64 tunnels, with those of the control center");
		map[i] = (uint8_t)c->tunnels;
		c->tunnel[c->tunnels++] = now->tunnel[i];
	}
	return 0;
}

/* --- tenants --------------------------------------------------------------------------------- */

/* Turns tunnel numbers into indices in c. */
static void places_renumber(struct conf_tenant *t, const uint8_t map[CONF_TUNNELS_MAX])
{
	/* its own copy */
	struct tenant_prefix *p = (struct tenant_prefix *)(uintptr_t)t->cfg.prefix;

	for (unsigned i = 0; i < t->cfg.prefixes; i++)
		if (p[i].at.side == TENANT_TUNNEL)
			p[i].at.tunnel = map[p[i].at.tunnel];
}

struct side_of {
	const struct gw_app *app;
	enum gw_side side;
};

static bool is_of_side(const void *ctx, const char *tenant)
{
	const struct side_of *s = ctx;

	return gw_tenant_side(s->app, tenant) == s->side;
}

/* Appends the running tenants of a side to those of c. */
static int add_tenants(struct gw_app *app, struct conf *c, enum gw_side side,
    const uint8_t map[CONF_TUNNELS_MAX], struct conf_error *err)
{
	unsigned i = c->tenants;

	if (gw_tenants_append(app, is_of_side, &(struct side_of){app, side}, c) != 0)
		return err_merge(err, RWY_ENOMEM, "out of memory");
	for (; i < c->tenants; i++)
		places_renumber(&c->tenant[i], map);
	return 0;
}

int gw_tunnels_merge(
    struct gw_app *app, struct conf *c, enum gw_side side, uint64_t *own, struct conf_error *err)
{
	const enum gw_side other = side == GW_SIDE_OWN ? GW_SIDE_CONTROLLER : GW_SIDE_OWN;
	uint8_t map[CONF_TUNNELS_MAX] = {0};
	unsigned owns = c->tunnels, n = 0;
	int rc = 0;

	if (side == GW_SIDE_OWN) {
		rc = add_tunnels(app, c, other, map, err);
	} else { /* conf_network_parse() had them */
		for (unsigned i = 0; i < app->conf->tunnels; i++)
			if (*app->conf->tunnel[i].name && gw_tunnel_side(app, i) == GW_SIDE_OWN)
				map[i] = (uint8_t)n++;
		owns = n;
	}
	*own = owns < 64 ? ((uint64_t)1 << owns) - 1 : UINT64_MAX;
	return rc ? rc : add_tenants(app, c, other, map, err);
}

/* --- numbers --------------------------------------------------------------------------------- */

static int number_for(const struct gw_app *app, const struct conf_tunnel *t, uint64_t taken)
{
	const struct conf *now = app->conf;
	const uint64_t removing = atomic_load(&app->tunnels->removing);

	for (unsigned i = 0; i < now->tunnels; i++)
		if (*now->tunnel[i].name && gw_tunnel_same_ends(now, &now->tunnel[i], t))
			return (int)i;
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		if (!(taken >> i & 1) && !(removing >> i & 1) && (i >= now->tunnels || !*now->tunnel[i].name))
			return (int)i;
	return -1;
}

int gw_tunnels_number(struct gw_app *app, struct conf *c, uint64_t *own, struct conf_error *err)
{
	struct conf_tunnel *to = calloc(CONF_TUNNELS_MAX, sizeof(*to));
	uint8_t map[CONF_TUNNELS_MAX] = {0};
	uint64_t taken = 0, owns = 0;
	unsigned top = 0;

	if (!to)
		return err_merge(err, RWY_ENOMEM, "out of memory");
	for (unsigned i = 0; i < c->tunnels; i++) {
		const int at = number_for(app, &c->tunnel[i], taken);

		if (at < 0) {
			free(to);
			return err_merge(err, RWY_EAGAIN,
			    "too many tunnels, with those that are being removed: try again");
		}
		to[at] = c->tunnel[i];
		map[i] = (uint8_t)at;
		taken |= (uint64_t)1 << at;
		owns |= (*own >> i & 1) << at;
		top = (unsigned)at + 1 > top ? (unsigned)at + 1 : top;
	}
	memcpy(c->tunnel, to, CONF_TUNNELS_MAX * sizeof(*to));
	c->tunnels = top;
	*own = owns;
	for (unsigned i = 0; i < c->tenants; i++)
		places_renumber(&c->tenant[i], map);
	free(to);
	return 0;
}
