/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tls/cert.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crl.h"
#include "base/key_file.h"

struct gw_cert {
	gnutls_certificate_credentials_t cred;
	time_t crl_ends;
	unsigned users;
};

/* --- sentences -------------------------------------------------------------------------------- */
/* One sentence about a certificate that is not accepted. */
static void say_bad(unsigned status, const char *name, char *why, size_t size)
{
	gnutls_datum_t text = {0};
	size_t n;

	if (!(status & ~(unsigned)(GNUTLS_CERT_UNEXPECTED_OWNER | GNUTLS_CERT_INVALID))) {
		snprintf(why, size, "the peer's certificate is not for the name `%.80s`", name ? name : "");
		return;
	}
	(void)!gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
	n = text.data ? strlen((const char *)text.data) : 0;
	while (n && (text.data[n - 1] == ' ' || text.data[n - 1] == '.'))
		n--;
	snprintf(why, size, "the peer's certificate: %.*s", (int)n, text.data ? (const char *)text.data : "");
	gnutls_free(text.data);
}

static bool accepted(int rc, unsigned status, const char *name, char *why, size_t size)
{
	if (rc == 0 && status == 0)
		return true;
	if (rc == GNUTLS_E_NO_CERTIFICATE_FOUND)
		snprintf(why, size, "the peer has no certificate");
	else if (rc)
		snprintf(why, size, "the peer's certificate: %.90s", gnutls_strerror(rc));
	else
		say_bad(status, name, why, size);
	return false;
}

/* Fills purpose and name, if there is one, that GnuTLS must find in the certificate. */
static unsigned wanted(gnutls_typed_vdata_st out[2], enum gw_cert_role peer, const char *name)
{
	const char *purpose = peer == GW_CERT_SERVER ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT;

	out[0] = (gnutls_typed_vdata_st){
	    .type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)(uintptr_t)purpose};
	if (!name)
		return 1;
	out[1] =
	    (gnutls_typed_vdata_st){.type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *)(uintptr_t)name};
	return 2;
}

bool gw_cert_verify(gnutls_session_t s, enum gw_cert_role peer, const char *name, char *why, size_t size)
{
	gnutls_typed_vdata_st want[2];
	unsigned status = 0, n = wanted(want, peer, name);
	int rc = gnutls_certificate_verify_peers(s, want, n, &status);

	return accepted(rc, status, name, why, size);
}

/* --- files ------------------------------------------------------------------------------------ */
/* GnuTLS says "error while reading file", neither of which file nor why; and nobody waits for the
 * writer of a FIFO. */
static bool file_there(const char *path, char *why, size_t size)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool there = fd >= 0 && fstat(fd, &st) == 0;

	if (!there)
		snprintf(why, size, "%.160s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		snprintf(why, size, "%.160s: expected a file", path);
	if (fd >= 0)
		close(fd);
	return there && S_ISREG(st.st_mode);
}

static bool files_there(const struct gw_cert_files *f, char *why, size_t size)
{
	return base_key_private(f->key, why, size) && file_there(f->key, why, size) &&
	       file_there(f->certificate, why, size) && file_there(f->ca, why, size) &&
	       (!f->crl || !*f->crl || file_there(f->crl, why, size));
}

/* Reads the CAs and their revocation lists. */
static int trust_read(struct gw_cert *c, const struct gw_cert_files *f, char *why, size_t size)
{
	gnutls_x509_trust_list_t trust;
	int rc = gnutls_certificate_set_x509_trust_file(c->cred, f->ca, GNUTLS_X509_FMT_PEM);

	if (rc <= 0) {
		snprintf(why, size, "%.100s: expected CA certificates in PEM: %.80s", f->ca,
		    gnutls_strerror(rc ? rc : GNUTLS_E_NO_CERTIFICATE_FOUND));
		return RWY_EINVAL;
	}
	if (!f->crl || !*f->crl)
		return 0;
	gnutls_certificate_get_trust_list(c->cred, &trust);
	return base_crl_add(trust, f->crl, &c->crl_ends, why, size);
}

