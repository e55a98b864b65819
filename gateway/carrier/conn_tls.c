/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.3 in a connection of a tunnel with keys: both ends show a certificate (gateway/tls/cert.h).
 * TCP has all in it: bytes are copied into records on their way out, one copy more than without
 * keys. RDMA has the handshake in it, whose bytes wait here for messages, and takes a secret.
 */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/carrier/internal.h"
#include "gateway/tls/bytes.h"

#define ALPN_TCP  "roceway-tcp/1"
#define ALPN_RDMA "roceway-rdma/1"
#define LABEL     "EXPORTER-roceway-rdma"
#define RECORD    16384 /* RFC 8446 section 5.1 */

/* X(enumerator) */
enum tls_state { TLS_HANDSHAKE, TLS_OPEN };

struct gw_conn_tls {
	gnutls_session_t s;
	struct gw_cert *cert;
	enum tls_state state;
	enum gw_cert_role self;
	char name[CONF_STR]; /* that the peer's certificate must have; "": introduce() checks it */
	char why[GW_CERT_WHY];
	unsigned staged; /* bytes of `record` that GnuTLS has not sent yet */
	uint8_t record[RECORD];
	struct gw_bytes in, out; /* without a socket */
};

static const char priority[] =
    "%DISABLE_TLS13_COMPAT_MODE:NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:"
    "+CHACHA20-POLY1305:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1";

static int verify(gnutls_session_t s)
{
	struct gw_conn_tls *t = gnutls_session_get_ptr(s);
	enum gw_cert_role peer = t->self == GW_CERT_CLIENT ? GW_CERT_SERVER : GW_CERT_CLIENT;

	return gw_cert_verify(s, peer, *t->name ? t->name : NULL, t->why, sizeof(t->why))
	           ? 0
	           : GNUTLS_E_CERTIFICATE_ERROR;
}

/* --- without a socket ------------------------------------------------------------------------- */
static ssize_t pull(gnutls_transport_ptr_t ptr, void *to, size_t n)
{
	struct gw_conn_tls *t = ptr;
	const size_t there = t->in.n - t->in.at;

	if (!there) {
		gnutls_transport_set_errno(t->s, EAGAIN);
		return -1;
	}
	n = n < there ? n : there;
	memcpy(to, t->in.p + t->in.at, n);
	t->in.at += n;
	return (ssize_t)n;
}

static ssize_t push(gnutls_transport_ptr_t ptr, const void *from, size_t n)
{
	struct gw_conn_tls *t = ptr;

	if (gw_bytes_put(&t->out, from, n) == 0)
		return (ssize_t)n;
	gnutls_transport_set_errno(t->s, ENOMEM);
	return -1;
}

static int ready(gnutls_transport_ptr_t ptr, unsigned ms)
{
	const struct gw_conn_tls *t = ptr;

	(void)ms;
	return t->in.n != t->in.at;
}

int gw_conn_tls_input(struct gw_conn *c, const void *p, size_t n)
{
	return gw_bytes_put(&c->tls->in, p, n);
}

const uint8_t *gw_conn_tls_output(const struct gw_conn *c, size_t *n)
{
	*n = c->tls->out.n - c->tls->out.at;
	return c->tls->out.p + c->tls->out.at;
}

void gw_conn_tls_sent(struct gw_conn *c, size_t n)
{
	c->tls->out.at += n;
}

int gw_conn_tls_secret(const struct gw_conn *c, uint8_t context, struct aead_secret *out)
{
	return gnutls_prf_rfc5705(c->tls->s, sizeof(LABEL) - 1, LABEL, 1, (const char *)&context, AEAD_SECRET,
	           (char *)out->b) == 0
	           ? 0
	           : RWY_EINVAL;
}

/* --- life ------------------------------------------------------------------------------------- */
static void transport_set(struct gw_conn_tls *t, int fd)
{
	if (fd >= 0) {
		gnutls_transport_set_int(t->s, fd);
		return;
	}
	gnutls_transport_set_ptr(t->s, t);
	gnutls_transport_set_pull_function(t->s, pull);
	gnutls_transport_set_push_function(t->s, push);
	gnutls_transport_set_pull_timeout_function(t->s, ready);
}

static int session_new(struct gw_conn_tls *t, int fd)
{
	static const gnutls_datum_t tcp = {(unsigned char *)(uintptr_t)ALPN_TCP, sizeof(ALPN_TCP) - 1},
	                            rdma = {(unsigned char *)(uintptr_t)ALPN_RDMA, sizeof(ALPN_RDMA) - 1};
	const unsigned flags = t->self == GW_CERT_CLIENT ? GNUTLS_CLIENT : GNUTLS_SERVER;

	if (gnutls_init(&t->s, flags | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS |
	                           GNUTLS_NO_AUTO_SEND_TICKET) != 0) {
		t->s = NULL;
		return RWY_ENOMEM;
	}
	gnutls_session_set_ptr(t->s, t);
	transport_set(t, fd);
	gnutls_handshake_set_timeout(t->s, 0); /* the connection has a deadline */
	gnutls_session_set_verify_function(t->s, verify);
	if (gnutls_priority_set_direct(t->s, priority, NULL) != 0 ||
	    gnutls_credentials_set(t->s, GNUTLS_CRD_CERTIFICATE, gw_cert_credentials(t->cert)) != 0 ||
	    gnutls_alpn_set_protocols(t->s, fd >= 0 ? &tcp : &rdma, 1, GNUTLS_ALPN_MANDATORY) != 0)
		return RWY_ENOMEM;
	if (t->self == GW_CERT_SERVER) {
		gnutls_certificate_server_set_request(t->s, GNUTLS_CERT_REQUIRE);
		/* as in gateway/keys/exchange.c */
		gnutls_certificate_send_x509_rdn_sequence(t->s, 1);
	}
	return 0;
}

