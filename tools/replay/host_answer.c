/* SPDX-License-Identifier: Apache-2.0 */
/* The host: answers to READs and ATOMICs of the peer, with what the capture shows, and ACKs. */
#include <string.h>

#include "roce/icrc.h"
#include "tools/replay/host_int.h"

static void enqueue(struct rp_host *h, const struct rp_answer *a)
{
	if (h->answers == RP_ANSWERS) { /* the peer asks again */
		h->stats.dropped++;
		return;
	}
	h->answer[(h->answer_i + h->answers++) % RP_ANSWERS] = *a;
}

void rp_host_asked(struct rp_host *h, const struct roce_pkt *pkt, uint32_t msg, roce_msn msn)
{
	bool atomic = pkt->info->op != ROCE_OP_READ_REQ;
	uint32_t len = atomic ? 8 : roce_reth_len(pkt);
	uint32_t n = atomic ? 1 : roce_read_packets(len, h->cfg.conn->pmtu);

	/* The operation or size is not the captured one: there is nothing to answer with. */
	if (msg != UINT32_MAX && (h->peer->msg[msg].op != pkt->info->op || h->peer->msg[msg].psns != n))
		msg = UINT32_MAX;
	h->kept[h->kept_i++ % RP_READS_KEPT] = (struct rp_kept){
	    .psn = pkt->psn, .msn = msn, .n = n, .len = len, .msg = msg, .atomic = atomic, .used = true};
	enqueue(h, &(struct rp_answer){
	               .psn = pkt->psn, .msn = msn, .n = n, .len = len, .msg = msg, .atomic = atomic});
}

void rp_host_asked_again(struct rp_host *h, const struct roce_pkt *pkt)
{
	bool atomic = pkt->info->op != ROCE_OP_READ_REQ;

	for (unsigned i = 0; i < RP_READS_KEPT; i++) {
		const struct rp_kept *k = &h->kept[i];
		uint32_t skip = (pkt->psn - k->psn) & ROCE_PSN_MASK, len;

		if (!k->used || k->atomic != atomic || skip >= k->n)
			continue;
		len = atomic ? 8 : roce_reth_len(pkt);
		if (!atomic && len > k->len - skip * h->cfg.conn->pmtu)
			return;
		enqueue(h, &(struct rp_answer){.psn = pkt->psn,
		               .msn = k->msn,
		               .n = atomic ? 1 : roce_read_packets(len, h->cfg.conn->pmtu),
		               .skip = skip,
		               .len = len,
		               .msg = k->msg,
		               .atomic = atomic,
		               .again = true});
		return;
	}
}

/* The addresses of packets to the peer. */
static struct roce_addr address(const struct rp_host *h)
{
	struct roce_addr a = h->cfg.to;

	if (!h->cfg.as_captured)
		return a;
	return (struct roce_addr){.src = h->mine->ip,
	    .dst = h->peer->ip,
	    .dqpn = h->peer->qpn,
	    .sport = a.sport ? a.sport : 0xc000,
	    .pkey = a.pkey ? a.pkey : 0xffff,
	    .ttl = 64,
	    .migreq = a.migreq};
}

static const struct rp_pkt *captured(const struct rp_host *h, const struct rp_answer *a, uint32_t i)
{
	const struct rp_pkt *p;

	if (a->msg == UINT32_MAX)
		return NULL;
	p = &h->peer->answer[h->peer->msg[a->msg].answer + a->skip + i];
	return p->len ? p : NULL;
}

static void answer_read(struct rp_host *h, const struct rp_answer *a, uint32_t i)
{
	static const uint8_t zeros[4096];
	uint8_t out[4096 + ROCE_BUILD_MAX];
	const uint32_t pmtu = h->cfg.conn->pmtu, at = i * pmtu;
	const struct rp_pkt *p = captured(h, a, i);
	struct roce_addr to = address(h);
	struct roce_pkt pkt;
	struct roce_read_resp r = {.opcode = roce_resp_read_opcode(i, a->n),
	    .syndrome = ROCE_AETH_CREDIT_INVALID,
	    .psn = roce_psn_add(a->psn, i),
	    .msn = a->msn,
	    .payload = zeros,
	    .len = a->len - at < pmtu ? a->len - at : pmtu};

	if (p)
		rp_packet_get(h->cfg.schedule, p, &pkt);
	if (p && pkt.info->op == ROCE_OP_READ_RESP && pkt.payload_len >= r.len)
		r.payload = pkt.payload;
	h->cfg.send(h->cfg.ctx, out, roce_build_read_resp(out, &to, &r));
}

static void answer_atomic(struct rp_host *h, const struct rp_answer *a)
{
	const struct rp_pkt *p = captured(h, a, 0);
	struct roce_addr to = address(h);
	uint8_t out[ROCE_BUILD_MAX];
	struct roce_pkt pkt;
	uint64_t original = 0;

	if (p)
		rp_packet_get(h->cfg.schedule, p, &pkt);
	if (p && pkt.info->op == ROCE_OP_ATOMIC_ACK)
		original = roce_atomic_original(&pkt);
	h->cfg.send(h->cfg.ctx, out,
	    roce_build_atomic_ack(out, &to, a->psn, ROCE_AETH_CREDIT_INVALID, a->msn, original));
}

/* The next packet of the oldest series. */
static void answer_one(struct rp_host *h)
{
	struct rp_answer *a = &h->answer[h->answer_i % RP_ANSWERS];

	if (!a->again)
		(void)roce_resp_response(&h->resp, roce_psn_add(a->psn, a->i),
		    a->atomic ? ROCE_RC_ATOMIC_ACK : roce_resp_read_opcode(a->i, a->n));
	if (a->atomic)
		answer_atomic(h, a);
	else
		answer_read(h, a, a->i);
	if (++a->i < a->n)
		return;
	h->answer_i++;
	h->answers--;
}

unsigned rp_host_answer(struct rp_host *h, unsigned burst, rwy_time now)
{
	struct roce_resp_out out;
	unsigned n = 0;

	for (; n < burst; n++) {
		if (roce_resp_flush(&h->resp, &out, now)) {
			struct roce_addr to = address(h);
			uint8_t ack[ROCE_BUILD_MAX];

			h->cfg.send(
			    h->cfg.ctx, ack, roce_build_ack(ack, &to, out.psn, out.syndrome, out.msn));
		} else if (h->answers) {
			answer_one(h);
		} else {
			break;
		}
	}
	return n;
}
