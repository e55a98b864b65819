/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel's datagrams on a byte stream (docs/carriers.md): records with a length in front, how a
 * new connection proves which tunnel it belongs to, and how the two ends agree on the carrier.
 * Bytes only: no sockets, no clock.
 *
 * A record:
 *   0  length of what follows these four bytes
 *   2  type
 *   3  DATAGRAM: number of the worker; else 0
 *
 * A connection begins with HELLO in both directions, the same as the native carrier's HELLO
 * datagram, until each end has received its own fresh nonce back (handshake.c):
 *
 *    opener: HELLO want, nonce a     ->
 *                                    <-  HELLO want, nonce b, echo a
 *    opener: HELLO, echo b           ->  then any records
 *
 * Until then nothing else is accepted. The protection is that of the native handshake.
 */
#ifndef WAN_RECORD_H
#define WAN_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"

#define WAN_REC_HDR 4
#define WAN_REC_MAX 9216 /* body bytes: more than any datagram has */

enum wan_rec_type { WAN_REC_DATAGRAM, WAN_REC_HELLO, WAN_REC_WISH };

struct wan_rec {
	enum wan_rec_type type;
	uint8_t worker;
	uint8_t *body;
	uint32_t len;
};

/* Writes the four bytes in front of a body. worker: 0 unless it is a DATAGRAM. len: bytes of the
 * body, up to WAN_REC_MAX. */
void wan_rec_head(uint8_t out[WAN_REC_HDR], enum wan_rec_type type, uint8_t worker, uint32_t len);
/* Reads the first record of n bytes; rec->body points into p. Returns its length; 0: it is
 * incomplete; RWY_EMALFORMED: no record begins like this, so the rest of the stream is
 * unreadable. */
RWY_MUST_CHECK int wan_rec_get(uint8_t *p, size_t n, struct wan_rec *rec);

/* --- identity of a connection ----------------------------------------------------------------- */
#define WAN_REC_HELLO_LEN (WAN_REC_HDR + 88)

struct wan_conn {
	uint64_t tunnel_id, epoch, nonce;
	uint64_t peer_nonce, peer_epoch;
	bool open; /* the peer has proved that it is present and knows the tunnel */
	bool owe;  /* a HELLO must be sent */
	bool known;
};
/* epoch: of this process. nonce: fresh, random, not 0. opener: this end sends first. */
void wan_conn_init(struct wan_conn *c, uint64_t tunnel_id, uint64_t epoch, uint64_t nonce, bool opener);
/* Reads the tunnel of a HELLO record, for the end that accepted the connection. Returns false: not
 * a HELLO. */
bool wan_conn_peek(const struct wan_rec *rec, uint64_t *tunnel_id);
/* Processes a HELLO record. RWY_EMALFORMED: not a HELLO, or damaged; RWY_ENOENT: another tunnel,
 * our own HELLO, or an echo of a nonce that was never sent. After an error the caller closes the
 * connection. */
RWY_MUST_CHECK int wan_conn_hello(struct wan_conn *c, const struct wan_rec *rec);
/* Writes bytes that must be sent before anything else. Returns their number; 0: none. */
size_t wan_conn_put(struct wan_conn *c, uint8_t out[WAN_REC_HELLO_LEN]);

/* --- agreement on the carrier ----------------------------------------------------------------- */
/*
 * One value that both ends share and either may change. An end that changes it increments the
 * highest count that it knows. The higher count wins; of two equal counts (both ends changed it at
 * once) the carrier that comes later in the enum wins. The value is sent at the beginning of each
 * connection and whenever it changes.
 *
 * Beside it each end says by which carrier it lets detours go (stream.h): so the other end keeps
 * the connections, whatever it does itself. An older end says none, and reads nothing of it.
 */
enum wan_carrier { WAN_CARRIER_NATIVE, WAN_CARRIER_TCP, WAN_CARRIER_QUIC, WAN_CARRIER_RDMA };
#define WAN_CARRIERS 4
const char *wan_carrier_name(enum wan_carrier c); /* "native", "tcp", "quic", "rdma" */

struct wan_agree {
	uint32_t count;
	enum wan_carrier carrier;
	bool by_peer; /* the present value came from the peer */
	/* for detours, ours and the peer's; WAN_CARRIER_NATIVE: none */
	enum wan_carrier detour, peer_detour;
};
#define WAN_REC_WISH_LEN (WAN_REC_HDR + 12)
/* Changes the value on behalf of this end. */
void wan_agree_ask(struct wan_agree *a, enum wan_carrier c);
/* Writes a WISH record, with its length in front, to be sent to the peer. */
void wan_agree_put(const struct wan_agree *a, uint8_t out[WAN_REC_WISH_LEN]);
/* Processes a WISH record. Returns 1: our value or the peer's detour changed; 0: unchanged;
 * RWY_EMALFORMED. */
RWY_MUST_CHECK int wan_agree_get(struct wan_agree *a, const struct wan_rec *rec);

#endif
