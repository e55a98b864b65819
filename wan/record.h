/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel's datagrams on a byte stream (docs/carriers.md): records with a length in front, how a new
 * connection shows whose it is, and how the two ends agree on the carrier. Bytes only: no sockets, no clock.
 *
 * A record:
 *  0 length of what follows these four bytes
 *  2 type
 *  3 DATAGRAM: which worker's half of the tunnel it is of; else 0
 *
 * A connection begins with HELLO both ways, the native carrier's datagram of that name, until each end has
 * seen its own fresh nonce come back (handshake.c):
 *
 *   opener: HELLO want, nonce a   ->
 *                                 <-  HELLO want, nonce b, echo a
 *   opener: HELLO, echo b         ->      and then whatever there is
 *
 * Until then nothing else is accepted. What keeps out whom is the same as there.
 */
#ifndef WAN_RECORD_H
#define WAN_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"

#define WAN_REC_HDR 4
#define WAN_REC_MAX 9216 /* of a record's body: larger than any datagram */

enum wan_rec_type { WAN_REC_DATAGRAM, WAN_REC_HELLO, WAN_REC_WISH };

struct wan_rec {
	enum wan_rec_type type;
	uint8_t worker;
	uint8_t *body;
	uint32_t len;
};

void wan_rec_head(uint8_t out[WAN_REC_HDR], enum wan_rec_type type, uint8_t worker, uint32_t len);
/* The first record of n bytes. How many bytes it takes; 0: it is not whole yet; RWY_EMALFORMED: no record
 * begins like this, and nothing after it can be read. rec->body points into p. */
RWY_MUST_CHECK int wan_rec_get(uint8_t *p, size_t n, struct wan_rec *rec);

/* --- whose connection it is ----------------------------------------------------------------------- */
#define WAN_REC_HELLO_LEN (WAN_REC_HDR + 88)

struct wan_conn {
	uint64_t tunnel_id, epoch, nonce;
	uint64_t peer_nonce, peer_epoch;
	bool open; /* the peer has proved that it is there now, and knows the tunnel */
	bool owe;  /* a HELLO is to be sent */
	bool known;
};
/* epoch: this process's. nonce: fresh, random, not 0. opener: we speak first. */
void wan_conn_init(struct wan_conn *c, uint64_t tunnel_id, uint64_t epoch, uint64_t nonce, bool opener);
/* A HELLO record's tunnel, so that the end that was connected to knows which it is. False: it is no HELLO. */
bool wan_conn_peek(const struct wan_rec *rec, uint64_t *tunnel_id);
/* RWY_EMALFORMED: it is none, or damaged; RWY_ENOENT: of another tunnel, of ourselves, or an echo of what we
 * never said. Then the connection is to be closed. */
RWY_MUST_CHECK int wan_conn_hello(struct wan_conn *c, const struct wan_rec *rec);
/* Bytes to be sent before anything else. Returns how many, 0: none. */
size_t wan_conn_put(struct wan_conn *c, uint8_t out[WAN_REC_HELLO_LEN]);

/* --- which carrier -------------------------------------------------------------------------------- */
/*
 * One value that both ends have, and either may change: who changes it counts on from the highest count it
 * knows, and the higher count wins; of the same count (both began, or both were asked at once) the later
 * carrier in the list. It is told at the beginning of each connection and when it changes.
 */
enum wan_carrier { WAN_CARRIER_NATIVE, WAN_CARRIER_TCP };
#define WAN_CARRIERS 2
const char *wan_carrier_name(enum wan_carrier c); /* "native", "tcp" */

struct wan_agree {
	uint32_t count;
	enum wan_carrier carrier;
	bool by_peer; /* the present value is the peer's */
};
#define WAN_REC_WISH_LEN (WAN_REC_HDR + 12)
void wan_agree_ask(struct wan_agree *a, enum wan_carrier c); /* here somebody asked for it */
void wan_agree_put(const struct wan_agree *a, uint8_t out[WAN_REC_WISH_LEN]);
/* A WISH record. 1: it changed our value; 0: it did not; RWY_EMALFORMED. */
RWY_MUST_CHECK int wan_agree_get(struct wan_agree *a, const struct wan_rec *rec);

#endif
