/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One packet of each kind that roce/ makes, and one of each opcode with the ICRC of roce/icrc.c.
 * Without an argument it checks that they parse. With a file name it writes them there as pcap, and
 * their fields to standard output, one line per packet: wire_tshark.py compares those with
 * tshark's.
 */
#include "tests/lib/roce_cm_pkt.h"

#include <stdio.h>

#include "roce/build.h"
#include "roce/icrc.h"
#include "roce/wire.h"

struct emit {
	FILE *pcap;
	unsigned count;
};

static void put32(FILE *f, uint32_t v) /* pcap: this machine's order */
{
	assert_int_equal(fwrite(&v, 4, 1, f), 1);
}

static void emit_packet(struct emit *e, const uint8_t *b, uint32_t len, const char *extra)
{
	uint8_t copy[TP_MAX], eth[14] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00};
	struct roce_pkt p;

	memcpy(copy, b, len);
	assert_int_equal(roce_parse(copy, len, &p), ROCE_PARSE_OK);
	assert_true(roce_icrc_ok(&p));
	e->count++;
	if (!e->pcap)
		return;
	if (p.is6) {
		eth[12] = 0x86;
		eth[13] = 0xdd;
	}
	put32(e->pcap, e->count);
	put32(e->pcap, 0);
	put32(e->pcap, len + sizeof(eth));
	put32(e->pcap, len + sizeof(eth));
	assert_int_equal(fwrite(eth, sizeof(eth), 1, e->pcap), 1);
	assert_int_equal(fwrite(b, len, 1, e->pcap), 1);
	printf("%s opcode=%u destqp=0x%06x psn=%u a=%u se=%u m=%u padcnt=%u %s\n", p.info->name, p.opcode,
	    p.dqpn, p.psn, p.ack_req, p.solicited, p.migreq, p.pad, extra);
}

static struct roce_addr addr(bool is6)
{
	struct roce_addr a = {
	    .dqpn = 0x00fedc, .sport = 0xc123, .pkey = 0xffff, .tos = 0x6a, .ttl = 64, .migreq = is6};

	if (is6) {
		tp_be(a.src.b, 0x20010db800000001, 8);
		tp_be(a.dst.b, 0x20010db800000002, 8);
	} else {
		a.src = rwy_ip_from4((const uint8_t[]){192, 0, 2, 1});
		a.dst = rwy_ip_from4((const uint8_t[]){198, 51, 100, 2});
	}
	return a;
}

static void emit_built(struct emit *e, bool is6)
{
	struct roce_addr a = addr(is6);
	uint8_t b[ROCE_BUILD_MAX], syn[64];
	unsigned n = 0;
	char extra[160];

	syn[n++] = roce_aeth_make(ROCE_AETH_ACK, ROCE_AETH_CREDIT_INVALID);
	syn[n++] = roce_aeth_make(ROCE_AETH_ACK, 0);
	for (int code = ROCE_NAK_PSN_SEQ; code <= ROCE_NAK_INV_RD; code++)
		syn[n++] = roce_aeth_make(ROCE_AETH_NAK, (uint8_t)code);
	for (uint8_t timer = 0; timer < 32; timer++)
		syn[n++] = roce_aeth_make(ROCE_AETH_RNR, timer);
	for (unsigned i = 0; i < n; i++) {
		snprintf(extra, sizeof(extra), "aeth.syndrome=%u aeth.msn=%u", syn[i], 0xabc000 + i);
		emit_packet(e, b, roce_build_ack(b, &a, 0xfffff0 + i % 16, syn[i], 0xabc000 + i), extra);
	}
	emit_packet(e, b, roce_build_atomic_ack(b, &a, 77, 0x1f, 78, 0x0123456789abcdef),
	    "aeth.syndrome=31 aeth.msn=78 atomicacketh.origremdt=81985529216486895");
	emit_packet(e, b, roce_build_read_req(b, &a, 79, 0xfedcba9876543210, 0xcafe0001, 0x10000),
	    "reth.va=0xfedcba9876543210 reth.r_key=0xcafe0001 reth.dmalen=65536");
	emit_packet(e, b, roce_build_cnp(b, &a), "");
}

