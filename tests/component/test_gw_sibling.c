/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Complete gateways (ov_lab.h, with one and with two workers) with siblings: site A's are a2 and
 * a3, which exist here only as MAC addresses and frames; site B's gateway has none. A sibling's
 * packets go out on the LAN as a router would send them, existing flows stay, no packet is
 * forwarded twice. With two workers the site has a key, and packets are sealed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/control/change_lock.h"
#include "gateway/control/siblings.h"
#include "gateway/datapath/sibling_seal.h"
#include "roce/icrc.h"
#include "roce/parse.h"
#include "rwy/endian.h"
#include "tests/component/ov_lab.h"

#define WAIT    5000 /* ms, limit for expected frames */
#define NOTHING 60   /* ms without an unexpected frame */
#define SPORT   0xc123
#define HOSTS   16
#define A2      0 /* places in the list */
#define A3      1

static struct ov_lab lab;
static const uint8_t host_mac[6] = {0x02, 0xaa, 0, 0, 0, 1};
static const uint8_t sib_mac[2][6] = {{0x02, 0xbb, 0, 0, 0, 2}, {0x02, 0xbb, 0, 0, 0, 3}};

static struct rwy_ip addr(enum fp_site s, uint8_t n, bool v6)
{
	if (v6)
		return (struct rwy_ip){{0xfd, 0, [3] = (uint8_t)(s + 1), [15] = n}};
	return ov_ip4(10, (uint8_t)(s + 1), 0, n);
}

static struct rwy_ip sibling(unsigned i)
{
	return addr(FP_A, (uint8_t)(200 + i), false);
}

static bool sealed;
static uint8_t key[BASE_SIPHASH_KEY];

static void site_key(struct conf *c)
{
	int fd;

	sealed = true;
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
	c->sibling[0].address = sibling(A2);
	c->sibling[0].weight = 3;
}

static void hops(struct fp_gw *g, enum fp_site s)
{
	for (uint8_t n = 2; n < 2 + HOSTS; n++)
		for (unsigned v6 = 0; v6 < 2; v6++)
			fp_neighbour(g, FP_LAN, addr(s, n, v6), host_mac);
	if (s == FP_A)
		fp_neighbour(g, FP_LAN, sibling(A2), sib_mac[A2]);
}

/* --- the list, changed while the gateways run ------------------------------------------------- */

struct job {
	const struct gw_siblings_say *say;
	int rc;
	_Atomic bool done;
};

static void *work(void *arg)
{
	struct job *j = arg;

	gw_change_lock();
	j->rc = gw_siblings_set(&lab.fp.gw[FP_A].app, j->say);
	gw_change_unlock();
	atomic_store(&j->done, true);
	return NULL;
}

static void *tick(void *arg)
{
	gw_siblings_tick(&lab.fp.gw[FP_A].app, NULL);
	atomic_store(&((struct job *)arg)->done, true);
	return NULL;
}

static void run(void *(*fn)(void *), struct job *j)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, fn, j), 0);
	while (!atomic_load(&j->done))
		ov_wait(&lab);
	pthread_join(t, NULL);
	assert_int_equal(j->rc, 0);
}

/* a2 and a3 as in a document; the owner of each pair of hosts n at both sites. */
struct said {
	bool lost2, lost3, no3;
	uint32_t weight; /* of a2's tunnel; 0: none */
	int pair[HOSTS]; /* by host: -1 ours, A2, A3; -2: not assigned */
	bool all;        /* pair[] is used */
	uint32_t dqpn;   /* if not 0: host 0's packets to this QP belong to `who`, */
	int who;         /* whatever its pair's owner */
};

static void say(const struct said *x)
{
	struct gw_sibling *sib = calloc(2, sizeof(*sib));
	struct gw_sibling_pair pair[2 * HOSTS + 1];
	struct gw_siblings_say s = {.sib = sib, .n = x->no3 ? 1 : 2, .pair = pair};
	struct job j = {.say = &s};

	assert_non_null(sib);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(sib[i].name, CONF_NAME, "a%u", i + 2);
		sib[i].addr = sibling(i);
		sib[i].lost = i ? x->lost3 : x->lost2;
		sib[i].tunnels = x->weight ? 1 : 0;
		snprintf(sib[i].tunnel[0].peer, CONF_NAME, "b1");
		sib[i].tunnel[0].weight = i ? 0 : x->weight;
	}
	for (unsigned n = 0; x->all && n < HOSTS; n++)
		for (unsigned v6 = 0; v6 < 2 && x->pair[n] > -2; v6++)
			pair[s.pairs++] = (struct gw_sibling_pair){.local = addr(FP_A, (uint8_t)(n + 2), v6),
			    .remote = addr(FP_B, 2, v6),
			    .who = x->pair[n]};
	if (x->dqpn)
		pair[s.pairs++] = (struct gw_sibling_pair){.local = addr(FP_A, 2, false),
		    .remote = addr(FP_B, 2, false),
		    .who = x->who,
		    .dqpn = x->dqpn};
	run(work, &j);
	free(sib);
}

