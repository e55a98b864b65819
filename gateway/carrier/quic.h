/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QUIC connections between gateways: our only use of libngtcp2. Ordered byte streams with mutual
 * TLS 1.3; what the bytes mean is the caller's. Sans-I/O: datagrams, time and randomness come in,
 * datagrams go out through gw_quic_ops; there is no socket, thread or log here.
 *
 * An end (struct gw_quic_end) is one UDP address: it answers peers' connections and opens its own.
 * Each connection has streams 0 .. streams-1 in each direction, all open from the beginning and
 * never ended. A loss holds up its own stream only.
 *
 * Both ends of a connection show a certificate. Chain, purpose, time, revocation list and the name
 * that the caller expects are checked by both (RFC 5280, RFC 6125). There is no 0-RTT.
 *
 * Thread: one at a time for an end and its connections. Callbacks run inside gw_quic_read,
 * gw_quic_write and gw_quic_connect; they may call gw_quic_send, gw_quic_consumed and
 * gw_quic_close.
 */
#ifndef GATEWAY_CARRIER_QUIC_H
#define GATEWAY_CARRIER_QUIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "gateway/tls/cert.h"
#include "rwy/err.h"
#include "rwy/ip.h"
#include "rwy/time.h"

#define GW_QUIC_ALPN        "roceway/1"
#define GW_QUIC_STREAMS_MAX 257
#define GW_QUIC_WHY         160
#define GW_QUIC_NAME        256 /* a DNS name and its terminating 0 */
/* A TLS handshake costs a signature: a peer's address may begin one so often, and so many at once:
 * enough for the connections of all its tunnels. TCP's and QUIC's. */
#define GW_TLS_EACH  (20 * RWY_MS)
#define GW_TLS_BURST 512

struct gw_quic_addr {
	struct rwy_ip ip;
	uint16_t port;
};

/* --- certificates ----------------------------------------------------------------------------- */
struct gw_quic_tls;
/* Reads the files. RWY_EINVAL with one sentence in `why`, or RWY_ENOMEM. */
RWY_MUST_CHECK int gw_quic_tls_new(
    struct gw_quic_tls **out, const struct gw_cert_files *files, char *why, size_t size);
/* Drops the caller's reference; ends and connections have their own. NULL is allowed. */
void gw_quic_tls_free(struct gw_quic_tls *tls);
/* The certificates in it, which live as long as it does. */
struct gw_cert *gw_quic_tls_cert(const struct gw_quic_tls *tls);

/* --- ends ------------------------------------------------------------------------------------- */
struct gw_quic_end;
struct gw_quic_conn;

enum gw_quic_cc { GW_QUIC_BBR2, GW_QUIC_CUBIC };

struct gw_quic_cfg {
	struct gw_quic_addr local;
	enum gw_quic_cc cc;
	unsigned streams; /* 2 .. GW_QUIC_STREAMS_MAX in each direction */
	/* bytes that a connection may have unacknowledged, and that a peer may send ahead of
	 * gw_quic_consumed: at least the bandwidth-delay product */
	uint64_t window;
	/* largest UDP payload, 1200 .. 9000. Up to 1452 the path is probed for it; larger ones are
	 * sent without probing, so the path must be known to pass them. */
	uint16_t payload;
	rwy_dur idle;        /* a peer silent for this long is dead */
	rwy_dur keep_alive;  /* a PING after this much silence of ours */
	rwy_dur handshake;   /* longest handshake */
	unsigned conns;      /* most connections, half open ones included */
	unsigned half_max;   /* most half open connections of peers */
	unsigned half_retry; /* with more than these, peers must prove their address (Retry) */
	/* An address may begin one handshake, which costs a signature, in each `each`, and `burst`
	 * at once. */
	rwy_dur each;
	unsigned burst;
};

/* Datagrams to one address, each `segment` bytes long but for the last, which may be shorter. */
struct gw_quic_out {
	struct gw_quic_addr remote;
	const uint8_t *data;
	size_t len, segment;
	uint8_t ecn; /* 2 bits of the IP header */
};

struct gw_quic_ops {
	/* Sends. False: the socket is full; these are lost and the end sends no more now. */
	bool (*output)(void *ctx, const struct gw_quic_out *out);
	/* The name that the certificate of a peer at this address must have. NULL: no peer may
	 * connect from there. */
	const char *(*name)(void *ctx, const struct gw_quic_addr *remote);
	/* The peer is authenticated, and at the opening end it has confirmed the same of us. */
	void (*opened)(void *ctx, struct gw_quic_conn *c, rwy_time now);
	/* Bytes of a stream, in order, each once. */
	void (*received)(
	    void *ctx, struct gw_quic_conn *c, unsigned stream, const uint8_t *p, size_t n, rwy_time now);
	/* The connection has ended, open before or not; afterwards `c` is invalid. `why` is a
	 * sentence. Not called for gw_quic_close. */
	void (*closed)(void *ctx, struct gw_quic_conn *c, const char *why, rwy_time now);
};

