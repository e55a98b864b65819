/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies a client: its certificate is held against our CA and its revocation list. The HTTP library only
 * asks for one. */
#ifndef CONTROLLER_SERVER_TRUST_H
#define CONTROLLER_SERVER_TRUST_H

#include <gnutls/gnutls.h>

#include "controller/conf/conf.h"
#include "controller/server/req.h"

struct ctlr_trust;

RWY_MUST_CHECK int ctlr_trust_new(struct ctlr_trust **out); /* RWY_ENOMEM */
void ctlr_trust_free(struct ctlr_trust *t);                 /* NULL: fine */
/* Reads the CA and the revocation list; again for a new list. An error leaves everything as it was. Any
 * thread. */
RWY_MUST_CHECK int ctlr_trust_load(struct ctlr_trust *t, const struct ctlr_conf *conf);
/* Grows with each ctlr_trust_load: what was found before is looked at again. Any thread. */
unsigned ctlr_trust_generation(struct ctlr_trust *t);
/* 0 and *out, or the HTTP status of a refusal with its reason in text (128 bytes). Any thread. */
unsigned ctlr_trust_check(
    struct ctlr_trust *t, gnutls_session_t session, struct ctlr_identity *out, char *text);
/* The server's own, for the HTTP library, as the first ctlr_trust_load read them. */
const char *ctlr_trust_ca(const struct ctlr_trust *t), *ctlr_trust_cert(const struct ctlr_trust *t),
    *ctlr_trust_key(const struct ctlr_trust *t);

#endif