/* Assigns all pairs to `who`. */
static void say_all(int who)
{
	struct said x = {.all = true, .weight = 1};

	for (unsigned n = 0; n < HOSTS; n++)
		x.pair[n] = who;
	say(&x);
}

/* --- packets -------------------------------------------------------------------------------------------- */

static struct fr_roce packet(uint8_t n, uint32_t qpn, uint32_t psn, bool v6)
{
	return (struct fr_roce){.src = addr(FP_A, (uint8_t)(n + 2), v6),
	    .dst = addr(FP_B, 2, v6),
	    .sport = SPORT,
	    .dqpn = qpn,
	    .psn = psn,
	    .payload = 256,
	    .fill = 0x5a};
}

static void inject(enum fp_site s, const uint8_t smac[6], const uint8_t *ip, uint32_t len)
{
	uint8_t eth[FR_MAX];

	len = fr_eth(eth, lab.fp.gw[s].port[FP_LAN].mac, smac, 0, ip[0] >> 4 == 4 ? 0x0800 : 0x86dd, ip, len);
	ov_inject(&lab, s, eth, len);
}

static void send_from(const uint8_t smac[6], uint8_t n, uint32_t qpn, uint32_t psn)
{
	const struct fr_roce r = packet(n, qpn, psn, false);
	uint8_t ip[FR_MAX];

	inject(FP_A, smac, ip, fr_write(ip, &r));
}

/* The seal of an IP packet with BTH, behind it. */
static void seal(uint8_t *ip, uint32_t len)
{
	const bool v4 = ip[0] >> 4 == 4;
	struct gw_pkt k = {.ip_len = len};

	assert_true(v4 ? gw_pkt_ip4(ip, len, &k) : gw_pkt_ip6(ip, len, &k));
	gw_seal_make(ip + len, key, &k, ip, ip + k.hdr + UDP_LEN);
}

/* As a2 hands it on. */
static void send_from_a2(uint8_t n, uint32_t qpn, uint32_t psn)
{
	const struct fr_roce r = packet(n, qpn, psn, false);
	uint8_t ip[FR_MAX];
	uint32_t len = fr_write(ip, &r);

	if (sealed)
		seal(ip, len);
	inject(FP_A, sib_mac[A2], ip, len + (sealed ? GW_SEAL_LEN : 0));
}

static void send_write(uint8_t n, uint32_t qpn, uint32_t psn)
{
	send_from(host_mac, n, qpn, psn);
}

/* Receives site s's next frame on its LAN. False: none within ms. */
static bool next(enum fp_site s, unsigned ms, uint8_t buf[FR_MAX], struct fr_seen *f)
{
	uint32_t len;

	if (!ov_receive(&lab, s, buf, &len, ms))
		return false;
	assert_true(fr_read(buf, len, f));
	return true;
}

static uint32_t qpn_of(const struct fr_seen *f)
{
	return rwy_get24(f->net + (f->net[0] >> 4 == 4 ? 20 : 40) + 8 + 5);
}

/* A's LAN gets only answers to the host: of these there may be some, to flows of earlier tests. */
static void expect_none_handed(void)
{
	uint8_t buf[FR_MAX];
	struct fr_seen f;

	while (next(FP_A, NOTHING, buf, &f))
		assert_memory_equal(f.eth, host_mac, 6);
}

/* The next frame of A's LAN port is the WRITE of that QP, to that sibling. */
static void expect_handed(unsigned who, uint32_t qpn)
{
	uint8_t buf[FR_MAX];
	struct fr_seen f;

	do
		assert_true(next(FP_A, WAIT, buf, &f));
	while (!memcmp(f.eth, host_mac, 6)); /* skip answers to flows of this gateway */
	assert_memory_equal(f.eth, sib_mac[who], 6);
	assert_memory_equal(f.eth + 6, lab.fp.gw[FP_A].port[FP_LAN].mac, 6);
	assert_int_equal(qpn_of(&f), qpn);
}

