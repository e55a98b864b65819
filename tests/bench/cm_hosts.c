/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/cm_hosts.h"

#include <string.h>

#include "roce/cm.h"
#include "rwy/endian.h"
#include "tests/lib/rc_pkt.h"
#include "tests/lib/roce_cm_mad.h"

#define BURST  32
#define COMM_A 0x1000000u
#define COMM_B 0x2000000u
#define QPN_A  0x10000u
#define QPN_B  0x80000u
#define PSN_A  100 /* of host A's requests */
#define ETH    14

enum state { ASKED = 1, UP, WRITTEN, ENDING, ENDED };

struct conn {
	uint8_t state;
	uint32_t to_b, to_a; /* QPNs that hosts A and B send to */
	rwy_time asked;
};

static struct fp_lab *l;
static struct conn conn[CMH_CONNS];
static struct cmh_stats st;

struct cmh_stats *cmh_begin(struct fp_lab *lab)
{
	l = lab;
	return &st;
}

/* A packet of host number i % CMH_HOSTS of site s to its relay. */
static void emit(enum fp_site s, unsigned i, struct rc_mk *m)
{
	static uint8_t frame[ETH + RC_PKT_MAX], front[96];
	uint32_t len;

	memcpy(m->src, (uint8_t[4]){10, (uint8_t)(s + 1), 0, (uint8_t)(2 + i % CMH_HOSTS)}, 4);
	memcpy(m->dst, fp_relay_ip(s).b + 12, 4);
	len = rc_pkt_make(frame + ETH, m);
	if (fp_front(l, s, len, front) != ETH)
		fp_die("frames have no Ethernet header");
	memcpy(frame, front, ETH);
	fp_arrive(&l->gw[s].port[FP_LAN], fp_copy(l, frame, ETH + len));
}

static void send_mad(enum fp_site s, unsigned i, const uint8_t mad[256])
{
	emit(s, i,
	    &(struct rc_mk){.opcode = 0x64,
	        .dqpn = 1,
	        .qkey = 0x80010000,
	        .src_qpn = 1,
	        .payload = mad,
	        .payload_len = 256});
}

void cmh_ask(void)
{
	const unsigned i = st.began;

	struct rwy_ip src = rwy_ip_from4((uint8_t[4]){10, 1, 0, (uint8_t)(2 + i % CMH_HOSTS)});
	struct cp_req q = {.tid = i + 1,
	    .comm = COMM_A + i,
	    .qpn = QPN_A + i,
	    .psn = PSN_A,
	    .mtu = 3,
	    .retry = 7,
	    .rnr = 7,
	    .timeout = 18,
	    .resp_res = 8,
	    .init_depth = 8};
	uint8_t mad[256], *b = mad + 24, *ipcm = b + 140;

	memcpy(q.local_gid, src.b, 16);
	memcpy(q.remote_gid, fp_relay_ip(FP_A).b, 16);
	cp_make_req(mad, &q);
	cp_be(b + 8, 0x0000000001060000 | (CMH_PORT + i % CMH_HOSTS), 8);
	ipcm[1] = 0x40; /* IP-CM header, IPv4 */
	cp_be(ipcm + 2, 40000, 2);
	memcpy(ipcm + 16, src.b + 12, 4);
	memcpy(ipcm + 32, fp_relay_ip(FP_A).b + 12, 4);
	conn[i] = (struct conn){.state = ASKED, .asked = gw_now()};
	st.began++;
	send_mad(FP_A, i, mad);
}

static void disconnect(unsigned i)
{
	uint8_t mad[256];

	conn[i].state = ENDING;
	cp_make_dreq(mad, i + 1, COMM_A + i, COMM_B + i, conn[i].to_b);
	send_mad(FP_A, i, mad);
}

static void add(struct cmh_series *s, unsigned i)
{
	s->v[s->n++ % CMH_CONNS] = (double)(gw_now() - conn[i].asked) / (double)RWY_MS;
}

static struct conn *conn_of(uint32_t number, uint32_t base)
{
	if (number - base >= st.began)
		fp_die("a packet of no connection");
	return &conn[number - base];
}

