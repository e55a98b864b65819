/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One key exchange between two gateways: a TLS 1.3 connection (RFC 8446) at which both show a
 * certificate, and three messages in it (docs/wire-format.md, "Key exchange"). What comes out is
 * one secret by the exporter (RFC 8446 section 7.5, RFC 5705) with tunnel and both epochs as
 * context; each worker's two keys are made from it (aead_secret_of).
 *
 *     client: OFFER(tunnel, epoch, workers, cipher)
 *     server: ACCEPT(epoch), once its workers can open what the client seals; or REFUSE(reason)
 *     client: READY, once its workers can open what the server seals
 *
 * The standby of a pair (docs/standby.md) cannot reach the server. The active gateway makes an
 * exchange for it, with the standby's epoch and `reserve`, and before READY gives the standby the
 * secret by another connection of this kind, over the pair's cable:
 *
 *     client: KEEP(tunnel, both epochs, secret)
 *     server: KEPT, once its workers have the keys; or REFUSE(reason)
 *
 * Sans-I/O: bytes come in and go out; there is no socket, thread, clock or log here. Memory of an
 * exchange is bounded whatever the peer sends. One thread at a time.
 */
#ifndef GATEWAY_KEYS_EXCHANGE_H
#define GATEWAY_KEYS_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aead/aead.h"
#include "aead/schedule.h"
#include "gateway/tls/cert.h"
#include "rwy/err.h"

#define GW_KX_ALPN "roceway-keys/1"

/* X(enumerator, name, sentence) */
#define GW_KX_STATES(X)                                                                                      \
	X(GW_KX_HANDSHAKE, "handshake", "the TLS handshake is not finished")                                 \
	X(GW_KX_OFFERED, "offered", "client: the server's answer to OFFER or KEEP has not come")             \
	X(GW_KX_WAITS_OFFER, "waits-offer", "server: the client has not said which tunnel")                  \
	X(GW_KX_DECIDES, "decides", "server: the caller accepts or refuses")                                 \
	X(GW_KX_INSTALLS, "installs", "the caller gives the secret to its workers")                          \
	X(GW_KX_WAITS_READY, "waits-ready", "server: the client has not said that it has the keys")          \
	X(GW_KX_DONE, "done", "both have the keys")                                                          \
	X(GW_KX_FAILED, "failed", "nobody got keys from it")

enum gw_kx_state {
#define X(e, n, s) e,
	GW_KX_STATES(X)
#undef X
};

/* X(enumerator, number on the wire, sentence of the one that is refused) */
#define GW_KX_REASONS(X)                                                                                     \
	X(GW_KX_R_BUSY, 1, "the peer's own handshake for this tunnel goes on")                               \
	X(GW_KX_R_TUNNEL, 2,                                                                                 \
	    "the peer has no tunnel with keys between these addresses and ports: `local`, `remote`, "        \
	    "`udp_port` or `security` differ")                                                               \
	X(GW_KX_R_NAME, 3, "this gateway's certificate is not for the `peer_name` that the peer expects")    \
	X(GW_KX_R_WORKERS, 4, "the peer has another number of workers")                                      \
	X(GW_KX_R_CIPHER, 5, "the peer has another `keys.cipher`")                                           \
	X(GW_KX_R_RESOURCE, 6, "the peer has no memory, or a worker of it does not answer")                  \
	X(GW_KX_R_RATE, 7, "the peer has had too many handshakes for this tunnel")                           \
	X(GW_KX_R_NO_STANDBY, 8, "the other gateway of the pair is no standby, or another process by now")

enum gw_kx_reason {
#define X(e, n, s) e = (n),
	GW_KX_REASONS(X)
#undef X
};
const char *gw_kx_reason_text(unsigned reason);

/* Result of gw_kx_step(): the caller's next action. */
enum gw_kx_event {
	GW_KX_EV_NONE,
	GW_KX_EV_ASKED, /* server: look at gw_kx_offer; gw_kx_accept or gw_kx_refuse */
	/* client: gw_kx_result to the workers, gw_kx_installed; they seal with it from then on */
	GW_KX_EV_KEYS,
	GW_KX_EV_READY, /* server: seal with the keys from now on; the exchange is over */
	/* server: gw_kx_offer says the tunnel; gw_kx_result to the workers, gw_kx_installed; or
	 * gw_kx_refuse */
	GW_KX_EV_KEEP,
	GW_KX_EV_KEPT,  /* client: the standby's workers have the keys; the exchange is over */
	GW_KX_EV_FAILED /* gw_kx_why says why */
};

