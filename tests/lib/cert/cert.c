/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/cert/cert.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define DAY (24 * 3600)

struct cert_ca {
	char dir[200], file[32];
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;
	gnutls_x509_crt_t last;
	unsigned char serial;
};

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "certificates: %s: %s\n", what, gnutls_strerror(rc));
	exit(1);
}

static void save(const struct cert_ca *ca, const char *file, const char *suffix, gnutls_datum_t *d)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.%s", ca->dir, file, suffix);
	f = fopen(path, "we");
	if (f && !strcmp(suffix, "key"))
		(void)!fchmod(fileno(f), 0600);
	if (!f || fwrite(d->data, 1, d->size, f) != d->size || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
	gnutls_free(d->data);
}

static gnutls_x509_privkey_t key_new(void)
{
	gnutls_x509_privkey_t k;

	must(gnutls_x509_privkey_init(&k), "key");
	must(gnutls_x509_privkey_generate(
	         k, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
	    "key");
	return k;
}

static gnutls_x509_crt_t crt_new(
    struct cert_ca *ca, gnutls_x509_privkey_t key, const char *name, const struct cert_spec *spec)
{
	time_t now = time(NULL), end = spec && spec->expired ? now - DAY : now + 10 * DAY;
	time_t begin = spec && spec->not_yet ? now + DAY : now - 20 * DAY;
	gnutls_x509_crt_t c;

	ca->serial++;
	must(gnutls_x509_crt_init(&c), "certificate");
	must(gnutls_x509_crt_set_version(c, 3), "version");
	must(gnutls_x509_crt_set_serial(c, &ca->serial, 1), "serial");
	must(gnutls_x509_crt_set_key(c, key), "key");
	must(gnutls_x509_crt_set_dn_by_oid(c, GNUTLS_OID_X520_COMMON_NAME, 0, name, (unsigned)strlen(name)),
	    "name");
	must(gnutls_x509_crt_set_activation_time(c, begin), "time");
	must(gnutls_x509_crt_set_expiration_time(c, end), "time");
	return c;
}

struct cert_ca *cert_ca_new(const char *dir, const char *file)
{
	struct cert_ca *ca = calloc(1, sizeof(*ca));
	gnutls_datum_t d;

	if (!ca)
		exit(1);
	snprintf(ca->dir, sizeof(ca->dir), "%s", dir);
	snprintf(ca->file, sizeof(ca->file), "%s", file);
	ca->key = key_new();
	ca->crt = crt_new(ca, ca->key, file, NULL);
	must(gnutls_x509_crt_set_basic_constraints(ca->crt, 1, -1), "CA");
	must(gnutls_x509_crt_set_key_usage(ca->crt, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN), "usage");
	must(gnutls_x509_crt_sign2(ca->crt, ca->crt, ca->key, GNUTLS_DIG_SHA256, 0), "signature");
	must(gnutls_x509_crt_export2(ca->crt, GNUTLS_X509_FMT_PEM, &d), "PEM");
	save(ca, file, "pem", &d);
	return ca;
}

void cert_ca_free(struct cert_ca *ca)
{
	gnutls_x509_crt_deinit(ca->crt);
	gnutls_x509_privkey_deinit(ca->key);
	if (ca->last)
		gnutls_x509_crt_deinit(ca->last);
	free(ca);
}

void cert_make(struct cert_ca *ca, const struct cert_spec *spec)
{
	gnutls_x509_privkey_t key = key_new();
	gnutls_x509_crt_t c = crt_new(ca, key, spec->name, spec);
	gnutls_datum_t d;

	must(gnutls_x509_crt_set_subject_alt_name(
	         c, GNUTLS_SAN_DNSNAME, spec->name, (unsigned)strlen(spec->name), GNUTLS_FSAN_SET),
	    "name");
	must(gnutls_x509_crt_set_key_purpose_oid(c, GNUTLS_KP_TLS_WWW_SERVER, 0), "purpose");
	if (!spec->server_only)
		must(gnutls_x509_crt_set_key_purpose_oid(c, GNUTLS_KP_TLS_WWW_CLIENT, 0), "purpose");
	must(gnutls_x509_crt_set_key_usage(c, GNUTLS_KEY_DIGITAL_SIGNATURE), "usage");
	must(gnutls_x509_crt_sign2(c, ca->crt, ca->key, GNUTLS_DIG_SHA256, 0), "signature");
	must(gnutls_x509_crt_export2(c, GNUTLS_X509_FMT_PEM, &d), "PEM");
	save(ca, spec->file, "pem", &d);
	must(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &d), "PEM");
	save(ca, spec->file, "key", &d);
	gnutls_x509_privkey_deinit(key);
	if (ca->last)
		gnutls_x509_crt_deinit(ca->last);
	ca->last = c;
}

void cert_revoke_last(struct cert_ca *ca, const char *file, int days)
{
	time_t now = time(NULL);
	unsigned char number = 1;
	gnutls_x509_crl_t crl;
	gnutls_datum_t d;

	must(gnutls_x509_crl_init(&crl), "CRL");
	must(gnutls_x509_crl_set_version(crl, 2), "version");
	must(gnutls_x509_crl_set_this_update(crl, now - 15 * DAY), "time");
	must(gnutls_x509_crl_set_next_update(crl, now + days * DAY), "time");
	must(gnutls_x509_crl_set_number(crl, &number, 1), "number");
	must(gnutls_x509_crl_set_crt(crl, ca->last, now - DAY), "entry");
	must(gnutls_x509_crl_sign2(crl, ca->crt, ca->key, GNUTLS_DIG_SHA256, 0), "signature");
	must(gnutls_x509_crl_export2(crl, GNUTLS_X509_FMT_PEM, &d), "PEM");
	save(ca, file, "crl", &d);
	gnutls_x509_crl_deinit(crl);
}
