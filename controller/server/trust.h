/* SPDX-License-Identifier: Apache-2.0 */
/* Who a client is: its certificate held against our CA and its revocation list. The HTTP library only asks
 * for one. */
#ifndef CONTROLLER_SERVER_TRUST_H
#define CONTROLLER_SERVER_TRUST_H

#include <gnutls/gnutls.h>

#include "controller/conf/conf.h"
#include "controller/server/req.h"

struct trust;

RWY_MUST_CHECK int trust_new(struct trust **out); /* RWY_ENOMEM */
void trust_free(struct trust *t);                 /* NULL: fine */
/* Reads the CA and the revocation list; again for a new list. An error leaves everything as it was. Any
 * thread. */
RWY_MUST_CHECK int trust_load(struct trust *t, const struct ctlr_conf *conf);
/* Grows with each trust_load: what was found before is looked at again. Any thread. */
unsigned trust_generation(struct trust *t);
/* 0 and *out, or the HTTP status of a refusal with its reason in text (128 bytes). Any thread. */
unsigned trust_check(struct trust *t, gnutls_session_t session, struct identity *out, char *text);
/* The server's own, for the HTTP library, as the first trust_load read them. */
const char *trust_ca(const struct trust *t), *trust_cert(const struct trust *t),
    *trust_key(const struct trust *t);

#endif
