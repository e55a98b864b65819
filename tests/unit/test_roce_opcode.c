/* SPDX-License-Identifier: Apache-2.0 */
/* roce/opcode.c: all 256 entries compared with a separate list, written row by row. */
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
	const char *name, *hdrs;
	uint8_t code, transport;
	char dir; /* q request, r response */
	uint8_t op, pos;
} rows[] = {
    /* clang-format off */
    {"RC_SEND_FIRST", "P", 0x00, ROCE_RC, 'q', OP(SEND), POS(FIRST)},
    {"RC_SEND_MIDDLE", "P", 0x01, ROCE_RC, 'q', OP(SEND), POS(MIDDLE)},
    {"RC_SEND_LAST", "P", 0x02, ROCE_RC, 'q', OP(SEND), POS(LAST)},
    {"RC_SEND_LAST_WITH_IMMEDIATE", "IP", 0x03, ROCE_RC, 'q', OP(SEND), POS(LAST)},
    {"RC_SEND_ONLY", "P", 0x04, ROCE_RC, 'q', OP(SEND), POS(ONLY)},
    {"RC_SEND_ONLY_WITH_IMMEDIATE", "IP", 0x05, ROCE_RC, 'q', OP(SEND), POS(ONLY)},
    {"RC_RDMA_WRITE_FIRST", "RP", 0x06, ROCE_RC, 'q', OP(WRITE), POS(FIRST)},
    {"RC_RDMA_WRITE_MIDDLE", "P", 0x07, ROCE_RC, 'q', OP(WRITE), POS(MIDDLE)},
    {"RC_RDMA_WRITE_LAST", "P", 0x08, ROCE_RC, 'q', OP(WRITE), POS(LAST)},
    {"RC_RDMA_WRITE_LAST_WITH_IMMEDIATE", "IP", 0x09, ROCE_RC, 'q', OP(WRITE), POS(LAST)},
    {"RC_RDMA_WRITE_ONLY", "RP", 0x0a, ROCE_RC, 'q', OP(WRITE), POS(ONLY)},
    {"RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", "RIP", 0x0b, ROCE_RC, 'q', OP(WRITE), POS(ONLY)},
    {"RC_RDMA_READ_REQUEST", "R", 0x0c, ROCE_RC, 'q', OP(READ_REQ), POS(ONLY)},
    {"RC_RDMA_READ_RESPONSE_FIRST", "AP", 0x0d, ROCE_RC, 'r', OP(READ_RESP), POS(FIRST)},
    {"RC_RDMA_READ_RESPONSE_MIDDLE", "P", 0x0e, ROCE_RC, 'r', OP(READ_RESP), POS(MIDDLE)},
    {"RC_RDMA_READ_RESPONSE_LAST", "AP", 0x0f, ROCE_RC, 'r', OP(READ_RESP), POS(LAST)},
    {"RC_RDMA_READ_RESPONSE_ONLY", "AP", 0x10, ROCE_RC, 'r', OP(READ_RESP), POS(ONLY)},
    {"RC_ACKNOWLEDGE", "A", 0x11, ROCE_RC, 'r', OP(ACK), POS(ONLY)},
    {"RC_ATOMIC_ACKNOWLEDGE", "AK", 0x12, ROCE_RC, 'r', OP(ATOMIC_ACK), POS(ONLY)},
    {"RC_COMPARE_SWAP", "T", 0x13, ROCE_RC, 'q', OP(CMP_SWAP), POS(ONLY)},
    {"RC_FETCH_ADD", "T", 0x14, ROCE_RC, 'q', OP(FETCH_ADD), POS(ONLY)},
    {"RC_SEND_LAST_WITH_INVALIDATE", "VP", 0x16, ROCE_RC, 'q', OP(SEND), POS(LAST)},
    {"RC_SEND_ONLY_WITH_INVALIDATE", "VP", 0x17, ROCE_RC, 'q', OP(SEND), POS(ONLY)},
    {"UC_SEND_FIRST", "P", 0x20, ROCE_UC, 'q', OP(SEND), POS(FIRST)},
    {"UC_SEND_MIDDLE", "P", 0x21, ROCE_UC, 'q', OP(SEND), POS(MIDDLE)},
    {"UC_SEND_LAST", "P", 0x22, ROCE_UC, 'q', OP(SEND), POS(LAST)},
    {"UC_SEND_LAST_WITH_IMMEDIATE", "IP", 0x23, ROCE_UC, 'q', OP(SEND), POS(LAST)},
    {"UC_SEND_ONLY", "P", 0x24, ROCE_UC, 'q', OP(SEND), POS(ONLY)},
    {"UC_SEND_ONLY_WITH_IMMEDIATE", "IP", 0x25, ROCE_UC, 'q', OP(SEND), POS(ONLY)},
    {"UC_RDMA_WRITE_FIRST", "RP", 0x26, ROCE_UC, 'q', OP(WRITE), POS(FIRST)},
    {"UC_RDMA_WRITE_MIDDLE", "P", 0x27, ROCE_UC, 'q', OP(WRITE), POS(MIDDLE)},
    {"UC_RDMA_WRITE_LAST", "P", 0x28, ROCE_UC, 'q', OP(WRITE), POS(LAST)},
    {"UC_RDMA_WRITE_LAST_WITH_IMMEDIATE", "IP", 0x29, ROCE_UC, 'q', OP(WRITE), POS(LAST)},
    {"UC_RDMA_WRITE_ONLY", "RP", 0x2a, ROCE_UC, 'q', OP(WRITE), POS(ONLY)},
    {"UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", "RIP", 0x2b, ROCE_UC, 'q', OP(WRITE), POS(ONLY)},
    {"RD_SEND_FIRST", "EDP", 0x40, ROCE_RD, 'q', OP(SEND), POS(FIRST)},
    {"RD_SEND_MIDDLE", "EDP", 0x41, ROCE_RD, 'q', OP(SEND), POS(MIDDLE)},
    {"RD_SEND_LAST", "EDP", 0x42, ROCE_RD, 'q', OP(SEND), POS(LAST)},
    {"RD_SEND_LAST_WITH_IMMEDIATE", "EDIP", 0x43, ROCE_RD, 'q', OP(SEND), POS(LAST)},
    {"RD_SEND_ONLY", "EDP", 0x44, ROCE_RD, 'q', OP(SEND), POS(ONLY)},
    {"RD_SEND_ONLY_WITH_IMMEDIATE", "EDIP", 0x45, ROCE_RD, 'q', OP(SEND), POS(ONLY)},
    {"RD_RDMA_WRITE_FIRST", "EDRP", 0x46, ROCE_RD, 'q', OP(WRITE), POS(FIRST)},
    {"RD_RDMA_WRITE_MIDDLE", "EDP", 0x47, ROCE_RD, 'q', OP(WRITE), POS(MIDDLE)},
    {"RD_RDMA_WRITE_LAST", "EDP", 0x48, ROCE_RD, 'q', OP(WRITE), POS(LAST)},
    {"RD_RDMA_WRITE_LAST_WITH_IMMEDIATE", "EDIP", 0x49, ROCE_RD, 'q', OP(WRITE), POS(LAST)},
    {"RD_RDMA_WRITE_ONLY", "EDRP", 0x4a, ROCE_RD, 'q', OP(WRITE), POS(ONLY)},
    {"RD_RDMA_WRITE_ONLY_WITH_IMMEDIATE", "EDRIP", 0x4b, ROCE_RD, 'q', OP(WRITE), POS(ONLY)},
    {"RD_RDMA_READ_REQUEST", "EDR", 0x4c, ROCE_RD, 'q', OP(READ_REQ), POS(ONLY)},
    {"RD_RDMA_READ_RESPONSE_FIRST", "EAP", 0x4d, ROCE_RD, 'r', OP(READ_RESP), POS(FIRST)},
    {"RD_RDMA_READ_RESPONSE_MIDDLE", "EP", 0x4e, ROCE_RD, 'r', OP(READ_RESP), POS(MIDDLE)},
    {"RD_RDMA_READ_RESPONSE_LAST", "EAP", 0x4f, ROCE_RD, 'r', OP(READ_RESP), POS(LAST)},
    {"RD_RDMA_READ_RESPONSE_ONLY", "EAP", 0x50, ROCE_RD, 'r', OP(READ_RESP), POS(ONLY)},
    {"RD_ACKNOWLEDGE", "EA", 0x51, ROCE_RD, 'r', OP(ACK), POS(ONLY)},
    {"RD_ATOMIC_ACKNOWLEDGE", "EAK", 0x52, ROCE_RD, 'r', OP(ATOMIC_ACK), POS(ONLY)},
    {"RD_COMPARE_SWAP", "EDT", 0x53, ROCE_RD, 'q', OP(CMP_SWAP), POS(ONLY)},
    {"RD_FETCH_ADD", "EDT", 0x54, ROCE_RD, 'q', OP(FETCH_ADD), POS(ONLY)},
    {"RD_RESYNC", "ED", 0x55, ROCE_RD, 'q', OP(RESYNC), POS(ONLY)},
    {"UD_SEND_ONLY", "DP", 0x64, ROCE_UD, 'q', OP(SEND), POS(ONLY)},
    {"UD_SEND_ONLY_WITH_IMMEDIATE", "DIP", 0x65, ROCE_UD, 'q', OP(SEND), POS(ONLY)},
    {"XRC_SEND_FIRST", "XP", 0xa0, ROCE_XRC, 'q', OP(SEND), POS(FIRST)},
    {"XRC_SEND_MIDDLE", "XP", 0xa1, ROCE_XRC, 'q', OP(SEND), POS(MIDDLE)},
    {"XRC_SEND_LAST", "XP", 0xa2, ROCE_XRC, 'q', OP(SEND), POS(LAST)},
    {"XRC_SEND_LAST_WITH_IMMEDIATE", "XIP", 0xa3, ROCE_XRC, 'q', OP(SEND), POS(LAST)},
    {"XRC_SEND_ONLY", "XP", 0xa4, ROCE_XRC, 'q', OP(SEND), POS(ONLY)},
    {"XRC_SEND_ONLY_WITH_IMMEDIATE", "XIP", 0xa5, ROCE_XRC, 'q', OP(SEND), POS(ONLY)},
    {"XRC_RDMA_WRITE_FIRST", "XRP", 0xa6, ROCE_XRC, 'q', OP(WRITE), POS(FIRST)},
    {"XRC_RDMA_WRITE_MIDDLE", "XP", 0xa7, ROCE_XRC, 'q', OP(WRITE), POS(MIDDLE)},
    {"XRC_RDMA_WRITE_LAST", "XP", 0xa8, ROCE_XRC, 'q', OP(WRITE), POS(LAST)},
    {"XRC_RDMA_WRITE_LAST_WITH_IMMEDIATE", "XIP", 0xa9, ROCE_XRC, 'q', OP(WRITE), POS(LAST)},
    {"XRC_RDMA_WRITE_ONLY", "XRP", 0xaa, ROCE_XRC, 'q', OP(WRITE), POS(ONLY)},
    {"XRC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", "XRIP", 0xab, ROCE_XRC, 'q', OP(WRITE), POS(ONLY)},
    {"XRC_RDMA_READ_REQUEST", "XR", 0xac, ROCE_XRC, 'q', OP(READ_REQ), POS(ONLY)},
    {"XRC_RDMA_READ_RESPONSE_FIRST", "AP", 0xad, ROCE_XRC, 'r', OP(READ_RESP), POS(FIRST)},
    {"XRC_RDMA_READ_RESPONSE_MIDDLE", "P", 0xae, ROCE_XRC, 'r', OP(READ_RESP), POS(MIDDLE)},
    {"XRC_RDMA_READ_RESPONSE_LAST", "AP", 0xaf, ROCE_XRC, 'r', OP(READ_RESP), POS(LAST)},
    {"XRC_RDMA_READ_RESPONSE_ONLY", "AP", 0xb0, ROCE_XRC, 'r', OP(READ_RESP), POS(ONLY)},
    {"XRC_ACKNOWLEDGE", "A", 0xb1, ROCE_XRC, 'r', OP(ACK), POS(ONLY)},
    {"XRC_ATOMIC_ACKNOWLEDGE", "AK", 0xb2, ROCE_XRC, 'r', OP(ATOMIC_ACK), POS(ONLY)},
    {"XRC_COMPARE_SWAP", "XT", 0xb3, ROCE_XRC, 'q', OP(CMP_SWAP), POS(ONLY)},
    {"XRC_FETCH_ADD", "XT", 0xb4, ROCE_XRC, 'q', OP(FETCH_ADD), POS(ONLY)},
    {"XRC_SEND_LAST_WITH_INVALIDATE", "XVP", 0xb6, ROCE_XRC, 'q', OP(SEND), POS(LAST)},
    {"XRC_SEND_ONLY_WITH_INVALIDATE", "XVP", 0xb7, ROCE_XRC, 'q', OP(SEND), POS(ONLY)},
    {"CNP", "", 0x81, ROCE_CNP_T, '-', OP(CNP), POS(NONE)},
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

/* The enumerators for building packets match their names. */
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
