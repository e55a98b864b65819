/* SPDX-License-Identifier: Apache-2.0 */
/* Connections as the controller hears of them: a session opens when both QPNs are known. */
#include "engine/session.h"

#define SLOTS 4096 /* table slots looked at in one call, so that no call is long */

static void tell(struct eng_near *n, bool open)
{
	struct eng *e = n->h.e;
	struct eng_session s;

	if (!e->ops->session || e->closing)
		return;
	eng_session_of(n, &s);
	e->ops->session(e->ctx, open, &s);
}

void eng_session_open(struct eng_near *n)
{
	if (n->session)
		return;
	n->session = ++n->h.e->sessions;
	tell(n, true);
}

void eng_session_close(struct eng_near *n)
{
	if (!n->session)
		return;
	tell(n, false);
	n->session = 0;
}

void eng_session_of(const struct eng_near *n, struct eng_session *out)
{
	*out = (struct eng_session){.id = n->session,
	    .vni = n->h.ten->cfg.vni,
	    .local = n->h.key.src,
	    .remote = n->h.key.dst,
	    .local_qpn = n->lqpn,
	    .remote_qpn = n->h.key.qpn,
	    .udp_port = n->sport,
	    .tunnel = n->h.tunnel,
	    .tx_bytes = n->bytes,
	    .rx_bytes = n->far ? n->far->bytes : 0};
}

unsigned eng_sessions(const struct eng *e, uint32_t *cursor, struct eng_session *out, unsigned max)
{
	uint32_t end = *cursor + SLOTS;
	unsigned n = 0;

	for (; *cursor < end && *cursor <= e->table_mask; (*cursor)++) {
		unsigned here = 0;

		for (const struct eng_half *h = e->table[*cursor]; h; h = h->chain)
			here += !h->is_far && ((const struct eng_near *)h)->session;
		if (n + here > max && n)
			return n;
		for (const struct eng_half *h = e->table[*cursor]; h && n < max; h = h->chain)
			if (!h->is_far && ((const struct eng_near *)h)->session)
				eng_session_of((const struct eng_near *)h, &out[n++]);
	}
	if (*cursor > e->table_mask)
		*cursor = 0;
	return n;
}
