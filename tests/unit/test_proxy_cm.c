/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CM splice: two edges back to back, what one passes from its LAN the other passes to its own.
 * Host A is at relay 0, host B at relay 1; neither knows the other's address. Each case runs once
 * more with relays whose processes die before each message: nobody notices.
 */
#include "proxy/edge.h"
#include "proxy/journal.h"
#include "proxy/trailer.h"
#include "roce/cm.h"
#include "roce/icrc.h"
#include "rwy/endian.h"
#include "tests/lib/proxy_cm.h"

#define COMM_A      0x11
#define COMM_B      0x22
#define QPN_A       17
#define QPN_B       18
#define PORT        20049
#define TARGET_PORT 7777
#define REDIRECT    4790

static struct proxy_edge edge[2];
static struct proxy_policy policy[2];
static struct proxy_acl acl;
static struct proxy_entry entry;
static struct proxy_map_cfg cfg;
static struct proxy_record *journal[2];
static struct rwy_ip host[2], relay[2];
static bool six, mortal;
static struct proxy_act act;
static rwy_time now;
static uint8_t pkt[TP_MAX];
static uint32_t len;
static struct roce_pkt p;
static struct roce_cm_msg m;

static struct rwy_ip addr(uint8_t net, uint8_t h)
{
	struct rwy_ip a = {.b = {0xfd, 0, 0, net}};

	a.b[15] = h;
	return six ? a : rwy_ip_from4((const uint8_t[]){10, net, 0, h});
}

static void edge_begin(unsigned i)
{
	struct proxy_map_cfg c = cfg;

	c.journal = journal[i];
	assert_int_equal(proxy_edge_init(&edge[i], &policy[i], &c), 0);
	assert_int_equal(proxy_edge_restore(&edge[i], now), 0);
}

/* The next process has the journal alone; what was counted is kept for the test. */
static void die(unsigned i)
{
	const struct proxy_counters c = edge[i].c;

	if (!mortal)
		return;
	proxy_edge_fini(&edge[i]);
	edge_begin(i);
	assert_int_equal(edge[i].c.links_broken + edge[i].c.links_unfit, 0);
	edge[i].c = c;
}

static int set_up_as(bool is6, bool dies)
{
	six = is6;
	mortal = dies;
	now = RWY_SEC;
	for (uint8_t i = 0; i < 2; i++) {
		host[i] = addr(i + 1, 3);
		relay[i] = addr(i + 1, 254);
		policy[i] = (struct proxy_policy){
		    .addr = {relay[i]}, .addrs = 1, .acl = &acl, .acls = 1, .redirect_port = REDIRECT};
	}
	acl = (struct proxy_acl){{host[0], 128}, {host[1], 128}, TARGET_PORT, TARGET_PORT + 1};
	entry = (struct proxy_entry){
	    .name = "b", .listen = relay[0], .port = PORT, .target = host[1], .target_port = TARGET_PORT};
	policy[0].entry = &entry;
	policy[0].entries = 1;
	proxy_map_cfg_default(&cfg);
	for (unsigned i = 0; i < 2; i++) {
		journal[i] = calloc(2 * (size_t)cfg.links_max, sizeof(**journal));
		assert_non_null(journal[i]);
		edge_begin(i);
	}
	return 0;
}

static int set_up(void **state)
{
	return set_up_as(false, false);
}

static int set_up6(void **state)
{
	return set_up_as(true, false);
}

static int set_up_mortal(void **state)
{
	return set_up_as(false, true);
}

static int set_up_mortal6(void **state)
{
	return set_up_as(true, true);
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		proxy_edge_fini(&edge[i]);
		free(journal[i]);
	}
	return 0;
}

/* The packet as its receiver reads it: parsed anew, all checksums right. */
static void read_packet(uint8_t *b, uint32_t n)
{
	assert_int_equal(roce_parse(b, n, &p), ROCE_PARSE_OK);
	assert_true(roce_icrc_ok(&p));
	assert_int_equal(roce_cm_parse(&p, &m), 0);
}

