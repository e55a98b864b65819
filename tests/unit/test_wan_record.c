/* SPDX-License-Identifier: Apache-2.0 */
/* Records on a byte stream: partial reads, invalid data, sizes; the tunnel of a connection;
 * agreement on the carrier. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rwy/endian.h"
#include "tests/lib/wan_link.h"
#include "wan/wire/pkt.h"
#include "wan/record.h"

/* Any split of the stream gives the same records, and no byte beyond the present ones is read. */
static void test_partial(void **state)
{
	static const uint32_t len[] = {21, 1500, 9000, WAN_REC_MAX, 22};
	uint8_t stream[4 * WAN_REC_MAX];
	size_t n = 0;

	for (unsigned i = 0; i < 5; i++) {
		wan_rec_head(stream + n, WAN_REC_DATAGRAM, (uint8_t)i, len[i]);
		memset(stream + n + WAN_REC_HDR, (int)i + 1, len[i]);
		n += WAN_REC_HDR + len[i];
	}
	for (size_t step = 1; step < 4000; step = step * 3 / 2 + 1) {
		size_t at = 0, have = 0;
		unsigned seen = 0;

		while (at < n) {
			/* the sanitizer detects reads beyond it */
			uint8_t *copy = malloc(have - at + 1);
			struct wan_rec r;
			int used;

			memcpy(copy, stream + at, have - at);
			used = wan_rec_get(copy, have - at, &r);
			assert_true(used >= 0);
			if (used) {
				assert_int_equal(r.type, WAN_REC_DATAGRAM);
				assert_int_equal(r.worker, seen);
				assert_int_equal(r.len, len[seen]);
				assert_ptr_equal(r.body, copy + WAN_REC_HDR);
				assert_int_equal(r.body[0], seen + 1);
				assert_int_equal(r.body[r.len - 1], seen + 1);
				at += (size_t)used;
				seen++;
			} else {
				assert_true(have < n);
				have = have + step < n ? have + step : n;
			}
			free(copy);
		}
		assert_int_equal(seen, 5);
	}
}

static void test_sizes(void **state)
{
	static const struct {
		uint8_t type, worker;
		uint32_t len;
		bool good;
	} t[] = {{WAN_REC_DATAGRAM, 63, 21, true}, {WAN_REC_DATAGRAM, 0, 20, false},
	    {WAN_REC_DATAGRAM, 0, 0, false}, {WAN_REC_DATAGRAM, 0, WAN_REC_MAX, true},
	    {WAN_REC_DATAGRAM, 0, WAN_REC_MAX + 1, false}, {WAN_REC_DATAGRAM, 0, 65535, false},
	    {WAN_REC_HELLO, 0, 88, true}, {WAN_REC_HELLO, 0, 87, false}, {WAN_REC_HELLO, 0, 89, false},
	    {WAN_REC_HELLO, 1, 88, false}, {WAN_REC_WISH, 0, 12, true}, {WAN_REC_WISH, 0, 13, false},
	    {WAN_REC_WISH, 2, 12, false}, {3, 0, 12, false}, {255, 0, 88, false}, {'G', 'E', 0x4745, false}};

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint8_t head[WAN_REC_HDR];
		struct wan_rec r;

		rwy_put16(head, (uint16_t)t[i].len);
		head[2] = t[i].type;
		head[3] = t[i].worker;
		/* The first four bytes decide, before anything more is read or awaited. */
		assert_int_equal(wan_rec_get(head, sizeof(head), &r), t[i].good ? 0 : RWY_EMALFORMED);
		assert_int_equal(wan_rec_get(head, 3, &r), 0);
	}
}

static void test_garbage(void **state)
{
	uint64_t rng = 7, bad = 0;

	for (int i = 0; i < 200000; i++) {
		uint32_t n = wan_rng_below(&rng, 120), at = 0;
		uint8_t *b = malloc(n + 1);
		struct wan_conn c;
		struct wan_agree a = {.count = 5};

		wan_conn_init(&c, 1, 2, 3, false);
		for (uint32_t k = 0; k < n; k++)
			b[k] = (uint8_t)wan_rng_next(&rng);
		if (n > 4 && i & 1) { /* get past the first check */
			wan_rec_head(b, (enum wan_rec_type)(1 + (i >> 1) % 2), 0, (i >> 1) % 2 ? 12 : 88);
		}
		while (at < n) {
			struct wan_rec r;
			int used = wan_rec_get(b + at, n - at, &r);

			if (used <= 0) {
				bad += used < 0;
				break;
			}
			assert_true(at + (uint32_t)used <= n);
			if (r.type == WAN_REC_HELLO)
				assert_int_equal(wan_conn_hello(&c, &r), RWY_EMALFORMED);
			if (r.type == WAN_REC_WISH)
				assert_true(wan_agree_get(&a, &r) <= 1 && a.carrier < WAN_CARRIERS);
			at += (uint32_t)used;
		}
		assert_false(c.open);
		free(b);
	}
	assert_true(bad > 50000);
}

