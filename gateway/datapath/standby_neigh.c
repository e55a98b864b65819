/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The neighbours of LAN and WAN ports, told to the standby of a pair. A note is a list of entries:
 * address (IPv4 mapped, 16 bytes) and MAC address (6 bytes).
 */
#include <string.h>

#include "gateway/datapath/standby.h"
#include "gateway/port/neigh.h"

#define ENTRY   22
#define ENTRIES (ENG_NOTE_MAX / ENTRY) /* of a note */
#define AGAIN   (20 * RWY_SEC)         /* the standby's kernel forgets what nobody uses */

void gw_standby_neigh_begin(struct gw_standby_neigh *n)
{
	n->gen = 0;
	n->next = 0;
}

void gw_standby_neigh_say(struct gw_worker *w, struct gw_standby_neigh *n)
{
	const struct gw_nt *t = w->nt;
	uint8_t note[ENTRIES * ENTRY];
	uint32_t len = 0, i;

	if (!n->next && n->gen == t->gen && w->now < n->again)
		return;
	if (!n->next) {
		n->gen = t->gen;
		n->again = w->now + AGAIN;
	}
	for (i = n->next; i < t->nhs && len < sizeof(note); i++) {
		const struct gw_nh *nh = &t->nh[i];

		if (w->app->port[nh->port]->pair)
			continue;
		memcpy(note + len, nh->addr.b, 16);
		memcpy(note + len + 16, nh->l2, 6);
		len += ENTRY;
	}
	if (len && eng_standby_note(w->eng, ENG_STANDBY_NEIGHBOURS, note, len, w->now) != 0)
		return; /* again with the next turn */
	n->next = i < t->nhs ? i : 0;
}

void gw_standby_neigh_hear(
    struct gw_worker *w, struct gw_standby_neigh *n, const uint8_t *bytes, uint32_t len)
{
	uint32_t head = atomic_load_explicit(&n->head, memory_order_relaxed);

	for (; len >= ENTRY; bytes += ENTRY, len -= ENTRY) {
		struct gw_neigh_told *t = &n->told[head % GW_TOLD];

		if (head - atomic_load_explicit(&n->tail, memory_order_acquire) >= GW_TOLD) {
			w->c.neigh_told_lost += len / ENTRY;
			break;
		}
		memcpy(t->addr.b, bytes, 16);
		memcpy(t->mac, bytes + 16, 6);
		head++;
		w->c.neigh_told++;
	}
	atomic_store_explicit(&n->head, head, memory_order_release);
	w->kernel_fed = true;
}
