/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload/sync.h on a device that refuses and fails at random. After every single operation packets
 * are checked against the policy in force (during a change: the old one, then both, then the new
 * one): hardware drops and forwards nothing that software would not have. When the device works
 * again every rule is in its place.
 */
#include <stdio.h>

#include "tests/lib/long_case.h"
#include "tests/lib/roce_pkt.h"

#include "tests/lib/offload_world.h"

#define LIVES   60
#define CHANGES 40
#define PROBES  12

struct device {
	struct offload_rule rule[OW_DEVICE];
	const struct offload_rule *in[OW_DEVICE];
	uint32_t handle[OW_DEVICE];
	enum offload_where where[OW_DEVICE];
	unsigned hw_fails; /* percent that only the kernel accepts */
	unsigned n, room;
	unsigned add_fails, del_fails, flush_fails; /* percent */
	const struct tenant_set *now, *next;        /* policies in force; next: NULL */
	bool blind;                                 /* changed by another process: not checked */
	uint32_t seed;
	uint64_t ops, drops, forwards, failures, stuck;
};

/* A packet meets the rules in hardware first; the kernel has all of them. */
static void probe_one(struct device *d, const struct tenant_set *s, const struct ow_pkt *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < d->n; i++)
		if (d->where[i] == OFFLOAD_HARDWARE)
			d->in[n++] = &d->rule[i];
	ow_check(s, d->in, n, p, &d->drops, &d->forwards);
	if (n == d->n)
		return;
	for (n = 0; n < d->n; n++)
		d->in[n] = &d->rule[n];
	ow_check(s, d->in, n, p, &d->drops, &d->forwards);
}

static void probe(struct device *d)
{
	for (unsigned k = 0; k < PROBES && !d->blind; k++) {
		struct ow_pkt p;

		ow_pkt_rand(&p, k & 1 && d->next ? d->next : d->now, &d->seed);
		probe_one(d, d->now, &p);
		if (d->next)
			probe_one(d, d->next, &p);
	}
	d->ops++;
}

static bool fails(struct device *d, unsigned percent)
{
	bool f = ow_rand(&d->seed) % 100 < percent;

	d->failures += f;
	return f;
}

static int dev_find(const struct device *d, uint32_t handle)
{
	for (unsigned i = 0; i < d->n; i++)
		if (d->handle[i] == handle)
			return (int)i;
	return -1;
}

static int dev_add(
    void *ctx, const struct offload_rule *r, uint32_t handle, enum offload_where *where, char *why)
{
	struct device *d = ctx;

	assert_true(handle && dev_find(d, handle) < 0 && r->act != OFFLOAD_NOTHING);
	if (r->act == OFFLOAD_DROP && r->match.family == 6 && (r->match.sport_mask || r->match.opcode_mask)) {
		snprintf(why, OFFLOAD_WHY, "sees behind extension headers");
		return RWY_EINVAL;
	}
	for (unsigned i = 0; i < d->n; i++)
		if (offload_rule_same(&d->rule[i], r)) {
			snprintf(why, OFFLOAD_WHY, "there is one like it");
			return RWY_EAGAIN;
		}
	if (d->n == d->room || fails(d, d->add_fails)) {
		snprintf(why, OFFLOAD_WHY, "no room");
		return RWY_ENOMEM;
	}
	d->rule[d->n] = *r;
	if (ow_rand(&d->seed) % 100 < d->hw_fails)
		*where = OFFLOAD_KERNEL;
	d->where[d->n] = *where;
	d->handle[d->n++] = handle;
	probe(d);
	return 0;
}

static void take_out(struct device *d, unsigned i)
{
	d->n--;
	d->rule[i] = d->rule[d->n];
	d->handle[i] = d->handle[d->n];
	d->where[i] = d->where[d->n];
}

static int dev_del(void *ctx, const struct offload_rule *r, uint32_t handle)
{
	struct device *d = ctx;
	int i = dev_find(d, handle);

	if (i < 0)
		return RWY_ENOENT;
	assert_true(offload_rule_same(&d->rule[i], r));
	if (fails(d, d->del_fails))
		return RWY_EINVAL;
	take_out(d, (unsigned)i);
	probe(d);
	return 0;
}

