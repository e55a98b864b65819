/* SPDX-License-Identifier: Apache-2.0 */
/* TLS of a key exchange: its session between the bytes in and out. */
#include <errno.h>
#include <string.h>

#include "gateway/keys/exchange_int.h"

static const char priority[] =
    "%DISABLE_TLS13_COMPAT_MODE:NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:"
    "+CHACHA20-POLY1305:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1";

static ssize_t tls_pull(gnutls_transport_ptr_t ptr, void *to, size_t n)
{
	struct gw_kx *x = ptr;
	size_t there = x->in.n - x->in.at;

	if (!there && x->peer_closed)
		return 0;
	if (!there) {
		gnutls_transport_set_errno(x->tls, EAGAIN);
		return -1;
	}
	if (n > there)
		n = there;
	memcpy(to, x->in.p + x->in.at, n);
	x->in.at += n;
	return (ssize_t)n;
}

static ssize_t tls_push(gnutls_transport_ptr_t ptr, const void *from, size_t n)
{
	struct gw_kx *x = ptr;

	if (gw_bytes_put(&x->out, from, n) != 0) {
		gnutls_transport_set_errno(x->tls, ENOMEM);
		return -1;
	}
	return (ssize_t)n;
}

static int tls_ready(gnutls_transport_ptr_t ptr, unsigned ms)
{
	const struct gw_kx *x = ptr;

	(void)ms;
	return x->in.n != x->in.at || x->peer_closed;
}

static int tls_verify(gnutls_session_t s)
{
	struct gw_kx *x = gnutls_session_get_ptr(s);
	enum gw_cert_role peer = x->self == GW_CERT_CLIENT ? GW_CERT_SERVER : GW_CERT_CLIENT;

	return gw_cert_verify(s, peer, x->name, x->why, sizeof(x->why)) ? 0 : GNUTLS_E_CERTIFICATE_ERROR;
}

int kx_tls_new(struct gw_kx *x)
{
	static const gnutls_datum_t alpn = {(unsigned char *)(uintptr_t)GW_KX_ALPN, sizeof(GW_KX_ALPN) - 1};
	unsigned flags = x->self == GW_CERT_CLIENT ? GNUTLS_CLIENT : GNUTLS_SERVER;

	if (gnutls_init(&x->tls, flags | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS |
	                             GNUTLS_NO_AUTO_SEND_TICKET) != 0) {
		x->tls = NULL;
		return RWY_ENOMEM;
	}
	gnutls_session_set_ptr(x->tls, x);
	gnutls_transport_set_ptr(x->tls, x);
	gnutls_transport_set_pull_function(x->tls, tls_pull);
	gnutls_transport_set_push_function(x->tls, tls_push);
	gnutls_transport_set_pull_timeout_function(x->tls, tls_ready);
	gnutls_handshake_set_timeout(x->tls, 0); /* the caller has the clock */
	gnutls_session_set_verify_function(x->tls, tls_verify);
	if (gnutls_priority_set_direct(x->tls, priority, NULL) != 0 ||
	    gnutls_credentials_set(x->tls, GNUTLS_CRD_CERTIFICATE, gw_cert_credentials(x->cert)) != 0 ||
	    gnutls_alpn_set_protocols(x->tls, &alpn, 1, GNUTLS_ALPN_MANDATORY) != 0)
		return RWY_ENOMEM;
	if (x->self == GW_CERT_CLIENT)
		return gnutls_server_name_set(x->tls, GNUTLS_NAME_DNS, x->name, strlen(x->name)) != 0
		           ? RWY_ENOMEM
		           : 0;
	gnutls_certificate_server_set_request(x->tls, GNUTLS_CERT_REQUIRE);
	/* A client that knows our CAs would keep back a certificate of another: then we could only
	 * say that it has none. */
	gnutls_certificate_send_x509_rdn_sequence(x->tls, 1);
	return 0;
}
