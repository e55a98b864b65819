/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as ngtcp2 has them, and which connection a connection id belongs to. */
#include <gnutls/crypto.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/carrier/quic_impl.h"

void quic_sockaddr(ngtcp2_sockaddr_union *out, ngtcp2_addr *a, const struct gw_quic_addr *from)
{
	memset(out, 0, sizeof(*out));
	if (rwy_ip_is4(&from->ip)) {
		out->in.sin_family = AF_INET;
		out->in.sin_port = htons(from->port);
		memcpy(&out->in.sin_addr, from->ip.b + 12, 4);
		a->addrlen = sizeof(out->in);
	} else {
		out->in6.sin6_family = AF_INET6;
		out->in6.sin6_port = htons(from->port);
		memcpy(&out->in6.sin6_addr, from->ip.b, 16);
		a->addrlen = sizeof(out->in6);
	}
	a->addr = &out->sa;
}

struct gw_quic_addr quic_addr(const ngtcp2_addr *a)
{
	struct gw_quic_addr out = {0};

	if (a->addr->sa_family == AF_INET) {
		const ngtcp2_sockaddr_in *v4 = (const ngtcp2_sockaddr_in *)a->addr;

		out.ip = rwy_ip_from4((const uint8_t *)&v4->sin_addr);
		out.port = ntohs(v4->sin_port);
	} else {
		const ngtcp2_sockaddr_in6 *v6 = (const ngtcp2_sockaddr_in6 *)a->addr;

		memcpy(out.ip.b, &v6->sin6_addr, 16);
		out.port = ntohs(v6->sin6_port);
	}
	return out;
}

void quic_random(void *p, size_t n)
{
	if (gnutls_rnd(GNUTLS_RND_RANDOM, p, n) < 0)
		abort(); /* without random numbers nothing here is safe */
}

/* --- connection ids --------------------------------------------------------------------------- */
void quic_cid_new(ngtcp2_cid *out)
{
	uint8_t b[QUIC_CID_LEN];

	quic_random(b, sizeof(b));
	ngtcp2_cid_init(out, b, sizeof(b));
}

/* Peers choose some ids (those of their first packets); they do not know the key. */
static unsigned slot(const struct gw_quic_end *e, const uint8_t *p, size_t n)
{
	uint64_t h = e->cid_key;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x9e3779b97f4a7c15u;
	return (unsigned)(h >> 40) % QUIC_CID_SLOTS;
}

int quic_cid_add(struct gw_quic_end *e, const ngtcp2_cid *cid, struct gw_quic_conn *c)
{
	struct quic_cid *x = malloc(sizeof(*x)), **at = &e->cid[slot(e, cid->data, cid->datalen)];

	if (!x)
		return RWY_ENOMEM;
	x->cid = *cid;
	x->conn = c;
	x->next = *at;
	*at = x;
	return 0;
}

static void unlink_one(struct quic_cid **at)
{
	struct quic_cid *x = *at;

	*at = x->next;
	free(x);
}

void quic_cid_remove(struct gw_quic_end *e, const ngtcp2_cid *cid)
{
	struct quic_cid **at = &e->cid[slot(e, cid->data, cid->datalen)];

	while (*at && !ngtcp2_cid_eq(&(*at)->cid, cid))
		at = &(*at)->next;
	if (*at)
		unlink_one(at);
}

void quic_cid_remove_all(struct gw_quic_end *e, const struct gw_quic_conn *c)
{
	for (unsigned i = 0; i < QUIC_CID_SLOTS; i++)
		for (struct quic_cid **at = &e->cid[i]; *at;)
			if ((*at)->conn == c)
				unlink_one(at);
			else
				at = &(*at)->next;
}

struct gw_quic_conn *quic_cid_find(const struct gw_quic_end *e, const uint8_t *p, size_t n)
{
	const struct quic_cid *x = e->cid[slot(e, p, n)];

	while (x && (x->cid.datalen != n || memcmp(x->cid.data, p, n) != 0))
		x = x->next;
	return x ? x->conn : NULL;
}
