/* SPDX-License-Identifier: Apache-2.0 */
/* The reliable carrier of wan_pipe.h. */
#include "tests/lib/wan_pipe.h"

#include <stdlib.h>
#include <string.h>

void wan_pipe_init(struct wan_pipe *p, const struct wan_pipe_cfg *cfg, uint64_t seed)
{
	memset(p, 0, sizeof(*p));
	p->cfg = *cfg;
	p->rng = seed;
	p->left = cfg->run;
}

void wan_pipe_break(struct wan_pipe *p)
{
	for (unsigned c = 0; c < WAN_PIPE_CONNS; c++) {
		for (; p->n[c]; p->n[c]--, p->head[c]++, p->dropped++)
			free(p->q[c][p->head[c] & (p->cap[c] - 1)]);
		p->busy[c] = 0;
	}
}

void wan_pipe_fini(struct wan_pipe *p)
{
	wan_pipe_break(p);
	for (unsigned c = 0; c < WAN_PIPE_CONNS; c++)
		free(p->q[c]);
}

static void pipe_push(struct wan_pipe *p, unsigned c, struct wan_link_pkt *k)
{
	if (p->n[c] == p->cap[c]) {
		uint32_t cap = p->cap[c] ? 2 * p->cap[c] : 64;
		struct wan_link_pkt **v = malloc(cap * sizeof(struct wan_link_pkt *));

		if (!v)
			abort();
		for (uint32_t i = 0; i < p->n[c]; i++)
			v[i] = p->q[c][(p->head[c] + i) & (p->cap[c] - 1)];
		free(p->q[c]);
		p->q[c] = v;
		p->cap[c] = cap;
		p->head[c] = 0;
	}
	p->q[c][(p->head[c] + p->n[c]++) & (p->cap[c] - 1)] = k;
}

/* The bytes that have not left yet. */
static uint64_t waiting(const struct wan_pipe *p, uint32_t *datagrams, rwy_time now)
{
	uint64_t bytes = 0;

	*datagrams = 0;
	for (unsigned c = 0; c < p->cfg.conns; c++)
		for (uint32_t i = p->n[c]; i-- > 0;) {
			const struct wan_link_pkt *k = p->q[c][(p->head[c] + i) & (p->cap[c] - 1)];

			if (k->at - p->cfg.delay <= now)
				break;
			bytes += k->len;
			++*datagrams;
		}
	return bytes;
}

uint64_t wan_pipe_room(const struct wan_pipe *p, uint32_t *datagrams, rwy_time now)
{
	uint64_t bytes = waiting(p, datagrams, now);

	*datagrams = *datagrams < p->cfg.room_n ? p->cfg.room_n - *datagrams : 0;
	return bytes < p->cfg.room ? p->cfg.room - bytes : 0;
}

void wan_pipe_send(
    struct wan_pipe *p, const void *hdr, size_t hdr_len, const void *payload, size_t len, rwy_time now)
{
	struct wan_link_pkt *k = malloc(sizeof(*k) + hdr_len + len);
	unsigned c = p->at;
	uint32_t n;

	if (!k)
		abort();
	wan_pipe_room(p, &n, now);
	p->overrun += !n;
	if (p->dead) {
		p->sent++;
		p->dropped++;
		free(k);
		return;
	}
	*k = (struct wan_link_pkt){.order = p->sent++, .len = (uint32_t)(hdr_len + len)};
	memcpy(k->data, hdr, hdr_len);
	if (len)
		memcpy(k->data + hdr_len, payload, len);
	p->busy[c] = rwy_time_max(p->busy[c], now) + k->len * RWY_SEC / p->cfg.rate_Bps;
	if (wan_rng_ppm(&p->rng, p->cfg.stall_ppm))
		p->busy[c] += p->cfg.stall;
	k->at = p->busy[c] + p->cfg.delay;
	pipe_push(p, c, k);
	if (--p->left)
		return;
	p->left = p->cfg.run;
	p->at = wan_rng_below(&p->rng, p->cfg.conns);
}

struct wan_link_pkt *wan_pipe_recv(struct wan_pipe *p, rwy_time now)
{
	for (unsigned c = 0; c < p->cfg.conns; c++) {
		struct wan_link_pkt *k = p->n[c] ? p->q[c][p->head[c] & (p->cap[c] - 1)] : NULL;

		if (!k || k->at > now)
			continue;
		p->head[c]++;
		p->n[c]--;
		p->delivered++;
		return k;
	}
	return NULL;
}

rwy_time wan_pipe_next(const struct wan_pipe *p, rwy_time now)
{
	rwy_time next = RWY_NEVER;
	uint32_t waits;

	for (unsigned c = 0; c < p->cfg.conns; c++)
		if (p->n[c])
			next = rwy_time_min(next, p->q[c][p->head[c] & (p->cap[c] - 1)]->at);
	waiting(p, &waits, now);
	if (waits) /* there will be room */
		next = rwy_time_min(next, now + 100 * RWY_US);
	return next;
}
