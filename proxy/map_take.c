/* SPDX-License-Identifier: Apache-2.0 */
/* Links of another relay's table (mirror.h). */
#include "proxy/map_int.h"

bool proxy_map_full(const struct proxy_map *m)
{
	return !m->list[PROXY_L_FREE].n;
}

static void make_way(struct proxy_map *m, struct proxy_link *other)
{
	if (other)
		proxy_map_remove(m, other);
}

/* It stays in its place among the links of its queue pair, of which the newest is found first. */
static struct proxy_link *change(
    struct proxy_map *m, struct proxy_link *is, const struct proxy_link *l, rwy_time now)
{
	if (l->lqpn)
		proxy_map_local_qpn(m, is, l->lqpn);
	if (l->alias && !is->alias) {
		make_way(m, proxy_map_in(m, &l->relay, l->alias));
		is->alias = l->alias;
		proxy_map_hash_in(m, is);
	}
	is->rqpn = l->rqpn;
	is->comm_b = l->comm_b;
	is->once = l->once;
	proxy_map_state(m, is, (enum proxy_state)l->state, now);
	return is;
}

struct proxy_link *proxy_map_take(
    struct proxy_map *m, struct proxy_link *is, const struct proxy_link *l, rwy_time now)
{
	const struct proxy_cm_key in = {l->local, l->relay, l->comm_a, l->local_active},
	                          out = {l->remote, l->local, l->comm_a, l->local_active};

	if (is && (!is->alias || is->alias == l->alias))
		return change(m, is, l, now);
	make_way(m, is);
	if (l->alias)
		make_way(m, proxy_map_in(m, &l->relay, l->alias));
	if (!l->pair) {
		make_way(m, proxy_map_cm_in(m, &in));
		make_way(m, proxy_map_cm_out(m, &out));
	}
	if (proxy_map_full(m))
		make_way(m, m->list[PROXY_L_CLOSED].n ? &m->l[m->list[PROXY_L_CLOSED].head] : NULL);
	if (proxy_map_full(m))
		return NULL;
	return proxy_map_put(m, m->list[PROXY_L_FREE].head, l, (enum proxy_state)l->state, now);
}
