/* SPDX-License-Identifier: Apache-2.0 */
/* Translates a controller's document into the gateway's configuration: see document.h. */
#include "gateway/agent/document.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/agent/document_fields.h"

#define WEIGHT_MAX 65535 /* tunnels[].weight */

/* Parses "192.0.2.1:4793" or "[2001:db8::1]:4793". */
static bool addr_port(const char *text, char host[64], unsigned *port)
{
	const char *colon = strrchr(text, ':'), *from = text;
	struct rwy_ip ip;
	size_t n;
	char *end;

	if (!colon || colon[1] < '1' || colon[1] > '9')
		return false;
	*port = (unsigned)strtoul(colon + 1, &end, 10);
	n = (size_t)(colon - text);
	if (*from == '[') {
		if (n < 2 || text[n - 1] != ']')
			return false;
		from++;
		n -= 2;
	} else if (memchr(text, ':', n)) {
		return false;
	}
	if (*end || *port > UINT16_MAX || n >= 64)
		return false;
	snprintf(host, 64, "%.*s", (int)n, from);
	return document_ip(host, &ip);
}

/* --- tunnels --------------------------------------------------------------------------------- */

/* Addresses of both ends' RDMA devices: the tunnel can go by RDMA. */
static int rdma(
    const struct conf *base, const json_t *r, const char *what, json_t *to, struct conf_error *err)
{
	const struct conf_controller *c = &base->controller;
	char local[64], remote[64];
	unsigned port, peer_port;
	const char *a, *b;
	struct rwy_ip ip;
	int rc = document_keys(r, what, "local remote", err);

	rc = rc ? rc : document_text(r, what, "local", &a, err);
	rc = rc ? rc : document_text(r, what, "remote", &b, err);
	if (rc)
		return rc;
	if (!addr_port(a, local, &port) || !document_ip(local, &ip) || !rwy_ip_eq(&ip, &c->rdma_address) ||
	    port != c->rdma_port)
		return document_fail(err,
		    "%s: expected `controller.rdma_address` and its port for `rdma.local`, found `%.60s`",
		    what, a);
	if (!addr_port(b, remote, &peer_port) || peer_port != port)
		return document_fail(err,
		    "%s: expected an address with port %u for `rdma.remote`, found `%.60s`", what, port, b);
	json_object_set_new(to, "rdma_local", json_string(local));
	json_object_set_new(to, "rdma_remote", json_string(remote));
	json_object_set_new(to, "rdma_port", json_integer(port));
	json_object_set_new(to, "rdma_buffers", json_integer(c->rdma_buffers));
	return 0;
}

static int tunnel(const struct conf *base, const json_t *t, json_t *list, struct conf_error *err)
{
	static const char keys[] =
	    "name peer remote local carrier rate_bps dscp weight prefixes | "
	    "congestion_control fec ecn security detour detour_after own_path paths rdma";
	const char *name = json_string_value(json_object_get(t, "name"));
	const char *remote, *local, *carrier, *port, *peer;
	char what[64], host[64], rate[32];
	uint64_t bps, dscp, weight;
	unsigned udp;
	json_t *to, *v;
	int rc;

	snprintf(what, sizeof(what), "tunnel %.31s", name ? name : "without a name");
	rc = document_keys(t, what, keys, err);
	rc = rc ? rc : document_text(t, what, "peer", &peer, err);
	rc = rc ? rc : document_text(t, what, "remote", &remote, err);
	rc = rc ? rc : document_text(t, what, "local", &local, err);
	rc = rc ? rc : document_text(t, what, "carrier", &carrier, err);
	rc = rc ? rc : document_number(t, what, "rate_bps", 1, DOCUMENT_BPS_MAX, &bps, err);
	rc = rc ? rc : document_number(t, what, "dscp", 0, 63, &dscp, err);
	rc = rc ? rc : document_number(t, what, "weight", 0, 1000000, &weight, err);
	if (rc)
		return rc;
	if (!json_is_array(json_object_get(t, "prefixes")))
		return document_fail(err, "%s: expected a list for `prefixes`", what);
	if (!addr_port(remote, host, &udp))
		return document_fail(
		    err, "%s: expected an address with a port for `remote`, found `%.60s`", what, remote);
	port = document_port(base, local);
	if (!port)
		return document_fail(err,
		    "%s: expected an address of a port of role `wan` for `local`, found `%.60s`", what,
		    local);
	if (strlen(peer) >= CONF_NAME)
		return document_fail(err, "%s: expected a name for `peer`", what);
	document_rate(bps, rate);
	to = json_pack("{s:O, s:O, s:s, s:s, s:s, s:i, s:s, s:i, s:i}", "name", json_object_get(t, "name"),
	    "peer", json_object_get(t, "peer"), "port", port, "local", local, "remote", host, "udp_port",
	    (int)udp, "rate", rate, "dscp", (int)dscp, "weight",
	    (int)(weight > WEIGHT_MAX ? WEIGHT_MAX : weight));
	/* without any: the peer is lost for now */
	if (json_array_size(json_object_get(t, "prefixes")))
		json_object_set(to, "prefixes", json_object_get(t, "prefixes"));
	v = json_object_get(t, "security");
	if (v)
		json_object_set(to, "security", v);
	if (strcmp(base->controller.tcp_cc, "auto") != 0)
		json_object_set_new(to, "tcp_congestion_control", json_string(base->controller.tcp_cc));
	if (strcmp(carrier, "native") != 0)
		json_object_set_new(to, "carrier", json_string(carrier));
	v = json_object_get(t, "rdma");
	if (v && (rc = rdma(base, v, what, to, err)) != 0) {
		json_decref(to);
		return rc;
	}
	for (const char *const *k =
	         (const char *const[]){"congestion_control", "fec", "ecn", "detour", "detour_after", NULL};
	     *k; k++)
		if ((v = json_object_get(t, *k)))
			json_object_set(to, *k, v);
	rc = document_paths(base, t, what, to, err);
	if (rc) {
		json_decref(to);
		return rc;
	}
	return json_array_append_new(list, to) ? document_fail(err, "out of memory") : 0;
}