/* --- handshake ------------------------------------------------------------------------------------ */
static int pass(struct wan_conn *from, struct wan_conn *to, uint8_t bytes[WAN_REC_HELLO_LEN])
{
	struct wan_rec r;

	assert_int_equal(wan_conn_put(from, bytes), WAN_REC_HELLO_LEN);
	assert_int_equal(wan_rec_get(bytes, WAN_REC_HELLO_LEN, &r), WAN_REC_HELLO_LEN);
	return wan_conn_hello(to, &r);
}

static void test_hello(void **state)
{
	uint8_t b[WAN_REC_HELLO_LEN];
	struct wan_conn x, y;
	struct wan_rec r;
	uint64_t id;

	wan_conn_init(&x, 77, 1, 100, true);
	wan_conn_init(&y, 77, 2, 200, false);
	assert_int_equal(wan_conn_put(&y, b), 0); /* the accepting end waits */
	assert_int_equal(pass(&x, &y, b), 0);
	assert_int_equal(wan_rec_get(b, sizeof(b), &r), WAN_REC_HELLO_LEN);
	assert_true(wan_conn_peek(&r, &id) && id == 77);
	assert_false(x.open || y.open); /* one message proves nothing */
	assert_int_equal(pass(&y, &x, b), 0);
	assert_true(x.open && !y.open);
	assert_int_equal(pass(&x, &y, b), 0);
	assert_true(y.open);
	assert_int_equal(wan_conn_put(&x, b), 0);
	assert_int_equal(wan_conn_put(&y, b), 0);
}

static void test_hello_refused(void **state)
{
	uint8_t b[WAN_REC_HELLO_LEN], old[WAN_REC_HELLO_LEN];
	struct wan_conn x, y, z;
	struct wan_rec r;

	/* another tunnel; ourselves */
	wan_conn_init(&x, 78, 1, 100, true);
	wan_conn_init(&y, 77, 2, 200, false);
	assert_int_equal(pass(&x, &y, b), RWY_ENOENT);
	wan_conn_init(&x, 77, 2, 100, true);
	assert_int_equal(pass(&x, &y, b), RWY_ENOENT);
	/* Any bit wrong. */
	wan_conn_init(&x, 77, 1, 100, true);
	wan_conn_put(&x, old);
	for (unsigned i = WAN_REC_HDR * 8; i < WAN_REC_HELLO_LEN * 8; i++) {
		memcpy(b, old, sizeof(b));
		b[i / 8] ^= (uint8_t)(1u << (i & 7));
		assert_int_equal(wan_rec_get(b, sizeof(b), &r), WAN_REC_HELLO_LEN);
		assert_int_equal(wan_conn_hello(&y, &r), RWY_EMALFORMED);
	}
	/* A recorded connection replayed: its last HELLO echoes another nonce. */
	wan_conn_init(&x, 77, 1, 100, true);
	wan_conn_init(&y, 77, 2, 200, false);
	assert_int_equal(pass(&x, &y, b), 0);
	assert_int_equal(pass(&y, &x, b), 0);
	assert_int_equal(pass(&x, &y, old), 0);
	wan_conn_init(&z, 77, 2, 201, false);
	assert_int_equal(wan_rec_get(old, sizeof(old), &r), WAN_REC_HELLO_LEN);
	assert_int_equal(wan_conn_hello(&z, &r), RWY_ENOENT);
	assert_false(z.open);
	/* Another process in the middle of it. */
	wan_conn_init(&x, 77, 9, 300, true);
	assert_int_equal(pass(&x, &y, b), RWY_ENOENT);
}

/* --- agreement ------------------------------------------------------------------------------------ */
static int tell(const struct wan_agree *from, struct wan_agree *to)
{
	uint8_t b[WAN_REC_WISH_LEN];
	struct wan_rec r;

	wan_agree_put(from, b);
	assert_int_equal(wan_rec_get(b, sizeof(b), &r), WAN_REC_WISH_LEN);
	return wan_agree_get(to, &r);
}

