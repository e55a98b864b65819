/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS of QUIC connections, and the check of the peer's certificate (gateway/tls/cert.h).
 */
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/carrier/quic_impl.h"

/* TLS 1.3 only, with the AEAD algorithms that RFC 9001 protects packets with. */
static const char priority[] =
    "%DISABLE_TLS13_COMPAT_MODE:NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:"
    "+CHACHA20-POLY1305:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1";

/* --- the check -------------------------------------------------------------------------------- */
static int verify(gnutls_session_t session)
{
	ngtcp2_crypto_conn_ref *ref = gnutls_session_get_ptr(session);
	struct gw_quic_conn *c = ref->user_data;

	c->verified = gw_cert_verify(
	    session, c->client ? GW_CERT_SERVER : GW_CERT_CLIENT, c->name, c->why, sizeof(c->why));
	c->cert_bad = !c->verified;
	return c->verified ? 0 : GNUTLS_E_CERTIFICATE_ERROR;
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

int gw_quic_tls_new(struct gw_quic_tls **out, const struct gw_cert_files *files, char *why, size_t size)
{
	struct gw_quic_tls *tls = calloc(1, sizeof(*tls));
	int rc;

	if (!tls) {
		snprintf(why, size, "no memory");
		return RWY_ENOMEM;
	}
	tls->users = 1;
	rc = gw_cert_read(&tls->cert, files, why, size);
	if (!rc && secret_make(tls, files->key) != 0) {
		snprintf(why, size, "%.160s: cannot be read", files->key);
		rc = RWY_EINVAL;
	}
	if (rc) {
		gw_quic_tls_free(tls);
		return rc;
	}
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
	gw_cert_free(tls->cert);
	gnutls_memset(tls->secret, 0, sizeof(tls->secret));
	free(tls);
}

struct gw_cert *gw_quic_tls_cert(const struct gw_quic_tls *tls)
{
	return tls->cert;
}

bool gw_quic_peer_verify(
    const struct gw_quic_conn *c, const struct gw_cert *cert, const char *name, char *why, size_t size)
{
	struct gw_cert_peer peer;
	bool good;

	if (!c->verified)
		return true;
	snprintf(why, size, "the peer's certificate cannot be read");
	if (gw_cert_peer_keep(&peer, c->session, c->client ? GW_CERT_SERVER : GW_CERT_CLIENT) != 0)
		return false;
	good = gw_cert_peer_verify(cert, &peer, name, why, size);
	gw_cert_peer_drop(&peer);
	return good;
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
	gnutls_session_set_verify_function(c->session, verify);
	if (gnutls_priority_set_direct(c->session, priority, NULL) != 0 ||
	    gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, gw_cert_credentials(c->tls->cert)) !=
	        0 ||
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