/* Host `from` sends pkt to its relay: does it reach the other host? */
static bool carry(unsigned from)
{
	die(from);
	proxy_edge_in(&edge[from], pkt, len, &act, now);
	if (act.verdict == PROXY_DROP)
		return false;
	die(!from);
	read_packet(pkt, len);
	assert_true(rwy_ip_eq(&p.src, &host[from]) && rwy_ip_eq(&p.dst, &host[!from]));
	proxy_edge_out(&edge[!from], pkt, len, NULL, &act, now);
	if (act.verdict == PROXY_DROP)
		return false;
	read_packet(pkt, len);
	assert_true(rwy_ip_eq(&p.src, &relay[!from]) && rwy_ip_eq(&p.dst, &host[!from]));
	return true;
}

static const uint8_t words[56] = "what the program says, 40 bytes of it...";

static struct px_req req_of_a(void)
{
	return (struct px_req){.src = host[0],
	    .dst = relay[0],
	    .comm = COMM_A,
	    .qpn = QPN_A,
	    .psn = 100,
	    .tid = 7,
	    .port = PORT,
	    .private_data = words};
}

static bool send_req(const struct px_req *r)
{
	len = px_make_req(pkt, r);
	return carry(0);
}

static bool send_mad(unsigned from, const uint8_t *mad)
{
	len = px_packet(pkt, mad, &host[from], &relay[from]);
	return carry(from);
}

static bool send_rep(uint32_t qpn)
{
	const struct cp_rep r = {.tid = 7, .comm = COMM_B, .remote = COMM_A, .qpn = qpn, .psn = 200};
	uint8_t mad[256];

	cp_make_rep(mad, &r);
	cp_be(mad + 24 + 36, 0x616e737765, 5);
	return send_mad(1, mad);
}

static bool send_ids(unsigned from, uint16_t attr)
{
	uint8_t mad[256];

	cp_make_ids(mad, attr, 7, from ? COMM_B : COMM_A, from ? COMM_A : COMM_B);
	return send_mad(from, mad);
}

static uint32_t alias_at(unsigned i)
{
	uint32_t cursor = 0;
	const struct proxy_link *l = proxy_map_next(edge[i].map, &cursor);

	assert_non_null(l);
	return l->alias;
}

static const struct proxy_link *link_at(unsigned i)
{
	uint32_t cursor = 0;

	return proxy_map_next(edge[i].map, &cursor);
}

static void connect_hosts(void)
{
	const struct px_req r = req_of_a();

	assert_true(send_req(&r));
	assert_true(send_rep(QPN_B));
	assert_true(send_ids(0, ROCE_CM_RTU));
}

static bool send_dreq(unsigned from, uint32_t qpn)
{
	uint8_t mad[256];

	cp_make_dreq(mad, 9, from ? COMM_B : COMM_A, from ? COMM_A : COMM_B, qpn);
	return send_mad(from, mad);
}

/* What each host sees of a set-up, field by field, and what must not change. */
static void set_up_is_rewritten(void **state)
{
	const struct px_req r = req_of_a();
	uint8_t before[TP_MAX];
	const uint8_t *b;
	unsigned at = six ? 0 : 12, n = six ? 16 : 4;

	len = px_make_req(before, &r);
	assert_true(send_req(&r));
	b = PX_BODY(pkt);
	assert_int_equal(m.qpn, alias_at(1));
	assert_int_not_equal(m.qpn, QPN_A);
	assert_int_equal(m.local_comm_id, COMM_A);
	assert_int_equal(m.starting_psn, 100);
	assert_int_equal(m.service_id, 0x0000000001060000 | TARGET_PORT);
	assert_true(rwy_ip_eq(&m.local_gid, &relay[1]) && rwy_ip_eq(&m.remote_gid, &host[1]));
	assert_memory_equal(b + PX_PRIVATE + 4 + at, relay[1].b + at, n);
	assert_memory_equal(b + PX_PRIVATE + 20 + at, host[1].b + at, n);
	assert_memory_equal(b + PX_PRIVATE, PX_BODY(before) + PX_PRIVATE, 4); /* version, source port */
	assert_memory_equal(b + PX_PRIVATE + 36, words, 56);
	assert_memory_equal(b + 16, PX_BODY(before) + 16, 8); /* CA GUID */
	assert_int_equal(link_at(0)->state, PROXY_REQ_SEEN);

	assert_true(send_rep(QPN_B));
	assert_int_equal(m.qpn, alias_at(0));
	assert_int_not_equal(m.qpn, QPN_B);
	assert_int_equal(m.local_comm_id, COMM_B);
	assert_int_equal(m.remote_comm_id, COMM_A);
	assert_int_equal(m.starting_psn, 200);
	assert_memory_equal(PX_BODY(pkt) + 36, "answe", 5);
	assert_true(send_ids(0, ROCE_CM_RTU));
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(link_at(i)->state, PROXY_ESTABLISHED);
	assert_true(link_at(0)->id == link_at(1)->id);
}

