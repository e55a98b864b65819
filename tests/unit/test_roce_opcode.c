/* SPDX-License-Identifier: Apache-2.0 */
/* roce/opcode.c: all 256 entries against a list of its own, spelled out row by row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "roce/opcode.h"

#define OP(x)  ROCE_OP_##x
#define POS(x) ROCE_POS_##x

/* hdrs: E RDETH, D DETH, X XRCETH, R RETH, T AtomicETH, A AETH, K AtomicAckETH, I ImmDt, V IETH, P payload
 * allowed. */
static const struct row {
	uint8_t code;
	const char *name;
	uint8_t transport;
	char dir; /* q request, r response */
	uint8_t op, pos;
	const char *hdrs;
} rows[] = {
    /* clang-format off */
    {0x00, "RC_SEND_FIRST", ROCE_RC, 'q', OP(SEND), POS(FIRST), "P"},
    {0x01, "RC_SEND_MIDDLE", ROCE_RC, 'q', OP(SEND), POS(MIDDLE), "P"},
    {0x02, "RC_SEND_LAST", ROCE_RC, 'q', OP(SEND), POS(LAST), "P"},
    {0x03, "RC_SEND_LAST_WITH_IMMEDIATE", ROCE_RC, 'q', OP(SEND), POS(LAST), "IP"},
    {0x04, "RC_SEND_ONLY", ROCE_RC, 'q', OP(SEND), POS(ONLY), "P"},
    {0x05, "RC_SEND_ONLY_WITH_IMMEDIATE", ROCE_RC, 'q', OP(SEND), POS(ONLY), "IP"},
    {0x06, "RC_RDMA_WRITE_FIRST", ROCE_RC, 'q', OP(WRITE), POS(FIRST), "RP"},
    {0x07, "RC_RDMA_WRITE_MIDDLE", ROCE_RC, 'q', OP(WRITE), POS(MIDDLE), "P"},
    {0x08, "RC_RDMA_WRITE_LAST", ROCE_RC, 'q', OP(WRITE), POS(LAST), "P"},
    {0x09, "RC_RDMA_WRITE_LAST_WITH_IMMEDIATE", ROCE_RC, 'q', OP(WRITE), POS(LAST), "IP"},
    {0x0a, "RC_RDMA_WRITE_ONLY", ROCE_RC, 'q', OP(WRITE), POS(ONLY), "RP"},
    {0x0b, "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", ROCE_RC, 'q', OP(WRITE), POS(ONLY), "RIP"},
    {0x0c, "RC_RDMA_READ_REQUEST", ROCE_RC, 'q', OP(READ_REQ), POS(ONLY), "R"},
    {0x0d, "RC_RDMA_READ_RESPONSE_FIRST", ROCE_RC, 'r', OP(READ_RESP), POS(FIRST), "AP"},
    {0x0e, "RC_RDMA_READ_RESPONSE_MIDDLE", ROCE_RC, 'r', OP(READ_RESP), POS(MIDDLE), "P"},
    {0x0f, "RC_RDMA_READ_RESPONSE_LAST", ROCE_RC, 'r', OP(READ_RESP), POS(LAST), "AP"},
    {0x10, "RC_RDMA_READ_RESPONSE_ONLY", ROCE_RC, 'r', OP(READ_RESP), POS(ONLY), "AP"},
    {0x11, "RC_ACKNOWLEDGE", ROCE_RC, 'r', OP(ACK), POS(ONLY), "A"},
    {0x12, "RC_ATOMIC_ACKNOWLEDGE", ROCE_RC, 'r', OP(ATOMIC_ACK), POS(ONLY), "AK"},
    {0x13, "RC_COMPARE_SWAP", ROCE_RC, 'q', OP(CMP_SWAP), POS(ONLY), "T"},
    {0x14, "RC_FETCH_ADD", ROCE_RC, 'q', OP(FETCH_ADD), POS(ONLY), "T"},
    {0x16, "RC_SEND_LAST_WITH_INVALIDATE", ROCE_RC, 'q', OP(SEND), POS(LAST), "VP"},
    {0x17, "RC_SEND_ONLY_WITH_INVALIDATE", ROCE_RC, 'q', OP(SEND), POS(ONLY), "VP"},
    {0x20, "UC_SEND_FIRST", ROCE_UC, 'q', OP(SEND), POS(FIRST), "P"},
    {0x21, "UC_SEND_MIDDLE", ROCE_UC, 'q', OP(SEND), POS(MIDDLE), "P"},
    {0x22, "UC_SEND_LAST", ROCE_UC, 'q', OP(SEND), POS(LAST), "P"},
    {0x23, "UC_SEND_LAST_WITH_IMMEDIATE", ROCE_UC, 'q', OP(SEND), POS(LAST), "IP"},
    {0x24, "UC_SEND_ONLY", ROCE_UC, 'q', OP(SEND), POS(ONLY), "P"},
    {0x25, "UC_SEND_ONLY_WITH_IMMEDIATE", ROCE_UC, 'q', OP(SEND), POS(ONLY), "IP"},
    {0x26, "UC_RDMA_WRITE_FIRST", ROCE_UC, 'q', OP(WRITE), POS(FIRST), "RP"},
    {0x27, "UC_RDMA_WRITE_MIDDLE", ROCE_UC, 'q', OP(WRITE), POS(MIDDLE), "P"},
    {0x28, "UC_RDMA_WRITE_LAST", ROCE_UC, 'q', OP(WRITE), POS(LAST), "P"},
    {0x29, "UC_RDMA_WRITE_LAST_WITH_IMMEDIATE", ROCE_UC, 'q', OP(WRITE), POS(LAST), "IP"},
    {0x2a, "UC_RDMA_WRITE_ONLY", ROCE_UC, 'q', OP(WRITE), POS(ONLY), "RP"},
    {0x2b, "UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", ROCE_UC, 'q', OP(WRITE), POS(ONLY), "RIP"},
    {0x40, "RD_SEND_FIRST", ROCE_RD, 'q', OP(SEND), POS(FIRST), "EDP"},
    {0x41, "RD_SEND_MIDDLE", ROCE_RD, 'q', OP(SEND), POS(MIDDLE), "EDP"},
    {0x42, "RD_SEND_LAST", ROCE_RD, 'q', OP(SEND), POS(LAST), "EDP"},
    {0x43, "RD_SEND_LAST_WITH_IMMEDIATE", ROCE_RD, 'q', OP(SEND), POS(LAST), "EDIP"},
    {0x44, "RD_SEND_ONLY", ROCE_RD, 'q', OP(SEND), POS(ONLY), "EDP"},
    {0x45, "RD_SEND_ONLY_WITH_IMMEDIATE", ROCE_RD, 'q', OP(SEND), POS(ONLY), "EDIP"},
    {0x46, "RD_RDMA_WRITE_FIRST", ROCE_RD, 'q', OP(WRITE), POS(FIRST), "EDRP"},
    {0x47, "RD_RDMA_WRITE_MIDDLE", ROCE_RD, 'q', OP(WRITE), POS(MIDDLE), "EDP"},
    {0x48, "RD_RDMA_WRITE_LAST", ROCE_RD, 'q', OP(WRITE), POS(LAST), "EDP"},
    {0x49, "RD_RDMA_WRITE_LAST_WITH_IMMEDIATE", ROCE_RD, 'q', OP(WRITE), POS(LAST), "EDIP"},
    {0x4a, "RD_RDMA_WRITE_ONLY", ROCE_RD, 'q', OP(WRITE), POS(ONLY), "EDRP"},
    {0x4b, "RD_RDMA_WRITE_ONLY_WITH_IMMEDIATE", ROCE_RD, 'q', OP(WRITE), POS(ONLY), "EDRIP"},
    {0x4c, "RD_RDMA_READ_REQUEST", ROCE_RD, 'q', OP(READ_REQ), POS(ONLY), "EDR"},
    {0x4d, "RD_RDMA_READ_RESPONSE_FIRST", ROCE_RD, 'r', OP(READ_RESP), POS(FIRST), "EAP"},
    {0x4e, "RD_RDMA_READ_RESPONSE_MIDDLE", ROCE_RD, 'r', OP(READ_RESP), POS(MIDDLE), "EP"},
    {0x4f, "RD_RDMA_READ_RESPONSE_LAST", ROCE_RD, 'r', OP(READ_RESP), POS(LAST), "EAP"},
    {0x50, "RD_RDMA_READ_RESPONSE_ONLY", ROCE_RD, 'r', OP(READ_RESP), POS(ONLY), "EAP"},
    {0x51, "RD_ACKNOWLEDGE", ROCE_RD, 'r', OP(ACK), POS(ONLY), "EA"},
    {0x52, "RD_ATOMIC_ACKNOWLEDGE", ROCE_RD, 'r', OP(ATOMIC_ACK), POS(ONLY), "EAK"},
    {0x53, "RD_COMPARE_SWAP", ROCE_RD, 'q', OP(CMP_SWAP), POS(ONLY), "EDT"},
    {0x54, "RD_FETCH_ADD", ROCE_RD, 'q', OP(FETCH_ADD), POS(ONLY), "EDT"},
    {0x55, "RD_RESYNC", ROCE_RD, 'q', OP(RESYNC), POS(ONLY), "ED"},
    {0x64, "UD_SEND_ONLY", ROCE_UD, 'q', OP(SEND), POS(ONLY), "DP"},
    {0x65, "UD_SEND_ONLY_WITH_IMMEDIATE", ROCE_UD, 'q', OP(SEND), POS(ONLY), "DIP"},
    {0xa0, "XRC_SEND_FIRST", ROCE_XRC, 'q', OP(SEND), POS(FIRST), "XP"},
    {0xa1, "XRC_SEND_MIDDLE", ROCE_XRC, 'q', OP(SEND), POS(MIDDLE), "XP"},
    {0xa2, "XRC_SEND_LAST", ROCE_XRC, 'q', OP(SEND), POS(LAST), "XP"},
    {0xa3, "XRC_SEND_LAST_WITH_IMMEDIATE", ROCE_XRC, 'q', OP(SEND), POS(LAST), "XIP"},
    {0xa4, "XRC_SEND_ONLY", ROCE_XRC, 'q', OP(SEND), POS(ONLY), "XP"},
    {0xa5, "XRC_SEND_ONLY_WITH_IMMEDIATE", ROCE_XRC, 'q', OP(SEND), POS(ONLY), "XIP"},
    {0xa6, "XRC_RDMA_WRITE_FIRST", ROCE_XRC, 'q', OP(WRITE), POS(FIRST), "XRP"},
    {0xa7, "XRC_RDMA_WRITE_MIDDLE", ROCE_XRC, 'q', OP(WRITE), POS(MIDDLE), "XP"},
    {0xa8, "XRC_RDMA_WRITE_LAST", ROCE_XRC, 'q', OP(WRITE), POS(LAST), "XP"},
    {0xa9, "XRC_RDMA_WRITE_LAST_WITH_IMMEDIATE", ROCE_XRC, 'q', OP(WRITE), POS(LAST), "XIP"},
    {0xaa, "XRC_RDMA_WRITE_ONLY", ROCE_XRC, 'q', OP(WRITE), POS(ONLY), "XRP"},
    {0xab, "XRC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", ROCE_XRC, 'q', OP(WRITE), POS(ONLY), "XRIP"},
    {0xac, "XRC_RDMA_READ_REQUEST", ROCE_XRC, 'q', OP(READ_REQ), POS(ONLY), "XR"},
    {0xad, "XRC_RDMA_READ_RESPONSE_FIRST", ROCE_XRC, 'r', OP(READ_RESP), POS(FIRST), "AP"},
    {0xae, "XRC_RDMA_READ_RESPONSE_MIDDLE", ROCE_XRC, 'r', OP(READ_RESP), POS(MIDDLE), "P"},
    {0xaf, "XRC_RDMA_READ_RESPONSE_LAST", ROCE_XRC, 'r', OP(READ_RESP), POS(LAST), "AP"},
    {0xb0, "XRC_RDMA_READ_RESPONSE_ONLY", ROCE_XRC, 'r', OP(READ_RESP), POS(ONLY), "AP"},
    {0xb1, "XRC_ACKNOWLEDGE", ROCE_XRC, 'r', OP(ACK), POS(ONLY), "A"},
    {0xb2, "XRC_ATOMIC_ACKNOWLEDGE", ROCE_XRC, 'r', OP(ATOMIC_ACK), POS(ONLY), "AK"},
    {0xb3, "XRC_COMPARE_SWAP", ROCE_XRC, 'q', OP(CMP_SWAP), POS(ONLY), "XT"},
    {0xb4, "XRC_FETCH_ADD", ROCE_XRC, 'q', OP(FETCH_ADD), POS(ONLY), "XT"},
    {0xb6, "XRC_SEND_LAST_WITH_INVALIDATE", ROCE_XRC, 'q', OP(SEND), POS(LAST), "XVP"},
    {0xb7, "XRC_SEND_ONLY_WITH_INVALIDATE", ROCE_XRC, 'q', OP(SEND), POS(ONLY), "XVP"},
    {0x81, "CNP", ROCE_CNP_T, '-', OP(CNP), POS(NONE), ""},
    /* clang-format on */
};

