/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/keys/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/keys/exchange_int.h"
#include "rwy/endian.h"

/* Certificates of a chain of eight and their signatures, in each direction. */
#define IN_MAX (32u << 10) /* bytes that a peer may send in all */

#define MSG_VERSION 1
#define LABEL       "EXPORTER-roceway-keys"
#define DRAWS_MAX   16 /* secrets of one exchange */

/* X(enumerator, number, bytes of the message) */
#define MESSAGES(X)                                                                                          \
	X(MSG_OFFER, 1, 24)                                                                                  \
	X(MSG_ACCEPT, 2, 16)                                                                                 \
	X(MSG_REFUSE, 3, 5)                                                                                  \
	X(MSG_READY, 4, 4)                                                                                   \
	X(MSG_KEEP, 5, 60)                                                                                   \
	X(MSG_KEPT, 6, 4)

enum message {
#define X(e, n, l) e = (n),
	MESSAGES(X)
#undef X
};

const char *gw_kx_reason_text(unsigned reason)
{
	switch (reason) {
#define X(e, n, s)                                                                                           \
	case n:                                                                                              \
		return s;
		GW_KX_REASONS(X)
#undef X
	default:
		return "the peer refused for a reason that this version does not know";
	}
}

const char *gw_kx_state_name(enum gw_kx_state s)
{
	static const char *const names[] = {
#define X(e, n, s) n,
	    GW_KX_STATES(X)
#undef X
	};

	return names[s];
}

/* --- begin and end ---------------------------------------------------------------------------- */
static int kx_new(struct gw_kx **out, struct gw_cert *cert, enum gw_cert_role self, const char *name)
{
	size_t n = name ? strlen(name) + 1 : 0;
	struct gw_kx *x = calloc(1, sizeof(*x) + n);
	int rc;

	if (!x)
		return RWY_ENOMEM;
	x->self = self;
	x->cert = gw_cert_ref(cert);
	if (name) {
		memcpy(x->name_mem, name, n);
		x->name = x->name_mem;
	}
	rc = kx_tls_new(x);
	if (rc) {
		gw_kx_free(x);
		return rc;
	}
	*out = x;
	return 0;
}

int gw_kx_client(struct gw_kx **out, struct gw_cert *cert, const struct gw_kx_offer *offer, const char *name)
{
	int rc = kx_new(out, cert, GW_CERT_CLIENT, name);

	if (!rc)
		(*out)->offer = *offer;
	return rc;
}

int gw_kx_client_keep(struct gw_kx **out, struct gw_cert *cert, uint64_t tunnel,
    const struct gw_kx_result *keys, const char *name)
{
	int rc = gw_kx_client(out, cert, &(struct gw_kx_offer){.tunnel = tunnel}, name);

	if (!rc) {
		(*out)->result = *keys;
		(*out)->keep = true;
	}
	return rc;
}

int gw_kx_server(struct gw_kx **out, struct gw_cert *cert)
{
	return kx_new(out, cert, GW_CERT_SERVER, NULL);
}

void gw_kx_free(struct gw_kx *x)
{
	if (!x)
		return;
	if (x->tls)
		gnutls_deinit(x->tls);
	gw_cert_free(x->cert);
	gw_bytes_free(&x->in);
	gw_bytes_free(&x->out);
	aead_wipe(&x->result, sizeof(x->result));
	free(x);
}

/* --- in and out ------------------------------------------------------------------------------- */
int gw_kx_input(struct gw_kx *x, const uint8_t *p, size_t n)
{
	x->received += n;
	if (x->received > IN_MAX)
		return RWY_EMALFORMED;
	return gw_bytes_put(&x->in, p, n);
}

void gw_kx_input_end(struct gw_kx *x)
{
	x->peer_closed = true;
}

const uint8_t *gw_kx_output(const struct gw_kx *x, size_t *n)
{
	*n = x->out.n - x->out.at;
	return x->out.p + x->out.at;
}

void gw_kx_sent(struct gw_kx *x, size_t n)
{
	x->out.at += n;
}

static enum gw_kx_event fail(struct gw_kx *x, const char *why)
{
	if (why && !*x->why)
		snprintf(x->why, sizeof(x->why), "%s", why);
	x->state = GW_KX_FAILED;
	return GW_KX_EV_FAILED;
}

static enum gw_kx_event fail_tls(struct gw_kx *x, int rc)
{
	if (*x->why) {
		(void)!gnutls_alert_send_appropriate(x->tls, rc);
	} else if (rc == GNUTLS_E_FATAL_ALERT_RECEIVED) {
		const char *alert = gnutls_alert_get_name(gnutls_alert_get(x->tls));

		snprintf(x->why, sizeof(x->why), "the peer ended the handshake: %s; its log tells more",
		    alert ? alert : "no reason");
	} else if (rc == GNUTLS_E_PREMATURE_TERMINATION || rc == GNUTLS_E_SESSION_EOF) {
		snprintf(x->why, sizeof(x->why), "the peer closed the connection in mid-handshake");
	} else if (rc == GNUTLS_E_CERTIFICATE_REQUIRED) {
		(void)!gnutls_alert_send_appropriate(x->tls, rc);
		snprintf(x->why, sizeof(x->why), "the peer has no certificate");
	} else {
		(void)!gnutls_alert_send_appropriate(x->tls, rc);
		snprintf(x->why, sizeof(x->why), "TLS: %s", gnutls_strerror(rc));
	}
	return fail(x, NULL);
}

