/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the two gateways of a pair: their states, and notes of their programs. */
#include "engine/standby.h"

#include <assert.h>
#include <string.h>

#include "engine/mgmt.h"
#include "engine/msg.h"
#include "rwy/endian.h"

/*
 * Epoch of the receiver; state, NONE or LINKS: a note follows; term; the witness's epoch and nonce.
 */
#define STATE_LEN 17
#define PROOF_LEN 33
#define NOTE_HDR  9
/* Instead of a state: rates of paths follow, each with its tunnel's id, its number, rate, RTT. */
#define PATHS     254
#define LINKS     253
#define PATH_LEN  25
#define PATHS_MAX 32

/* Returns a message to the process that is at the other end now; NULL: none, or no memory. */
static struct rwy_buf *message(struct eng *e, uint8_t state, uint32_t len, rwy_time now)
{
	struct eng_tunnel *t = &e->tunnel[e->cfg.standby.tunnel];
	uint8_t info[WAN_OPEN_MAX];
	struct rwy_buf *b;

	if (!t->wan || !t->up)
		return NULL;
	if (!t->mgmt &&
	    wan_tx_open(t->wan, &t->mgmt, info, eng_mgmt_open_info(eng_sb_workers(e), info), t, now) != 0) {
		t->mgmt = NULL;
		return NULL;
	}
	b = rwy_buf_alloc(&e->bufs, WAN_HDR_MAX, len);
	if (!b)
		return NULL;
	b->len = len;
	b->kind = RWY_BUF_CTRL;
	rwy_put64(b->data, wan_peer_epoch(t->wan));
	b->data[8] = state;
	return b;
}

/* *p is the witness's latest proof. False: there is none. */
static bool proof_of(const struct eng *e, struct wan_proof *p)
{
	unsigned w = e->sb.state == ENG_SB_PAIRED ? eng_sb_witness(e) : ENG_SB_NO_WITNESS;

	return w != ENG_SB_NO_WITNESS && wan_proof_spare(e->tunnel[w].wan, p);
}

/* The other gateway may have lost this one, and with it what it was told, unnoticed here. */
static bool asks_again(const struct eng *e, rwy_time now)
{
	return e->sb.state == ENG_SB_ASKING && rwy_since(e->sb.said_at, now) >= e->sb.silence;
}

void eng_sb_tell(struct eng *e, rwy_time now)
{
	struct wan_proof p = {0};
	struct rwy_buf *b;
	bool told, proof;

	if (!eng_sb_followed(e)) /* it is true when all workers do what the state says */
		return;
	told = e->sb.said == e->sb.state + 1u && !asks_again(e, now);
	proof = proof_of(e, &p);
	if (told && (!proof || (p.nonce == e->sb.told.nonce && p.epoch == e->sb.told.epoch)))
		return;
	e->sb.said_at = now;
	b = message(e, e->sb.state, proof ? PROOF_LEN : STATE_LEN, now);
	if (!b)
		return; /* again with the next turn */
	rwy_put64(b->data + NOTE_HDR, e->sb.term);
	if (proof) {
		rwy_put64(b->data + STATE_LEN, p.epoch);
		rwy_put64(b->data + STATE_LEN + 8, p.nonce);
	}
	wan_tx_send(e->tunnel[e->cfg.standby.tunnel].mgmt, b, now);
	e->sb.said = (uint8_t)(e->sb.state + 1);
	e->sb.told = proof ? p : (struct wan_proof){0};
}

int eng_standby_note(struct eng *e, enum eng_standby_kind kind, const void *bytes, uint32_t len, rwy_time now)
{
	const uint8_t state = kind == ENG_STANDBY_LINKS ? LINKS : ENG_SB_NONE;
	struct rwy_buf *b;

	assert(len <= ENG_NOTE_MAX);
	b = e->cfg.standby.on ? message(e, state, NOTE_HDR + len, now) : NULL;
	if (!b)
		return RWY_EAGAIN;
	memcpy(b->data + NOTE_HDR, bytes, len);
	wan_tx_send(e->tunnel[e->cfg.standby.tunnel].mgmt, b, now);
	return 0;
}

/* Appends the paths of a tunnel to v[n]. Returns the number then. */
static unsigned paths_of(const struct eng *e, unsigned tunnel, uint8_t *v, unsigned n, rwy_time now)
{
	struct wan_tunnel *t = e->tunnel[tunnel].wan;
	struct wan_resume r;

	for (unsigned i = 0; i < wan_paths(t) && n < PATHS_MAX; i++) {
		uint8_t *p = v + n * PATH_LEN;

		if (!wan_resume_of(t, i, &r, now))
			continue;
		rwy_put64(p, e->cfg.tunnel[tunnel].wan.tunnel_id);
		p[8] = (uint8_t)i;
		rwy_put64(p + 9, r.rate_Bps);
		rwy_put64(p + 17, (uint64_t)r.rtt);
		n++;
	}
	return n;
}

void eng_sb_tell_paths(struct eng *e, rwy_time now)
{
	uint8_t v[PATHS_MAX * PATH_LEN];
	struct rwy_buf *b;
	unsigned n = 0;

	/* Of very many tunnels those that come first. */
	for (unsigned i = 0; i < e->cfg.tunnels && n < PATHS_MAX; i++)
		if (e->tunnel[i].wan && e->tunnel[i].up && !eng_sb_is_pair(e, i))
			n = paths_of(e, i, v, n, now);
	b = n ? message(e, PATHS, NOTE_HDR + n * PATH_LEN, now) : NULL;
	if (!b)
		return;
	memcpy(b->data + NOTE_HDR, v, (size_t)n * PATH_LEN);
	wan_tx_send(e->tunnel[e->cfg.standby.tunnel].mgmt, b, now);
}

void eng_sb_hear_paths(struct eng *e, const struct eng_sb_msg *m)
{
	for (const uint8_t *p = m->paths; p < m->paths + m->paths_len; p += PATH_LEN)
		for (unsigned i = 0; i < e->cfg.tunnels; i++)
			if (e->tunnel[i].wan && e->cfg.tunnel[i].wan.tunnel_id == rwy_get64(p))
				wan_resume_set(e->tunnel[i].wan, p[8],
				    &(struct wan_resume){rwy_get64(p + 9), (rwy_dur)rwy_get64(p + 17)});
}

bool eng_sb_msg_read(const struct rwy_buf *b, struct eng_sb_msg *m)
{
	if (b->len < NOTE_HDR)
		return false;
	*m = (struct eng_sb_msg){.to = rwy_get64(b->data), .state = b->data[8]};
	if (m->state == ENG_SB_NONE || m->state == LINKS) {
		m->note_kind = m->state == LINKS ? ENG_STANDBY_LINKS : ENG_STANDBY_NEIGHBOURS;
		m->note = b->data + NOTE_HDR;
		m->note_len = b->len - NOTE_HDR;
		return m->note_len && m->note_len <= ENG_NOTE_MAX;
	}
	if (m->state == PATHS) {
		m->paths = b->data + NOTE_HDR;
		m->paths_len = b->len - NOTE_HDR;
		return m->paths_len && m->paths_len % PATH_LEN == 0;
	}
	if ((b->len != STATE_LEN && b->len != PROOF_LEN) || m->state >= ENG_SB_STATE_COUNT)
		return false;
	m->term = rwy_get64(b->data + NOTE_HDR);
	if (b->len == PROOF_LEN)
		m->proof =
		    (struct wan_proof){rwy_get64(b->data + STATE_LEN), rwy_get64(b->data + STATE_LEN + 8)};
	return true;
}
