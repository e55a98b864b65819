/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' world for offload/; see offload_world.h. It does not know how rules are made. */
#include "tests/lib/offload_world.h"

#include <stdio.h>

#include "tests/lib/roce_pkt.h"
#include "tests/lib/acl_linear.h"

static const struct rwy_ip none;

uint32_t ow_rand(uint32_t *seed)
{
	return tp_rand(seed) >> 7;
}

static uint8_t rand_byte(void *ctx)
{
	return (uint8_t)ow_rand(ctx);
}

static struct rwy_ip ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	const uint8_t v[4] = {a, b, c, d};

	return rwy_ip_from4(v);
}

/* The gateway's MAC on VLANs. */
static const uint8_t port_mac[6] = {2, 0, 0, 0, 0, 0xfc};

static struct rwy_ip self_ip(unsigned i)
{
	struct rwy_ip a = {{0xfd, 0xaa}};

	return i ? a : ip4(192, 0, 2, 1);
}

void ow_cfg(struct offload_cfg *cfg)
{
	offload_cfg_default(cfg);
	cfg->self[0] = self_ip(0);
	cfg->self[1] = self_ip(1);
	cfg->selfs = 2;
	cfg->forward = true;
	memcpy(cfg->mac, port_mac, 6);
}

static struct rwy_ip vtep_ip(unsigned i)
{
	struct rwy_ip a = {{0xfd, 0xbb}};

	a.b[15] = 7;
	return i == 2 ? a : ip4(192, 0, 2, (uint8_t)(11 + i));
}

static struct rwy_ip host_ip(unsigned i)
{
	struct rwy_ip a = {{0xfd}};

	a.b[7] = i & 1;
	a.b[15] = 1;
	return i < 2 ? ip4(10, i & 1, 1, 1) : a;
}

void ow_tenant_rand(struct ow_tenant *t, unsigned number, bool simple, uint32_t *seed)
{
	struct acl_src src = {rand_byte, seed};
	uint32_t k = ow_rand(seed);

	memset(t, 0, sizeof(*t));
	tenant_cfg_default(&t->cfg);
	snprintf(t->cfg.name, sizeof(t->cfg.name), "t%u", number);
	t->cfg.vni = 100 + number;
	t->cfg.vlan = (uint16_t)(200 + number);
	t->prefix[0] = (struct tenant_prefix){{.len = 0}, {TENANT_VTEP, 0}};
	t->prefix[1] = (struct tenant_prefix){{ip4(10, 1, 0, 0), 112}, {TENANT_LAN, 0}};
	t->prefix[2].p = (struct prefix){{{0xfd, 0, 0, 0, 0, 0, 0, 1}}, 64};
	t->prefix[2].at.side = TENANT_LAN;
	t->cfg.prefix = t->prefix;
	t->cfg.prefixes = 3;
	for (unsigned i = 0; i < 3; i++)
		t->vtep[i] = vtep_ip(i);
	t->cfg.vtep = t->vtep;
	t->cfg.vteps = 3;
	t->cfg.vtep_learn = k & 1;
	for (unsigned i = 0; i < 4; i++) {
		t->host[i] =
		    (struct tenant_host){host_ip(i), i & 1 ? none : vtep_ip(i), {2, 0, 0, 0, 0, (uint8_t)i}};
		t->host[i].vtep = i & 1 ? none : vtep_ip(k >> 8 & 1 ? 0 : 2);
	}
	t->cfg.host = t->host;
	t->cfg.hosts = k >> 1 & 1 ? 4 : 0;
	t->cfg.gw_mac[0] = 2;
	t->cfg.gw_mac[5] = 0xfe;
	t->cfg.allow_default = k >> 2 & 1;
	t->cfg.rules = (k >> 4) % (OW_RULES + 1);
	if (k >> 3 & 1)
		t->cfg.rules = t->cfg.rules % 3;
	t->cfg.rule = t->rule;
	for (unsigned i = 0; i < t->cfg.rules; i++) {
		struct acl_err err;

		do
			acl_rand_rule(&src, &t->rule[i]);
		while (acl_check(&t->rule[i], 1, &err) != 0);
		if (simple) {
			t->rule[i].sport_lo = 0;
			t->rule[i].sport_hi = UINT16_MAX;
			t->rule[i].classes = ACL_ALL;
		}
	}
}

/* --- packets ------------------------------------------------------------------------------------------ */

