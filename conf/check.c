/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules over more than one key. Each message points at the value that should change. Types and
 * ranges are checked in fill.c, from schema.c.
 */
#include "conf/schema.h"

#define MBUF_BYTES     4096 /* of a packet buffer: InfiniBand's largest path MTU */
#define IPV6_MTU_MIN   1280 /* RFC 8200 section 5 */
#define TUNNEL_MTU_MIN 576  /* UDP payload that a tunnel needs (wan.h) */
#define UDP4_BYTES     28
#define PREFIXES_ALL   256 /* ENG_PREFIXES_MAX (engine.h); a test holds them equal */

struct ctx {
	const struct conf *c;
	const struct conf_node *root;
	struct conf_error *err;
	unsigned own; /* the number of c's tunnels that are not in the text */
};

/* The node of a value, for its line. If the key is not in the file: its whole entry. */
static const struct conf_node *where(
    const struct ctx *x, const char *groups, unsigned idx, const char *key, unsigned item)
{
	const bool tunnel = !strcmp(groups, "tunnels");
	const struct conf_node *list = conf_node_get(x->root, groups), *entry, *n;

	if (tunnel && (!x->root || idx < x->own))
		return NULL;
	entry = conf_node_at(list, tunnel ? idx - x->own : idx);
	n = conf_node_get(entry, key);

	if (n && n->kind == CONF_SEQ)
		return conf_node_at(n, item);
	return n ? n : entry;
}

/* "iface=" and what follows it; NULL: a device without it. */
static const char *device_iface(const char *device)
{
	const char *at = strstr(device, ",iface=");

	return at ? at + 1 : NULL;
}

static bool same_word(const char *a, const char *b)
{
	const size_t n = strcspn(a, ",");

	return n == strcspn(b, ",") && !strncmp(a, b, n);
}

/* Two ports on it would both get its packets: the same device, virtual device or interface. */
static bool same_device(const char *a, const char *b)
{
	const char *ia = device_iface(a), *ib = device_iface(b);

	/* Arguments choose a part of a PCI device, whose domain may be left out. */
	if (!strncmp(a, "0000:", 5))
		a += 5;
	if (!strncmp(b, "0000:", 5))
		b += 5;
	if (!strcmp(a, b) || (ia && ib && same_word(ia, ib)))
		return true;
	return !strncmp(a, "net_", 4) && same_word(a, b);
}

static int check_port_names(const struct ctx *x, unsigned i)
{
	const struct conf_port *p = &x->c->port[i];

	for (unsigned j = 0; j < i; j++) {
		if (!strcmp(p->name, x->c->port[j].name))
			return conf_fail_at(x->err, where(x, "ports", i, "name", 0),
			    "expected a name of its own, found `%s`, which is port %u's too", p->name, j + 1);
		if (same_device(p->device, x->c->port[j].device))
			return conf_fail_at(x->err, where(x, "ports", i, "device", 0),
			    "expected a device of its own, found the device of port `%s`",
			    x->c->port[j].name);
	}
	return 0;
}

/* An address is used once, and two ports do not share a subnet, since routing would be
 * ambiguous. */
static int check_port_addrs(const struct ctx *x, unsigned i)
{
	const struct conf_port *p = &x->c->port[i];
	char text[64];

	for (unsigned a = 0; a < p->addrs; a++) {
		const struct conf_node *n = where(x, "ports", i, "addresses", a);

		conf_print_prefix(&p->addr[a], text, sizeof(text));
		if (!rwy_ip_is4(&p->addr[a].addr) && p->mtu < IPV6_MTU_MIN)
			return conf_fail_at(x->err, n,
			    "expected IPv4 only on a port with mtu %u (IPv6 needs %u), found `%s`", p->mtu,
			    IPV6_MTU_MIN, text);
		for (unsigned b = 0; b < a; b++)
			if (rwy_ip_eq(&p->addr[a].addr, &p->addr[b].addr))
				return conf_fail_at(
				    x->err, n, "expected each address once, found `%s` again", text);
		for (unsigned j = 0; j < i; j++)
			for (unsigned b = 0; b < x->c->port[j].addrs; b++)
				if (conf_prefix_overlap(&p->addr[a], &x->c->port[j].addr[b]))
					return conf_fail_at(x->err, n,
					    "expected a subnet of its own, found `%s`, which overlaps port "
					    "`%s`",
					    text, x->c->port[j].name);
	}
	return 0;
}

