/* SPDX-License-Identifier: Apache-2.0 */
/* What the two gateways of a pair say to each other: their states. */
#include "engine/standby.h"

#include "engine/msg.h"
#include "rwy/endian.h"

/* Epoch of the receiver; state; whether an earlier process of the sender left a journal. */
#define MESSAGE_LEN 10

void eng_sb_tell(struct eng *e, rwy_time now)
{
	struct eng_tunnel *t = &e->tunnel[e->cfg.standby.tunnel];
	uint8_t info[WAN_OPEN_MAX];
	struct eng_open o = {
	    .type = ENG_OPEN_MGMT, .rnr_retry = ENG_RETRY_UNKNOWN, .retry = ENG_RETRY_UNKNOWN};
	struct rwy_buf *b;

	if (e->sb.said == e->sb.state + 1u || !t->wan || !t->up)
		return;
	if (!t->mgmt && wan_tx_open(t->wan, &t->mgmt, info, eng_open_encode(info, &o), t, now) != 0) {
		t->mgmt = NULL;
		return;
	}
	b = rwy_buf_alloc(&e->bufs, WAN_HDR_MAX, MESSAGE_LEN);
	if (!b)
		return; /* again with the next turn */
	b->len = MESSAGE_LEN;
	rwy_put64(b->data, wan_peer_epoch(t->wan));
	b->data[8] = e->sb.state;
	b->data[9] = e->orphans_n != 0;
	b->kind = RWY_BUF_CTRL;
	wan_tx_send(t->mgmt, b, now);
	e->sb.said = (uint8_t)(e->sb.state + 1);
}

bool eng_sb_msg_read(const struct rwy_buf *b, struct eng_sb_msg *m)
{
	if (b->len != MESSAGE_LEN || b->data[8] == ENG_SB_NONE || b->data[8] >= ENG_SB_STATE_COUNT)
		return false;
	*m = (struct eng_sb_msg){.to = rwy_get64(b->data), .state = b->data[8], .past = b->data[9]};
	return true;
}
