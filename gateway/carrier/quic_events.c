/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of ngtcp2: handshake, stream data, acknowledgements, connection ids. */
#include <stdio.h>
#include <string.h>

#include "gateway/carrier/quic_impl.h"

#define STREAM_IDS 4 /* two bits of a stream's id are its kind (RFC 9000, 2.1) */

int64_t quic_stream_id(unsigned idx, bool client)
{
	return (int64_t)idx * STREAM_IDS + (client ? 2 : 3);
}

/* --- open ------------------------------------------------------------------------------------- */
/* Opens our streams: as many as the peer admits. */
static int streams_open(struct gw_quic_conn *c)
{
	unsigned n = 0;

	while (n < c->end->cfg.streams && ngtcp2_conn_open_uni_stream(c->q, &c->id[n], NULL) == 0)
		n++;
	c->streams = n;
	if (n >= 2)
		return 0;
	snprintf(c->why, sizeof(c->why), "the peer admits %u streams", n);
	return NGTCP2_ERR_CALLBACK_FAILURE;
}

static int now_open(struct gw_quic_conn *c)
{
	if (!c->verified) {
		c->cert_bad = true;
		snprintf(c->why, sizeof(c->why), "the peer has no certificate");
		return NGTCP2_ERR_CALLBACK_FAILURE;
	}
	if (streams_open(c) != 0)
		return NGTCP2_ERR_CALLBACK_FAILURE;
	c->state = QUIC_OPEN;
	c->end->c.opened++;
	c->end->half -= !c->client;
	c->end->ops->opened(c->end->ctx, c, c->now);
	return 0;
}

/* The server has seen the client's certificate. */
static int on_completed(ngtcp2_conn *q, void *user)
{
	struct gw_quic_conn *c = user;

	(void)q;
	return c->client ? 0 : now_open(c);
}

/* The server has found the client's certificate good: before, a client cannot know. */
static int on_confirmed(ngtcp2_conn *q, void *user)
{
	struct gw_quic_conn *c = user;

	(void)q;
	return c->client ? now_open(c) : 0;
}

/* --- streams ---------------------------------------------------------------------------------- */
static int on_data(ngtcp2_conn *q, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *p, size_t n,
    void *user, void *stream_user)
{
	struct gw_quic_conn *c = user;
	unsigned idx = (unsigned)(id / STREAM_IDS);

	(void)q, (void)offset, (void)stream_user;
	if (flags & NGTCP2_STREAM_DATA_FLAG_FIN || quic_stream_id(idx, !c->client) != id ||
	    idx >= c->end->cfg.streams) {
		snprintf(c->why, sizeof(c->why), "the peer ended a stream, or used one of another kind");
		return NGTCP2_ERR_CALLBACK_FAILURE;
	}
	if (c->state == QUIC_OPEN)
		c->end->ops->received(c->end->ctx, c, idx, p, n, c->now);
	return 0;
}

static int on_reset(ngtcp2_conn *q, int64_t id, uint64_t size, uint64_t error, void *user, void *stream_user)
{
	struct gw_quic_conn *c = user;

	(void)q, (void)id, (void)size, (void)error, (void)stream_user;
	snprintf(c->why, sizeof(c->why), "the peer reset a stream");
	return NGTCP2_ERR_CALLBACK_FAILURE;
}

static int on_stop(ngtcp2_conn *q, int64_t id, uint64_t error, void *user, void *stream_user)
{
	return on_reset(q, id, 0, error, user, stream_user);
}

static int on_acked(ngtcp2_conn *q, int64_t id, uint64_t offset, uint64_t n, void *user, void *stream_user)
{
	struct gw_quic_conn *c = user;
	unsigned idx = (unsigned)(id / STREAM_IDS);

	(void)q, (void)stream_user;
	if (idx < c->streams)
		c->unacked -= quic_tx_acked(c->end, &c->tx[idx], offset + n);
	return 0;
}

static int on_window(ngtcp2_conn *q, int64_t id, uint64_t max, void *user, void *stream_user)
{
	struct gw_quic_conn *c = user;
	unsigned idx = (unsigned)(id / STREAM_IDS);

	(void)q, (void)max, (void)stream_user;
	if (idx < c->streams && c->tx[idx].sent < c->tx[idx].end)
		c->active[idx / 64] |= (uint64_t)1 << idx % 64;
	return 0;
}

/* --- connection ids, randomness --------------------------------------------------------------- */
static void on_random(uint8_t *p, size_t n, const ngtcp2_rand_ctx *ctx)
{
	(void)ctx;
	quic_random(p, n);
}

static int on_cid_new(ngtcp2_conn *q, ngtcp2_cid *cid, uint8_t *token, size_t len, void *user)
{
	struct gw_quic_conn *c = user;

	(void)q, (void)len;
	quic_cid_new(cid);
	if (ngtcp2_crypto_generate_stateless_reset_token(token, c->tls->secret, QUIC_SECRET, cid) != 0 ||
	    quic_cid_add(c->end, cid, c) != 0)
		return NGTCP2_ERR_CALLBACK_FAILURE;
	return 0;
}

static int on_cid_gone(ngtcp2_conn *q, const ngtcp2_cid *cid, void *user)
{
	struct gw_quic_conn *c = user;

	(void)q;
	quic_cid_remove(c->end, cid);
	return 0;
}

static int on_peer_reset(ngtcp2_conn *q, const ngtcp2_pkt_stateless_reset *sr, void *user)
{
	struct gw_quic_conn *c = user;

	(void)q, (void)sr;
	snprintf(c->why, sizeof(c->why), "the peer does not know the connection any more");
	return 0;
}

#define EVENTS                                                                                               \
	.recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb, .encrypt = ngtcp2_crypto_encrypt_cb,          \
	.decrypt = ngtcp2_crypto_decrypt_cb, .hp_mask = ngtcp2_crypto_hp_mask_cb,                            \
	.update_key = ngtcp2_crypto_update_key_cb,                                                           \
	.delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,                                   \
	.delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,                               \
	.get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,                                 \
	.version_negotiation = ngtcp2_crypto_version_negotiation_cb, .handshake_completed = on_completed,    \
	.handshake_confirmed = on_confirmed, .recv_stream_data = on_data, .stream_reset = on_reset,          \
	.stream_stop_sending = on_stop, .acked_stream_data_offset = on_acked,                                \
	.extend_max_stream_data = on_window, .rand = on_random, .get_new_connection_id = on_cid_new,         \
	.remove_connection_id = on_cid_gone, .recv_stateless_reset = on_peer_reset

const ngtcp2_callbacks quic_client_events = {
    EVENTS, .client_initial = ngtcp2_crypto_client_initial_cb, .recv_retry = ngtcp2_crypto_recv_retry_cb};
const ngtcp2_callbacks quic_server_events = {
    EVENTS, .recv_client_initial = ngtcp2_crypto_recv_client_initial_cb};
