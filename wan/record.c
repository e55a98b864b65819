/* SPDX-License-Identifier: Apache-2.0 */
#include "wan/record.h"

#include <assert.h>
#include <string.h>

#include "rwy/endian.h"
#include "wan/wire/pkt.h"

#define WISH_BODY (WAN_REC_WISH_LEN - WAN_REC_HDR)
static_assert(WAN_REC_HELLO_LEN == WAN_REC_HDR + WAN_PKT_HDR + WAN_HELLO_LEN, "a HELLO datagram");

void wan_rec_head(uint8_t out[WAN_REC_HDR], enum wan_rec_type type, uint8_t worker, uint32_t len)
{
	rwy_put16(out, (uint16_t)len);
	out[2] = (uint8_t)type;
	out[3] = worker;
}

static bool length_fits(const uint8_t *head)
{
	uint32_t len = rwy_get16(head);

	switch (head[2]) {
	case WAN_REC_DATAGRAM:
		return len > WAN_PKT_HDR && len <= WAN_REC_MAX;
	case WAN_REC_HELLO:
		return len == WAN_REC_HELLO_LEN - WAN_REC_HDR && !head[3];
	case WAN_REC_WISH:
		return len == WISH_BODY && !head[3];
	default:
		return false;
	}
}

int wan_rec_get(uint8_t *p, size_t n, struct wan_rec *rec)
{
	if (n < WAN_REC_HDR)
		return 0;
	if (!length_fits(p))
		return RWY_EMALFORMED;
	rec->len = rwy_get16(p);
	if (n < WAN_REC_HDR + rec->len)
		return 0;
	rec->type = (enum wan_rec_type)p[2];
	rec->worker = p[3];
	rec->body = p + WAN_REC_HDR;
	return (int)(WAN_REC_HDR + rec->len);
}

/* --- identity of a connection ----------------------------------------------------------------- */
void wan_conn_init(struct wan_conn *c, uint64_t tunnel_id, uint64_t epoch, uint64_t nonce, bool opener)
{
	*c = (struct wan_conn){.tunnel_id = tunnel_id, .epoch = epoch, .nonce = nonce, .owe = opener};
}

/* Decodes the body and restores its checksum field: a record is read twice. */
static bool hello_get(const struct wan_rec *rec, struct wan_f_hello *f)
{
	uint8_t copy[WAN_PKT_HDR + WAN_HELLO_LEN];
	struct wan_pkt h;

	if (rec->type != WAN_REC_HELLO)
		return false;
	memcpy(copy, rec->body, sizeof(copy));
	wan_pkt_get(copy, &h);
	if (h.version != WAN_VERSION || h.type != WAN_PKT_HELLO || h.flags ||
	    !wan_pkt_open(copy, sizeof(copy)))
		return false;
	return wan_f_hello_get(copy + WAN_PKT_HDR, WAN_HELLO_LEN, f);
}

bool wan_conn_peek(const struct wan_rec *rec, uint64_t *tunnel_id)
{
	struct wan_f_hello f;

	if (!hello_get(rec, &f))
		return false;
	*tunnel_id = f.tunnel_id;
	return true;
}

int wan_conn_hello(struct wan_conn *c, const struct wan_rec *rec)
{
	struct wan_f_hello f;

	if (!hello_get(rec, &f))
		return RWY_EMALFORMED;
	if (f.tunnel_id != c->tunnel_id || f.epoch == c->epoch || (c->known && f.epoch != c->peer_epoch))
		return RWY_ENOENT;
	if (f.echo && (f.echo != c->nonce || f.echo_epoch != c->epoch))
		return RWY_ENOENT;
	c->known = true;
	c->peer_epoch = f.epoch;
	if (f.flags & WAN_HELLO_WANT) {
		c->peer_nonce = f.nonce;
		c->owe = true;
	}
	c->open |= f.echo != 0;
	return 0;
}

size_t wan_conn_put(struct wan_conn *c, uint8_t out[WAN_REC_HELLO_LEN])
{
	const struct wan_pkt h = {.version = WAN_VERSION, .type = WAN_PKT_HELLO};
	const struct wan_f_hello f = {.flags = c->open ? 0 : WAN_HELLO_WANT,
	    .mtu = 1472, /* unused here, but must be in range */
	    .index = 1,
	    .tunnel_id = c->tunnel_id,
	    .epoch = c->epoch,
	    .nonce = c->nonce,
	    .echo = c->known ? c->peer_nonce : 0,
	    .echo_epoch = c->known ? c->peer_epoch : 0,
	    .rx_window = 1};

	if (!c->owe)
		return 0;
	c->owe = false;
	wan_rec_head(out, WAN_REC_HELLO, 0, WAN_REC_HELLO_LEN - WAN_REC_HDR);
	wan_pkt_put(out + WAN_REC_HDR, &h);
	wan_f_hello_put(out + WAN_REC_HDR + WAN_PKT_HDR, &f);
	wan_pkt_seal(out + WAN_REC_HDR, WAN_PKT_HDR + WAN_HELLO_LEN, NULL, 0);
	return WAN_REC_HELLO_LEN;
}

/* --- agreement on the carrier ----------------------------------------------------------------- */
const char *wan_carrier_name(enum wan_carrier c)
{
	switch (c) {
	case WAN_CARRIER_NATIVE:
		return "native";
	case WAN_CARRIER_TCP:
		return "tcp";
	case WAN_CARRIER_QUIC:
		return "quic";
	case WAN_CARRIER_RDMA:
		return "rdma";
	}
	rwy_unreachable();
}

void wan_agree_ask(struct wan_agree *a, enum wan_carrier c)
{
	a->count++;
	a->carrier = c;
	a->by_peer = false;
}

void wan_agree_put(const struct wan_agree *a, uint8_t out[WAN_REC_WISH_LEN])
{
	uint8_t *b = out + WAN_REC_HDR;

	wan_rec_head(out, WAN_REC_WISH, 0, WISH_BODY);
	memset(b, 0, WISH_BODY);
	rwy_put32(b, a->count);
	b[4] = (uint8_t)a->carrier;
	b[5] = (uint8_t)a->detour;
}

int wan_agree_get(struct wan_agree *a, const struct wan_rec *rec)
{
	uint32_t count;
	int changed;

	if (rec->type != WAN_REC_WISH || rec->body[4] >= WAN_CARRIERS || rec->body[5] >= WAN_CARRIERS)
		return RWY_EMALFORMED;
	changed = rec->body[5] != a->peer_detour;
	a->peer_detour = (enum wan_carrier)rec->body[5];
	count = rwy_get32(rec->body);
	if ((int32_t)(count - a->count) < 0 || (count == a->count && rec->body[4] <= a->carrier))
		return changed;
	a->count = count;
	if (rec->body[4] == a->carrier)
		return changed;
	a->carrier = (enum wan_carrier)rec->body[4];
	a->by_peer = true;
	return 1;
}
