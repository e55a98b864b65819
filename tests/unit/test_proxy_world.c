/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two relays in virtual time: host A - edge - engine - WAN - engine - edge - host B. The hosts know
 * their relay's address and the alias QPN, nothing of each other. Packets on the LANs get lost and
 * come twice. All operations, both ways at once, several pairs: bytes exact, exactly once, also when
 * the relays' processes die meanwhile.
 */
#include "proxy/desk.h"
#include "proxy/journal.h"
#include "roce/cm.h"
#include "roce/icrc.h"
#include "tests/lib/eng_pair.h"
#include "tests/lib/proxy_cm.h"
#include "tests/lib/rc_host.h"
#include "tests/lib/rng.h"

#define PAIRS 3
#define MEM   (256 << 10)
#define PORT  7000
#define QUEUE 4096

struct lan_pkt {
	unsigned pair;
	uint32_t len;
	uint8_t bytes[RC_PKT_MAX];
};

static struct proxy_edge edge[2];
static struct proxy_policy policy[2];
static struct proxy_acl acl;
static struct proxy_entry map[PAIRS];
static struct rwy_ip relay[2], host[2][PAIRS];
static struct rc_host h[2][PAIRS];
static uint8_t mem[2][PAIRS][MEM];
static unsigned done[2][PAIRS], failed[2][PAIRS];
static struct lan_pkt *queue[2];
static unsigned queued[2];
static struct roce_cm_msg cm[2]; /* the last that a host got */
static uint64_t rng;
static double loss;
static bool by_cm; /* else the hosts tell their relays */

/* The journal outlives a process. */
#define LINKS 64
static struct proxy_record links[2][2 * LINKS];
static struct eng_journal_entry promises[2][ENG_PAIR_JOURNAL];
static bool mortal;
static unsigned dies, deaths; /* which of the relays; how often it did */

static uint32_t qpn_of(unsigned s, unsigned i)
{
	return 17 + (s && i == 2); /* several hosts have the same QPN */
}

static struct rwy_ip addr(unsigned s, uint8_t n)
{
	return rwy_ip_from4((const uint8_t[]){10, (uint8_t)(s + 1), 0, n});
}

static bool edge_out(struct eng_site *s, uint8_t *ip, uint32_t len)
{
	struct proxy_act act;

	proxy_edge_out(&edge[s->idx], ip, len, NULL, &act, eng_now);
	return act.verdict == PROXY_PASS;
}

/* A packet reached the LAN: it is for the host that has its address and QPN. */
static void heard(struct eng_site *s, const struct roce_pkt *pkt)
{
	unsigned x = s->idx;

	assert_true(rwy_ip_eq(&pkt->src, &relay[x]));
	assert_true(roce_icrc_ok(pkt));
	if (roce_is_gsi(pkt)) {
		assert_int_equal(roce_cm_parse(pkt, &cm[x]), 0);
		return;
	}
	for (unsigned i = 0; i < PAIRS; i++) {
		if (!rwy_ip_eq(&pkt->dst, &host[x][i]))
			continue;
		assert_int_equal(pkt->dqpn, qpn_of(x, i));
		for (unsigned n = 1 + rng_chance(&rng, loss); n && !rng_chance(&rng, loss); n--) {
			struct lan_pkt *q = &queue[x][queued[x]++];

			assert_true(queued[x] < QUEUE);
			q->pair = i;
			q->len = pkt->len;
			memcpy(q->bytes, pkt->ip, pkt->len);
		}
		return;
	}
	fail_msg("a packet for nobody");
}

/* A host's packet to its relay. */
static void to_relay(unsigned s, uint8_t *bytes, uint32_t len)
{
	struct proxy_act act;

	proxy_edge_in(&edge[s], bytes, len, &act, eng_now);
	if (act.verdict == PROXY_PASS)
		eng_host_sends_bytes(s, bytes, len);
}

static void hosts_turn(void)
{
	uint8_t bytes[RC_PKT_MAX];
	uint32_t len;

	for (unsigned s = 0; s < 2; s++) {
		unsigned n = queued[s];

		for (unsigned k = 0; k < n; k++)
			rc_host_input(&h[s][queue[s][k].pair], queue[s][k].bytes, queue[s][k].len, eng_now);
		queued[s] = 0;
		for (unsigned i = 0; i < PAIRS; i++) {
			rc_host_tick(&h[s][i], eng_now);
			for (n = 0; n < 64 && (len = rc_host_output(&h[s][i], bytes, eng_now)); n++)
				if (!rng_chance(&rng, loss))
					to_relay(s, bytes, len);
		}
	}
}

