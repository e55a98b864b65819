/* SPDX-License-Identifier: Apache-2.0 */
/* Private to exchange.c and exchange_tls.c. */
#ifndef GATEWAY_KEYS_EXCHANGE_INT_H
#define GATEWAY_KEYS_EXCHANGE_INT_H

#include <gnutls/gnutls.h>

#include "gateway/tls/bytes.h"
#include "gateway/keys/exchange.h"

#define KX_MSG_MAX 60

struct gw_kx {
	gnutls_session_t tls;
	struct gw_cert *cert;
	enum gw_kx_state state;
	enum gw_cert_role self;
	bool peer_closed;
	const char *name; /* client: of the server */
	struct gw_kx_offer offer;
	struct gw_kx_result result;
	struct gw_bytes in, out;
	size_t received;
	uint8_t msg[KX_MSG_MAX]; /* what came of a message */
	size_t msg_n;
	unsigned refused;
	uint8_t draw; /* which secret of the TLS session it is */
	bool keep;    /* the secret is of another session: KEEP */
	char why[GW_CERT_WHY];
	char name_mem[];
};

/* Makes x->tls, which reads x->in and writes x->out. RWY_ENOMEM. */
RWY_MUST_CHECK int kx_tls_new(struct gw_kx *x);

#endif
