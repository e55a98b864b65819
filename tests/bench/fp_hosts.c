/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts: RC WRITEs with real PSNs and ICRCs, one packet of each queue pair in turn, and a
 * responder that checks packets and acknowledges those with AckReq.
 */
#include "tests/bench/fp_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roce/build.h"
#include "roce/icrc.h"
#include "roce/wire.h"
#include "rwy/endian.h"

#define BURST 32
#define QPN_A 0x000800u
#define QPN_B 0x000100u
#define SPORT 0xc000u
#define IP4   20

enum { T_FIRST, T_MIDDLE, T_LAST, T_ONLY, T_N };

/* A whole frame, and the offsets of its parts. */
struct tmpl {
	uint8_t frame[96 + 4200];
	uint32_t len;
	struct roce_pkt pkt;
};

struct qp {
	roce_psn first, psn; /* of the first packet, of the next one to send */
	unsigned at;         /* its packet within the message */
	roce_psn acked;
	roce_psn expected; /* responder */
	roce_msn msn;
	uint32_t dqpn[FP_SITES]; /* that the host of this site sends to */
};

struct fp_hosts {
	struct fp_lab *l;
	struct tmpl t[T_N];
	struct rwy_ip ip[FP_SITES], to[FP_SITES]; /* of the hosts; where each one sends to */
	uint32_t front;                           /* bytes before an IP packet on the LANs */
	struct qp *qp;
	unsigned next, window;
	unsigned phase; /* queue pair i sends only if i % fp_cfg.message is at least this */
	bool verify;
	struct fp_stats st;
};

static void ip_checksum(uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IP4; i += 2)
		sum += rwy_get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	rwy_put16(ip + 10, (uint16_t) ~(sum + (sum >> 16)));
}

static void template_make(struct fp_hosts *h, unsigned kind)
{
	static const uint8_t opcode[T_N] = {
	    ROCE_RC_WRITE_FIRST, ROCE_RC_WRITE_MIDDLE, ROCE_RC_WRITE_LAST, ROCE_RC_WRITE_ONLY};
	struct tmpl *t = &h->t[kind];
	bool reth = kind == T_FIRST || kind == T_ONLY;
	uint32_t payload = h->l->cfg.payload;
	uint32_t udp_len = 8 + 12 + (reth ? 16 : 0) + payload + 4;
	uint8_t *ip = t->frame + h->front, *udp = ip + IP4, *bth = udp + 8, *d = bth + 12, front[96];

	t->len = h->front + IP4 + udp_len;
	memcpy(t->frame, front, fp_front(h->l, FP_A, IP4 + udp_len, front));
	ip[0] = 0x45;
	ip[1] = 0x02; /* ECT(0), as RoCEv2 hosts send */
	rwy_put16(ip + 2, (uint16_t)(IP4 + udp_len));
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, h->ip[FP_A].b + 12, 4);
	memcpy(ip + 16, h->to[FP_A].b + 12, 4);
	ip_checksum(ip);
	rwy_put16(udp, SPORT);
	rwy_put16(udp + 2, ROCE_UDP_PORT);
	rwy_put16(udp + 4, (uint16_t)udp_len);
	bth[0] = opcode[kind];
	bth[1] = ROCE_BTH_MIGREQ;
	rwy_put16(bth + 2, 0xffff);
	if (reth) {
		rwy_put64(d, 0x7f0000000000);
		rwy_put32(d + 8, 0x1234);
		rwy_put32(d + 12, payload * h->l->cfg.message);
		d += 16;
	}
	for (uint32_t i = 0; i < payload; i++)
		d[i] = (uint8_t)(i * 31 + kind);
	if (roce_parse(ip, t->len - h->front, &t->pkt) != ROCE_PARSE_OK)
		fp_die("the made packet does not parse");
	roce_icrc_store(&t->pkt);
}

struct fp_hosts *fp_hosts_new(struct fp_lab *l)
{
	struct fp_hosts *h = calloc(1, sizeof(*h));
	uint8_t front[96];

	if (!h || !(h->qp = calloc(l->cfg.qps, sizeof(*h->qp))))
		fp_die("no memory");
	h->l = l;
	h->verify = true;
	h->front = fp_front(l, FP_A, 0, front);
	for (unsigned s = 0; s < FP_SITES; s++) {
		h->ip[s] = fp_host_ip(&l->cfg, (enum fp_site)s);
		h->to[s] =
		    l->cfg.relay ? fp_relay_ip((enum fp_site)s) : fp_host_ip(&l->cfg, (enum fp_site) !s);
	}
	for (unsigned i = 0; i < T_N; i++)
		template_make(h, i);
	for (unsigned i = 0; i < l->cfg.qps; i++) {
		struct qp *q = &h->qp[i];

		q->first = q->psn = q->expected = (0x123456u + i * 7919u) & ROCE_PSN_MASK;
		q->acked = (q->psn - 1) & ROCE_PSN_MASK;
		q->dqpn[FP_A] = QPN_B + i;
		q->dqpn[FP_B] = QPN_A + i;
		if (l->cfg.relay) {
			q->dqpn[FP_A] = fp_relay_pair(l, FP_A, QPN_A + i, QPN_B + i);
			q->dqpn[FP_B] = fp_relay_pair(l, FP_B, QPN_B + i, QPN_A + i);
		}
	}
	return h;
}

