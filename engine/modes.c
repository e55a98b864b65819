/* SPDX-License-Identifier: Apache-2.0 */
/* Ack modes of pairs of hosts. */
#include "engine/eng.h"
#include "rwy/prefix.h"

enum eng_ack_mode eng_mode_of(const struct eng_tenant *t, const struct eng_key *k)
{
	for (unsigned i = 0; i < t->cfg.modes; i++) {
		const struct eng_mode *m = &t->mode[i];

		if (rwy_prefix_match(&m->from, m->from_len, &k->src) &&
		    rwy_prefix_match(&m->to, m->to_len, &k->dst))
			return (enum eng_ack_mode)m->mode;
	}
	return t->cfg.ack_mode;
}

enum eng_ack_mode eng_mode_find(const struct eng_responder *rs)
{
	struct eng_responder *keep = (struct eng_responder *)(uintptr_t)rs;

	keep->mode = (uint8_t)eng_mode_of(rs->side.tenant, &rs->side.key);
	keep->mode_set = rs->side.tenant->modes_set;
	return (enum eng_ack_mode)rs->mode;
}

void eng_modes_set(struct eng *e, struct eng_tenant *t, const struct eng_mode *mode, unsigned n)
{
	t->cfg.modes = n < ENG_MODES_MAX ? n : ENG_MODES_MAX;
	for (unsigned i = 0; i < t->cfg.modes; i++)
		t->mode[i] = mode[i];
	t->cfg.mode = t->mode;
	t->modes_set = ++e->modes_set;
}
