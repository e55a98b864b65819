/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificate revocation lists (RFC 5280, section 5). GnuTLS takes a list of any CA, or leaves out
 * one that does not verify, and then no certificate is revoked: so each is checked when it is read.
 * A list that is past its nextUpdate counts as before, and base_crl_old says so. Any thread.
 */
#ifndef BASE_CRL_H
#define BASE_CRL_H

#include <gnutls/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "rwy/err.h"

/*
 * Adds the revocation lists of a PEM file to trust, which has the CAs. *ends: the first nextUpdate
 * among them, UTC; 0: none has one. RWY_EINVAL with a sentence in why[size], which names the file:
 * it cannot be read, has no list, or has one that no CA of trust signed; trust may have some of the
 * lists then. RWY_ENOMEM.
 */
RWY_MUST_CHECK int base_crl_add(
    gnutls_x509_trust_list_t trust, const char *path, time_t *ends, char *why, size_t size);

#define BASE_CRL_TEXT 128 /* a sentence of base_crl_old */

/* A list that ends at `ends` (0: never) has ended, or does within 30 days: a sentence is in
 * text[size]. */
bool base_crl_old(time_t ends, time_t now, char *text, size_t size);

#endif
