/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HELLOs: the handshake of a tunnel, claims of a pair of gateways, and the witness. Private to wan/
 * and its tests. Functions are grouped by their .c file.
 */
#ifndef WAN_HELLO_H
#define WAN_HELLO_H

#include "wan/tunnel.h"
#include "wan/wire/pkt.h"

/* handshake.c */
void wan_hs_init(struct wan_tunnel *t, rwy_time now);
/* A HELLO from the peer. */
void wan_hs_recv(struct wan_tunnel *t, struct wan_path *p, const uint8_t *body, size_t len, rwy_time now);
/* HELLOs can be sent now: keys are here, or the tunnel was silent until now. */
void wan_hs_wake(struct wan_tunnel *t, rwy_time now);
/* Answers to earlier HELLOs count no longer. */
void wan_hs_nonce(struct wan_tunnel *t, rwy_time now);
/* The index that a peer of this epoch writes into its datagrams. The upper half stays as
 * configured: a load balancer may steer by it. */
static inline uint32_t wan_hs_index(const struct wan_tunnel *t, uint64_t peer_epoch)
{
	return t->cfg.index ^ (uint32_t)(rwy_mix64(peer_epoch) & 0xffffu);
}
/* Arguments of an event of the table in states.h. */
struct wan_hs_what {
	struct wan_path *p;          /* HELLO: path it came by */
	const struct wan_f_hello *f; /* HELLO */
	rwy_time now;
};
void wan_hs_event(struct wan_tunnel *t, enum wan_hs_event ev, const struct wan_hs_what *what);

/* hello_tx.c */
/* The next HELLO; false: none is due. */
bool wan_hs_put(struct wan_tunnel *t, struct wan_tx *tx, rwy_time now);
rwy_time wan_hs_next(const struct wan_tunnel *t);

/* claim.c: claims of this gateway */
/*
 * The HELLO is of a gateway that seeks the tunnel, as this one does. Each may have an active
 * gateway beside it that it does not hear, so they accept each other only when no other one has
 * spoken for some seconds: an active one answers at once.
 */
bool wan_claim_avoids(const struct wan_tunnel *t, const struct wan_f_hello *f, rwy_time now);
void wan_claim_init(struct wan_tunnel *t);
/* The claim must be confirmed, and is not: a HELLO that is sent now asks. */
bool wan_claim_asks(const struct wan_tunnel *t, rwy_time now);
/* The next HELLO's byte `claim` and the flags that go with it. echoes: it echoes the nonce of the
 * peer that we believe. */
uint8_t wan_claim_byte(const struct wan_tunnel *t);
uint8_t wan_claim_flags(const struct wan_tunnel *t, bool echoes);
/* A HELLO that asks was sent. */
void wan_claim_sent(struct wan_tunnel *t, rwy_time now);
/* The interval d; with a claim up to a quarter more or less, so that two ends do not keep step. */
rwy_dur wan_claim_jitter(const struct wan_tunnel *t, rwy_dur d);
/* The claim is granted no longer: the peer fell silent, or is a new one. */
void wan_claim_lapse(struct wan_tunnel *t, rwy_time now);
/* An answer to a HELLO with the present claim grants it. True: it was not granted before. */
bool wan_claim_on_held(struct wan_tunnel *t, rwy_time now);
/*
 * The peer's nonce that this end has not echoed is this; 0: none. An active gateway whose standby
 * is ready asks for one when it has none.
 */
void wan_claim_spare(struct wan_tunnel *t, uint64_t nonce, rwy_time now);
/* Such a gateway shows each new nonce of its own, since its peer may be one as well. */
bool wan_claim_shows(const struct wan_tunnel *t);
/* An answer says that we may not have the tunnel. True: it proves that. */
bool wan_claim_on_gone(struct wan_tunnel *t, const struct wan_f_hello *f, rwy_time now);
/* Changes the claim. True: HELLOs must ask for it, with a new nonce. */
bool wan_claim_set(struct wan_tunnel *t, enum wan_claim own, rwy_time now);

/* witness.c: claims of the peer */
/* Another tunnel decides about this process, and has not yet, or believes another one. */
bool wan_witness_waits(const struct wan_tunnel *t, const struct wan_f_hello *f);
/* This witness gives the tunnel to no other process now: it may have been replaced itself. */
bool wan_witness_abstains(const struct wan_tunnel *t, const struct wan_f_hello *f);
/* The gateway that sent the HELLO may not have the tunnel. */
bool wan_witness_refuses(const struct wan_tunnel *t, const struct wan_f_hello *f);
void wan_witness_refuse(struct wan_tunnel *t, const struct wan_path *p, const struct wan_f_hello *f);
/* The HELLO, of the peer that we believe, asks another gateway of our pair. */
bool wan_witness_asks_another(const struct wan_tunnel *t, const struct wan_f_hello *f);
/* A HELLO will be answered. */
void wan_witness_on_asked(struct wan_tunnel *t, const struct wan_path *p, const struct wan_f_hello *f);
/* The gateway that asked last was not believed: no HELLO is for it any longer. */
void wan_witness_forget_asker(struct wan_tunnel *t);
/* A HELLO, after its event. proof: it is fresh. True: it was not, and changed the peer's claim. */
bool wan_witness_on_hello(struct wan_tunnel *t, const struct wan_f_hello *f, bool proof);
/* The sender of the HELLO replaces our peer, or is the first one: it is believed from now on. */
void wan_witness_believe(struct wan_tunnel *t, const struct wan_f_hello *f);
/* A datagram of frames with this index is not of the session. */
void wan_witness_on_stranger(struct wan_tunnel *t, uint32_t index, uint8_t path, bool native, rwy_time now);

#endif
