/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over certificates, and over what tunnels with keys and with other carriers need. */
#include "conf/schema.h"

const char *conf_tunnel_peer_name(const struct conf_tunnel *t)
{
	return *t->peer_name ? t->peer_name : t->peer;
}

static int check_files(const struct conf *c, const struct conf_node *g, struct conf_error *err)
{
	const struct {
		const char *key, *value;
	} need[] = {{"certificate", c->keys.certificate}, {"key", c->keys.key}, {"ca", c->keys.ca}};
	bool any = *c->keys.crl;

	for (unsigned i = 0; i < 3; i++)
		any |= *need[i].value != 0;
	for (unsigned i = 0; any && i < 3; i++)
		if (!*need[i].value)
			return conf_fail_at(err, g,
			    "expected all of `certificate`, `key` and `ca`, or none, found no `%s`",
			    need[i].key);
	return 0;
}

int conf_check_security(
    const struct conf *c, const struct conf_tunnel *t, const struct conf_node *n, struct conf_error *err)
{
	const struct conf_node *port = conf_node_get(n, "keys_port"), *s = conf_node_get(n, "security");

	if (t->security == CONF_SEC_NONE)
		return 0;
	if (!*c->keys.certificate)
		return conf_fail_at(err, s ? s : n,
		    "expected `keys.certificate`, `keys.key` and `keys.ca` for the keys of tunnel `%s`, "
		    "found "
		    "none; for a lab without them: `security: none` (docs/security.md)",
		    t->name);
	if (!*conf_tunnel_peer_name(t))
		return conf_fail_at(err, s ? s : n,
		    "expected `peer_name` of tunnel `%s`: the name in the peer's certificate, found nothing",
		    t->name);
	if (t->tcp_port == t->keys_port)
		return conf_fail_at(err, port ? port : n,
		    "expected a `keys_port` other than `tcp_port`, found `%u` for both", t->keys_port);
	return 0;
}

/* Carrier quic needs a port, certificates and the peer's name. `key` of the tunnel asks for it. */
static int check_quic_for(const struct conf *c, const struct conf_tunnel *t, const struct conf_node *via,
    const char *key, struct conf_error *err)
{
	if (!t->quic_port)
		return conf_fail_at(err, via, "expected a `quic_port` with `%s: quic`, found `0`", key);
	if (!*c->keys.certificate)
		return conf_fail_at(
		    err, via, "expected `keys.certificate`, `keys.key` and `keys.ca` with `%s: quic`", key);
	if (!*conf_tunnel_peer_name(t))
		return conf_fail_at(err, via,
		    "expected `peer_name`, the name in the peer's certificate, with `%s: quic`", key);
	return 0;
}

/* The carrier that one of the keys `carrier` and `detour` asks for. */
static int check_wish(const struct conf *c, const struct conf_tunnel *t, enum conf_carrier by,
    const char *key, const struct conf_node *n, struct conf_error *err)
{
	const struct conf_node *via = conf_node_get(n, key);

	via = via ? via : n;
	switch (by) {
	case CONF_CARRIER_NATIVE:
		return 0;
	case CONF_CARRIER_TCP:
		return t->tcp_port
		           ? 0
		           : conf_fail_at(err, via, "expected a `tcp_port` with `%s: tcp`, found `0`", key);
	case CONF_CARRIER_QUIC:
		return check_quic_for(c, t, via, key, err);
	case CONF_CARRIER_RDMA:
		return t->rdma_port ? 0
		                    : conf_fail_at(err, via,
		                          "expected an `rdma_port` with `%s: rdma`, found `0`", key);
	}
	rwy_unreachable();
}

/* The address of its TCP and QUIC connections. */
static const struct rwy_ip *streams_local(const struct conf_tunnel *t)
{
	static const struct rwy_ip none;

	return rwy_ip_eq(&t->tcp_local, &none) ? &t->local : &t->tcp_local;
}

/* Whether the path's datagrams come to this address and port: a worker takes what comes there. */
static bool hears(const struct conf *c, const struct conf_path *p, const struct rwy_ip *local, uint16_t port)
{
	return rwy_ip_eq(&p->local, local) && port >= p->udp_port && port < p->udp_port + c->workers;
}

/* QUIC's datagrams must come to the kernel, not to a path of this tunnel or of another one. */
static int check_quic_port(
    const struct conf *c, const struct conf_tunnel *t, const struct conf_node *n, struct conf_error *err)
{
	const struct conf_node *port = conf_node_get(n, "quic_port");

	if (!*conf_tunnel_peer_name(t) || !t->quic_port)
		return 0;
	for (unsigned j = 0; j < c->tunnels; j++)
		for (unsigned k = 0; *c->tunnel[j].name && k <= c->tunnel[j].paths; k++) {
			const struct conf_path p = conf_tunnel_path(&c->tunnel[j], k);

			if (hears(c, &p, streams_local(t), t->quic_port))
				return conf_fail_at(err, port ? port : n,
				    "expected a `quic_port` other than the native UDP ports %u to %u of "
				    "tunnel `%s`, found `%u`",
				    p.udp_port, p.udp_port + c->workers - 1u, c->tunnel[j].name,
				    t->quic_port);
		}
	return 0;
}

int conf_check_carriers(
    const struct conf *c, const struct conf_tunnel *t, const struct conf_node *n, struct conf_error *err)
{
	int rc = check_quic_port(c, t, n, err);

	rc = rc ? rc : check_wish(c, t, t->carrier, "carrier", n, err);
	return rc ? rc : check_wish(c, t, t->detour, "detour", n, err);
}

int conf_check_keys(const struct conf *c, const struct conf_node *root, struct conf_error *err)
{
	return check_files(c, conf_node_get(root, "keys"), err);
}
