/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of vxlan/ and tenant/ without a network: TSC cycles per call, and CPU time of the
 * control thread. One core, one process. Inputs are drawn before the clock starts; the best of 15
 * rounds is printed, since other work on the machine can only add. No DPDK; it judges nothing,
 * since tests do.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "tenant/acl.h"
#include "vxlan/ecn.h"
#include "tenant/tenant.h"
#include "tenant/vtep.h"
#include "vxlan/vxlan.h"
#include "tests/lib/acl_linear.h"

#define ROUNDS   15
#define KEYS     4096
#define PACKETS  64
#define TENANTS  4000
#define CHECK(x) ((x) ? (void)0 : abort())

static uint64_t rng = 88172645463325252u;
static uint64_t sink;

static uint32_t rnd(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng >> 24);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Runs `body` for i in 0..n-1, ROUNDS times; `best` becomes the least cycles per i. */
#define CYCLES(best, n, body)                                                                                \
	do {                                                                                                 \
		best = 1e18;                                                                                 \
		for (unsigned cyc_round = 0; cyc_round < ROUNDS; cyc_round++) {                              \
			uint64_t cyc_t0 = __rdtsc();                                                         \
			double cyc_one;                                                                      \
                                                                                                             \
			for (uint32_t i = 0; i < (n); i++)                                                   \
				body;                                                                        \
			cyc_one = (double)(__rdtsc() - cyc_t0) / (n);                                        \
			if (cyc_one < best)                                                                  \
				best = cyc_one;                                                              \
		}                                                                                            \
	} while (0)

static struct rwy_ip ip4(uint32_t a)
{
	const uint8_t v4[4] = {(uint8_t)(a >> 24), (uint8_t)(a >> 16), (uint8_t)(a >> 8), (uint8_t)a};

	return rwy_ip_from4(v4);
}

static struct prefix net4(uint32_t a, uint8_t len)
{
	return (struct prefix){ip4(len ? a & ~0u << (32 - len) : 0), (uint8_t)(96 + len)};
}

/* --- packets ---------------------------------------------------------------------------------------- */

#define ROOM 128
static uint8_t room[PACKETS][ROOM + 2048];

static void packets(bool under6, bool csum)
{
	struct vxlan_tmpl_cfg c = {.local = ip4(0xc0000201),
	    .remote = ip4(0xc0000202),
	    .vni = 5,
	    .port = 4789,
	    .ttl = 64,
	    .udp_csum = csum,
	    .src_mac = {2}};
	struct vxlan_cfg cfg;
	struct vxlan_pkt p;
	struct vxlan_tmpl t;
	uint8_t mac[6] = {2, 0, 0, 0, 0, 2}, *o = NULL;
	uint32_t len = 20 + 8 + 12 + 16 + 1024 + 4;
	double enc, dec, prep;

	if (under6) {
		c.local = (struct rwy_ip){{0x20, 1, 0xd, 0xb8, [15] = 1}};
		c.remote = (struct rwy_ip){{0x20, 1, 0xd, 0xb8, [15] = 2}};
	}
	CHECK(!vxlan_tmpl_init(&t, &c));
	vxlan_cfg_default(&cfg);
	for (unsigned i = 0; i < PACKETS; i++) {
		uint8_t *ip = room[i] + ROOM;

		memset(ip, (int)i, len);
		ip[0] = 0x45;
		ip[1] = 0x6a;
		ip[2] = (uint8_t)(len >> 8);
		ip[3] = (uint8_t)len;
		ip[6] = 0x40;
		ip[7] = 0;
		ip[9] = 17;
		ip[22] = 4791 >> 8;
		ip[23] = 4791 & 255;
	}
	CYCLES(prep, 6400, sink += vxlan_tmpl_init(&t, &c) + t.hdr[i % 32]);
	CYCLES(enc, 100 * PACKETS, {
		uint8_t *ip = room[i % PACKETS] + ROOM;

		o = vxlan_encap(&t, ip, len, mac, (uint16_t)(49152 + i % 16384), 0x6a);
		sink += o[10];
	});
	CYCLES(dec, 100 * PACKETS, {
		uint8_t *q = room[i % PACKETS] + ROOM - vxlan_tmpl_headroom(&t);

		sink += vxlan_decap(&cfg, q, len + vxlan_tmpl_headroom(&t), &p) + p.net_off + p.roce;
	});
	CHECK(vxlan_decap(&cfg, o, len + vxlan_tmpl_headroom(&t), &p) == VXLAN_OK && p.roce);
	printf("IPv%d underlay%s: encapsulate %.0f, decapsulate %.0f, make a template %.0f cycles\n",
	    under6 ? 6 : 4, csum ? ", UDP checksum written" : "", enc, dec, prep);
}

static void ecn(void)
{
	struct vxlan_ecn_counters c = {0};
	double none, mark;

	CYCLES(none, 100 * PACKETS, sink += vxlan_ecn_apply(room[i % PACKETS] + ROOM, VXLAN_ECT0, &c));
	CYCLES(mark, 100 * PACKETS, {
		uint8_t *ip = room[i % PACKETS] + ROOM;

		vxlan_tos_set(ip, 0x6a);
		sink += vxlan_ecn_apply(ip, VXLAN_CE, &c);
	});
	printf("ECN: nothing changes %.1f, set back and marked %.1f cycles\n", none, mark);
}