/* It arrives at B's host, and A's LAN gets only answers to the host. */
static void expect_carried(uint32_t qpn)
{
	uint8_t buf[FR_MAX];
	struct fr_seen f;

	do
		assert_true(next(FP_B, WAIT, buf, &f));
	while (qpn_of(&f) != qpn); /* skip retransmissions: no host answers there */
	assert_memory_equal(f.eth, host_mac, 6);
	while (next(FP_A, 0, buf, &f))
		assert_memory_equal(f.eth, host_mac, 6);
}

static void answer_from_b(uint8_t n, uint32_t qpn, uint32_t psn)
{
	struct fr_roce r = packet(n, qpn, psn, false);
	const struct rwy_ip a = r.src;
	uint8_t ip[FR_MAX], buf[FR_MAX];
	struct fr_seen f;

	r.src = r.dst;
	r.dst = a;
	r.dqpn = qpn + 1;
	for (unsigned i = 0; i < 5; i++) {
		inject(FP_B, host_mac, ip, fr_ack(ip, &r, 1));
		if (next(FP_A, NOTHING, buf, &f))
			break;
		/* Nobody answered in the turns of other flows, so the gateway asks once more. */
		assert_true(i < 4);
		do
			assert_true(next(FP_B, WAIT, buf, &f));
		while (qpn_of(&f) != qpn);
	}
	assert_memory_equal(f.eth, host_mac, 6);
}

static uint32_t fresh(void)
{
	static uint32_t qpn = 0x100;

	return qpn += 16;
}

static struct gw_counters at_a(void)
{
	return ov_counters(&lab, FP_A);
}

/* --- tests ---------------------------------------------------------------------------------------------- */

/* By the file's weights, 3 to 1: that share of 256 address pairs; the same for all QPs of a
 * pair. */
static void test_rule(void **state)
{
	const uint64_t before = at_a().sibling_tx;
	unsigned theirs = 0;

	for (unsigned i = 0; i < 256; i++) {
		struct fr_roce r = packet((uint8_t)(i % HOSTS), 0x300000 + i, 1, false);
		uint8_t ip[FR_MAX];
		bool handed[2];

		r.dst.b[15] = (uint8_t)(2 + i / HOSTS);
		for (unsigned k = 0; k < 2; k++) {
			const uint64_t was = at_a().sibling_tx;

			r.dqpn += k << 12;
			inject(FP_A, host_mac, ip, fr_write(ip, &r));
			ov_turn(&lab); /* the worker that receives it, */
			ov_turn(&lab); /* and the owner */
			handed[k] = at_a().sibling_tx > was;
		}
		assert_int_equal(handed[0], handed[1]);
		theirs += handed[0];
	}
	assert_in_range(theirs, 256 * 65 / 100, 256 * 85 / 100);
	assert_int_equal(at_a().sibling_tx - before, 2 * theirs);
	ov_settle(&lab, NOTHING);
}

/* The forwarded packet equals the received one but for MAC addresses and one hop; ICRC and checksum
 * are valid. */
static void test_rewrite(void **state)
{
	say_all(A2);
	for (unsigned v6 = 0; v6 < 2; v6++) {
		const struct gw_counters before = at_a();
		const struct fr_roce r = packet(3, fresh(), 9, v6);
		uint8_t ip[FR_MAX], buf[FR_MAX];
		const uint32_t len = fr_write(ip, &r), ttl = v6 ? 7 : 8;
		struct roce_pkt pkt;
		struct fr_seen f;

		inject(FP_A, host_mac, ip, len);
		assert_true(next(FP_A, WAIT, buf, &f));
		assert_memory_equal(f.eth, sib_mac[A2], 6);
		assert_memory_equal(f.eth + 6, lab.fp.gw[FP_A].port[FP_LAN].mac, 6);
		assert_int_equal(f.type, v6 ? 0x86dd : 0x0800);
		assert_int_equal(f.net_len, len + (sealed ? GW_SEAL_LEN : 0));
		if (sealed) {
			seal(ip, len);
			assert_memory_equal(f.net + len, ip + len, GW_SEAL_LEN);
		}
		assert_int_equal(f.net[ttl], ip[ttl] - 1);
		assert_int_equal(roce_parse((uint8_t *)(uintptr_t)f.net, len, &pkt), ROCE_PARSE_OK);
		assert_true(roce_icrc_ok(&pkt));
		ip[ttl]--;
		if (!v6)
			memcpy(ip + 10, f.net + 10, 2); /* fr_read() has checked it */
		assert_memory_equal(ip, f.net, len);
		assert_int_equal(at_a().tx_in_place, before.tx_in_place + 1);
		assert_int_equal(at_a().tx_copied, before.tx_copied);
		assert_int_equal(at_a().sibling_tx, before.sibling_tx + 1);
	}
}

