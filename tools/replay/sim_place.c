/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the capture's hosts between two sites, so that connections cross the WAN. */
#include <stdlib.h>

#include "tools/replay/sim_int.h"

static bool is_at(const struct rp_sim *sim, unsigned site, const struct rwy_ip *ip)
{
	for (uint32_t i = 0; i < sim->addrs[site]; i++)
		if (rwy_ip_eq(&sim->addr[site][i], ip))
			return true;
	return false;
}

static int put(struct rp_sim *sim, unsigned site, const struct rwy_ip *ip)
{
	if (is_at(sim, site, ip))
		return 0;
	if (sim->addrs[site] == ENG_PREFIXES_MAX)
		return RWY_EINVAL;
	sim->addr[site][sim->addrs[site]++] = *ip;
	return 0;
}

/* The site of a host: where it is, or else opposite to the one it talks with. */
static unsigned site_of(const struct rp_sim *sim, const struct rp_conn *c, unsigned side)
{
	const struct rwy_ip *mine = &c->side[side].ip, *other = &c->side[!side].ip;

	if (sim->cfg.near)
		return !rwy_ip_eq(mine, sim->cfg.near);
	if (is_at(sim, 0, mine) || is_at(sim, 1, mine))
		return is_at(sim, 1, mine);
	return is_at(sim, 0, other) || is_at(sim, 1, other) ? is_at(sim, 0, other) : side;
}

static bool is_same(const struct rp_side *a, const struct rp_side *b)
{
	return a->qpn == b->qpn && rwy_ip_eq(&a->ip, &b->ip);
}

/* The sites have no VNIs: a packet to an address and queue pair is for one host only. */
static bool has_same_qp(const struct rp_sim *sim, uint32_t conn)
{
	const struct rp_conn *c = &sim->s->conn[conn];

	for (uint32_t i = 0; i < conn; i++) {
		const struct rp_conn *o = sim->conn[i].conn;

		if (o->vni == c->vni || sim->conn[i].same_qp)
			continue;
		for (unsigned j = 0; j < 4; j++)
			if (is_same(&c->side[j / 2], &o->side[j % 2]))
				return true;
	}
	return false;
}

static bool has_tenants(const struct rp_sim *sim)
{
	for (uint32_t i = 1; i < sim->s->conns; i++)
		if (sim->s->conn[i].vni != sim->s->conn[0].vni)
			return true;
	return false;
}

int rp_sim_place(struct rp_sim *sim)
{
	const bool tenants = has_tenants(sim);
	uint32_t crossing = 0;

	for (unsigned i = 0; i < 2; i++)
		sim->addr[i] = calloc(ENG_PREFIXES_MAX, sizeof(*sim->addr[i]));
	if (!sim->addr[0] || !sim->addr[1])
		return RWY_ENOMEM;
	for (uint32_t i = 0; i < sim->s->conns; i++) {
		struct rp_sim_conn *k = &sim->conn[i];
		int rc = 0;

		k->conn = &sim->s->conn[i];
		k->same_qp = tenants && has_same_qp(sim, i);
		if (k->same_qp) {
			sim->same_qps++;
			continue;
		}
		for (unsigned j = 0; j < 2 && !rc; j++) {
			k->site[j] = (uint8_t)site_of(sim, k->conn, j);
			rc = put(sim, k->site[j], &k->conn->side[j].ip);
		}
		if (rc)
			return rc;
		crossing += k->site[0] != k->site[1];
	}
	sim->left_out = sim->s->conns - crossing;
	return crossing ? 0 : RWY_EINVAL;
}
