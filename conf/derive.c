/* SPDX-License-Identifier: Apache-2.0 */
/* Values that follow from other keys: the port of a tunnel, and the keys that a tenant omits. */
#include <arpa/inet.h>

#include "conf/schema.h"

void conf_resolve_ports(struct conf *c)
{
	for (unsigned i = 0; i < c->tunnels; i++)
		for (unsigned j = 0; j < c->ports; j++) {
			struct conf_tunnel *t = &c->tunnel[i];

			if (!strcmp(t->port, c->port[j].name))
				t->port_idx = j;
			for (unsigned k = 0; k < t->paths; k++)
				if (!strcmp(t->path[k].port, c->port[j].name))
					t->path[k].port_idx = j;
		}
}

void conf_finish_keys(struct conf *c)
{
	struct conf_tunnel_keys *k = &c->keys;

	if (*k->certificate || *k->key || *k->ca)
		return;
	memcpy(k->certificate, c->controller.certificate, sizeof(k->certificate));
	memcpy(k->key, c->controller.key, sizeof(k->key));
	memcpy(k->ca, c->controller.ca, sizeof(k->ca));
}

/* A cable between two gateways loses nothing, and no other traffic is on it. */
void conf_finish_standby(struct conf *c, const struct conf_tree *tree)
{
	static const char fixed[] = "fixed";

	for (unsigned i = 0; i < c->tunnels; i++) {
		const struct conf_node *n = conf_node_at(conf_node_get(tree->root, "tunnels"), i);
		struct conf_tunnel *t = &c->tunnel[i];

		if (t->standby && !conf_node_get(n, "fec"))
			t->fec = CONF_FEC_OFF;
		if (t->standby && !conf_node_get(n, "congestion_control"))
			memcpy(t->cc, fixed, sizeof(fixed));
	}
}

int conf_standby(const struct conf *c)
{
	for (unsigned i = 0; i < c->tunnels; i++)
		if (*c->tunnel[i].name && c->tunnel[i].standby)
			return (int)i;
	return -1;
}

void conf_member(const struct conf *c, char out[CONF_NAME])
{
	const int t = conf_standby(c);
	char text[INET6_ADDRSTRLEN];
	const struct rwy_ip *a;
	const char *end;

	memset(out, 0, CONF_NAME);
	if (t < 0)
		return;
	if (*c->controller.member) {
		memcpy(out, c->controller.member, CONF_NAME);
		return;
	}
	a = &c->tunnel[t].local;
	inet_ntop(rwy_ip_is4(a) ? AF_INET : AF_INET6, rwy_ip_is4(a) ? a->b + 12 : a->b, text, sizeof(text));
	for (char *p = text; *p; p++)
		if (*p == ':')
			*p = '-';
	/* The two differ at the end, and a name begins with a letter or a digit. */
	end = strlen(text) < CONF_NAME ? text : text + strlen(text) - (CONF_NAME - 1);
	end += strspn(end, "-");
	snprintf(out, CONF_NAME, "%s", end);
}

static bool any_site(const struct tenant_mode *m, unsigned n)
{
	while (n--)
		if (m[n].mode == TENANT_ACK_SITE)
			return true;
	return false;
}

bool conf_wants_site(const struct conf *c)
{
	bool site = c->ack_mode == CONF_ACK_SITE || any_site(c->mode, c->modes);

	for (unsigned i = 0; i < c->tenants && !site; i++) {
		const struct tenant_cfg *t = &c->tenant[i].cfg;

		site = t->ack_mode == TENANT_ACK_SITE || any_site(t->mode, t->modes);
	}
	return site;
}

/* A locally administered address. It is the same at all gateways of a site, so hosts need not
 * notice which one they use. */
static void mac_of_vni(uint8_t mac[6], uint32_t vni)
{
	const uint8_t m[6] = {0x02, 0x52, 0x57, (uint8_t)(vni >> 16), (uint8_t)(vni >> 8), (uint8_t)vni};

	memcpy(mac, m, 6);
}

bool conf_tenant_own_mac(const struct conf_tenant *t)
{
	uint8_t derived[6];

	mac_of_vni(derived, t->cfg.vni);
	return memcmp(derived, t->cfg.gw_mac, 6) != 0;
}

