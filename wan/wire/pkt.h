/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of the native carrier: encoding and decoding of the datagram header and of frames
 * (docs/wire-format.md has the drawings). No state and no knowledge of what a frame does. Encoders
 * write at `p` and return the byte after; the caller makes sure that the sizes named here fit.
 * Decoders check every length and return false for impossible bytes.
 */
#ifndef WAN_PKT_H
#define WAN_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/buf.h"
#include "rwy/endian.h"
#include "wan/wire/limits.h"

#define WAN_VERSION 2

/* Datagram header, 20 bytes:
 *  0 version (high 4 bits), datagram type (low 4 bits)
 *  1 flags: key phase in bit 0, protected by repairs in bit 1, the rest 0
 *  2 path: whose packet-number space this is
 *  3 key set; 0 in the clear
 *  4 receiver's tunnel index
 *  8 packet number
 * 16 CRC-32 of the whole datagram with these four bytes taken as 0
 * A sealed datagram has its first 16 bytes in the clear, and a tag of 16 bytes after the last frame
 * (wan/keys.h). Its CRC is 0; where repairs protect it, that of the datagram before it was sealed.
 */
#define WAN_PKT_HDR   20
#define WAN_PKT_FLAGS 3u
#define WAN_PKT_FEC   2u /* a REPAIR frame for this datagram may follow: keep a copy */

enum wan_pkt_type { WAN_PKT_FRAMES = 0, WAN_PKT_HELLO = 1 };

struct wan_pkt {
	uint8_t version, type, flags, path;
	uint32_t index;
	uint64_t pn;
};

static inline void wan_pkt_put(uint8_t *p, const struct wan_pkt *h)
{
	p[0] = (uint8_t)(h->version << 4 | h->type);
	p[1] = h->flags;
	p[2] = h->path;
	p[3] = 0;
	rwy_put32(p + 4, h->index);
	rwy_put64(p + 8, h->pn);
	rwy_put32(p + 16, 0);
}

/* The caller has checked that WAN_PKT_HDR bytes are present. */
static inline void wan_pkt_get(const uint8_t *p, struct wan_pkt *h)
{
	h->version = p[0] >> 4;
	h->type = p[0] & 15;
	h->flags = p[1];
	h->path = p[2];
	h->index = rwy_get32(p + 4);
	h->pn = rwy_get64(p + 8);
}

/* Writes the CRC-32 (rwy/crc32.h) over header bytes [0, hdr_len) and payload. The CRC field must be
 * 0. */
void wan_pkt_seal(uint8_t *hdr, size_t hdr_len, const uint8_t *payload, size_t len);
/*
 * The same where the payload is all of b, and `over` knows its CRC without reading it: it returns
 * the CRC of bytes whose CRC it is given, and of b behind them.
 */
void wan_pkt_seal_over(uint8_t *hdr, size_t hdr_len, const struct rwy_buf *b,
    uint32_t (*over)(const struct rwy_buf *b, uint32_t crc));
/* Checks the CRC of a datagram of at least WAN_PKT_HDR bytes. Sets the field to 0. */
bool wan_pkt_open(uint8_t *p, size_t len);

/* Frame types. DATA and DGRAM carry flag bits and are the last frame of their datagram. */
enum wan_frame_type {
	WAN_F_PING = 0x01,
	WAN_F_ACK = 0x02,
	WAN_F_ACK_ECN = 0x03,
	WAN_F_DELIVERED = 0x04,
	WAN_F_CREDIT = 0x05,
	WAN_F_ABORT = 0x07,
	WAN_F_RESET = 0x08,
	WAN_F_REBUILT = 0x09,
	WAN_F_RATE = 0x0a,
	WAN_F_DATA = 0x10,  /* | WAN_DATA_OPEN | WAN_DATA_FRAG | WAN_DATA_AFTER */
	WAN_F_DGRAM = 0x18, /* | WAN_DATA_FRAG */
	WAN_F_REPAIR = 0x1c,
	WAN_F_SHARED = 0x1d, /* a REPAIR of several blocks */
	WAN_F_RUN = 0x1e,    /* several packets, each as in DATA; the last frame, too */
	WAN_F_BUNDLE = 0x1f, /* the same, of several flows */
};
#define WAN_DATA_OPEN  1u
#define WAN_DATA_FRAG  2u
#define WAN_DATA_AFTER 4u

