/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/replay/live/live.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/random.h"
#include "roce/cm.h"
#include "roce/icrc.h"

#define BURST    64u
#define RX_BURST 256u
#define RX_MAX   65536u
#define QPN_MIN  0x1000u
#define QPN_SPAN 0x700000u
#define SAY      RWY_SEC
#define IP6_MORE 20            /* an IPv6 header is longer by so much */
#define LINGER   (2 * RWY_SEC) /* the other side answers nothing any more; connections end */
#define LOOK     (100 * RWY_MS)

static rwy_time clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (rwy_time)ts.tv_sec * RWY_SEC + (rwy_time)ts.tv_nsec;
}

static void host_send(void *ctx, const uint8_t *ip, uint32_t len)
{
	rp_lan_send(ctx, ip, len);
}

/* --- beginning ------------------------------------------------------------------------------ */

/* The side that is played; -1: the connection is between other hosts. */
static int side_of(const struct rp_live_cfg *cfg, const struct rp_conn *c)
{
	for (int i = 0; i < 2; i++)
		if (rwy_ip_eq(&c->side[i].ip, &cfg->as) && rwy_ip_eq(&c->side[!i].ip, &cfg->with))
			return i;
	return -1;
}

static uint32_t longest(const struct rp_conn *c)
{
	uint32_t most = 0;

	for (unsigned i = 0; i < 2; i++) {
		for (uint32_t k = 0; k < c->side[i].pkts; k++)
			most = c->side[i].pkt[k].len > most ? c->side[i].pkt[k].len : most;
		for (uint32_t k = 0; k < c->side[i].answers; k++)
			most = c->side[i].answer[k].len > most ? c->side[i].answer[k].len : most;
	}
	return most;
}

/* Bytes that a packet gets longer when its hosts get addresses of the other family. */
static uint32_t longer(const struct rp_conn *c, const struct rp_lan *lan)
{
	return rwy_ip_is4(&c->side[0].ip) && !rwy_ip_is4(&lan->ip) ? IP6_MORE : 0;
}

static int choose(struct rp_live *l, struct rp_error *err)
{
	const struct rp_schedule *s = l->cfg.schedule;

	for (uint32_t i = 0; i < s->conns; i++) {
		int side = side_of(&l->cfg, &s->conn[i]);

		if (side < 0)
			continue;
		if (longest(&s->conn[i]) + longer(&s->conn[i], l->lan) > l->lan->mtu)
			return rp_fail(err, "%s: its MTU is %u, the capture has packets of %u bytes",
			    l->lan->name, l->lan->mtu, longest(&s->conn[i]) + longer(&s->conn[i], l->lan));
		l->mine[l->conns] =
		    (struct rp_end){i, l->qpn + l->conns, (roce_psn)base_random64() & ROCE_PSN_MASK};
		l->conn[l->conns].conn = &s->conn[i];
		l->conn[l->conns++].side = (unsigned)side;
	}
	return l->conns ? 0 : rp_fail(err, "the capture has no RC connection between these two hosts");
}

int rp_live_new(struct rp_live **out, const struct rp_live_cfg *cfg, struct rp_lan *lan, struct rp_pair *pair,
    struct rp_error *err)
{
	const uint32_t n = cfg->schedule->conns;
	struct rp_live *l = calloc(1, sizeof(*l));

	if (!l)
		return rp_fail(err, "not enough memory");
	l->cfg = *cfg;
	l->lan = lan;
	l->pair = pair;
	l->conn = calloc(n + 1u, sizeof(*l->conn));
	l->mine = calloc(n + 1u, sizeof(*l->mine));
	l->next = calloc(n + 1u, sizeof(*l->next));
	l->qpn = QPN_MIN + (uint32_t)(base_random64() % QPN_SPAN);
	if (!l->conn || !l->mine || !l->next) {
		rp_live_free(l);
		return rp_fail(err, "not enough memory");
	}
	if (choose(l, err) != 0) {
		rp_live_free(l);
		return -1;
	}
	if (rp_live_cm_new(l) != 0) {
		rp_live_free(l);
		return rp_fail(err, "not enough memory");
	}
	*out = l;
	return 0;
}

void rp_live_free(struct rp_live *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; l->conn && i < l->conns; i++)
		if (l->conn[i].host.sent_at)
			rp_host_fini(&l->conn[i].host);
	rp_live_cm_free(l);
	free(l->conn);
	free(l->mine);
	free(l->next);
	free(l);
}

/* A host without CM begins at its time, one with CM when its connection is set up. */
static int hosts_start(struct rp_live *l, struct rp_error *err)
{
	const rwy_dur wait = l->cfg.schedule->first - rp_live_base(l);
	const rwy_time first = l->began + (l->cfg.speed > 0 ? (rwy_dur)((double)wait / l->cfg.speed) : 0);

	for (uint32_t i = 0; i < l->conns; i++) {
		struct rp_live_conn *k = &l->conn[i];
		struct rp_host_cfg c;

		rp_host_cfg_default(&c);
		c.schedule = l->cfg.schedule;
		c.conn = k->conn;
		c.side = k->side;
		c.speed = l->cfg.speed;
		c.as_captured = false;
		c.to = (struct roce_addr){.src = l->lan->ip,
		    .dst = l->cfg.to,
		    .dqpn = l->pair->theirs[i].qpn,
		    .sport = (uint16_t)(RP_LIVE_SPORT | (l->mine[i].qpn & 0x3fff)),
		    .pkey = RP_LIVE_PKEY,
		    .ttl = RP_LIVE_TTL};
		c.sq_psn = l->mine[i].psn;
		c.rq_psn = l->pair->theirs[i].psn;
		c.patience = l->cfg.patience;
		c.send = host_send;
		c.ctx = l->lan;
		if (rp_host_init(&k->host, &c, l->cm[i].setup.steps ? RWY_NEVER : first) != 0)
			return rp_fail(err, "not enough memory");
		l->next[i] = l->began;
	}
	return 0;
}

