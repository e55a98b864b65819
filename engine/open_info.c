/* SPDX-License-Identifier: Apache-2.0 */
/* How a flow of a connection's requests, or of their copies, introduces itself to the other end. */
#include "engine/place.h"
#include "engine/responder.h"

size_t eng_responder_open_info(const struct eng_responder *rs, enum eng_open_type type, uint8_t *out)
{
	struct eng_open o = {
	    .type = (uint8_t)type,
	    .rnr_retry = rs->rnr_retry,
	    .retry = rs->retry,
	    .ack_timeout = rs->ack_timeout,
	    .workers = eng_place_workers(rs->side.e),
	    .pmtu = (uint16_t)rs->resp.pmtu,
	    .incarnation = rs->incarnation,
	    /*
	     * Only of this incarnation: the QPN of an earlier pairing may be in use by another
	     * host.
	     */
	    .peer_qpn = roce_resp_started(&rs->resp) || rs->side.state == ENG_R_RESUMING ? rs->local_qpn : 0,
	    .vni = rs->side.tenant->cfg.vni,
	    .key = rs->side.key,
	};

	return eng_open_encode(out, &o);
}
