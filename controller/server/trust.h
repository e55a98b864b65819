/* SPDX-License-Identifier: Apache-2.0 */
/* Who a client is: its certificate held against our CA and its revocation list. The HTTP library only asks
 * for one. */
#ifndef CONTROLLER_SERVER_TRUST_H
#define CONTROLLER_SERVER_TRUST_H

#include <gnutls/gnutls.h>

#include "controller/state/ctlr.h"

/* Grows with each trust_load: what was found before is looked at again. */
unsigned trust_generation(void);
/* 0 and *out, or the HTTP status of a refusal with its reason in text (128 bytes). */
unsigned trust_check(gnutls_session_t session, struct identity *out, char *text);
/* The server's own, for the HTTP library; files read by trust_load. */
const char *trust_ca(void), *trust_cert(void), *trust_key(void);
void trust_free(void);

#endif
