/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding and decoding of the messages between two engines. */
#include "engine/msg.h"

#include "roce/parse.h"
#include "rwy/endian.h"

size_t eng_open_encode(uint8_t *out, const struct eng_open *o)
{
	out[0] = o->type;
	out[1] = o->rnr_retry;
	out[2] = o->retry;
	out[3] = o->ack_timeout;
	rwy_put16(out + 4, o->pmtu);
	out[6] = o->workers;
	out[7] = 0;
	rwy_put32(out + 8, o->incarnation);
	rwy_put32(out + 12, o->peer_qpn);
	memcpy(out + 16, o->key.src.b, 16);
	memcpy(out + 32, o->key.dst.b, 16);
	rwy_put32(out + 48, o->key.qpn);
	rwy_put32(out + 52, o->vni);
	return ENG_OPEN_LEN;
}

/* A path MTU is a power of two, 256..4096 (IBA 9.4.3), or not known. */
static bool pmtu_ok(uint16_t n)
{
	return !n || (n >= 256 && n <= 4096 && !(n & (n - 1)));
}

/* CM's counts have three bits. */
static uint8_t retry_count(uint8_t n)
{
	return n <= 7 ? n : ENG_RETRY_UNKNOWN;
}

bool eng_open_decode(struct eng_open *o, const uint8_t *p, size_t len)
{
	if (len != ENG_OPEN_LEN || p[0] < ENG_OPEN_REQ || p[0] > ENG_OPEN_PEER)
		return false;
	o->type = p[0];
	o->rnr_retry = retry_count(p[1]);
	o->retry = retry_count(p[2]);
	o->ack_timeout = p[3] <= ENG_ACK_TIMEOUT_MAX ? p[3] : 0;
	o->pmtu = rwy_get16(p + 4);
	o->workers = p[6];
	o->incarnation = rwy_get32(p + 8);
	o->peer_qpn = rwy_get32(p + 12);
	memcpy(o->key.src.b, p + 16, 16);
	memcpy(o->key.dst.b, p + 32, 16);
	o->key.qpn = rwy_get32(p + 48);
	o->key.tenant = 0;
	o->vni = rwy_get32(p + 52);
	if (!pmtu_ok(o->pmtu))
		return false;
	/* QPNs have 24 bits. */
	return o->key.qpn <= 0xffffff && o->peer_qpn <= 0xffffff && o->vni <= 0xffffff;
}

size_t eng_ctrl_encode(uint8_t *out, const struct eng_ctrl *c)
{
	out[0] = c->type;
	out[1] = c->syndrome;
	out[2] = c->end;
	out[3] = c->worker;
	rwy_put32(out + 4, c->incarnation);
	rwy_put32(out + 8, c->qpn);
	rwy_put32(out + 12, c->psn);
	rwy_put32(out + 16, c->msn);
	return ENG_CTRL_LEN;
}

bool eng_ctrl_decode(struct eng_ctrl *c, const uint8_t *p, size_t len)
{
	if (len != ENG_CTRL_LEN || p[0] < ENG_CTRL_SYNC || p[0] > ENG_CTRL_MOVED)
		return false;
	c->type = p[0];
	c->syndrome = p[1];
	c->end = p[2] < ENG_ENDS ? p[2] : ENG_END_UNKNOWN;
	c->worker = p[3];
	c->incarnation = rwy_get32(p + 4);
	c->qpn = rwy_get32(p + 8);
	c->psn = rwy_get32(p + 12);
	c->msn = rwy_get32(p + 16);
	return c->qpn <= 0xffffff && c->msn <= 0xffffff &&
	       (c->psn <= 0xffffff || (c->type == ENG_CTRL_MOVED && c->psn == ENG_NO_PSN));
}

size_t eng_copy_encode(uint8_t *out, const struct eng_copy_msg *m)
{
	out[0] = m->type;
	out[1] = m->rewound;
	rwy_put16(out + 2, m->pmtu);
	rwy_put32(out + 4, m->psn);
	rwy_put32(out + 8, m->msn);
	return ENG_COPY_LEN;
}

