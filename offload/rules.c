/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns tenants into rules for hardware. Priorities, first to last: packets with an ending TTL;
 * forwarding; the ACL's levels; the tenant's VTEPs; other VTEPs; other VNIs.
 *
 * An ACL is an ordered list, and hardware has priorities. A rule's level comes after those of the
 * earlier rules with the opposite action that overlap it, so a few levels hold long lists. Allow
 * rules that overlap no later deny rule are not needed.
 */
#include <stdlib.h>
#include <string.h>

#include "offload/internal.h"

/* --- one ACL rule as masks -------------------------------------------------------------------- */

struct mask16 {
	uint16_t value, mask;
};
struct op_mask {
	uint8_t value, mask;
	bool qp1;
};

/* Divides lo..hi into aligned blocks. Returns their number, at most 30. */
static unsigned port_masks(uint16_t lo, uint16_t hi, struct mask16 out[30])
{
	unsigned n = 0;
	uint32_t at = lo;

	while (at <= hi) {
		uint32_t size = at ? at & -at : 0x10000;

		while (at + size - 1 > hi)
			size >>= 1;
		out[n++] = (struct mask16){(uint16_t)at, (uint16_t) ~(size - 1)};
		at += size;
	}
	return n;
}

static bool op_in(const bool *set, unsigned lo, unsigned size, bool value)
{
	for (unsigned i = lo; i < lo + size; i++)
		if (set[i] != value)
			return false;
	return true;
}

static unsigned op_blocks(const bool *set, unsigned lo, unsigned size, bool qp1, struct op_mask *out)
{
	unsigned n;

	if (op_in(set, lo, size, false))
		return 0;
	if (op_in(set, lo, size, true)) {
		out[0] = (struct op_mask){(uint8_t)lo, (uint8_t) ~(size - 1), qp1};
		return 1;
	}
	n = op_blocks(set, lo, size / 2, qp1, out);
	return n + op_blocks(set, lo + size / 2, size / 2, qp1, out + n);
}

/* Masks for the RoCE packets of these classes; *left: what no mask can express. At most 256
 * masks. */
static unsigned op_masks(uint16_t classes, struct op_mask *out, enum offload_left *left)
{
	bool any[256], qp1[256] = {false};
	unsigned n;

	*left = classes & ~(1u << ACL_OTHER) ? OFFLOAD_LEFT_NOT : OFFLOAD_LEFT_NOT_ROCE;
	for (unsigned op = 0; op < 256; op++) {
		bool one = classes >> acl_class_of((uint8_t)op, 1) & 1;
		bool others = classes >> acl_class_of((uint8_t)op, 2) & 1;

		any[op] = one && others;
		qp1[op] = one && !others;
		if (others && !one)
			*left = OFFLOAD_LEFT_UD;
	}
	n = op_blocks(any, 0, 256, false, out);
	return n + op_blocks(qp1, 0, 256, true, out + n);
}

/* --- order ------------------------------------------------------------------------------------ */

/* A rule of an ACL; its default is the last one. */
struct item {
	const struct acl_rule *r;
	int number;
	uint8_t level;
	bool used; /* the device gets rules for it */
	enum offload_left left;
	unsigned ops, ports;
};

static bool meets(const struct acl_rule *a, const struct acl_rule *b)
{
	return a->classes & b->classes && a->sport_lo <= b->sport_hi && b->sport_lo <= a->sport_hi &&
	       prefix_meets(&a->src, &b->src) && prefix_meets(&a->dst, &b->dst);
}

/* Decides which deny rules masks can express and which allow rules they need. */
static void items_choose(struct item *it, unsigned n, unsigned masks_max)
{
	struct op_mask ops[256];
	struct mask16 ports[30];

	for (unsigned i = n; i-- > 0;) {
		const struct acl_rule *r = it[i].r;

		if (r->allow) {
			for (unsigned j = i + 1; j < n && !it[i].used; j++)
				it[i].used = !it[j].r->allow && it[j].used && meets(r, it[j].r);
			continue;
		}
		it[i].ops = op_masks(r->classes, ops, &it[i].left);
		it[i].ports = port_masks(r->sport_lo, r->sport_hi, ports);
		it[i].used = it[i].ops && it[i].ops * it[i].ports <= masks_max;
		if (it[i].ops && !it[i].used)
			it[i].left = OFFLOAD_LEFT_MASKS;
	}
}

/* Computes levels: after the earlier rules with the opposite action that overlap. Deny rules beyond
 * the last level are left out: later rules then act as if they did not exist, and software applies
 * them. An allow rule beyond the last level is put on it; later deny rules that need it are beyond
 * it as well. */
