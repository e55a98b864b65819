/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the RC responder: the input is a script of packets, responses, watermarks, failures and
 * time. After each step the state must be consistent: acknowledged <= accepted, no ACK past an
 * unanswered READ or the watermark, READs in order.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "roce/resp.h"
#include "roce/resp_int.h"
#include "rwy/endian.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x)                                                                                             \
	do {                                                                                                 \
		if (!(x))                                                                                    \
			__builtin_trap();                                                                    \
	} while (0)

struct in {
	const uint8_t *p;
	size_t n;
};

static uint8_t u8(struct in *in)
{
	if (!in->n)
		return 0;
	in->n--;
	return *in->p++;
}

static uint32_t u16(struct in *in)
{
	uint32_t hi = u8(in);

	return hi << 8 | u8(in);
}

/* A PSN as a distance: near, or anywhere. */
static roce_psn psn_at(struct in *in, roce_psn from)
{
	uint8_t d = u8(in);

	return roce_psn_add(from, d == 0x80 ? u16(in) << 8 | u8(in) : (uint32_t)(int8_t)d);
}

static uint32_t dist(roce_psn from, roce_psn to)
{
	return (to - from) & ROCE_PSN_MASK;
}

struct fuzz {
	struct roce_resp r;
	roce_psn reach; /* end of what the watermark, responses and NAKs allow to be acknowledged */
	rwy_time now;
};

static void reach(struct fuzz *f, roce_psn psn)
{
	if (roce_psn_after(psn, f->reach))
		f->reach = psn;
}

static void check(struct fuzz *f)
{
	const struct roce_resp *r = &f->r;
	uint32_t all = dist(r->start, r->epsn);
	roce_psn last = r->acked;
	roce_msn msn;

	CHECK(all <= ROCE_RESP_SPAN);
	CHECK(!roce_psn_after(r->acked, r->epsn) && !roce_psn_after(r->allow_psn, r->epsn));
	CHECK(!roce_psn_after(roce_resp_point(r, &msn), r->epsn));
	CHECK(!roce_psn_after(r->acked, f->reach));
	CHECK(r->rd_n <= r->rd_cap && r->rd_cap <= ROCE_RESP_RD_MAX);
	for (uint16_t i = 0; i < r->rd_n; i++) {
		const struct roce_resp_rd *d = roce_resp_rd_at(r, i);

		CHECK(d->cnt && d->served < d->cnt && (i == 0 || d->served == 0));
		CHECK(i == 0 || !roce_psn_before(d->psn, last));
		last = roce_psn_add(d->psn, d->cnt);
		CHECK(!roce_psn_after(last, r->epsn));
	}
	CHECK(!roce_resp_parks(r) || (r->rd_n && roce_resp_rd_at(r, (uint16_t)(r->rd_n - 1))->cnt == 1));
	CHECK(!r->pmtu || roce_resp_pmtu_ok(r->pmtu));
}

static void step_request(struct fuzz *f, struct in *in)
{
	uint8_t ext[32] = {0}, opcode = u8(in), sel = u8(in);
	const uint16_t lens[8] = {0, 1, 100, 256, 512, 1024, 4096, 4097};
	struct roce_pkt pkt = {.opcode = opcode & 0x80 ? u8(in) : opcode % 0x18, .ext = ext, .bth = ext};
	struct roce_resp_act act;
	roce_psn before = f->r.epsn;

	pkt.info = roce_op(pkt.opcode);
	if (!roce_op_is_valid(pkt.info))
		return;
	pkt.psn = sel & 1 ? f->r.epsn : psn_at(in, f->r.epsn);
	pkt.ack_req = sel & 2;
	pkt.payload_len = pkt.info->flags & ROCE_F_PAYLOAD ? lens[sel >> 5] : 0;
	rwy_put32(ext + 12, sel & 4 ? pkt.payload_len : sel & 8 ? u16(in) << 16 | u16(in) : u16(in));
	roce_resp_recv(&f->r, &pkt, &act, f->now);
	CHECK(act.verdict < ROCE_RESP_VERDICT_COUNT);
	if (act.verdict == ROCE_RESP_ACCEPT) {
		CHECK(pkt.psn == before && dist(before, f->r.epsn) == (act.psn_cnt ? act.psn_cnt : 1));
		CHECK(act.msn == f->r.msn);
	} else {
		CHECK(f->r.epsn == before);
	}
	if (act.verdict == ROCE_RESP_DUP_READ)
		CHECK(act.psn_cnt <= dist(pkt.psn, before));
}