static const struct {
	char c;
	uint16_t flag;
	uint8_t len;
} hdrs[] = {
    {'E', ROCE_F_RDETH, 4},
    {'D', ROCE_F_DETH, 8},
    {'X', ROCE_F_XRCETH, 4},
    {'R', ROCE_F_RETH, 16},
    {'T', ROCE_F_ATOMICETH, 28},
    {'A', ROCE_F_AETH, 4},
    {'K', ROCE_F_ATOMICACKETH, 8},
    {'I', ROCE_F_IMMDT, 4},
    {'V', ROCE_F_IETH, 4},
    {'P', ROCE_F_PAYLOAD, 0},
};

static const struct row *find(unsigned code)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].code == code)
			return &rows[i];
	return NULL;
}

static void test_all_256(void **state)
{
	unsigned valid = 0;

	for (unsigned c = 0; c < 256; c++) {
		const struct roce_opinfo *i = roce_op((uint8_t)c);
		const struct row *r = find(c);
		unsigned flags = ROCE_F_VALID, len = 0;

		assert_int_equal(roce_op_is_valid(i), r != NULL);
		if (!r) {
			assert_null(i->name);
			assert_int_equal(i->flags, 0);
			assert_int_equal(i->op, ROCE_OP_NONE);
			assert_int_equal(i->ext_len, 0);
			continue;
		}
		valid++;
		assert_string_equal(i->name, r->name);
		assert_int_equal(i->transport, r->transport);
		assert_int_equal(i->op, r->op);
		assert_int_equal(i->pos, r->pos);
		flags |= r->dir == 'q' ? ROCE_F_REQUEST : r->dir == 'r' ? ROCE_F_RESPONSE : 0;
		for (unsigned k = 0; k < sizeof(hdrs) / sizeof(hdrs[0]); k++)
			if (strchr(r->hdrs, hdrs[k].c)) {
				flags |= hdrs[k].flag;
				len += hdrs[k].len;
			}
		assert_int_equal(i->flags, flags);
		assert_int_equal(i->ext_len, c == ROCE_OPCODE_CNP ? 16 : len);
	}
	assert_int_equal(valid, 23 + 12 + 22 + 2 + 23 + 1); /* RC UC RD UD XRC CNP */
}