static void items_level(struct item *it, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned level = it[i].r->allow ? 1 : 0;

		for (unsigned j = 0; j < i && it[i].used; j++)
			if (it[j].used && it[j].r->allow != it[i].r->allow && it[j].level >= level &&
			    meets(it[j].r, it[i].r))
				level = it[j].level + 1u;
		if (level >= OFFLOAD_LEVELS && !it[i].r->allow) {
			it[i].used = false;
			it[i].left = OFFLOAD_LEFT_LEVELS;
		}
		it[i].level = (uint8_t)(level < OFFLOAD_LEVELS ? level : OFFLOAD_LEVELS - 1);
	}
}

/* --- one ACL ---------------------------------------------------------------------------------- */

struct build {
	struct offload_list *l;
	const struct offload_cfg *cfg;
	const struct tenant *t;
};

/* Whether the tenant has addresses of a family. */
static bool has_family(const struct tenant *t, unsigned family)
{
	for (unsigned i = 0; i < t->cfg.prefixes; i++)
		if (!t->cfg.prefix[i].p.len || prefix_is4(&t->cfg.prefix[i].p) == (family == 4))
			return true;
	return false;
}

static bool in_family(const struct prefix *p, unsigned family)
{
	return !p->len || prefix_is4(p) == (family == 4);
}

/* Writes the masks of a rule: a deny rule exactly; an allow rule at least as wide, as it only
 * shields: all operations, and all ports where its own need many masks. Software takes the port of
 * a fragment, or of UDP behind IPv6 extension headers, as 0; hardware may see the real one. */
static int item_rules(const struct build *b, const struct item *it, struct offload_rule *r)
{
	struct op_mask ops[256] = {{0}};
	struct mask16 ports[30];
	unsigned nops = 1, nports = port_masks(it->r->sport_lo, it->r->sport_hi, ports);
	enum offload_left left;
	int rc = 0;

	if (!it->r->allow)
		nops = op_masks(it->r->classes, ops, &left);
	else if (nports > OFFLOAD_PASS_MASKS || !it->r->sport_lo) {
		nports = 1;
		ports[0] = (struct mask16){0, 0};
	}
	for (unsigned o = 0; o < nops && !rc; o++)
		for (unsigned p = 0; p < nports && !rc; p++) {
			r->match.opcode = ops[o].value;
			r->match.opcode_mask = ops[o].mask;
			r->match.qp1 = ops[o].qp1;
			r->match.sport = ports[p].value;
			r->match.sport_mask = ports[p].mask;
			rc = offload_list_add(b->l, r);
		}
	return rc;
}

static int item_families(const struct build *b, const struct item *it, struct offload_rule *r)
{
	int rc = 0;

	for (unsigned family = 4; family <= 6 && !rc; family += 2) {
		if (!has_family(b->t, family) || !in_family(&it->r->src, family) ||
		    !in_family(&it->r->dst, family))
			continue;
		r->match.family = (uint8_t)family;
		rc = item_rules(b, it, r);
	}
	return rc;
}

/* A rule for all ports and operations applies also to packets whose ports cannot be read. */
static bool takes_all(const struct acl_rule *r)
{
	return r->classes == ACL_ALL && !r->sport_lo && r->sport_hi == UINT16_MAX;
}

/* Writes a rule for each place where packets of the tenant's hosts come from. */
static int item_places(const struct build *b, const struct item *it)
{
	const struct tenant_cfg *c = &b->t->cfg;
	struct offload_rule r;
	int rc = 0;

	offload_rule_init(
	    &r, OFFLOAD_ACL, it->r->allow ? OFFLOAD_PASS : OFFLOAD_DROP, OFFLOAD_PRIO_ACL + it->level);
	r.tenant = b->t->index;
	r.item = it->number;
	r.match.src = it->r->src;
	r.match.dst = it->r->dst;
	r.match.roce = true;
	r.match.whole = !it->r->allow && !takes_all(it->r);
	if (c->vlan) {
		r.match.place = OFFLOAD_IN_VLAN;
		r.match.vlan = c->vlan;
		rc = item_families(b, it, &r);
		r.match.vlan = 0;
	}
	r.match.place = OFFLOAD_IN_VXLAN;
	r.match.vni = c->vni;
	for (unsigned i = 0; i < b->cfg->selfs && offload_behind_vteps(b->t) && !rc; i++) {
		r.match.self = b->cfg->self[i];
		rc = item_families(b, it, &r);
	}
	return rc;
}

static int acl_rules(const struct build *b)
{
	const struct tenant_cfg *c = &b->t->cfg;
	const struct acl_rule last = {.sport_hi = UINT16_MAX, .classes = ACL_ALL, .allow = c->allow_default};
	const unsigned n = c->rules + 1, at = b->l->n;
	struct item *it = calloc(n, sizeof(*it));
	int rc = it ? 0 : RWY_ENOMEM;

	for (unsigned i = 0; i < n && it; i++) {
		it[i].r = i < c->rules ? &c->rule[i] : &last;
		it[i].number = i < c->rules ? (int)i : -1;
	}
	if (it) {
		items_choose(it, n, b->cfg->masks_max);
		items_level(it, n);
	}
	for (unsigned i = 0; i < n && !rc; i++) {
		if (it[i].used)
			rc = item_places(b, &it[i]);
		if (!rc && it[i].left != OFFLOAD_LEFT_NOT)
			rc = offload_list_left(b->l, b->t, OFFLOAD_ACL, it[i].number, it[i].left);
		if (!rc && b->l->n - at > b->cfg->tenant_max) {
			b->l->n = at;
			rc = offload_list_left(b->l, b->t, OFFLOAD_ACL, -1, OFFLOAD_LEFT_MANY);
			break;
		}
	}
	free(it);
	return rc;
}

