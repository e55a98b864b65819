/* SPDX-License-Identifier: Apache-2.0 */
/* Which packets `roceway capture --trigger` writes: blocks with comments, and a file that counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tools/roceway/capture.h"

#define HEAD   28 /* of an enhanced packet block without data */
#define FLOW   "stage=lan-in flow=10.1.0.2>10.2.0.2/0x12 decision=take reason=accepted"
#define CONN   " conn=00000000deadbeef"
#define OTHER  "stage=lan-in flow=10.1.0.2>10.2.0.2/0x13 decision=take reason=accepted"
#define MEMORY (1u << 20)

static struct cap_trigger *trigger;
static unsigned written;

bool cap_file_add(struct cap_file *f, const uint8_t *block, size_t len)
{
	written++;
	return true;
}

void cli_error(const char *fmt, ...)
{
	fail();
}

static int set_up(void **state)
{
	trigger = cap_trigger_new("nak,retransmit", MEMORY);
	written = 0;
	return !trigger;
}

static int tear_down(void **state)
{
	cap_trigger_free(trigger);
	return 0;
}

/* A packet with this comment; how many are written because of it. */
static unsigned packet(const char *comment)
{
	const uint16_t option[2] = {CAP_OPT_COMMENT, (uint16_t)strlen(comment)};
	const uint32_t type = 6, len = (uint32_t)(HEAD + 4 + (strlen(comment) + 3) / 4 * 4 + 4 + 4);
	const unsigned before = written;
	uint8_t block[512] = {0};

	memcpy(block, &type, 4);
	memcpy(block + 4, &len, 4);
	memcpy(block + HEAD, option, 4);
	memcpy(block + HEAD + 4, comment, option[1]);
	memcpy(block + len - 4, &len, 4);
	assert_true(cap_trigger_packet(trigger, block, len, NULL));
	return written - before;
}

/* The event comes before the other end's QPN is known, and the connection's number with it. */
static void test_number_comes_later(void **state)
{
	assert_int_equal(packet(FLOW), 0);
	assert_int_equal(packet("stage=lan-out flow=10.2.0.2>10.1.0.2/0x21" CONN), 0);
	assert_int_equal(packet(FLOW " event=retransmit"), 2);
	assert_int_equal(packet(FLOW), 1);
	assert_int_equal(packet(FLOW CONN), 2); /* and the one of the other direction */
	assert_int_equal(packet(FLOW CONN), 1);
	assert_int_equal(packet("stage=lan-out flow=10.2.0.2>10.1.0.2/0x21" CONN), 1);
	assert_int_equal(packet(OTHER), 0);
	assert_int_equal(cap_trigger_connections(trigger), 1);
}

/* The event comes when it is known; packets before are of the flow. */
static void test_number_comes_before(void **state)
{
	assert_int_equal(packet(FLOW), 0);
	assert_int_equal(packet(OTHER), 0);
	assert_int_equal(packet(FLOW CONN), 0);
	assert_int_equal(packet(FLOW CONN " event=nak"), 3);
	assert_int_equal(packet(FLOW CONN), 1);
	assert_int_equal(cap_trigger_connections(trigger), 1);
}

/* Many connections; each gets its number after its event. */
static void test_many(void **state)
{
	char comment[128];

	for (unsigned i = 0; i < 5000; i++) {
		snprintf(comment, sizeof(comment), "stage=lan-in flow=a>b/%u event=nak", i);
		assert_int_equal(packet(comment), i < 4096);
		snprintf(comment, sizeof(comment), "stage=lan-in flow=a>b/%u conn=%u", i, i);
		assert_int_equal(packet(comment), i < 4096);
	}
	assert_int_equal(cap_trigger_connections(trigger), 4096);
	assert_int_equal(packet(OTHER), 0);
	for (unsigned i = 0; i < 20000; i++) { /* the QPN is used again and again */
		snprintf(comment, sizeof(comment), "stage=lan-in flow=a>b/1 conn=%u", 5000 + i);
		assert_int_equal(packet(comment), 1);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_number_comes_later),
	    CASE(test_number_comes_before),
	    CASE(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
