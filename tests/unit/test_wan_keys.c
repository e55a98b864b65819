/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed tunnels (wan/keys.h): keys that come, change and go, and datagrams of somebody else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/aead_test.h"
#include "tests/lib/rng.h"
#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

static const struct wan_link_cfg perfect = {
    .delay = 10 * RWY_MS, .rate_Bps = 125000000, .queue_bytes = 1000000};

/* --- a table that notes each nonce ---------------------------------------------------------------- */
#define SEEN (1u << 20)
static uint64_t seen[SEEN], seals;

/* Fails the test when a key meets a nonce twice. */
static void note(const struct aead_key *k, const uint8_t nonce[AEAD_NONCE])
{
	uint64_t h = 7, at;

	for (unsigned i = 0; i < 16; i++)
		h = RNG_MIX(h ^ k->state[i]);
	for (unsigned i = 0; i < AEAD_NONCE; i++)
		h = RNG_MIX(h ^ nonce[i]);
	h |= 1;
	for (at = h % SEEN; seen[at]; at = (at + 1) % SEEN)
		assert_true(seen[at] != h);
	seen[at] = h;
	assert_true(++seals < SEEN / 2);
}

static void noting_seal(const struct aead_key *k, const uint8_t nonce[AEAD_NONCE], const void *aad,
    size_t aad_len, uint8_t *dst, const struct aead_in *in)
{
	note(k, nonce);
	aead_test.seal(k, nonce, aad, aad_len, dst, in);
}

static struct aead_ops noting;

static void config(struct wan_cfg *c)
{
	noting = aead_test;
	noting.seal = noting_seal;
	memset(seen, 0, sizeof(seen));
	seals = 0;
	wan_cfg_default(c);
	c->tx_pkts_max = 4096;
	c->aead = &noting;
	c->rekey = 100 * RWY_MS;
}

static void start(struct wan_pair *p, const struct wan_link_cfg *l)
{
	struct wan_cfg c;

	config(&c);
	wan_pair_init(p, &c, l, l, 11);
}

static void end(struct wan_pair *p)
{
	assert_true(wan_pair_finish(p));
}

static uint64_t changes(const struct wan_pair *p, int i)
{
	return wan_pair_stats(p, i).c.key_updates_received;
}

/* --- keys that change ----------------------------------------------------------------------------- */
static void test_phases(void **state)
{
	struct wan_link_cfg bad = perfect;
	struct wan_pair p;

	bad.loss_ppm = 20000;
	bad.dup_ppm = 10000;
	bad.reorder_ppm = 10000;
	bad.reorder_extra = 15 * RWY_MS;
	bad.corrupt_ppm = 10000;
	start(&p, &bad);
	wan_pair_streams(&p, 4, 20000, 200, 3000, 200);
	assert_true(wan_pair_run(&p, p.now + 300 * RWY_SEC));
	for (int i = 0; i < 2; i++) {
		struct wan_counters c = wan_pair_stats(&p, i).c;

		assert_true(c.key_updates_sent >= 3);
		assert_in_range(wan_pair_stats(&p, !i).c.key_updates_received, c.key_updates_sent - 1,
		    c.key_updates_sent);
		assert_true(c.drop_forged > 0); /* the damaged ones, and only they */
		assert_true(c.drop_forged < c.rx_datagrams / 40);
		assert_int_equal(c.drop_crc, 0);
		assert_int_equal(c.drop_bad_frame, 0);
		assert_int_equal(c.drop_bad_repair, 0);
		assert_int_equal(c.key_sets, 1);
	}
	end(&p);
}

/* Nothing is under way when a phase ends: the next datagram brings the next one. */
static void test_idle_phases(void **state)
{
	struct wan_pair p;

	start(&p, &perfect);
	wan_pair_settle(&p, 10 * RWY_SEC);
	assert_true(changes(&p, 0) >= 3); /* keep-alives are datagrams, too */
	assert_true(wan_pair_stats(&p, 0).up);
	end(&p);
}

