/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The desk: requests and answers byte by byte, cookies, the access list, one-time ports with their
 * REQ: used twice, too late, by another host. Pairs.
 */
#include "proxy/desk.h"

#include "roce/cm.h"
#include "roce/icrc.h"
#include "tests/lib/proxy_cm.h"

#define TARGET_PORT 7777
#define REDIRECT    4790
#define SOURCE_PORT 40000 /* of px_make_req() */

static struct proxy_edge edge;
static struct proxy_policy policy;
static struct proxy_acl acl;
static struct rwy_ip host, other, relay, target;
static struct proxy_act act;
static rwy_time now;
static bool six;

static struct rwy_ip addr(uint8_t net, uint8_t h)
{
	struct rwy_ip a = {.b = {0xfd, 0, 0, net}};

	a.b[15] = h;
	return six ? a : rwy_ip_from4((const uint8_t[]){10, net, 0, h});
}

static int set_up_as(bool is6)
{
	struct proxy_map_cfg cfg;

	six = is6;
	now = 1000 * RWY_SEC;
	host = addr(1, 3);
	other = addr(1, 4);
	relay = addr(1, 254);
	target = addr(2, 3);
	acl = (struct proxy_acl){{addr(1, 0), 120}, {target, 128}, TARGET_PORT, TARGET_PORT};
	policy = (struct proxy_policy){
	    .addr = {relay}, .addrs = 1, .acl = &acl, .acls = 1, .redirect_port = REDIRECT};
	proxy_map_cfg_default(&cfg);
	assert_int_equal(proxy_edge_init(&edge, &policy, &cfg), 0);
	memset(edge.cookie_key, 7, sizeof(edge.cookie_key));
	return 0;
}

static int set_up(void **state)
{
	return set_up_as(false);
}

static int set_up6(void **state)
{
	return set_up_as(true);
}

static int tear_down(void **state)
{
	proxy_edge_fini(&edge);
	return 0;
}

static struct proxy_ask ask_of(enum proxy_ask_kind kind)
{
	return (struct proxy_ask){.version = PROXY_ASK_VERSION,
	    .kind = (uint8_t)kind,
	    .id = 99,
	    .target = {target, TARGET_PORT},
	    .source_port = SOURCE_PORT};
}

static struct proxy_ask say(const struct rwy_ip *from, struct proxy_ask a)
{
	return proxy_desk_answer(&edge, from, &relay, &a, now);
}

/* With the cookie, as hosts do. */
static enum proxy_answer once(const struct rwy_ip *from, uint16_t port)
{
	struct proxy_ask a = ask_of(PROXY_ASK_ONCE);

	a.source_port = port;
	a.cookie = say(from, a).cookie;
	return (enum proxy_answer)say(from, a).answer;
}