static void test_agree(void **state)
{
	struct wan_agree a = {.carrier = WAN_CARRIER_TCP}, b = {.carrier = WAN_CARRIER_NATIVE};

	/* at the start: one end's wish for TCP is enough */
	assert_int_equal(tell(&b, &a), 0);
	assert_int_equal(tell(&a, &b), 1);
	assert_true(b.carrier == WAN_CARRIER_TCP && b.by_peer && !a.by_peer);
	wan_agree_ask(&b, WAN_CARRIER_NATIVE);
	assert_int_equal(tell(&a, &b), 0); /* outdated */
	assert_int_equal(tell(&b, &a), 1);
	assert_int_equal(a.carrier, WAN_CARRIER_NATIVE);
	/* Both at once: both ends agree in the end, whatever arrives first. */
	wan_agree_ask(&a, WAN_CARRIER_TCP);
	wan_agree_ask(&b, WAN_CARRIER_NATIVE);
	struct wan_agree a0 = a;

	assert_int_equal(tell(&b, &a), 0);
	assert_int_equal(tell(&a0, &b), 1);
	assert_true(a.carrier == b.carrier && a.count == b.count);
	/* The largest count does not stop it. */
	b.count = UINT32_MAX;
	assert_int_equal(tell(&b, &a), 0);
	wan_agree_ask(&a, WAN_CARRIER_NATIVE);
	assert_int_equal(tell(&a, &b), 1);
	assert_int_equal(b.carrier, WAN_CARRIER_NATIVE);
}

/* Each end says by what it lets detours go. That is no value that both share, and it comes with an
 * outdated carrier, too. */
static void test_agree_detour(void **state)
{
	struct wan_agree a = {.detour = WAN_CARRIER_TCP}, b = {.count = 5, .carrier = WAN_CARRIER_TCP};
	uint8_t old[WAN_REC_WISH_LEN];
	struct wan_rec r;

	assert_int_equal(tell(&a, &b), 1);
	assert_true(b.peer_detour == WAN_CARRIER_TCP && b.detour == WAN_CARRIER_NATIVE);
	assert_true(b.carrier == WAN_CARRIER_TCP && b.count == 5);
	assert_int_equal(tell(&a, &b), 0);
	assert_int_equal(tell(&b, &a), 1);
	assert_true(a.detour == WAN_CARRIER_TCP && a.peer_detour == WAN_CARRIER_NATIVE);
	a.detour = WAN_CARRIER_QUIC;
	assert_int_equal(tell(&a, &b), 1);
	assert_int_equal(b.peer_detour, WAN_CARRIER_QUIC);
	/* An older end has zeros there. */
	wan_agree_put(&a, old);
	old[WAN_REC_HDR + 5] = 0;
	assert_int_equal(wan_rec_get(old, sizeof(old), &r), WAN_REC_WISH_LEN);
	assert_int_equal(wan_agree_get(&b, &r), 1);
	assert_int_equal(b.peer_detour, WAN_CARRIER_NATIVE);
	old[WAN_REC_HDR + 5] = WAN_CARRIERS;
	assert_int_equal(wan_agree_get(&b, &r), RWY_EMALFORMED);
	assert_int_equal(b.peer_detour, WAN_CARRIER_NATIVE);
}

static void test_agree_random(void **state)
{
	uint64_t rng = 3;

	for (int i = 0; i < 20000; i++) {
		struct wan_agree e[2] = {
		    {.carrier = wan_rng_below(&rng, 2)}, {.carrier = wan_rng_below(&rng, 2)}};
		struct wan_agree wire[2][8];
		unsigned n[2] = {0}, at[2] = {0};

		for (int k = 0; k < 12; k++) {
			unsigned x = wan_rng_below(&rng, 2);

			if (wan_rng_below(&rng, 3) == 0 && n[x] < 7) {
				wan_agree_ask(&e[x], (enum wan_carrier)wan_rng_below(&rng, 2));
				wire[x][n[x]++] = e[x];
			} else if (at[x] < n[x]) {
				assert_true(tell(&wire[x][at[x]++], &e[!x]) >= 0);
			}
		}
		/* sent once more, as at the start of a connection */
		for (unsigned x = 0; x < 2; x++)
			wire[x][n[x]++] = e[x];
		for (unsigned x = 0; x < 2; x++)
			while (at[x] < n[x])
				assert_true(tell(&wire[x][at[x]++], &e[!x]) >= 0);
		assert_int_equal(e[0].carrier, e[1].carrier);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_partial),
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_garbage),
	    cmocka_unit_test(test_hello),
	    cmocka_unit_test(test_hello_refused),
	    cmocka_unit_test(test_agree),
	    cmocka_unit_test(test_agree_detour),
	    cmocka_unit_test(test_agree_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
