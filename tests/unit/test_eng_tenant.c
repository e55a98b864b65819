/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants with equal addresses, QPNs and PSNs: no packet of one reaches another, whatever a host
 * sends; they are added, changed and removed while the others continue.
 */
#include "tests/lib/eng_pair.h"
#include "engine/tenants.h"
#include "roce/wire.h"

#define A_QPN 0x21
#define B_QPN 0x42
#define FIRST 5

/* VNI 100 has index 1 at A and 2 at B; VNI 200 the reverse: indices are local to a gateway. */
static const struct {
	uint32_t vni, at[2];
} TEN[2] = {{100, {1, 2}}, {200, {2, 1}}};

static void set(unsigned at, uint32_t idx, struct eng_tenant_cfg c)
{
	uint8_t net[4] = {10, (uint8_t)(2 - at), 0, 0};
	struct eng_prefix p = {.addr = rwy_ip_from4(net), .len = 120};

	c.prefix = &p;
	c.prefixes = 1;
	if (!c.custody)
		c.custody = 1 << 20;
	assert_int_equal(eng_tenant_set(site[at].e, idx, &c, eng_now), 0);
}

static void both(void)
{
	for (unsigned t = 0; t < 2; t++)
		for (unsigned at = 0; at < 2; at++)
			set(at, TEN[t].at[at], (struct eng_tenant_cfg){.vni = TEN[t].vni});
}

static void a_sends(uint16_t tenant, roce_psn psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn,
	    .dqpn = B_QPN,
	    .ack_req = true,
	    .payload_len = 1024,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends_as(0, tenant, &m, 2);
}

static void b_answers(uint16_t tenant, roce_psn psn, uint8_t syndrome)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = A_QPN,
	    .syndrome = syndrome,
	    .msn = psn - FIRST + 1,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends_as(1, tenant, &m, 2);
}

static struct eng_tenant_stats stats(unsigned at, uint32_t idx)
{
	struct eng_tenant_stats s;

	assert_true(eng_tenant_stats(site[at].e, idx, &s));
	return s;
}

/* The first packet of a connection, and its answer. */
static void connect_as(unsigned t)
{
	unsigned before = site[1].of[TEN[t].at[1]].requests;

	a_sends((uint16_t)TEN[t].at[0], FIRST);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[1].of[TEN[t].at[1]].requests, before + 1);
	b_answers((uint16_t)TEN[t].at[1], FIRST, 0x1f);
	eng_pair_run(20 * RWY_MS);
}

static void test_same_addresses(void **state)
{
	both();
	connect_as(0);
	connect_as(1);
	assert_int_equal(site[0].of[1].acks, 1);
	assert_int_equal(site[0].of[2].acks, 1);
	assert_int_equal(site[0].of[0].acks + site[1].of[0].requests, 0);
	/* The plain LAN also has the same addresses. */
	a_sends(0, FIRST);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[1].of[0].requests, 1);
	/* One sends much: the other gets nothing of it. */
	for (unsigned i = 1; i <= 20; i++)
		a_sends(1, FIRST + i);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[1].of[2].requests, 21);
	assert_int_equal(site[1].of[1].requests, 1);
	assert_int_equal(stats(0, 1).accepted, 21);
	assert_int_equal(stats(0, 2).accepted, 1);
	assert_int_equal(stats(0, 2).custody, 0);
	assert_true(stats(0, 1).custody >= 20 * 1024);
	b_answers(2, FIRST + 20, 0x1f);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(stats(0, 1).custody, 0);
	assert_int_equal(stats(0, 1).delivered, 21);
	assert_int_equal(eng_flow_count(site[0].e), 3);
}

/* The far host refuses what was acknowledged, while the tenant is being removed. */
static void test_told_while_removed(void **state)
{
	both();
	connect_as(0);
	a_sends(1, FIRST + 1);
	eng_pair_run(20 * RWY_MS);
	b_answers(2, FIRST + 1, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS));
	assert_false(eng_tenant_remove(site[0].e, 1));
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(eng_counters(site[0].e)->conns_failed, 1);
	eng_pair_run(10 * RWY_SEC);
	assert_true(eng_tenant_remove(site[0].e, 1));
}