/* A named QP follows its own assignment before its pair's; other QPs of the pair follow the
 * pair. */
static void test_named_qp(void **state)
{
	const uint32_t named = fresh(), other = fresh(), last = fresh(), late = fresh(), theirs = fresh();
	struct said x = {.no3 = true, .weight = 1, .all = true, .dqpn = named, .who = A2};

	for (unsigned n = 0; n < HOSTS; n++)
		x.pair[n] = -1;
	say(&x);
	send_write(0, named, 1);
	expect_handed(A2, named);
	send_write(0, other, 1);
	expect_carried(other);
	/* Also while another of its hosts waits to be learned here. */
	x.dqpn = last;
	say(&x);
	send_write(0, last, 1);
	expect_handed(A2, last);
	answer_from_b(0, other, 1);
	/* The reverse: ours, of a pair of theirs. */
	for (unsigned n = 0; n < HOSTS; n++)
		x.pair[n] = A2;
	x.dqpn = late;
	x.who = -1;
	say(&x);
	send_write(0, late, 1);
	expect_carried(late);
	answer_from_b(0, late, 1);
	send_write(0, theirs, 1);
	expect_handed(A2, theirs);
	/* An existing flow stays, whatever the new list. */
	x.who = A2;
	say(&x);
	send_write(0, late, 2);
	expect_carried(late);
	ov_settle(&lab, NOTHING);
}

/* One hop left: it is carried as the engine carries it, unless an unknown sibling might send it in
 * a circle. */
static void test_last_hop(void **state)
{
	const struct said x = {.no3 = true, .all = true, .weight = 1}, y = {.all = true, .weight = 1};
	const struct fr_roce r = packet(3, fresh(), 9, true);
	const uint64_t before = at_a().drop_sibling_hops;
	uint8_t ip[FR_MAX], buf[FR_MAX];
	const uint32_t len = fr_write(ip, &r);
	struct fr_seen f;

	say(&x);
	ip[7] = 1;
	inject(FP_A, host_mac, ip, len);
	assert_true(next(FP_A, WAIT, buf, &f));
	assert_memory_equal(f.eth, sib_mac[A2], 6);
	assert_int_equal(f.net[7], 1);
	say(&y); /* a3 has no MAC address */
	inject(FP_A, host_mac, ip, len);
	expect_none_handed();
	assert_int_equal(at_a().drop_sibling_hops, before + 1);
}

/* A flow of this gateway stays, and one that went to a sibling continues there, whatever the new
 * list. */
static void test_under_way(void **state)
{
	const uint32_t here = fresh(), there = fresh(), later = fresh();

	say_all(-1);
	send_write(1, here, 1);
	expect_carried(here);
	answer_from_b(1, here, 1);
	say_all(A2);
	send_write(1, here, 2);
	expect_carried(here);
	send_write(1, there, 1);
	expect_handed(A2, there);
	say_all(-1);
	send_write(1, there, 2);
	expect_handed(A2, there);
	send_write(1, later, 1);
	expect_carried(later);
	send_write(1, here, 3);
	expect_carried(here);
	ov_settle(&lab, NOTHING);
}

/* The host's first answer to a flow through this gateway's tunnel belongs here, although its QPN is
 * not yet known. */
