/* SPDX-License-Identifier: Apache-2.0 */
/* Links are noted in the table's journal (journal.h). */
#include <stdatomic.h>
#include <string.h>

#include "proxy/journal.h"
#include "proxy/map_int.h"

struct proxy_record *proxy_map_records(const struct proxy_map *m, uint32_t i)
{
	return &m->cfg.journal[2 * (size_t)i];
}

static void journal_note(struct proxy_map *m, struct proxy_link *l)
{
	struct proxy_record *two, *was, r;

	two = proxy_map_records(m, (uint32_t)(l - m->l));
	was = l->noted ? &two[l->noted - 1] : NULL;
	proxy_record_of(&r, l);
	if (was) {
		proxy_record_seal(&r, was->seq, was->born);
		if (!memcmp(&r, was, sizeof(r)))
			return;
		proxy_record_seal(&r, was->seq + 1, was->born);
	} else {
		proxy_record_seal(&r, 1, ++m->born);
	}
	l->noted = l->noted == 1 ? 2 : 1;
	two[l->noted - 1] = r;
	atomic_signal_fence(memory_order_seq_cst); /* before the message that depends on it */
}

void proxy_map_note(struct proxy_map *m, struct proxy_link *l)
{
	if (m->cfg.journal)
		journal_note(m, l);
	if (m->cfg.changed)
		m->cfg.changed(m->cfg.ctx, l, false);
}

void proxy_record_erase(struct proxy_record *two, unsigned counts)
{
	two[!counts].seq = 0; /* before the other one: it must not count in its place */
	atomic_signal_fence(memory_order_seq_cst);
	two[counts].seq = 0;
	atomic_signal_fence(memory_order_seq_cst);
}

void proxy_map_unnote(struct proxy_map *m, struct proxy_link *l)
{
	if (m->cfg.changed)
		m->cfg.changed(m->cfg.ctx, l, true);
	if (!l->noted)
		return;
	proxy_record_erase(proxy_map_records(m, (uint32_t)(l - m->l)), l->noted - 1u);
	l->noted = 0;
}