/* tshark 4.0 guesses protocols from the first bytes of a SEND's payload: zeros prevent that. */
static void emit_opcodes(struct emit *e, bool is6)
{
	uint8_t b[TP_MAX], ext[64];

	for (unsigned k = 0; k < sizeof(ext); k++)
		ext[k] = (uint8_t)(k * 3);
	for (unsigned c = 0; c < 256; c++) {
		const struct roce_opinfo *i = roce_op((uint8_t)c);
		struct tp t = {.opcode = (uint8_t)c,
		    .is6 = is6,
		    .ttl = 64,
		    .ext = ext,
		    .ext_len = i->ext_len,
		    .pad = -1};
		struct roce_pkt p;
		uint32_t len;

		if (!roce_op_is_valid(i) || c == ROCE_OPCODE_CNP)
			continue;
		if (i->flags & ROCE_F_PAYLOAD)
			t.payload_len =
			    i->pos == ROCE_POS_FIRST || i->pos == ROCE_POS_MIDDLE ? 256 : 5 + c % 4;
		t.ack_req = c & 1;
		t.bth_flags = roce_op_ends(i) ? ROCE_BTH_SE : ROCE_BTH_MIGREQ;
		t.psn = 0x800000 + c;
		t.dqpn = 0x1000 + c;
		len = tp_make(b, &t);
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		memset(p.payload, 0, p.payload_len + p.pad);
		roce_icrc_store(&p);
		emit_packet(e, b, len, "");
		roce_icrc_set_ackreq(&p, !p.ack_req); /* the corrected ICRC, too, must satisfy the others */
		emit_packet(e, b, len, "");
	}
}

static void emit_cm(struct emit *e, bool is6)
{
	struct cp_req q = {
	    .tid = 1, .comm = 2, .qpn = 3, .psn = 0x123456, .mtu = 3, .retry = 7, .rnr = 6, .timeout = 19};
	struct cp_rep r = {.tid = 1, .comm = 4, .remote = 2, .qpn = 5, .psn = 0x654321, .rnr = 5};
	uint8_t b[TP_MAX], mad[256];

	q.local_gid[10] = q.local_gid[11] = q.remote_gid[10] = q.remote_gid[11] = 0xff;
	q.local_gid[15] = 1;
	q.remote_gid[15] = 2;
	cp_make_req(mad, &q);
	emit_packet(e, b, cp_packet(b, mad, is6, 256),
	    "cm.req.localqpn=0x000003 cm.req.startpsn=0x123456 cm.req.retrcount=0x7 cm.req.rnrretrcount=0x6 "
	    "cm.req.prim_localacktout=0x13");
	cp_make_rep(mad, &r);
	emit_packet(e, b, cp_packet(b, mad, is6, 256),
	    "cm.rep.localqpn=0x000005 cm.rep.startpsn=0x654321 cm.rep.rnrretrcount=0x5");
	cp_make_ids(mad, 0x14, 1, 2, 4);
	emit_packet(e, b, cp_packet(b, mad, is6, 256), "");
	cp_make_rej(mad, 1, 2, 4, 1, 28);
	emit_packet(e, b, cp_packet(b, mad, is6, 256), "");
	cp_make_dreq(mad, 9, 2, 4, 5);
	emit_packet(e, b, cp_packet(b, mad, is6, 256), "");
	cp_make_ids(mad, 0x16, 9, 4, 2);
	emit_packet(e, b, cp_packet(b, mad, is6, 256), "");
}

static const char *path;

static void test_emit(void **state)
{
	struct emit e = {0};

	if (path) {
		e.pcap = fopen(path, "wb");
		assert_non_null(e.pcap);
		put32(e.pcap, 0xa1b2c3d4);
		put32(e.pcap, 4u << 16 | 2);
		put32(e.pcap, 0);
		put32(e.pcap, 0);
		put32(e.pcap, 65535);
		put32(e.pcap, 1);
	}
	for (unsigned is6 = 0; is6 < 2; is6++) {
		emit_built(&e, is6);
		emit_opcodes(&e, is6);
		emit_cm(&e, is6);
	}
	assert_int_equal(e.count, 2 * (39 + 3 + 2 * 82 + 6));
	if (e.pcap)
		assert_int_equal(fclose(e.pcap), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_emit),
	};

	if (argc > 1)
		path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