/* ACK: the packet numbers received of one path. Ranges are inclusive, newest first, with a gap
 * between any two. */
#define WAN_ACK_RANGES_MAX 32
#define WAN_ACK_MIN        21
#define WAN_ACK_COUNT      18 /* offset of the number of ranges */
#define WAN_ACK_MAX        (19 + 8 + 16 * (WAN_ACK_RANGES_MAX - 1) + 12)
struct wan_range {
	uint64_t lo, hi;
};
struct wan_f_ack {
	uint8_t path;
	uint8_t n;
	bool has_ecn;
	uint32_t delay_us;
	uint32_t at_us; /* arrival of the newest datagram, by the receiver's clock */
	uint32_t ect0, ect1, ce;
	struct wan_range r[WAN_ACK_RANGES_MAX];
};
/* Writes as many ranges as fit `room` (>= WAN_ACK_MIN + 12). */
uint8_t *wan_f_ack_put(uint8_t *p, size_t room, const struct wan_f_ack *a);
/* p points after the type byte. Returns NULL: malformed. */
const uint8_t *wan_f_ack_get(const uint8_t *p, const uint8_t *end, uint8_t type, struct wan_f_ack *a);

/* DELIVERED: count byte, then for each entry: flow, low 32 bits of the count of delivered
 * buffers. */
#define WAN_DELIVERED_HEAD  2
#define WAN_DELIVERED_ENTRY 8

/* CREDIT, for the whole tunnel: most undelivered buffers of one flow, most undelivered bytes of all
 * flows that the receiver holds. */
#define WAN_CREDIT_LEN 13
/* RATE: count byte, then for each entry: flow; u64: most bytes sent and not delivered, 0: no bound;
 * u64: bytes a second that the far host takes, 0: unknown. */
#define WAN_RATE_HEAD  2
#define WAN_RATE_ENTRY 20

/* ABORT, RESET: flow. */
#define WAN_ABORT_LEN 5
#define WAN_RESET_LEN 5

/*
 * DATA: type, PCP and kind (4 bits each), flow u32, sequence u32; then if FRAG: total u16, fragment
 * size u16, index u8; then if AFTER: flow u32, count u32; then if OPEN: base u64, info length u8,
 * info. The payload is the rest of the datagram. DGRAM: type, PCP and kind; if FRAG: id u32 and the
 * same three fields.
 */
#define WAN_DATA_LEN     10
#define WAN_FRAG_LEN     5
#define WAN_AFTER_LEN    8
#define WAN_OPEN_LEN     9 /* plus the information */
#define WAN_DGRAM_LEN    2
#define WAN_DGRAM_ID_LEN 4
#define WAN_FRAGS_MAX    32

/*
 * RUN: PCP and kind, flow, sequence of the first packet, as in DATA; number of packets u8, length
 * of the first u16; then the packets, each but the first behind its length u16. They end with the
 * datagram.
 */
#define WAN_RUN_LEN  13
#define WAN_RUN_NEXT 2 /* bytes in front of each later packet */
#define WAN_RUN_MAX  255

/*
 * BUNDLE: number of packets u8; then each packet behind its PCP and kind, flow, sequence, as in
 * DATA, and its length u16. They end with the datagram.
 */
#define WAN_BUNDLE_HEAD  2  /* type and number of packets */
#define WAN_BUNDLE_ENTRY 11 /* bytes in front of each packet */
#define WAN_BUNDLE_LEN   (WAN_BUNDLE_HEAD + WAN_BUNDLE_ENTRY)
#define WAN_BUNDLE_MAX   9