/* A REQ to the redirect port, with 56 bytes of the program's own: does it go on to the target? */
static bool req(const struct rwy_ip *from, uint32_t comm)
{
	static uint8_t data[56], pkt[TP_MAX];
	const struct px_req r = {.src = *from,
	    .dst = relay,
	    .comm = comm,
	    .qpn = 17 + comm,
	    .tid = comm,
	    .port = REDIRECT,
	    .private_data = data};
	struct roce_cm_msg m;
	struct roce_pkt p;
	uint32_t len;

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i + 1);
	len = px_make_req(pkt, &r);
	proxy_edge_in(&edge, pkt, len, &act, now);
	if (act.verdict == PROXY_DROP)
		return false;
	assert_int_equal(roce_parse(pkt, len, &p), ROCE_PARSE_OK);
	assert_true(roce_icrc_ok(&p));
	assert_int_equal(roce_cm_parse(&p, &m), 0);
	assert_true(rwy_ip_eq(&p.dst, &target));
	assert_int_equal(m.service_id & 0xffff, TARGET_PORT);
	assert_memory_equal(PX_BODY(pkt) + PX_PRIVATE + 36, data, 56); /* byte for byte */
	return true;
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* Every field has its place, and what is no request is none. */
static void codec(void **state)
{
	struct proxy_ask a = {.version = PROXY_ASK_VERSION,
	    .kind = PROXY_ASK_PAIR,
	    .answer = PROXY_ANSWER_FULL,
	    .is_answer = true,
	    .id = 0x0102030405060708,
	    .cookie = 0x1112131415161718,
	    .target = {target, 0x2122},
	    .source_port = 0x3132,
	    .redirect_port = 0x4142,
	    .lqpn = 0x515253,
	    .rqpn = 0x616263,
	    .alias = 0x717273};
	uint8_t b[PROXY_ASK_LEN + 1] = {0};
	struct proxy_ask c;

	proxy_ask_write(b, &a);
	assert_memory_equal(b, "RwyA\x01\x83\x05\0\x01\x02\x03\x04\x05\x06\x07\x08\x11\x12\x13\x14", 20);
	assert_int_equal(proxy_ask_read(b, sizeof(b), &c), 0);
	assert_memory_equal(&c.target, &a.target, sizeof(c.target));
	assert_true(c.version == a.version && c.kind == a.kind && c.answer == a.answer && c.is_answer);
	assert_true(c.id == a.id && c.cookie == a.cookie && c.source_port == a.source_port);
	assert_true(c.redirect_port == a.redirect_port && c.lqpn == a.lqpn && c.rqpn == a.rqpn);
	assert_int_equal(c.alias, a.alias);
	for (unsigned n = 0; n < PROXY_ASK_LEN; n++)
		assert_int_equal(proxy_ask_read(b, n, &c), RWY_EMALFORMED);
	b[48] = 1; /* a QPN of more than 24 bits */
	assert_int_equal(proxy_ask_read(b, PROXY_ASK_LEN, &c), RWY_EMALFORMED);
	b[4] = 2; /* of another version only the head is read */
	assert_int_equal(proxy_ask_read(b, PROXY_ASK_LEN, &c), 0);
	assert_true(c.version == 2 && c.id == a.id && !c.cookie && !c.lqpn);
	b[0] ^= 1;
	assert_int_equal(proxy_ask_read(b, PROXY_ASK_LEN, &c), RWY_EMALFORMED);
}

/* A request in a UDP datagram. Returns its length. */
static uint32_t datagram(uint8_t *ip, const struct rwy_ip *from, const struct proxy_ask *a)
{
	uint32_t hdr = six ? 40 : 20, n = 8 + PROXY_ASK_LEN, skip = six ? 0 : 12, size = six ? 16 : 4;
	uint8_t *udp = ip + hdr, pseudo[44] = {0};
	uint32_t sum = 0, at = size * 2;

	memset(ip, 0, hdr + n);
	ip[0] = six ? 0x60 : 0x45;
	cp_be(ip + (six ? 4 : 2), six ? n : hdr + n, 2);
	ip[six ? 6 : 9] = 17;
	ip[six ? 7 : 8] = 64;
	memcpy(ip + (six ? 8 : 12), from->b + skip, size);
	memcpy(ip + (six ? 8 : 12) + size, relay.b + skip, size);
	cp_be(udp, 50000, 2);
	cp_be(udp + 2, PROXY_ASK_PORT, 2);
	cp_be(udp + 4, n, 2);
	proxy_ask_write(udp + 8, a);
	memcpy(pseudo, ip + (six ? 8 : 12), at);
	pseudo[at + 1] = 17;
	cp_be(pseudo + at + 2, n, 2);
	for (unsigned i = 0; i < at + 4; i += 2)
		sum += (uint32_t)pseudo[i] << 8 | pseudo[i + 1];
	for (unsigned i = 0; i < n; i += 2)
		sum += (uint32_t)udp[i] << 8 | udp[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	cp_be(udp + 6, (uint16_t)~sum ? (uint16_t)~sum : 0xffff, 2);
	return hdr + n;
}

/* The answer goes back to the port that asked, with good checksums; what is damaged gets none. */
static void datagrams(void **state)
{
	struct proxy_ask a = ask_of(PROXY_ASK_MAY), got;
	uint8_t ip[200], again[200];
	uint32_t hdr = six ? 40 : 20, len = datagram(ip, &host, &a);

	proxy_desk_packet(&edge, ip, len, &act, now);
	assert_int_equal(act.verdict, PROXY_DROP);
	assert_int_equal(act.reply_len, len);
	assert_int_equal(proxy_ask_read(act.reply + hdr + 8, PROXY_ASK_LEN, &got), 0);
	assert_true(got.is_answer && got.id == 99 && got.cookie);
	assert_int_equal(got.answer, PROXY_ANSWER_OK);
	assert_int_equal(got.redirect_port, REDIRECT);
	assert_memory_equal(act.reply + hdr, ip + hdr + 2, 2);
	assert_memory_equal(act.reply + hdr + 2, ip + hdr, 2);
	memcpy(again, act.reply, act.reply_len);
	again[hdr + 8] ^= 1;
	proxy_desk_packet(&edge, again, len, &act, now);
	assert_int_equal(edge.c.drop_relay_ask, 1); /* damaged */
	again[hdr + 8] ^= 1;
	proxy_desk_packet(&edge, again, len, &act, now);
	assert_int_equal(edge.c.drop_relay_ask, 2); /* no request: answers are not answered */
	assert_int_equal(act.reply_len, 0);

	for (uint32_t n = 0; n < len; n++)
		proxy_desk_packet(&edge, ip, n, &act, now);
	assert_int_equal(edge.c.drop_relay_ask, 2 + len);
	assert_int_equal(edge.c.asks, 1);
}

/* A library of another version, and what nobody knows. */
static void others(void **state)
{
	struct proxy_ask a = ask_of(PROXY_ASK_MAY);

	a.version = 9;
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_VERSION);
	a = ask_of(PROXY_ASK_COUNT);
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_UNKNOWN);
	a = ask_of(PROXY_ASK_NONE);
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_UNKNOWN);
	assert_int_equal(edge.c.asks_refused, 3);
}