/* Data of both directions arrive at the real queue pairs, and only these. */
static void data_find_their_queue_pair(void **state)
{
	const uint8_t reth[16] = {0};
	const struct tp t = {
	    .opcode = 0x0a, .is6 = six, .ttl = 64, .ext = reth, .ext_len = 16, .payload_len = 100, .pad = -1};

	connect_hosts();
	for (unsigned from = 0; from < 2; from++) {
		unsigned at = six ? 8 : 12, n = six ? 16 : 4, skip = six ? 0 : 12;

		struct tp d = t;

		d.dqpn = alias_at(from);
		len = tp_make(pkt, &d);
		memcpy(pkt + at, host[from].b + skip, n);
		memcpy(pkt + at + n, relay[from].b + skip, n);
		px_seal(pkt, len);
		proxy_edge_in(&edge[from], pkt, len, &act, now);
		assert_int_equal(act.verdict, PROXY_PASS);
		proxy_edge_out(&edge[!from], pkt, len, NULL, &act, now);
		assert_int_equal(act.verdict, PROXY_PASS);
		assert_int_equal(roce_parse(pkt, len, &p), ROCE_PARSE_OK);
		assert_true(roce_icrc_ok(&p));
		assert_int_equal(p.dqpn, from ? QPN_A : QPN_B);
		assert_true(rwy_ip_eq(&p.src, &relay[!from]) && rwy_ip_eq(&p.dst, &host[!from]));
		/* Sent again: it is as it was. */
		proxy_edge_out(&edge[!from], pkt, len, NULL, &act, now);
		assert_int_equal(act.verdict, PROXY_PASS);
		assert_int_equal(roce_parse(pkt, len, &p), ROCE_PARSE_OK);
		assert_true(roce_icrc_ok(&p) && rwy_ip_eq(&p.src, &relay[!from]));

		/* Another host uses the link's QPN. */
		len = tp_make(pkt, &d);
		memcpy(pkt + at + n, relay[from].b + skip, n);
		px_seal(pkt, len);
		proxy_edge_in(&edge[from], pkt, len, &act, now);
		assert_int_equal(act.verdict, PROXY_DROP);
		assert_int_equal(edge[from].c.drop_relay_foreign, 1);
		/* Nobody's QPN. */
		d.dqpn = alias_at(from) + 1;
		len = tp_make(pkt, &d);
		memcpy(pkt + at + n, relay[from].b + skip, n);
		px_seal(pkt, len);
		proxy_edge_in(&edge[from], pkt, len, &act, now);
		assert_int_equal(act.verdict, PROXY_DROP);
		assert_int_equal(edge[from].c.drop_relay_unknown_qpn, 1);
	}
}

static void assert_rej(uint16_t reason)
{
	assert_int_equal(act.verdict, PROXY_DROP);
	assert_true(act.reply_len != 0);
	read_packet(act.reply, act.reply_len);
	assert_int_equal(m.attr, ROCE_CM_REJ);
	assert_int_equal(m.rej_reason, reason);
	assert_int_equal(m.remote_comm_id, COMM_A);
	assert_int_equal(m.tid, 7);
	assert_int_equal(m.msg, 0);
}

