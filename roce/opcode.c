/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opcode table. A macro writes each row once per transport service, because RC, RD and XRC are
 * the same 22 or 24 operations behind other headers (IBA 9.2.1, table 38). Rules of sequence are
 * elsewhere.
 */
#include "roce/opcode.h"

#include "roce/wire.h"

#define REQ  (ROCE_F_VALID | ROCE_F_REQUEST)
#define RESP (ROCE_F_VALID | ROCE_F_RESPONSE)
#define PAY  ROCE_F_PAYLOAD

/* Bytes of the extension headers of a set of flags; a constant expression. */
#define HDR(f, bit, type) (((f) & (bit)) ? (unsigned)sizeof(struct type) : 0u)
#define EXT_LEN(f)                                                                                           \
	(HDR(f, ROCE_F_RDETH, roce_rdeth) + HDR(f, ROCE_F_DETH, roce_deth) +                                 \
	    HDR(f, ROCE_F_XRCETH, roce_xrceth) + HDR(f, ROCE_F_RETH, roce_reth) +                            \
	    HDR(f, ROCE_F_ATOMICETH, roce_atomiceth) + HDR(f, ROCE_F_AETH, roce_aeth) +                      \
	    HDR(f, ROCE_F_ATOMICACKETH, roce_atomicacketh) + HDR(f, ROCE_F_IMMDT, roce_immdt) +              \
	    HDR(f, ROCE_F_IETH, roce_ieth))

