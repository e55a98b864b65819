/* SPDX-License-Identifier: Apache-2.0 */
/* One QUIC connection: made, read, written, ended. Its events are in quic_events.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/carrier/quic_impl.h"

#define VECTORS  8
#define JUMBO    1452 /* a larger payload is not probed for: ngtcp2's probes end there */
#define REASON   100
#define MIN_SIZE 1200 /* RFC 9000, 14: every path passes it */

/* --- life ------------------------------------------------------------------------------------- */
static void settings_make(const struct gw_quic_end *e, const struct quic_first *first, ngtcp2_settings *s,
    ngtcp2_transport_params *p, rwy_time now)
{
	const struct gw_quic_cfg *cfg = &e->cfg;

	ngtcp2_settings_default(s);
	s->initial_ts = now;
	s->cc_algo = cfg->cc == GW_QUIC_BBR2 ? NGTCP2_CC_ALGO_BBR2 : NGTCP2_CC_ALGO_CUBIC;
	s->handshake_timeout = cfg->handshake;
	s->max_tx_udp_payload_size = cfg->payload;
	s->no_tx_udp_payload_size_shaping = cfg->payload > JUMBO;
	s->no_pmtud = cfg->payload > JUMBO;
	ngtcp2_transport_params_default(p);
	p->initial_max_data = cfg->window;
	p->initial_max_stream_data_uni = cfg->window;
	p->initial_max_streams_uni = cfg->streams;
	p->max_idle_timeout = cfg->idle;
	p->active_connection_id_limit = QUIC_CIDS;
	if (!first)
		return;
	s->token = first->hd->token;
	p->original_dcid = *first->odcid;
	if (first->retried) {
		p->retry_scid = first->hd->dcid;
		p->retry_scid_present = 1;
	}
}

static int ngtcp2_make(struct gw_quic_conn *c, const struct quic_first *first, rwy_time now)
{
	struct gw_quic_end *e = c->end;
	ngtcp2_sockaddr_union local, remote;
	ngtcp2_path path = {0};
	ngtcp2_settings s;
	ngtcp2_transport_params p;
	ngtcp2_cid scid, dcid;
	int rc;

	quic_sockaddr(&local, &path.local, &e->cfg.local);
	quic_sockaddr(&remote, &path.remote, &c->remote);
	settings_make(e, first, &s, &p, now);
	quic_cid_new(&scid);
	if (first) {
		p.stateless_reset_token_present = 1;
		if (ngtcp2_crypto_generate_stateless_reset_token(
		        p.stateless_reset_token, c->tls->secret, QUIC_SECRET, &scid) != 0)
			return RWY_ENOMEM;
		rc = ngtcp2_conn_server_new(&c->q, &first->hd->scid, &scid, &path, first->hd->version,
		    &quic_server_events, &s, &p, NULL, c);
	} else {
		quic_cid_new(&dcid);
		rc = ngtcp2_conn_client_new(
		    &c->q, &dcid, &scid, &path, NGTCP2_PROTO_VER_V1, &quic_client_events, &s, &p, NULL, c);
	}
	if (rc != 0)
		return RWY_ENOMEM;
	ngtcp2_conn_set_tls_native_handle(c->q, c->session);
	ngtcp2_conn_set_keep_alive_timeout(c->q, e->cfg.keep_alive);
	/* A client's first packets come to an id that it chose. */
	if (quic_cid_add(e, &scid, c) != 0 || (first && quic_cid_add(e, &first->hd->dcid, c) != 0))
		return RWY_ENOMEM;
	return 0;
}

struct gw_quic_conn *quic_conn_new(struct gw_quic_end *e, const struct gw_quic_addr *remote, const char *name,
    const struct quic_first *first, rwy_time now)
{
	struct gw_quic_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->end = e;
	c->client = !first;
	c->tls = quic_tls_ref(e->tls);
	c->remote = *remote;
	c->now = now;
	snprintf(c->name, sizeof(c->name), "%s", name);
	e->n++;
	e->half += !c->client;
	c->next = e->conns;
	e->conns = c;
	if (quic_tls_session(c) != 0 || ngtcp2_make(c, first, now) != 0) {
		quic_conn_free(c);
		return NULL;
	}
	return c;
}

