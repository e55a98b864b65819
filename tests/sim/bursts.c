/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that wait for a worker's next turn (F_BURSTS). A turn takes some microseconds, and the
 * worker then has all that came meanwhile, as one that polls its NIC does: what the WAN brought at
 * once, what the LAN brought together, and only then the engine's own work.
 */
#include "tests/sim/world_int.h"

#include "tests/sim/heap.h"

#define BURST 64 /* most packets of a turn */
#define LAN   32 /* most packets of the LAN that the engine gets together (GW_BURST) */
#define MASK  (SIM_WAITING - 1)

void sim_burst_add(struct site *s, const struct due *d)
{
	if (s->waiting_n == SIM_WAITING) { /* its receive ring is full */
		sim_buf_free(d->what);
		return;
	}
	s->waiting[(s->waiting_at + s->waiting_n++) & MASK] = *d;
	s->next = s->w->now;
}

static void lan_flush(struct site *s, struct rwy_buf **b, uint16_t *tenant, unsigned *n)
{
	sim_heap_may_fail(true);
	if (*n)
		eng_tenant_rx(s->e, b, tenant, *n, s->w->now);
	sim_heap_may_fail(false);
	*n = 0;
}

static struct due waiting_pop(struct site *s)
{
	const struct due d = s->waiting[s->waiting_at++ & MASK];

	s->waiting_n--;
	return d;
}

void sim_burst_take(struct site *s)
{
	struct rwy_buf *b[LAN];
	uint16_t tenant[LAN];
	unsigned lan = 0, taken = 0;

	if (!s->waiting_n)
		return;
	sim_notes_take(s);
	for (; s->waiting_n && taken < BURST; taken++) {
		const struct due d = waiting_pop(s);

		if (!sim_buffer_found(s, &d))
			continue;
		if (d.where / 2 != SIM_LAN_UP || !sim_tenant_there(s, &d)) {
			sim_packet_to_engine(s, &d);
			continue;
		}
		b[lan] = &((struct sim_buf *)d.what)->b;
		tenant[lan] = (uint16_t)s->tenant_at[b[lan]->w0].idx;
		if (++lan == LAN)
			lan_flush(s, b, tenant, &lan);
	}
	lan_flush(s, b, tenant, &lan);
	s->turns = 0;
	s->busy_until = s->w->now + RWY_US + sim_below(&s->w->turn_rng, (uint32_t)s->w->cfg.turn);
}

void sim_burst_drop(struct site *s)
{
	while (s->waiting_n) {
		const struct due d = waiting_pop(s);

		sim_buf_free(d.what);
	}
}
