/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for thousands of simulated gateways: a CA, and one key for all clients. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <gnutls/abstract.h>
#include <gnutls/x509.h>

#include "tests/bench/control_conn.h"

#define DAY 86400

static gnutls_x509_privkey_t ca_key, key;
static gnutls_x509_crt_t ca;
static uint64_t serial = 1;

static gnutls_x509_privkey_t key_new(void)
{
	gnutls_x509_privkey_t k;

	if (gnutls_x509_privkey_init(&k) || gnutls_x509_privkey_generate(k, GNUTLS_PK_ECDSA,
	                                        GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0))
		return NULL;
	return k;
}

static gnutls_x509_crt_t crt_new(const char *cn, const char *ou, gnutls_x509_privkey_t k, bool is_ca)
{
	uint8_t number[8];
	gnutls_x509_crt_t c;
	unsigned i;

	if (gnutls_x509_crt_init(&c))
		return NULL;
	serial++;
	for (i = 0; i < 8; i++)
		number[i] = (uint8_t)(serial >> (56 - 8 * i));
	gnutls_x509_crt_set_version(c, 3);
	gnutls_x509_crt_set_serial(c, number, sizeof(number));
	gnutls_x509_crt_set_activation_time(c, time(NULL) - DAY);
	gnutls_x509_crt_set_expiration_time(c, time(NULL) + 30 * DAY);
	gnutls_x509_crt_set_dn_by_oid(c, GNUTLS_OID_X520_COMMON_NAME, 0, cn, (unsigned)strlen(cn));
	if (ou)
		gnutls_x509_crt_set_dn_by_oid(
		    c, GNUTLS_OID_X520_ORGANIZATIONAL_UNIT_NAME, 0, ou, (unsigned)strlen(ou));
	gnutls_x509_crt_set_key(c, k);
	gnutls_x509_crt_set_ca_status(c, is_ca);
	gnutls_x509_crt_set_key_usage(
	    c, is_ca ? GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN : GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (!is_ca) {
		gnutls_x509_crt_set_key_purpose_oid(c, GNUTLS_KP_TLS_WWW_CLIENT, 0);
		gnutls_x509_crt_set_key_purpose_oid(c, GNUTLS_KP_TLS_WWW_SERVER, 0);
		gnutls_x509_crt_set_subject_alt_name(c, GNUTLS_SAN_DNSNAME, "localhost", 9, GNUTLS_FSAN_SET);
	}
	if (gnutls_x509_crt_sign2(c, is_ca ? c : ca, is_ca ? k : ca_key, GNUTLS_DIG_SHA256, 0)) {
		gnutls_x509_crt_deinit(c);
		return NULL;
	}
	return c;
}

static int save(const char *dir, const char *name, const gnutls_datum_t *d)
{
	char path[512];
	FILE *f;
	int rc;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f)
		return -1;
	rc = fwrite(d->data, 1, d->size, f) == d->size ? 0 : -1;
	if (fclose(f))
		rc = -1;
	(void)chmod(path, 0600);
	return rc;
}

static int save_pair(const char *dir, const char *name, gnutls_x509_crt_t c, gnutls_x509_privkey_t k)
{
	gnutls_datum_t d;
	char file[64];
	int rc = -1;

	(void)snprintf(file, sizeof(file), "%s.pem", name);
	if (c && gnutls_x509_crt_export2(c, GNUTLS_X509_FMT_PEM, &d) == 0) {
		rc = save(dir, file, &d);
		gnutls_free(d.data);
	}
	(void)snprintf(file, sizeof(file), "%s.key", name);
	if (k && rc == 0 && gnutls_x509_privkey_export2(k, GNUTLS_X509_FMT_PEM, &d) == 0) {
		rc = save(dir, file, &d);
		gnutls_free(d.data);
	}
	return rc;
}

int ctl_certs_init(const char *dir)
{
	ca_key = key_new();
	key = key_new();
	if (!ca_key || !key)
		return -1;
	ca = crt_new("bench CA", NULL, ca_key, true);
	if (!ca || save_pair(dir, "ca", ca, NULL) ||
	    save_pair(dir, "server", crt_new("controller-1", "controller", key, false), key))
		return -1;
	return save_pair(dir, "operator", crt_new("operator", "operator", key, false), key);
}

gnutls_certificate_credentials_t ctl_cert(const char *name, const char *role)
{
	gnutls_x509_crt_t c = crt_new(name, role, key, false);
	gnutls_certificate_credentials_t cred;

	if (!c || gnutls_certificate_allocate_credentials(&cred))
		return NULL;
	if (gnutls_certificate_set_x509_key(cred, &c, 1, key) ||
	    gnutls_certificate_set_x509_trust(cred, &ca, 1) < 0)
		return NULL;
	gnutls_x509_crt_deinit(c);
	return cred;
}