const struct fp_stats *fp_hosts_stats(const struct fp_hosts *h)
{
	return &h->st;
}

void fp_hosts_verify(struct fp_hosts *h, bool on)
{
	h->verify = on;
}

/* --- requester ---------------------------------------------------------------------------------- */
static unsigned kind_of(const struct qp *q, unsigned message)
{
	if (message == 1)
		return T_ONLY;
	if (q->at == 0)
		return T_FIRST;
	return q->at + 1 == message ? T_LAST : T_MIDDLE;
}

/* Fills in queue pair and PSN; the template's ICRC is corrected for these bytes. */
static void fill_in(
    const struct fp_hosts *h, const struct tmpl *t, uint8_t *frame, unsigned qp, roce_psn psn, bool ack_req)
{
	const uint32_t front = h->front;
	struct roce_pkt p = t->pkt;
	uint8_t *bth;

	p.ip = frame + front;
	p.bth = bth = frame + (t->pkt.bth - t->frame);
	p.icrc = frame + (t->pkt.icrc - t->frame);
	rwy_put16(p.ip + IP4, (uint16_t)(SPORT + (qp & 0x3fff)));
	roce_icrc_adjust(&p, p.ip + IP4, t->frame + front + IP4, 2);
	rwy_put24(bth + 5, h->qp[qp].dqpn[FP_A]);
	bth[8] = ack_req ? ROCE_BTH_ACKREQ : 0;
	rwy_put24(bth + 9, psn);
	roce_icrc_adjust(&p, bth + 5, t->pkt.bth + 5, 7);
}

void fp_hosts_window(struct fp_hosts *h, unsigned packets)
{
	h->window = packets;
}

void fp_hosts_phase(struct fp_hosts *h, unsigned phase)
{
	h->phase = phase;
}

/* The next queue pair that may send; NULL: none may. */
static struct qp *next_qp(struct fp_hosts *h)
{
	for (unsigned i = 0; i < h->l->cfg.qps; i++) {
		struct qp *q = &h->qp[h->next];
		const bool room = !h->window || ((q->psn - q->acked - 1) & ROCE_PSN_MASK) < h->window;

		if (room && (!h->phase || h->next % h->l->cfg.message >= h->phase))
			return q;
		h->next = h->next + 1 == h->l->cfg.qps ? 0 : h->next + 1;
	}
	return NULL;
}

void fp_hosts_send(struct fp_hosts *h, unsigned n)
{
	struct fp_lab *l = h->l;
	struct qp *q;

	for (; n && (q = next_qp(h)); n--) {
		unsigned kind = kind_of(q, l->cfg.message);
		const struct tmpl *t = &h->t[kind];
		struct rte_mbuf *m = fp_copy(l, t->frame, t->len);

		fill_in(h, t, rte_pktmbuf_mtod(m, uint8_t *), h->next, q->psn, kind >= T_LAST);
		q->psn = roce_psn_add(q->psn, 1);
		q->at = q->at + 1 == l->cfg.message ? 0 : q->at + 1;
		h->next = h->next + 1 == l->cfg.qps ? 0 : h->next + 1;
		fp_arrive(&l->gw[FP_A].port[FP_LAN], m);
		h->st.sent++;
	}
}

void fp_hosts_repeat(struct fp_hosts *h, unsigned n)
{
	const struct tmpl *t = &h->t[T_LAST];

	for (; n; n--) {
		struct rte_mbuf *m = fp_copy(h->l, t->frame, t->len);

		fill_in(h, t, rte_pktmbuf_mtod(m, uint8_t *), 0, h->qp[0].acked, true);
		fp_arrive(&h->l->gw[FP_A].port[FP_LAN], m);
	}
}

/* The gateway had no memory for this packet: it and what follows go again (IBA 9.7.5.2.8). */
static void go_back(struct fp_hosts *h, struct qp *q, roce_psn psn)
{
	if (!roce_psn_after(psn, q->acked) || roce_psn_after(psn, q->psn))
		return;
	h->st.sent -= (q->psn - psn) & ROCE_PSN_MASK;
	q->acked = (psn - 1) & ROCE_PSN_MASK;
	q->psn = psn;
	q->at = ((psn - q->first) & ROCE_PSN_MASK) % h->l->cfg.message;
	h->st.back++;
}