/* --- messages --------------------------------------------------------------------------------- */
static size_t msg_len(uint8_t type)
{
	switch (type) {
#define X(e, n, l)                                                                                           \
	case n:                                                                                              \
		return l;
		MESSAGES(X)
#undef X
	default:
		return 0;
	}
}

/* Type, version, two zero bytes; then what the message says. A message fits one TLS record, and
 * the output takes any. */
static void msg_send(struct gw_kx *x, uint8_t msg[KX_MSG_MAX], enum message type)
{
	ssize_t rc;

	msg[0] = (uint8_t)type;
	msg[1] = MSG_VERSION;
	msg[2] = msg[3] = 0;
	rc = gnutls_record_send(x->tls, msg, msg_len((uint8_t)type));
	if (rc < 0)
		(void)fail_tls(x, (int)rc);
}

static void offer_send(struct gw_kx *x)
{
	uint8_t m[KX_MSG_MAX] = {0};

	rwy_put64(m + 4, x->offer.tunnel);
	rwy_put64(m + 12, x->offer.epoch);
	rwy_put16(m + 20, x->offer.workers);
	m[22] = (uint8_t)x->offer.alg;
	m[23] = x->offer.reserve;
	msg_send(x, m, MSG_OFFER);
}

static void keep_send(struct gw_kx *x)
{
	uint8_t m[KX_MSG_MAX] = {0};

	rwy_put64(m + 4, x->offer.tunnel);
	rwy_put64(m + 12, x->result.own_epoch);
	rwy_put64(m + 20, x->result.peer_epoch);
	memcpy(m + 28, x->result.secret.b, AEAD_SECRET);
	msg_send(x, m, MSG_KEEP);
	aead_wipe(m, sizeof(m));
	aead_wipe(&x->result.secret, sizeof(x->result.secret));
}

static void keep_get(struct gw_kx *x)
{
	const uint8_t *m = x->msg;

	x->offer = (struct gw_kx_offer){.tunnel = rwy_get64(m + 4)};
	x->result.own_epoch = rwy_get64(m + 12);
	x->result.peer_epoch = rwy_get64(m + 20);
	memcpy(x->result.secret.b, m + 28, AEAD_SECRET);
	aead_wipe(x->msg, sizeof(x->msg));
}

static void offer_get(struct gw_kx *x)
{
	const uint8_t *m = x->msg;

	x->offer = (struct gw_kx_offer){.tunnel = rwy_get64(m + 4),
	    .epoch = rwy_get64(m + 12),
	    .workers = rwy_get16(m + 20),
	    .alg = (enum aead_alg)m[22],
	    .reserve = m[23] & 1};
}

/* Both ends say the same: tunnel, client's epoch, server's, and which of the secrets. */
static int secret_make(struct gw_kx *x, uint64_t client, uint64_t server)
{
	uint8_t context[25];

	rwy_put64(context, x->offer.tunnel);
	rwy_put64(context + 8, client);
	rwy_put64(context + 16, server);
	context[24] = x->draw;
	x->result.own_epoch = x->self == GW_CERT_CLIENT ? client : server;
	x->result.peer_epoch = x->self == GW_CERT_CLIENT ? server : client;
	if (client == server || gnutls_prf_rfc5705(x->tls, sizeof(LABEL) - 1, LABEL, sizeof(context),
	                            (const char *)context, AEAD_SECRET, (char *)x->result.secret.b) != 0) {
		(void)fail(x, client == server ? "both ends drew the same epoch" : "TLS exports no secret");
		return RWY_EINVAL;
	}
	x->state = GW_KX_INSTALLS;
	return 0;
}

/* 1: a message is in x->msg; 0: none yet; otherwise GnuTLS's error. */
static int msg_get(struct gw_kx *x)
{
	size_t want = 1;

	for (;;) {
		ssize_t rc;

		if (x->msg_n)
			want = msg_len(x->msg[0]);
		if (!want || (x->msg_n >= 2 && x->msg[1] != MSG_VERSION)) {
			snprintf(x->why, sizeof(x->why), "the peer speaks another version of the exchange");
			return GNUTLS_E_UNEXPECTED_PACKET;
		}
		if (x->msg_n == want && want > 1)
			return 1;
		rc = gnutls_record_recv(x->tls, x->msg + x->msg_n, want - x->msg_n);
		if (rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED)
			return 0;
		if (rc <= 0)
			return rc ? (int)rc : GNUTLS_E_SESSION_EOF;
		x->msg_n += (size_t)rc;
	}
}

static enum gw_kx_event message(struct gw_kx *x)
{
	const uint8_t type = x->msg[0];