/* Anybody may ask whether the relay is there; it is told nothing but where to connect. */
static void alive(void **state)
{
	struct proxy_ask a = ask_of(PROXY_ASK_ALIVE), got;

	a.target = (struct proxy_target){.port = 0};
	got = say(&other, a);
	assert_int_equal(got.answer, PROXY_ANSWER_OK);
	assert_int_equal(got.redirect_port, REDIRECT);
	assert_int_equal(got.alias, 0);
	policy.redirect_port = 0; /* for pairs alone */
	assert_int_equal(say(&other, a).answer, PROXY_ANSWER_OK);
	assert_int_equal(edge.c.asks, 2);
	assert_int_equal(edge.c.asks_refused, 0);
}

/* --- who may ---------------------------------------------------------------------------------- */

static void access_list(void **state)
{
	struct proxy_ask a = ask_of(PROXY_ASK_MAY);
	const struct rwy_ip stranger = addr(9, 9);

	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_OK);
	assert_int_equal(say(&stranger, a).answer, PROXY_ANSWER_REFUSED);
	assert_int_equal(once(&stranger, SOURCE_PORT), PROXY_ANSWER_REFUSED);
	a.target.port++;
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_REFUSED);
	acl.from.len = acl.to.len = 0;
	a.target = (struct proxy_target){relay, TARGET_PORT};
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_LOOP);
	a.target.addr = host;
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_LOOP);
	a.target.addr = six ? rwy_ip_from4((const uint8_t[]){10, 9, 9, 9}) : (struct rwy_ip){.b = {0xfd}};
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_LOOP);
	policy.redirect_port = 0;
	a = ask_of(PROXY_ASK_MAY);
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_NO_REDIRECT);
	assert_int_equal(edge.c.once_made, 0);
}

/* Nothing is kept for who cannot show the cookie of its address, of a minute or two ago. */
static void cookies(void **state)
{
	struct proxy_ask a = ask_of(PROXY_ASK_ONCE);

	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_COOKIE);
	a.cookie = say(&other, a).cookie; /* another host's */
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_COOKIE);
	a.cookie = 1;
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_COOKIE);
	a.cookie = say(&host, a).cookie;
	now += 60 * RWY_SEC;
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_OK);
	now += 60 * RWY_SEC;
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_COOKIE);
	assert_int_equal(edge.c.once_made, 1);
	assert_int_equal(edge.c.asks_refused, 0);
}

/* --- one-time ports --------------------------------------------------------------------------- */