struct gw_kx_offer {
	uint64_t tunnel; /* conf_tunnel_id of worker 0 */
	uint64_t epoch;  /* a number that the sender drew at its start */
	uint16_t workers;
	enum aead_alg alg;
	bool reserve; /* for the client's standby, whose epoch this is */
};

/* A secret, and the epochs of the end that has it and of its peer. */
struct gw_kx_result {
	struct aead_secret secret;
	uint64_t own_epoch, peer_epoch;
};

struct gw_kx;

/*
 * Begins an exchange as client: `offer` is what it says, `name` is the server's, which its
 * certificate must have. RWY_ENOMEM. It takes a reference to cert.
 */
RWY_MUST_CHECK int gw_kx_client(
    struct gw_kx **out, struct gw_cert *cert, const struct gw_kx_offer *offer, const char *name);
/*
 * The same for a secret that another exchange made: keys->own_epoch is the server's, a standby, and
 * keys->peer_epoch that of the gateway at the tunnel's other end.
 */
RWY_MUST_CHECK int gw_kx_client_keep(struct gw_kx **out, struct gw_cert *cert, uint64_t tunnel,
    const struct gw_kx_result *keys, const char *name);
/* The same as server. */
RWY_MUST_CHECK int gw_kx_server(struct gw_kx **out, struct gw_cert *cert);
void gw_kx_free(struct gw_kx *x); /* NULL is allowed; secrets are wiped */

/* Takes n bytes of the peer. RWY_EMALFORMED: more than a peer may send; the caller closes. */
RWY_MUST_CHECK int gw_kx_input(struct gw_kx *x, const uint8_t *p, size_t n);
/* The peer has closed its connection. */
void gw_kx_input_end(struct gw_kx *x);
/*
 * Bytes to send to the peer, *n of them; valid until the next call. gw_kx_sent(n): the first n were
 * sent.
 */
const uint8_t *gw_kx_output(const struct gw_kx *x, size_t *n);
void gw_kx_sent(struct gw_kx *x, size_t n);
/* Goes on as far as what came in allows. Call it after each other call, until EV_NONE. */
enum gw_kx_event gw_kx_step(struct gw_kx *x);

enum gw_kx_state gw_kx_state(const struct gw_kx *x);
const char *gw_kx_state_name(enum gw_kx_state s);
/* One sentence about the failure. */
const char *gw_kx_why(const struct gw_kx *x);
/* The reason with which the peer refused; 0: it did not. */
unsigned gw_kx_refused(const struct gw_kx *x);

/* Server, state DECIDES: what the client asked for, and who it is. */
const struct gw_kx_offer *gw_kx_offer(const struct gw_kx *x);
/*
 * Server, state DECIDES: makes the secret; the caller gives it to its workers, then calls
 * gw_kx_installed. RWY_EINVAL: the TLS session gives none.
 */
RWY_MUST_CHECK int gw_kx_accept(struct gw_kx *x, uint64_t epoch);
/*
 * Server, state INSTALLS: another secret instead, because the workers cannot tell its keys from
 * those of a key set that they have (RWY_EEXIST of wan_keys_offer): a set's id has one byte. The
 * client is told with ACCEPT which one it is. RWY_EINVAL: 16 were tried, or the session gives none.
 */
RWY_MUST_CHECK int gw_kx_again(struct gw_kx *x);
void gw_kx_refuse(struct gw_kx *x, enum gw_kx_reason reason);

/* State INSTALLS: the secret, and the epochs of this end and of the peer. */
const struct gw_kx_result *gw_kx_result(const struct gw_kx *x);
/* State INSTALLS: the workers have it. The peer is told. */
void gw_kx_installed(struct gw_kx *x);

/* After the handshake: the peer's chain, to be checked against a name, and later again. Ownership
 * moves to the caller. RWY_EINVAL, RWY_ENOMEM. */
RWY_MUST_CHECK int gw_kx_peer(struct gw_kx *x, struct gw_cert_peer *out);

#endif
