/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ECN of a path (RFC 3168; validation after RFC 9000 section 13.4.2): datagrams are sent ECT(0)
 * until the path turns out to lose marked datagrams, to clear the mark, or to mark everything. An
 * unfit path stays so for the session. Datagrams rebuilt from repairs are acknowledged but were not
 * counted by the peer, so exact counts cannot be compared: a path is unfit when the peer never
 * counts any.
 */
#include "wan/tunnel.h"

#define ENOUGH 100u /* acknowledged ECT datagrams after which the path is judged */

void wan_ecn_restart(struct wan_path *p)
{
	p->ecn = p->t->cfg.ecn && !wan_path_is_stream(p) ? WAN_ECN_TRYING : WAN_ECN_OFF;
	p->ecn_acked = 0;
	p->ect0_from = p->ect0_seen;
	p->ce_from = p->ce_seen;
}

void wan_ecn_on_ack(struct wan_path *p, const struct wan_f_ack *a)
{
	const uint32_t ce = a->ce - p->ce_from, seen = a->has_ecn ? a->ect0 - p->ect0_from + ce : 0;

	if (p->ecn != WAN_ECN_TRYING || p->ecn_acked < ENOUGH)
		return;
	p->ecn = !seen || ce >= p->ecn_acked ? WAN_ECN_OFF : WAN_ECN_ON;
}

void wan_ecn_on_pto(struct wan_path *p)
{
	if (p->ecn == WAN_ECN_TRYING && !p->ecn_acked && p->pto_count >= 2)
		p->ecn = WAN_ECN_OFF;
}

const char *wan_ecn_name(const struct wan_path *p)
{
	return p->ecn == WAN_ECN_OFF ? "off" : p->ecn == WAN_ECN_ON ? "on" : "trying";
}
