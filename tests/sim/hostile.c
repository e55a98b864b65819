/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One host tries to harm the others (F_HOSTILE). It has several times the gateways' memory
 * outstanding, or ignores ACKs, or sends to queue pairs that nobody has, or forges CM messages with
 * a host of the other site. It is a tenant of its own, or another host of the same one. The other
 * hosts are NICs. They must get what is theirs: the memory that their tenant reserved, at every
 * moment, and half of the WAN.
 */
#include "tests/lib/rc_pkt.h"
#include "tests/lib/roce_cm_mad.h"
#include "tests/sim/bounds.h"
#include "tests/sim/explore.h"

#define HOST        1 /* of the first site */
#define MAX_BAD     4
#define EVERY       (20 * RWY_US) /* a packet to a queue pair that nobody has */
#define FORGE_EVERY (20 * RWY_MS)
#define FORGED      0x40000000u /* communication IDs */
#define RESERVED    4           /* of so many parts of custody one for the others' tenant */

enum { GREEDY, DEAF, BOGUS, FORGER, WAYS };

const char *sim_hostile_way(const struct run *r)
{
	static const char *const name[] = {"greedy", "deaf", "bogus", "forging"};

	return r->faults & F_HOSTILE ? name[r->bad_way] : "";
}

static bool by_queue_pairs(const struct run *r)
{
	return r->bad_way == GREEDY || r->bad_way == DEAF;
}

/* The others are the first hosts of the sites. Its queue pairs come after theirs. */
void sim_hostile_draw(struct run *r)
{
	unsigned n;

	r->bad_rng.s = sim_next(&r->rng);
	r->bad_way = sim_below(&r->bad_rng, WAYS);
	n = by_queue_pairs(r) ? 1 + sim_below(&r->bad_rng, MAX_BAD) : 0;
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			r->qp[i][j].host = 0;
			r->qp[i][j].tenant = r->cfg.tenants ? 1 : 0;
			r->qp[i][j].qpn = 0x11 + 8 * i + j;
		}
	r->slow[0][0] = 2; /* ns a byte: together less than the LAN's rate, and it more than most WANs' */
	r->slow[0][HOST] = 5;
	r->bad_n = n;
	for (unsigned i = r->qps; i < r->qps + n; i++)
		sim_side_init(r, i, HOST, r->cfg.tenants ? 2 : 0);
}

/* A NIC that never gives up, with all its operations outstanding. */
static void begin_bad(struct run *r, struct side *s)
{
	struct sim_rng kept = r->rng;

	r->rng = r->bad_rng;
	sim_connect_qp(r, s);
	r->bad_rng = r->rng;
	r->rng = kept;
	s[0].h.cfg.seven = false;
	s[0].h.cfg.retry = 7;
	s[0].h.cfg.timeout = s[0].h.cfg.timeout_max = 20 * RWY_MS;
	s[0].deaf = r->bad_way == DEAF;
	s[0].wrs = MASS_MAX;
	for (unsigned k = 0; k < s[0].wrs; k++) {
		s[0].wr[k] = (struct rc_wr){.id = k,
		    .op = RC_WRITE,
		    .len = AREA / 2,
		    .remote = SINK,
		    .local = SRC,
		    .rkey = s[1].h.cfg.rkey};
		rc_host_post(&s[0].h, &s[0].wr[k]);
	}
	sim_pump(r, &s[0]);
}

void sim_hostile_begin(struct run *r)
{
	r->bad_qps = r->bad_n;
	r->qps += r->bad_qps;
	for (unsigned i = r->qps - r->bad_qps; i < r->qps; i++)
		begin_bad(r, r->qp[i]);
	if (!by_queue_pairs(r))
		r->bad_at = sim_now(r->w);
}

void sim_hostile_end(struct run *r)
{
	r->bad_at = RWY_NEVER;
	for (unsigned i = r->qps - r->bad_qps; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			r->qp[i][j].gone = true;
}

/* Two hosts set up a connection by CM, and name others' addresses and QPNs in it. */
static void forge(struct run *r)
{
	const struct side *v = r->qp[sim_below(&r->bad_rng, r->qps - r->bad_qps)];
	struct cp_req q = {.comm = FORGED + r->forged, .qpn = v[0].qpn, .mtu = 5, .retry = 7};
	struct cp_rep p = {.comm = FORGED - r->forged, .remote = q.comm, .qpn = v[1].qpn};
	uint8_t mad[256];

	q.tid = p.tid = ++r->forged;
	memcpy(q.local_gid, sim_host_ip(0, v[0].host).b, 16);
	memcpy(q.remote_gid, sim_host_ip(1, v[1].host).b, 16);
	cp_make_req(mad, &q);
	sim_mad_send(r, 0, HOST, HOST, r->cfg.tenants ? 2 : 0, mad);
	cp_make_rep(mad, &p);
	sim_mad_send(r, 1, HOST, HOST, r->cfg.tenants ? 2 : 0, mad);
}

static void ask_nobody(struct run *r)
{
	struct rwy_ip src = sim_host_ip(0, HOST), dst = sim_host_ip(1, sim_below(&r->bad_rng, SIM_HOSTS));
	struct rc_mk m = {.opcode = ROCE_RC_WRITE_ONLY, .ack_req = true, .len = 1024, .payload_len = 1024};
	uint8_t out[RC_PKT_MAX];

	memcpy(m.src, src.b + 12, 4);
	memcpy(m.dst, dst.b + 12, 4);
	/* A few queue pairs get many packets, most get one. */
	m.dqpn = 0x100000 +
	         (sim_chance(&r->bad_rng, .5) ? sim_below(&r->bad_rng, 8) : sim_below(&r->bad_rng, 1u << 18));
	m.psn = m.dqpn < 0x100008 ? r->bad_psn[m.dqpn & 7]++ : 0;
	sim_host_tx(r->w, 0, r->cfg.tenants ? 2 : 0, out, rc_pkt_make(out, &m));
}

void sim_hostile_tick(struct run *r, rwy_time now)
{
	if (now < r->bad_at)
		return;
	r->bad_at = now + (r->bad_way == BOGUS ? EVERY : FORGE_EVERY);
	if (r->bad_way == BOGUS)
		ask_nobody(r);
	else
		forge(r);
}

uint64_t sim_reserve(const struct sim_cfg *c)
{
	return sim_custody_bound(c->buffers, c->buf_cost) / RESERVED;
}

/* Buffers for what the others' tenant reserved and does not use are free. The engine's accounts of
 * it are checked in accounts.c. */
static void check_worker(struct run *r, unsigned site, unsigned worker)
{
	const struct eng *e = sim_worker(r->w, site, worker);
	uint64_t free = r->cfg.buffers - sim_worker_buffers(r->w, site, worker);
	struct eng_tenant_stats st;

	if (e && eng_tenant_stats(e, sim_tenant(r->w, site, 1)->idx, &st) && st.held < st.reserve &&
	    free < (st.reserve - st.held) / r->cfg.buf_cost)
		sim_fail(r, "memory that a tenant reserved is not there", &r->qp[0][site], (unsigned)free);
}

/* Each worker has buffers and reservations of its own. */
void sim_check_reserved(struct run *r)
{
	for (unsigned i = 0; i < 2 && r->cfg.tenants; i++)
		for (unsigned k = 0; k < sim_workers(r->w); k++)
			check_worker(r, i, k);
}