static void step_response(struct fuzz *f, struct in *in)
{
	static const uint8_t ops[] = {ROCE_RC_READ_RESP_FIRST, ROCE_RC_READ_RESP_MIDDLE,
	    ROCE_RC_READ_RESP_LAST, ROCE_RC_READ_RESP_ONLY, ROCE_RC_ATOMIC_ACK, ROCE_RC_ACK,
	    ROCE_RC_SEND_ONLY, 0xff};
	roce_psn from = f->r.epsn, psn;
	uint8_t op = ops[u8(in) & 7];

	if (f->r.rd_n) {
		const struct roce_resp_rd *d = roce_resp_rd_at(&f->r, 0);

		from = roce_psn_add(d->psn, d->served);
	}
	psn = psn_at(in, from);
	if (roce_resp_response(&f->r, psn, op) == ROCE_RESP_SERVE) {
		CHECK(psn == from && f->r.acked == roce_psn_add(psn, 1));
		CHECK(roce_op(f->r.serve_opcode)->op == roce_op(op)->op);
		reach(f, roce_psn_add(psn, 1));
	}
}

static void step_flush(struct fuzz *f)
{
	struct roce_resp_out o;
	unsigned n = 0;

	while (roce_resp_flush(&f->r, &o, f->now)) {
		CHECK(roce_resp_started(&f->r) && ++n < 4);
		if (roce_aeth_type(o.syndrome) == ROCE_AETH_ACK) {
			CHECK(roce_psn_before(o.psn, f->reach));
			CHECK(!f->r.rd_n || roce_psn_before(o.psn, roce_resp_rd_at(&f->r, 0)->psn));
		} else if (o.syndrome == 0x60) {
			CHECK(o.psn == f->r.epsn && !roce_psn_after(o.psn, f->reach));
		} else {
			CHECK(roce_resp_broken(&f->r) && o.psn == f->r.fail_psn &&
			      !roce_psn_after(o.psn, f->r.epsn));
			reach(f, o.psn); /* it acknowledges what is before */
		}
	}
}

static void step_other(struct fuzz *f, struct in *in)
{
	roce_psn psn;

	switch (u8(in) & 7) {
	case 0:
		roce_resp_set_pmtu(&f->r, u16(in));
		break;
	case 1:
		psn = psn_at(in, f->r.epsn);
		roce_resp_fail(&f->r, psn, (uint8_t)(0x60 | (1 + u8(in) % 3)));
		CHECK(roce_resp_broken(&f->r));
		break;
	case 2:
		if (!roce_resp_started(&f->r))
			roce_resp_go(&f->r, u16(in));
		break;
	case 3:
		if (f->r.acked != f->r.start || dist(f->r.start, f->r.epsn) == ROCE_RESP_SPAN)
			break;
		psn = psn_at(in, f->r.epsn);
		roce_resp_rewind(&f->r, psn);
		f->reach = psn;
		break;
	case 4: /* the host repeats what is no longer kept */
		if (f->r.state >= ROCE_RS_FAILED && f->r.epsn != f->r.start) {
			roce_resp_lost(&f->r, roce_psn_add(f->r.start, u8(in) % dist(f->r.start, f->r.epsn)));
			break;
		}
		f->now += (rwy_dur)u8(in) * RWY_MS;
		break;
	default:
		f->now += (rwy_dur)u8(in) * RWY_MS;
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct in in = {data, size};
	struct fuzz f = {.now = RWY_SEC};
	uint8_t how = u8(&in);

	f.reach = how & 1 ? 0xfffffe : u16(&in) << 8;
	roce_resp_init(&f.r, f.reach, how & 2 ? 256u << (how >> 4) % 5 : 0);
	if (how & 4)
		roce_resp_go(&f.r, how & 8 ? 0xffffff : 0);
	while (in.n) {
		uint8_t c = u8(&in);

		if (c & 8) { /* mode near: allowed when accepted */
			roce_resp_allow(&f.r, f.r.epsn, f.r.msn);
			reach(&f, f.r.allow_psn);
		}
		switch (c & 7) {
		case 0:
		case 1:
		case 2:
			step_request(&f, &in);
			break;
		case 3:
		case 4:
			step_response(&f, &in);
			break;
		case 5:
			roce_resp_allow(&f.r, psn_at(&in, f.r.allow_psn), u8(&in));
			reach(&f, f.r.allow_psn);
			break;
		case 6:
			step_flush(&f);
			break;
		case 7:
			step_other(&f, &in);
			break;
		}
		check(&f);
	}
	roce_resp_fini(&f.r);
	return 0;
}