/* --- playing -------------------------------------------------------------------------------- */

static void host_poll(struct rp_live *l, uint32_t i, rwy_time now)
{
	bool more = rp_host_poll(&l->conn[i].host, BURST, now);

	l->next[i] = more ? now : rp_host_next(&l->conn[i].host);
}

static void receive(struct rp_live *l)
{
	static uint8_t buf[RX_MAX];
	struct roce_pkt pkt;
	uint8_t *ip;
	uint32_t n;

	for (unsigned i = 0; i < RX_BURST && (n = rp_lan_recv(l->lan, buf, sizeof(buf), &ip)); i++) {
		rwy_time now = clock_now();
		uint32_t at;

		if (roce_parse(ip, n, &pkt) != ROCE_PARSE_OK || !rwy_ip_eq(&pkt.src, &l->cfg.to))
			continue;
		if (!roce_icrc_ok(&pkt)) {
			l->bad++;
			continue;
		}
		if (roce_is_gsi(&pkt)) {
			rp_live_cm_recv(l, &pkt, now);
			continue;
		}
		at = pkt.dqpn - l->qpn;
		if (at >= l->conns) {
			l->unknown++;
			continue;
		}
		rp_host_recv(&l->conn[at].host, &pkt, now);
		host_poll(l, at, now);
	}
}

/* Returns how much was done so far; *all: nothing is left. */
static uint64_t done_of(const struct rp_live *l, bool *all)
{
	uint64_t n = 0;

	*all = true;
	for (uint32_t i = 0; i < l->conns; i++) {
		const struct rp_host *h = &l->conn[i].host;

		n += h->stats.completed + h->stats.received;
		*all &= rp_host_sent_all(h) && (h->failed || rp_host_got_all(h));
	}
	return n;
}

static uint64_t all_of(const struct rp_live *l)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < l->conns; i++)
		n += (uint64_t)l->conn[i].conn->side[0].msgs + l->conn[i].conn->side[1].msgs;
	return n;
}

static void wait_until(struct rp_live *l, rwy_time at)
{
	struct pollfd p[2] = {{.fd = l->lan->fd, .events = POLLIN}, {.fd = l->pair->fd, .events = POLLIN}};
	rwy_time now = clock_now();
	rwy_dur d = rwy_since(now, rwy_time_min(at, now + LOOK));
	struct timespec ts = {(time_t)(d / RWY_SEC), (long)(d % RWY_SEC)};

	(void)ppoll(p, 2, &ts, NULL);
}

struct course {
	uint64_t done;
	rwy_time moved, said, until; /* until: the end, when it is known */
	rwy_time both;               /* when both sides had all; RWY_NEVER */
	bool told, theirs;
};

/* False: it is over. */
static bool goes_on(struct rp_live *l, struct course *c, rwy_time now)
{
	bool all, gone = false;
	uint64_t done = done_of(l, &all);

	if (done != c->done)
		c->moved = now;
	c->done = done;
	if (all && !c->told) {
		c->told = true;
		l->ended = now;
		rp_pair_done(l->pair);
	}
	c->theirs = c->theirs || rp_pair_is_done(l->pair, &gone);
	if (gone && !c->theirs && !c->told)
		l->alone = true;
	if (c->told && c->theirs)
		c->both = rwy_time_min(c->both, now);
	if (c->both <= now && rp_live_cm_over(l))
		c->until = now;
	else if (gone || c->both <= now)
		/* the last ACK or DREP may be lost: repeats are answered a little longer */
		c->until = rwy_time_min(c->until, now + LINGER);
	l->stopped = *l->cfg.stop;
	l->stalled = rwy_since(c->moved, now) > l->cfg.stall;
	if (l->cfg.progress && rwy_since(c->said, now) > SAY) {
		c->said = now;
		l->cfg.progress(done, all_of(l));
	}
	return !l->stopped && !l->stalled && now < c->until;
}

static void play(struct rp_live *l)
{
	struct course c = {.moved = l->began, .said = l->began, .until = RWY_NEVER, .both = RWY_NEVER};
	rwy_time now = l->began, look = 0;

	for (;;) {
		rwy_time at = rp_live_cm_poll(l, c.both <= now, now);

		for (uint32_t i = 0; i < l->conns; i++) {
			if (l->next[i] <= now)
				host_poll(l, i, now);
			at = rwy_time_min(at, l->next[i]);
		}
		if (now >= look) { /* a look at everything takes time */
			if (!goes_on(l, &c, now))
				break;
			look = now + RWY_MS;
		}
		if (at > now)
			wait_until(l, at);
		receive(l);
		now = clock_now();
	}
	if (!c.told)
		l->ended = now;
}

int rp_live_run(struct rp_live *l, struct rp_error *err)
{
	l->pair->mine = l->mine;
	l->pair->ends = l->conns;
	if (rp_pair_agree(l->pair, l->cfg.schedule, &l->cfg.as, &l->lan->ip, &l->cfg.to, err) != 0 ||
	    rp_pair_begin(l->pair, err) != 0)
		return -1;
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	l->began = clock_now();
	if (hosts_start(l, err) != 0)
		return -1;
	play(l);
	for (uint32_t i = 0; i < l->conns; i++)
		rp_host_end(&l->conn[i].host);
	return 0;
}