void quic_conn_free(struct gw_quic_conn *c)
{
	struct gw_quic_end *e = c->end;
	struct gw_quic_conn **at = &e->conns;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	e->n--;
	if (c->state == QUIC_HANDSHAKE)
		e->half -= !c->client;
	quic_cid_remove_all(e, c);
	ngtcp2_conn_del(c->q);
	if (c->session)
		gnutls_deinit(c->session);
	for (unsigned i = 0; i < GW_QUIC_STREAMS_MAX; i++)
		quic_tx_free(e, &c->tx[i]);
	gw_quic_tls_free(c->tls);
	free(c);
}

/* --- end -------------------------------------------------------------------------------------- */
static void dead(struct gw_quic_conn *c, const char *reason)
{
	struct gw_quic_end *e = c->end;

	if (c->state == QUIC_DEAD)
		return;
	if (!c->why[0])
		snprintf(c->why, sizeof(c->why), "%s", reason);
	if (c->cert_bad)
		e->c.refused_certificate++;
	else if (c->state == QUIC_HANDSHAKE)
		e->c.handshake_failed++;
	else
		e->c.lost++;
	if (c->state == QUIC_HANDSHAKE)
		e->half -= !c->client;
	c->state = QUIC_DEAD;
}

void quic_conn_tell(struct gw_quic_conn *c, int err, const char *reason, rwy_time now)
{
	ngtcp2_connection_close_error cc;
	ngtcp2_path_storage ps;
	ngtcp2_pkt_info pi;
	ngtcp2_ssize n;
	size_t len = strnlen(reason, REASON);

	ngtcp2_connection_close_error_default(&cc);
	if (err == NGTCP2_ERR_CRYPTO)
		ngtcp2_connection_close_error_set_transport_error_tls_alert(
		    &cc, ngtcp2_conn_get_tls_alert(c->q), NULL, 0);
	else if (err)
		ngtcp2_connection_close_error_set_transport_error_liberr(&cc, err, NULL, 0);
	else
		ngtcp2_connection_close_error_set_application_error(&cc, 0, (const uint8_t *)reason, len);
	ngtcp2_path_storage_zero(&ps);
	n = ngtcp2_conn_write_connection_close(c->q, &ps.path, &pi, c->end->batch, MIN_SIZE, &cc, now);
	if (n > 0) {
		struct gw_quic_out out = {.remote = quic_addr(&ps.path.remote),
		    .data = c->end->batch,
		    .len = (size_t)n,
		    .segment = (size_t)n};

		c->end->c.tx_datagrams += c->end->ops->output(c->end->ctx, &out);
	}
}

static void end_by_error(struct gw_quic_conn *c, int err, rwy_time now)
{
	const char *reason = c->why[0] ? c->why : ngtcp2_strerror(err);

	quic_conn_tell(c, err, reason, now);
	dead(c, reason);
}

/* The peer has ended it: says why in its words. */
static void peer_ended(struct gw_quic_conn *c)
{
	ngtcp2_connection_close_error cc;
	char text[GW_QUIC_WHY];
	uint64_t code;

	ngtcp2_conn_get_connection_close_error(c->q, &cc);
	code = cc.error_code;
	if (cc.type == NGTCP2_CONNECTION_CLOSE_ERROR_CODE_TYPE_APPLICATION) {
		int n = cc.reasonlen > REASON ? REASON : (int)cc.reasonlen;
		unsigned k = 0;

		for (int i = 0; i < n; i++) /* a stranger's bytes: only what is plain text */
			if (cc.reason[i] >= ' ' && cc.reason[i] < 127)
				text[k++] = (char)cc.reason[i];
		text[k] = 0;
		snprintf(
		    c->why, sizeof(c->why), "the peer closed the connection%s%.100s", k ? ": " : "", text);
	} else if (code >= 0x100 && code < 0x200) { /* RFC 9001, 4.8 */
		const char *alert = gnutls_alert_get_name((gnutls_alert_description_t)(code & 0xff));

		snprintf(c->why, sizeof(c->why), "the peer refused the handshake: %s",
		    alert ? alert : "unknown alert");
	} else {
		snprintf(c->why, sizeof(c->why), "the peer closed the connection with error 0x%llx",
		    (unsigned long long)code);
	}
	dead(c, c->why);
}