/* Another tenant's host answers, refuses and sends CNPs in a foreign connection: no effect. */
static void test_forged_answers(void **state)
{
	struct rc_mk cnp = {.opcode = ROCE_OPCODE_CNP,
	    .dqpn = A_QPN,
	    .payload_len = ROCE_CNP_PAD_LEN,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};
	uint64_t unknown;

	both();
	connect_as(0);
	a_sends(1, FIRST + 1);
	eng_pair_run(20 * RWY_MS);
	unknown = eng_counters(site[1].e)->drop_unknown_qpn;
	for (unsigned i = 0; i < 300; i++) {
		b_answers(1, FIRST + i % 4, i % 3 ? 0x1f : 0x63);
		b_answers(0, FIRST + i % 4, i % 3 ? 0x1f : 0x63);
		eng_host_sends_as(1, 1, &cnp, 2);
	}
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(eng_counters(site[1].e)->drop_unknown_qpn, unknown + 600);
	assert_int_equal(stats(0, 1).custody > 0, true);
	assert_int_equal(site[0].of[1].naks, 0);
	b_answers(2, FIRST + 1, 0x1f);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(stats(0, 1).custody, 0);
	assert_int_equal(eng_counters(site[1].e)->conns_failed, 0);
}

/* A tenant that does not exist at one end or the other. */
static void test_unknown(void **state)
{
	both();
	a_sends(5, FIRST);
	assert_int_equal(eng_counters(site[0].e)->drop_unknown_tenant, 1);
	set(0, 3, (struct eng_tenant_cfg){.vni = 300});
	a_sends(3, FIRST);
	eng_pair_run(50 * RWY_MS);
	assert_true(eng_counters(site[1].e)->drop_unknown_tenant > 0);
	for (unsigned i = 0; i < PAIR_TENANTS; i++)
		assert_int_equal(site[1].of[i].requests, 0);
}

/* The other gateway gets the tenant later: the host's next attempt succeeds. */
static void test_late(void **state)
{
	set(0, 3, (struct eng_tenant_cfg){.vni = 300});
	for (unsigned i = 0; i < 3; i++) {
		a_sends(3, FIRST);
		eng_pair_run(50 * RWY_MS);
		assert_int_equal(stats(0, 3).custody, 0);
	}
	assert_int_equal(site[1].of[4].requests, 0);
	set(1, 4, (struct eng_tenant_cfg){.vni = 300});
	a_sends(3, FIRST);
	eng_pair_run(50 * RWY_MS);
	assert_int_equal(site[1].of[4].requests, 1);
	b_answers(4, FIRST, 0x1f);
	eng_pair_run(50 * RWY_MS);
	assert_int_equal(site[0].of[3].acks, 1);
	assert_int_equal(eng_counters(site[0].e)->conns_failed, 0);
}

/* Best-effort packets name their tenant, too. */
static void test_datagrams(void **state)
{
	struct rc_mk m = {.opcode = ROCE_UD_SEND_ONLY,
	    .dqpn = 0x77,
	    .payload_len = 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	both();
	eng_host_sends_as(0, 1, &m, 2);
	eng_host_sends_as(0, 1, &m, 2);
	eng_host_sends_as(0, 2, &m, 2);
	eng_host_sends_as(0, 0, &m, 2);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[1].of[2].others, 2);
	assert_int_equal(site[1].of[1].others, 1);
	assert_int_equal(site[1].of[0].others, 1);
}