static uint16_t sw_class(const struct ow_pkt *p)
{
	return p->roce && !p->fragment && !p->ext ? acl_class_of(p->opcode, p->dqpn) : ACL_OTHER;
}

void ow_pkt_rand(struct ow_pkt *p, const struct tenant_set *s, uint32_t *seed)
{
	static const uint8_t ops[] = {0x00, 0x04, 0x06, 0x0a, 0x0c, 0x10, 0x11, 0x13, 0x14, 0x17, 0x1f, 0x64,
	    0x65, 0x81, 0x26, 0x2a, 0xa6, 0xff};
	struct acl_src src = {rand_byte, seed};
	uint32_t k = ow_rand(seed), h = ow_rand(seed);
	const struct tenant *t;

	memset(p, 0, sizeof(*p));
	p->place = k & 1;
	p->self = k >> 1 & 7 ? self_ip(k >> 4 & 1) : ip4(192, 0, 2, 2);
	p->vtep = k >> 5 & 7 ? vtep_ip((k >> 8) % 3) : ip4(192, 0, 2, 99);
	if (rwy_ip_is4(&p->vtep) != rwy_ip_is4(&p->self))
		p->self = self_ip(rwy_ip_is4(&p->vtep) ? 0 : 1);
	p->vni = 100 + (h & 7) % (OW_TENANTS + 1);
	p->vlan = (uint16_t)(200 + (h & 7) % (OW_TENANTS + 1));
	t = p->place == OFFLOAD_IN_VXLAN ? tenant_by_vni(s, p->vni) : tenant_by_vlan(s, p->vlan);
	if (p->place == OFFLOAD_IN_VXLAN)
		p->vlan = 0;
	else
		p->vni = 0;
	do
		acl_rand_key(&src, t ? t->cfg.rule : NULL, t ? t->cfg.rules : 0, &p->k);
	while (rwy_ip_is4(&p->k.src) != rwy_ip_is4(&p->k.dst));
	p->opcode = h >> 3 & 1 ? ops[(h >> 4) % sizeof(ops)] : (uint8_t)(h >> 4);
	p->dqpn = h >> 12 & 3;
	p->ttl = h >> 14 & 7 ? 64 : h >> 17 & 3;
	p->roce = k >> 10 & 7;
	p->fragment = !(k >> 13 & 7);
	p->ext = !(k >> 17 & 7) && !rwy_ip_is4(&p->k.src);
	p->src_mac[0] = p->dst_mac[0] = 2;
	p->dst_mac[5] = h >> 19 & 7 ? (p->place == OFFLOAD_IN_VXLAN ? 0xfe : port_mac[5]) : 0xfd;
	if (!(h >> 22 & 1)) { /* between two hosts */
		unsigned from = k >> 20 & 1, pair = k >> 21 & 1 ? 2 : 0;

		p->k.src = host_ip(pair + from);
		p->k.dst = host_ip(pair + !from);
		p->src_mac[5] = (uint8_t)(h >> 12 & 1 ? pair + from : 9);
		p->ext = false;
	}
	if (p->ext)
		p->k.sport = (uint16_t)(p->k.sport | 1);
	p->k.cls = (uint8_t)sw_class(p);
}

/* --- software ----------------------------------------------------------------------------------------- */

static const struct tenant *tenant_of(const struct tenant_set *s, const struct ow_pkt *p, bool *foreign)
{
	const struct tenant *t = NULL;
	struct offload_cfg cfg;
	bool mine = false;

	*foreign = false;
	if (p->place == OFFLOAD_IN_VLAN)
		return tenant_by_vlan(s, p->vlan);
	ow_cfg(&cfg);
	for (unsigned i = 0; i < cfg.selfs; i++)
		mine = mine || rwy_ip_eq(&cfg.self[i], &p->self);
	if (mine)
		*foreign = tenant_of_vxlan(s, p->vni, &p->vtep, 0, &t) != TENANT_OK;
	return mine ? t : NULL;
}

bool ow_denied(const struct tenant_set *s, const struct ow_pkt *p)
{
	bool foreign;
	const struct tenant *t = tenant_of(s, p, &foreign);
	struct acl_key k = p->k;

	if (foreign || !t)
		return foreign;
	k.cls = (uint8_t)sw_class(p);
	if (p->ext || p->fragment)
		k.sport = 0; /* software reads no port after extension headers or in fragments */
	return !acl_linear(t->cfg.rule, t->cfg.rules, t->cfg.allow_default, &k).allow;
}