struct wan_f_data {
	uint8_t run;    /* RUN, BUNDLE: number of packets; 0: DATA or DGRAM */
	uint16_t first; /* RUN, BUNDLE: length of the first packet, which flow and seq are of */
	bool bundle, dgram, open, frag, wait;
	uint8_t kind, pcp;  /* as in struct rwy_buf; 4 bits each */
	uint32_t flow, seq; /* seq: a DGRAM's id */
	/* fragments: bytes of the whole; bytes of every fragment except the last */
	uint16_t total, fsize;
	uint8_t index;
	uint64_t base;
	const uint8_t *info;
	uint8_t info_len;
	struct rwy_after after; /* with `wait` */
};
size_t wan_f_data_size(const struct wan_f_data *d);
uint8_t *wan_f_data_put(uint8_t *p, const struct wan_f_data *d);
/* p points at the type byte. Returns the start of the payload. NULL: malformed, or the numbers of a
 * fragment, a run or a bundle contradict its length. */
const uint8_t *wan_f_data_get(const uint8_t *p, const uint8_t *end, struct wan_f_data *d);
/* The packet of a run that follows the one of *len bytes at p, which is not the last; *len: its
 * length. wan_f_data_get has checked the run. */
static inline const uint8_t *wan_f_run_next(const uint8_t *p, uint32_t *len)
{
	p += *len;
	*len = rwy_get16(p);
	return p + WAN_RUN_NEXT;
}
/* Writes what is in front of a packet of `len` bytes in a bundle. Returns its place. */
uint8_t *wan_f_bundle_put(uint8_t *p, const struct wan_f_data *d, uint32_t len);
/* Reads what is in front of a packet at p into *len and kind, pcp, flow and seq of *d. Returns the
 * packet's place. wan_f_data_get has checked the bundle. */
const uint8_t *wan_f_bundle_next(const uint8_t *p, struct wan_f_data *d, uint32_t *len);

/* REBUILT: path, count, then for each entry: u64 first packet number, u8 number of packets minus
 * one. */
#define WAN_REBUILT_HEAD  3
#define WAN_REBUILT_ENTRY 9

/* REPAIR: path, depth, k, m, index, map length, u32 first packet number, map; the rest of the
 * datagram is the repair symbol. Symbol j of the block is datagram first + depth * (place of the
 * j-th bit set in the map); without a map the first k places are meant. `index`: row of the
 * coefficients.
 * SHARED: the same fields. `first`: first datagram of the group of `depth` blocks; block i has the
 * datagrams first + i + depth * place. k: number of blocks; the map names them. `index`: row for
 * block 0; block i uses the row (i mod m) further on. A u16 before the map is the number of
 * datagrams that the group spans from `first` on; WAN_SHARED_GAPS: some of them do not belong to
 * it. */
#define WAN_SHARED_GAPS 0x8000u
#define WAN_FEC_K_MAX   224 /* together with M_MAX all of GF(256) */
#define WAN_FEC_M_MAX   32
#define WAN_FEC_MAP_MAX 32 /* bytes: the map of a block's places */
/* prefix of a symbol: u16 length of the frames, u32 checksum of the datagram */
#define WAN_FEC_PREFIX 6
#define WAN_REPAIR_LEN 11 /* plus the map */
#define WAN_REPAIR_MAX (WAN_REPAIR_LEN + WAN_FEC_MAP_MAX)
/* A datagram can be protected if it is this much below the MTU: its repair is longer by that. */
#define WAN_FEC_ROOM (WAN_REPAIR_MAX + WAN_FEC_PREFIX)
struct wan_f_repair {
	bool shared;
	uint8_t path, depth, k, m, index, map_len;
	uint16_t span; /* SHARED only; gaps as well */
	bool gaps;
	uint32_t first;
	uint8_t map[WAN_FEC_MAP_MAX];
};
uint8_t *wan_f_repair_put(uint8_t *p, const struct wan_f_repair *r);
/* p points at the type byte. Returns the start of the symbol; NULL: malformed. Always fills in the
 * map. */