	x->msg_n = 0;
	if (x->state == GW_KX_WAITS_OFFER && type == MSG_OFFER) {
		offer_get(x);
		x->state = GW_KX_DECIDES;
		return GW_KX_EV_ASKED;
	}
	if (x->state == GW_KX_WAITS_OFFER && type == MSG_KEEP) {
		keep_get(x);
		x->keep = true;
		x->state = GW_KX_INSTALLS;
		return GW_KX_EV_KEEP;
	}
	if (x->state == GW_KX_OFFERED && x->keep && type == MSG_KEPT) {
		x->state = GW_KX_DONE;
		return GW_KX_EV_KEPT;
	}
	if (x->state == GW_KX_OFFERED && !x->keep && type == MSG_ACCEPT) {
		x->draw = x->msg[12];
		return secret_make(x, x->offer.epoch, rwy_get64(x->msg + 4)) ? GW_KX_EV_FAILED
		                                                             : GW_KX_EV_KEYS;
	}
	if (x->state == GW_KX_OFFERED && type == MSG_REFUSE) {
		x->refused = x->msg[4] ? x->msg[4] : UINT8_MAX;
		return fail(x, gw_kx_reason_text(x->refused));
	}
	if (x->state == GW_KX_WAITS_READY && type == MSG_READY) {
		x->state = GW_KX_DONE;
		return GW_KX_EV_READY;
	}
	return fail(x, "the peer sent a message that has no place here");
}

/* --- the course ------------------------------------------------------------------------------- */
static enum gw_kx_event handshake(struct gw_kx *x)
{
	int rc;

	do
		rc = gnutls_handshake(x->tls);
	while (rc < 0 && rc != GNUTLS_E_AGAIN && !gnutls_error_is_fatal(rc));
	if (rc == GNUTLS_E_AGAIN)
		return GW_KX_EV_NONE;
	if (rc < 0)
		return fail_tls(x, rc);
	if (x->self == GW_CERT_CLIENT) {
		x->state = GW_KX_OFFERED;
		if (x->keep)
			keep_send(x);
		else
			offer_send(x);
	} else {
		x->state = GW_KX_WAITS_OFFER;
	}
	return x->state == GW_KX_FAILED ? GW_KX_EV_FAILED : gw_kx_step(x);
}

enum gw_kx_event gw_kx_step(struct gw_kx *x)
{
	int rc;

	switch (x->state) {
	case GW_KX_HANDSHAKE:
		return handshake(x);
	case GW_KX_OFFERED:
	case GW_KX_WAITS_OFFER:
	case GW_KX_WAITS_READY:
		rc = msg_get(x);
		return rc == 1 ? message(x) : rc ? fail_tls(x, rc) : GW_KX_EV_NONE;
	case GW_KX_DECIDES:
	case GW_KX_INSTALLS:
	case GW_KX_DONE:
	case GW_KX_FAILED:
		break;
	}
	return GW_KX_EV_NONE;
}

int gw_kx_accept(struct gw_kx *x, uint64_t epoch)
{
	return secret_make(x, x->offer.epoch, epoch);
}

int gw_kx_again(struct gw_kx *x)
{
	if (x->draw + 1 >= DRAWS_MAX)
		return RWY_EINVAL;
	x->draw++;
	return secret_make(x, x->offer.epoch, x->result.own_epoch);
}

void gw_kx_refuse(struct gw_kx *x, enum gw_kx_reason reason)
{
	uint8_t m[KX_MSG_MAX] = {0};

	m[4] = (uint8_t)reason;
	msg_send(x, m, MSG_REFUSE);
	(void)fail(x, gw_kx_reason_text(reason));
}

void gw_kx_installed(struct gw_kx *x)
{
	uint8_t m[KX_MSG_MAX] = {0};

	if (x->self == GW_CERT_CLIENT || x->keep) {
		x->state = GW_KX_DONE;
		msg_send(x, m, x->keep ? MSG_KEPT : MSG_READY);
	} else {
		x->state = GW_KX_WAITS_READY;
		rwy_put64(m + 4, x->result.own_epoch);
		m[12] = x->draw;
		msg_send(x, m, MSG_ACCEPT);
	}
	aead_wipe(&x->result.secret, sizeof(x->result.secret));
}

/* --- what it knows ---------------------------------------------------------------------------- */
enum gw_kx_state gw_kx_state(const struct gw_kx *x)
{
	return x->state;
}

const char *gw_kx_why(const struct gw_kx *x)
{
	return x->why;
}

unsigned gw_kx_refused(const struct gw_kx *x)
{
	return x->refused;
}

const struct gw_kx_offer *gw_kx_offer(const struct gw_kx *x)
{
	return &x->offer;
}

const struct gw_kx_result *gw_kx_result(const struct gw_kx *x)
{
	return &x->result;
}

int gw_kx_peer(struct gw_kx *x, struct gw_cert_peer *out)
{
	return gw_cert_peer_keep(out, x->tls, x->self == GW_CERT_CLIENT ? GW_CERT_SERVER : GW_CERT_CLIENT);
}
