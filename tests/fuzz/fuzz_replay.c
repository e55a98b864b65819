/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a capture (as fuzz_analyze.c): the schedule that comes of it is in itself right, and
 * both hosts of its connections, side by side, give each other what was captured.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "roce/icrc.h"
#include "rwy/endian.h"
#include "tools/replay/cm.h"
#include "tools/replay/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x)  ((x) ? (void)0 : abort())
#define HEAD      4
#define CONNS_MAX 4
#define STEPS_MAX 2000
#define PSNS_MAX  4096 /* of a side: a READ of 2 GiB takes long */
#define WIRE_MAX  4096

static struct wire {
	struct packet {
		unsigned to;
		uint32_t len;
		uint8_t *bytes;
	} p[WIRE_MAX];
	unsigned head, n;
} wire;

struct port {
	unsigned side;
};

static void side_check(const struct rp_side *d, const struct rp_side *peer)
{
	uint64_t psn = 0, bytes = 0;
	uint32_t pkt = 0, answers = 0, rds = 0;

	for (uint32_t i = 0; i < d->msgs; i++) {
		const struct rp_msg *m = &d->msg[i];

		CHECK(m->psn == psn && m->psns && m->pkt == pkt && m->pkts);
		CHECK(m->peers <= peer->msgs && m->answers <= rds);
		CHECK(!i || (m->at >= m[-1].at && m->arrived >= m[-1].arrived));
		if (rds < d->rds && d->rd[rds] == i) {
			CHECK(m->answer == answers);
			answers += m->psns;
			rds++;
		}
		psn += m->psns;
		pkt += m->pkts;
		bytes += m->len;
	}
	CHECK(pkt == d->pkts && answers == d->answers && rds == d->rds && bytes == d->bytes);
}

static void host_send(void *ctx, const uint8_t *ip, uint32_t len)
{
	const struct port *from = ctx;
	struct packet *p;

	if (wire.n == WIRE_MAX) /* a loss */
		return;
	p = &wire.p[(wire.head + wire.n++) % WIRE_MAX];
	p->to = !from->side;
	p->len = len;
	p->bytes = malloc(len);
	CHECK(p->bytes);
	memcpy(p->bytes, ip, len);
}

/* The packet at the head of the wire arrives. */
static void arrive(struct rp_host *h, rwy_time now)
{
	struct packet *p = &wire.p[wire.head++ % WIRE_MAX];
	struct roce_pkt pkt;

	wire.n--;
	CHECK(roce_parse(p->bytes, p->len, &pkt) == ROCE_PARSE_OK);
	/* What was captured whole has its own ICRC, and the analysis lets no wrong one pass. */
	CHECK(roce_icrc_ok(&pkt));
	rp_host_recv(&h[p->to], &pkt, now);
	free(p->bytes);
}

static void play(const struct rp_schedule *s, const struct rp_conn *c)
{
	struct rp_host *h = calloc(2, sizeof(*h));
	struct port port[2] = {{0}, {1}};
	rwy_time now = RWY_SEC;

	CHECK(h);
	for (unsigned i = 0; i < 2; i++) {
		struct rp_host_cfg cfg;

		rp_host_cfg_default(&cfg);
		cfg.schedule = s;
		cfg.conn = c;
		cfg.side = i;
		cfg.sq_psn = c->side[i].first;
		cfg.rq_psn = c->side[!i].first;
		cfg.send = host_send;
		cfg.ctx = &port[i];
		CHECK(rp_host_init(&h[i], &cfg, now) == 0);
	}
	for (unsigned step = 0; step < STEPS_MAX; step++) {
		for (unsigned i = 0; i < 2; i++)
			rp_host_poll(&h[i], 64, now);
		if (wire.n)
			arrive(h, now);
		else
			now = rwy_time_max(now + 1, rwy_time_min(rp_host_next(&h[0]), rp_host_next(&h[1])));
		if (now == RWY_NEVER)
			break;
	}
	for (unsigned i = 0; i < 2; i++) {
		CHECK(h[i].stats.completed <= c->side[i].msgs);
		CHECK(!rp_host_differences(&h[i]));
		rp_host_fini(&h[i]);
	}
	for (; wire.n; wire.n--)
		free(wire.p[wire.head++ % WIRE_MAX].bytes);
	free(h);
}

/* Steps are of the connection's hosts, and its set-up is whole. */
static void setups_check(const struct rp_schedule *s)
{
	struct rp_setup *u = calloc(s->conns + 1u, sizeof(*u));

	CHECK(u && rp_setups_make(s, u) == 0);
	for (uint32_t i = 0; i < s->conns; i++) {
		CHECK(!u[i].steps || (u[i].ready >= 2 && u[i].ready < u[i].steps));
		for (uint32_t k = 0; k < u[i].steps; k++)
			CHECK(u[i].step[k].side < 2 && (!k || u[i].step[k].cm > u[i].step[k - 1].cm));
	}
	rp_setups_free(s, u);
}

static uint64_t psns(const struct rp_side *d)
{
	return d->msgs ? d->msg[d->msgs - 1].psn + d->msg[d->msgs - 1].psns : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rp_schedule *s = rp_schedule_new();
	rwy_time now = RWY_SEC;

	CHECK(s);
	while (size >= HEAD) {
		uint32_t len = rwy_get16(data + 1), more = data[3];

		now += (rwy_dur)data[0] * data[0] * RWY_US;
		data += HEAD;
		size -= HEAD;
		if (len > size)
			len = (uint32_t)size;
		CHECK(an_frame(s->an, now, data, len, len + more, (len & 1) != 0) == 0);
		data += len;
		size -= len;
	}
	CHECK(rp_schedule_end(s) == 0);
	setups_check(s);
	for (uint32_t i = 0; i < s->conns; i++) {
		const struct rp_conn *c = &s->conn[i];

		side_check(&c->side[0], &c->side[1]);
		side_check(&c->side[1], &c->side[0]);
		if (i < CONNS_MAX && psns(&c->side[0]) <= PSNS_MAX && psns(&c->side[1]) <= PSNS_MAX)
			play(s, c);
	}
	rp_schedule_free(s);
	return 0;
}