/* Nobody may use a relay without an entry for it. */
static void strangers_are_refused(void **state)
{
	struct px_req r = req_of_a();

	r.src = addr(1, 77); /* not in the access list */
	assert_false(send_req(&r));
	assert_rej(8);
	assert_true(rwy_ip_eq(&p.src, &relay[0]) && rwy_ip_eq(&p.dst, &r.src));
	assert_int_equal(edge[0].c.refused_acl, 1);

	r = req_of_a();
	r.port = PORT + 1; /* nobody listens */
	assert_false(send_req(&r));
	assert_rej(8);
	assert_int_equal(edge[0].c.refused_no_map, 1);

	r = req_of_a();
	r.transport = 1; /* UC */
	assert_false(send_req(&r));
	assert_rej(9);
	assert_int_equal(edge[0].c.refused_transport, 1);

	/* GIDs of one host in a packet of another. */
	r = req_of_a();
	len = px_make_req(pkt, &r);
	pkt[six ? 23 : 15] ^= 1;
	px_seal(pkt, len);
	proxy_edge_in(&edge[0], pkt, len, &act, now);
	assert_int_equal(act.verdict, PROXY_DROP);
	assert_int_equal(act.reply_len, 0);
	assert_int_equal(edge[0].c.drop_relay_cm_foreign, 1);

	/* A damaged REQ begins nothing. */
	len = px_make_req(pkt, &r);
	pkt[len - 1] ^= 1;
	proxy_edge_in(&edge[0], pkt, len, &act, now);
	assert_int_equal(act.verdict, PROXY_DROP);
	assert_int_equal(edge[0].c.drop_relay_cm_icrc, 1);
	assert_null(link_at(0));

	/* The destination relay asks its own list: the REJ goes back into the engine. */
	policy[1].acls = 0;
	assert_false(send_req(&r));
	assert_rej(8);
	assert_true(rwy_ip_eq(&p.src, &host[1]) && rwy_ip_eq(&p.dst, &host[0]));
	memcpy(pkt, act.reply, len = act.reply_len);
	proxy_edge_out(&edge[0], pkt, len, NULL, &act, now);
	assert_int_equal(act.verdict, PROXY_PASS);
	assert_int_equal(link_at(0)->state, PROXY_CLOSED);
	assert_null(link_at(1));
}

/* A map to the relay itself, to the host that asks, or to another family. */
static void loops_are_refused(void **state)
{
	const struct px_req r = req_of_a();

	acl.from.len = acl.to.len = 0;
	entry.target = relay[0];
	assert_false(send_req(&r));
	entry.target = host[0];
	assert_false(send_req(&r));
	entry.target = six ? rwy_ip_from4((const uint8_t[]){10, 9, 9, 9}) : (struct rwy_ip){.b = {0xfd}};
	assert_false(send_req(&r));
	assert_rej(8);
	assert_int_equal(edge[0].c.refused_loop, 3);
	assert_null(link_at(0));
}

/* The REQ of a host that repeats it when nothing comes for 4.096 us * 2^timeout. */
static void make_req_with(const struct px_req *r, unsigned timeout)
{
	len = px_make_req(pkt, r);
	PX_BODY(pkt)[43] = (uint8_t)(timeout << 3 | (PX_BODY(pkt)[43] & 7));
	px_seal(pkt, len);
}

/* REQ, REP and RTU come several times: one link, one alias, and the hosts get every repeat. */
static void repeats(void **state)
{
	const struct px_req r = req_of_a();
	uint32_t alias;

	assert_true(send_req(&r));
	assert_int_equal(act.reply_len, 0);
	alias = m.qpn;
	make_req_with(&r, 18);
	proxy_edge_in(&edge[0], pkt, len, &act, now);
	assert_int_equal(act.verdict, PROXY_PASS);
	read_packet(act.reply, act.reply_len);
	assert_int_equal(m.attr, ROCE_CM_MRA); /* its host waits now */
	assert_int_equal(m.remote_comm_id, COMM_A);
	assert_true(m.service_timeout > 0);
	assert_true(rwy_ip_eq(&p.dst, &host[0]) && rwy_ip_eq(&p.src, &relay[0]));
	proxy_edge_out(&edge[1], pkt, len, NULL, &act, now);
	assert_int_equal(act.verdict, PROXY_PASS);
	assert_int_equal(act.reply_len, 0);
	read_packet(pkt, len);
	assert_int_equal(m.qpn, alias);
	assert_true(send_ids(1, ROCE_CM_MRA));
	assert_int_equal(link_at(0)->state, PROXY_REQ_SEEN);
	assert_true(send_rep(QPN_B));
	alias = m.qpn;
	assert_true(send_rep(QPN_B));
	assert_int_equal(m.qpn, alias);
	assert_true(send_req(&r));
	assert_true(send_ids(0, ROCE_CM_RTU));
	assert_true(send_rep(QPN_B));
	assert_true(send_ids(0, ROCE_CM_RTU));
	assert_int_equal(edge[0].c.links_asked, 1);
	assert_int_equal(edge[1].c.links_asked, 1);
	assert_int_equal(edge[0].c.links_opened, 1);
	assert_int_equal(edge[0].c.relay_mra_sent, 1);
	/* Another REP contradicts the first. */
	assert_false(send_rep(QPN_B + 1));
	assert_int_equal(edge[1].c.drop_relay_cm_mismatch, 1);
}

