/* SPDX-License-Identifier: Apache-2.0 */
/* The comment of a captured packet. Its longest part is the same for all packets of a flow, so that
 * is made once. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/siphash.h"
#include "gateway/capture/capture.h"
#include "rwy/endian.h"

static const char *ip_text(const struct rwy_ip *a, char text[INET6_ADDRSTRLEN])
{
	const bool v4 = rwy_ip_is4(a);

	return inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->b + 12 : a->b, text, INET6_ADDRSTRLEN);
}

/* A number of both directions of a connection: the ends in an order that does not depend on who
 * sends. */
static uint64_t connection_of(const struct gw_cap_facts *f)
{
	static const uint8_t key[BASE_SIPHASH_KEY] = {0};
	uint8_t end[2][20], in[44];
	bool turn;

	memcpy(end[0], f->src.b, 16);
	rwy_put32(end[0] + 16, f->sqpn);
	memcpy(end[1], f->dst.b, 16);
	rwy_put32(end[1] + 16, f->dqpn);
	turn = memcmp(end[0], end[1], 20) > 0;
	rwy_put32(in, f->vni);
	memcpy(in + 4, end[turn], 20);
	memcpy(in + 24, end[!turn], 20);
	return base_siphash(key, in, sizeof(in));
}

/* --- texts of flows --------------------------------------------------------------------------- */

static void flow_write(struct gw_cap_flow_text *t, const struct gw_cap_facts *f)
{
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];
	const size_t size = sizeof(t->text);
	int n;

	*t = (struct gw_cap_flow_text){.src = f->src,
	    .dst = f->dst,
	    .vni = f->vni,
	    .dqpn = f->dqpn,
	    .sqpn = f->sqpn,
	    .used = true,
	    .roce = f->roce};
	n = snprintf(t->text, size, " flow=");
	if (f->vni)
		n += snprintf(t->text + n, size - (size_t)n, "vni%u:", f->vni);
	n += snprintf(t->text + n, size - (size_t)n, "%s>%s", ip_text(&f->src, src), ip_text(&f->dst, dst));
	if (f->roce)
		n += snprintf(t->text + n, size - (size_t)n, "/0x%x", f->dqpn);
	t->flow_len = (uint8_t)n;
	if (f->roce && f->sqpn)
		n += snprintf(t->text + n, size - (size_t)n, " conn=%016" PRIx64, connection_of(f));
	t->conn_len = (uint8_t)(n - t->flow_len);
}
static_assert(sizeof(" flow=vni4294967295:>/0xffffff conn=0123456789abcdef") + 2 * INET6_ADDRSTRLEN <=
                  sizeof(((struct gw_cap_flow_text *)0)->text),
    "a flow's text has room");

static bool flow_is(const struct gw_cap_flow_text *t, const struct gw_cap_facts *f)
{
	return t->used && t->dqpn == f->dqpn && t->sqpn == f->sqpn && t->vni == f->vni &&
	       t->roce == f->roce && rwy_ip_eq(&t->src, &f->src) && rwy_ip_eq(&t->dst, &f->dst);
}

static const struct gw_cap_flow_text *flow_text(struct gw_cap_texts *all, const struct gw_cap_facts *f)
{
	uint64_t a[2], b[2], h;
	struct gw_cap_flow_text *t;

	memcpy(a, f->src.b, 16);
	memcpy(b, f->dst.b, 16);
	h = a[0] + a[1] * 3 + (b[0] + b[1]) * 5 + ((uint64_t)f->dqpn << 24 | f->sqpn) + f->vni;
	h *= 0x9e3779b97f4a7c15u;
	t = &all->v[(h >> 40) % GW_CAP_FLOWS];
	if (!flow_is(t, f))
		flow_write(t, f);
	return t;
}

/* --- comments --------------------------------------------------------------------------------- */

static char *add_events(char *to, unsigned events)
{
	static const struct {
		enum gw_cap_event bit;
		const char *name;
	} names[] = {{GW_CAP_NAK, "nak"}, {GW_CAP_RNR, "rnr"}, {GW_CAP_ERROR, "error"},
	    {GW_CAP_DROPPED, "drop"}, {GW_CAP_AGAIN, "retransmit"}};
	const char *before = " event=";

	for (unsigned i = 0; events && i < sizeof(names) / sizeof(names[0]); i++)
		if (events & names[i].bit) {
			to = stpcpy(stpcpy(to, before), names[i].name);
			before = ",";
		}
	return to;
}

size_t gw_cap_comment(
    struct gw_cap_texts *texts, char out[GW_CAP_COMMENT], const struct gw_cap_facts *f, unsigned events)
{
	const struct gw_cap_flow_text *t = f->ip ? flow_text(texts, f) : NULL;
	char *to = stpcpy(stpcpy(out, "stage="), gw_cap_stage_name[f->stage]);

	if (t)
		to = mempcpy(to, t->text, t->flow_len);
	to = stpcpy(stpcpy(to, " decision="), gw_cap_decision_name[f->decision]);
	if (f->reason)
		to = stpcpy(stpcpy(to, " reason="), gw_cap_reason_name(f->reason));
	if (t)
		to = mempcpy(to, t->text + t->flow_len, t->conn_len);
	to = add_events(to, events);
	*to = 0;
	return (size_t)(to - out);
}
