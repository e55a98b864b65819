/* SPDX-License-Identifier: Apache-2.0 */
/* The short way of data packets through a relay's edge, beside the functions that rewrite any packet. */
#include "proxy/fast.h"

#include "proxy/desk.h"
#include "proxy/rewrite.h"
#include "tests/lib/roce_pkt.h"

#define LQPN 0x11
#define RQPN 0xabcdef

/* tp_make()'s source and destination, and a third one. */
static struct rwy_ip addr(bool is6, uint8_t n)
{
	struct rwy_ip a = {{0xfd, [7] = n, [15] = n}};

	return is6 ? a : rwy_ip_from4((const uint8_t[]){10, 0, 0, n});
}

static struct proxy_acl acl = {{.len = 0}, {.len = 0}, 1, 65535};

/* in: the packets of tp_make() are of the local host, to the relay; else of the remote host, to it. */
struct world {
	struct proxy_edge e;
	struct proxy_policy p;
	struct rwy_ip local, remote, relay;
	uint32_t alias;
	uint64_t hint;
};

static void world_begin(struct world *w, bool is6, bool in)
{
	struct proxy_map_cfg cfg;
	struct proxy_ask a = {
	    .version = PROXY_ASK_VERSION, .kind = PROXY_ASK_PAIR, .lqpn = LQPN, .rqpn = RQPN};

	*w = (struct world){
	    .local = addr(is6, in ? 1 : 2), .remote = addr(is6, in ? 3 : 1), .relay = addr(is6, in ? 2 : 3)};
	w->p = (struct proxy_policy){.addr = {w->relay}, .addrs = 1, .acl = &acl, .acls = 1};
	proxy_map_cfg_default(&cfg);
	cfg.links_max = 16;
	assert_int_equal(proxy_edge_init(&w->e, &w->p, &cfg), 0);
	a.target.addr = w->remote;
	a.cookie = proxy_desk_answer(&w->e, &w->local, &w->relay, &a, RWY_SEC).cookie;
	a = proxy_desk_answer(&w->e, &w->local, &w->relay, &a, RWY_SEC);
	assert_int_equal(a.answer, PROXY_ANSWER_OK);
	w->alias = a.alias;
}

static const struct proxy_link *fast(struct world *w, bool in, uint8_t *b, uint32_t len)
{
	return in ? proxy_fast_in(&w->e, b, len, 2 * RWY_SEC)
	          : proxy_fast_out(&w->e, b, len, &w->hint, 2 * RWY_SEC);
}

static bool icrc_good(const uint8_t *b, uint32_t len)
{
	uint32_t crc = tp_icrc(b, len), got = 0;

	for (unsigned i = 0; i < 4; i++)
		got |= (uint32_t)b[len - 4 + i] << 8 * i;
	return crc == got;
}

/* Lengths repeat, so most packets meet a patch; several share a place. */
static void equals_the_long_way(bool is6, bool in)
{
	static const uint8_t opcodes[] = {0x04, 0x06, 0x07, 0x0a, 0x0c, 0x0d, 0x0e, 0x10, 0x11, 0x13, 0x14};
	static uint8_t b[TP_MAX + 64], slow[TP_MAX + 64], ext[32];
	struct world w;
	uint32_t seed = 5, len;

	world_begin(&w, is6, in);
	for (unsigned n = 0; n < 2000; n++) {
		uint8_t op = opcodes[tp_rand(&seed) % sizeof(opcodes)];
		struct tp t = {.opcode = op,
		    .is6 = is6,
		    .ttl = (uint8_t)tp_rand(&seed),
		    .tos = (uint8_t)tp_rand(&seed),
		    .dqpn = in ? w.alias : LQPN,
		    .psn = tp_rand(&seed) & 0xffffff,
		    .ext = ext,
		    .ext_len = roce_op(op)->ext_len,
		    .pad = -1,
		    .seed = n + 1};
		bool broken = n % 7 == 0;
		struct roce_pkt pkt;

		if (roce_op(op)->flags & ROCE_F_PAYLOAD)
			t.payload_len = 4 + tp_rand(&seed) % 5 * 1020;
		len = tp_make(b, &t);
		b[len - 6] ^= broken;
		memcpy(slow, b, len);
		assert_int_equal(roce_parse(slow, len, &pkt), ROCE_PARSE_OK);
		if (in) {
			proxy_rewrite_dst(&pkt, &w.remote);
			proxy_rewrite_dqpn(&pkt, RQPN);
		} else {
			proxy_rewrite_src(&pkt, &w.relay);
		}
		assert_non_null(fast(&w, in, b, len + n % 3 * 9)); /* Ethernet's padding behind it */
		assert_memory_equal(b, slow, len);
		assert_int_equal(icrc_good(b, len), !broken);
		assert_true(is6 || !tp_ip4_csum(b, 20));
	}
	assert_int_equal(in ? w.e.c.relay_in_packets : w.e.c.relay_out_packets, 2000);
	proxy_edge_fini(&w.e);
}