static void once_is_once(void **state)
{
	assert_false(req(&host, 1));
	assert_int_equal(once(&host, SOURCE_PORT), PROXY_ANSWER_OK);
	assert_false(req(&other, 1)); /* another host */
	assert_int_equal(edge.c.refused_trailer, 2);
	assert_true(req(&host, 1));
	assert_true(req(&host, 1)); /* the REQ comes again */
	assert_int_equal(edge.c.relay_cm_repeated, 1);
	assert_false(req(&host, 2)); /* another REQ */
	assert_int_equal(edge.c.refused_trailer, 3);
	assert_int_equal(edge.c.once_used, 1);
	assert_int_equal(edge.c.links_asked, 1);
}

static void once_ends(void **state)
{
	assert_int_equal(once(&host, SOURCE_PORT + 1), PROXY_ANSWER_OK);
	assert_false(req(&host, 1)); /* another source port */
	assert_int_equal(once(&host, SOURCE_PORT), PROXY_ANSWER_OK);
	now += PROXY_ONCE_TTL;
	assert_false(req(&host, 1));
	assert_int_equal(once(&host, SOURCE_PORT), PROXY_ANSWER_OK);
	now += PROXY_ONCE_TTL - 1;
	assert_true(req(&host, 1));
}

/* A REQ that is refused leaves the port to its repeat; the list is asked again. */
static void once_and_refused(void **state)
{
	assert_int_equal(once(&host, SOURCE_PORT), PROXY_ANSWER_OK);
	policy.acls = 0;
	assert_false(req(&host, 1));
	assert_int_equal(edge.c.refused_acl, 1);
	assert_int_equal(edge.c.once_used, 0);
	policy.acls = 1;
	assert_true(req(&host, 1));
}

/* A host has its part of the table, and no more; what it says again takes no more room. */
static void once_is_bounded(void **state)
{
	unsigned n = 0;

	for (uint8_t h = 1; h; h++) {
		const struct rwy_ip a = addr(1, h);

		for (uint16_t p = 1; p <= PROXY_ONCE_HOST + 1; p++) {
			enum proxy_answer said = once(&a, p);

			assert_int_equal(said,
			    p <= PROXY_ONCE_HOST && n < PROXY_ONCE_MAX ? PROXY_ANSWER_OK : PROXY_ANSWER_FULL);
			n += said == PROXY_ANSWER_OK;
		}
		assert_int_equal(
		    once(&a, 1), h <= PROXY_ONCE_MAX / PROXY_ONCE_HOST ? PROXY_ANSWER_OK : PROXY_ANSWER_FULL);
		if (n == PROXY_ONCE_MAX && h > 20)
			break;
	}
	assert_int_equal(n, PROXY_ONCE_MAX);
	now += PROXY_ONCE_TTL;
	assert_int_equal(once(&other, 1), PROXY_ANSWER_OK);
}

/* --- pairs ------------------------------------------------------------------------------------ */

static struct proxy_ask pair(
    const struct rwy_ip *from, enum proxy_ask_kind kind, uint32_t lqpn, uint32_t rqpn)
{
	struct proxy_ask a = ask_of(kind);

	a.lqpn = lqpn;
	a.rqpn = rqpn;
	a.cookie = say(from, a).cookie;
	return say(from, a);
}

/* The same again has the same alias; other queue pairs, and the pair anew, have others. */
static void pairs(void **state)
{
	struct proxy_ask a, b;
	struct proxy_map_now n;

	acl.port_lo = 1;
	acl.port_hi = 65535;
	a = pair(&host, PROXY_ASK_PAIR, 17, 18);
	assert_int_equal(a.answer, PROXY_ANSWER_OK);
	assert_true(a.alias >= 0x100);
	b = pair(&host, PROXY_ASK_PAIR, 17, 18);
	assert_int_equal(b.alias, a.alias);
	assert_int_equal(edge.c.pairs_made, 1);
	b = pair(&host, PROXY_ASK_PAIR, 19, 18); /* many to one: the far host decides */
	assert_int_not_equal(b.alias, a.alias);
	b = pair(&other, PROXY_ASK_PAIR, 17, 18);
	assert_int_not_equal(b.alias, a.alias);
	/* The queue pair is connected to another one: the first link ends. */
	b = pair(&host, PROXY_ASK_PAIR, 17, 28);
	assert_int_not_equal(b.alias, a.alias);
	assert_int_equal(edge.c.links_superseded, 1);
	/* The end, also twice, and of what is not there. */
	assert_int_equal(pair(&host, PROXY_ASK_UNPAIR, 17, 18).answer, PROXY_ANSWER_OK);
	assert_int_equal(edge.c.links_closed, 1);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pair(&host, PROXY_ASK_UNPAIR, 17, 28).answer, PROXY_ANSWER_OK);
	assert_int_equal(edge.c.links_closed, 2);
	a = pair(&host, PROXY_ASK_PAIR, 17, 28);
	assert_int_not_equal(a.alias, b.alias); /* late packets of the old one */
	proxy_map_count(edge.map, &n);
	assert_true(n.open == 3 && n.closed == 2 && !n.half_open);
	now += 65 * RWY_SEC;
	proxy_edge_tick(&edge, now);
	proxy_map_count(edge.map, &n);
	assert_true(n.open == 3 && !n.closed);
}

