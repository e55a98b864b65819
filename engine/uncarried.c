/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A requester whose responder is silent repeats for seconds and then reports a retry error that
 * names no cause. So a gateway answers what it can answer, and says in the log what it cannot.
 */
#include "engine/uncarried.h"

#include <stdio.h>

#include "engine/emit.h"

#define RC_FLUSH        0x1c /* IBA annex A19 */
#define RC_ATOMIC_WRITE 0x1d
#define TELL_EVERY      RWY_SEC

static const char *operation_name(uint8_t opcode)
{
	switch (roce_op_class(opcode)) {
	case ROCE_CLASS_RC:
		return opcode == RC_FLUSH          ? "FLUSH"
		       : opcode == RC_ATOMIC_WRITE ? "ATOMIC WRITE"
		                                   : "a reserved RC opcode";
	case ROCE_CLASS_RD:
		return "RD";
	case ROCE_CLASS_XRC:
		return "XRC";
	case ROCE_CLASS_VENDOR:
	case ROCE_CLASS_VENDOR_TOO:
		return "a manufacturer's transport";
	case ROCE_CLASS_UC:
	case ROCE_CLASS_UD:
	case ROCE_CLASS_CNP:
		return "a reserved opcode";
	}
	rwy_unreachable();
}

static uint64_t *drop_counter(struct eng_counters *c, uint8_t opcode)
{
	switch (roce_op_class(opcode)) {
	case ROCE_CLASS_RC:
		return &c->drop_uncarried_unknown;
	case ROCE_CLASS_RD:
		return &c->drop_rd;
	case ROCE_CLASS_XRC:
		return &c->drop_xrc;
	case ROCE_CLASS_VENDOR:
	case ROCE_CLASS_VENDOR_TOO:
		return &c->drop_vendor_opcode;
	case ROCE_CLASS_UC:
	case ROCE_CLASS_UD:
	case ROCE_CLASS_CNP:
		return &c->drop_unknown_opcode;
	}
	rwy_unreachable();
}

#define HOST_TEXT 40

static const char *host_text(char out[HOST_TEXT], const struct rwy_ip *a)
{
	int n = 0;

	if (rwy_ip_is4(a)) {
		snprintf(out, HOST_TEXT, "%u.%u.%u.%u", a->b[12], a->b[13], a->b[14], a->b[15]);
		return out;
	}
	for (unsigned i = 0; i < 16; i += 2)
		n += snprintf(
		    out + n, (size_t)(HOST_TEXT - n), "%s%x", i ? ":" : "", a->b[i] << 8 | a->b[i + 1]);
	return out;
}

void eng_uncarried_tell(
    struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, const char *done, rwy_time now)
{
	struct eng_uncarried_log *l = &e->uncarried[eng_host_hash(&pkt->src) & (ENG_UNCARRIED_LOGS - 1)];
	char host[HOST_TEXT], to[HOST_TEXT];

	if (now < l->next) {
		l->silent++;
		return;
	}
	eng_log(e, 1, "vni=%u host=%s to=%s qpn=%u opcode=0x%02x event=\"%s is not carried: %s\" more=%u",
	    e->tenant[tenant]->cfg.vni, host_text(host, &pkt->src), host_text(to, &pkt->dst), pkt->dqpn,
	    pkt->opcode, operation_name(pkt->opcode), done, l->silent);
	l->next = now + TELL_EVERY;
	l->silent = 0;
}

void eng_uncarried_drop(
    struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	eng_uncarried_tell(e, tenant, pkt, "dropped", now);
	eng_drop(e, b, drop_counter(&e->c, pkt->opcode));
}

/* The connection of an XRC request, as CM announced it; NULL: it did not. */
static const struct roce_cm_conn *xrc_connection(
    const struct eng *e, uint32_t tenant, const struct roce_pkt *pkt)
{
	const struct eng_tenant *t = eng_tenant(e, tenant);
	const struct roce_cm_conn *c = t && t->cm ? roce_cm_find(t->cm, &pkt->dst, pkt->dqpn) : NULL;

	/* Only the active side has a QP that sends (IBA annex A14). */
	return c && c->transport == ROCE_XRC && c->b.qpn == pkt->dqpn && rwy_ip_eq(&c->b.ip, &pkt->dst) &&
	               rwy_ip_eq(&c->a.ip, &pkt->src)
	           ? c
	           : NULL;
}

void eng_uncarried_xrc(
    struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now)
{
	const struct roce_cm_conn *c = xrc_connection(e, tenant, pkt);
	struct eng_nexthop nh = {.pcp = b->pcp};
	uint8_t out[ROCE_BUILD_MAX];

	if (!c || pkt->psn != c->a.psn || roce_op_is_response(pkt->info)) {
		eng_uncarried_drop(e, tenant, pkt, b, now);
		return;
	}
	struct roce_addr a = {.src = pkt->dst,
	    .dst = pkt->src,
	    .dqpn = c->a.qpn,
	    .sport = pkt->sport,
	    .pkey = pkt->pkey,
	    .tos = roce_pkt_tos(pkt) & 0xfc,
	    .ttl = 64,
	    .migreq = pkt->migreq};

	eng_lan_made(e, tenant, out,
	    roce_build_xrc_ack(out, &a, pkt->psn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_INV_REQ), 0), &a.dst,
	    &nh);
	e->c.naks_sent++;
	eng_uncarried_tell(e, tenant, pkt, "answered with NAK invalid request", now);
	eng_drop(e, b, &e->c.drop_xrc);
}