bool eng_copy_decode(struct eng_copy_msg *m, const uint8_t *p, size_t len)
{
	if (len != ENG_COPY_LEN || p[0] < ENG_COPY_BASE || p[0] > ENG_COPY_PMTU)
		return false;
	m->type = p[0];
	m->rewound = p[1] & 1;
	m->pmtu = rwy_get16(p + 2);
	m->psn = rwy_get32(p + 4);
	m->msn = rwy_get32(p + 8);
	return pmtu_ok(m->pmtu) && m->psn <= 0xffffff && m->msn <= 0xffffff;
}

/* Before the open information of LOST and KNOWN; all of the others. */
#define PEER_HEAD  8
#define PEER_ALIVE 1u /* in the first word */

static bool names_flow(const struct eng_peer_msg *m)
{
	return m->type == ENG_PEER_LOST || m->type == ENG_PEER_KNOWN;
}

size_t eng_peer_encode(uint8_t *out, const struct eng_peer_msg *m)
{
	rwy_put32(out, (uint32_t)m->type << 24 | (m->alive ? PEER_ALIVE : 0));
	rwy_put32(out + 4, m->psn);
	return PEER_HEAD + (names_flow(m) ? eng_open_encode(out + PEER_HEAD, &m->open) : 0);
}

bool eng_peer_decode(struct eng_peer_msg *m, const uint8_t *p, size_t len)
{
	if (len < PEER_HEAD || p[0] < ENG_PEER_LOST || p[0] > ENG_PEER_KNOWN)
		return false;
	*m = (struct eng_peer_msg){.type = p[0], .alive = rwy_get32(p) & PEER_ALIVE, .psn = rwy_get32(p + 4)};
	if (!names_flow(m))
		return len == PEER_HEAD;
	return m->psn <= 0xffffff && eng_open_decode(&m->open, p + PEER_HEAD, len - PEER_HEAD) &&
	       m->open.type == ENG_OPEN_REQ && m->open.peer_qpn;
}

static const char *refused_text(uint8_t syndrome, bool beside)
{
	switch (roce_aeth_value(syndrome)) {
	case ROCE_NAK_INV_REQ:
		return beside ? "remote invalid request" : "the far host refused: remote invalid request";
	case ROCE_NAK_REM_ACCESS:
		return beside ? "remote access error" : "the far host refused: remote access error";
	}
	return beside ? "remote operational error" : "the far host refused: remote operational error";
}

const char *eng_end_text(enum eng_end end, uint8_t syndrome, bool beside)
{
	switch (end) {
	case ENG_END_UNKNOWN:
		return "the far gateway ended the connection";
	case ENG_END_REFUSED:
		return refused_text(syndrome, beside);
	case ENG_END_SILENT:
		return beside ? "retry count exceeded" : "the far host did not answer: retry count exceeded";
	case ENG_END_NOT_READY:
		return beside ? "RNR retry count exceeded"
		              : "the far host was not ready: RNR retry count exceeded";
	case ENG_END_LOST:
		return "acknowledged requests may have been lost in a gateway restart";
	case ENG_END_ANSWER_LOST:
		return "an answer was lost in a gateway restart";
	case ENG_END_FORGOTTEN:
		return beside ? "the host no longer knows this connection"
		              : "the far host no longer knows this connection";
	case ENG_END_MALFORMED:
		return beside ? "malformed request from the peer"
		              : "the far gateway found a request malformed";
	case ENG_END_NO_MEMORY:
		return beside ? "no memory to resume a connection"
		              : "the far gateway had no memory to resume the connection";
	case ENG_END_UNDELIVERED:
		return beside ? "acknowledged requests of this host could not be delivered"
		              : "acknowledged requests of the far host could not be delivered";
	case ENG_ENDS:
		break;
	}
	rwy_unreachable();
}