static void test_names_are_unique(void **state)
{
	for (unsigned a = 0; a < 256; a++)
		for (unsigned b = a + 1; b < 256; b++)
			if (roce_opinfo[a].name && roce_opinfo[b].name)
				assert_string_not_equal(roce_opinfo[a].name, roce_opinfo[b].name);
}

static void test_predicates(void **state)
{
	assert_true(roce_op_starts(roce_op(ROCE_RC_SEND_FIRST)));
	assert_false(roce_op_ends(roce_op(ROCE_RC_SEND_FIRST)));
	assert_true(roce_op_ends(roce_op(ROCE_RC_WRITE_LAST_IMM)));
	assert_false(roce_op_starts(roce_op(ROCE_RC_WRITE_LAST_IMM)));
	assert_true(roce_op_starts(roce_op(ROCE_RC_READ_REQ)) && roce_op_ends(roce_op(ROCE_RC_READ_REQ)));
	assert_false(roce_op_starts(roce_op(ROCE_RC_READ_RESP_MIDDLE)));
	assert_true(roce_op_is_atomic(roce_op(ROCE_RC_CMP_SWAP)));
	assert_true(roce_op_is_atomic(roce_op(ROCE_RC_FETCH_ADD)));
	assert_false(roce_op_is_atomic(roce_op(ROCE_RC_ATOMIC_ACK)));
	assert_true(roce_op_is_response(roce_op(ROCE_RC_ATOMIC_ACK)));
	assert_false(roce_op_is_request(roce_op(ROCE_OPCODE_CNP)));
	assert_false(roce_op_is_response(roce_op(ROCE_OPCODE_CNP)));
}

