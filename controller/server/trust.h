/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifies a client: checks its certificate against our CA and its revocation list. The HTTP
 * library only asks for a certificate.
 * Thread: any.
 */
#ifndef CONTROLLER_SERVER_TRUST_H
#define CONTROLLER_SERVER_TRUST_H

#include <gnutls/gnutls.h>

#include "controller/conf/conf.h"
#include "controller/server/req.h"

struct ctlr_trust;

RWY_MUST_CHECK int ctlr_trust_new(struct ctlr_trust **out); /* RWY_ENOMEM */
void ctlr_trust_free(struct ctlr_trust *t);                 /* NULL is allowed */
/* Reads the CA and the revocation list, also again for a new list. After an error everything stays
 * as it was. RWY_EINVAL, with the reason in the log; RWY_ENOMEM. */
RWY_MUST_CHECK int ctlr_trust_load(struct ctlr_trust *t, const struct ctlr_conf *conf);
/* Grows with each ctlr_trust_load(); earlier results must then be checked again. */
unsigned ctlr_trust_generation(struct ctlr_trust *t);
/* The nextUpdate of the revocation list, UTC; 0: there is no list, or it has none. */
time_t ctlr_trust_crl_ends(struct ctlr_trust *t);
/* Checks the client of a TLS session. Returns 0 and fills *out, or returns the HTTP status of a
 * refusal and its reason in text (128 bytes). */
unsigned ctlr_trust_check(
    struct ctlr_trust *t, gnutls_session_t session, struct ctlr_identity *out, char *text);
/* The server's own certificate and CA for the HTTP library, as the first ctlr_trust_load() read
 * them. */
const char *ctlr_trust_ca(const struct ctlr_trust *t), *ctlr_trust_cert(const struct ctlr_trust *t),
    *ctlr_trust_key(const struct ctlr_trust *t);

#endif