static void run(unsigned ms)
{
	while (ms--) {
		if (h[0][0].mem)
			hosts_turn();
		eng_pair_run(RWY_MS);
	}
}

static void completion(void *ctx, const struct rc_comp *c)
{
	unsigned k = *(unsigned *)ctx;

	if (!c->recv) {
		done[k & 1][k >> 1]++;
		failed[k & 1][k >> 1] += c->status != RC_OK;
	}
}

static void send_mad(unsigned s, unsigned i, const uint8_t *mad)
{
	uint8_t bytes[TP_MAX];

	to_relay(s, bytes, px_packet(bytes, mad, &host[s][i], &relay[s]));
}

/* Set-up of one pair. What the hosts learn is all that they use. */
static void connect_pair(unsigned i, uint32_t alias[2])
{
	const struct px_req r = {.src = host[0][i],
	    .dst = relay[0],
	    .comm = 5, /* of several hosts the same */
	    .qpn = qpn_of(0, i),
	    .psn = 100,
	    .tid = 7 + i,
	    .port = (uint16_t)(PORT + i)};
	struct cp_rep rep = {.tid = 7 + i,
	    .comm = 9,
	    .remote = 5,
	    .qpn = qpn_of(1, i),
	    .psn = 200,
	    .rnr = 7,
	    .resp_res = 8,
	    .init_depth = 8};
	uint8_t mad[256], bytes[TP_MAX];

	to_relay(0, bytes, px_make_req(bytes, &r));
	run(20);
	assert_int_equal(cm[1].attr, ROCE_CM_REQ);
	alias[1] = cm[1].qpn;
	cp_make_rep(mad, &rep);
	send_mad(1, i, mad);
	run(20);
	assert_int_equal(cm[0].attr, ROCE_CM_REP);
	alias[0] = cm[0].qpn;
	cp_make_ids(mad, ROCE_CM_RTU, 7 + i, 5, 9);
	send_mad(0, i, mad);
	run(20);
	assert_int_equal(cm[1].attr, ROCE_CM_RTU);
}

static void host_begin(unsigned s, unsigned i, uint32_t alias)
{
	static unsigned key[2][PAIRS];
	struct rc_host_cfg c;

	rc_host_cfg_default(&c);
	memcpy(c.ip, host[s][i].b + 12, 4);
	memcpy(c.peer_ip, relay[s].b + 12, 4);
	c.peer_qpn = alias;
	c.mtu = 1024;
	c.sq_psn = s ? 100 : 200;
	c.rq_psn = s ? 200 : 100;
	c.rkey = 1 + s;
	c.timeout = 500 * RWY_MS;
	key[s][i] = s | i << 1;
	c.done = completion;
	c.ctx = &key[s][i];
	for (unsigned k = 0; k < MEM; k++)
		mem[s][i][k] = (uint8_t)rng_next(&rng);
	rc_host_init(&h[s][i], &c, mem[s][i], MEM);
}

static void relay_begin(unsigned s)
{
	struct proxy_map_cfg cfg;

	proxy_map_cfg_default(&cfg);
	cfg.links_max = LINKS;
	cfg.journal = links[s];
	assert_int_equal(proxy_edge_init(&edge[s], &policy[s], &cfg), 0);
	assert_int_equal(proxy_edge_restore(&edge[s], eng_now), 0);
	site[s].edge = edge_out;
	site[s].heard = heard;
}

static void relay_dies(unsigned s)
{
	proxy_edge_fini(&edge[s]);
	eng_pair_restart(s);
	relay_begin(s);
	assert_int_equal(edge[s].c.links_restored, PAIRS);
	deaths++;
}

/*
 * Mode `far`: nothing is acknowledged that one process alone has, so no death ends a queue pair. (But
 * for a READ or an ATOMIC, whose answer may die with it; the mortal world has none.)
 */
static void tune(struct eng_cfg *c)
{
	const unsigned s = c->prefix[0].addr.b[13] == 1; /* its tunnel leads to the other site */

	c->ack_mode = ENG_ACK_FAR;
	c->journal = promises[s];
	c->journal_n = ENG_PAIR_JOURNAL;
	c->journal_whole = true;
	c->journal_for = 60 * RWY_SEC;
}