/* --- VTEPs ------------------------------------------------------------------------------------ */

static int vtep_rules(const struct build *b)
{
	const struct tenant_cfg *c = &b->t->cfg;
	struct offload_rule pass, drop;
	int rc = 0;

	offload_rule_init(&pass, OFFLOAD_VTEP, OFFLOAD_PASS, OFFLOAD_PRIO_VTEP);
	offload_rule_init(&drop, OFFLOAD_VTEP, OFFLOAD_DROP, OFFLOAD_PRIO_FOREIGN);
	pass.tenant = drop.tenant = b->t->index;
	pass.match.vni = drop.match.vni = c->vni;
	for (unsigned i = 0; i < b->cfg->selfs && !rc; i++) {
		pass.match.self = drop.match.self = b->cfg->self[i];
		memset(&pass.match.vtep, 0, sizeof(pass.match.vtep));
		if (c->vtep_learn)
			rc = offload_list_add(b->l, &pass);
		for (unsigned v = 0; v < c->vteps && !c->vtep_learn && !rc; v++) {
			pass.match.vtep = c->vtep[v];
			if (rwy_ip_is4(&c->vtep[v]) == rwy_ip_is4(&b->cfg->self[i]))
				rc = offload_list_add(b->l, &pass);
		}
		if (!c->vtep_learn && !rc)
			rc = offload_list_add(b->l, &drop);
	}
	return rc;
}

/* --- tenants and common rules ----------------------------------------------------------------- */

/* Rules of an ACL may be equal. */
static void drop_doubles(struct offload_list *l, unsigned from)
{
	unsigned n = from;

	for (unsigned i = from; i < l->n; i++) {
		unsigned j = from;

		while (j < n && !offload_rule_same(&l->rule[j], &l->rule[i]))
			j++;
		if (j == n)
			l->rule[n++] = l->rule[i];
	}
	l->n = n;
}

int offload_tenant(struct offload_list *l, const struct offload_cfg *cfg, const struct tenant *t)
{
	const struct build b = {l, cfg, t};
	const unsigned before = l->n;
	int rc = 0;

	if (t->cfg.vni)
		rc = vtep_rules(&b);
	if (!rc)
		rc = acl_rules(&b);
	if (!rc && cfg->forward)
		rc = offload_forward(l, cfg, t);
	if (rc)
		l->n = before;
	else
		drop_doubles(l, before);
	return rc;
}

int offload_common(struct offload_list *l, const struct offload_cfg *cfg, const struct tenant_set *s)
{
	const unsigned before = l->n;
	bool vxlan = false;
	struct offload_rule r;
	int rc = 0;

	for (uint32_t i = 0; i < s->top && !vxlan; i++)
		vxlan = s->by_index[i] && s->by_index[i]->cfg.vni && offload_behind_vteps(s->by_index[i]);
	offload_rule_init(&r, OFFLOAD_VNI, OFFLOAD_DROP, OFFLOAD_PRIO_UNKNOWN);
	for (unsigned i = 0; i < cfg->selfs && vxlan && !rc; i++) {
		r.match.self = cfg->self[i];
		rc = offload_list_add(l, &r);
	}
	if (!rc && cfg->forward)
		rc = offload_forward_common(l, cfg, s);
	if (rc)
		l->n = before;
	return rc;
}

/* Whether no packet matches both: another place, another family, or another address of ours. */
static bool apart(const struct offload_match *a, const struct offload_match *b)
{
	return a->place != b->place || !rwy_ip_eq(&a->self, &b->self) ||
	       (a->family && b->family && a->family != b->family);
}

bool offload_needs(const struct offload_rule *drop, const struct offload_rule *pass)
{
	if (pass->act != OFFLOAD_PASS || pass->prio >= drop->prio || apart(&drop->match, &pass->match))
		return false;
	switch ((enum offload_what)drop->what) {
	case OFFLOAD_ACL:
	case OFFLOAD_VTEP:
		return pass->what == drop->what && pass->tenant == drop->tenant;
	case OFFLOAD_VNI:
		return pass->what == OFFLOAD_VTEP;
	case OFFLOAD_FORWARD:
		return pass->what == OFFLOAD_TTL;
	case OFFLOAD_TTL:
		return false;
	case OFFLOAD_WHAT_COUNT:
		break;
	}
	rwy_unreachable();
}