/* ACKs of a tenant over its share of memory are held back; another's are not. */
static void test_memory_share(void **state)
{
	both();
	set(0, 1, (struct eng_tenant_cfg){.vni = 100, .custody = 4096});
	connect_as(0);
	connect_as(1);
	site[0].of[1].acks = site[0].of[2].acks = 0;
	for (unsigned i = 1; i <= 20; i++) {
		a_sends(1, FIRST + i);
		a_sends(2, FIRST + i);
		eng_pair_run(RWY_MS);
	}
	assert_true(site[0].of[1].acks <= 5);
	assert_int_equal(site[0].of[2].acks, 20);
	assert_true(eng_counters(site[0].e)->ack_blocked > 0);
}

static void accounts(void)
{
	const struct eng *e = site[0].e;
	uint64_t common = 0, reserved = 0, all = 0;

	for (uint32_t i = 0; i < e->tenant_slots; i++) {
		if (!e->tenant[i])
			continue;
		if (e->tenant[i]->mem.held > e->tenant[i]->cfg.reserve)
			common += e->tenant[i]->mem.held - e->tenant[i]->cfg.reserve;
		reserved += e->tenant[i]->cfg.reserve;
		all += e->tenant[i]->mem.held;
	}
	assert_int_equal(e->common, common);
	assert_int_equal(e->reserved, reserved);
	assert_int_equal(e->mem.held, all);
}

/* Reserved memory stays free for its tenant; the rest is common. */
static void test_memory_reserved(void **state)
{
	uint64_t all = eng_custody_max(site[0].e);

	both();
	connect_as(0);
	connect_as(1);
	/* Memory for 20 packets for tenant 1; 5 remain for tenant 2. */
	set(0, 1, (struct eng_tenant_cfg){.vni = 100, .custody = UINT64_MAX, .reserve = 20 * 1100});
	set(0, 3, (struct eng_tenant_cfg){.vni = 300, .reserve = all - 25 * 1100});
	set(0, 2, (struct eng_tenant_cfg){.vni = 200, .custody = UINT64_MAX});
	site[0].of[1].acks = site[0].of[2].acks = 0;
	for (unsigned i = 1; i <= 15; i++) {
		a_sends(2, FIRST + i);
		eng_pair_run(RWY_MS);
	}
	assert_in_range(site[0].of[2].acks, 4, 7);
	for (unsigned i = 1; i <= 15; i++) {
		a_sends(1, FIRST + i);
		eng_pair_run(RWY_MS);
	}
	assert_int_equal(site[0].of[1].acks, 15);
	/* Its own, then the common part, of which nothing is left. */
	for (unsigned i = 16; i <= 30; i++) {
		a_sends(1, FIRST + i);
		eng_pair_run(RWY_MS);
	}
	assert_in_range(site[0].of[1].acks, 18, 23);
	accounts();
	set(0, 1, (struct eng_tenant_cfg){.vni = 100, .custody = UINT64_MAX, .reserve = 2000});
	accounts();
	set(0, 1, (struct eng_tenant_cfg){.vni = 100, .custody = UINT64_MAX, .reserve = 20 * 1100});
	accounts();
	/* A removed tenant releases its reserve. */
	assert_true(eng_tenant_remove(site[0].e, 3));
	a_sends(2, FIRST + 16);
	eng_pair_run(RWY_MS);
	assert_int_equal(site[0].of[2].ack_psn, FIRST + 16);
	/* All delivered: no memory is accounted for. */
	for (unsigned i = 0; i < 10; i++) { /* as many as the host received each time */
		b_answers(1, site[1].of[1].psn, 0x1f);
		b_answers(2, site[1].of[2].psn, 0x1f);
		eng_pair_run(20 * RWY_MS);
	}
	assert_int_equal(stats(0, 1).custody + stats(0, 2).custody, 0);
	accounts();
	set(0, 1, (struct eng_tenant_cfg){.vni = 100, .reserve = all - 2200});
	site[0].of[2].acks = 0;
	for (unsigned i = 17; i <= 30; i++) {
		a_sends(2, FIRST + i);
		eng_pair_run(RWY_MS);
	}
	assert_in_range(site[0].of[2].acks, 1, 3);
	assert_false(eng_tenant_remove(site[0].e, 2));
	accounts();
}