static int world_begin(void **state)
{
	memset(links, 0, sizeof(links));
	memset(promises, 0, sizeof(promises));
	eng_pair_tune = mortal ? tune : NULL;
	assert_int_equal(eng_pair_set_up(state), 0);
	deaths = 0;
	rng = 11;
	loss = 0;
	by_cm = true;
	acl = (struct proxy_acl){{addr(0, 0), 120}, {addr(1, 0), 120}, 1, 65535};
	for (unsigned i = 0; i < PAIRS; i++)
		map[i] = (struct proxy_entry){.listen = addr(0, 254),
		    .port = (uint16_t)(PORT + i),
		    .target = addr(1, (uint8_t)(3 + i)),
		    .target_port = (uint16_t)(PORT + i)};
	for (unsigned s = 0; s < 2; s++) {
		relay[s] = addr(s, 254);
		policy[s] = (struct proxy_policy){
		    .addr = {relay[s]}, .addrs = 1, .acl = &acl, .acls = 1, .entry = map, .entries = PAIRS};
		relay_begin(s);
		queue[s] = calloc(QUEUE, sizeof(**queue));
		queued[s] = 0;
		for (unsigned i = 0; i < PAIRS; i++)
			host[s][i] = addr(s, (uint8_t)(3 + i));
	}
	memset(h, 0, sizeof(h));
	memset(done, 0, sizeof(done));
	memset(failed, 0, sizeof(failed));
	return 0;
}

static int first_dies(void **state)
{
	mortal = true;
	dies = 0;
	return world_begin(state);
}

static int second_dies(void **state)
{
	mortal = true;
	dies = 1;
	return world_begin(state);
}

static int world_end(void **state)
{
	for (unsigned s = 0; s < 2; s++) {
		for (unsigned i = 0; i < PAIRS && h[s][i].mem; i++)
			rc_host_fini(&h[s][i]);
		proxy_edge_fini(&edge[s]);
		free(queue[s]);
	}
	mortal = false;
	eng_pair_tune = NULL;
	return eng_pair_tear_down(state);
}

/* Without CM: each host tells its own relay. It knows the far queue pair by another way. */
static uint32_t tell_relay(unsigned s, unsigned i)
{
	struct proxy_ask a = {.version = PROXY_ASK_VERSION,
	    .kind = PROXY_ASK_PAIR,
	    .target = {host[!s][i], 0},
	    .lqpn = qpn_of(s, i),
	    .rqpn = qpn_of(!s, i)};

	a.cookie = proxy_desk_answer(&edge[s], &host[s][i], &relay[s], &a, eng_now).cookie;
	a = proxy_desk_answer(&edge[s], &host[s][i], &relay[s], &a, eng_now);
	assert_int_equal(a.answer, PROXY_ANSWER_OK);
	return a.alias;
}

static void begin_all(uint32_t alias[PAIRS][2])
{
	for (unsigned i = 0; i < PAIRS && by_cm; i++)
		connect_pair(i, alias[i]);
	for (unsigned i = 0; i < PAIRS && !by_cm; i++)
		for (unsigned s = 0; s < 2; s++)
			alias[i][s] = tell_relay(s, i);
	for (unsigned i = 0; i < PAIRS; i++)
		for (unsigned s = 0; s < 2; s++)
			host_begin(s, i, alias[i][s]);
}

static void post(unsigned s, unsigned i, struct rc_wr wr)
{
	wr.rkey = 2 - s;
	rc_host_post(&h[s][i], &wr);
}

#define STEP   10 /* ms: several are less than a transfer */
#define DEATHS 8  /* at most */

/*
 * Memory in quarters: 0 is the own source, 1 gets the other's WRITEs, 2 gets its own READs of the
 * other's source, 3 gets the other's SENDs; at the end of quarter 2 a counter for ATOMICs.
 */