static int check_port_offload(const struct ctx *x, unsigned i)
{
	const struct conf_port *p = &x->c->port[i];

	if (p->offload != CONF_OFFLOAD_OFF && p->role != CONF_ROLE_LAN)
		return conf_fail_at(x->err, where(x, "ports", i, "offload", 0),
		    "expected `off` for `offload` of a port of role `wan`: tenants' hosts are on LAN ports");
	if (p->offload == CONF_OFFLOAD_TC && !p->offload_device[0])
		return conf_fail_at(x->err, where(x, "ports", i, "offload", 0),
		    "expected `offload_device` beside `offload: tc`: the kernel's interface to put rules on");
	if (p->offload != CONF_OFFLOAD_TC && p->offload_device[0])
		return conf_fail_at(x->err, where(x, "ports", i, "offload_device", 0),
		    "expected `offload: tc` with `offload_device`, found `%s` without it", p->offload_device);
	return 0;
}

static int check_ports(const struct ctx *x)
{
	bool role[2] = {false, false};

	for (unsigned i = 0; i < x->c->ports; i++) {
		const struct conf_port *p = &x->c->port[i];
		int rc = check_port_names(x, i);

		rc = rc ? rc : check_port_addrs(x, i);
		rc = rc ? rc : check_port_offload(x, i);
		if (rc)
			return rc;
		role[p->role] = true;
		if (p->role == CONF_ROLE_WAN && p->mtu < TUNNEL_MTU_MIN + UDP4_BYTES)
			return conf_fail_at(x->err, where(x, "ports", i, "mtu", 0),
			    "expected at least %u for `mtu` of a port of role `wan` (%u bytes of UDP "
			    "payload), found `%u`",
			    TUNNEL_MTU_MIN + UDP4_BYTES, TUNNEL_MTU_MIN, p->mtu);
	}
	for (unsigned r = 0; r < 2; r++)
		if (!role[r])
			return conf_fail_at(x->err, conf_node_get(x->root, "ports"),
			    "expected at least one port of role `%s`, found none",
			    r == CONF_ROLE_LAN ? "lan" : "wan");
	return 0;
}

/* A tunnel must have destinations, on the plain LAN or of tenants, and a name that no other place
 * has. */
static int check_tunnel_use(const struct ctx *x, unsigned i)
{
	const struct conf_tunnel *t = &x->c->tunnel[i];
	const bool tenants = conf_node_get(x->root, "tenants") != NULL;

	if (!tenants && !t->prefixes && !t->standby && !x->c->controller.urls && x->root)
		return conf_fail_at(x->err, conf_node_at(conf_node_get(x->root, "tunnels"), i),
		    "expected `prefixes`: a list of 1 to %u prefixes such as `10.2.0.0/24`, found nothing",
		    CONF_PREFIXES_MAX);
	if ((tenants || x->own || x->c->tenants) && (!strcmp(t->name, "vtep") || !strcmp(t->name, "vlan")))
		return conf_fail_at(x->err, where(x, "tunnels", i, "name", 0),
		    "expected another name for a tunnel where there are tenants, found `%s`, which means "
		    "that a prefix is here",
		    t->name);
	return 0;
}

static int check_prefix(const struct ctx *x, unsigned i, unsigned k)
{
	const struct conf_prefix *p = &x->c->tunnel[i].prefix[k];
	const struct conf_node *n = where(x, "tunnels", i, "prefixes", k);
	char text[64], other[64];

	conf_print_prefix(p, text, sizeof(text));
	for (unsigned j = 0; j <= i; j++) {
		const struct conf_tunnel *u = &x->c->tunnel[j];

		if (j != i && u->shared && x->c->tunnel[i].shared)
			continue;
		/* tunnels to several gateways of one site share address pairs */
		if (*u->peer && *x->c->tunnel[i].peer && strcmp(u->peer, x->c->tunnel[i].peer) != 0)
			continue;
		for (unsigned m = 0; *u->name && m < (j == i ? k : u->prefixes); m++)
			if (p->len == u->prefix[m].len && rwy_ip_eq(&p->addr, &u->prefix[m].addr))
				return conf_fail_at(x->err, n,
				    "expected each prefix once, found `%s` again (tunnel `%s`)", text,
				    u->name);
	}
	for (unsigned j = 0; j < x->c->ports; j++) {
		const struct conf_port *q = &x->c->port[j];

		for (unsigned a = 0; a < q->addrs && q->role == CONF_ROLE_LAN; a++) {
			conf_print_prefix(&q->addr[a], other, sizeof(other));
			if (conf_prefix_overlap(p, &q->addr[a]))
				return conf_fail_at(x->err, n,
				    "expected destinations behind the peer, found `%s`, which overlaps `%s` "
				    "of LAN port `%s`",
				    text, other, q->name);
		}
	}
	return 0;
}

