/* SPDX-License-Identifier: Apache-2.0 */
/* The lab of the siblings' tests: configuration, the list, packets. It has no test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/control/change_lock.h"
#include "gateway/datapath/sibling_seal.h"
#include "rwy/endian.h"
#include "tests/component/sibling/lab.h"

#define SPORT 0xc123

struct sibling_lab sl;
const uint8_t sl_host_mac[6] = {0x02, 0xaa, 0, 0, 0, 1};
const uint8_t sl_mac[2][6] = {{0x02, 0xbb, 0, 0, 0, 2}, {0x02, 0xbb, 0, 0, 0, 3}};
static uint8_t key[BASE_SIPHASH_KEY];

/* --- configuration ---------------------------------------------------------------------------- */

static struct rwy_ip addr(enum fp_site s, uint8_t n, bool v6)
{
	if (v6)
		return (struct rwy_ip){{0xfd, 0, [3] = (uint8_t)(s + 1), [15] = n}};
	return ov_ip4(10, (uint8_t)(s + 1), 0, n);
}

struct rwy_ip sl_sibling(unsigned i)
{
	return addr(FP_A, (uint8_t)(200 + i), false);
}

static void site_key(struct conf *c)
{
	int fd;

	sl.sealed = true;
	snprintf(c->site_key, sizeof(c->site_key), "/tmp/test_gw_sibling.XXXXXX");
	fd = mkstemp(c->site_key);
	assert_true(fd >= 0);
	for (unsigned i = 0; i < sizeof(key); i++) {
		key[i] = (uint8_t)(0xa0 + i);
		dprintf(fd, i % 2 ? "%02X" : "%02x", key[i]);
	}
	dprintf(fd, "\n");
	close(fd);
}

static void conf(struct conf *c, enum fp_site s)
{
	c->weight = 1;
	snprintf(c->tunnel[0].peer, CONF_NAME, "%s", s == FP_A ? "b1" : "a1");
	c->tunnel[0].weight = 2;
	c->tunnel[0].prefix[1] = (struct conf_prefix){.addr = addr(!s, 0, true), .len = 64};
	c->tunnel[0].prefixes = 2;
	if (s != FP_A)
		return;
	if (c->workers == 2)
		site_key(c);
	c->siblings = 1;
	snprintf(c->sibling[0].name, CONF_NAME, "a2");
	c->sibling[0].address = sl_sibling(SL_A2);
	c->sibling[0].weight = 3;
}

static void hops(struct fp_gw *g, enum fp_site s)
{
	for (uint8_t n = 2; n < 2 + SL_HOSTS; n++)
		for (unsigned v6 = 0; v6 < 2; v6++)
			fp_neighbour(g, FP_LAN, addr(s, n, v6), sl_host_mac);
	if (s == FP_A)
		fp_neighbour(g, FP_LAN, sl_sibling(SL_A2), sl_mac[SL_A2]);
}

/* --- the list --------------------------------------------------------------------------------- */

static void *work(void *arg)
{
	struct sl_job *j = arg;

	gw_change_lock();
	j->rc = gw_siblings_set(&sl.ov.fp.gw[FP_A].app, j->say);
	gw_change_unlock();
	atomic_store(&j->done, true);
	return NULL;
}

void sl_run(void *(*fn)(void *), struct sl_job *j)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, fn, j), 0);
	while (!atomic_load(&j->done))
		ov_wait(&sl.ov);
	pthread_join(t, NULL);
	assert_int_equal(j->rc, 0);
}

void sl_say(const struct sl_said *x)
{
	struct gw_sibling *sib = calloc(2, sizeof(*sib));
	struct gw_sibling_pair pair[2 * SL_HOSTS + 1];
	struct gw_siblings_say s = {.sib = sib, .n = x->no3 ? 1 : 2, .pair = pair};
	struct sl_job j = {.say = &s};

	assert_non_null(sib);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(sib[i].name, CONF_NAME, "a%u", i + 2);
		sib[i].addr = sl_sibling(i);
		sib[i].lost = i ? x->lost3 : x->lost2;
		sib[i].tunnels = x->weight ? 1 : 0;
		snprintf(sib[i].tunnel[0].peer, CONF_NAME, "b1");
		sib[i].tunnel[0].weight = i ? 0 : x->weight;
	}
	for (unsigned n = 0; x->all && n < SL_HOSTS; n++)
		for (unsigned v6 = 0; v6 < 2 && x->pair[n] > -2; v6++)
			pair[s.pairs++] = (struct gw_sibling_pair){.local = addr(FP_A, (uint8_t)(n + 2), v6),
			    .remote = addr(FP_B, 2, v6),
			    .who = x->pair[n]};
	if (x->dqpn)
		pair[s.pairs++] = (struct gw_sibling_pair){.local = addr(FP_A, 2, false),
		    .remote = addr(FP_B, 2, false),
		    .who = x->who,
		    .dqpn = x->dqpn};
	sl_run(work, &j);
	free(sib);
}