static int files_read(struct gw_cert *c, const struct gw_cert_files *f, char *why, size_t size)
{
	int rc = trust_read(c, f, why, size);

	if (rc)
		return rc;
	rc = gnutls_certificate_set_x509_key_file(c->cred, f->certificate, f->key, GNUTLS_X509_FMT_PEM);
	if (rc >= 0)
		return 0;
	snprintf(why, size, "%.100s with key %.100s: %s", f->certificate, f->key, gnutls_strerror(rc));
	return RWY_EINVAL;
}

int gw_cert_read(struct gw_cert **out, const struct gw_cert_files *f, char *why, size_t size)
{
	struct gw_cert *c;
	int rc;

	if (!files_there(f, why, size))
		return RWY_EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c || gnutls_certificate_allocate_credentials(&c->cred) != 0) {
		free(c);
		snprintf(why, size, "no memory");
		return RWY_ENOMEM;
	}
	c->users = 1;
	rc = files_read(c, f, why, size);
	if (rc) {
		gw_cert_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

struct gw_cert *gw_cert_ref(struct gw_cert *c)
{
	c->users++;
	return c;
}

void gw_cert_free(struct gw_cert *c)
{
	if (!c || --c->users)
		return;
	gnutls_certificate_free_credentials(c->cred);
	free(c);
}

gnutls_certificate_credentials_t gw_cert_credentials(const struct gw_cert *c)
{
	return c->cred;
}

time_t gw_cert_crl_ends(const struct gw_cert *c)
{
	return c ? c->crl_ends : 0;
}

/* --- a peer's chain --------------------------------------------------------------------------- */
void gw_cert_peer_drop(struct gw_cert_peer *p)
{
	for (unsigned i = 0; i < p->n; i++)
		free(p->chain[i].data);
	*p = (struct gw_cert_peer){0};
}

int gw_cert_peer_keep(struct gw_cert_peer *out, gnutls_session_t s, enum gw_cert_role role)
{
	unsigned n = 0;
	const gnutls_datum_t *list = gnutls_certificate_get_peers(s, &n);

	*out = (struct gw_cert_peer){.role = role, .expires = gnutls_certificate_expiration_time_peers(s)};
	if (!list || !n || n > GW_CERT_CHAIN)
		return RWY_EINVAL;
	for (; out->n < n; out->n++) {
		gnutls_datum_t *d = &out->chain[out->n];

		d->data = malloc(list[out->n].size);
		if (!d->data) {
			gw_cert_peer_drop(out);
			return RWY_ENOMEM;
		}
		d->size = list[out->n].size;
		memcpy(d->data, list[out->n].data, d->size);
	}
	return 0;
}

/* Parses a chain; the caller frees out[0 .. the result). 0: it cannot be parsed. */
static unsigned chain_parse(gnutls_x509_crt_t out[GW_CERT_CHAIN], const struct gw_cert_peer *p)
{
	unsigned n = 0;

	for (; n < p->n; n++) {
		if (gnutls_x509_crt_init(&out[n]) != 0)
			break;
		if (gnutls_x509_crt_import(out[n], &p->chain[n], GNUTLS_X509_FMT_DER) != 0) {
			gnutls_x509_crt_deinit(out[n]);
			break;
		}
	}
	if (n == p->n)
		return n;
	while (n)
		gnutls_x509_crt_deinit(out[--n]);
	return 0;
}

bool gw_cert_peer_named(const struct gw_cert_peer *p, const char *name)
{
	gnutls_x509_crt_t crt[GW_CERT_CHAIN];
	unsigned n = chain_parse(crt, p);
	bool named = n && gnutls_x509_crt_check_hostname(crt[0], name);

	while (n)
		gnutls_x509_crt_deinit(crt[--n]);
	return named;
}

bool gw_cert_peer_verify(
    const struct gw_cert *c, const struct gw_cert_peer *p, const char *name, char *why, size_t size)
{
	gnutls_x509_trust_list_t trust;
	gnutls_x509_crt_t crt[GW_CERT_CHAIN];
	gnutls_typed_vdata_st want[2];
	unsigned status = 0, n = chain_parse(crt, p);
	int rc = GNUTLS_E_MEMORY_ERROR;

	gnutls_certificate_get_trust_list(c->cred, &trust);
	if (n)
		rc = gnutls_x509_trust_list_verify_crt2(
		    trust, crt, n, want, wanted(want, p->role, name), 0, &status, NULL);
	while (n)
		gnutls_x509_crt_deinit(crt[--n]);
	return accepted(rc, status, name, why, size);
}