static int check_tunnels(const struct ctx *x)
{
	unsigned prefixes = 0;

	for (unsigned i = 0; i < x->c->tunnels; i++) {
		const struct conf_tunnel *t = &x->c->tunnel[i];
		int rc = 0;

		if (!*t->name)
			continue;
		for (unsigned j = 0; j < i; j++)
			if (!strcmp(t->name, x->c->tunnel[j].name))
				return conf_fail_at(x->err, where(x, "tunnels", i, "name", 0),
				    "expected a name of its own, found `%s`, which is tunnel %u's too",
				    t->name, j + 1);
		rc = conf_check_paths(x->c, i, where(x, "tunnels", i, "", 0), x->err);
		rc = rc ? rc : check_tunnel_use(x, i);
		rc = rc ? rc : conf_check_security(x->c, t, where(x, "tunnels", i, "", 0), x->err);
		rc = rc ? rc : conf_check_carriers(x->c, t, where(x, "tunnels", i, "", 0), x->err);
		prefixes += t->prefixes;
		if (!rc && prefixes > PREFIXES_ALL)
			return conf_fail_at(x->err, where(x, "tunnels", i, "prefixes", 0),
			    "expected at most %d prefixes in all tunnels, found %u up to here", PREFIXES_ALL,
			    prefixes);
		for (unsigned k = 0; k < t->prefixes && !rc; k++)
			rc = check_prefix(x, i, k);
		if (rc)
			return rc;
	}
	return conf_check_standby(x->c, x->root, x->own, x->err);
}

static int fail_memory(const struct ctx *x, const char *key, uint64_t most, uint64_t is, const char *why)
{
	const struct conf_node *memory = conf_node_get(x->root, "memory"), *n = conf_node_get(memory, key);
	char a[32], b[32];

	conf_print_value(CONF_T_SIZE, most, a, sizeof(a));
	conf_print_value(CONF_T_SIZE, is, b, sizeof(b));
	return conf_fail_at(
	    x->err, n ? n : memory, "expected at most %s for `%s`: %s, found `%s`", a, key, why, b);
}

static int check_memory(const struct ctx *x)
{
	const struct conf *c = x->c;
	const uint64_t hold = (uint64_t)c->buffers * MBUF_BYTES;

	if (c->custody_total > hold)
		return fail_memory(
		    x, "custody_total", hold, c->custody_total, "`buffers` times 4KiB, or more buffers");
	if (c->custody_conn > c->custody_total)
		return fail_memory(
		    x, "custody_per_connection", c->custody_total, c->custody_conn, "`custody_total`");
	if (c->read_cache_conn > c->custody_total)
		return fail_memory(
		    x, "read_cache_per_connection", c->custody_total, c->read_cache_conn, "`custody_total`");
	return 0;
}

static int check_workers(const struct ctx *x)
{
	const struct conf *c = x->c;
	const struct conf_node *n = conf_node_get(conf_node_get(x->root, "connections"), "half_open_max");
	unsigned cpus = 0;

	if (c->half_open_max > c->conns_max)
		return conf_fail_at(x->err, n ? n : conf_node_get(x->root, "connections"),
		    "expected at most `max`, %u, for `half_open_max`, found `%u`", c->conns_max,
		    c->half_open_max);
	if (*c->cores && conf_scan_cpus(c->cores, &cpus) && cpus < c->workers)
		return conf_fail_at(x->err, conf_node_get(conf_node_get(x->root, "eal"), "cores"),
		    "expected a CPU for each of %u workers, found `%s`: %u", c->workers, c->cores, cpus);
	return 0;
}

/* eal.cores and gateway.workers place the threads, and `device` chooses the ports: the EAL's own
 * options must not contradict. */
static int check_eal_args(const struct ctx *x)
{
	static const char *const ours[] = {"-l", "-c", "--lcores", "--vdev"};
	const struct conf_node *list = conf_node_get(conf_node_get(x->root, "eal"), "args");

	for (unsigned i = 0; i < x->c->eal_argc; i++) {
		for (unsigned k = 0; k < sizeof(ours) / sizeof(ours[0]); k++) {
			const size_t n = strlen(ours[k]);

			if (strncmp(x->c->eal_args[i], ours[k], n) != 0 ||
			    (x->c->eal_args[i][n] && x->c->eal_args[i][n] != '='))
				continue;
			return conf_fail_at(x->err, conf_node_at(list, i), "expected no `%s`: %s, found `%s`",
			    ours[k],
			    k == 3 ? "a virtual device is a port's `device`"
			           : "`workers` and `cores` place the threads",
			    ours[k]);
		}
	}
	return 0;
}

