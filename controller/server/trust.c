/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/server/trust.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crl.h"
#include "base/key_file.h"
#include "base/log.h"

#define FILE_MAX    (1u << 20)
#define FOUND_SLOTS 32768u
#define FOUND_FOR   (60 * RWY_SEC)

struct ctlr_trust {
	pthread_rwlock_t lock; /* protects the list, its end and generation */
	gnutls_x509_trust_list_t list;
	time_t crl_ends; /* UTC; 0: never */
	unsigned generation;
	char *ca, *cert, *key;
	pthread_mutex_t found_lock;
	struct found {
		uint8_t hash[32]; /* SHA-256 of the certificates that the client sent */
		unsigned generation;
		rwy_time at;
		struct ctlr_identity who;
	} found[FOUND_SLOTS]; /* a later one replaces an earlier one */
};

static char *read_file(const char *path, const char *what)
{
	FILE *f = fopen(path, "re");
	char *text = f ? malloc(FILE_MAX + 1) : NULL;
	size_t n = text ? fread(text, 1, FILE_MAX + 1, f) : 0;

	if (!f)
		gw_log(GW_LOG_ERROR, "tls", "%s %s: %s", what, path, strerror(errno));
	else
		fclose(f);
	if (!n || n > FILE_MAX) {
		if (f)
			gw_log(GW_LOG_ERROR, "tls", "%s %s: empty, or above 1 MiB", what, path);
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

static char *read_key(const char *path)
{
	char why[384];

	if (base_key_private(path, why, sizeof(why)))
		return read_file(path, "key");
	gw_log(GW_LOG_ERROR, "tls", "key %s", why);
	return NULL;
}

static gnutls_datum_t pem_datum(char *text)
{
	return (gnutls_datum_t){(unsigned char *)text, (unsigned)strlen(text)};
}

/* Fills *out with the CAs and their revocation lists. A list that is not used is an error: without
 * it no certificate would be revoked. */
static int list_new(
    const struct ctlr_conf *conf, const char *ca, gnutls_x509_trust_list_t *out, time_t *crl_ends)
{
	gnutls_datum_t d = pem_datum((char *)(uintptr_t)ca);
	char why[256];
	int rc = 0;

	*crl_ends = 0;
	if (gnutls_x509_trust_list_init(out, 0))
		return RWY_ENOMEM;
	snprintf(why, sizeof(why), "%.200s: no CA certificate", conf->ca);
	if (gnutls_x509_trust_list_add_trust_mem(*out, &d, NULL, GNUTLS_X509_FMT_PEM, 0, 0) <= 0)
		rc = RWY_EINVAL;
	else if (*conf->crl)
		rc = base_crl_add(*out, conf->crl, crl_ends, why, sizeof(why));
	if (!rc)
		return 0;
	gw_log(GW_LOG_ERROR, "tls", "%s", why);
	gnutls_x509_trust_list_deinit(*out, 1);
	return rc;
}

int ctlr_trust_new(struct ctlr_trust **out)
{
	struct ctlr_trust *t = calloc(1, sizeof(*t));

	if (!t)
		return RWY_ENOMEM;
	pthread_rwlock_init(&t->lock, NULL);
	pthread_mutex_init(&t->found_lock, NULL);
	*out = t;
	return 0;
}

int ctlr_trust_load(struct ctlr_trust *t, const struct ctlr_conf *conf)
{
	char *ca = read_file(conf->ca, "CA"), *cert = t->cert ? NULL : read_file(conf->cert, "certificate"),
	     *key = t->key ? NULL : read_key(conf->key);
	gnutls_x509_trust_list_t list;
	time_t crl_ends;
	int rc = ca && (t->cert || (cert && key)) ? list_new(conf, ca, &list, &crl_ends) : RWY_EINVAL;

	if (rc) {
		free(ca);
		free(cert);
		free(key);
		return rc;
	}
	pthread_rwlock_wrlock(&t->lock);
	if (t->list)
		gnutls_x509_trust_list_deinit(t->list, 1);
	t->list = list;
	t->crl_ends = crl_ends;
	t->generation++;
	if (!t->ca) { /* the HTTP library keeps the ones it was given */
		t->ca = ca;
		t->cert = cert;
		t->key = key;
		ca = NULL;
	}
	pthread_rwlock_unlock(&t->lock);
	free(ca);
	return 0;
}

unsigned ctlr_trust_generation(struct ctlr_trust *t)
{
	unsigned g;

	pthread_rwlock_rdlock(&t->lock);
	g = t->generation;
	pthread_rwlock_unlock(&t->lock);
	return g;
}

time_t ctlr_trust_crl_ends(struct ctlr_trust *t)
{
	time_t ends;

	pthread_rwlock_rdlock(&t->lock);
	ends = t->crl_ends;
	pthread_rwlock_unlock(&t->lock);
	return ends;
}

const char *ctlr_trust_ca(const struct ctlr_trust *t)
{
	return t->ca;
}

const char *ctlr_trust_cert(const struct ctlr_trust *t)
{
	return t->cert;
}

const char *ctlr_trust_key(const struct ctlr_trust *t)
{
	return t->key;
}

void ctlr_trust_free(struct ctlr_trust *t)
{
	if (!t)
		return;
	if (t->list)
		gnutls_x509_trust_list_deinit(t->list, 1);
	free(t->ca);
	free(t->cert);
	free(t->key);
	free(t);
}

/* --- checking a client ------------------------------------------------------------------------ */

static enum ctlr_role role_of(const char *ou)
{
	return !strcmp(ou, "gateway")     ? ROLE_GATEWAY
	       : !strcmp(ou, "operator")  ? ROLE_OPERATOR
	       : !strcmp(ou, "scheduler") ? ROLE_SCHEDULER
	       : !strcmp(ou, "network")   ? ROLE_NETWORK
	       : !strcmp(ou, "container") ? ROLE_CONTAINER
	       : !strcmp(ou, "host")      ? ROLE_HOST
	                                  : ROLE_NONE;
}

static bool subject_field(gnutls_x509_crt_t crt, const char *oid, char *out, size_t size)
{
	return !gnutls_x509_crt_get_dn_by_oid(crt, oid, 0, 0, out, &size);
}

static unsigned identify(gnutls_x509_crt_t crt, struct ctlr_identity *out, char *text)
{
	char cn[128], ou[64];

	if (!subject_field(crt, GNUTLS_OID_X520_COMMON_NAME, cn, sizeof(cn)) || !mdl_is_name(cn)) {
		snprintf(text, 128, "the certificate's CN is no name");
		return 403;
	}
	if (!subject_field(crt, GNUTLS_OID_X520_ORGANIZATIONAL_UNIT_NAME, ou, sizeof(ou)) || !role_of(ou)) {
		snprintf(text, 128, "the certificate's OU is no role");
		return 403;
	}
	snprintf(out->name, sizeof(out->name), "%.31s", cn);
	out->role = role_of(ou);
	return 0;
}

static const char *verify_reason(unsigned status)
{
	return status & GNUTLS_CERT_REVOKED                      ? "the certificate is revoked"
	       : status & GNUTLS_CERT_SIGNER_NOT_FOUND           ? "the certificate is not from our CA"
	       : status & GNUTLS_CERT_EXPIRED                    ? "the certificate has expired"
	       : status & GNUTLS_CERT_NOT_ACTIVATED              ? "the certificate is not valid yet"
	       : status & GNUTLS_CERT_PURPOSE_MISMATCH           ? "the certificate is not for clients"
	       : status & GNUTLS_CERT_REVOCATION_DATA_SUPERSEDED ? "our revocation list is out of date"
	                                                         : "the certificate is not valid";
}

static unsigned verify_chain(
    struct ctlr_trust *t, gnutls_x509_crt_t *chain, unsigned n, struct ctlr_identity *out, char *text)
{
	gnutls_typed_vdata_st purpose = {
	    .type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
	unsigned status = 0;
	int rc;

	pthread_rwlock_rdlock(&t->lock);
	rc = gnutls_x509_trust_list_verify_crt2(t->list, chain, n, &purpose, 1, 0, &status, NULL);
	pthread_rwlock_unlock(&t->lock);
	if (!rc && !status)
		return identify(chain[0], out, text);
	snprintf(text, 128, "%s", rc ? gnutls_strerror(rc) : verify_reason(status));
	return 403;
}

/* --- results of recent checks ----------------------------------------------------------------- */

/* A gateway opens several connections one after the other, with the same certificate. Each time it
 * proves that it has the key. The result for the certificate is kept for a minute, or until the
 * revocation list is read again. */

static struct found *found_slot(struct ctlr_trust *t, const uint8_t hash[32])
{
	uint32_t i;

	memcpy(&i, hash, sizeof(i));
	return &t->found[i % FOUND_SLOTS];
}

static bool chain_hash(const gnutls_datum_t *raw, unsigned n, uint8_t out[32])
{
	gnutls_hash_hd_t h;

	if (gnutls_hash_init(&h, GNUTLS_DIG_SHA256))
		return false;
	/* DER contains its length, so the hash covers what the parser reads */
	for (unsigned i = 0; i < n; i++)
		gnutls_hash(h, raw[i].data, raw[i].size);
	gnutls_hash_deinit(h, out);
	return true;
}

static bool found_get(
    struct ctlr_trust *t, const uint8_t hash[32], unsigned generation, struct ctlr_identity *out)
{
	const struct found *f = found_slot(t, hash);
	bool is;

	pthread_mutex_lock(&t->found_lock);
	is = f->generation == generation && !memcmp(f->hash, hash, sizeof(f->hash)) &&
	     rwy_since(f->at, ctlr_now()) < FOUND_FOR;
	if (is)
		*out = f->who;
	pthread_mutex_unlock(&t->found_lock);
	return is;
}

static void found_put(
    struct ctlr_trust *t, const uint8_t hash[32], unsigned generation, const struct ctlr_identity *who)
{
	struct found *f = found_slot(t, hash);

	pthread_mutex_lock(&t->found_lock);
	memcpy(f->hash, hash, sizeof(f->hash));
	f->generation = generation;
	f->at = ctlr_now();
	f->who = *who;
	pthread_mutex_unlock(&t->found_lock);
}

unsigned ctlr_trust_check(
    struct ctlr_trust *t, gnutls_session_t session, struct ctlr_identity *out, char *text)
{
	unsigned n = 0, made = 0, rc = 403;
	const gnutls_datum_t *raw = gnutls_certificate_get_peers(session, &n);
	/* read before the check: the result may belong to a later one */
	const unsigned generation = ctlr_trust_generation(t);
	gnutls_x509_crt_t chain[8];
	uint8_t hash[32];
	bool hashed;

	memset(out, 0, sizeof(*out));
	if (!raw || !n) {
		snprintf(text, 128, "a client certificate is needed");
		return 401;
	}
	hashed = chain_hash(raw, n, hash);
	if (hashed && found_get(t, hash, generation, out))
		return 0;
	snprintf(text, 128, "the certificate cannot be read");
	for (; made < n && made < 8; made++) {
		if (gnutls_x509_crt_init(&chain[made]))
			break;
		if (gnutls_x509_crt_import(chain[made], &raw[made], GNUTLS_X509_FMT_DER)) {
			gnutls_x509_crt_deinit(chain[made]);
			break;
		}
	}
	if (made == n)
		rc = verify_chain(t, chain, n, out, text);
	if (!rc && hashed)
		found_put(t, hash, generation, out);
	while (made)
		gnutls_x509_crt_deinit(chain[--made]);
	return rc;
}
