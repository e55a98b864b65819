/* SPDX-License-Identifier: Apache-2.0 */
/* Private to gateway/carrier/quic_*.c: the only files that see ngtcp2's types. */
#ifndef GATEWAY_CARRIER_QUIC_IMPL_H
#define GATEWAY_CARRIER_QUIC_IMPL_H

#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#include "gateway/carrier/quic.h"

#define QUIC_CID_LEN   12
#define QUIC_CIDS      8 /* most connection ids of ours that a peer holds */
#define QUIC_SECRET    32
#define QUIC_CID_SLOTS 1024
#define QUIC_CHUNK     (16u << 10)
#define QUIC_UNSENT    (256u << 10) /* most bytes that wait here to be sent first */
#define QUIC_BATCH     65000        /* most bytes handed over at once */
#define QUIC_SEGMENTS  60           /* most datagrams at once; the kernel takes 64 */

struct gw_quic_tls {
	unsigned users;
	struct gw_cert *cert;
	uint8_t secret[QUIC_SECRET]; /* for tokens and resets; the same after a restart */
};

/* Bytes of a stream on their way: sent ones are kept until acknowledged. */
struct quic_chunk {
	struct quic_chunk *next;
	uint32_t n;
	uint8_t b[QUIC_CHUNK];
};
struct quic_tx {
	struct quic_chunk *head, *tail, *at;
	uint32_t at_off; /* in `at`: where unsent bytes begin */
	uint64_t base;   /* stream offset of head */
	uint64_t acked, sent, end;
};

struct quic_cid {
	struct quic_cid *next;
	ngtcp2_cid cid;
	struct gw_quic_conn *conn;
};

enum quic_state { QUIC_HANDSHAKE, QUIC_OPEN, QUIC_DEAD };

struct gw_quic_conn {
	struct gw_quic_end *end;
	struct gw_quic_conn *next;
	enum quic_state state;
	bool client;
	bool verified;  /* the peer's certificate was found good */
	bool cert_bad;  /* it was found bad: `why` says how */
	bool wants_out; /* not blocked by the peer's connection window */
	bool quit;      /* dead by gw_quic_close: the peer must still be told */
	void *user;
	ngtcp2_conn *q;
	gnutls_session_t session;
	ngtcp2_crypto_conn_ref ref;
	struct gw_quic_tls *tls;
	char name[GW_QUIC_NAME]; /* of the peer's certificate */
	char why[GW_QUIC_WHY];
	struct gw_quic_addr remote;
	rwy_time now; /* of the present call */
	unsigned streams, turn;
	/* those with unsent bytes that are not blocked */
	uint64_t active[(GW_QUIC_STREAMS_MAX + 63) / 64];
	int64_t id[GW_QUIC_STREAMS_MAX]; /* of ours */
	struct quic_tx tx[GW_QUIC_STREAMS_MAX];
	uint64_t unacked, unsent;
	uint64_t pieces; /* packets with new bytes of a stream, counted for each stream */
};

#define QUIC_PAYERS 64

struct gw_quic_end {
	struct gw_quic_cfg cfg;
	struct gw_quic_tls *tls;
	const struct gw_quic_ops *ops;
	void *ctx;
	struct gw_quic_conn *conns;
	unsigned n, half; /* connections; half open ones of peers */
	uint64_t cid_key;
	struct quic_cid *cid[QUIC_CID_SLOTS];
	struct quic_chunk *spare;
	unsigned spares;
	rwy_time reset_at; /* earliest time of the next Stateless Reset */
	/* by a hash of the address: its handshakes are paid until then */
	rwy_time paid[QUIC_PAYERS];
	bool full; /* the socket took no more in this call */
	struct gw_quic_counters c;
	uint8_t batch[QUIC_BATCH];
};

/* --- quic_tls.c ------------------------------------------------------------------------------- */
struct gw_quic_tls *quic_tls_ref(struct gw_quic_tls *tls);
/* Makes c->session with c->tls for the role and the peer's name of c. RWY_ENOMEM. */
int quic_tls_session(struct gw_quic_conn *c);

/* --- quic_stream.c ---------------------------------------------------------------------------- */
int quic_tx_append(struct gw_quic_end *e, struct quic_tx *t, const struct iovec *v, unsigned n);
/* Fills at most max vectors with unsent bytes. Returns their number. */
unsigned quic_tx_unsent(const struct quic_tx *t, ngtcp2_vec *v, unsigned max);
void quic_tx_sent(struct quic_tx *t, uint64_t n);
/* Everything before this offset is acknowledged: frees chunks. Returns the bytes newly so. */
uint64_t quic_tx_acked(struct gw_quic_end *e, struct quic_tx *t, uint64_t to);
void quic_tx_free(struct gw_quic_end *e, struct quic_tx *t);

/* --- quic_addr.c: addresses and connection ids ------------------------------------------------ */
void quic_sockaddr(ngtcp2_sockaddr_union *out, ngtcp2_addr *a, const struct gw_quic_addr *from);
struct gw_quic_addr quic_addr(const ngtcp2_addr *a);
void quic_random(void *p, size_t n);
void quic_cid_new(ngtcp2_cid *out);
int quic_cid_add(struct gw_quic_end *e, const ngtcp2_cid *cid, struct gw_quic_conn *c);
void quic_cid_remove(struct gw_quic_end *e, const ngtcp2_cid *cid);
void quic_cid_remove_all(struct gw_quic_end *e, const struct gw_quic_conn *c);
struct gw_quic_conn *quic_cid_find(const struct gw_quic_end *e, const uint8_t *p, size_t n);

/* --- quic_events.c ---------------------------------------------------------------------------- */
extern const ngtcp2_callbacks quic_client_events, quic_server_events;
/* The stream that has number idx and is of the client or not. */
int64_t quic_stream_id(unsigned idx, bool client);

/* --- quic_conn.c ------------------------------------------------------------------------------ */
/*
 * A client's Initial packet as the server sees it. odcid: destination id of the client's first
 * Initial, before a Retry.
 */
struct quic_first {
	const ngtcp2_pkt_hd *hd;
	const ngtcp2_cid *odcid;
	bool retried;
};
/* Makes a connection; first is NULL for one of ours. NULL: no memory. */
struct gw_quic_conn *quic_conn_new(struct gw_quic_end *e, const struct gw_quic_addr *remote, const char *name,
    const struct quic_first *first, rwy_time now);
void quic_conn_free(struct gw_quic_conn *c);
void quic_conn_read(struct gw_quic_conn *c, const struct gw_quic_addr *remote, const uint8_t *p, size_t n,
    uint8_t ecn, rwy_time now);
/* Timers, then sends. */
void quic_conn_write(struct gw_quic_conn *c, rwy_time now);
rwy_time quic_conn_next(const struct gw_quic_conn *c);
/* Sends CONNECTION_CLOSE as the error says. err: of ngtcp2, or 0: reason is the application's. */
void quic_conn_tell(struct gw_quic_conn *c, int err, const char *reason, rwy_time now);

#endif