/*
 * A host whose own timeout is long, as Linux's, gets no MRA: Linux takes one only, and waits by it
 * for all further repeats. The server's MRA is the first one.
 */
static void patient_hosts_get_no_mra(void **state)
{
	const struct px_req r = req_of_a();

	for (unsigned timeout = 18; timeout <= 20; timeout++) {
		for (unsigned n = 0; n < 2; n++) {
			make_req_with(&r, timeout);
			assert_true(carry(0));
		}
		assert_int_equal(edge[0].c.relay_mra_sent, 1);
	}
	assert_int_equal(edge[0].c.relay_cm_repeated, 5);
	assert_true(send_ids(1, ROCE_CM_MRA));
	assert_int_equal(m.attr, ROCE_CM_MRA);
}

/*
 * A link is half-open for some time after the last REQ, not the first: whoever answers one of its
 * repeats, with the alias of the first, is its host B.
 */
static void repeats_keep_a_link(void **state)
{
	const struct px_req r = req_of_a();
	rwy_time end = now + cfg.half_open_ttl + 5 * RWY_SEC;
	uint32_t alias;

	assert_true(send_req(&r));
	alias = m.qpn;
	for (; now < end; now += 5 * RWY_SEC) {
		for (unsigned i = 0; i < 2; i++)
			proxy_edge_tick(&edge[i], now);
		assert_true(send_req(&r));
		assert_int_equal(m.qpn, alias);
	}
	assert_true(send_rep(QPN_B));
	assert_true(send_ids(0, ROCE_CM_RTU));
	assert_int_equal(alias_at(1), alias);
	assert_int_equal(edge[0].c.links_expired + edge[1].c.links_expired, 0);
}

static void disconnect_crossing(void **state)
{
	connect_hosts();
	assert_false(send_dreq(0, 12345)); /* a QPN that the link does not have */
	assert_int_equal(edge[0].c.drop_relay_cm_mismatch, 1);
	assert_true(send_dreq(0, alias_at(0)));
	assert_int_equal(m.qpn, QPN_B);
	assert_true(send_dreq(1, alias_at(1))); /* crosses */
	assert_int_equal(m.qpn, QPN_A);
	assert_true(send_ids(1, ROCE_CM_DREP));
	assert_int_equal(link_at(0)->state, PROXY_CLOSED);
	assert_true(send_ids(0, ROCE_CM_DREP));
	assert_true(send_dreq(0, alias_at(0))); /* its DREP was lost */
	assert_true(send_ids(1, ROCE_CM_DREP));
	now += cfg.closed_ttl;
	for (unsigned i = 0; i < 2; i++) {
		proxy_edge_tick(&edge[i], now);
		assert_null(link_at(i));
	}
	assert_false(send_ids(1, ROCE_CM_DREP));
	assert_int_equal(edge[1].c.drop_relay_cm_unknown, 1);
}

/* The real REJ with its reason and private data; asked again after it was lost; then a new one. */
static void reject_and_again(void **state)
{
	const struct px_req r = req_of_a();
	uint8_t mad[256];

	for (unsigned n = 0; n < 3; n++) {
		assert_true(send_req(&r));
		cp_make_rej(mad, 7, 0, COMM_A, 0, 28);
		cp_be(mad + 24 + 84, 0x6e6f, 2);
		assert_true(send_mad(1, mad));
		assert_int_equal(m.rej_reason, 28);
		assert_memory_equal(PX_BODY(pkt) + 84, "no", 2);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(link_at(i)->state, PROXY_CLOSED);
	}
	assert_int_equal(edge[0].c.links_rejected, 3);
	/* The next try is accepted, with another queue pair at the target. */
	assert_true(send_req(&r));
	assert_true(send_rep(QPN_B + 5));
	assert_true(send_ids(0, ROCE_CM_RTU));
	assert_int_equal(link_at(0)->rqpn, QPN_B + 5);
}

/* Half-open links end by themselves; a new REQ with an old ID replaces its link. */
static void timeouts_and_superseded(void **state)
{
	struct px_req r = req_of_a();

	assert_true(send_req(&r));
	now += cfg.half_open_ttl;
	for (unsigned i = 0; i < 2; i++) {
		proxy_edge_tick(&edge[i], now);
		assert_null(link_at(i));
		assert_int_equal(edge[i].c.links_expired, 1);
	}
	assert_false(send_rep(QPN_B));
	connect_hosts();
	r.tid = 8;
	r.qpn = QPN_A + 2;
	assert_true(send_req(&r));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(edge[i].c.links_superseded, 1);
		assert_int_equal(link_at(i)->state, PROXY_REQ_SEEN);
	}
}

