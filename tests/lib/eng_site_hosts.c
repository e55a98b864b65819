/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/eng_site_hosts.h"

#include "roce/psn.h"

struct sh_b sh_b;
uint32_t sh_tenant;
bool sh_quiet;

static const uint8_t host_a[4] = {10, 1, 0, 3}, host_b[4] = {10, 2, 0, 3};

void sh_b_sends(roce_psn psn, uint8_t opcode, uint8_t syndrome)
{
	const struct roce_opinfo *op = roce_op(opcode);
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = SH_QPN_A,
	    .syndrome = syndrome,
	    .msn = sh_b.msn,
	    .original = 77,
	    .payload_len = op->op == ROCE_OP_READ_RESP ? SH_PMTU : 0};

	memcpy(m.src, host_b, 4);
	memcpy(m.dst, host_a, 4);
	sp_host_sends_as(SP_SITE_B, sh_tenant, &m);
}

void sh_b_reads(roce_psn first, unsigned nth)
{
	static const uint8_t opcode[] = {ROCE_RC_READ_RESP_FIRST, ROCE_RC_READ_RESP_MIDDLE,
	    ROCE_RC_READ_RESP_MIDDLE, ROCE_RC_READ_RESP_MIDDLE, ROCE_RC_READ_RESP_LAST};

	assert_true(nth < sizeof(opcode));
	sh_b_sends(roce_psn_add(first, nth), opcode[nth], 0x1f);
}

/* READs and ATOMICs are answered by the test. */
static void b_hears(const struct sp_packet *p)
{
	const struct roce_opinfo *op = roce_op(p->opcode);

	if (p->site != SP_SITE_B || p->dqpn != SH_QPN_B || !roce_op_is_request(op) || sh_b.silent)
		return;
	if (roce_psn_after(p->psn, sh_b.epsn)) {
		sh_b.gaps++;
		sh_b.naks++;
		sh_b_sends(sh_b.epsn, ROCE_RC_ACK, 0x60);
		return;
	}
	if (p->psn != sh_b.epsn) {
		sh_b.again++;
		if (!sh_b.mute && op->op != ROCE_OP_READ_REQ && !roce_op_is_atomic(op))
			sh_b_sends(roce_psn_add(sh_b.epsn, ROCE_PSN_MASK), ROCE_RC_ACK, 0x1f);
		return;
	}
	assert_true(sh_b.done < SH_DONE);
	sh_b.opcode[sh_b.done] = p->opcode;
	sh_b.psn[sh_b.done++] = p->psn;
	sh_b.epsn = roce_psn_add(p->psn, op->op == ROCE_OP_READ_REQ ? SH_READ / SH_PMTU : 1);
	sh_b.msn = roce_psn_add(sh_b.msn, 1);
	if (!sh_b.mute && op->op != ROCE_OP_READ_REQ && !roce_op_is_atomic(op))
		sh_b_sends(p->psn, ROCE_RC_ACK, 0x1f);
}

void sh_begin(void)
{
	sh_b = (struct sh_b){.epsn = SH_FIRST};
	sh_tenant = 0;
	sh_quiet = false;
	sp_heard = b_hears;
}

void sh_ask(roce_psn psn, uint8_t opcode)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = SH_QPN_B,
	    .ack_req = !sh_quiet,
	    .va = 0x10000,
	    .rkey = 7,
	    .swap_add = 1,
	    .len = opcode == ROCE_RC_READ_REQ ? SH_READ : 64,
	    .payload_len = opcode == ROCE_RC_SEND_ONLY ? 64 : 0};

	memcpy(m.src, host_a, 4);
	memcpy(m.dst, host_b, 4);
	sp_host_sends_as(SP_SITE_A, sh_tenant, &m);
}

void sh_request(roce_psn psn)
{
	sh_ask(psn, ROCE_RC_SEND_ONLY);
	sp_run(SH_SOON);
}

void sh_connect(void)
{
	sh_request(SH_FIRST);
	assert_true(sh_acked(SH_FIRST));
	assert_int_equal(sh_b.done, 1);
}

bool sh_acked(roce_psn psn)
{
	const struct sp_host *a = &sp_host[SP_SITE_A];

	return a->acks && a->ack.psn == psn;
}

unsigned sh_executed(roce_psn psn)
{
	unsigned n = 0;

	for (unsigned i = 0; i < sh_b.done; i++)
		n += sh_b.psn[i] == psn;
	return n;
}

void sh_all_executed(roce_psn end)
{
	assert_int_equal(sh_b.done, end - SH_FIRST);
	for (unsigned i = 0; i < sh_b.done; i++)
		assert_int_equal(sh_b.psn[i], SH_FIRST + i);
}

void sh_active_dies(void)
{
	sp_link(SP_A_TO_B, SP_CUT);
	sp_link(SP_B_TO_A, SP_CUT);
	sp_kill(SP_A1);
	sp_run(SP_STEP);
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_link(SP_B_TO_A, SP_GOOD);
	sp_cable(SP_GOOD);
}

void sh_taken(unsigned flows)
{
	sp_reach(SP_A2, "alone", SH_TAKEN);
	assert_true(sp_gw[SP_A2].serves);
	assert_int_equal(sp_counters(SP_A2)->taken_over, flows);
	sp_run(2 * SH_SOON);
	assert_int_equal(sp_bytes(SP_A2, ENG_MEM_STORED), 0);
}

void sh_goes_on(roce_psn psn, roce_msn msn)
{
	const struct sp_host *a = &sp_host[SP_SITE_A];

	sh_request(psn);
	assert_true(sh_acked(psn));
	assert_int_equal(a->ack.msn, msn);
	assert_int_equal(a->naks, 0);
	assert_int_equal(sh_executed(psn), 1);
	sp_run(2 * SH_SOON);
	assert_int_equal(sp_bytes(SP_A2, ENG_MEM_STORED), 0);
	assert_int_equal(eng_custody_bytes(sp_gw[SP_A2].e), 0);
}