const uint8_t *wan_f_repair_get(const uint8_t *p, const uint8_t *end, struct wan_f_repair *r);

/* HELLO: the only content of a WAN_PKT_HELLO datagram. The header's index and packet number are
 * 0. */
#define WAN_HELLO_LEN   68  /* without `more`, which older gateways do not send */
#define WAN_HELLO_MTU   560 /* least: a path of 576 bytes without a tag */
#define WAN_HELLO_WANT  1u  /* an answer is wanted */
#define WAN_HELLO_FEC   2u  /* the sender accepts REPAIR */
#define WAN_HELLO_PCP   4u  /* the sender reads the PCP of DATA and DGRAM */
#define WAN_HELLO_ORDER 8u  /* the sender follows WAN_DATA_AFTER and order flows */
#define WAN_HELLO_CLAIM 4   /* bits 4 and 5: enum wan_hello_claim */
/* In an answer: the claim of the HELLO that it echoes is granted. With GONE: for good. */
#define WAN_HELLO_HELD 64u
/*
 * In an answer: the gateway that it answers may not have the tunnel. Nothing else of it counts. Its
 * MTU is 0, so that a gateway that does not know this flag drops it.
 */
#define WAN_HELLO_GONE 128u
/* In the byte `more`, behind the rest. */
#define WAN_HELLO_RUN    1u /* the sender reads RUN */
#define WAN_HELLO_BUNDLE 2u /* and BUNDLE */

/* The claim of one gateway of a pair (wan.h, enum wan_claim). */
enum wan_hello_claim { WAN_HELLO_NO_CLAIM, WAN_HELLO_HOLD, WAN_HELLO_TAKE, WAN_HELLO_KEEP };

/*
 * In the byte `claim`: with TAKE the sender was asked to take over, with KEEP it did not have the
 * tunnel before. The other bits are the claim's number.
 */
#define WAN_HELLO_INHERIT 128u
#define WAN_HELLO_NUMBER  127u

struct wan_f_hello {
	uint8_t flags;
	uint8_t claim; /* number of the claim, from 1 up and round; 0: the sender never made one */
	uint16_t mtu;
	uint32_t index; /* index that the receiver of this HELLO writes into its datagrams */
	uint64_t tunnel_id;
	uint64_t epoch;
	uint64_t nonce;      /* fresh: an answer that echoes it is not old */
	uint64_t echo;       /* nonce of the HELLO that this one answers; 0: none */
	uint64_t echo_epoch; /* epoch of the gateway that sent that nonce */
	uint32_t rx_window;
	uint32_t ack_delay_us;
	uint64_t rx_bytes;
	uint32_t rx_cost;
	uint8_t more; /* more flags; 0: the byte is left out */
};
static inline enum wan_hello_claim wan_f_hello_claim(const struct wan_f_hello *h)
{
	bool any = h->claim & WAN_HELLO_NUMBER;

	return any ? (enum wan_hello_claim)(h->flags >> WAN_HELLO_CLAIM & 3) : WAN_HELLO_NO_CLAIM;
}
uint8_t *wan_f_hello_put(uint8_t *p, const struct wan_f_hello *h);
bool wan_f_hello_get(const uint8_t *p, size_t len, struct wan_f_hello *h);

/* Returns the 64-bit number nearest to `near` with these low 32 bits. */
static inline uint64_t wan_expand(uint64_t near, uint32_t low)
{
	return near + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)near);
}

/* Variable-length integers as in RFC 9000 section 16: the two top bits of the first byte give the
 * length 1, 2, 4 or 8. */
uint8_t *wan_varint_put(uint8_t *p, uint64_t v);
size_t wan_varint_size(uint64_t v);
const uint8_t *wan_varint_get(const uint8_t *p, const uint8_t *end, uint64_t *v);

#endif