static int network(const struct conf *base, const json_t *doc, json_t **out, struct conf_error *err)
{
	const json_t *from = json_object_get(doc, "tunnels"), *tenants = json_object_get(doc, "tenants");
	json_t *list = json_array();
	size_t i;
	json_t *t;
	int rc = 0;

	if (!json_is_array(from) || !json_is_array(tenants))
		rc = document_fail(err, "expected lists for `tunnels` and `tenants`");
	if (!rc && json_array_size(from) > CONF_TUNNELS_MAX)
		rc = document_fail(
		    err, "expected at most %d tunnels, found %zu", CONF_TUNNELS_MAX, json_array_size(from));
	json_array_foreach((json_t *)(uintptr_t)from, i, t) rc = rc ? rc : tunnel(base, t, list, err);
	if (rc) {
		json_decref(list);
		return rc;
	}
	*out = json_pack("{s:o, s:O}", "tunnels", list, "tenants", tenants);
	return *out ? 0 : document_fail(err, "out of memory");
}

/* --- assignments ----------------------------------------------------------------------------- */

static const struct conf_tunnel *tunnel_named(const struct conf *c, const char *name)
{
	for (unsigned i = 0; i < c->tunnels; i++)
		if (*name && !strcmp(c->tunnel[i].name, name))
			return &c->tunnel[i];
	return NULL;
}

/* The fields that assignments and permits share. */
static int connection(
    struct document_assignment *out, const json_t *a, const char *what, struct conf_error *err)
{
	const char *source, *destination;
	uint64_t vni, v = 0;
	int rc = document_number(a, what, "vni", 0, 0xffffff, &vni, err);

	rc = rc ? rc : document_text(a, what, "source", &source, err);
	rc = rc ? rc : document_text(a, what, "destination", &destination, err);
	if (!rc && json_object_get(a, "source_qpn"))
		rc = document_number(a, what, "source_qpn", 0, 0xffffff, &v, err);
	out->source_qpn = (uint32_t)v;
	v = 0;
	if (!rc && json_object_get(a, "destination_qpn"))
		rc = document_number(a, what, "destination_qpn", 0, 0xffffff, &v, err);
	out->destination_qpn = (uint32_t)v;
	if (rc)
		return rc;
	if (!document_ip(source, &out->source) || !document_ip(destination, &out->destination))
		return document_fail(err, "%s: expected addresses for `source` and `destination`", what);
	out->vni = (uint32_t)vni;
	return 0;
}

/* By enum conf_carrier. */
static const char *const carrier_word[] = {"native", "tcp", "quic", "rdma"};

/* Reads what an assignment asks of its tunnel: a carrier, and a DSCP. The streams of a reliable
 * carrier have the data of all pairs, so none can have a DSCP of its own there. */