static void test_first_answer(void **state)
{
	const uint32_t qpn = fresh();
	const uint64_t before = at_a().sibling_tx;
	struct fr_roce r = packet(5, qpn, 4, false);
	const struct rwy_ip a = r.src;
	uint8_t ip[FR_MAX], buf[FR_MAX];
	struct fr_seen f;

	say_all(A2);
	r.src = r.dst;
	r.dst = a;
	inject(FP_B, host_mac, ip, fr_write(ip, &r));
	do
		assert_true(next(FP_A, WAIT, buf, &f));
	while (qpn_of(&f) != qpn);
	r.dst = r.src;
	r.src = a;
	r.dqpn = qpn + 1;
	inject(FP_A, host_mac, ip, fr_ack(ip, &r, 1));
	do
		assert_true(next(FP_B, WAIT, buf, &f));
	while (qpn_of(&f) != qpn + 1);
	assert_int_equal(at_a().sibling_tx, before);
	ov_settle(&lab, NOTHING);
}

/* A packet forwarded by a sibling is accepted here, and the rest of that flow, too. */
static void test_never_twice(void **state)
{
	const uint32_t qpn = fresh();
	const uint64_t kept = at_a().sibling_kept, sent = at_a().sibling_tx;

	say_all(A2);
	send_from_a2(6, qpn, 1);
	expect_carried(qpn);
	assert_int_equal(at_a().sibling_kept, kept + 1);
	send_write(6, qpn, 2);
	expect_carried(qpn);
	assert_int_equal(at_a().sibling_tx, sent);
	ov_settle(&lab, NOTHING);
}

/*
 * A host that writes a sibling's MAC address into its frames, without the site's key: its packet is
 * dropped, and the flow whose addresses it has goes on to the sibling. Nor is another packet's seal
 * of use.
 */
static void test_forged(void **state)
{
	const struct gw_counters before = at_a();
	const uint32_t qpn = fresh();
	const struct fr_roce r = packet(6, qpn, 1, false), other = packet(6, qpn, 2, false);
	uint8_t ip[FR_MAX], theirs[FR_MAX];
	const uint32_t len = fr_write(ip, &r);

	if (!sealed) /* nothing tells it from a sibling's: test_never_twice */
		return;
	say_all(A2);
	inject(FP_A, sib_mac[A2], ip, len);
	memset(ip + len, 0, GW_SEAL_LEN);
	inject(FP_A, sib_mac[A2], ip, len + GW_SEAL_LEN);
	assert_int_equal(fr_write(theirs, &other), len);
	seal(theirs, len);
	memcpy(ip + len, theirs + len, GW_SEAL_LEN);
	inject(FP_A, sib_mac[A2], ip, len + GW_SEAL_LEN);
	seal(ip, len);
	inject(FP_A, sib_mac[A2], ip, len + GW_SEAL_LEN - 1);
	expect_none_handed();
	assert_int_equal(at_a().drop_sibling_forged, before.drop_sibling_forged + 4);
	assert_int_equal(at_a().sibling_kept, before.sibling_kept);
	assert_int_equal(at_a().to_engine_lan, before.to_engine_lan);
	send_write(6, qpn, 1);
	expect_handed(A2, qpn);
	ov_settle(&lab, NOTHING);
}

/* A lost sibling gets nothing; the rule distributes its pairs among the living: here, all are
 * ours. */
static void test_lost(void **state)
{
	struct said x = {.all = true, .weight = 0};
	const uint32_t qpn = fresh();

	say(&x);
	send_write(7, qpn, 1);
	expect_handed(A2, qpn);
	x.lost2 = true;
	say(&x);
	send_write(7, qpn, 2);
	expect_carried(qpn);
	x.lost2 = false; /* it is back: existing flows stay */
	say(&x);
	send_write(7, qpn, 3);
	expect_carried(qpn);
	send_write(7, qpn + 1, 1);
	expect_handed(A2, qpn + 1);
	ov_settle(&lab, NOTHING);
}

/* A sibling with an unknown MAC address: the gateway asks for it, and drops the packet, which the
 * host sends again. */
static void test_unresolved(void **state)
{
	const uint64_t before = at_a().drop_sibling_unresolved;
	const struct gw_app *app = &lab.fp.gw[FP_A].app;
	const uint32_t qpn = fresh();
	bool asked = false;

	say_all(A3);
	send_write(8, qpn, 1);
	expect_none_handed();
	assert_int_equal(at_a().drop_sibling_unresolved, before + 1);
	for (unsigned w = 0; w < app->workers; w++)
		for (uint32_t i = app->worker[w]->ask_tail; i != app->worker[w]->ask_head; i++) {
			const struct rwy_ip a3 = sibling(A3);

			asked |= rwy_ip_eq(&app->worker[w]->ask[i % GW_ASKS].addr, &a3);
		}
	assert_true(asked);
}