int gw_conn_tls_new(struct gw_carriers *cs, struct gw_conn *c, const char *name)
{
	struct gw_conn_tls *t = cs->tls ? calloc(1, sizeof(*t)) : NULL;

	if (!t) /* the gateway has no certificates, or no memory */
		return RWY_ENOMEM;
	t->self = c->accepted ? GW_CERT_SERVER : GW_CERT_CLIENT;
	t->cert = gw_cert_ref(gw_quic_tls_cert(cs->tls));
	snprintf(t->name, sizeof(t->name), "%s", name ? name : "");
	c->tls = t;
	return session_new(t, c->fd);
}

void gw_conn_tls_free(struct gw_conn *c)
{
	struct gw_conn_tls *t = c->tls;

	if (!t)
		return;
	if (t->s)
		gnutls_deinit(t->s);
	gw_cert_free(t->cert);
	gnutls_memset(t->record, 0, sizeof(t->record));
	gw_bytes_free(&t->in);
	gw_bytes_free(&t->out);
	free(t);
	c->tls = NULL;
}

/* -1 with errno: EAGAIN, or EPROTO and cs->why. */
static int fail(struct gw_carriers *cs, struct gw_conn_tls *t, int rc)
{
	if (rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED) {
		errno = EAGAIN;
		return -1;
	}
	if (*t->why) {
		(void)!gnutls_alert_send_appropriate(t->s, rc);
		snprintf(cs->why, sizeof(cs->why), "%s", t->why);
	} else if (rc == GNUTLS_E_FATAL_ALERT_RECEIVED) {
		const char *alert = gnutls_alert_get_name(gnutls_alert_get(t->s));

		snprintf(cs->why, sizeof(cs->why), "the peer ended TLS: %s; its log tells more",
		    alert ? alert : "no reason");
	} else {
		(void)!gnutls_alert_send_appropriate(t->s, rc);
		snprintf(cs->why, sizeof(cs->why), "TLS: %s", gnutls_strerror(rc));
	}
	errno = EPROTO;
	return -1;
}

bool gw_conn_tls_open(const struct gw_conn *c)
{
	return c->tls->state == TLS_OPEN;
}

bool gw_conn_tls_wants_write(const struct gw_conn *c)
{
	return gnutls_record_get_direction(c->tls->s);
}

int gw_conn_tls_handshake(struct gw_carriers *cs, struct gw_conn *c)
{
	struct gw_conn_tls *t = c->tls;
	int rc;

	if (t->state == TLS_OPEN)
		return 0;
	do
		rc = gnutls_handshake(t->s);
	while (rc < 0 && rc != GNUTLS_E_AGAIN && !gnutls_error_is_fatal(rc));
	if (rc < 0)
		return fail(cs, t, rc);
	t->state = TLS_OPEN;
	return 0;
}

ssize_t gw_conn_tls_recv(struct gw_carriers *cs, struct gw_conn *c, void *p, size_t n)
{
	ssize_t rc = gw_conn_tls_handshake(cs, c);

	if (rc < 0)
		return rc;
	rc = gnutls_record_recv(c->tls->s, p, n);
	if (rc == GNUTLS_E_PREMATURE_TERMINATION)
		return 0;
	return rc < 0 ? fail(cs, c->tls, (int)rc) : rc;
}

bool gw_conn_tls_pending(const struct gw_conn *c)
{
	return gnutls_record_check_pending(c->tls->s) > 0;
}

static void stage(struct gw_conn_tls *t, const struct iovec *v, unsigned n)
{
	t->staged = 0;
	for (unsigned i = 0; i < n && t->staged < RECORD; i++) {
		size_t len = v[i].iov_len < RECORD - t->staged ? v[i].iov_len : RECORD - t->staged;

		memcpy(t->record + t->staged, v[i].iov_base, len);
		t->staged += (unsigned)len;
	}
}

/* A record that the socket did not take whole is GnuTLS's; the caller comes again with the same. */
ssize_t gw_conn_tls_send(struct gw_carriers *cs, struct gw_conn *c, const struct iovec *v, unsigned n)
{
	struct gw_conn_tls *t = c->tls;
	ssize_t rc = gw_conn_tls_handshake(cs, c);

	if (rc < 0)
		return rc;
	if (t->staged) {
		rc = gnutls_record_send(t->s, NULL, 0);
	} else {
		stage(t, v, n);
		rc = gnutls_record_send(t->s, t->record, t->staged);
	}
	if (rc < 0)
		return fail(cs, t, (int)rc);
	rc = t->staged;
	t->staged = 0;
	return rc;
}

bool gw_conn_tls_named(const struct gw_conn *c, const char *name)
{
	struct gw_cert_peer peer;
	bool named;

	if (gw_cert_peer_keep(&peer, c->tls->s, GW_CERT_CLIENT) != 0)
		return false;
	named = gw_cert_peer_named(&peer, name);
	gw_cert_peer_drop(&peer);
	return named;
}

bool gw_conn_tls_still(struct gw_carriers *cs, const struct gw_conn *c, const char *name)
{
	struct gw_cert_peer peer;
	bool good;

	if (c->tls->state != TLS_OPEN)
		return true; /* its handshake ends soon, with the certificates of its beginning */
	if (gw_cert_peer_keep(
	        &peer, c->tls->s, c->tls->self == GW_CERT_CLIENT ? GW_CERT_SERVER : GW_CERT_CLIENT) != 0)
		return false;
	good = gw_cert_peer_verify(gw_quic_tls_cert(cs->tls), &peer, name, cs->why, sizeof(cs->why));
	gw_cert_peer_drop(&peer);
	return good;
}