static int wishes(struct document_assignment *out, const struct conf_tunnel *t, const json_t *a,
    const char *what, struct conf_error *err)
{
	const char *carrier = carrier_word[t->carrier], *wants = carrier;
	uint64_t dscp = 0;
	int rc = 0;

	out->has_dscp = json_object_get(a, "dscp");
	if (out->has_dscp)
		rc = document_number(a, what, "dscp", 0, WAN_DSCP_MAX, &dscp, err);
	out->dscp = (uint8_t)dscp;
	if (!rc && json_object_get(a, "carrier"))
		rc = document_text(a, what, "carrier", &wants, err);
	if (rc)
		return rc;
	if (strcmp(wants, carrier) != 0)
		return document_fail(
		    err, "%s: expected a tunnel by %.20s; %s goes by %s", what, wants, t->name, carrier);
	if (out->has_dscp && t->carrier != CONF_CARRIER_NATIVE)
		return document_fail(
		    err, "%s: expected a native tunnel for `dscp`; %s goes by %s", what, t->name, carrier);
	if (out->has_dscp && !out->rate_bps)
		return document_fail(err, "%s: expected a `rate_bps` with `dscp`", what);
	return 0;
}

static int assignment(const struct document *d, struct document_assignment *out, const json_t *a, size_t at,
    struct conf_error *err)
{
	static const char keys[] = "vni source destination tunnel | job rate_bps priority dscp carrier "
	                           "source_qpn destination_qpn";
	const struct conf_tunnel *t;
	const char *name, *job = "";
	uint64_t priority = 0;
	char what[48];
	int rc;

	snprintf(what, sizeof(what), "assignments[%zu]", at);
	rc = document_keys(a, what, keys, err);
	rc = rc ? rc : connection(out, a, what, err);
	rc = rc ? rc : document_text(a, what, "tunnel", &name, err);
	if (rc)
		return rc;
	t = strlen(name) < CONF_NAME ? tunnel_named(d->conf, name) : NULL;
	if (!t)
		return document_fail(
		    err, "%s: expected a tunnel's name for `tunnel`, found `%.40s`", what, name);
	if (json_object_get(a, "rate_bps"))
		rc = document_number(a, what, "rate_bps", 0, DOCUMENT_BPS_MAX, &out->rate_bps, err);
	if (out->rate_bps > CONF_TUNNEL_BPS_MAX)
		out->rate_bps = CONF_TUNNEL_BPS_MAX;
	if (!rc && json_object_get(a, "priority"))
		rc = document_number(a, what, "priority", 0, WAN_PRIORITIES - 1, &priority, err);
	if (!rc && json_object_get(a, "job"))
		rc = document_text(a, what, "job", &job, err);
	rc = rc ? rc : wishes(out, t, a, what, err);
	out->priority = (uint8_t)priority;
	snprintf(out->tunnel, sizeof(out->tunnel), "%s", name);
	snprintf(out->job, sizeof(out->job), "%s", job);
	return rc;
}

static int permit(struct document_assignment *out, const json_t *p, size_t at, struct conf_error *err)
{
	char what[48];
	int rc;

	snprintf(what, sizeof(what), "permits[%zu]", at);
	rc = document_keys(p, what, "vni source destination | source_qpn destination_qpn", err);
	return rc ? rc : connection(out, p, what, err);
}

/* Assignments, and after them permits. */
static int assignments(struct document *d, const json_t *doc, struct conf_error *err)
{
	const json_t *list = json_object_get(doc, "assignments"), *permits = json_object_get(doc, "permits");
	const size_t n = json_array_size(list), more = json_array_size(permits);
	int rc = 0;

	if (!json_is_array(list) || n > CONF_DOCUMENT_PAIRS_MAX)
		return document_fail(
		    err, "expected a list of at most %u for `assignments`", CONF_DOCUMENT_PAIRS_MAX);
	if (permits && (!json_is_array(permits) || more > CONF_DOCUMENT_PAIRS_MAX))
		return document_fail(
		    err, "expected a list of at most %u for `permits`", CONF_DOCUMENT_PAIRS_MAX);
	d->assignment = calloc(n + more + 1, sizeof(*d->assignment));
	if (!d->assignment)
		return document_fail(err, "out of memory");
	for (size_t i = 0; i < n && !rc; i++)
		rc = assignment(d, &d->assignment[i], json_array_get(list, i), i, err);
	for (size_t i = 0; i < more && !rc; i++)
		rc = permit(&d->assignment[n + i], json_array_get(permits, i), i, err);
	d->assignments = (unsigned)(n + more);
	return rc;
}