static int dev_flush(void *ctx)
{
	struct device *d = ctx;

	if (fails(d, d->flush_fails))
		return RWY_EINVAL;
	d->n = 0;
	return 0;
}

static int dev_read(void *ctx, struct offload_sync *s)
{
	struct device *d = ctx;

	for (unsigned i = 0; i < d->n; i++)
		offload_sync_seen(s, d->handle[i], d->where[i], true, d->handle[i], 2);
	offload_sync_seen(s, 0, OFFLOAD_HARDWARE, true, 1, 2);
	offload_sync_seen(s, UINT32_MAX, OFFLOAD_HARDWARE, true, 1, 2);
	return 0;
}

static const struct offload_ops ops = {dev_add, dev_del, dev_flush, dev_read};

/* --- random changes --------------------------------------------------------------------------- */

struct life {
	struct tenant_db *db;
	struct offload_sync *s;
	struct device d;
	bool there[OW_TENANTS];
};

static const struct tenant_set *change(struct life *l)
{
	const struct tenant_set *next;
	struct tenant_txn *x;
	struct tenant_err err;

	for (uint32_t i = 1; i < 1024; i++)
		(void)tenant_db_release(l->db, i);
	assert_int_equal(tenant_txn_begin(&x, l->db), 0);
	for (unsigned k = 0; k < 1 + ow_rand(&l->d.seed) % 2; k++) {
		unsigned i = ow_rand(&l->d.seed) % OW_TENANTS;
		struct ow_tenant t;

		ow_tenant_rand(&t, i, false, &l->d.seed);
		if (!l->there[i]) {
			l->there[i] = !tenant_txn_add(x, &t.cfg, &err);
			if (!l->there[i])
				assert_int_equal(err.why, TENANT_E_BUSY);
		} else if (ow_rand(&l->d.seed) % 4) {
			assert_int_equal(tenant_txn_set(x, &t.cfg, &err), 0);
		} else {
			assert_int_equal(tenant_txn_del(x, t.cfg.name, &err), 0);
			l->there[i] = false;
		}
	}
	assert_int_equal(tenant_txn_commit(x, &next, &err), 0);
	return next;
}

static void refused(struct life *l)
{
	l->d.next = NULL;
	(void)!offload_sync_prepare(l->s, l->d.now);
	probe(&l->d);
	offload_sync_commit(l->s);
	probe(&l->d);
}

static void step(struct life *l)
{
	const struct tenant_set *next = change(l);

	if (offload_sync_prepare(l->s, next) != 0) {
		l->d.stuck++;
		refused(l);
		return;
	}
	l->d.next = next; /* published, but not all workers run it: both hold */
	probe(&l->d);
	if (ow_rand(&l->d.seed) % 8 == 0) { /* a worker did not run it */
		refused(l);
		return;
	}
	l->d.now = next;
	l->d.next = NULL;
	(void)tenant_db_quiesced(l->db, next->generation);
	offload_sync_commit(l->s);
	probe(&l->d);
}

/* A reset, or a rule removed by hand. */
static void accident(struct life *l)
{
	struct device *d = &l->d;

	switch (ow_rand(&d->seed) % 12) {
	case 0:
		d->n = 0;
		offload_sync_lost(l->s, "reset");
		break;
	case 1:
		if (!d->n)
			break;
		take_out(d, ow_rand(&d->seed) % d->n);
		d->blind = true; /* unknown until it is read */
		if (offload_sync_read(l->s) >= 0)
			d->blind = false;
		break;
	case 2:
		for (unsigned i = 0; i < d->n; i++) /* the driver returns some to the kernel */
			if (!(ow_rand(&d->seed) % 8))
				d->where[i] = OFFLOAD_KERNEL;
		d->blind = true;
		if (offload_sync_read(l->s) >= 0)
			d->blind = false;
		break;
	case 3:
		offload_sync_retry(l->s, 1 + ow_rand(&d->seed) % 50);
		break;
	default:
		return;
	}
	probe(d);
}

static void count_out(void *arg, const struct offload_entry *e)
{
	unsigned *out = arg;

	assert_false(e->stale);
	assert_int_equal(!e->why, e->where != OFFLOAD_SOFTWARE);
	if (e->where == OFFLOAD_SOFTWARE && e->rule.act != OFFLOAD_NOTHING && !strstr(e->why, "extension"))
		++*out;
}

