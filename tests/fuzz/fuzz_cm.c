/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a conversation of CM messages for a small tracker. An even first byte: packets, each
 * after a 2-byte length, through the whole parser. Odd: commands of 8 bytes that become messages
 * with few names, which reach deep states sooner. The tracker must keep its limits, report each
 * connection once, and never have one queue pair in two connections.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "roce/cm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void)0 : abort())
#define CAPACITY 8
#define HALF_MAX 4

struct world {
	struct roce_cm_tab *tab;
	struct roce_cm_stats last;
	uint32_t live;
	rwy_time now;
};

static void check_event(struct world *w, const struct roce_cm_event *ev)
{
	struct roce_cm_stats s;
	const struct roce_cm_conn *c = &ev->conn;

	roce_cm_stats_get(w->tab, &s);
	CHECK(s.half_open_now <= HALF_MAX);
	CHECK(s.half_open_now + s.established_now + s.closed_now <= CAPACITY);
	CHECK(ev->superseded_count <= 4);
	CHECK(ev->superseded_count == 0 || ev->kind == ROCE_CM_ESTABLISHED);
	switch (ev->kind) {
	case ROCE_CM_NONE:
		break;
	case ROCE_CM_ESTABLISHED:
		w->live++;
		CHECK(roce_cm_find(w->tab, &c->a.ip, c->a.qpn));
		CHECK(roce_cm_find(w->tab, &c->a.ip, c->a.qpn) == roce_cm_find(w->tab, &c->b.ip, c->b.qpn));
		CHECK(c->retry_count <= 7 && c->a.rnr_retry <= 7 && c->b.rnr_retry <= 7);
		CHECK(c->a.psn <= ROCE_PSN_MASK && c->b.psn <= ROCE_PSN_MASK);
		break;
	case ROCE_CM_CLOSED:
		w->live--;
		CHECK(!roce_cm_find(w->tab, &c->a.ip, c->a.qpn));
		CHECK(!roce_cm_find(w->tab, &c->b.ip, c->b.qpn));
		break;
	}
	w->live -= ev->superseded_count;
	w->live -= (uint32_t)(s.evicted_established - w->last.evicted_established);
	CHECK(w->live == s.established_now);
	w->last = s;
}

static void step(
    struct world *w, const struct roce_cm_msg *m, const struct rwy_ip *src, const struct rwy_ip *dst)
{
	struct roce_cm_event ev;

	roce_cm_track(w->tab, m, src, dst, &ev, w->now);
	check_event(w, &ev);
	roce_cm_track(w->tab, m, src, dst, &ev, w->now); /* the same message again is never new */
	CHECK(ev.kind == ROCE_CM_NONE);
	check_event(w, &ev);
}

static void run_packets(struct world *w, const uint8_t *data, size_t size)
{
	while (size >= 2) {
		uint32_t n = (uint32_t)data[0] << 8 | data[1];
		struct roce_cm_msg m;
		struct roce_pkt p;
		uint8_t *b;

		data += 2;
		size -= 2;
		if (n > size)
			n = (uint32_t)size;
		b = malloc(n ? n : 1);
		CHECK(b);
		memcpy(b, data, n);
		if (roce_parse(b, n, &p) == ROCE_PARSE_OK && roce_cm_parse(&p, &m) == 0) {
			w->now += RWY_MS;
			step(w, &m, &p.src, &p.dst);
		}
		free(b);
		data += n;
		size -= n;
	}
}

static void run_commands(struct world *w, const uint8_t *data, size_t size)
{
	for (; size >= 8; data += 8, size -= 8) {
		struct roce_cm_msg m = {.attr = (uint16_t)(0x0f + data[0] % 9)};
		struct rwy_ip src = {{[15] = data[1] & 1}}, dst = {{[15] = !(data[1] & 1)}};

		m.tid = data[2] & 3;
		m.local_comm_id = data[3] & 3;
		m.remote_comm_id = data[4] & 3;
		m.qpn = data[5] & 3;
		m.eecn = data[5] >> 4 & 3;
		m.starting_psn = data[6] & 3;
		m.transport = data[6] & 0x80 ? ROCE_XRC : ROCE_RC;
		m.local_gid.b[15] = data[6] >> 4 & 3;
		w->now += data[7] * (RWY_SEC / 16);
		step(w, &m, &src, &dst);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct roce_cm_cfg cfg;
	struct world w = {.now = RWY_SEC};

	if (size < 1 || size > 20000)
		return 0;
	roce_cm_cfg_default(&cfg);
	cfg.capacity = CAPACITY;
	cfg.half_open_max = HALF_MAX;
	CHECK(roce_cm_tab_new(&w.tab, &cfg) == 0);
	if (data[0] & 1)
		run_commands(&w, data + 1, size - 1);
	else
		run_packets(&w, data + 1, size - 1);
	roce_cm_expire(w.tab, w.now + 3600 * RWY_SEC);
	roce_cm_stats_get(w.tab, &w.last);
	CHECK(w.last.half_open_now == 0 && w.last.closed_now == 0);
	roce_cm_tab_free(w.tab);
	return 0;
}
