/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of a tunnel: which key seals the next datagram, which one opens a received one, and when a
 * new one takes over. The cipher is a table of functions (aead/aead.h). Private to wan/ and its
 * tests; wan.h has what the tunnel's user calls.
 *
 * A *key set* is what one handshake between the gateways gave: a secret for each direction. Each
 * direction has *phases*: the sender goes to the next one before 2^26 datagrams or after
 * wan_cfg.rekey, as in RFC 9001 section 6: the secret of a phase is made from the one before, and a
 * bit of the header says which of two phases it is. The receiver keeps the phase before for three
 * probe timeouts. The two directions are independent.
 *
 * A sealed datagram: 16 bytes of header in the clear, which are additional data; then the rest of
 * the header and the frames, encrypted; then the tag. The nonce is the key's IV xor path and packet
 * number. A packet number is never used twice, and a HELLO has a path and a counter of its own.
 *
 * The peer may be one of a *pair* (wan.h): two processes with one address, of which one is
 * believed. The other one may exchange keys, too, to claim the tunnel. So while a peer with a claim
 * is up, a new key set takes over only when that peer has sealed something with it. One that
 * another process uses is put aside: it seals only what answers that process, until the process is
 * believed. A set may also be reserved for the standby before it needs one: nobody seals with it
 * until the standby claims the tunnel.
 */
#ifndef WAN_KEYS_H
#define WAN_KEYS_H

#include "aead/schedule.h"
#include "wan/wan.h"
#include "wan/wire/pkt.h"

/*
 * One in use, one old, one offered, one that another process of the peer's pair has, and two
 * reserved for the peer's standby: the latest, and the one before, which the standby may still
 * have.
 */
#define WAN_KEY_SETS   6
#define WAN_PATH_HELLO 14                  /* path number of HELLOs in nonces */
#define WAN_PHASE_MAX  ((uint64_t)1 << 26) /* datagrams of one phase */
#define WAN_SEALED_AAD 16

/* X(enumerator, name, sentence) */
#define WAN_KEY_STATES(X)                                                                                    \
	X(WAN_KEY_NONE, "none", "no key set is here")                                                        \
	X(WAN_KEY_OFFERED, "offered", "the peer may use it; it is not known that the peer has it")           \
	X(WAN_KEY_USED, "used", "what is sent is sealed with it")                                            \
	X(WAN_KEY_RESERVED, "reserved", "for the standby of the peer's pair, which has not spoken yet")      \
	X(WAN_KEY_ASIDE, "aside", "another process of a pair has it: it seals answers to that one")          \
	X(WAN_KEY_OLD, "old", "a newer one is used; the peer may not know, or has datagrams under way")

enum wan_key_state {
#define X(e, n, s) e,
	WAN_KEY_STATES(X)
#undef X
	    WAN_KEY_STATE_COUNT
};

/* One phase of one direction. */
struct wan_key {
	struct aead_key key;
	uint8_t iv[AEAD_NONCE];
};

struct wan_key_tx {
	struct wan_key k;
	struct aead_secret secret;
	uint8_t id;    /* of the key set, in the header */
	uint8_t phase; /* 0 or 1 */
	uint64_t sent; /* datagrams of this phase */
	rwy_time since;
	uint64_t first[WAN_PATHS_MAX]; /* packet numbers at which the phase began */
};

struct wan_key_rx {
	struct wan_key k[3];
	uint8_t now, next, before; /* places in k */
	struct aead_secret secret; /* of `next` */
	uint8_t id, phase;
	/*
	 * Lowest packet number of this phase that came, of each path and of HELLOs; UINT64_MAX:
	 * none did. A datagram of the other phase with a higher number is of the next one.
	 */
	uint64_t first[WAN_PATHS_MAX + 1];
	rwy_time before_until; /* from then on nothing is of the one before */
};

struct wan_key_set {
	enum wan_key_state state;
	uint64_t epoch; /* of the process at the other end; 0: not known yet */
	/* OLD: when it is wiped unless it is `heard`; ASIDE: since when; else: when it was made */
	rwy_time until;
	/*
	 * It was made in the name of a standby, whose own certificate nobody has seen: so some time
	 * after its first datagram it is wiped, at `ends`. RWY_NEVER: none came yet.
	 */
	bool reserved;
	bool kept; /* RESERVED: the standby has it */
	rwy_time ends;
	struct wan_key_tx tx;
	struct wan_key_rx rx;
};

/* In memory of its own, which is not part of a core dump (aead_mem_alloc). */
struct wan_keys {
	struct wan_key_set *used, *offered; /* in set[]; NULL: none. offered: the last one */
	/*
	 * The set with which the peer seals, as far as this end knows: it may be older than `used`.
	 * NULL: the peer has sealed nothing yet.
	 */
	struct wan_key_set *heard;
	rwy_time try_at; /* when a HELLO shall ask whether the believed peer has `offered` */
	unsigned tries;  /* such HELLOs so far */
	uint64_t hellos; /* HELLOs sealed so far: their packet numbers */
	struct wan_key_set set[WAN_KEY_SETS];
};

/* Makes the keys of a tunnel, without a key set. RWY_ENOMEM. */
RWY_MUST_CHECK int wan_keys_new(struct wan_tunnel *t);
/* Wipes and frees them. A tunnel without keys is allowed. */
void wan_keys_free(struct wan_tunnel *t);

/* The set that was offered last is used from now on. False: none is; or the peer is one of a pair
 * and up, and is asked first whether it has the set. */
bool wan_keys_take_offered(struct wan_tunnel *t, rwy_time now);
/* The process of this epoch is believed from now on: its set is used, if there is one. */
void wan_keys_follow(struct wan_tunnel *t, uint64_t epoch, rwy_time now);
/* Wipes all key sets. The tunnel has keys. */
void wan_keys_wipe(struct wan_tunnel *t);

/* Datagrams may be sealed: a key set is in use. */
bool wan_keys_ready(const struct wan_tunnel *t);
/*
 * Marks the header of a finished datagram, and tells wan_tx_write how to seal it. `path` and `pn`
 * are those of the nonce. wan_keys_ready() is true.
 */
void wan_keys_mark(struct wan_tunnel *t, struct wan_tx *tx, uint8_t path, uint64_t pn);
/* The same for a HELLO to the process of this epoch, or, if `tries`, with the set offered last. */
void wan_keys_mark_hello(struct wan_tunnel *t, struct wan_tx *tx, uint64_t epoch, bool tries, uint64_t pn);
/* A HELLO shall ask whether the peer has the set that was offered last. */
bool wan_keys_tries(const struct wan_tunnel *t, rwy_time now);
/* Such a HELLO is sent. */
void wan_keys_tried(struct wan_tunnel *t, rwy_time now);
/*
 * Opens a received datagram in place: b is then as the sender's was before it was sealed, without
 * the tag and without marks of keys in the header. False: it is not the peer's; counted.
 */
bool wan_keys_open(struct wan_tunnel *t, struct rwy_buf *b, rwy_time now);

/* Goes to the next phase when it is time; forgets old key sets. The one in use may end. */
void wan_keys_tick(struct wan_tunnel *t, rwy_time now);
rwy_time wan_keys_next(const struct wan_tunnel *t);

#endif