static void equals_the_long_way_everywhere(void **state)
{
	for (unsigned i = 0; i < 4; i++)
		equals_the_long_way(i & 1, i & 2);
}

/* What is not quite ordinary is left as it is: the other functions decide. */
static void left_alone(void **state)
{
	const struct tp good = {.opcode = 0x04, .ttl = 64, .payload_len = 64, .pad = -1};
	static uint8_t b[TP_MAX], was[TP_MAX];
	struct world w;

	for (unsigned k = 0; k < 16; k++) {
		bool in = k & 1, mended = false;
		struct tp t = good;
		uint32_t len, told;

		world_begin(&w, false, in);
		t.dqpn = in ? w.alias : LQPN;
		t.ihl = k / 2 == 1 ? 7 : 0;
		t.frag = k / 2 == 2 ? 0x2000 : 0;
		t.udp_csum = k / 2 == 3 ? 0x1234 : 0;
		t.dport = k / 2 == 4 ? 4790 : 0;
		t.opcode = k / 2 == 5 ? 0x64 : 0x04; /* UD */
		t.dqpn += k / 2 == 6;
		told = len = tp_make(b, &t);
		if (k / 2 == 7)
			told -= 4; /* cut off */
		mended = k / 2 == 0;
		memcpy(was, b, len);
		assert_int_equal(fast(&w, in, b, told) != NULL, mended);
		assert_int_equal(memcmp(was, b, len) != 0, mended);
		proxy_edge_fini(&w.e);
	}
}

/* IPv6 packets between the mapped addresses of an IPv4 link are not the link's, and leave it nothing. */
static void mapped(void **state)
{
	struct tp t = {.opcode = 0x04, .ttl = 64, .payload_len = 64, .pad = -1, .is6 = true};

	for (unsigned in = 0; in < 2; in++) {
		uint8_t b[TP_MAX], v6[TP_MAX];
		struct world w;
		uint32_t len;

		world_begin(&w, false, in);
		t.dqpn = in ? w.alias : LQPN;
		t.is6 = true;
		t.payload_len = 64;
		len = tp_make(v6, &t);
		memcpy(v6 + 8, in ? w.local.b : w.remote.b, 16);
		memcpy(v6 + 24, in ? w.relay.b : w.local.b, 16);
		memcpy(b, v6, len);
		assert_null(fast(&w, in, b, len));
		assert_memory_equal(b, v6, len);

		t.is6 = false;
		t.payload_len = 84; /* the same length */
		assert_int_equal(tp_make(b, &t), len);
		assert_non_null(fast(&w, in, b, len));
		assert_true(icrc_good(b, len));
		proxy_edge_fini(&w.e);
	}
}

/*
 * A flow whose link and length are known, and every bit of a header changed, and the packet cut: it
 * goes as without that knowledge, or is left alone as then.
 */