/* New key sets one after the other, while data flows: nothing is dropped. */
static void test_sets(void **state)
{
	struct wan_pair p;

	start(&p, &perfect);
	wan_pair_streams(&p, 2, 20000, 1000, 1000, 500);
	for (unsigned i = 0; i < 5; i++) {
		wan_pair_settle(&p, 150 * RWY_MS);
		wan_pair_keys(&p);
	}
	assert_true(wan_pair_run(&p, p.now + 300 * RWY_SEC));
	for (int i = 0; i < 2; i++) {
		struct wan_counters c = wan_pair_stats(&p, i).c;

		assert_int_equal(c.key_sets, 6);
		assert_int_equal(c.drop_forged + c.lost, 0);
	}
	end(&p);
}

/* One end learns later that the other one has the keys, and one learns it from a datagram. */
static void test_one_end_first(void **state)
{
	struct wan_pair p;

	start(&p, &perfect);
	wan_pair_settle(&p, RWY_SEC);
	wan_pair_offer(&p);
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(wan_pair_stats(&p, 1).c.key_sets, 1);
	wan_keys_use(p.end[0].t, p.now);
	assert_int_equal(wan_pair_stats(&p, 0).c.key_sets, 2);
	wan_pair_dgram(&p, 0, 100);
	wan_pair_settle(&p, 15 * RWY_MS);
	assert_int_equal(wan_pair_stats(&p, 1).c.key_sets, 2);
	wan_keys_use(p.end[1].t, p.now); /* late: nothing changes */
	assert_int_equal(wan_pair_stats(&p, 1).c.key_sets, 2);
	wan_pair_settle(&p, 5 * RWY_SEC);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
		    wan_pair_stats(&p, i).c.drop_no_key + wan_pair_stats(&p, i).c.drop_forged, 0);
	end(&p);
}

/*
 * One end never gets the word that the new set is used, and no sealed datagram tells it: the other
 * end sends by the reliable carrier. What it goes on to seal with the set of before opens, for
 * however long, and however many such sets follow.
 */
static void test_one_end_never(void **state)
{
	static const struct wan_pipe_cfg carrier = {
	    .conns = 1, .run = 16, .delay = 10 * RWY_MS, .rate_Bps = 10000000, .room = 262144, .room_n = 512};
	struct wan_pair p;
	struct wan_counters c;

	start(&p, &perfect);
	for (int i = 0; i < 2; i++)
		wan_pipe_init(&p.pipe[i], &carrier, 5 + (uint64_t)i);
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(wan_stream_use(p.end[0].t, true, p.now), 0);
	for (unsigned i = 0; i < 6; i++) {
		wan_pair_settle(&p, RWY_SEC);
		wan_pair_offer(&p);
		wan_keys_use(p.end[0].t, p.now);
		wan_pair_settle(&p, 10 * RWY_SEC);
		wan_pair_dgram(&p, 1, 100);
		wan_pair_settle(&p, RWY_SEC);
		assert_int_equal(p.end[0].dgrams_got, i + 1);
	}
	c = wan_pair_stats(&p, 0).c;
	assert_int_equal(c.key_sets, 7);
	assert_int_equal(c.drop_no_key + c.drop_forged, 0);
	assert_int_equal(wan_pair_stats(&p, 1).c.key_sets, 1);
	assert_int_equal(wan_stream_use(p.end[0].t, false, p.now), 0);
	wan_pair_dgram(&p, 0, 100); /* sealed: now the other end knows */
	wan_pair_settle(&p, 5 * RWY_SEC);
	assert_int_equal(wan_pair_stats(&p, 1).c.key_sets, 2);
	for (unsigned i = 0; i < WAN_KEY_SETS; i++) /* and nothing of before is kept */
		assert_int_not_equal(p.end[0].t->keys->set[i].state, WAN_KEY_OLD);
	end(&p);
}

/* What is offered and never used takes no place for ever, and one in use is not offered again. */
static void test_offers(void **state)
{
	struct wan_secrets s[2], used[2];
	struct wan_pair p;

	start(&p, &perfect);
	wan_pair_secrets(&p, used);
	assert_int_equal(wan_keys_offer(p.end[0].t, &used[0], p.now), 0);
	wan_keys_use(p.end[0].t, p.now);
	assert_int_equal(wan_keys_offer(p.end[0].t, &used[0], p.now), RWY_EEXIST);
	for (unsigned i = 0; i < 10; i++) {
		int r;

		wan_pair_secrets(&p, s);
		r = wan_keys_offer(p.end[0].t, &s[0], p.now + i);
		assert_true(r == 0 || r == RWY_EEXIST);
	}
	assert_true(wan_keys_ready(p.end[0].t));
	assert_int_equal(p.end[0].t->keys->used->state, WAN_KEY_USED);
	end(&p);
}