static void limits_are_told(void **state)
{
	struct px_req r = req_of_a();

	entry.links_max = 1;
	assert_true(send_req(&r));
	r.comm++;
	r.qpn++;
	assert_false(send_req(&r));
	assert_int_equal(edge[0].c.refused_entry, 1);
	assert_true(act.reply_len != 0);
	entry.links_max = 0;
	assert_true(send_req(&r));
}

static void qpns_run_out(void **state)
{
	struct px_req r = req_of_a();

	proxy_edge_fini(&edge[1]);
	cfg.qpn_last = cfg.qpn_first;
	edge_begin(1);
	assert_true(send_req(&r));
	r.comm++;
	r.qpn++;
	assert_false(send_req(&r));
	assert_int_equal(edge[1].c.refused_qpn, 1);
	read_packet(act.reply, act.reply_len);
	assert_int_equal(m.rej_reason, 1);
}

/* The trailer names the target and is gone when it gets there. */
static void trailer_names_the_target(void **state)
{
	struct proxy_target t = {.addr = host[1], .port = TARGET_PORT + 1};
	unsigned n = proxy_trailer_len(&t), left = 56 - n;
	uint8_t data[56], zero[PROXY_TRAILER6] = {0};
	struct px_req r = req_of_a();

	memcpy(data, words, 56);
	proxy_trailer_write(data + left, &t);
	r.private_data = data;
	r.port = REDIRECT;
	assert_true(send_req(&r));
	assert_int_equal(m.service_id & 0xffff, TARGET_PORT + 1);
	assert_memory_equal(PX_BODY(pkt) + PX_PRIVATE + 36, words, left);
	assert_memory_equal(PX_BODY(pkt) + PX_PRIVATE + 36 + left, zero, n);
	assert_true(send_rep(QPN_B));

	/* Forged: any changed byte, and none at all; the list decides about the rest. */
	for (unsigned i = 0; i < n; i++) {
		data[left + i] ^= 0x40;
		r.comm++;
		assert_false(send_req(&r));
		data[left + i] ^= 0x40;
	}
	assert_int_equal(edge[0].c.refused_trailer, n);
	t.port = 22;
	proxy_trailer_write(data + left, &t);
	assert_false(send_req(&r));
	assert_int_equal(edge[0].c.refused_acl, 1);
	/* To an ordinary port it is the program's own data. */
	t.port = TARGET_PORT + 1;
	proxy_trailer_write(data + left, &t);
	r.port = PORT;
	assert_true(send_req(&r));
	assert_memory_equal(PX_BODY(pkt) + PX_PRIVATE + 36, data, 56);
}

/* The source port of a REQ was told to the relay before, by a program that is gone: it is used up. */
static void trailer_beats_a_one_time_port(void **state)
{
	const struct proxy_target t = {.addr = host[1], .port = TARGET_PORT + 1},
	                          stale = {.addr = host[1], .port = TARGET_PORT};
	const unsigned n = proxy_trailer_len(&t);
	uint8_t data[56], zero[PROXY_TRAILER6] = {0};
	struct px_req r = req_of_a();
	uint16_t port;

	memcpy(data, words, 56);
	proxy_trailer_write(data + 56 - n, &t);
	r.private_data = data;
	r.port = REDIRECT;
	len = px_make_req(pkt, &r);
	port = rwy_get16(PX_BODY(pkt) + PX_PRIVATE + PROXY_IPCM_PORT);
	assert_int_equal(proxy_once_add(&edge[0].once, &host[0], &relay[0], port, &stale, now), 0);
	for (unsigned i = 0; i < 2; i++) {
		proxy_edge_in(&edge[0], pkt, len, &act, now);
		assert_int_equal(act.verdict, PROXY_PASS);
		read_packet(pkt, len);
		assert_int_equal(m.service_id & 0xffff, TARGET_PORT + 1);
		assert_memory_equal(PX_BODY(pkt) + PX_PRIVATE + PROXY_IPCM_LEN + 56 - n, zero, n);
		assert_null(proxy_once_find(&edge[0].once, &host[0], &relay[0], port, now));
		len = px_make_req(pkt, &r); /* it comes again */
	}
	assert_int_equal(edge[0].c.relay_cm_repeated, 1);
	assert_int_equal(edge[0].c.once_used, 0);
}

