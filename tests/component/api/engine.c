/* SPDX-License-Identifier: Apache-2.0 */
/* The made-up gateway's engines: counters, flows, memory, and the state of a pair. */
#include <string.h>

#include "tests/component/api/gateway.h"

const struct eng_counters *eng_counters(const struct eng *e)
{
	static struct eng_counters c[GW_WORKERS_MAX];

	c[e->worker].lan_rx_packets += 1000;
	c[e->worker].lan_rx_bytes += 1000000;
	c[e->worker].drop_icrc = 7;
	return &c[e->worker];
}

static void flow_make(const struct eng *e, uint32_t i, struct eng_flow_info *f)
{
	static const char *const state[] = {"idle", "learning", "failed"};
	uint8_t v4[4] = {10, 1, (uint8_t)(i >> 8), (uint8_t)i};

	memset(f, 0, sizeof(*f));
	f->local = rwy_ip_from4(v4);
	v4[1] = 2;
	f->remote = rwy_ip_from4(v4);
	if (i % 5 == 4) /* the longest possible addresses */
	{
		memset(f->local.b, 0xfd, 16);
		memset(f->remote.b, 0xfe, 16);
	}
	f->tenant = i < fake_gateway.conf->tenants ? i : 0; /* as long as the file has enough tenants */
	f->local_qpn = 16 + i + (e->worker << 20);
	f->remote_qpn = i % 3 == 1 ? 0 : 0xffff00 + (i & 0xff);
	memcpy(f->tunnel, fake_gateway.conf->tunnel[i % fake_gateway.conf->tunnels].name, ENG_NAME_MAX);
	f->state = state[i % 3];
	f->learned = i % 2 ? "cm" : "passive";
	f->limit = i % 3 ? "window" : "path";
	f->error = i % 3 == 2 ? "the far host did not answer 7 retransmissions" : "";
	f->pmtu = 1024;
	f->requester_retry = 7;
	f->requester_timeout_max = RWY_SEC;
	f->requester_patience = i % 2 ? RWY_NEVER : 17 * RWY_SEC;
	f->ack_mode = eng_ack_mode_name(ENG_ACK_NEAR);
	f->patience = i % 2 ? 2 * RWY_SEC : 0;
	f->impatient = i % 3 == 1;
	f->responder_psn = i;
	f->tx_packets = UINT64_C(1000) * i;
	f->tx_bytes = (uint64_t)i * 1000000007;
	f->rx_bytes = UINT64_C(1234567890123);
	f->custody_bytes = f->held[ENG_MEM_CUSTODY] = 31 << 20;
	f->held[ENG_MEM_ANSWERS] = (uint64_t)i << 10;
	f->held_most = 33 << 20;
	/* As in a table, in no order; no two at the same time. */
	f->last = fake_gateway.app.start + FAKE_UPTIME - 90 * RWY_SEC -
	          ((i * 7919 % 10007) * 2 + e->worker) * RWY_SEC;
}

#define HOLE 0x80000000u

unsigned eng_flows(const struct eng *e, uint32_t *cursor, struct eng_flow_info *out, unsigned max)
{
	unsigned n = 0;

	/* An empty part: the same cursor always gives the same answer. */
	if (fake_gateway.sparse && *cursor && !(*cursor & HOLE)) {
		*cursor |= HOLE;
		return 0;
	}
	*cursor &= ~HOLE;
	for (; n < max && *cursor < fake_gateway.flows; n++)
		flow_make(e, (*cursor)++, &out[n]);
	if (*cursor >= fake_gateway.flows)
		*cursor = 0;
	return n;
}

uint32_t eng_flow_count(const struct eng *e)
{
	return fake_gateway.flows;
}

void eng_memory(const struct eng *e, struct eng_memory *out)
{
	*out = (struct eng_memory){.held = 77u << 20,
	    .most = 90u << 20,
	    .max = 96u << 20,
	    .soft = 77u << 20,
	    .reserved = 10u << 20,
	    .buf_cost = 2560,
	    .hosts = 40,
	    .waiting = e->worker,
	    .reassembly = 12,
	    .fec = 3};
	for (unsigned k = 0; k < ENG_MEM_N; k++) {
		out->kind[k].bufs = 1000 * k;
		out->kind[k].bytes = 2560000ull * k;
	}
	out->kind[ENG_MEM_UNPAIRED].max = 6u << 20;
	out->kind[ENG_MEM_ANSWERS].max = 24u << 20;
	out->kind[ENG_MEM_RECEIVED].max = 48u << 20;
}

unsigned eng_memory_hosts(const struct eng *e, uint32_t *cursor, struct eng_memory_host *out, unsigned max)
{
	unsigned n = 0;

	for (; n < max && *cursor < fake_gateway.flows; (*cursor)++, n++) {
		uint8_t v4[4] = {10, 1, (uint8_t)(*cursor >> 8), (uint8_t)*cursor};

		out[n] = (struct eng_memory_host){.addr = rwy_ip_from4(v4),
		    .held = 2560ull * *cursor,
		    .most = 9u << 20,
		    .kind = {2560ull * *cursor},
		    .sides = 2,
		    .half_open = 1};
	}
	if (*cursor >= fake_gateway.flows)
		*cursor = 0;
	return n;
}

/* One of a pair if the configuration says so. */
bool eng_standby_info(const struct eng *e, struct eng_standby_info *out)
{
	*out = (struct eng_standby_info){.state = fake_gateway.losing ? "losing"
	                                          : fake_gateway.down ? "alone"
	                                                              : "paired",
	    .other = fake_gateway.down ? "" : "ready",
	    .since = fake_gateway.app.start + FAKE_UPTIME - 90 * RWY_SEC,
	    .serves = true,
	    .site = !fake_gateway.down,
	    .term = 7,
	    .witness = "site-b",
	    .took_by = "silent",
	    .took_at = fake_gateway.app.start + FAKE_UPTIME - 120 * RWY_SEC,
	    .lost_by = fake_gateway.down ? "stuck" : "",
	    .lost_at = fake_gateway.app.start + FAKE_UPTIME - 90 * RWY_SEC,
	    .flows = fake_gateway.down ? 0 : 3,
	    .bytes = fake_gateway.down ? 0 : 1 << 20};
	return true;
}

uint64_t eng_custody_bytes(const struct eng *e)
{
	return UINT64_C(31) << 20;
}