/* Many exchanges within the second that an old set lasts: what is offered keeps its place. */
static void test_offer_stays(void **state)
{
	const struct wan_key_set *offered;
	struct wan_secrets s[2];
	struct wan_pair p;
	uint8_t id;

	start(&p, &perfect);
	for (unsigned i = 0; i < WAN_KEY_SETS; i++)
		wan_pair_keys(&p);
	wan_pair_secrets(&p, s);
	assert_int_equal(wan_keys_offer(p.end[0].t, &s[0], p.now), 0);
	offered = p.end[0].t->keys->offered;
	id = offered->rx.id;
	wan_pair_secrets(&p, s);
	assert_int_equal(wan_keys_reserve(p.end[0].t, &s[0], p.now), 0);
	assert_ptr_equal(p.end[0].t->keys->offered, offered);
	assert_int_equal(offered->state, WAN_KEY_OFFERED);
	assert_int_equal(offered->rx.id, id);
	end(&p);
}

/* Exchanges that nobody finished do not push out what the standby of the peer has. */
static void test_reserved_stays(void **state)
{
	struct wan_secrets s[2];
	struct wan_pair p;
	unsigned reserved = 0;

	start(&p, &perfect);
	wan_pair_keys(&p);
	wan_pair_secrets(&p, s);
	assert_int_equal(wan_keys_reserve(p.end[0].t, &s[0], p.now), 0);
	wan_keys_kept(p.end[0].t);
	for (unsigned i = 0; i < 2 * WAN_KEY_SETS; i++)
		do
			wan_pair_secrets(&p, s);
		while (wan_keys_offer(p.end[0].t, &s[0], p.now + i) != 0);
	for (unsigned i = 0; i < WAN_KEY_SETS; i++)
		reserved += p.end[0].t->keys->set[i].state == WAN_KEY_RESERVED;
	assert_int_equal(reserved, 1);
	end(&p);
}

/* Secrets whose id is that of the used set, in one direction alone, are refused at both ends. */
static void test_ids(void **state)
{
	struct wan_secrets s[2], used[2];
	struct wan_pair p;

	start(&p, &perfect);
	wan_pair_secrets(&p, used);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(wan_keys_offer(p.end[i].t, &used[i], p.now), 0);
		wan_keys_use(p.end[i].t, p.now);
	}
	do
		wan_pair_secrets(&p, s);
	while (aead_secret_id(&s[0].tx) != aead_secret_id(&used[0].tx) ||
	       aead_secret_id(&s[0].rx) == aead_secret_id(&used[0].rx));
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(wan_keys_offer(p.end[i].t, &s[i], p.now), RWY_EEXIST);
	end(&p);
}

/* An id of 0 says "in the clear": neither end takes such a set, in either direction. */
static void test_id_zero(void **state)
{
	struct wan_secrets s[2];
	struct wan_pair p;

	start(&p, &perfect);
	do
		wan_pair_secrets(&p, s);
	while (aead_secret_id(&s[0].tx) || !aead_secret_id(&s[0].rx));
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(wan_keys_offer(p.end[i].t, &s[i], p.now), RWY_EEXIST);
	end(&p);
}

