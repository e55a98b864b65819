/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of the gateway's tunnels (docs/security.md): a thread with TCP connections to the peers, on
 * which they exchange keys (exchange.h). Each end opens one when it has no keys, when the tunnel is
 * silent, and once in gw_conf `keys.lifetime`. A peer whose certificate is not valid any longer
 * loses its keys at once.
 *
 * Functions may be called from any thread except a worker's.
 */
#ifndef GATEWAY_KEYS_KEYS_H
#define GATEWAY_KEYS_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/app.h"

/* X(enumerator, name, sentence) */
#define GW_KEYS_STATES(X)                                                                                    \
	X(GW_KEYS_OFF, "none", "the tunnel has `security: none`: nothing is encrypted or authenticated")     \
	X(GW_KEYS_WANTED, "wanted", "no keys yet, or not any more: nothing is sent")                         \
	X(GW_KEYS_USED, "used", "what is sent is encrypted and authenticated")

enum gw_keys_state {
#define X(e, n, s) e,
	GW_KEYS_STATES(X)
#undef X
};

/* X(field, sentence): counters of one tunnel, monotonic. */
#define GW_KEYS_COUNTERS(X)                                                                                  \
	X(exchanges, "key exchanges that succeeded")                                                         \
	X(failed, "key exchanges that this end began and that failed")                                       \
	X(refused, "key exchanges of the peer that failed or were refused")                                  \
	X(crossed, "key exchanges given up because the peer began one at the same time")                     \
	X(reserved,                                                                                          \
	    "key sets for a standby: exchanged for this gateway's or the peer's, or given to this one")      \
	X(ended, "times that keys were wiped because the peer's certificate was not valid any more")

struct gw_keys_counters {
#define X(f, s) uint64_t f;
	GW_KEYS_COUNTERS(X)
#undef X
};

/* X(field, sentence): counters of all tunnels together, monotonic. */
#define GW_KEYS_TOTALS(X)                                                                                    \
	X(strangers, "connections for key exchanges from addresses without a tunnel, refused")               \
	X(full, "of a peer that had too many open, refused")                                                 \
	X(rate, "of a peer that came too often, refused")                                                    \
	X(slow, "that did not finish in time, closed")                                                       \
	X(reread, "times that the certificates were read, first at the start")

struct gw_keys_totals {
#define X(f, s) uint64_t f;
	GW_KEYS_TOTALS(X)
#undef X
};

struct gw_keys_info {
	enum gw_keys_state state;
	rwy_time since;       /* of the keys; 0: there were none */
	bool standby;         /* this gateway's standby has keys, too (docs/standby.md) */
	int64_t peer_expires; /* of the peer's certificate, UTC seconds; 0: unknown */
	int64_t crl_expires;  /* nextUpdate of the revocation list, UTC seconds; 0: none */
	char peer_name[CONF_STR];
	char problem[256]; /* why it has no keys, or why the last exchange failed; "": nothing */
	struct gw_keys_counters c;
	struct gw_keys_totals all;
};

struct gw_keys;
struct gw_cert;

/* gw_app.pair has changed. Control thread; nothing happens while the keys are not started. */
void gw_keys_wake(struct gw_app *app);

/*
 * Reads the certificates and starts the thread with the tunnels of app->conf; after the workers
 * run. RWY_EINVAL, RWY_ENOMEM; logged. gw_keys_stop is called in any case, before the workers end.
 */
RWY_MUST_CHECK int gw_keys_start(struct gw_app *app);
void gw_keys_stop(struct gw_app *app);

/* A tunnel was added to the workers, or is about to be removed (c is NULL). RWY_EINVAL: its port
 * cannot be listened on; logged; the tunnel can still begin exchanges. */
int gw_keys_tunnel(struct gw_app *app, unsigned tunnel, const struct conf_tunnel *c);

/*
 * For a reload: reads the files that c names. RWY_EINVAL with one sentence in why[size], and
 * nothing changed. gw_keys_take: they are used from now on, also to check the peers that have keys.
 * The caller owns *out until then; gw_cert_free.
 */
RWY_MUST_CHECK int gw_keys_read(struct gw_cert **out, const struct conf *c, char *why, size_t size);
void gw_keys_take(struct gw_app *app, const struct conf *c, struct gw_cert *cert);

/* Copies a tunnel's state. */
void gw_keys_info(const struct gw_app *app, unsigned tunnel, struct gw_keys_info *out);
/* The name for API and CLI; static text. s: below the count of states. Any thread. */
const char *gw_keys_state_name(enum gw_keys_state s);

#endif
