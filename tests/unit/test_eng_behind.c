/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READs behind WRITEs on a slow WAN: a host's timer runs until the READ is answered, and that is
 * only after all WRITEs before it have crossed. Two engines, and model hosts that CM connected.
 */
#include "tests/lib/eng_pair.h"

#include "cc/cc.h"
#include "tests/lib/eng_cm.h"
#include "tests/lib/rc_host.h"

#define RATE      12500000 /* of the WAN, bytes a second */
#define DELAY     (10 * RWY_MS)
#define MEM       (1u << 20)
#define WRITE     (1u << 20)
#define LAN_BURST 1200 /* packets of a host in a millisecond: 10 Gbit/s */
#define RETRY     6
#define RKEY      7

static struct rc_host host[2];
static uint8_t *mem[2];
static struct {
	unsigned writes, reads, errors;
} done;

static void completed(void *ctx, const struct rc_comp *c)
{
	if (c->status != RC_OK)
		done.errors++;
	else if (c->id)
		done.reads++;
	else
		done.writes++;
}

static void heard(struct eng_site *s, const struct roce_pkt *pkt)
{
	if (pkt->info->transport == ROCE_RC)
		rc_host_packet(&host[s->idx], pkt, eng_now);
}

static void host_begin(unsigned i, rwy_dur timeout)
{
	struct rc_host_cfg c;

	rc_host_cfg_default(&c);
	memcpy(c.ip, (uint8_t[]){10, (uint8_t)(1 + i), 0, 3}, 4);
	memcpy(c.peer_ip, (uint8_t[]){10, (uint8_t)(2 - i), 0, 3}, 4);
	c.peer_qpn = i ? CM_QPN_A : CM_QPN_B;
	c.mtu = CM_MTU;
	c.sq_psn = i ? CM_PSN_B : CM_PSN_A;
	c.rq_psn = i ? CM_PSN_A : CM_PSN_B;
	c.rkey = RKEY;
	c.timeout = timeout;
	c.retry = RETRY;
	c.done = completed;
	mem[i] = calloc(1, MEM);
	assert_non_null(mem[i]);
	rc_host_init(&host[i], &c, mem[i], MEM);
	site[i].heard = heard;
}

static void run(rwy_dur time)
{
	static uint8_t out[RC_PKT_MAX];

	for (rwy_time end = eng_now + time; eng_now < end; eng_pair_run(RWY_MS))
		for (unsigned i = 0; i < 2; i++) {
			uint32_t len;

			rc_host_tick(&host[i], eng_now);
			for (unsigned n = 0; n < LAN_BURST && (len = rc_host_output(&host[i], out, eng_now));
			     n++)
				eng_host_sends_bytes(i, out, len);
		}
}

static void post(enum rc_wr_op op, uint32_t len)
{
	rc_host_post(&host[0], &(struct rc_wr){.id = op == RC_READ, .op = op, .len = len, .rkey = RKEY});
}

/* Both hosts, with this timeout of A; connected by CM, or found out about by their packets. */
static void begin(bool cm, uint8_t timeout)
{
	memset(&done, 0, sizeof(done));
	for (unsigned i = 0; i < 2; i++)
		host_begin(i, (rwy_dur)4096 << timeout);
	eng_pair_delay(DELAY);
	if (cm)
		eng_cm_connect(0, RETRY, 7, timeout);
	run(100 * RWY_MS);
}

/* Posts WRITEs of n times 1 MiB and returns the time that they take to be delivered. */
static rwy_dur write_all(unsigned n)
{
	rwy_time at = eng_now;

	for (unsigned i = 0; i < n; i++)
		post(RC_WRITE, WRITE);
	do
		run(RWY_MS);
	while ((!rc_host_idle(&host[0]) || eng_custody_bytes(site[0].e)) && eng_now < at + 60 * RWY_SEC);
	assert_int_equal(done.errors, 0);
	return eng_now - at;
}

static void assert_read(void)
{
	unsigned reads = done.reads;

	post(RC_READ, 4096);
	run(5 * RWY_SEC);
	assert_int_equal(done.errors, 0);
	assert_int_equal(done.reads, reads + 1);
}

/* CM says that A may send READs, and how long it waits: 0.5 s, and 24 MiB take 2 s. */
static void test_cm(void **state)
{
	begin(true, 14);
	for (unsigned i = 0; i < 24; i++)
		post(RC_WRITE, WRITE);
	run(300 * RWY_MS);
	assert_true(eng_counters(site[0].e)->ack_for_read);
	assert_string_equal(eng_pair_flow(0).limit, "read");
	assert_true(eng_custody_bytes(site[0].e) < RATE / 2);
	assert_read();
}

/* A has repeated a READ before its answer could be here, and gives up after 117 ms, as NICs do. */
static void test_nic(void **state)
{
	begin(false, 12);
	assert_read();
	for (unsigned i = 0; i < 24; i++)
		post(RC_WRITE, WRITE);
	assert_read();
	assert_true(eng_counters(site[0].e)->ack_for_read);
}

/* The path stays full: it takes no longer than without READs, when 24 MiB are acknowledged at once. */
static void test_no_slower(void **state)
{
	rwy_dur without, with;

	begin(false, 12);
	write_all(1);
	without = write_all(24);
	assert_int_equal(eng_counters(site[0].e)->ack_for_read, 0);
	assert_read();
	with = write_all(24);
	assert_true(eng_counters(site[0].e)->ack_for_read);
	assert_in_range(with, without * 9 / 10, without * 105 / 100);
}

/* A host that only writes is acknowledged at once. */
static void test_only_writes(void **state)
{
	begin(false, 14);
	for (unsigned i = 0; i < 24; i++)
		post(RC_WRITE, WRITE);
	run(300 * RWY_MS);
	assert_int_equal(done.writes, 24);
	assert_int_equal(eng_counters(site[0].e)->ack_for_read, 0);
}

static void tune(struct eng_cfg *c)
{
	c->tunnel[0].wan.cc = &cc_fixed;
	c->tunnel[0].wan.cc_cfg.rate_Bps = RATE;
}

static int set_up(void **state)
{
	int rc;

	eng_pair_tune = tune;
	rc = eng_pair_set_up(state);
	eng_pair_tune = NULL;
	return rc;
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		rc_host_fini(&host[i]);
		free(mem[i]);
	}
	return eng_pair_tear_down(state);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
	const struct CMUnitTest tests[] = {T(test_cm), T(test_nic), T(test_no_slower), T(test_only_writes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