/* Only RoCE: packets without state may use any gateway. Tenants' packets are not forwarded. */
static void test_what_is_not_roce(void **state)
{
	const uint64_t before = at_a().sibling_tx;
	const struct fr_roce r = packet(9, fresh(), 1, false);
	uint8_t ip[FR_MAX], buf[FR_MAX];
	struct fr_seen f;

	say_all(A2);
	inject(FP_A, host_mac, ip, fr_udp(ip, &r.src, &r.dst, 1000, 2000, 64));
	do
		assert_true(next(FP_B, WAIT, buf, &f));
	while (rwy_get16(f.net + 22) != 2000);
	assert_int_equal(at_a().sibling_tx, before);
}

/* The status: name, address, state, MAC address, packets. */
struct seen {
	struct job j;
	struct gw_sibling_info info[4];
	unsigned n;
};

static void *see(void *arg)
{
	struct seen *x = arg;

	x->n = gw_siblings_get(&lab.fp.gw[FP_A].app, x->info, 4);
	atomic_store(&x->j.done, true);
	return NULL;
}

static void test_shown(void **state)
{
	struct said y = {.all = true, .weight = 1, .lost3 = true};
	static struct seen x, after;
	const uint32_t qpn = fresh();

	say(&y);
	run(see, &x.j);
	send_write(10, qpn, 1);
	expect_handed(A2, qpn);
	run(see, &after.j);
	assert_int_equal(after.n, 2);
	assert_string_equal(after.info[0].name, "a2");
	assert_true(after.info[0].mac_known && after.info[0].controller && !after.info[0].lost);
	assert_memory_equal(after.info[0].mac, sib_mac[A2], 6);
	assert_int_equal(after.info[0].pairs, 2 * HOSTS);
	assert_int_equal(after.info[0].packets, x.info[0].packets + 1);
	assert_string_equal(after.info[1].name, "a3");
	assert_true(!after.info[1].mac_known && after.info[1].lost);
	assert_int_equal(after.info[1].packets, 0);
}

static const struct conf *own; /* used as the file's list */

static void *work_own(void *arg)
{
	struct job *j = arg;

	gw_change_lock();
	j->rc = gw_siblings_own(&lab.fp.gw[FP_A].app, own);
	gw_change_unlock();
	atomic_store(&j->done, true);
	return NULL;
}

/* A configured sibling is lost when it does not answer for three ticks. */
static void test_file_sibling_lost(void **state)
{
	static struct conf c;

	c = *lab.fp.gw[FP_A].app.conf;
	c.sibling[0].address = sibling(A3); /* no answer comes from there */
	own = &c;
	run(work_own, &(struct job){0});
	for (unsigned i = 0; i < 4; i++) {
		struct seen x = {0};

		run(see, &x.j);
		assert_int_equal(x.n, 1);
		assert_int_equal(x.info[0].weight, 3);
		assert_false(x.info[0].controller);
		assert_int_equal(x.info[0].lost, i >= 3);
		run(tick, &(struct job){0});
	}
	for (uint32_t i = 0; i < HOSTS; i++) { /* all are ours */
		const uint32_t qpn = fresh();

		send_write((uint8_t)i, qpn, 1);
		expect_carried(qpn);
	}
}

static int tests(void)
{
	const struct CMUnitTest t[] = {
	    cmocka_unit_test(test_rule),
	    cmocka_unit_test(test_rewrite),
	    cmocka_unit_test(test_named_qp),
	    cmocka_unit_test(test_last_hop),
	    cmocka_unit_test(test_under_way),
	    cmocka_unit_test(test_first_answer),
	    cmocka_unit_test(test_never_twice),
	    cmocka_unit_test(test_forged),
	    cmocka_unit_test(test_lost),
	    cmocka_unit_test(test_unresolved),
	    cmocka_unit_test(test_what_is_not_roce),
	    cmocka_unit_test(test_shown),
	    cmocka_unit_test(test_file_sibling_lost),
	};

	gw_log_set(GW_LOG_ERROR); /* hosts that never answer cause warnings */
	return cmocka_run_group_tests(t, NULL, NULL);
}

int main(int argc, char **argv)
{
	int rc;

	ov_conf_more = conf;
	ov_hops_more = hops;
	rc = ov_main(argc, argv, &lab, tests);
	if (sealed)
		unlink(lab.fp.gw[FP_A].conf.site_key);
	return rc;
}
