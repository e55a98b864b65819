/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware rules as text: "vni 5001 from 192.0.2.11 src 10.1.0.66/32 roce". */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gateway/offload/offload.h"

struct text {
	char *buf;
	size_t size, n;
};

static void text_append(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void text_append(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->n && t->n + 1 < t->size) {
		t->buf[t->n++] = ' ';
		t->buf[t->n] = 0;
	}
	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->n, t->size - t->n, fmt, ap);
	va_end(ap);
	t->n += n < 0 ? 0 : (size_t)n;
	if (t->n >= t->size)
		t->n = t->size - 1;
}

static const char *ip_text(const struct rwy_ip *a, char buf[INET6_ADDRSTRLEN])
{
	const bool is4 = rwy_ip_is4(a);

	return inet_ntop(is4 ? AF_INET : AF_INET6, a->b + (is4 ? 12 : 0), buf, INET6_ADDRSTRLEN);
}

static void say_ip(struct text *t, const char *word, const struct rwy_ip *a)
{
	static const struct rwy_ip none;
	char buf[INET6_ADDRSTRLEN];

	if (!rwy_ip_eq(a, &none))
		text_append(t, "%s %s", word, ip_text(a, buf));
}

static void say_prefix(struct text *t, const char *word, const struct prefix *p)
{
	char buf[INET6_ADDRSTRLEN];

	if (p->len)
		text_append(
		    t, "%s %s/%u", word, ip_text(&p->addr, buf), prefix_is4(p) ? p->len - 96u : p->len);
}

static void say_mac(struct text *t, const char *word, const uint8_t m[6])
{
	text_append(t, "%s %02x:%02x:%02x:%02x:%02x:%02x", word, m[0], m[1], m[2], m[3], m[4], m[5]);
}

const char *gw_offload_match_text(const struct offload_rule *r, char *buf, size_t size)
{
	const struct offload_match *m = &r->match;
	struct text t = {buf, size, 0};

	buf[0] = 0;
	if (m->place == OFFLOAD_IN_VLAN && (m->vlan || r->act != OFFLOAD_NOTHING))
		text_append(&t, m->vlan ? "vlan %u" : "any vlan", m->vlan);
	if (m->place == OFFLOAD_IN_VXLAN && (m->vni || r->act != OFFLOAD_NOTHING))
		text_append(&t, m->vni ? "vni %u" : "any vni", m->vni);
	say_ip(&t, "to vtep", &m->self);
	say_ip(&t, "from vtep", &m->vtep);
	if (m->family)
		text_append(&t, "ipv%u", m->family);
	say_prefix(&t, "src", &m->src);
	say_prefix(&t, "dst", &m->dst);
	if (m->by_mac)
		say_mac(&t, "src mac", m->src_mac);
	if (m->roce)
		text_append(&t, "roce");
	if (m->sport_mask)
		text_append(&t, "port %u-%u", m->sport, m->sport | (uint16_t)~m->sport_mask);
	if (m->opcode_mask)
		text_append(&t, "opcode 0x%02x-0x%02x", m->opcode, m->opcode | (~m->opcode_mask & 0xff));
	if (m->qp1)
		text_append(&t, "qp 1");
	if (m->ttl_ends)
		text_append(&t, "ttl 0-1");
	return buf;
}

const char *gw_offload_act_text(const struct offload_rule *r, char *buf, size_t size)
{
	struct text t = {buf, size, 0};

	buf[0] = 0;
	text_append(&t, "%s", offload_act_name(r->act));
	if (r->act == OFFLOAD_TO_VLAN)
		text_append(&t, "%u", r->to.vlan);
	if (r->act == OFFLOAD_TO_VXLAN) {
		text_append(&t, "vni %u", r->to.vni);
		say_ip(&t, "vtep", &r->to.vtep);
	}
	if (r->act == OFFLOAD_TO_VLAN || r->act == OFFLOAD_TO_VXLAN)
		say_mac(&t, "dst mac", r->to.dst_mac);
	return buf;
}