#define ROW(code, opname, t, o, p, f)                                                                        \
	[code] = {opname, (uint16_t)(f), t, ROCE_OP_##o, ROCE_POS_##p, EXT_LEN(f)}

/* SEND and WRITE: all connected services and RD. q: flags of the headers that every request of the
 * service has. */
#define SEND_WRITE(T, t, b, q)                                                                               \
	ROW((b) + 0x00, T "_SEND_FIRST", t, SEND, FIRST, REQ | PAY | (q)),                                   \
	    ROW((b) + 0x01, T "_SEND_MIDDLE", t, SEND, MIDDLE, REQ | PAY | (q)),                             \
	    ROW((b) + 0x02, T "_SEND_LAST", t, SEND, LAST, REQ | PAY | (q)),                                 \
	    ROW((b) + 0x03, T "_SEND_LAST_WITH_IMMEDIATE", t, SEND, LAST, REQ | PAY | ROCE_F_IMMDT | (q)),   \
	    ROW((b) + 0x04, T "_SEND_ONLY", t, SEND, ONLY, REQ | PAY | (q)),                                 \
	    ROW((b) + 0x05, T "_SEND_ONLY_WITH_IMMEDIATE", t, SEND, ONLY, REQ | PAY | ROCE_F_IMMDT | (q)),   \
	    ROW((b) + 0x06, T "_RDMA_WRITE_FIRST", t, WRITE, FIRST, REQ | PAY | ROCE_F_RETH | (q)),          \
	    ROW((b) + 0x07, T "_RDMA_WRITE_MIDDLE", t, WRITE, MIDDLE, REQ | PAY | (q)),                      \
	    ROW((b) + 0x08, T "_RDMA_WRITE_LAST", t, WRITE, LAST, REQ | PAY | (q)),                          \
	    ROW((b) + 0x09, T "_RDMA_WRITE_LAST_WITH_IMMEDIATE", t, WRITE, LAST,                             \
	        REQ | PAY | ROCE_F_IMMDT | (q)),                                                             \
	    ROW((b) + 0x0a, T "_RDMA_WRITE_ONLY", t, WRITE, ONLY, REQ | PAY | ROCE_F_RETH | (q)),            \
	    ROW((b) + 0x0b, T "_RDMA_WRITE_ONLY_WITH_IMMEDIATE", t, WRITE, ONLY,                             \
	        REQ | PAY | ROCE_F_RETH | ROCE_F_IMMDT | (q))

/* Opcodes of reliable services only. r: flags of the headers that every response has. */
#define READ_ATOMIC(T, t, b, q, r)                                                                           \
	ROW((b) + 0x0c, T "_RDMA_READ_REQUEST", t, READ_REQ, ONLY, REQ | ROCE_F_RETH | (q)),                 \
	    ROW((b) + 0x0d, T "_RDMA_READ_RESPONSE_FIRST", t, READ_RESP, FIRST,                              \
	        RESP | PAY | ROCE_F_AETH | (r)),                                                             \
	    ROW((b) + 0x0e, T "_RDMA_READ_RESPONSE_MIDDLE", t, READ_RESP, MIDDLE, RESP | PAY | (r)),         \
	    ROW((b) + 0x0f, T "_RDMA_READ_RESPONSE_LAST", t, READ_RESP, LAST,                                \
	        RESP | PAY | ROCE_F_AETH | (r)),                                                             \
	    ROW((b) + 0x10, T "_RDMA_READ_RESPONSE_ONLY", t, READ_RESP, ONLY,                                \
	        RESP | PAY | ROCE_F_AETH | (r)),                                                             \
	    ROW((b) + 0x11, T "_ACKNOWLEDGE", t, ACK, ONLY, RESP | ROCE_F_AETH | (r)),                       \
	    ROW((b) + 0x12, T "_ATOMIC_ACKNOWLEDGE", t, ATOMIC_ACK, ONLY,                                    \
	        RESP | ROCE_F_AETH | ROCE_F_ATOMICACKETH | (r)),                                             \
	    ROW((b) + 0x13, T "_COMPARE_SWAP", t, CMP_SWAP, ONLY, REQ | ROCE_F_ATOMICETH | (q)),             \
	    ROW((b) + 0x14, T "_FETCH_ADD", t, FETCH_ADD, ONLY, REQ | ROCE_F_ATOMICETH | (q))

#define SEND_INV(T, t, b, q)                                                                                 \
	ROW((b) + 0x16, T "_SEND_LAST_WITH_INVALIDATE", t, SEND, LAST, REQ | PAY | ROCE_F_IETH | (q)),       \
	    ROW((b) + 0x17, T "_SEND_ONLY_WITH_INVALIDATE", t, SEND, ONLY, REQ | PAY | ROCE_F_IETH | (q))

#define RD_REQ (ROCE_F_RDETH | ROCE_F_DETH)

const struct roce_opinfo roce_opinfo[256] = {
    SEND_WRITE("RC", ROCE_RC, 0x00, 0),
    READ_ATOMIC("RC", ROCE_RC, 0x00, 0, 0),
    SEND_INV("RC", ROCE_RC, 0x00, 0),

    SEND_WRITE("UC", ROCE_UC, 0x20, 0),

    SEND_WRITE("RD", ROCE_RD, 0x40, RD_REQ),
    READ_ATOMIC("RD", ROCE_RD, 0x40, RD_REQ, ROCE_F_RDETH),
    ROW(0x55, "RD_RESYNC", ROCE_RD, RESYNC, ONLY, REQ | RD_REQ),

    ROW(0x64, "UD_SEND_ONLY", ROCE_UD, SEND, ONLY, REQ | PAY | ROCE_F_DETH),
    ROW(0x65, "UD_SEND_ONLY_WITH_IMMEDIATE", ROCE_UD, SEND, ONLY, REQ | PAY | ROCE_F_DETH | ROCE_F_IMMDT),

    /* IBA A17.9.3: 16 reserved bytes follow the BTH. They count as its extension header; there is
     * no payload. */
    [ROCE_OPCODE_CNP] = {"CNP", ROCE_F_VALID, ROCE_CNP_T, ROCE_OP_CNP, ROCE_POS_NONE, ROCE_CNP_PAD_LEN},

    SEND_WRITE("XRC", ROCE_XRC, 0xa0, ROCE_F_XRCETH),
    READ_ATOMIC("XRC", ROCE_XRC, 0xa0, ROCE_F_XRCETH, 0),
    SEND_INV("XRC", ROCE_XRC, 0xa0, ROCE_F_XRCETH),
};

const struct roce_opinfo roce_op_uncarried = {
    NULL, ROCE_F_REQUEST, ROCE_RC, ROCE_OP_UNCARRIED, ROCE_POS_ONLY, 0};
