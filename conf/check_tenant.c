/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules over tenants. tenant/tenant.h knows which tenants may exist together: a set is built here
 * once, and its verdict becomes a message at the value that should change. This file adds what the
 * set does not see: conflicts with the plain LAN and with the gateway itself.
 */
#include "conf/schema.h"

#define TEXT 64

struct ctx {
	const struct conf *c;
	const struct conf_tenant *t;
	unsigned n;
	const struct conf_node *map; /* the node of the first tenant */
	struct conf_error *err;
};

static const struct conf_node *map_of(const struct ctx *x, unsigned idx)
{
	const struct conf_node *n = x->map;

	while (n && idx--)
		n = n->next;
	return n;
}

/* The node of a value, or of an entry of a list. If the key is not in the text: the tenant's. */
static const struct conf_node *where(const struct ctx *x, unsigned idx, const char *key, int item)
{
	const struct conf_node *map = map_of(x, idx), *n = conf_node_get(map, key);

	if (n && n->kind == CONF_SEQ && item >= 0)
		n = conf_node_at(n, (unsigned)item);
	return n ? n : map;
}

/* The node of a key within an entry of a list of groups. */
static const struct conf_node *where_in(
    const struct ctx *x, unsigned idx, const char *list, int item, const char *key)
{
	const struct conf_node *entry = where(x, idx, list, item), *n = conf_node_get(entry, key);

	return n ? n : entry;
}

static const char *prefix_text(const struct prefix *p, char *out, size_t size)
{
	if (p->len)
		conf_print_prefix(&(struct conf_prefix){p->addr, p->len}, out, size);
	else
		snprintf(out, size, "any");
	return out;
}

/* --- faults within one tenant ----------------------------------------------------------------- */

static int fail_prefix_twice(const struct ctx *x, unsigned i, int item)
{
	char text[TEXT];

	prefix_text(&x->t[i].cfg.prefix[item].p, text, sizeof(text));
	return conf_fail_at(x->err, where_in(x, i, "prefixes", item, "prefix"),
	    "expected each prefix once, found `%s` again", text);
}

static int fail_place(const struct ctx *x, unsigned i, int item)
{
	return conf_fail_at(x->err, where_in(x, i, "prefixes", item, "at"),
	    "expected `vtep` or a tunnel's name for `at` of a tenant without `vlan`, found `vlan`");
}

static int fail_vtep(const struct ctx *x, unsigned i, int item)
{
	char text[TEXT];

	conf_print_ip(&x->t[i].cfg.vtep[item], text, sizeof(text));
	return conf_fail_at(
	    x->err, where(x, i, "vteps", item), "expected each VTEP once, found `%s` again", text);
}

/* The place of an address of the tenant by longest match; TENANT_NOWHERE: none. */
static uint8_t side_of(const struct tenant_cfg *t, const struct rwy_ip *a)
{
	const struct tenant_prefix *best = NULL;

	for (unsigned k = 0; k < t->prefixes; k++)
		if (prefix_has(&t->prefix[k].p, a) && (!best || t->prefix[k].p.len > best->p.len))
			best = &t->prefix[k];
	return best ? best->at.side : TENANT_NOWHERE;
}

static int fail_host(const struct ctx *x, unsigned i, int item)
{
	static const struct rwy_ip none;
	const struct tenant_cfg *t = &x->t[i].cfg;
	const struct tenant_host *h = &t->host[item];
	const bool vtep = !rwy_ip_eq(&h->vtep, &none);
	char text[TEXT];

	conf_print_ip(&h->addr, text, sizeof(text));
	for (int j = 0; j < item; j++)
		if (rwy_ip_eq(&t->host[j].addr, &h->addr))
			return conf_fail_at(x->err, where_in(x, i, "hosts", item, "address"),
			    "expected each host once, found `%s` again", text);
	if (side_of(t, &h->addr) != (vtep ? TENANT_VTEP : TENANT_LAN))
		return conf_fail_at(x->err, where_in(x, i, "hosts", item, "address"),
		    "expected an address in a prefix at `%s` for a host %s `vtep`, found `%s`",
		    vtep ? "vtep" : "vlan", vtep ? "with" : "without", text);
	conf_print_ip(&h->vtep, text, sizeof(text));
	return conf_fail_at(x->err, where_in(x, i, "hosts", item, "vtep"),
	    "expected one of the tenant's `vteps`, found `%s`", text);
}

