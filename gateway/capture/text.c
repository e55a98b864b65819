/* SPDX-License-Identifier: Apache-2.0 */
/* The comment of a captured packet. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/siphash.h"
#include "gateway/capture/capture.h"
#include "rwy/endian.h"

static void add(char *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(char *out, const char *fmt, ...)
{
	const size_t used = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + used, GW_CAP_COMMENT - used, fmt, ap);
	va_end(ap);
}

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

static void add_flow(char *out, const struct gw_cap_facts *f)
{
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];

	if (!f->ip)
		return;
	add(out, " flow=");
	if (f->vni)
		add(out, "vni%u:", f->vni);
	add(out, "%s>%s", ip_text(&f->src, src), ip_text(&f->dst, dst));
	if (f->roce)
		add(out, "/0x%x", f->dqpn);
}

static void add_events(char *out, unsigned events)
{
	static const struct {
		enum gw_cap_event bit;
		const char *name;
	} names[] = {{GW_CAP_NAK, "nak"}, {GW_CAP_RNR, "rnr"}, {GW_CAP_ERROR, "error"},
	    {GW_CAP_DROPPED, "drop"}, {GW_CAP_AGAIN, "retransmit"}};
	const char *before = " event=";

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (events & names[i].bit) {
			add(out, "%s%s", before, names[i].name);
			before = ",";
		}
}

void gw_cap_comment(char out[GW_CAP_COMMENT], const struct gw_cap_facts *f, unsigned events)
{
	*out = 0;
	add(out, "stage=%s", gw_cap_stage_name[f->stage]);
	add_flow(out, f);
	add(out, " decision=%s", gw_cap_decision_name[f->decision]);
	if (f->reason)
		add(out, " reason=%s", gw_cap_reason_name(f->reason));
	if (f->roce && f->sqpn)
		add(out, " conn=%016" PRIx64, connection_of(f));
	add_events(out, events);
}
