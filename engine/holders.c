/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for operators: a worker's by kind, and that of its local hosts. */
#include "engine/eng.h"

static void add_tunnels(const struct eng *e, struct eng_memory *out)
{
	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		struct wan_stats st;

		if (!e->tunnel[i].wan)
			continue;
		wan_get_stats(e->tunnel[i].wan, &st);
		out->reassembly += st.rx_waiting;
		out->fec += st.fec_bufs;
		out->dgrams += st.dgram_bufs;
		out->order += st.order_bufs;
		out->cm += e->tunnel[i].mgmt ? wan_tx_queued(e->tunnel[i].mgmt) : 0;
		out->cm += e->tunnel[i].peer.tx ? wan_tx_queued(e->tunnel[i].peer.tx) : 0;
		out->kind[ENG_MEM_RECEIVED].max += e->cfg.tunnel[i].wan.rx_bytes;
	}
}

void eng_memory(const struct eng *e, struct eng_memory *out)
{
	*out = (struct eng_memory){.held = e->mem.held,
	    .most = e->mem.most,
	    .max = e->cfg.memory_total,
	    .soft = e->cfg.custody_total,
	    .reserved = e->reserved,
	    .buf_cost = e->cfg.buf_cost,
	    .hosts = e->hosts_n,
	    .waiting = e->waiting_n};
	for (unsigned k = 0; k < ENG_MEM_N; k++) {
		out->kind[k].bytes = e->mem.kind[k];
		out->kind[k].bufs = e->mem_bufs[k];
	}
	out->kind[ENG_MEM_UNPAIRED].max = e->cfg.unpaired_total;
	out->kind[ENG_MEM_ANSWERS].max = e->cfg.read_cache_total;
	add_tunnels(e, out);
}

static bool holds_something(const struct eng_host *h)
{
	uint64_t sum = h->mem.most;

	for (unsigned k = 0; k < ENG_MEM_N; k++)
		sum |= h->mem.kind[k];
	return sum;
}

static void fill_host(struct eng_memory_host *o, const struct eng_host *h)
{
	*o = (struct eng_memory_host){.addr = h->addr,
	    .held = h->mem.held,
	    .most = h->mem.most,
	    .sides = h->refs,
	    .half_open = h->half_open};
	memcpy(o->kind, h->mem.kind, sizeof(o->kind));
	o->tenant = h->index;
}

/*
 * The cursor: bucket, and above it how many of its hosts were seen. Hosts that come or go meanwhile
 * may be missing or come twice.
 */
#define BUCKETS   256u
#define LOOK_MOST 4096u /* hosts looked at in one call */

unsigned eng_memory_hosts(const struct eng *e, uint32_t *cursor, struct eng_memory_host *out, unsigned max)
{
	uint32_t bucket = *cursor % BUCKETS, skip = *cursor / BUCKETS, looked = 0;
	unsigned n = 0;

	for (; bucket < BUCKETS; bucket++, skip = 0) {
		uint32_t at = 0;

		for (const struct eng_host *h = e->hosts[bucket]; h; h = h->chain, at++) {
			if (at < skip)
				continue;
			if (n == max || looked++ == LOOK_MOST) {
				*cursor = at * BUCKETS + bucket;
				return n;
			}
			if (holds_something(h))
				fill_host(&out[n++], h);
		}
	}
	*cursor = 0;
	return n;
}