static int fail_gateway(const struct ctx *x, unsigned i, int item)
{
	const struct conf_node *list = conf_node_get(map_of(x, i), "gateway_addresses"),
	                       *n = list ? list->child : NULL;
	char text[TEXT];

	if (item < 0)
		return conf_fail_at(x->err, where(x, i, "gateway_mac", -1),
		    "expected a station's MAC address for `gateway_mac`");
	conf_print_ip(&x->t[i].cfg.gw_ip[item], text, sizeof(text));
	for (; n; n = n->next) {
		struct rwy_ip ip;

		if (n->text && conf_scan_ip(n->text, &ip) && rwy_ip_eq(&ip, &x->t[i].cfg.gw_ip[item]))
			break;
	}
	return conf_fail_at(x->err, n ? n : where(x, i, "prefixes", -1),
	    "expected gateway_addresses in prefixes that are here (`vtep`, `vlan`), found `%s`", text);
}

static int fail_rule(const struct ctx *x, unsigned i, int item, enum acl_error why)
{
	const char *key = why == ACL_E_SRC       ? "source"
	                  : why == ACL_E_PORTS   ? "source_ports"
	                  : why == ACL_E_CLASSES ? "operations"
	                                         : "destination";

	if (why == ACL_E_RULES)
		return conf_fail_at(
		    x->err, where(x, i, "acl", -1), "expected at most %u rules in `acl`", ACL_RULES_MAX);
	return conf_fail_at(x->err, where_in(x, i, "acl", item, key),
	    "expected a rule that packets can match: %s",
	    why == ACL_E_FAMILY ? "`source` and `destination` are of different families"
	                        : acl_error_text(why));
}

static int fail_outside(const struct ctx *x, unsigned i, int item)
{
	const struct tenant_cfg *t = &x->t[i].cfg;
	const struct acl_rule *r = &t->rule[item];
	bool source = r->src.len != 0;
	char text[TEXT];

	for (unsigned k = 0; k < t->prefixes && source; k++)
		source = !prefix_meets(&t->prefix[k].p, &r->src);
	prefix_text(source ? &r->src : &r->dst, text, sizeof(text));
	return conf_fail_at(x->err, where_in(x, i, "acl", item, source ? "source" : "destination"),
	    "expected a prefix that meets the tenant's own, found `%s`", text);
}

static int fail_limit(const struct ctx *x, unsigned i)
{
	char want[TEXT], found[TEXT];

	conf_print_value(CONF_T_RATE, x->t[i].cfg.guarantee_Bps * 8, want, sizeof(want));
	conf_print_value(CONF_T_RATE, x->t[i].cfg.limit_Bps * 8, found, sizeof(found));
	return conf_fail_at(x->err, where(x, i, "limit", -1),
	    "expected at least `guarantee`, %s, for `limit`, found `%s`", want, found);
}

/* --- faults between tenants ------------------------------------------------------------------- */

static int fail_exists(const struct ctx *x, unsigned i)
{
	unsigned j = 0;

	while (strcmp(x->t[j].cfg.name, x->t[i].cfg.name) != 0)
		j++;
	return conf_fail_at(x->err, where(x, i, "name", -1),
	    "expected a name of its own, found `%s`, which is tenant %u's too (line %u)", x->t[i].cfg.name,
	    j + 1, x->t[j].line);
}

static int fail_share(const struct ctx *x, unsigned i)
{
	uint64_t sum = 0;
	char found[TEXT];

	for (unsigned j = 0; j <= i; j++)
		sum += x->t[j].cfg.memory_ppm;
	conf_print_value(CONF_T_PERCENT, sum, found, sizeof(found));
	return conf_fail_at(x->err, where(x, i, "memory_percent", -1),
	    "expected at most 100 for `memory_percent` of all tenants together, found %s up to here", found);
}