/* --- ACL -------------------------------------------------------------------------------------------- */

static struct acl_rule rules[ACL_RULES_MAX];
static struct acl_key keys[KEYS];

/* Draws pairs of hosts and networks in 10/8 as in an operator's list, some for certain operations
 * or ports only. */
static void rules_draw(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t k = rnd();

		rules[i] = (struct acl_rule){.src = net4(0x0a000000 | rnd() >> 8, (uint8_t)(k & 1 ? 24 : 32)),
		    .dst = net4(0x0a000000 | rnd() >> 8, (uint8_t)(k & 2 ? 24 : 20)),
		    .sport_lo = k & 4 ? 49152 : 0,
		    .sport_hi = k & 8 ? 60000 : 65535,
		    .classes = k & 16 ? ACL_ALL : 0x1ff & ~0xc,
		    .allow = k & 32};
	}
}

static void keys_draw(unsigned n, bool hit)
{
	for (unsigned i = 0; i < KEYS; i++) {
		const struct acl_rule *r = &rules[rnd() % n];

		keys[i] = (struct acl_key){ip4(0x0a000000 | rnd() >> 8), ip4(0x0a000000 | rnd() >> 8),
		    (uint16_t)(49152 + rnd() % 8192), (uint8_t)(rnd() % 2)};
		if (hit) {
			keys[i].src = r->src.addr;
			keys[i].dst = r->dst.addr;
		}
	}
}

static void acl(unsigned n)
{
	struct acl_err err;
	struct acl *a = NULL;
	double t0, ms = 1e18, c[2][3];

	rules_draw(n);
	for (unsigned i = 0; i < ROUNDS; i++) {
		acl_free(a);
		t0 = now_ms();
		CHECK(!acl_new(&a, rules, n, false, &err));
		if (now_ms() - t0 < ms)
			ms = now_ms() - t0;
	}
	for (unsigned hit = 0; hit < 2; hit++) {
		keys_draw(n, hit);
		for (unsigned i = 0; i < KEYS; i++)
			CHECK(acl_lookup(a, &keys[i]).rule == acl_linear(rules, n, false, &keys[i]).rule);
		CYCLES(c[hit][0], KEYS, sink += acl_lookup(a, &keys[i]).rule);
		CYCLES(c[hit][1], KEYS, sink += acl_allowed(a, &keys[i]));
		CYCLES(c[hit][2], KEYS, sink += acl_linear(rules, n, false, &keys[i]).rule);
	}
	printf("ACL of %4u rules: hit %.0f, miss %.0f; all classes %.0f, %.0f; linear %.0f, %.0f cycles; "
	       "compiled in "
	       "%.3f ms, %.0f KiB\n",
	    n, c[1][0], c[0][0], c[1][1], c[0][1], c[1][2], c[0][2], ms, (double)acl_bytes(a) / 1024);
	acl_free(a);
}

/* --- tenants ---------------------------------------------------------------------------------------- */

static struct tenant_prefix tprefix[4];
static struct acl_rule trule[10];
static struct rwy_ip tvtep[4];

static void tenant_cfg_draw(struct tenant_cfg *c, unsigned i)
{
	tenant_cfg_default(c);
	snprintf(c->name, sizeof(c->name), "tenant-%u", i);
	c->vni = 10000 + 7 * i;
	c->vlan = (uint16_t)(1 + i);
	c->prefix = tprefix;
	c->prefixes = 4;
	c->rule = trule;
	c->rules = 10;
	c->vtep = tvtep;
	c->vteps = 4;
	c->gw_mac[0] = 2;
	c->guarantee_Bps = 100000;
}

static const struct tenant_set *reload(struct tenant_db *db, unsigned changed)
{
	struct tenant_txn *x;
	struct tenant_err err;
	const struct tenant_set *s;
	struct tenant_cfg c;

	CHECK(!tenant_txn_begin(&x, db));
	tenant_txn_clear(x);
	for (unsigned i = 0; i < TENANTS; i++) {
		tenant_cfg_draw(&c, i);
		if (i < changed)
			c.weight = 1 + (unsigned)(tenant_db_current(db)->generation % 100);
		CHECK(!tenant_txn_add(x, &c, &err));
	}
	CHECK(!tenant_txn_commit(x, &s, &err));
	return s;
}

static double one_change(struct tenant_db *db)
{
	struct tenant_txn *x;
	struct tenant_err err;
	const struct tenant_set *s;
	struct tenant_cfg c;
	double t0 = now_ms();

	tenant_cfg_draw(&c, 77);
	c.weight = 1 + (unsigned)(tenant_db_current(db)->generation % 100);
	CHECK(!tenant_txn_begin(&x, db) && !tenant_txn_set(x, &c, &err) && !tenant_txn_commit(x, &s, &err));
	t0 = now_ms() - t0;
	tenant_db_quiesced(db, s->generation);
	return t0;
}

