/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of one RDMA connection of a tunnel with keys: which ones there are, and sealing
 * them. Sans-I/O: no verbs, no clock.
 *
 * Each message begins with a head in the clear, as a record of wan/record.h does:
 *
 *   0  length of what follows these four bytes
 *   2  type: TLS or SEALED
 *   3  SEALED: the key phase, 0 or 1; TLS: 0
 *
 * A connection begins with TLS 1.3 in messages of type TLS (conn_tls.c). Then all is SEALED: one
 * record or nothing, and the tag, by AES-GCM with two keys of this connection, one for each
 * direction, which the TLS exporter gives. Additional data are the head and the immediate data. The
 * nonce is the number of the message, which is not sent, as the queue pair keeps their order: a
 * message that is changed, left out, repeated or made up does not open, and ends the connection.
 *
 * No nonce is used twice: both keys are of one TLS handshake, belong to one connection and are
 * wiped with it, the thread of the carriers alone has them, and the number only grows. A phase
 * lasts as on the native carrier (wan/keys.h), and the next one's secret is made in the same way.
 */
#ifndef GATEWAY_CARRIER_RDMA_SEAL_H
#define GATEWAY_CARRIER_RDMA_SEAL_H

#include "aead/schedule.h"
#include "rwy/err.h"
#include "rwy/time.h"

#define GW_RDMA_HEAD  4
#define GW_RDMA_EXTRA (GW_RDMA_HEAD + AEAD_TAG) /* what a sealed message has beside its record */
#define GW_RDMA_PHASE ((uint64_t)1 << 26)       /* messages of one phase */

/* Not the numbers of wan/record.h: nothing can be taken for a record in the clear. */
enum gw_rdma_type { GW_RDMA_TLS = 16, GW_RDMA_SEALED = 17 };

void gw_rdma_head_put(uint8_t out[GW_RDMA_HEAD], enum gw_rdma_type type, uint8_t phase, uint32_t len);
/* Reads the head of a message of n bytes. RWY_EMALFORMED: it has none, or another length. */
RWY_MUST_CHECK int gw_rdma_head_get(const uint8_t *p, uint32_t n, enum gw_rdma_type *type);

/* One direction. */
struct gw_rdma_key {
	struct aead_key key[2]; /* by phase; the other one is wiped, or that of the next phase */
	uint8_t iv[2][AEAD_NONCE];
	struct aead_secret secret;
	uint64_t n;     /* number of the next message */
	uint64_t first; /* of the phase */
	rwy_time since;
	uint8_t phase;
};

/* In memory of its own, which is not part of a core dump (aead_mem_alloc). */
struct gw_rdma_seal {
	const struct aead_ops *aead;
	enum aead_alg alg;
	rwy_dur rekey; /* a phase lasts so long */
	uint64_t updates_sent, updates_received;
	struct gw_rdma_key tx, rx;
};

/*
 * `exported` is what TLS gave for this connection, `opener` says that this end opened it. NULL: no
 * memory. `exported` can be wiped then.
 */
struct gw_rdma_seal *gw_rdma_seal_new(const struct aead_ops *ops, enum aead_alg alg,
    const struct aead_secret *exported, bool opener, rwy_dur rekey, rwy_time now);
/* Wipes the keys; NULL is allowed. */
void gw_rdma_seal_free(struct gw_rdma_seal *s);
/*
 * Writes the sealed message, as long as `in` and GW_RDMA_EXTRA; `to` overlaps no part of `in`,
 * which may be empty. Each message that is written must be sent, in this order. RWY_ENOMEM: for a
 * new key; the connection ends.
 */
RWY_MUST_CHECK int gw_rdma_seal_put(
    struct gw_rdma_seal *s, uint8_t *to, const struct aead_in *in, uint32_t immediate, rwy_time now);
/*
 * Opens in place a message of n bytes that has a head of type SEALED: the record is at
 * p + GW_RDMA_HEAD, GW_RDMA_EXTRA shorter. RWY_EMALFORMED: the peer did not seal it as its next
 * one. RWY_ENOMEM: for a new key. Either ends the connection.
 */
RWY_MUST_CHECK int gw_rdma_seal_get(struct gw_rdma_seal *s, uint8_t *p, uint32_t n, uint32_t immediate);

#endif