/* --- siblings -------------------------------------------------------------------------------- */

static bool own_lan(const struct conf *c, const struct rwy_ip *a)
{
	for (unsigned i = 0; i < c->ports; i++)
		for (unsigned k = 0; c->port[i].role == CONF_ROLE_LAN && k < c->port[i].addrs; k++)
			if (rwy_ip_eq(&c->port[i].addr[k].addr, a))
				return true;
	return false;
}

static int sibling_tunnels(struct gw_sibling *out, const json_t *s, const char *what, struct conf_error *err)
{
	const json_t *list = json_object_get(s, "tunnels");
	int rc = 0;
	size_t i;
	json_t *t;

	if (!json_is_array(list) || json_array_size(list) > CONF_TUNNELS_MAX)
		return document_fail(
		    err, "%s: expected a list of at most %d for `tunnels`", what, CONF_TUNNELS_MAX);
	json_array_foreach((json_t *)(uintptr_t)list, i, t)
	{
		struct gw_sibling_tunnel *to = &out->tunnel[i];
		uint64_t weight = 0;
		const char *peer = "";

		rc = rc ? rc : document_keys(t, what, "peer weight", err);
		rc = rc ? rc : document_text(t, what, "peer", &peer, err);
		rc = rc ? rc : document_number(t, what, "weight", 0, 1000000, &weight, err);
		if (!rc && (!*peer || strlen(peer) >= CONF_NAME))
			rc = document_fail(err, "%s: expected a name for `peer`", what);
		if (rc)
			return rc;
		snprintf(to->peer, sizeof(to->peer), "%s", peer);
		/* bounded like our own */
		to->weight = (uint32_t)(weight > WEIGHT_MAX ? WEIGHT_MAX : weight);
	}
	out->tunnels = (unsigned)json_array_size(list);
	return 0;
}

static int pair_add(struct document *d, const json_t *p, const char *what, int who, struct conf_error *err)
{
	struct gw_sibling_pair *out = &d->pair[d->pairs];
	const char *source, *destination;
	uint64_t vni, qpn = 0;
	int rc = document_keys(p, what, "vni source destination | source_qpn destination_qpn", err);

	rc = rc ? rc : document_number(p, what, "vni", 0, 0xffffff, &vni, err);
	rc = rc ? rc : document_text(p, what, "source", &source, err);
	rc = rc ? rc : document_text(p, what, "destination", &destination, err);
	if (!rc && json_object_get(p, "source_qpn"))
		rc = document_number(p, what, "source_qpn", 1, 0xffffff, &qpn, err);
	if (!rc && !json_object_get(p, "source_qpn") != !json_object_get(p, "destination_qpn"))
		rc = document_fail(err, "%s: expected both QPNs or none in `pairs`", what);
	if (!rc && qpn)
		rc = document_number(p, what, "destination_qpn", 1, 0xffffff, &qpn, err);
	if (rc)
		return rc;
	if (!document_ip(source, &out->local) || !document_ip(destination, &out->remote))
		return document_fail(
		    err, "%s: expected addresses for `source` and `destination` of `pairs`", what);
	out->who = who;
	out->dqpn = (uint32_t)qpn; /* the destination QP of the local host's packets */
	d->pairs += !vni;          /* tenants' packets are not handed to siblings */
	return 0;
}

