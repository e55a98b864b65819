/* SPDX-License-Identifier: Apache-2.0 */
/* The near gateway names the QPN of its host: nobody has to learn it from a response (pair.c). */
#include "engine/pair.h"
#include "engine/place.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/steer.h"

bool eng_requester_named(struct eng_requester *rq, uint32_t qpn, rwy_time now)
{
	const struct eng_key k = {rq->side.key.dst, rq->side.key.src, qpn, rq->side.key.tenant};
	struct eng_responder *rs = eng_responder_get(rq->side.e, &k, false, now);

	if (rs) {
		eng_pair_join(rs, rq, ENG_BY_PEER);
		return true;
	}
	if (eng_place_ask_leave(rq, qpn, rq->side.e->cfg.worker))
		rq->remote_qpn = qpn; /* it is paired when that has come */
	return false;
}

bool eng_requester_opened_for(const struct eng_requester *rq, uint32_t qpn)
{
	return rq->requests && rq->near_qpn == qpn && (!rq->responder || rq->remote_qpn == qpn) &&
	       rq->cold.close_at == RWY_NEVER;
}

bool eng_requester_has_place(const struct eng_requester *rq)
{
	const struct eng_side *side = &rq->side;

	return !eng_is_full(side->e, side->tenant) &&
	       eng_steer(side->e, side->key.tenant, &side->key.dst, &side->key.src, rq->remote_qpn) >= 0;
}