static void known_as_unknown(void **state)
{
	static uint8_t good[TP_MAX], b[TP_MAX], other[TP_MAX];
	const struct tp t = {.opcode = 0x04, .ttl = 64, .payload_len = 64, .pad = -1, .dqpn = LQPN};

	for (unsigned is6 = 0; is6 < 2; is6++) {
		const uint32_t head = (is6 ? 40 : 20) + 8 + 12;
		struct world w;
		struct tp x = t;
		uint32_t len, passed = 0;

		x.is6 = is6;
		world_begin(&w, is6, false);
		len = tp_make(good, &x);
		for (unsigned i = 0; i < 2; i++) {
			memcpy(b, good, len);
			assert_non_null(fast(&w, false, b, len));
		}
		assert_true(w.hint != 0);
		for (uint32_t bit = 0; bit < 8 * head; bit++) {
			uint64_t hint = w.hint;
			const struct proxy_link *l;

			memcpy(b, good, len);
			b[bit / 8] ^= (uint8_t)(1u << bit % 8);
			memcpy(other, b, len);
			l = proxy_fast_out(&w.e, other, len, NULL, 2 * RWY_SEC);
			if (proxy_fast_out(&w.e, b, len, &hint, 2 * RWY_SEC) != l)
				fail_msg("bit %u", bit);
			assert_memory_equal(b, other, len);
			passed += l != NULL;
		}
		assert_true(passed > 40 && passed < 8 * head / 2); /* TTL, sequence number and so on */
		for (uint32_t n = 0; n < len; n++) {
			memcpy(b, good, len);
			assert_null(fast(&w, false, b, n));
			assert_memory_equal(b, good, len);
		}
		/* The hint may name any link, one that is closed, and one that is gone. */
		for (unsigned i = 0; i < 4; i++) {
			struct proxy_link *l = &w.e.view.links[w.hint - 1];

			if (i == 2)
				proxy_map_state(w.e.map, l, PROXY_CLOSED, 2 * RWY_SEC);
			if (i == 3)
				proxy_map_remove(w.e.map, l);
			memcpy(b, good, len);
			memcpy(other, good, len);
			assert_ptr_equal(
			    fast(&w, false, b, len), proxy_fast_out(&w.e, other, len, NULL, 2 * RWY_SEC));
			assert_memory_equal(b, other, len);
			assert_int_equal(memcmp(b, good, len) != 0, i < 3);
			if (i == 0)
				w.hint = 16;
		}
		proxy_edge_fini(&w.e);
	}
}

static void forget_lengths(struct world *w)
{
	for (uint32_t i = 0; i < w->e.view.links_max; i++) {
		memset(w->e.view.links[i].patch_in, 0, sizeof(w->e.view.links[i].patch_in));
		memset(w->e.view.links[i].patch_out, 0, sizeof(w->e.view.links[i].patch_out));
	}
}

/* The same test for packets from the local host: the QPN that they name leads to the link. */
static void known_in_as_unknown(void **state)
{
	static uint8_t good[TP_MAX], b[TP_MAX], other[TP_MAX];

	for (unsigned is6 = 0; is6 < 2; is6++) {
		const uint32_t head = (is6 ? 40 : 20) + 8 + 12;
		struct tp t = {.opcode = 0x04, .ttl = 64, .payload_len = 64, .pad = -1, .is6 = is6};
		uint32_t len, passed = 0;
		struct world w;

		world_begin(&w, is6, true);
		t.dqpn = w.alias;
		len = tp_make(good, &t);
		for (uint32_t bit = 0; bit < 8 * head; bit++) {
			const struct proxy_link *l;

			memcpy(b, good, len);
			assert_non_null(fast(&w, true, b, len)); /* its length is known now */
			memcpy(b, good, len);
			b[bit / 8] ^= (uint8_t)(1u << bit % 8);
			memcpy(other, b, len);
			l = fast(&w, true, b, len);
			forget_lengths(&w);
			if (fast(&w, true, other, len) != l)
				fail_msg("bit %u", bit);
			assert_memory_equal(b, other, len);
			passed += l != NULL;
		}
		assert_true(passed > 40 && passed < 8 * head / 2);
		for (uint32_t n = 0; n < len; n++) {
			memcpy(b, good, len);
			assert_null(fast(&w, true, b, n));
			assert_memory_equal(b, good, len);
		}
		proxy_edge_fini(&w.e);
	}
}

/* Another host's packet for the link; and of a link that is over. */
static void not_of_the_link(void **state)
{
	struct tp t = {.opcode = 0x04, .ttl = 64, .payload_len = 64, .pad = -1};
	uint8_t b[TP_MAX];
	struct world w;
	uint32_t len;

	world_begin(&w, false, true);
	t.dqpn = w.alias;
	len = tp_make(b, &t);
	b[15] = 77;
	assert_null(fast(&w, true, b, len));
	b[15] = 1;
	assert_non_null(fast(&w, true, b, len));
	proxy_map_remove(w.e.map, proxy_map_in(w.e.map, &w.relay, w.alias));
	len = tp_make(b, &t);
	assert_null(fast(&w, true, b, len));
	proxy_edge_fini(&w.e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(equals_the_long_way_everywhere),
	    cmocka_unit_test(left_alone),
	    cmocka_unit_test(mapped),
	    cmocka_unit_test(known_as_unknown),
	    cmocka_unit_test(known_in_as_unknown),
	    cmocka_unit_test(not_of_the_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
