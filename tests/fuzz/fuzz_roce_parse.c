/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a packet. An accepted packet has its offsets inside, parses to the same result
 * again, and obeys the algebra of its ICRC. A refused one stays refused when only bytes after it
 * change.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "roce/build.h"
#include "roce/cm.h"
#include "roce/icrc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void)0 : abort())

static void check_offsets(const struct roce_pkt *p, const uint8_t *ip, uint32_t len)
{
	CHECK(p->ip == ip && p->len <= len);
	CHECK(p->ip_hlen >= 20 && p->ip_hlen <= 60 && p->ip_hlen % 4 == 0);
	CHECK(p->bth == ip + p->ip_hlen + 8);
	CHECK(p->ext == p->bth + ROCE_BTH_LEN);
	CHECK(p->payload == p->ext + p->info->ext_len);
	CHECK(p->icrc == p->payload + p->payload_len + p->pad);
	CHECK(p->icrc + ROCE_ICRC_LEN == ip + p->len);
	CHECK(p->payload_len <= 4096 && p->pad <= 3 && (p->payload_len + p->pad) % 4 == 0);
	CHECK(p->info == roce_op(p->opcode) && roce_op_is_valid(p->info));
	CHECK((p->info->flags & ROCE_F_PAYLOAD) || !p->payload_len);
	CHECK(p->psn <= ROCE_PSN_MASK && p->dqpn <= 0xffffff && p->ecn <= 3);
	CHECK(p->is6 == (ip[0] >> 4 == 6));
}

static void check_found_again(uint8_t *ip, const struct roce_pkt *p)
{
	struct roce_pkt again;

	roce_parse_offsets(ip, &again);
	CHECK(again.ip == p->ip && again.bth == p->bth && again.ext == p->ext && again.icrc == p->icrc);
	CHECK(again.len == p->len && again.ip_hlen == p->ip_hlen && again.is6 == p->is6);
}

static bool same(const struct roce_pkt *a, const struct roce_pkt *b)
{
	return a->ip == b->ip && a->icrc == b->icrc && a->payload == b->payload && a->info == b->info &&
	       a->psn == b->psn && a->dqpn == b->dqpn && a->payload_len == b->payload_len &&
	       a->ack_req == b->ack_req && a->sport == b->sport && rwy_ip_eq(&a->src, &b->src) &&
	       rwy_ip_eq(&a->dst, &b->dst);
}

static void check_icrc(struct roce_pkt *p)
{
	bool was_ok = roce_icrc_ok(p), was_req = p->ack_req;
	uint8_t stored[4], before[3];

	memcpy(stored, p->icrc, 4);
	roce_icrc_set_ackreq(p, !was_req);
	CHECK(roce_icrc_ok(p) == was_ok); /* a wrong ICRC never becomes right */
	roce_icrc_set_ackreq(p, was_req);
	CHECK(!memcmp(stored, p->icrc, 4));

	roce_icrc_store(p);
	CHECK(roce_icrc_ok(p));
	memcpy(before, p->bth + 5, 3);
	p->bth[6] ^= 0x5a; /* another destination QP */
	roce_icrc_adjust(p, p->bth + 5, before, 3);
	CHECK(roce_icrc_ok(p));
	p->bth[4] ^= 0xc0; /* FECN and BECN are not covered */
	CHECK(roce_icrc_ok(p));
	p->icrc[3] ^= 0x80;
	CHECK(!roce_icrc_ok(p));
}

/* A packet whose opcode is unknown can be answered: the BTH and the ICRC are inside. */
static void check_unknown(const struct roce_pkt *p, const uint8_t *ip)
{
	CHECK(p->bth == ip + p->ip_hlen + 8 && p->icrc >= p->bth + ROCE_BTH_LEN);
	CHECK(p->icrc + ROCE_ICRC_LEN == ip + p->len);
	CHECK(p->info == roce_op(p->opcode) && !roce_op_is_valid(p->info));
	CHECK(p->psn <= ROCE_PSN_MASK && p->dqpn <= 0xffffff);
	(void)roce_icrc_ok(p);
}

static void use_accessors(const struct roce_pkt *p)
{
	volatile uint64_t sink = 0;

	if (p->info->flags & ROCE_F_RETH)
		sink += roce_reth_va(p) + roce_reth_rkey(p) + roce_reth_len(p);
	if (p->info->flags & ROCE_F_AETH)
		sink += roce_aeth_syndrome(p) + roce_aeth_msn(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *b;
	struct roce_pkt p, again;
	enum roce_parse_reason r;

	if (size > 9000)
		return 0;
	b = malloc(size ? size : 1);
	CHECK(b);
	memcpy(b, data, size);
	r = roce_parse(b, (uint32_t)size, &p);
	CHECK(r < ROCE_PARSE_REASON_COUNT);
	CHECK(!memcmp(b, data, size)); /* parsing writes nothing */
	if (r == ROCE_PARSE_OK) {
		check_offsets(&p, b, (uint32_t)size);
		CHECK(roce_parse(b, p.len, &again) == ROCE_PARSE_OK && same(&p, &again));
		if (p.len > 0)
			CHECK(roce_parse(b, p.len - 1, &again) == ROCE_PARSE_TRUNCATED);
		check_found_again(b, &p);
		use_accessors(&p);
		check_icrc(&p);
	} else if (r != ROCE_PARSE_TRUNCATED && r != ROCE_PARSE_BAD_IP) {
		CHECK(p.len <= size); /* addresses and length are valid */
		CHECK(roce_parse(b, p.len, &again) == r);
		CHECK(rwy_ip_eq(&p.src, &again.src) && rwy_ip_eq(&p.dst, &again.dst));
		if (r == ROCE_PARSE_UNKNOWN_OPCODE)
			check_unknown(&p, b);
	}
	free(b);
	return 0;
}