static void all_operations(double p)
{
	const uint32_t q = MEM / 4, n = 6000;
	const unsigned rounds = mortal ? 30 : 40;
	uint32_t alias[PAIRS][2];

	begin_all(alias);
	loss = p;
	for (unsigned i = 0; i < PAIRS; i++)
		for (unsigned s = 0; s < 2; s++) {
			memset(mem[s][i] + 3 * q - 16, 0, 16);
			for (unsigned k = 0; k < 10; k++)
				rc_host_post_recv(&h[s][i], 3 * q + k * n, n);
			for (unsigned k = 0; k < 10; k++) {
				post(s, i,
				    (struct rc_wr){
				        .op = RC_WRITE, .local = k * n, .len = n, .remote = q + k * n});
				post(s, i, (struct rc_wr){.op = RC_SEND, .local = k * n, .len = n});
				if (mortal) {
					post(s, i,
					    (struct rc_wr){.op = RC_WRITE,
					        .local = k * n,
					        .len = n,
					        .remote = 2 * q + k * n});
					continue;
				}
				post(s, i,
				    (struct rc_wr){
				        .op = RC_READ, .local = 2 * q + k * n, .len = n, .remote = k * n});
				post(s, i,
				    (struct rc_wr){.op = RC_FAA,
				        .local = 3 * q - 8,
				        .len = 8,
				        .remote = 3 * q - 16,
				        .swap_add = 1});
			}
		}
	for (unsigned ms = 0; ms < 60000; ms += STEP) {
		bool all = true;

		run(STEP);
		if (mortal && deaths < DEATHS)
			relay_dies(dies);
		for (unsigned i = 0; i < PAIRS; i++)
			all &= done[0][i] == rounds && done[1][i] == rounds;
		if (all)
			break;
	}
	loss = 0;
	run(2000);
	for (unsigned i = 0; i < PAIRS; i++)
		for (unsigned s = 0; s < 2; s++) {
			assert_int_equal(done[s][i], rounds);
			assert_int_equal(failed[s][i], 0);
			assert_memory_equal(mem[s][i] + q, mem[!s][i], 10 * n);
			assert_memory_equal(mem[s][i] + 2 * q, mem[!s][i], 10 * n);
			assert_memory_equal(mem[s][i] + 3 * q, mem[!s][i], 10 * n);
			assert_int_equal(h[s][i].atomics, mortal ? 0 : 10); /* executed once each */
			assert_int_equal(h[s][i].sends, 10);
			assert_int_equal(h[s][i].bad.ghost + h[s][i].bad.opcode + h[s][i].bad.length, 0);
		}
	for (unsigned s = 0; s < 2; s++) {
		assert_int_equal(edge[s].c.drop_relay_no_link, 0);
		assert_int_equal(edge[s].c.drop_relay_unknown_qpn, 0);
		assert_int_equal(edge[s].c.drop_relay_foreign, 0);
		assert_int_equal(eng_counters(site[s].e)->drop_icrc, 0);
		if (by_cm && !mortal)
			assert_true(eng_counters(site[s].e)->cm_connections >= PAIRS); /* pairing is exact */
	}
}

static void exact_on_a_clean_lan(void **state)
{
	all_operations(0);
}

static void exact_with_loss_and_duplicates(void **state)
{
	all_operations(0.02);
	assert_true(h[0][0].resent + h[1][0].resent > 0); /* something was lost */
}

static void pairs_on_a_clean_lan(void **state)
{
	by_cm = false;
	all_operations(0);
}

static void pairs_with_loss_and_duplicates(void **state)
{
	by_cm = false;
	all_operations(0.02);
}

/* With WRITEs in place of READs and ATOMICs. */
static void exact_over_deaths(void **state)
{
	all_operations(0.02);
	assert_true(deaths > 1);
}

static void pairs_over_deaths(void **state)
{
	by_cm = false;
	all_operations(0.02);
	assert_true(deaths > 1);
}

/* One host alone carries nothing to the other: its packets wait until that one has named it, too. */
static void pair_of_one_host(void **state)
{
	uint32_t alias = tell_relay(0, 0);

	host_begin(0, 0, alias);
	post(0, 0, (struct rc_wr){.op = RC_WRITE, .local = 0, .len = 1000, .remote = MEM / 4});
	run(100);
	assert_true(edge[1].c.drop_relay_no_link > 0);
	host_begin(1, 0, tell_relay(1, 0));
	run(5000);
	assert_int_equal(done[0][0], 1);
	assert_int_equal(failed[0][0], 0);
	assert_memory_equal(mem[1][0] + MEM / 4, mem[0][0], 1000);
}

/* A DREQ ends both links; nobody else's are touched, and the QPN does not come again at once. */
static void end_of_a_link(void **state)
{
	uint32_t alias[PAIRS][2], alias2[2];
	struct proxy_map_now n;
	uint8_t mad[256];

	begin_all(alias);
	cp_make_dreq(mad, 50, 5, 9, alias[0][0]);
	send_mad(0, 0, mad);
	run(20);
	assert_int_equal(cm[1].attr, ROCE_CM_DREQ);
	assert_int_equal(cm[1].qpn, qpn_of(1, 0));
	cp_make_ids(mad, ROCE_CM_DREP, 50, 9, 5);
	send_mad(1, 0, mad);
	run(20);
	assert_int_equal(cm[0].attr, ROCE_CM_DREP);
	for (unsigned s = 0; s < 2; s++) {
		proxy_map_count(edge[s].map, &n);
		assert_int_equal(n.open, PAIRS - 1);
		assert_int_equal(n.closed, 1);
	}
	run(6000); /* the engines forget it */
	h[0][0].mem = NULL;
	connect_pair(0, alias2);
	h[0][0].mem = mem[0][0];
	assert_int_not_equal(alias2[0], alias[0][0]);
}