static void tenants_lookup(const struct tenant_set *s)
{
	static uint32_t vni[KEYS];
	static struct rwy_ip addr[KEYS];
	double by_vni, find, admit;
	struct tenant_at at;
	uint16_t rule;

	for (unsigned i = 0; i < KEYS; i++) {
		vni[i] = 10000 + 7 * (rnd() % TENANTS);
		addr[i] = ip4(0x0a000000 | rnd() >> 8);
	}
	CYCLES(by_vni, KEYS, sink += tenant_by_vni(s, vni[i])->index);
	CYCLES(find, KEYS, sink += tenant_find(tenant_by_vni(s, vni[i]), &addr[i]).side);
	keys_draw(10, false);
	for (unsigned i = 0; i < KEYS; i++)
		keys[i].src.b[13] = keys[i].src.b[14] = 0; /* in the first network, behind a VTEP */
	CYCLES(admit, KEYS,
	    sink += tenant_admits(tenant_by_vni(s, vni[i]), TENANT_VTEP, &keys[i], &at, &rule) + rule);
	printf("tenant of %d, drawn at random: by VNI %.0f, and an address in it %.0f, and admission with 10 "
	       "rules %.0f "
	       "cycles\n",
	    TENANTS, by_vni, find, admit);
}

static void tenants(void)
{
	struct tenant_limits lim = {
	    .tenants = TENANTS, .tunnels = 2, .capacity_Bps = {1000000000, 1000000000}};
	struct tenant_db *db = NULL;
	const struct tenant_set *s = NULL;
	double all = 1e18, same = 1e18, one = 1e18;
	uint64_t bytes = 0;

	rules_draw(10);
	memcpy(trule, rules, sizeof(trule));
	for (unsigned i = 0; i < 4; i++)
		tvtep[i] = ip4(0xc0000200 + i);
	tprefix[0] = (struct tenant_prefix){net4(0x0a000000, 16), {TENANT_VTEP, 0}};
	tprefix[1] = (struct tenant_prefix){net4(0x0a010000, 16), {TENANT_LAN, 0}};
	tprefix[2] = (struct tenant_prefix){net4(0x0a000000, 8), {TENANT_TUNNEL, 0}};
	tprefix[3] = (struct tenant_prefix){net4(0x0a800000, 9), {TENANT_TUNNEL, 1}};
	for (unsigned i = 0; i < ROUNDS; i++) {
		double t0;

		tenant_db_free(db);
		CHECK(!tenant_db_new(&db, &lim));
		t0 = now_ms();
		s = reload(db, 0);
		if (now_ms() - t0 < all)
			all = now_ms() - t0;
		tenant_db_quiesced(db, s->generation);
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		double t0 = now_ms();

		s = reload(db, 1);
		if (now_ms() - t0 < same)
			same = now_ms() - t0;
		tenant_db_quiesced(db, s->generation);
		t0 = one_change(db);
		one = t0 < one ? t0 : one;
	}
	s = tenant_db_current(db);
	for (uint32_t i = 1; i < s->top; i++)
		bytes += s->by_index[i]->bytes;
	printf("%d tenants (4 prefixes, 10 rules): built anew %.2f ms, reloaded with one changed %.2f ms, "
	       "one set %.3f "
	       "ms; %.1f KiB a tenant\n",
	    TENANTS, all, same, one, (double)bytes / TENANTS / 1024);
	tenants_lookup(s);
	tenant_db_free(db);
}

/* --- hosts behind VTEPs ----------------------------------------------------------------------------- */

static void vteps(void)
{
	struct vtep_cfg cfg;
	struct vtep_tab *t;
	static struct {
		struct rwy_ip host;
		uint32_t tenant;
	} k[KEYS];
	const uint8_t mac[6] = {2};
	struct rwy_ip v = ip4(0xc0000201);
	double find, learn;

	vtep_cfg_default(&cfg);
	CHECK(!vtep_new(&t, &cfg));
	for (uint32_t i = 0; i < cfg.entries; i++) {
		struct rwy_ip h = ip4(0x0a000000 | i / TENANTS);
		uint32_t tenant = 1 + i % TENANTS;

		CHECK(vtep_learn(t, tenant, &h, &v, mac, 0) == VTEP_NEW);
	}
	for (unsigned i = 0; i < KEYS; i++) {
		uint32_t e = rnd() % cfg.entries;

		k[i].host = ip4(0x0a000000 | e / TENANTS);
		k[i].tenant = 1 + e % TENANTS;
	}
	CYCLES(find, KEYS, sink += vtep_find(t, k[i].tenant, &k[i].host, 5)->mac[0]);
	CYCLES(learn, KEYS, sink += vtep_learn(t, k[i].tenant, &k[i].host, &v, mac, 5));
	printf("%u hosts of %d tenants, drawn at random: find %.0f, learned again %.0f cycles\n",
	    vtep_total(t), TENANTS, find, learn);
	vtep_free(t);
}

int main(void)
{
	packets(false, false);
	packets(true, false);
	packets(true, true);
	ecn();
	acl(10);
	acl(100);
	acl(1000);
	tenants();
	vteps();
	return sink == 1; /* so that nothing is optimized away */
}
