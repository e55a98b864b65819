/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a restart: the connections of an earlier process that the journal names are taken up. The far gateway
 * is asked whether anything is lost that their hosts were acknowledged (recover.c there).
 */
#include "engine/emit.h"
#include "engine/responder.h"
#include "engine/tenants.h"

static bool send_resume(struct eng_near *n, rwy_time now)
{
	struct eng *e = n->h.e;
	struct eng_ctrl c = {.type = ENG_CTRL_RESUME, .life = n->life, .qpn = n->lqpn, .psn = n->resp.epsn};
	struct rwy_buf *b = eng_ctrl_buf(e, &c);

	if (!b)
		return false;
	b->psn = n->resp.epsn;
	b->psn_cnt = 0;
	b->msn = 0;
	eng_hold(n, eng_cost(e, b));
	wan_tx_send(n->req, b, now);
	return true;
}

static struct eng_near *resume(struct eng *e, const struct eng_key *k, struct eng_jent *j, rwy_time now)
{
	struct eng_near *n = eng_near_get(e, k, false, now);

	if (!n)
		return NULL;
	eng_near_start(n, j->acked & ROCE_PSN_MASK, j->pmtu, now);
	roce_resp_resume(&n->resp);
	n->jent = j;
	n->lqpn = j->lqpn;
	n->rnr_retry = j->rnr_retry;
	n->retry = j->retry;
	eng_near_enter(n, ENG_R_RESUMING);
	if (!eng_near_open(n, now) || !send_resume(n, now)) {
		n->jent = NULL; /* the caller gives it back */
		eng_near_free(n, now);
		return NULL;
	}
	return n;
}

void eng_journal_restore(struct eng *e, uint32_t tenant, rwy_time now)
{
	uint32_t vni = eng_tenant(e, tenant)->cfg.vni, cursor = 0;
	unsigned taken_up = 0, left = 0;
	struct eng_jent *j;

	while ((j = eng_journal_old(e, vni, &cursor))) {
		struct eng_key k = {j->src, j->dst, j->qpn, tenant};

		/* Nonsense in the file, or a connection that is not ours any more, is as good as nothing. */
		if (j->qpn > 0xffffff || !j->lqpn || j->lqpn > 0xffffff || eng_find(e, &k, false) ||
		    !resume(e, &k, j, now)) {
			eng_journal_give_back(e, j);
			left++;
			continue;
		}
		taken_up++;
	}
	if (taken_up || left)
		eng_log(e, left ? 1 : 2,
		    "event=\"connections of an earlier process taken up\" flows=%u left=%u", taken_up, left);
}