static void answered(struct conn *c, const struct roce_cm_msg *m)
{
	unsigned i = (unsigned)(c - conn);
	uint8_t mad[256];

	if (c->state != ASKED)
		return;
	add(&st.setup, i);
	c->state = UP;
	c->to_b = m->qpn;
	st.up++;
	cp_make_ids(mad, ROCE_CM_RTU, i + 1, COMM_A + i, COMM_B + i);
	send_mad(FP_A, i, mad);
	emit(FP_A, i,
	    &(struct rc_mk){.opcode = 0x0a,
	        .psn = PSN_A,
	        .ack_req = true,
	        .dqpn = c->to_b,
	        .va = 0x1000,
	        .rkey = 1,
	        .len = 256,
	        .payload_len = 256});
}

static void hear_a(const struct roce_pkt *p)
{
	struct roce_cm_msg m;
	struct conn *c;

	if (!roce_is_gsi(p)) {
		c = conn_of(p->dqpn, QPN_A);
		if (p->info->op != ROCE_OP_ACK || roce_aeth_type(roce_aeth_syndrome(p)) != ROCE_AETH_ACK)
			fp_die("host A got no ACK");
		if (c->state != UP)
			return;
		c->state = WRITTEN;
		st.written++;
		if (!st.keep)
			disconnect((unsigned)(c - conn));
		return;
	}
	if (roce_cm_parse(p, &m) != 0)
		fp_die("a CM message does not parse");
	c = conn_of(m.remote_comm_id, COMM_A);
	if (m.attr == ROCE_CM_REP) {
		answered(c, &m);
	} else if (m.attr == ROCE_CM_DREP && c->state == ENDING) {
		c->state = ENDED;
		st.ended++;
	} else if (m.attr == ROCE_CM_REJ) {
		st.refused++;
	}
}

static void hear_b(const struct roce_pkt *p)
{
	struct cp_rep rep = {.psn = 200, .rnr = 7, .resp_res = 8, .init_depth = 8};
	struct roce_cm_msg m;
	uint8_t mad[256];
	unsigned i;

	if (!roce_is_gsi(p)) {
		i = (unsigned)(conn_of(p->dqpn, QPN_B) - conn);
		if (p->opcode != 0x0a || p->psn != PSN_A)
			fp_die("host B got something else than the WRITE");
		add(&st.first, i);
		emit(FP_B, i,
		    &(struct rc_mk){.opcode = ROCE_RC_ACK,
		        .psn = PSN_A,
		        .dqpn = conn[i].to_a,
		        .syndrome = 0x1f,
		        .msn = 1});
		return;
	}
	if (roce_cm_parse(p, &m) != 0)
		fp_die("a CM message does not parse");
	i = (unsigned)(conn_of(m.local_comm_id, COMM_A) - conn);
	if (m.attr == ROCE_CM_REQ) {
		conn[i].to_a = m.qpn;
		rep.tid = i + 1;
		rep.comm = COMM_B + i;
		rep.remote = COMM_A + i;
		rep.qpn = QPN_B + i;
		cp_make_rep(mad, &rep);
		send_mad(FP_B, i, mad);
	} else if (m.attr == ROCE_CM_DREQ) {
		cp_make_ids(mad, ROCE_CM_DREP, m.tid, COMM_B + i, COMM_A + i);
		send_mad(FP_B, i, mad);
	}
}

void cmh_read(enum fp_site s)
{
	struct rte_mbuf *m[BURST];
	struct roce_pkt p;
	unsigned n;

	while ((n = fp_sent(&l->gw[s].port[FP_LAN], m, BURST)) > 0)
		for (unsigned k = 0; k < n; k++) {
			if (!rc_pkt_read(
			        rte_pktmbuf_mtod_offset(m[k], uint8_t *, ETH), m[k]->data_len - ETH, &p))
				fp_die("a relay sent a packet with a wrong ICRC");
			(s == FP_A ? hear_a : hear_b)(&p);
			rte_pktmbuf_free(m[k]);
		}
}
