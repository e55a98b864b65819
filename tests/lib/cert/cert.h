/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for tests, made on the spot: a CA of one's own, and ends with anything wrong. */
#ifndef TESTS_LIB_CERT_H
#define TESTS_LIB_CERT_H

#include <stdbool.h>

struct cert_ca;
struct cert_spec {
	const char *file; /* writes DIR/file.pem and DIR/file.key */
	const char *name; /* DNS name */
	bool expired;
	bool server_only; /* may not be used by a client */
	bool not_yet;     /* its time has not come: a clock is wrong */
};

/* Makes a CA and writes DIR/file.pem. Fails the program on any error. */
struct cert_ca *cert_ca_new(const char *dir, const char *file);
void cert_ca_free(struct cert_ca *ca);
/* Signs a certificate. */
void cert_make(struct cert_ca *ca, const struct cert_spec *spec);
/* Writes DIR/file.crl, which revokes the last certificate made and ends `days` from now. */
void cert_revoke_last(struct cert_ca *ca, const char *file, int days);

#endif