/* A pair has no port: only an entry for all of them allows it, from either host. */
static void pairs_refused(void **state)
{
	struct proxy_ask a;

	assert_int_equal(pair(&host, PROXY_ASK_PAIR, 17, 18).answer, PROXY_ANSWER_REFUSED);
	acl = (struct proxy_acl){{target, 128}, {addr(1, 0), 120}, 1, 65535};
	assert_int_equal(pair(&host, PROXY_ASK_PAIR, 17, 18).answer, PROXY_ANSWER_OK);
	assert_int_equal(pair(&host, PROXY_ASK_PAIR, 0, 18).answer, PROXY_ANSWER_UNKNOWN);
	assert_int_equal(pair(&host, PROXY_ASK_PAIR, 17, 0).answer, PROXY_ANSWER_UNKNOWN);
	a = ask_of(PROXY_ASK_PAIR);
	a.lqpn = 17;
	a.rqpn = 18;
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_COOKIE);
	a.kind = PROXY_ASK_UNPAIR;
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_COOKIE); /* nobody ends another's */
	assert_int_equal(edge.c.links_closed, 0);
	a.target.addr = host;
	a.kind = PROXY_ASK_PAIR;
	a.cookie = say(&host, a).cookie;
	assert_int_equal(say(&host, a).answer, PROXY_ANSWER_LOOP);
}

/* Table and numbers are bounded, and the answers say which. */
static void pairs_bounded(void **state)
{
	struct proxy_map_cfg cfg;

	acl.port_lo = 1;
	acl.port_hi = 65535;
	proxy_edge_fini(&edge);
	proxy_map_cfg_default(&cfg);
	cfg.links_max = 8;
	cfg.source_max = 3;
	cfg.qpn_last = cfg.qpn_first + 4;
	assert_int_equal(proxy_edge_init(&edge, &policy, &cfg), 0);
	for (uint32_t q = 2; q < 5; q++)
		assert_int_equal(pair(&host, PROXY_ASK_PAIR, q, 18).answer, PROXY_ANSWER_OK);
	assert_int_equal(pair(&host, PROXY_ASK_PAIR, 9, 18).answer, PROXY_ANSWER_FULL);
	assert_int_equal(edge.c.refused_source, 1);
	for (uint32_t q = 2; q < 4; q++)
		assert_int_equal(pair(&other, PROXY_ASK_PAIR, q, 18).answer, PROXY_ANSWER_OK);
	assert_int_equal(pair(&other, PROXY_ASK_PAIR, 9, 18).answer, PROXY_ANSWER_NO_QPN);
	assert_int_equal(edge.c.refused_qpn, 1);
	assert_int_equal(edge.c.pairs_made, 5);
}

#define BOTH(f)                                                                                              \
	cmocka_unit_test_setup_teardown(f, set_up, tear_down),                                               \
	    cmocka_unit_test_setup_teardown(f, set_up6, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    BOTH(codec),
	    BOTH(datagrams),
	    BOTH(others),
	    BOTH(alive),
	    BOTH(access_list),
	    BOTH(cookies),
	    BOTH(once_is_once),
	    BOTH(once_ends),
	    BOTH(once_and_refused),
	    BOTH(once_is_bounded),
	    BOTH(pairs),
	    BOTH(pairs_refused),
	    BOTH(pairs_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