static int sibling(struct document *d, const json_t *s, int at, struct conf_error *err)
{
	const char *name = json_string_value(json_object_get(s, "name")), *address, *state;
	const json_t *pairs = json_object_get(s, "pairs");
	struct gw_sibling *out = &d->sibling[at];
	char what[64];
	int rc;

	snprintf(what, sizeof(what), "sibling %.31s", name ? name : "without a name");
	rc = document_keys(s, what, "name address state tunnels pairs", err);
	rc = rc ? rc : document_text(s, what, "name", &name, err);
	rc = rc ? rc : document_text(s, what, "address", &address, err);
	rc = rc ? rc : document_text(s, what, "state", &state, err);
	if (rc)
		return rc;
	if (!*name || strlen(name) >= CONF_NAME)
		return document_fail(err, "%s: expected a name", what);
	for (int i = 0; i < at; i++)
		if (!strcmp(d->sibling[i].name, name))
			return document_fail(err, "%s: expected each once", what);
	if (!document_ip(address, &out->addr) || own_lan(d->conf, &out->addr))
		return document_fail(
		    err, "%s: expected another gateway's address, found `%.60s`", what, address);
	if (strcmp(state, "up") != 0 && strcmp(state, "lost") != 0)
		return document_fail(
		    err, "%s: expected `up` or `lost` for `state`, found `%.20s`", what, state);
	out->lost = *state == 'l';
	snprintf(out->name, sizeof(out->name), "%s", name);
	rc = sibling_tunnels(out, s, what, err);
	if (!rc && !json_is_array(pairs))
		rc = document_fail(err, "%s: expected a list for `pairs`", what);
	for (size_t i = 0; !rc && i < json_array_size(pairs); i++)
		rc = pair_add(d, json_array_get(pairs, i), what, at, err);
	return rc;
}

/* Call it after the assignments, which contain pairs as well. */
static int siblings(struct document *d, const json_t *doc, struct conf_error *err)
{
	const json_t *list = json_object_get(doc, "siblings");
	const size_t n = json_array_size(list);
	size_t pairs = json_array_size(json_object_get(doc, "assignments"));
	int rc = 0;

	if (!list)
		return 0;
	if (!json_is_array(list) || n > CONF_SIBLINGS_MAX)
		return document_fail(err, "expected a list of at most %d for `siblings`", CONF_SIBLINGS_MAX);
	for (size_t i = 0; i < n; i++)
		pairs += json_array_size(json_object_get(json_array_get(list, i), "pairs"));
	if (pairs > CONF_DOCUMENT_PAIRS_MAX)
		return document_fail(
		    err, "expected at most %u assigned pairs at a site", CONF_DOCUMENT_PAIRS_MAX);
	d->sibling = calloc(n + 1, sizeof(*d->sibling));
	d->pair = calloc(pairs + 1, sizeof(*d->pair));
	if (!d->sibling || !d->pair)
		return document_fail(err, "out of memory");
	for (size_t i = 0; i < n && !rc; i++)
		rc = sibling(d, json_array_get(list, i), (int)i, err);
	d->siblings = (unsigned)n;
	for (unsigned i = 0; i < d->assignments && !rc; i++) {
		const struct document_assignment *a = &d->assignment[i];

		if (*a->tunnel && !a->vni && !a->source_qpn == !a->destination_qpn)
			d->pair[d->pairs++] =
			    (struct gw_sibling_pair){a->source, a->destination, -1, a->destination_qpn};
	}
	return rc;
}

/* --- whole document --------------------------------------------------------------------------- */

static int peers(struct document *d, const json_t *doc, unsigned owns, struct conf_error *err)
{
	size_t i;
	json_t *t;

	d->peer = calloc(CONF_TUNNELS_MAX, sizeof(*d->peer));
	if (!d->peer)
		return document_fail(err, "out of memory");
	json_array_foreach(json_object_get(doc, "tunnels"), i, t) if (owns + i < CONF_TUNNELS_MAX)
	    snprintf(d->peer[owns + i], CONF_NAME, "%s", json_string_value(json_object_get(t, "peer")));
	return 0;
}

int document_parse(struct document *out, const struct conf *base, const struct conf_tunnel *own,
    unsigned owns, const json_t *doc, struct conf_error *err)
{
	json_t *j = NULL;
	char *text;
	int rc =
	    document_keys(doc, "document", "generation tenants tunnels assignments | siblings permits", err);

	memset(out, 0, sizeof(*out));
	if (!rc)
		rc = network(base, doc, &j, err);
	if (rc)
		return rc;
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	rc = text ? conf_network_parse(&out->conf, base, own, owns, text, strlen(text), err)
	          : document_fail(err, "out of memory");
	free(text);
	err->line = err->column = 0; /* the text has no lines that the operator knows */
	if (!rc)
		rc = assignments(out, doc, err);
	if (!rc)
		rc = siblings(out, doc, err);
	if (!rc)
		rc = peers(out, doc, owns, err);
	if (rc)
		document_fini(out);
	return rc;
}

void document_fini(struct document *d)
{
	if (d->conf)
		conf_free(d->conf);
	free(d->assignment);
	free(d->sibling);
	free(d->pair);
	free(d->peer);
	*d = (struct document){0};
}
