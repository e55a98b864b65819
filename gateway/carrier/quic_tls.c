/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS of QUIC connections: certificates from files, and the check of the peer's: chain, time and
 * revocation list, purpose for its role, and its name (RFC 5280, RFC 6125).
 */
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/carrier/quic_impl.h"

/* TLS 1.3 only, with the AEAD algorithms that RFC 9001 protects packets with. */
static const char priority[] =
    "%DISABLE_TLS13_COMPAT_MODE:NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:"
    "+CHACHA20-POLY1305:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1";

/* --- the check -------------------------------------------------------------------------------- */
/* One sentence about a certificate that is not accepted. */
static void say_bad(struct gw_quic_conn *c, unsigned status)
{
	gnutls_datum_t text = {0};
	size_t n;

	if (!(status & ~(unsigned)(GNUTLS_CERT_UNEXPECTED_OWNER | GNUTLS_CERT_INVALID))) {
		snprintf(
		    c->why, sizeof(c->why), "the peer's certificate is not for the name `%.80s`", c->name);
		return;
	}
	(void)!gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
	n = text.data ? strlen((const char *)text.data) : 0;
	while (n && (text.data[n - 1] == ' ' || text.data[n - 1] == '.'))
		n--;
	snprintf(c->why, sizeof(c->why), "the peer's certificate: %.*s", (int)n,
	    text.data ? (const char *)text.data : "");
	gnutls_free(text.data);
}

static int verify(gnutls_session_t session)
{
	ngtcp2_crypto_conn_ref *ref = gnutls_session_get_ptr(session);
	struct gw_quic_conn *c = ref->user_data;
	const char *purpose = c->client ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT;
	gnutls_typed_vdata_st want[] = {
	    {.type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *)c->name},
	    {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)(uintptr_t)purpose},
	};
	unsigned status = 0;
	int rc = gnutls_certificate_verify_peers(session, want, 2, &status);

	if (rc == 0 && status == 0) {
		c->verified = true;
		return 0;
	}
	c->cert_bad = true;
	if (rc == GNUTLS_E_NO_CERTIFICATE_FOUND)
		snprintf(c->why, sizeof(c->why), "the peer has no certificate");
	else if (rc)
		snprintf(c->why, sizeof(c->why), "the peer's certificate: %.90s", gnutls_strerror(rc));
	else
		say_bad(c, status);
	return GNUTLS_E_CERTIFICATE_ERROR;
}

/* --- files ------------------------------------------------------------------------------------ */
/* Tokens and resets need a secret that survives a restart and that nobody else knows. */
static int secret_make(struct gw_quic_tls *tls, const char *key)
{
	static const char label[] = "roceway quic tokens";
	gnutls_datum_t d = {0};
	int rc = gnutls_load_file(key, &d);

	if (!rc)
		rc = gnutls_hmac_fast(GNUTLS_MAC_SHA256, d.data, d.size, label, sizeof(label), tls->secret);
	if (d.data)
		gnutls_memset(d.data, 0, d.size);
	gnutls_free(d.data);
	return rc;
}

/* Reads the files; *which is the one that is wrong. Returns 0 or GnuTLS's error. */
static int files_read(struct gw_quic_tls *tls, const struct gw_quic_files *f, const char **which)
{
	int rc;

	*which = f->ca;
	rc = gnutls_certificate_set_x509_trust_file(tls->cred, f->ca, GNUTLS_X509_FMT_PEM);
	if (rc <= 0)
		return rc ? rc : GNUTLS_E_NO_CERTIFICATE_FOUND;
	*which = f->crl;
	if (f->crl && (rc = gnutls_certificate_set_x509_crl_file(tls->cred, f->crl, GNUTLS_X509_FMT_PEM)) < 0)
		return rc;
	*which = f->certificate;
	rc = gnutls_certificate_set_x509_key_file(tls->cred, f->certificate, f->key, GNUTLS_X509_FMT_PEM);
	if (rc < 0)
		return rc;
	*which = f->key;
	return secret_make(tls, f->key);
}

int gw_quic_tls_new(struct gw_quic_tls **out, const struct gw_quic_files *files, char *why, size_t size)
{
	struct gw_quic_tls *tls = calloc(1, sizeof(*tls));
	const char *which = NULL;
	int rc;

	if (!tls || gnutls_certificate_allocate_credentials(&tls->cred) != 0) {
		free(tls);
		snprintf(why, size, "no memory");
		return RWY_ENOMEM;
	}
	tls->users = 1;
	rc = files_read(tls, files, &which);
	if (rc < 0) {
		if (which == files->certificate)
			snprintf(why, size, "%s with key %s: %s", which, files->key, gnutls_strerror(rc));
		else
			snprintf(why, size, "%s: %s", which, gnutls_strerror(rc));
		gw_quic_tls_free(tls);
		return RWY_EINVAL;
	}
	gnutls_certificate_set_verify_function(tls->cred, verify);
	*out = tls;
	return 0;
}

struct gw_quic_tls *quic_tls_ref(struct gw_quic_tls *tls)
{
	tls->users++;
	return tls;
}

void gw_quic_tls_free(struct gw_quic_tls *tls)
{
	if (!tls || --tls->users)
		return;
	gnutls_certificate_free_credentials(tls->cred);
	gnutls_memset(tls->secret, 0, sizeof(tls->secret));
	free(tls);
}

/* --- sessions --------------------------------------------------------------------------------- */
static ngtcp2_conn *conn_of(ngtcp2_crypto_conn_ref *ref)
{
	return ((struct gw_quic_conn *)ref->user_data)->q;
}

int quic_tls_session(struct gw_quic_conn *c)
{
	static const gnutls_datum_t alpn = {
	    (unsigned char *)(uintptr_t)GW_QUIC_ALPN, sizeof(GW_QUIC_ALPN) - 1};
	unsigned flags = c->client ? GNUTLS_CLIENT : GNUTLS_SERVER;

	if (gnutls_init(&c->session, flags | GNUTLS_NO_SIGNAL | GNUTLS_NO_AUTO_SEND_TICKET) != 0)
		return RWY_ENOMEM;
	c->ref = (ngtcp2_crypto_conn_ref){.get_conn = conn_of, .user_data = c};
	gnutls_session_set_ptr(c->session, &c->ref);
	if (gnutls_priority_set_direct(c->session, priority, NULL) != 0 ||
	    gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, c->tls->cred) != 0 ||
	    gnutls_alpn_set_protocols(c->session, &alpn, 1, GNUTLS_ALPN_MANDATORY) != 0)
		return RWY_ENOMEM;
	if (c->client) {
		if (gnutls_server_name_set(c->session, GNUTLS_NAME_DNS, c->name, strlen(c->name)) != 0)
			return RWY_ENOMEM;
		return ngtcp2_crypto_gnutls_configure_client_session(c->session) ? RWY_ENOMEM : 0;
	}
	gnutls_certificate_server_set_request(c->session, GNUTLS_CERT_REQUIRE);
	/* A client that knows our CAs would keep back a certificate of another: then we could only
	 * say that it has none. */
	gnutls_certificate_send_x509_rdn_sequence(c->session, 1);
	return ngtcp2_crypto_gnutls_configure_server_session(c->session) ? RWY_ENOMEM : 0;
}