/* --- reading ---------------------------------------------------------------------------------- */
static void alert_say(struct gw_quic_conn *c)
{
	const uint8_t code = ngtcp2_conn_get_tls_alert(c->q);
	const char *alert = gnutls_alert_get_name((gnutls_alert_description_t)code);

	if (c->why[0])
		return;
	if (code == GNUTLS_A_CERTIFICATE_REQUIRED) {
		c->cert_bad = true;
		snprintf(c->why, sizeof(c->why), "the peer has no certificate");
	} else {
		snprintf(c->why, sizeof(c->why), "TLS: %s", alert ? alert : "handshake failure");
	}
}

/* A client's address may change: a translator on the way, or another path (RFC 9000, 9). */
static void address_follow(struct gw_quic_conn *c)
{
	struct gw_quic_addr at = quic_addr(&ngtcp2_conn_get_path(c->q)->remote);

	if (c->client || (rwy_ip_eq(&at.ip, &c->remote.ip) && at.port == c->remote.port))
		return;
	c->remote = at;
	c->end->c.migrated++;
}

void quic_conn_read(struct gw_quic_conn *c, const struct gw_quic_addr *remote, const uint8_t *p, size_t n,
    uint8_t ecn, rwy_time now)
{
	ngtcp2_sockaddr_union local, far;
	ngtcp2_path path = {0};
	ngtcp2_pkt_info pi = {.ecn = ecn};
	int rc;

	if (c->state == QUIC_DEAD)
		return;
	c->now = now;
	quic_sockaddr(&local, &path.local, &c->end->cfg.local);
	quic_sockaddr(&far, &path.remote, remote);
	rc = ngtcp2_conn_read_pkt(c->q, &path, &pi, p, n, now);
	if (c->state == QUIC_DEAD)
		return; /* a callback closed it */
	switch (rc) {
	case 0:
		address_follow(c);
		return;
	case NGTCP2_ERR_DRAINING:
		if (c->why[0])
			dead(c, c->why);
		else
			peer_ended(c);
		return;
	case NGTCP2_ERR_RETRY:
	case NGTCP2_ERR_DROP_CONN:
		c->end->c.drop_packet++;
		dead(c, "the peer's first packet was damaged");
		return;
	case NGTCP2_ERR_RECV_VERSION_NEGOTIATION:
		dead(c, "the peer speaks no version of QUIC that we speak");
		return;
	case NGTCP2_ERR_CRYPTO:
		alert_say(c);
		break;
	}
	end_by_error(c, rc, now);
}

/* --- writing ---------------------------------------------------------------------------------- */
/* The next stream with something to send: control first, the others in turn. -1: none. */
static int stream_pick(struct gw_quic_conn *c)
{
	unsigned words = (c->streams + 63) / 64;

	if (!c->wants_out || !c->streams)
		return -1;
	if (c->active[0] & 1)
		return 0;
	for (unsigned i = 0; i <= words; i++) {
		unsigned w = (c->turn / 64 + i) % words;
		uint64_t set = c->active[w];

		if (i == 0)
			set &= ~(uint64_t)0 << c->turn % 64;
		if (set)
			return (int)(w * 64 + (unsigned)__builtin_ctzll(set));
	}
	return -1;
}

static void stream_sent(struct gw_quic_conn *c, unsigned s, uint64_t n)
{
	quic_tx_sent(&c->tx[s], n);
	c->unsent -= n;
	if (c->tx[s].sent == c->tx[s].end)
		c->active[s / 64] &= ~((uint64_t)1 << s % 64);
	c->turn = (s + 1) % c->streams;
}

/* Writes one datagram of up to len bytes. Returns its length, 0: nothing may go, or an error. */
static ngtcp2_ssize datagram_write(
    struct gw_quic_conn *c, uint8_t *out, size_t len, ngtcp2_path *path, ngtcp2_pkt_info *pi, rwy_time now)
{
	for (;;) {
		int s = stream_pick(c);
		ngtcp2_vec v[VECTORS];
		unsigned vn = s >= 0 ? quic_tx_unsent(&c->tx[s], v, VECTORS) : 0;
		ngtcp2_ssize taken = -1, n;

		n = ngtcp2_conn_writev_stream(c->q, path, pi, out, len, &taken,
		    s >= 0 ? NGTCP2_WRITE_STREAM_FLAG_MORE : 0, s >= 0 ? c->id[s] : -1, v, vn, now);
		if (s >= 0 && taken > 0) {
			c->pieces++;
			stream_sent(c, (unsigned)s, (uint64_t)taken);
		}
		if (n == NGTCP2_ERR_WRITE_MORE)
			continue;
		if (n == NGTCP2_ERR_STREAM_DATA_BLOCKED && s >= 0) {
			if (!ngtcp2_conn_get_max_data_left(c->q))
				c->wants_out = false;
			else
				c->active[s / 64] &= ~((uint64_t)1 << s % 64);
			continue;
		}
		return n;
	}
}