static bool has_tunnel(const struct tenant_cfg *t, unsigned tunnel)
{
	for (unsigned k = 0; k < t->prefixes; k++)
		if (t->prefix[k].at.side == TENANT_TUNNEL && t->prefix[k].at.tunnel == tunnel)
			return true;
	return false;
}

static int fail_guarantee(const struct ctx *x, unsigned i, unsigned tunnel)
{
	const struct conf_tunnel *u = &x->c->tunnel[tunnel];
	char want[TEXT], found[TEXT];
	unsigned __int128 sum = 0;

	for (unsigned j = 0; j <= i; j++)
		if (has_tunnel(&x->t[j].cfg, tunnel))
			sum += x->t[j].cfg.guarantee_Bps;
	conf_print_value(CONF_T_RATE, u->rate_Bps * 8, want, sizeof(want));
	conf_print_value(CONF_T_RATE, (uint64_t)sum * 8, found, sizeof(found));
	return conf_fail_at(x->err, where(x, i, "guarantee", -1),
	    "expected guarantees of at most %s in all on tunnel `%s`, found %s up to here", want, u->name,
	    found);
}

static int fail_number_twice(
    const struct ctx *x, unsigned i, const char *key, unsigned number, const char *who)
{
	return conf_fail_at(x->err, where(x, i, key, -1),
	    "expected a %s of its own, found `%u`, which is tenant `%s`'s too",
	    key[1] == 'n' ? "VNI" : "VLAN", number, who);
}

static int fail_tenant(const struct ctx *x, const struct tenant_err *e, unsigned i)
{
	const struct tenant_cfg *t = &x->t[i].cfg;
	char text[200];

	switch (e->why) {
	case TENANT_E_EXISTS:
		return fail_exists(x, i);
	case TENANT_E_VNI_TWICE:
		return fail_number_twice(x, i, "vni", t->vni, e->other);
	case TENANT_E_VLAN_TWICE:
		return fail_number_twice(x, i, "vlan", t->vlan, e->other);
	case TENANT_E_PREFIX_TWICE:
		return fail_prefix_twice(x, i, e->item);
	case TENANT_E_PLACE:
		return fail_place(x, i, e->item);
	case TENANT_E_VTEP:
		return fail_vtep(x, i, e->item);
	case TENANT_E_HOST:
		return fail_host(x, i, e->item);
	case TENANT_E_GATEWAY:
		return fail_gateway(x, i, e->item);
	case TENANT_E_RULE:
		return fail_rule(x, i, e->item, e->rule_why);
	case TENANT_E_RULE_OUTSIDE:
		return fail_outside(x, i, e->item);
	case TENANT_E_RATE:
		return fail_limit(x, i);
	case TENANT_E_SHARE:
		return fail_share(x, i);
	case TENANT_E_GUARANTEE:
		return fail_guarantee(x, i, (unsigned)e->item);
	case TENANT_E_MEMORY:
		return conf_fail(x->err, 0, 0, "out of memory");
	/* types and ranges of the keys exclude these */
	case TENANT_E_NONE:
	case TENANT_E_BUSY:
	case TENANT_E_COUNT:
	case TENANT_E_NAME:
	case TENANT_E_UNKNOWN:
	case TENANT_E_NUMBER:
	case TENANT_E_VNI:
	case TENANT_E_VLAN:
	case TENANT_E_PREFIXES:
	case TENANT_E_PREFIX:
	case TENANT_E_VTEPS:
	case TENANT_E_HOSTS:
	case TENANT_E_ACK_MODE:
	case TENANT_E_WEIGHT:
	case TENANT_E_PRIORITY:
	case TENANT_E_DSCP:
	case TENANT_E_PCP:
	case TENANT_ERROR_COUNT:
		break;
	}
	return conf_fail_at(x->err, map_of(x, i), "%s", tenant_err_text(e, text, sizeof(text)));
}