void sl_say_all(int who)
{
	struct sl_said x = {.all = true, .weight = 1};

	for (unsigned n = 0; n < SL_HOSTS; n++)
		x.pair[n] = who;
	sl_say(&x);
}

/* --- packets ---------------------------------------------------------------------------------- */

struct fr_roce sl_packet(uint8_t n, uint32_t qpn, uint32_t psn, bool v6)
{
	return (struct fr_roce){.src = addr(FP_A, (uint8_t)(n + 2), v6),
	    .dst = addr(FP_B, 2, v6),
	    .sport = SPORT,
	    .dqpn = qpn,
	    .psn = psn,
	    .payload = 256,
	    .fill = 0x5a};
}

void sl_inject(enum fp_site s, const uint8_t smac[6], const uint8_t *ip, uint32_t len)
{
	uint8_t eth[FR_MAX];

	len =
	    fr_eth(eth, sl.ov.fp.gw[s].port[FP_LAN].mac, smac, 0, ip[0] >> 4 == 4 ? 0x0800 : 0x86dd, ip, len);
	ov_inject(&sl.ov, s, eth, len);
}

void sl_send_write(uint8_t n, uint32_t qpn, uint32_t psn)
{
	const struct fr_roce r = sl_packet(n, qpn, psn, false);
	uint8_t ip[FR_MAX];

	sl_inject(FP_A, sl_host_mac, ip, fr_write(ip, &r));
}

void sl_seal(uint8_t *ip, uint32_t len)
{
	const bool v4 = ip[0] >> 4 == 4;
	struct gw_pkt k = {.ip_len = len};

	assert_true(v4 ? gw_pkt_ip4(ip, len, &k) : gw_pkt_ip6(ip, len, &k));
	gw_seal_make(ip + len, key, &k, ip, ip + k.hdr + UDP_LEN);
}

bool sl_next(enum fp_site s, unsigned ms, uint8_t buf[FR_MAX], struct fr_seen *f)
{
	uint32_t len;

	if (!ov_receive(&sl.ov, s, buf, &len, ms))
		return false;
	assert_true(fr_read(buf, len, f));
	return true;
}

uint32_t sl_qpn(const struct fr_seen *f)
{
	return rwy_get24(f->net + (f->net[0] >> 4 == 4 ? 20 : 40) + 8 + 5);
}

void sl_expect_handed(unsigned who, uint32_t qpn)
{
	uint8_t buf[FR_MAX];
	struct fr_seen f;

	do
		assert_true(sl_next(FP_A, SL_WAIT, buf, &f));
	while (!memcmp(f.eth, sl_host_mac, 6)); /* skip answers to flows of this gateway */
	assert_memory_equal(f.eth, sl_mac[who], 6);
	assert_memory_equal(f.eth + 6, sl.ov.fp.gw[FP_A].port[FP_LAN].mac, 6);
	assert_int_equal(sl_qpn(&f), qpn);
}

void sl_expect_carried(uint32_t qpn)
{
	uint8_t buf[FR_MAX];
	struct fr_seen f;

	do
		assert_true(sl_next(FP_B, SL_WAIT, buf, &f));
	while (sl_qpn(&f) != qpn); /* skip retransmissions: no host answers there */
	assert_memory_equal(f.eth, sl_host_mac, 6);
	while (sl_next(FP_A, 0, buf, &f))
		assert_memory_equal(f.eth, sl_host_mac, 6);
}

uint32_t sl_fresh(void)
{
	static uint32_t qpn = 0x100;

	return qpn += 16;
}

struct gw_counters sl_at_a(void)
{
	return ov_counters(&sl.ov, FP_A);
}

/* --- program ---------------------------------------------------------------------------------- */

int sl_main(int argc, char **argv, int (*tests)(void))
{
	int rc;

	ov_conf_more = conf;
	ov_hops_more = hops;
	rc = ov_main(argc, argv, &sl.ov, tests);
	if (sl.sealed)
		unlink(sl.ov.fp.gw[FP_A].conf.site_key);
	return rc;
}