/* VNIs that are added and removed for long: look-ups equal those in a list. */
static void test_many_vnis(void **state)
{
	enum { N = 600, STEPS = 20000 };
	static uint32_t vni[N];
	struct eng *e = site[0].e;
	uint32_t s = 1;

	memset(vni, 0, sizeof(vni));
	for (unsigned i = 0; i < STEPS; i++) {
		uint32_t idx, want, has = 0;
		int r;

		s = s * 1664525 + 1013904223;
		idx = 1 + (s >> 8) % (N - 1);
		s = s * 1664525 + 1013904223;
		want = 1 + (s >> 8) % 900;
		if (s >> 30 == 0) {
			assert_true(eng_tenant_remove(e, idx));
			vni[idx] = 0;
			continue;
		}
		for (uint32_t k = 1; k < N; k++)
			has = vni[k] == want ? k : has;
		assert_int_equal(eng_tenant_by_vni(e, want), has ? (int)has : -1);
		r = eng_tenant_set(e, idx, &(struct eng_tenant_cfg){.vni = want}, eng_now);
		assert_int_equal(r, has && has != idx ? RWY_EINVAL : 0);
		if (!r)
			vni[idx] = want;
		assert_int_equal(eng_tenant_by_vni(e, want), has && r ? has : idx);
	}
}

/* A tenant's host with invented QPNs uses its tenant's places only. */
static void test_places(void **state)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = FIRST,
	    .ack_req = true,
	    .payload_len = 64,
	    .src = {10, 1, 0, 9},
	    .dst = {10, 2, 0, 3}};

	both();
	set(0, 1, (struct eng_tenant_cfg){.vni = 100, .half_open_max = 10, .flows_max = 30});
	for (unsigned i = 0; i < 3 * HALF_MAX; i++) {
		m.dqpn = 0x1000 + i;
		eng_host_sends_as(0, 1, &m, 2);
	}
	/* The last places are for other hosts of the tenant. */
	assert_int_equal(stats(0, 1).flows, 8);
	assert_int_equal(eng_counters(site[0].e)->drop_half_open, 3 * HALF_MAX - 8);
	connect_as(1);
	assert_int_equal(site[0].of[2].acks, 1);
	/* Connections that the peer opens count as well. */
	set(0, 2, (struct eng_tenant_cfg){.vni = 200, .flows_max = 5});
	memcpy(m.src, (uint8_t[]){10, 2, 0, 9}, 4);
	memcpy(m.dst, (uint8_t[]){10, 1, 0, 3}, 4);
	for (unsigned i = 0; i < 20; i++) {
		m.dqpn = 0x2000 + i;
		eng_host_sends_as(1, 1, &m, 2);
	}
	eng_pair_run(50 * RWY_MS);
	assert_int_equal(stats(0, 2).flows, 5);
	assert_true(eng_counters(site[0].e)->drop_flow_table_full > 0);
}

/* Changed at run time; when removed, only its flows are forgotten; the number is free again. */
static void test_live(void **state)
{
	both();
	connect_as(0);
	connect_as(1);
	set(0, 1,
	    (struct eng_tenant_cfg){
	        .vni = 100, .ack_mode = ENG_ACK_END, .share = {.weight = 10, .guarantee_Bps = 1000000}});
	site[0].of[1].acks = 0;
	a_sends(1, FIRST + 1);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].of[1].acks, 0); /* not before the host has it */
	b_answers(2, FIRST + 1, 0x1f);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].of[1].acks, 1);

	assert_false(eng_tenant_remove(site[0].e, 1));
	a_sends(1, FIRST + 2);
	assert_int_equal(eng_counters(site[0].e)->drop_unknown_tenant, 1);
	assert_int_equal(
	    eng_tenant_set(site[0].e, 1, &(struct eng_tenant_cfg){.vni = 100}, eng_now), RWY_EAGAIN);
	eng_pair_run(RWY_SEC);
	assert_true(eng_tenant_remove(site[0].e, 1));
	a_sends(2, FIRST + 1);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[1].of[1].psn, FIRST + 1);
	set(0, 1, (struct eng_tenant_cfg){.vni = 101});
	assert_int_equal(stats(0, 1).flows, 0);
}

