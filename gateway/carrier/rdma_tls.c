/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An RDMA connection of a tunnel with keys: TLS 1.3 in its first messages, which tells who is at
 * the other end, and then keys of its own for the rest (rdma_seal.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway/carrier/rdma.h"

#define TLS_MOST 8192u /* bytes of a TLS message */

static const char no_record[] = "a message that is no record";

uint8_t gw_rdma_cipher(const struct gw_carriers *cs, const struct gw_carrier_tun *t)
{
	return t->conf.security == CONF_SEC_KEYS ? (uint8_t)(1 + cs->alg) : 0;
}

/* Sends what TLS has for the peer, as far as there is room. */
static const char *flush(struct gw_carriers *cs, struct gw_conn *c, rwy_time now)
{
	struct gw_rdma_batch b = {.n = 0};
	uint8_t head[GW_RDMA_HEAD];
	const uint8_t *p;
	size_t n;

	while ((p = gw_conn_tls_output(c, &n)), n && gw_rdma_flow_room(&c->rdma->flow) && b.n < GW_CONN_RUN) {
		const char *why;

		n = n < TLS_MOST ? n : TLS_MOST;
		gw_rdma_head_put(head, GW_RDMA_TLS, 0, (uint32_t)n);
		why = gw_rdma_message_add(&b, c, &(struct aead_in){head, p, sizeof(head), n}, now);
		if (why)
			return why;
		gw_conn_tls_sent(c, n);
	}
	return gw_rdma_batch_post(cs, c, &b);
}

/* All of TLS has been sent: from the next message on they are sealed. */
static const char *sealed_from_now(struct gw_carriers *cs, struct gw_conn *c, rwy_time now)
{
	struct gw_rdma_conn *r = c->rdma;
	struct aead_secret exported;
	size_t n;

	(void)gw_conn_tls_output(c, &n);
	if (n)
		return "TLS has more to say than there are receives for";
	if (gw_conn_tls_secret(c, (uint8_t)cs->alg, &exported) != 0)
		return "TLS exports no secret";
	r->seal = gw_rdma_seal_new(aead_best(), cs->alg, &exported, !c->accepted, cs->rekey, now);
	aead_wipe(&exported, sizeof(exported));
	return r->seal ? NULL : "no memory";
}

/* TLS has failed, cs->why says why. The peer gets the alert first. */
static const char *last_words(struct gw_carriers *cs, struct gw_conn *c, rwy_time now)
{
	struct gw_rdma_conn *r = c->rdma;

	snprintf(r->why, sizeof(r->why), "%s", cs->why);
	r->ending = flush(cs, c, now) == NULL;
	snprintf(cs->why, sizeof(cs->why), "%s", r->why);
	return r->ending ? NULL : cs->why;
}

static const char *go_on(struct gw_carriers *cs, struct gw_conn *c, rwy_time now)
{
	const char *why;

	if (gw_conn_tls_handshake(cs, c) != 0)
		return errno == EAGAIN ? flush(cs, c, now) : last_words(cs, c, now);
	why = flush(cs, c, now);
	return why ? why : sealed_from_now(cs, c, now);
}

const char *gw_rdma_tls_begin(struct gw_carriers *cs, struct gw_conn *c, const char *name, rwy_time now)
{
	if (gw_conn_tls_new(cs, c, name) != 0)
		return "no memory";
	return c->accepted ? NULL : go_on(cs, c, now);
}

static const char *malformed(struct gw_conn *c)
{
	if (c->t)
		c->t->c.refused_malformed++;
	return no_record;
}

/* After the handshake TLS says nothing but why it ends. */
static const char *alert(struct gw_carriers *cs, struct gw_conn *c)
{
	uint8_t none[64];

	if (gw_conn_tls_recv(cs, c, none, sizeof(none)) >= 0 || errno != EPROTO)
		return malformed(c);
	snprintf(c->rdma->why, sizeof(c->rdma->why), "%s", cs->why);
	return cs->why;
}

static const char *tls_message(
    struct gw_carriers *cs, struct gw_conn *c, const uint8_t *p, uint32_t n, rwy_time now)
{
	if (gw_conn_tls_input(c, p, n) != 0)
		return malformed(c);
	return c->rdma->seal ? alert(cs, c) : go_on(cs, c, now);
}

const char *gw_rdma_tls_open(struct gw_carriers *cs, struct gw_conn *c, uint8_t *p, uint32_t n,
    uint32_t immediate, uint32_t *len, rwy_time now)
{
	struct gw_rdma_seal *seal = c->rdma->seal;
	enum gw_rdma_type type;
	int rc;

	*len = 0;
	if (gw_rdma_head_get(p, n, &type) != 0 || (type == GW_RDMA_SEALED && !seal))
		return malformed(c);
	if (type == GW_RDMA_TLS)
		return tls_message(cs, c, p + GW_RDMA_HEAD, n - GW_RDMA_HEAD, now);
	rc = gw_rdma_seal_get(seal, p, n, immediate);
	if (rc == RWY_ENOMEM)
		return "no memory for a key";
	if (rc) {
		if (c->t)
			c->t->c.refused_forged++;
		return "a message that the peer did not seal: it was changed, repeated or made up";
	}
	*len = n - GW_RDMA_EXTRA;
	return NULL;
}