/* The first one is told. */
static void wrong(struct fp_hosts *h, const char *what, const uint8_t *bth)
{
	if (!h->st.wrong++)
		fprintf(stderr, "fp_hosts: %s: opcode 0x%02x, QPN 0x%06x, PSN 0x%06x\n", what, bth[0],
		    rwy_get24(bth + 5), rwy_get24(bth + 9));
}

static void read_ack(struct fp_hosts *h, const uint8_t *bth)
{
	uint32_t i = rwy_get24(bth + 5) - QPN_A;
	roce_psn psn = rwy_get24(bth + 9);
	struct qp *q;

	if (bth[0] == ROCE_OPCODE_CNP && i < h->l->cfg.qps) {
		h->st.cnps++; /* this host does not slow down: its window bounds it */
		return;
	}
	if (bth[0] != ROCE_RC_ACK || i >= h->l->cfg.qps) {
		wrong(h, "no answer", bth);
		return;
	}
	q = &h->qp[i];
	if (h->window && bth[12] == roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ))
		go_back(h, q, psn);
	else if (bth[12] >> 5 != 0)
		h->st.nak++;
	else if (roce_psn_before(psn, q->psn) && roce_psn_after(psn, q->acked))
		q->acked = psn;
	h->st.acks++;
}

/* --- responder ---------------------------------------------------------------------------------- */
static void acknowledge(struct fp_hosts *h, unsigned i, roce_psn psn)
{
	struct roce_addr a = {.src = h->ip[FP_B],
	    .dst = h->to[FP_B],
	    .dqpn = h->qp[i].dqpn[FP_B],
	    .sport = (uint16_t)(SPORT + (i & 0x3fff)),
	    .pkey = 0xffff,
	    .ttl = 64,
	    .migreq = true};
	struct fp_port *p = &h->l->gw[FP_B].port[FP_LAN];
	uint8_t frame[96 + ROCE_BUILD_MAX], front[96];
	uint32_t len = roce_build_ack(frame + h->front, &a, psn, 0x1f, h->qp[i].msn);

	memcpy(frame, front, fp_front(h->l, FP_B, len, front));
	fp_arrive(p, fp_copy(h->l, frame, h->front + len));
}

static void read_request(struct fp_hosts *h, const uint8_t *bth)
{
	uint32_t i = rwy_get24(bth + 5) - QPN_B;
	roce_psn psn = rwy_get24(bth + 9);
	struct qp *q;

	if (i >= h->l->cfg.qps || bth[0] < ROCE_RC_WRITE_FIRST || bth[0] > ROCE_RC_WRITE_ONLY) {
		wrong(h, "no request", bth);
		return;
	}
	q = &h->qp[i];
	if (roce_psn_after(psn, q->expected)) {
		wrong(h, "one before it is missing", bth);
		return;
	}
	if (psn == q->expected) {
		q->expected = roce_psn_add(psn, 1);
		q->msn = roce_psn_add(q->msn, bth[0] == ROCE_RC_WRITE_LAST || bth[0] == ROCE_RC_WRITE_ONLY);
		h->st.received++;
	} else {
		h->st.again++;
	}
	if (bth[8] & ROCE_BTH_ACKREQ)
		acknowledge(h, i, psn);
}

/* True if the whole packet is right, payload included. */
static bool good(const struct fp_hosts *h, const uint8_t *frame, uint32_t len)
{
	struct roce_pkt p;

	return roce_parse((uint8_t *)(uintptr_t)frame + h->front, len - h->front, &p) == ROCE_PARSE_OK &&
	       roce_icrc_ok(&p);
}

static void read_frame(struct fp_hosts *h, enum fp_site site, const uint8_t *frame, uint32_t len)
{
	const uint8_t *bth = frame + h->front + IP4 + 8;

	if (h->l->cfg.overlay != FP_PLAIN && fp_is_hostile(frame))
		h->st.hostile++;
	else if (h->verify && !good(h, frame, len))
		wrong(h, "damaged", bth);
	else if (site == FP_A)
		read_ack(h, bth);
	else
		read_request(h, bth);
}

void fp_hosts_read(struct fp_hosts *h, enum fp_site site)
{
	struct rte_mbuf *m[BURST];
	uint8_t room[96 + 4200];
	unsigned n;

	while ((n = fp_sent(&h->l->gw[site].port[FP_LAN], m, BURST)) > 0)
		for (unsigned k = 0; k < n; k++) {
			/* A packet sent again while it still waits here comes in two segments. */
			const uint8_t *frame = m[k]->pkt_len <= sizeof(room)
			                           ? rte_pktmbuf_read(m[k], 0, m[k]->pkt_len, room)
			                           : NULL;

			if (frame)
				read_frame(h, site, frame, m[k]->pkt_len);
			else
				h->st.wrong++;
			rte_pktmbuf_free(m[k]);
		}
}