/* --- no keys -------------------------------------------------------------------------------------- */
static void test_without(void **state)
{
	struct wan_secrets s[2];
	uint64_t sent;
	struct wan_pair p;

	start(&p, &perfect);
	wan_pair_streams(&p, 2, 100, 1000, 1000, 50);
	assert_true(wan_pair_run(&p, p.now + 10 * RWY_SEC));
	assert_true(wan_pair_stats(&p, 0).up);
	for (int i = 0; i < 2; i++)
		wan_keys_end(p.end[i].t, p.now);
	assert_false(wan_pair_stats(&p, 0).up);
	assert_false(p.end[0].up); /* and the engine knows */
	sent = wan_pair_stats(&p, 0).c.tx_datagrams;
	wan_pair_dgram(&p, 0, 100);
	wan_pair_settle(&p, 60 * RWY_SEC);
	assert_int_equal(wan_pair_stats(&p, 0).c.tx_datagrams, sent);
	wan_pair_keys(&p);
	wan_pair_settle(&p, RWY_SEC);
	assert_true(wan_pair_stats(&p, 0).up);
	assert_int_equal(p.end[1].dgrams_got, 1);
	p.end[0].cfg.aead = NULL; /* a tunnel in the clear takes no keys */
	wan_pair_restart(&p, 0);
	wan_pair_secrets(&p, s);
	assert_int_equal(wan_keys_offer(p.end[0].t, &s[0], p.now), RWY_EINVAL);
	wan_keys_use(p.end[0].t, p.now);
	wan_keys_end(p.end[0].t, p.now);
	end(&p);
}

/* One end in the clear, one sealed: they never come together. */
static void test_downgrade(void **state)
{
	struct wan_pair p;

	start(&p, &perfect);
	p.end[1].cfg.aead = NULL;
	wan_pair_restart(&p, 1);
	wan_pair_settle(&p, 30 * RWY_SEC);
	assert_false(wan_pair_stats(&p, 0).up);
	assert_false(wan_pair_stats(&p, 1).up);
	assert_true(wan_pair_stats(&p, 0).c.drop_no_key + wan_pair_stats(&p, 0).c.drop_forged > 0);
	end(&p);
}

/* --- somebody on the path ------------------------------------------------------------------------- */
#define CAUGHT 3000
static struct {
	uint8_t bytes[1600];
	uint32_t len;
} caught[CAUGHT];
static unsigned n_caught;

static void inject(struct wan_pair *p, int to, const uint8_t *bytes, uint32_t len)
{
	struct rwy_buf *b = wan_pool_get(&p->pool, len);

	memcpy(b->data, bytes, len);
	wan_recv(p->end[to].t, 0, b, 0, p->now);
}

/* Catches what end 0 sends now. */
static void catch (struct wan_pair *p)
{
	struct wan_tx tx[32];
	unsigned n;

	do {
		n = wan_poll(p->end[0].t, tx, 32, p->now);
		for (unsigned i = 0; i < n && n_caught < CAUGHT; i++) {
			caught[n_caught].len = wan_tx_size(&tx[i]);
			assert_true(caught[n_caught].len <= sizeof(caught[0].bytes));
			wan_tx_write(&tx[i], caught[n_caught++].bytes);
			if (tx[i].own)
				rwy_buf_free(&p->pool.bufs, tx[i].buf);
		}
	} while (n == 32);
}

struct state_of {
	uint64_t rx, acked, delivered, restarts, sets, updates, up;
};

static struct state_of look(const struct wan_pair *p, int i)
{
	struct wan_stats s = wan_pair_stats(p, i);

	return (struct state_of){.rx = s.c.rx_datagrams,
	    .acked = s.inflight,
	    .delivered = s.tx_queued_bytes,
	    .restarts = s.c.peer_restarts,
	    .sets = s.c.key_sets,
	    .updates = s.c.key_updates_received,
	    .up = s.up};
}

