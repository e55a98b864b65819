/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions, as the control center hears of connections: one opens when both QPNs are known. */
#include "engine/session.h"

#define SLOTS 4096 /* table slots looked at in one call, so that no call is long */

static void describe_session(const struct eng_responder *rs, struct eng_session *out)
{
	*out = (struct eng_session){.id = rs->session,
	    .vni = rs->side.tenant->cfg.vni,
	    .local = rs->side.key.src,
	    .remote = rs->side.key.dst,
	    .local_qpn = rs->local_qpn,
	    .remote_qpn = rs->side.key.qpn,
	    .udp_port = rs->sport,
	    .tunnel = rs->side.tunnel,
	    .tx_bytes = rs->bytes,
	    .rx_bytes = rs->requester ? rs->requester->bytes : 0};
}

static void report_session(struct eng_responder *rs, bool open)
{
	struct eng *e = rs->side.e;
	struct eng_session s;

	if (!e->ops->session || e->closing)
		return;
	describe_session(rs, &s);
	e->ops->session(e->ctx, open, &s);
}

void eng_session_open(struct eng_responder *rs)
{
	if (rs->session)
		return;
	rs->session = ++rs->side.e->sessions;
	report_session(rs, true);
}

void eng_session_close(struct eng_responder *rs)
{
	if (!rs->session)
		return;
	report_session(rs, false);
	rs->session = 0;
}

unsigned eng_sessions(const struct eng *e, uint32_t *cursor, struct eng_session *out, unsigned max)
{
	uint32_t end = *cursor + SLOTS;
	unsigned n = 0;

	for (; *cursor < end && *cursor <= e->table_mask; (*cursor)++) {
		unsigned here = 0;

		for (const struct eng_side *side = e->table[*cursor]; side; side = side->chain)
			here += !side->is_requester && ((const struct eng_responder *)side)->session;
		if (n + here > max && n)
			return n;
		for (const struct eng_side *side = e->table[*cursor]; side && n < max; side = side->chain)
			if (!side->is_requester && ((const struct eng_responder *)side)->session)
				describe_session((const struct eng_responder *)side, &out[n++]);
	}
	if (*cursor > e->table_mask)
		*cursor = 0;
	return n;
}