/* --- the plain LAN and the gateway ------------------------------------------------------------ */

static int check_vlan(const struct ctx *x, unsigned i)
{
	for (unsigned p = 0; p < x->c->ports; p++)
		if (x->t[i].cfg.vlan && x->c->port[p].role == CONF_ROLE_LAN &&
		    x->c->port[p].vlan == x->t[i].cfg.vlan)
			return conf_fail_at(x->err, where(x, i, "vlan", -1),
			    "expected a VLAN of its own, found `%u`, which is LAN port `%s`'s",
			    x->t[i].cfg.vlan, x->c->port[p].name);
	return 0;
}

/* No host is behind the tunnel of a pair. */
static int check_pair(const struct ctx *x, unsigned i)
{
	const int pair = conf_standby(x->c);
	const struct tenant_cfg *t = &x->t[i].cfg;

	for (unsigned k = 0; pair >= 0 && k < t->prefixes; k++)
		if (t->prefix[k].at.side == TENANT_TUNNEL && t->prefix[k].at.tunnel == pair)
			return conf_fail_at(x->err, where(x, i, "prefixes", (int)k),
			    "expected another tunnel than `%s`, which leads to the other gateway of the pair",
			    x->c->tunnel[pair].name);
	return 0;
}

static int check_vteps(const struct ctx *x, unsigned i)
{
	const struct tenant_cfg *t = &x->t[i].cfg;
	char text[TEXT];

	for (unsigned v = 0; v < t->vteps; v++)
		for (unsigned p = 0; p < x->c->ports; p++)
			for (unsigned a = 0; a < x->c->port[p].addrs; a++) {
				if (!rwy_ip_eq(&t->vtep[v], &x->c->port[p].addr[a].addr))
					continue;
				conf_print_ip(&t->vtep[v], text, sizeof(text));
				return conf_fail_at(x->err, where(x, i, "vteps", (int)v),
				    "expected a host's VTEP, found `%s`, which is the gateway's own", text);
			}
	return 0;
}

/* --- the set --------------------------------------------------------------------------------- */

static int db_build(const struct ctx *x, struct tenant_txn *txn)
{
	const struct tenant_set *set;
	struct tenant_err e = {0};
	unsigned i = 0;

	for (; i < x->n; i++) {
		int rc = tenant_txn_add(txn, &x->t[i].cfg, &e);

		if (rc)
			break;
	}
	if (i == x->n && !tenant_txn_commit(txn, &set, &e))
		return 0;
	if (i == x->n) /* the conflict is between tenants: find the one at fault by its name */
		for (i = 0; i < x->n - 1 && strcmp(x->t[i].cfg.name, e.name) != 0; i++)
			;
	tenant_txn_abort(txn);
	return fail_tenant(x, &e, i);
}

int conf_check_tenants(const struct conf *c, const struct conf_tenant *t, unsigned n,
    const struct conf_node *map, struct conf_error *err)
{
	const struct ctx x = {c, t, n, map, err};
	struct tenant_limits lim = {.tenants = n, .tunnels = c->tunnels};
	struct tenant_txn *txn = NULL;
	struct tenant_db *db;
	int rc = 0;

	if (c->relay.addrs)
		return conf_fail_at(err, map, "expected no tenants beside `relay`");
	for (unsigned i = 0; i < n && !rc; i++) {
		rc = check_vlan(&x, i);
		rc = rc ? rc : check_vteps(&x, i);
		rc = rc ? rc : check_pair(&x, i);
		rc = rc ? rc : conf_check_tenant_connections(c, &t[i], map_of(&x, i), err);
	}
	if (rc)
		return rc;
	for (unsigned i = 0; i < c->tunnels; i++)
		lim.capacity_Bps[i] = c->tunnel[i].rate_Bps;
	rc = tenant_db_new(&db, &lim);
	if (rc)
		return conf_fail(err, 0, 0, "out of memory");
	rc = tenant_txn_begin(&txn, db) ? conf_fail(err, 0, 0, "out of memory") : db_build(&x, txn);
	tenant_db_free(db);
	return rc;
}