/* Changed, cut, in the clear, of another tunnel, replayed: counters, and nothing else. */
static void test_attacks(void **state)
{
	static struct wan_pair p, other;
	uint64_t rng = 3;
	struct state_of before, after;
	struct wan_counters c;
	uint8_t d[1600];

	start(&p, &perfect);
	wan_pair_settle(&p, RWY_SEC);
	n_caught = 0;
	for (unsigned i = 0; i < 40; i++) {
		wan_pair_dgram(&p, 0, 100 + i);
		catch (&p);
	}
	assert_true(n_caught >= 40);
	for (unsigned i = 0; i < n_caught; i++)
		inject(&p, 1, caught[i].bytes, caught[i].len);
	before = look(&p, 1);
	assert_true(before.rx >= 40);
	for (unsigned i = 0; i < 20000; i++) {
		unsigned k = rng_below(&rng, n_caught);
		uint32_t len = caught[k].len;

		memcpy(d, caught[k].bytes, len);
		switch (rng_below(&rng, 5)) {
		case 0:
			break; /* replayed */
		case 1:
			d[rng_below(&rng, len)] ^= (uint8_t)(1u << rng_below(&rng, 8));
			break;
		case 2:
			len = rng_below(&rng, len);
			break;
		case 3:
			for (uint32_t j = 0; j < len; j++)
				d[j] = (uint8_t)rng_next(&rng);
			break;
		default: /* a datagram of its own with a right checksum */
			wan_pkt_put(d, &(struct wan_pkt){.version = WAN_VERSION,
			                   .type = rng_below(&rng, 2),
			                   .index = rwy_get32(caught[k].bytes + 4),
			                   .pn = rng_below(&rng, 1000000)});
			wan_pkt_seal(d, len, NULL, 0);
			break;
		}
		inject(&p, 1, d, len);
	}
	after = look(&p, 1);
	assert_memory_equal(&before, &after, sizeof(before));
	c = wan_pair_stats(&p, 1).c;
	assert_true(c.drop_duplicate_pn > 1000 && c.drop_forged > 1000 && c.drop_short > 0);
	assert_int_equal(c.drop_bad_frame, 0);
	/* The receiver of another tunnel. */
	start(&other, &perfect);
	wan_pair_keys(&other);
	wan_pair_settle(&other, RWY_SEC);
	before = look(&other, 1);
	for (unsigned i = 0; i < n_caught; i++)
		inject(&other, 1, caught[i].bytes, caught[i].len);
	after = look(&other, 1);
	assert_memory_equal(&before, &after, sizeof(before));
	end(&other);
	wan_pair_settle(&p, 10 * RWY_SEC);
	end(&p);
}

/* What was sealed with keys of before opens for a while, then no more. */
static void test_old_set(void **state)
{
	struct wan_pair p;
	uint64_t got;

	start(&p, &perfect);
	wan_pair_settle(&p, RWY_SEC);
	n_caught = 0;
	for (unsigned i = 0; i < 2; i++) {
		wan_pair_dgram(&p, 0, 100);
		catch (&p);
	}
	assert_true(n_caught >= 2);
	wan_pair_keys(&p);
	inject(&p, 1, caught[0].bytes, caught[0].len);
	got = p.end[1].dgrams_got;
	assert_int_equal(got, 1);
	wan_pair_settle(&p, 3 * RWY_SEC);
	inject(&p, 1, caught[1].bytes, caught[1].len);
	assert_int_equal(p.end[1].dgrams_got, got);
	assert_int_equal(wan_pair_stats(&p, 1).c.drop_no_key, 1);
	end(&p);
}

/* No byte of a payload is seen on the path, and no two datagrams are alike. */
static void test_nothing_to_read(void **state)
{
	struct wan_pair p;

	start(&p, &perfect);
	wan_pair_settle(&p, RWY_SEC);
	n_caught = 0;
	for (unsigned i = 0; i < 20; i++) {
		wan_pair_dgram(&p, 0, 1200);
		catch (&p);
	}
	for (unsigned i = 0; i < n_caught; i++) {
		const uint8_t *c = caught[i].bytes;

		for (uint32_t at = 16; at + 8 <= caught[i].len; at++) {
			bool counts = true; /* the payload's bytes count up */

			for (unsigned k = 1; k < 8; k++)
				counts &= c[at + k] == (uint8_t)(c[at] + k);
			assert_false(counts);
		}
		for (unsigned k = 0; k < i; k++)
			assert_memory_not_equal(c + 16, caught[k].bytes + 16, 32);
	}
	wan_pair_settle(&p, 10 * RWY_SEC);
	end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_phases),
	    cmocka_unit_test(test_idle_phases),
	    cmocka_unit_test(test_sets),
	    cmocka_unit_test(test_one_end_first),
	    cmocka_unit_test(test_one_end_never),
	    cmocka_unit_test(test_offers),
	    cmocka_unit_test(test_offer_stays),
	    cmocka_unit_test(test_reserved_stays),
	    cmocka_unit_test(test_ids),
	    cmocka_unit_test(test_id_zero),
	    cmocka_unit_test(test_without),
	    cmocka_unit_test(test_downgrade),
	    cmocka_unit_test(test_attacks),
	    cmocka_unit_test(test_old_set),
	    cmocka_unit_test(test_nothing_to_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