static bool flush(struct gw_quic_conn *c, const ngtcp2_path *path, size_t len, size_t segment, uint8_t ecn)
{
	struct gw_quic_end *e = c->end;
	struct gw_quic_out out = {
	    .remote = quic_addr(&path->remote), .data = e->batch, .len = len, .segment = segment, .ecn = ecn};

	if (!len)
		return true;
	e->c.tx_datagrams += (len + segment - 1) / segment;
	e->full = !e->ops->output(e->ctx, &out);
	return !e->full;
}

/* Sends batches of datagrams of one size until congestion control, pacing or the socket says no. */
static ngtcp2_ssize batches_send(struct gw_quic_conn *c, rwy_time now)
{
	size_t quantum = ngtcp2_conn_get_send_quantum(c->q), size = c->end->cfg.payload, sum = 0;
	size_t at = 0, segment = 0, segments = 0;
	ngtcp2_path_storage to, ps;
	ngtcp2_ssize n = 0;
	uint8_t ecn = 0;

	quantum = quantum < size ? size : quantum;
	ngtcp2_path_storage_zero(&to);
	while (sum < quantum && !c->end->full) {
		ngtcp2_pkt_info pi = {0};

		ngtcp2_path_storage_zero(&ps);
		n = datagram_write(c, c->end->batch + at, size, &ps.path, &pi, now);
		if (n <= 0)
			break;
		sum += (size_t)n;
		/* It begins a new batch: other address, other mark, or longer than the others. */
		if (at && (!ngtcp2_path_eq(&ps.path, &to.path) || pi.ecn != ecn || (size_t)n > segment)) {
			uint8_t *b = c->end->batch;

			if (!flush(c, &to.path, at, segment, ecn))
				break; /* this one is lost with them */
			memmove(b, b + at, (size_t)n);
			at = 0;
		}
		if (!at) {
			ngtcp2_path_copy(&to.path, &ps.path);
			segment = (size_t)n;
			segments = 0;
			ecn = pi.ecn;
		}
		at += (size_t)n;
		if ((size_t)n < segment || ++segments == QUIC_SEGMENTS || at + size > QUIC_BATCH) {
			(void)flush(c, &to.path, at, segment, ecn);
			at = 0;
		}
	}
	if (!c->end->full)
		(void)flush(c, &to.path, at, segment, ecn);
	ngtcp2_conn_update_pkt_tx_time(c->q, now);
	return n;
}

void quic_conn_write(struct gw_quic_conn *c, rwy_time now)
{
	ngtcp2_ssize n = 0;
	int rc = 0;

	if (c->state == QUIC_DEAD)
		return;
	c->now = now;
	c->wants_out = true;
	if (ngtcp2_conn_get_expiry(c->q) <= now)
		rc = ngtcp2_conn_handle_expiry(c->q, now);
	if (rc == NGTCP2_ERR_IDLE_CLOSE) {
		dead(c, "the peer is silent");
		return;
	}
	if (rc == NGTCP2_ERR_HANDSHAKE_TIMEOUT) {
		dead(c, "the handshake was not finished in time");
		return;
	}
	if (!rc && !c->end->full) {
		n = batches_send(c, now);
		rc = n < 0 ? (int)n : 0;
	}
	if (rc == NGTCP2_ERR_CRYPTO)
		alert_say(c);
	if (rc)
		end_by_error(c, rc, now);
}

rwy_time quic_conn_next(const struct gw_quic_conn *c)
{
	ngtcp2_tstamp at = c->state == QUIC_DEAD ? 0 : ngtcp2_conn_get_expiry(c->q);

	return at == UINT64_MAX ? RWY_NEVER : at;
}