static void works_again(struct life *l)
{
	struct offload_counts c;
	struct offload_list want = {0};
	struct offload_cfg cfg;
	unsigned out = 0, can = 0;

	l->d.add_fails = l->d.del_fails = l->d.flush_fails = 0;
	l->d.room = OW_DEVICE;
	assert_int_equal(offload_sync_read(l->s) < 0, 0);
	l->d.blind = false;
	assert_int_equal(offload_sync_prepare(l->s, l->d.now), 0);
	offload_sync_commit(l->s);
	offload_sync_retry(l->s, UINT32_MAX);
	probe(&l->d);
	ow_cfg(&cfg);
	assert_int_equal(offload_common(&want, &cfg, l->d.now), 0);
	for (uint32_t i = 1; i < l->d.now->top; i++)
		if (tenant_by_index(l->d.now, i))
			assert_int_equal(offload_tenant(&want, &cfg, tenant_by_index(l->d.now, i)), 0);
	for (unsigned i = 0; i < want.n; i++)
		for (unsigned k = 0; k < l->d.n; k++)
			can += want.rule[i].act && offload_rule_same(&want.rule[i], &l->d.rule[k]);
	assert_int_equal(can, l->d.n); /* and no other rule */
	offload_sync_each(l->s, count_out, &out);
	assert_int_equal(out, 0); /* and nothing is missing */
	offload_sync_count(l->s, &c);
	assert_int_equal(c.hardware + c.kernel, l->d.n);
	assert_int_equal(c.hardware + c.kernel + c.software, want.n);
	offload_list_fini(&want);
}

static void live(unsigned fail, uint32_t seed, struct device *sum)
{
	struct tenant_limits lim = {.tenants = OW_TENANTS, .tunnels = 1};
	struct life *l = calloc(1, sizeof(*l));
	struct offload_cfg cfg;

	ow_cfg(&cfg);
	l->d.seed = seed;
	l->d.room = OW_DEVICE;
	l->d.n = 1; /* of a predecessor */
	assert_int_equal(tenant_db_new(&l->db, &lim), 0);
	l->d.now = tenant_db_current(l->db);
	assert_int_equal(offload_sync_new(&l->s, &cfg, &ops, &l->d), 0);
	assert_int_equal(l->d.n, 0);
	l->d.add_fails = fail;
	l->d.del_fails = fail / 2;
	l->d.flush_fails = fail ? 50 : 0;
	l->d.hw_fails = fail / 4;
	if (fail)
		l->d.room = 40 + ow_rand(&l->d.seed) % 400;
	for (unsigned i = 0; i < CHANGES; i++) {
		step(l);
		if (fail)
			accident(l);
		if (i % 16 == 15)
			works_again(l);
		l->d.add_fails = fail;
		l->d.del_fails = fail / 2;
		l->d.flush_fails = fail ? 50 : 0;
	}
	works_again(l);
	sum->ops += l->d.ops;
	sum->drops += l->d.drops;
	sum->forwards += l->d.forwards;
	sum->failures += l->d.failures;
	sum->stuck += l->d.stuck;
	assert_int_equal(offload_sync_free(l->s), 0);
	assert_int_equal(l->d.n, 0);
	tenant_db_free(l->db);
	free(l);
}

static void run(unsigned fail)
{
	static struct device sum;

	memset(&sum, 0, sizeof(sum));
	for (unsigned i = 0; i < long_rounds(LIVES); i++)
		live(fail, 1 + i, &sum);
	printf("%llu operations, %llu failed, %llu changes refused; %llu packets dropped, %llu forwarded\n",
	    (unsigned long long)sum.ops, (unsigned long long)sum.failures, (unsigned long long)sum.stuck,
	    (unsigned long long)sum.drops, (unsigned long long)sum.forwards);
	assert_true(sum.drops > 10000 && sum.forwards > 100);
	assert_int_equal(!fail, !sum.stuck);
}

static void test_works(void **state)
{
	run(0);
}

static void test_fails(void **state)
{
	run(10);
}

static void test_fails_often(void **state)
{
	run(40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_works),
	    cmocka_unit_test(test_fails),
	    cmocka_unit_test(test_fails_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
