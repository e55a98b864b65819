/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over certificates, and over what tunnels with keys and with QUIC need. */
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

static int check_rdma(const struct conf_tunnel *t, const struct conf_node *n, struct conf_error *err)
{
	const struct conf_node *via = conf_node_get(n, "carrier");

	if (t->carrier == CONF_CARRIER_RDMA && !t->rdma_port)
		return conf_fail_at(
		    err, via ? via : n, "expected an `rdma_port` with `carrier: rdma`, found `0`");
	return 0;
}

static int check_quic(const struct conf *c, unsigned i, const struct conf_node *n, struct conf_error *err)
{
	const struct conf_tunnel *t = &c->tunnel[i];
	const struct conf_node *port = conf_node_get(n, "quic_port"), *via = conf_node_get(n, "carrier");
	const struct conf_node *detour = conf_node_get(n, "detour");

	if (*conf_tunnel_peer_name(t) && t->quic_port >= t->udp_port &&
	    t->quic_port < t->udp_port + c->workers)
		return conf_fail_at(err, port ? port : n,
		    "expected a `quic_port` other than the native UDP ports %u to %u, found `%u`",
		    t->udp_port, t->udp_port + c->workers - 1u, t->quic_port);
	if (t->detour == CONF_CARRIER_TCP && !t->tcp_port)
		return conf_fail_at(
		    err, detour ? detour : n, "expected a `tcp_port` with `detour: tcp`, found `0`");
	if (t->carrier == CONF_CARRIER_QUIC && check_quic_for(c, t, via, "carrier", err))
		return RWY_EINVAL;
	if (t->detour == CONF_CARRIER_QUIC)
		return check_quic_for(c, t, detour, "detour", err);
	return 0;
}

int conf_check_keys(const struct conf *c, const struct conf_node *root, struct conf_error *err)
{
	const struct conf_node *list = conf_node_get(root, "tunnels");
	int rc = check_files(c, conf_node_get(root, "keys"), err);

	for (unsigned i = 0; i < c->tunnels && !rc; i++)
		if (*c->tunnel[i].name)
			rc = check_quic(c, i, conf_node_at(list, i), err);
	for (unsigned i = 0; i < c->tunnels && !rc; i++)
		if (*c->tunnel[i].name)
			rc = check_rdma(&c->tunnel[i], conf_node_at(list, i), err);
	return rc;
}
