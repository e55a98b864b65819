/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BTH opcode table (IBA 9.2, table 38), all 256 values. All properties of an opcode are columns
 * here; sequencing rules are derived from (operation, position) and not listed again.
 */
#ifndef ROCE_OPCODE_H
#define ROCE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

enum roce_transport { ROCE_RC = 0, ROCE_UC = 1, ROCE_RD = 2, ROCE_UD = 3, ROCE_CNP_T = 4, ROCE_XRC = 5 };

enum roce_op { /* the operation that the packet belongs to */
	ROCE_OP_NONE,
	ROCE_OP_SEND,
	ROCE_OP_WRITE,
	ROCE_OP_READ_REQ,
	ROCE_OP_READ_RESP,
	ROCE_OP_ACK,
	ROCE_OP_ATOMIC_ACK,
	ROCE_OP_CMP_SWAP,
	ROCE_OP_FETCH_ADD,
	ROCE_OP_RESYNC,
	ROCE_OP_CNP,
	ROCE_OP_UNCARRIED, /* of no table row: see roce_op_uncarried */
};

enum roce_pos { ROCE_POS_NONE, ROCE_POS_FIRST, ROCE_POS_MIDDLE, ROCE_POS_LAST, ROCE_POS_ONLY };

enum roce_opflag {
	ROCE_F_VALID = 1 << 0,
	ROCE_F_REQUEST = 1 << 1,  /* travels requester -> responder */
	ROCE_F_RESPONSE = 1 << 2, /* travels responder -> requester */
	ROCE_F_RETH = 1 << 3,
	ROCE_F_AETH = 1 << 4,
	ROCE_F_ATOMICETH = 1 << 5,
	ROCE_F_ATOMICACKETH = 1 << 6,
	ROCE_F_DETH = 1 << 7,
	ROCE_F_IMMDT = 1 << 8,
	ROCE_F_IETH = 1 << 9,
	ROCE_F_RDETH = 1 << 10,
	ROCE_F_XRCETH = 1 << 11,
	ROCE_F_PAYLOAD = 1 << 12, /* may carry payload */
};

struct roce_opinfo {
	/* name in tshark and the kernel, e.g. "RC_RDMA_WRITE_FIRST"; NULL: not VALID */
	const char *name;
	uint16_t flags;    /* enum roce_opflag */
	uint8_t transport; /* enum roce_transport */
	uint8_t op;        /* enum roce_op */
	uint8_t pos;       /* enum roce_pos */
	uint8_t ext_len;   /* bytes of extension headers after the BTH */
};

extern const struct roce_opinfo roce_opinfo[256];
/*
 * Stands for an RC request of an operation that gateways do not carry: FLUSH, ATOMIC WRITE, or a
 * reserved opcode. The caller of the responder puts it into roce_pkt.info; no opcode names it.
 */
extern const struct roce_opinfo roce_op_uncarried;

#define ROCE_OPCODE_CNP 0x81 /* IBA A17.9.3 */

/* The row of an opcode; never NULL. */
static inline const struct roce_opinfo *roce_op(uint8_t opcode)
{
	return &roce_opinfo[opcode];
}
/* The standard defines the opcode. */
static inline bool roce_op_is_valid(const struct roce_opinfo *i)
{
	return i->flags & ROCE_F_VALID;
}
/* It travels from requester to responder. */
static inline bool roce_op_is_request(const struct roce_opinfo *i)
{
	return i->flags & ROCE_F_REQUEST;
}
/* It travels from responder to requester: ACK, READ response, ATOMIC ACK. */
static inline bool roce_op_is_response(const struct roce_opinfo *i)
{
	return i->flags & ROCE_F_RESPONSE;
}
/* Compare and swap, or fetch and add. */
static inline bool roce_op_is_atomic(const struct roce_opinfo *i)
{
	return i->op == ROCE_OP_CMP_SWAP || i->op == ROCE_OP_FETCH_ADD;
}
/* First packet of a message: FIRST or ONLY. */
static inline bool roce_op_starts(const struct roce_opinfo *i)
{
	return i->pos == ROCE_POS_FIRST || i->pos == ROCE_POS_ONLY;
}
/* Last packet of a message: LAST or ONLY. */
static inline bool roce_op_ends(const struct roce_opinfo *i)
{
	return i->pos == ROCE_POS_LAST || i->pos == ROCE_POS_ONLY;
}

/* RC opcodes by name, for packets that are made. */
enum {
	ROCE_RC_SEND_FIRST = 0x00,
	ROCE_RC_SEND_MIDDLE = 0x01,
	ROCE_RC_SEND_LAST = 0x02,
	ROCE_RC_SEND_LAST_IMM = 0x03,
	ROCE_RC_SEND_ONLY = 0x04,
	ROCE_RC_SEND_ONLY_IMM = 0x05,
	ROCE_RC_WRITE_FIRST = 0x06,
	ROCE_RC_WRITE_MIDDLE = 0x07,
	ROCE_RC_WRITE_LAST = 0x08,
	ROCE_RC_WRITE_LAST_IMM = 0x09,
	ROCE_RC_WRITE_ONLY = 0x0a,
	ROCE_RC_WRITE_ONLY_IMM = 0x0b,
	ROCE_RC_READ_REQ = 0x0c,
	ROCE_RC_READ_RESP_FIRST = 0x0d,
	ROCE_RC_READ_RESP_MIDDLE = 0x0e,
	ROCE_RC_READ_RESP_LAST = 0x0f,
	ROCE_RC_READ_RESP_ONLY = 0x10,
	ROCE_RC_ACK = 0x11,
	ROCE_RC_ATOMIC_ACK = 0x12,
	ROCE_RC_CMP_SWAP = 0x13,
	ROCE_RC_FETCH_ADD = 0x14,
	ROCE_RC_SEND_LAST_INV = 0x16,
	ROCE_RC_SEND_ONLY_INV = 0x17,
	ROCE_UD_SEND_ONLY = 0x64,
	ROCE_UD_SEND_ONLY_IMM = 0x65,
	ROCE_XRC_ACK = 0xb1,
};

/* The upper three bits of an opcode: the transport service (IBA 9.2.1, table 38). */
enum roce_class {
	ROCE_CLASS_RC = 0x00,
	ROCE_CLASS_UC = 0x20,
	ROCE_CLASS_RD = 0x40,
	ROCE_CLASS_UD = 0x60,
	ROCE_CLASS_CNP = 0x80,
	ROCE_CLASS_XRC = 0xa0,
	ROCE_CLASS_VENDOR = 0xc0, /* this one and the next are a manufacturer's own */
	ROCE_CLASS_VENDOR_TOO = 0xe0,
};
/* Its transport service; also of opcodes that the standard does not define. */
static inline enum roce_class roce_op_class(uint8_t opcode)
{
	return (enum roce_class)(opcode & 0xe0);
}

#endif