static const struct tenant_host *host_of(const struct tenant *t, const struct rwy_ip *a)
{
	for (unsigned i = 0; i < t->cfg.hosts; i++)
		if (rwy_ip_eq(&t->cfg.host[i].addr, a))
			return &t->cfg.host[i];
	return NULL;
}

bool ow_forwards(const struct tenant_set *s, const struct ow_pkt *p, const struct offload_rule *r)
{
	bool foreign, in = p->place == OFFLOAD_IN_VXLAN;
	const struct tenant *t = tenant_of(s, p, &foreign);
	const struct tenant_host *from = t ? host_of(t, &p->k.src) : NULL,
	                         *to = t ? host_of(t, &p->k.dst) : NULL;
	const struct tenant_host *out = in ? to : from;

	if (!from || !to || foreign || ow_denied(s, p) || p->ttl < 2 || !p->roce || p->fragment)
		return false;
	if (memcmp(p->src_mac, from->mac, 6) != 0 ||
	    memcmp(p->dst_mac, in ? t->cfg.gw_mac : port_mac, 6) != 0 ||
	    memcmp(r->to.src_mac, in ? port_mac : t->cfg.gw_mac, 6) != 0 ||
	    memcmp(r->to.dst_mac, to->mac, 6) != 0)
		return false;
	if (!rwy_ip_eq(&out->vtep, &none)) /* the host on the VLAN */
		return false;
	if (in)
		return rwy_ip_eq(&from->vtep, &p->vtep) && r->act == OFFLOAD_TO_VLAN &&
		       r->to.vlan == t->cfg.vlan;
	return rwy_ip_eq(&to->vtep, &r->to.vtep) && r->act == OFFLOAD_TO_VXLAN && r->to.vni == t->cfg.vni &&
	       (rwy_ip_eq(&r->to.self, &(struct rwy_ip[]){self_ip(0)}[0]) ||
	           rwy_ip_eq(&r->to.self, &(struct rwy_ip[]){self_ip(1)}[0]));
}

/* --- hardware ----------------------------------------------------------------------------------------- */

static bool outer(const struct offload_match *m, const struct ow_pkt *p)
{
	if (m->place != p->place)
		return false;
	if (m->place == OFFLOAD_IN_VLAN)
		return !m->vlan || m->vlan == p->vlan;
	return rwy_ip_eq(&m->self, &p->self) && (!m->vni || m->vni == p->vni) &&
	       (rwy_ip_eq(&m->vtep, &none) || rwy_ip_eq(&m->vtep, &p->vtep));
}

/* This device reads the ports of a first fragment. */
static bool matches(const struct offload_match *m, const struct ow_pkt *p)
{
	return outer(m, p) && (!m->family || (m->family == 4) == rwy_ip_is4(&p->k.src)) &&
	       prefix_has(&m->src, &p->k.src) && prefix_has(&m->dst, &p->k.dst) && (!m->roce || p->roce) &&
	       !((p->k.sport ^ m->sport) & m->sport_mask) && !((p->opcode ^ m->opcode) & m->opcode_mask) &&
	       (!m->qp1 || p->dqpn == 1) && (!m->whole || !p->fragment) && (!m->ttl_ends || p->ttl < 2) &&
	       (!m->by_mac || (!memcmp(m->src_mac, p->src_mac, 6) && !memcmp(m->dst_mac, p->dst_mac, 6)));
}

const struct offload_rule *ow_match(
    const struct offload_rule *const *rule, unsigned n, const struct ow_pkt *p)
{
	const struct offload_rule *first = NULL;

	for (unsigned i = 0; i < n; i++) {
		if (rule[i]->act == OFFLOAD_NOTHING || !matches(&rule[i]->match, p))
			continue;
		if (first && first->prio == rule[i]->prio)
			/* otherwise the device could choose */
			assert_int_equal(first->act, rule[i]->act);
		if (!first || rule[i]->prio < first->prio)
			first = rule[i];
	}
	return first;
}

void ow_check(const struct tenant_set *s, const struct offload_rule *const *rule, unsigned n,
    const struct ow_pkt *p, uint64_t *drops, uint64_t *forwards)
{
	const struct offload_rule *r = ow_match(rule, n, p);

	if (!r || r->act == OFFLOAD_PASS)
		return;
	if (r->act == OFFLOAD_DROP) {
		++*drops;
		assert_true(ow_denied(s, p));
		return;
	}
	++*forwards;
	assert_true(ow_forwards(s, p, r));
}