/*
 * SIDR_REQ: the answer is there at once, names request and service (IBA 12.11.2), and nothing is
 * kept. Out of a tunnel it is none of ours.
 */
static void sidr_is_refused(void **state)
{
	uint8_t mad[256], *body = mad + 24;

	cp_mad(mad, 0x0017, 0x1122334455667788);
	cp_be(body, 0xabcdef01, 4);
	cp_be(body + 8, 0x0000000001110000 | PORT, 8);
	memset(body + 16, 0x5a, 216);
	assert_false(send_mad(0, mad));
	assert_int_equal(edge[0].c.refused_sidr, 1);
	assert_true(act.reply_len);
	read_packet(act.reply, act.reply_len);
	assert_true(rwy_ip_eq(&p.src, &relay[0]) && rwy_ip_eq(&p.dst, &host[0]));
	assert_int_equal(m.attr, ROCE_CM_SIDR_REP);
	assert_int_equal(m.tid, 0x1122334455667788);
	assert_memory_equal(p.payload + 24, body, 4);
	assert_int_equal(p.payload[24 + 4], 1); /* service ID not supported */
	assert_memory_equal(p.payload + 24 + 12, body + 8, 8);
	for (unsigned i = 20; i < 232; i++)
		assert_int_equal(p.payload[24 + i], 0); /* no QPN before, no Q_Key, nothing of the request */
	for (unsigned i = 5; i < 12; i++)
		assert_int_equal(p.payload[24 + i], 0);
	pkt[len - 1] ^= 1; /* damaged: no answer */
	proxy_edge_in(&edge[0], pkt, len, &act, now);
	assert_int_equal(act.reply_len, 0);
	len = px_packet(pkt, mad, &host[1], &host[0]);
	proxy_edge_out(&edge[0], pkt, len, NULL, &act, now);
	assert_int_equal(act.reply_len, 0);
	assert_int_equal(edge[0].c.drop_relay_cm_malformed, 1);
	assert_int_equal(edge[0].c.refused_sidr, 1);
}

/* Other management, UD and messages in the wrong state end at the edge. */
static void what_does_not_pass(void **state)
{
	const struct px_req r = req_of_a();
	uint8_t mad[256];

	cp_make_ids(mad, 0x0018, 7, COMM_A, 0); /* SIDR_REP */
	assert_false(send_mad(0, mad));
	assert_int_equal(edge[0].c.drop_relay_cm_malformed, 1);
	mad[1] = 3; /* subnet administration */
	assert_false(send_mad(0, mad));
	assert_int_equal(edge[0].c.drop_relay_not_cm, 1);
	assert_true(send_req(&r));
	assert_false(send_ids(0, ROCE_CM_RTU));
	assert_int_equal(edge[0].c.drop_relay_cm_state, 1);
	assert_false(send_ids(1, ROCE_CM_DREP));
	assert_int_equal(edge[1].c.drop_relay_cm_state, 1);
	proxy_edge_in(&edge[0], pkt, 10, &act, now);
	assert_int_equal(act.verdict, PROXY_DROP);
	assert_int_equal(edge[0].c.drop_relay_malformed, 1);
}

#define ALL(f)                                                                                               \
	cmocka_unit_test_setup_teardown(f, set_up, tear_down),                                               \
	    cmocka_unit_test_setup_teardown(f, set_up6, tear_down),                                          \
	    cmocka_unit_test_setup_teardown(f, set_up_mortal, tear_down),                                    \
	    cmocka_unit_test_setup_teardown(f, set_up_mortal6, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    ALL(set_up_is_rewritten),
	    ALL(data_find_their_queue_pair),
	    ALL(strangers_are_refused),
	    ALL(loops_are_refused),
	    ALL(repeats),
	    ALL(patient_hosts_get_no_mra),
	    ALL(repeats_keep_a_link),
	    ALL(disconnect_crossing),
	    ALL(reject_and_again),
	    ALL(timeouts_and_superseded),
	    ALL(limits_are_told),
	    ALL(qpns_run_out),
	    ALL(trailer_names_the_target),
	    ALL(trailer_beats_a_one_time_port),
	    ALL(sidr_is_refused),
	    ALL(what_does_not_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