bool conf_tenant_own_congested(const struct conf_tenant *t)
{
	return memcmp(&t->cfg.dscp_congested, &t->cfg.dscp, sizeof(t->cfg.dscp)) != 0;
}

static const struct conf_key *same_key(const struct conf_group *g, const struct conf_key *k)
{
	for (unsigned i = 0; i < g->count; i++)
		if (g->first[i].size == k->size && !strcmp(conf_key_name(&g->first[i]), conf_key_name(k)))
			return &g->first[i];
	return NULL;
}

const struct conf_key *conf_tenant_inherits(const struct conf_key *k)
{
	const struct conf_group g = conf_group_find("connections");

	return conf_key_in_group(k, "tenants[]") ? same_key(&g, k) : NULL;
}

/* Keys that the tenant omits are as those of the same name in `connections`. */
static void inherit_connections(const struct conf *c, struct conf_tenant *t, const struct conf_node *map)
{
	const struct conf_group to = conf_group_find("tenants[]"), from = conf_group_find("connections");

	for (unsigned i = 0; i < to.count; i++) {
		const struct conf_key *k = &to.first[i], *other = same_key(&from, k);

		if (other && !conf_node_get(map, conf_key_name(k)))
			memcpy((char *)t + k->offset, (const char *)c + other->offset, k->size);
	}
}

void conf_tenant_finish(
    const struct conf *c, struct conf_tenant *t, const struct conf_node *map, const struct conf_tenant *base)
{
	const struct conf_node *n = conf_node_get(map, "dscp_congested");

	if (!base)
		inherit_connections(c, t, map);
	if (!conf_node_get(map, "gateway_mac") && (!base || !conf_tenant_own_mac(base)))
		mac_of_vni(t->cfg.gw_mac, t->cfg.vni);
	if (n ? !strcmp(n->text, "keep") : !base || !conf_tenant_own_congested(base))
		t->cfg.dscp_congested = t->cfg.dscp;
	t->line = map->line;
	t->column = map->column;
}

void conf_finish_tenants(struct conf *c, const struct conf_tree *t)
{
	const struct conf_node *n = conf_node_at(conf_node_get(t->root, "tenants"), 0);

	for (unsigned i = 0; i < c->tenants; i++, n = n->next)
		conf_tenant_finish(c, &c->tenant[i], n, NULL);
}

static uint64_t fnv1a(uint64_t h, const void *p, size_t n)
{
	for (const uint8_t *b = p; n--; b++)
		h = (h ^ *b) * 0x100000001b3u;
	return h;
}

struct conf_path conf_tunnel_path(const struct conf_tunnel *t, unsigned k)
{
	static const struct rwy_ip none;
	struct conf_path own = {.port_idx = t->port_idx,
	    .local = t->local,
	    .remote = t->remote,
	    .udp_port = t->udp_port,
	    .source_port = t->udp_port,
	    .rate_Bps = t->rate_Bps,
	    .use = t->own_path};
	struct conf_path p;

	memcpy(own.port, t->port, sizeof(own.port));
	if (!k)
		return own;
	p = t->path[k - 1];
	if (!*p.port) {
		memcpy(p.port, own.port, sizeof(p.port));
		p.port_idx = own.port_idx;
	}
	p.local = rwy_ip_eq(&p.local, &none) ? own.local : p.local;
	p.remote = rwy_ip_eq(&p.remote, &none) ? own.remote : p.remote;
	p.source_port = p.source_port ? p.source_port : p.udp_port;
	p.rate_Bps = p.rate_Bps ? p.rate_Bps : own.rate_Bps;
	return p;
}

/* The lower address comes first, so that both ends get the same number. */
uint64_t conf_tunnel_id(const struct conf_tunnel *t, unsigned worker)
{
	bool swap = memcmp(t->local.b, t->remote.b, 16) > 0;
	uint32_t port = (uint32_t)t->udp_port + worker;
	uint64_t h = fnv1a(0xcbf29ce484222325u, (swap ? &t->remote : &t->local)->b, 16);

	h = fnv1a(h, (swap ? &t->local : &t->remote)->b, 16);
	return fnv1a(h, &port, sizeof(port));
}