/* Milliseconds until host s got a message of this kind. */
static unsigned wait_cm(unsigned s, uint16_t attr)
{
	unsigned ms = 0;

	for (cm[s].attr = 0; cm[s].attr != attr; ms++) {
		assert_true(ms < 1000);
		run(1);
	}
	return ms;
}

/*
 * From REQ to REP it is one round trip, as natively, and from REQ to the first WRITE one and a half:
 * relays add no exchange of their own. An engine here runs once a millisecond, and four do.
 */
static void set_up_takes_one_round_trip(void **state)
{
	const struct px_req r = {
	    .src = host[0][0], .dst = relay[0], .comm = 5, .qpn = 17, .psn = 100, .tid = 7, .port = PORT};
	const struct cp_rep rep = {.tid = 7, .comm = 9, .remote = 5, .qpn = 17, .psn = 200, .rnr = 7};
	const unsigned one_way = 50, turns = 4;
	uint8_t mad[256], bytes[TP_MAX];
	struct rc_mk m = {.opcode = 0x0a, .psn = rep.psn, .ack_req = true}; /* IBA 12.7.31 */
	unsigned ms, before;

	eng_pair_delay(one_way * RWY_MS);
	run(1000);
	to_relay(0, bytes, px_make_req(bytes, &r));
	ms = wait_cm(1, ROCE_CM_REQ);
	cp_make_rep(mad, &rep);
	send_mad(1, 0, mad);
	ms += wait_cm(0, ROCE_CM_REP);
	assert_in_range(ms, 2 * one_way, 2 * one_way + turns);
	cp_make_ids(mad, ROCE_CM_RTU, 7, 5, 9);
	send_mad(0, 0, mad);
	memcpy(m.src, host[0][0].b + 12, 4);
	memcpy(m.dst, relay[0].b + 12, 4);
	m.dqpn = cm[0].qpn;
	before = queued[1];
	to_relay(0, bytes, rc_pkt_make(bytes, &m));
	for (; queued[1] == before; ms++) {
		assert_true(ms < 1000);
		run(1);
	}
	assert_in_range(ms, 3 * one_way, 3 * one_way + turns + 2);
}

/* A stranger's data, forged data of a link, and what no link owns do not reach an engine. */
static void strangers(void **state)
{
	uint32_t alias[PAIRS][2];
	struct rc_mk m = {.opcode = 0x0a, .psn = 200, .src = {10, 1, 0, 99}, .dst = {10, 1, 0, 254}};
	uint8_t bytes[RC_PKT_MAX];
	uint64_t before;

	begin_all(alias);
	before = eng_counters(site[0].e)->lan_rx_packets;
	m.dqpn = alias[0][0];
	to_relay(0, bytes, rc_pkt_make(bytes, &m));
	m.dqpn = alias[0][0] + 1000;
	to_relay(0, bytes, rc_pkt_make(bytes, &m));
	assert_int_equal(edge[0].c.drop_relay_foreign, 1);
	assert_int_equal(edge[0].c.drop_relay_unknown_qpn, 1);
	assert_int_equal(eng_counters(site[0].e)->lan_rx_packets, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(exact_on_a_clean_lan, world_begin, world_end),
	    cmocka_unit_test_setup_teardown(exact_with_loss_and_duplicates, world_begin, world_end),
	    cmocka_unit_test_setup_teardown(pairs_on_a_clean_lan, world_begin, world_end),
	    cmocka_unit_test_setup_teardown(pairs_with_loss_and_duplicates, world_begin, world_end),
	    cmocka_unit_test_setup_teardown(exact_over_deaths, first_dies, world_end),
	    cmocka_unit_test_setup_teardown(exact_over_deaths, second_dies, world_end),
	    cmocka_unit_test_setup_teardown(pairs_over_deaths, first_dies, world_end),
	    cmocka_unit_test_setup_teardown(pairs_over_deaths, second_dies, world_end),
	    cmocka_unit_test_setup_teardown(pair_of_one_host, world_begin, world_end),
	    cmocka_unit_test_setup_teardown(end_of_a_link, world_begin, world_end),
	    cmocka_unit_test_setup_teardown(set_up_takes_one_round_trip, world_begin, world_end),
	    cmocka_unit_test_setup_teardown(strangers, world_begin, world_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