/* The enumerators used to make packets name what they say. */
static void test_enumerators(void **state)
{
	static const struct {
		uint8_t code;
		const char *name;
	} e[] = {
	    {ROCE_RC_SEND_LAST_IMM, "RC_SEND_LAST_WITH_IMMEDIATE"},
	    {ROCE_RC_SEND_ONLY, "RC_SEND_ONLY"},
	    {ROCE_RC_WRITE_FIRST, "RC_RDMA_WRITE_FIRST"},
	    {ROCE_RC_WRITE_ONLY_IMM, "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE"},
	    {ROCE_RC_READ_RESP_ONLY, "RC_RDMA_READ_RESPONSE_ONLY"},
	    {ROCE_RC_ACK, "RC_ACKNOWLEDGE"},
	    {ROCE_RC_ATOMIC_ACK, "RC_ATOMIC_ACKNOWLEDGE"},
	    {ROCE_RC_CMP_SWAP, "RC_COMPARE_SWAP"},
	    {ROCE_RC_SEND_ONLY_INV, "RC_SEND_ONLY_WITH_INVALIDATE"},
	    {ROCE_UD_SEND_ONLY_IMM, "UD_SEND_ONLY_WITH_IMMEDIATE"},
	};

	for (unsigned i = 0; i < sizeof(e) / sizeof(e[0]); i++)
		assert_string_equal(roce_op(e[i].code)->name, e[i].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_all_256),
	    cmocka_unit_test(test_names_are_unique),
	    cmocka_unit_test(test_predicates),
	    cmocka_unit_test(test_enumerators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
