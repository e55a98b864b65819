/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over QUIC: its certificates, and what a tunnel needs for it. */
#include "conf/schema.h"

static int check_files(const struct conf *c, const struct conf_node *q, struct conf_error *err)
{
	const struct {
		const char *key, *value;
	} need[] = {{"certificate", c->quic.certificate}, {"key", c->quic.key}, {"ca", c->quic.ca}};
	bool any = *c->quic.crl;

	for (unsigned i = 0; i < 3; i++)
		any |= *need[i].value != 0;
	for (unsigned i = 0; any && i < 3; i++)
		if (!*need[i].value)
			return conf_fail_at(err, q,
			    "expected all of `certificate`, `key` and `ca`, or none, found no `%s`",
			    need[i].key);
	return 0;
}

static int check_tunnel(const struct conf *c, unsigned i, const struct conf_node *n, struct conf_error *err)
{
	const struct conf_tunnel *t = &c->tunnel[i];
	const struct conf_node *port = conf_node_get(n, "quic_port"), *via = conf_node_get(n, "carrier");

	if (*t->peer_name && t->quic_port >= t->udp_port && t->quic_port < t->udp_port + c->workers)
		return conf_fail_at(err, port ? port : n,
		    "expected a `quic_port` other than the native UDP ports %u to %u, found `%u`",
		    t->udp_port, t->udp_port + c->workers - 1u, t->quic_port);
	if (t->carrier != CONF_CARRIER_QUIC)
		return 0;
	if (!t->quic_port)
		return conf_fail_at(err, via, "expected a `quic_port` with `carrier: quic`, found `0`");
	if (!*c->quic.certificate)
		return conf_fail_at(
		    err, via, "expected `quic.certificate`, `quic.key` and `quic.ca` with `carrier: quic`");
	if (!*t->peer_name)
		return conf_fail_at(err, via,
		    "expected `peer_name`, the name in the peer's certificate, with `carrier: quic`");
	return 0;
}

int conf_check_quic(const struct conf *c, const struct conf_node *root, struct conf_error *err)
{
	const struct conf_node *list = conf_node_get(root, "tunnels");
	int rc = check_files(c, conf_node_get(root, "quic"), err);

	for (unsigned i = 0; i < c->tunnels && !rc; i++)
		if (*c->tunnel[i].name)
			rc = check_tunnel(c, i, conf_node_at(list, i), err);
	return rc;
}
