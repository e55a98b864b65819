/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This gateway's certificate, and whose certificates it accepts: for the handshakes that give keys
 * to tunnels, and for tunnels' TCP and QUIC connections. Chain, time and revocation list (RFC
 * 5280), purpose for the role, and name (RFC 6125) are checked at both ends.
 *
 * One thread at a time.
 */
#ifndef GATEWAY_TLS_CERT_H
#define GATEWAY_TLS_CERT_H

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "rwy/err.h"

#define GW_CERT_WHY   256 /* a sentence */
#define GW_CERT_CHAIN 8   /* most certificates of a peer's chain that are kept */

/* PEM files. crl may be NULL or "". */
struct gw_cert_files {
	const char *certificate, *key, *ca, *crl;
};

struct gw_cert;

/*
 * Reads the files. RWY_EINVAL with one sentence in why[size], which names the file: it cannot be
 * read, it is not what it should be, no CA of `ca` signed a revocation list, or others may read the
 * key; RWY_ENOMEM.
 */
RWY_MUST_CHECK int gw_cert_read(struct gw_cert **out, const struct gw_cert_files *f, char *why, size_t size);
struct gw_cert *gw_cert_ref(struct gw_cert *c);
/* Drops a reference. NULL is allowed. */
void gw_cert_free(struct gw_cert *c);
/* For gnutls_credentials_set; lives as long as the reference. */
gnutls_certificate_credentials_t gw_cert_credentials(const struct gw_cert *c);
/* The nextUpdate of the revocation list, UTC; 0: there is no list, or it has none. NULL is allowed.
 * After it the list counts as before (base/crl.h). */
time_t gw_cert_crl_ends(const struct gw_cert *c);

/* The kind of the end whose certificate is checked. */
enum gw_cert_role { GW_CERT_SERVER, GW_CERT_CLIENT };

/*
 * Checks the peer's certificate in a handshake. name: the DNS name that it must have; NULL: any,
 * and gw_cert_peer_named tells later. False: one sentence is in why[size].
 */
bool gw_cert_verify(gnutls_session_t s, enum gw_cert_role peer, const char *name, char *why, size_t size);

/* A peer's chain, kept to check it again when the files change or time goes by. */
struct gw_cert_peer {
	gnutls_datum_t chain[GW_CERT_CHAIN]; /* DER, the peer's own first */
	unsigned n;
	enum gw_cert_role role;
	time_t expires; /* its own; UTC */
};
/* Copies the chain of a session. RWY_ENOMEM, or RWY_EINVAL: too many certificates. */
RWY_MUST_CHECK int gw_cert_peer_keep(struct gw_cert_peer *out, gnutls_session_t s, enum gw_cert_role role);
void gw_cert_peer_drop(struct gw_cert_peer *p);
/* The certificate has this DNS name. */
bool gw_cert_peer_named(const struct gw_cert_peer *p, const char *name);
/* Checks a kept chain again, now. False: one sentence is in why[size]. */
bool gw_cert_peer_verify(
    const struct gw_cert *c, const struct gw_cert_peer *p, const char *name, char *why, size_t size);

#endif