static int check_near_source(const struct ctx *x)
{
	const struct conf_node *g = conf_node_get(x->root, "congestion"), *n;
	char a[32], b[32];

	if (!x->c->np_max || x->c->np_min < x->c->np_max)
		return 0;
	n = conf_node_get(g, "near_source_min");
	conf_print_value(CONF_T_SIZE, x->c->np_max, a, sizeof(a));
	conf_print_value(CONF_T_SIZE, x->c->np_min, b, sizeof(b));
	return conf_fail_at(x->err, n ? n : g,
	    "expected less than %s for `near_source_min`: `near_source_max`, found `%s`", a, b);
}

/* A file without tunnels needs a control center that names them. */
static int check_any_tunnel(const struct ctx *x)
{
	if (x->c->tunnels || x->c->controller.urls)
		return 0;
	return conf_fail_at(x->err, conf_node_get(x->root, "tunnels"),
	    "expected `tunnels`: a list of 1 to %u entries, found nothing", CONF_TUNNELS_MAX);
}

/* True for https://host[:port], without path, user or blanks. */
static bool url_ok(const char *url)
{
	const char *at = url + 8, *end;
	uint64_t port;

	if (strncmp(url, "https://", 8) != 0)
		return false;
	if (*at == '[') { /* IPv6 */
		end = at + 1 + strspn(at + 1, "0123456789abcdefABCDEF:");
		if (end == at + 1 || *end++ != ']')
			return false;
	} else {
		end = at + strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");
	}
	if (end == at)
		return false;
	return !*end || (*end == ':' && conf_scan_int(end + 1, &port) && port && port <= UINT16_MAX);
}

static int check_controller(const struct ctx *x)
{
	const struct conf_controller *k = &x->c->controller;
	const struct conf_node *g = conf_node_get(x->root, "controller");
	const struct {
		const char *key, *value, *what;
	} with[] = {{"ca", k->ca, "a PEM file"}, {"certificate", k->certificate, "a PEM file"},
	    {"key", k->key, "a PEM file"}, {"site", k->site, "the site that the gateway is at"}};

	for (unsigned i = 0; i < k->urls; i++) {
		const struct conf_node *n = conf_node_at(conf_node_get(g, "urls"), i);

		if (!url_ok(k->url[i]))
			return conf_fail_at(x->err, n,
			    "expected `https://host` or `https://host:port` in `urls`, found `%s`",
			    k->url[i]);
		for (unsigned j = 0; j < i; j++)
			if (!strcmp(k->url[i], k->url[j]))
				return conf_fail_at(
				    x->err, n, "expected each controller once, found `%s` again", k->url[i]);
	}
	for (unsigned i = 0; k->urls && i < sizeof(with) / sizeof(with[0]); i++)
		if (!*with[i].value)
			return conf_fail_at(x->err, g, "expected `%s` beside `urls`: %s, found nothing",
			    with[i].key, with[i].what);
	return 0;
}

int conf_tunnels_check(struct conf *c, struct conf_error *err)
{
	const struct ctx x = {.c = c, .err = err};
	int rc;

	memset(err, 0, sizeof(*err));
	rc = check_tunnels(&x);
	if (!rc)
		conf_resolve_ports(c);
	return rc;
}

int conf_check_network(const struct conf *c, const struct conf_tree *t, unsigned own, struct conf_error *err)
{
	const struct ctx x = {c, t->root, err, own};
	int rc = check_tunnels(&x);

	if (rc || !c->tenants)
		return rc;
	return conf_check_tenants(
	    c, c->tenant, c->tenants, conf_node_at(conf_node_get(t->root, "tenants"), 0), err);
}

int conf_check(const struct conf *c, const struct conf_tree *t, struct conf_error *err)
{
	const struct ctx x = {.c = c, .root = t->root, .err = err};
	int rc = check_ports(&x);

	rc = rc ? rc : check_controller(&x);
	rc = rc ? rc : check_any_tunnel(&x);
	rc = rc ? rc : check_tunnels(&x);
	rc = rc ? rc : conf_check_siblings(c, t->root, err);
	rc = rc ? rc : conf_check_relay(c, t->root, err);
	rc = rc ? rc : conf_check_keys(c, t->root, err);
	rc = rc ? rc : conf_check_connections(c, t->root, err);
	rc = rc ? rc : check_memory(&x);
	rc = rc ? rc : check_near_source(&x);
	rc = rc ? rc : check_workers(&x);
	rc = rc ? rc : check_eal_args(&x);
	rc = rc ? rc : conf_check_api(c, t->root, err);
	if (rc || !c->tenants)
		return rc;
	return conf_check_tenants(
	    c, c->tenant, c->tenants, conf_node_at(conf_node_get(t->root, "tenants"), 0), err);
}