/* X(field, sentence): counters of an end, monotonic. */
#define GW_QUIC_COUNTERS(X)                                                                                  \
	X(rx_datagrams, "UDP datagrams received")                                                            \
	X(tx_datagrams, "UDP datagrams sent")                                                                \
	X(drop_malformed, "datagrams that are no QUIC packet")                                               \
	X(drop_stranger, "first packets from addresses that are no peer's")                                  \
	X(drop_unknown, "datagrams of no connection, not answered")                                          \
	X(drop_token, "first packets with an address token that is wrong or too old")                        \
	X(drop_full, "first packets refused because too many handshakes or connections were open")           \
	X(drop_rate, "first packets of a peer that came too often")                                          \
	X(drop_packet, "datagrams of a connection that were discarded: not authentic, or damaged")           \
	X(tx_versions, "Version Negotiation packets sent")                                                   \
	X(tx_retries, "Retry packets sent")                                                                  \
	X(tx_resets, "Stateless Resets sent")                                                                \
	X(opened, "connections whose peer was authenticated")                                                \
	X(refused_certificate, "peers refused because of their certificate")                                 \
	X(handshake_failed, "handshakes that ended otherwise without a connection")                          \
	X(lost, "open connections that ended without our doing")                                             \
	X(migrated, "times a peer's address changed")
struct gw_quic_counters {
#define X(f, s) uint64_t f;
	GW_QUIC_COUNTERS(X)
#undef X
};

/* Default bounds; local, window and payload are for the caller to set. */
void gw_quic_cfg_default(struct gw_quic_cfg *cfg);
/* RWY_EINVAL: cfg is out of range; RWY_ENOMEM. */
RWY_MUST_CHECK int gw_quic_end_new(struct gw_quic_end **out, const struct gw_quic_cfg *cfg,
    struct gw_quic_tls *tls, const struct gw_quic_ops *ops, void *ctx);
/* Frees it and its connections; sends and calls nothing. NULL is allowed. */
void gw_quic_end_free(struct gw_quic_end *e);
/* New certificates, for connections that begin later. */
void gw_quic_end_tls(struct gw_quic_end *e, struct gw_quic_tls *tls);
/* Checks the certificate of a connection's peer again, with other certificates of ours. False: one
 * sentence is in why[size]. A connection whose handshake goes on passes. */
bool gw_quic_peer_verify(
    const struct gw_quic_conn *c, const struct gw_cert *cert, const char *name, char *why, size_t size);
const struct gw_quic_counters *gw_quic_end_counters(const struct gw_quic_end *e);
/* Processes one datagram. ecn: 2 bits of its IP header. */
void gw_quic_read(struct gw_quic_end *e, const struct gw_quic_addr *remote, const uint8_t *p, size_t n,
    uint8_t ecn, rwy_time now);
/* Does what is due and sends what may go now. Call it after any other function, at gw_quic_next,
 * and when a full socket has room again. */
void gw_quic_write(struct gw_quic_end *e, rwy_time now);
/* When gw_quic_write must be called next; RWY_NEVER. */
rwy_time gw_quic_next(const struct gw_quic_end *e);

/* --- connections ------------------------------------------------------------------------------ */
/* Begins a connection to a peer whose certificate must have this name. user: see gw_quic_user.
 * RWY_EINVAL: no name, or one too long; RWY_ENOMEM: too many connections, or memory. */
RWY_MUST_CHECK int gw_quic_connect(struct gw_quic_end *e, const struct gw_quic_addr *remote, const char *name,
    void *user, struct gw_quic_conn **out, rwy_time now);
/* Ends it; the next gw_quic_write tells the peer, with a reason of at most 100 bytes. `c` is
 * invalid afterwards. */
void gw_quic_close(struct gw_quic_conn *c, const char *reason);
/* The caller's pointer; NULL for a peer's connection until it is set. */
void *gw_quic_user(const struct gw_quic_conn *c);
void gw_quic_user_set(struct gw_quic_conn *c, void *user);
/* The end that it belongs to. */
struct gw_quic_end *gw_quic_end_of(const struct gw_quic_conn *c);
/* The peer's present address. */
struct gw_quic_addr gw_quic_remote(const struct gw_quic_conn *c);
/* Streams that this end may send on: the lesser of both ends' numbers; 0 before `opened`. */
unsigned gw_quic_streams(const struct gw_quic_conn *c);
/* Bytes that gw_quic_send takes now, over all streams. */
size_t gw_quic_room(const struct gw_quic_conn *c);
/* Appends bytes to a stream; they are copied, because a repetition must be the same bytes.
 * RWY_EAGAIN: more than the room, nothing was taken; RWY_ENOMEM: the same. */
RWY_MUST_CHECK int gw_quic_send(struct gw_quic_conn *c, unsigned stream, const struct iovec *v, unsigned n);
/* The caller is done with n more bytes of a stream: the peer may send as many more. */
void gw_quic_consumed(struct gw_quic_conn *c, unsigned stream, size_t n);

struct gw_quic_info {
	bool open;
	rwy_dur srtt, min_rtt, rttvar; /* 0: not measured */
	uint64_t window;               /* congestion window, bytes */
	uint64_t inflight, unacked;    /* bytes in flight; bytes of streams not acknowledged */
	uint64_t delivery_Bps;
	/* Parts of streams, as many as packets had them: those that were sent again because their
	 * packet was lost, or came too late not to be taken for lost; and all, those included. */
	uint64_t lost, pieces;
};
void gw_quic_info(const struct gw_quic_conn *c, struct gw_quic_info *out);

#endif