/* Requests accepted in one ack mode are acknowledged in any other, at the latest at delivery. */
static void test_ack_mode(void **state)
{
	static const enum eng_ack_mode modes[] = {ENG_ACK_END, ENG_ACK_NEAR, ENG_ACK_FAR, ENG_ACK_END};
	roce_psn psn = FIRST;

	both();
	connect_as(0);
	for (unsigned i = 0; i + 1 < sizeof(modes) / sizeof(*modes); i++) {
		set(0, 1, (struct eng_tenant_cfg){.vni = 100, .ack_mode = modes[i], .custody = 1500});
		site[0].of[1].acks = 0;
		a_sends(1, ++psn);
		a_sends(1, ++psn);
		set(0, 1, (struct eng_tenant_cfg){.vni = 100, .ack_mode = modes[i + 1], .custody = 1500});
		eng_pair_run(20 * RWY_MS);
		b_answers(2, psn, 0x1f);
		eng_pair_run(20 * RWY_MS);
		assert_true(site[0].of[1].acks > 0);
		assert_int_equal(site[0].of[1].ack_psn, psn);
		assert_int_equal(stats(0, 1).custody, 0);
	}
}

static void test_arguments(void **state)
{
	struct eng_prefix p = {.tunnel = 1};
	struct eng *e = site[0].e;

	both();
	assert_int_equal(eng_tenant_set(e, 0, &(struct eng_tenant_cfg){.vni = 9}, eng_now), RWY_EINVAL);
	assert_int_equal(eng_tenant_set(e, 3, &(struct eng_tenant_cfg){.vni = 0}, eng_now), RWY_EINVAL);
	assert_int_equal(eng_tenant_set(e, 3, &(struct eng_tenant_cfg){.vni = 1 << 24}, eng_now), RWY_EINVAL);
	assert_int_equal(eng_tenant_set(e, 3, &(struct eng_tenant_cfg){.vni = 100}, eng_now), RWY_EINVAL);
	assert_int_equal(
	    eng_tenant_set(e, ENG_TENANTS_MAX, &(struct eng_tenant_cfg){.vni = 9}, eng_now), RWY_EINVAL);
	assert_int_equal(
	    eng_tenant_set(e, 3, &(struct eng_tenant_cfg){.vni = 9, .prefix = &p, .prefixes = 1}, eng_now),
	    RWY_EINVAL);
	assert_int_equal(
	    eng_tenant_set(e, 3, &(struct eng_tenant_cfg){.vni = 9, .share = {.limit_Bps = 5000}}, eng_now),
	    RWY_EINVAL);
	assert_true(eng_tenant_remove(e, 3));
	assert_true(eng_tenant_remove(e, 60000));
	assert_true(eng_tenant_remove(e, 0)); /* the plain LAN stays */
	a_sends(0, FIRST);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[1].of[0].requests, 1);
	/* Many, in random order. */
	for (uint32_t i = 4000; i > 3; i--)
		set(0, i, (struct eng_tenant_cfg){.vni = 1000 + i, .share = {.weight = 1}});
	for (uint32_t i = 4; i <= 4000; i++)
		assert_true(eng_tenant_remove(e, i));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, eng_pair_set_up, eng_pair_tear_down)
	const struct CMUnitTest tests[] = {
	    T(test_same_addresses),
	    T(test_told_while_removed),
	    T(test_forged_answers),
	    T(test_unknown),
	    T(test_late),
	    T(test_datagrams),
	    T(test_memory_share),
	    T(test_memory_reserved),
	    T(test_many_vnis),
	    T(test_places),
	    T(test_live),
	    T(test_ack_mode),
	    T(test_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
