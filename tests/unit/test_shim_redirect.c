/* SPDX-License-Identifier: Apache-2.0 */
/* An identifier of librdmacm that is resolved more than once. librdmacm and the relay are models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "shim/addr.h"
#include "shim/host.h"
#include "shim/talk.h"

#define REDIRECT_PORT 4789

static struct shim_policy policy;
static struct rwy_ip resolved; /* what librdmacm was asked for */
static uint8_t private_len;    /* of its REQ */

/* --- librdmacm ------------------------------------------------------------------------------- */

static int resolve(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	assert_true(shim_addr_get(dst, &resolved, NULL));
	return 0;
}

static int connect_to(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	private_len = param ? param->private_data_len : 0;
	return 0;
}

static int destroy(struct rdma_cm_id *id)
{
	return 0;
}

static int other(void)
{
	return -1;
}

void *shim_next(const char *library, const char *name, const char *version)
{
	static const struct {
		const char *name;
		void (*f)(void);
	} known[] = {{"rdma_resolve_addr", (void (*)(void))resolve},
	    {"rdma_connect", (void (*)(void))connect_to}, {"rdma_destroy_id", (void (*)(void))destroy}};
	void (*f)(void) = (void (*)(void))other;
	void *at;

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(name, known[i].name))
			f = known[i].f;
	memcpy(&at, &f, sizeof(at));
	return at;
}

/* --- the host's policy, and the relay -------------------------------------------------------- */

struct shim_policy *shim_host_policy(void)
{
	return &policy;
}

void shim_host_policy_end(struct shim_policy *p)
{
}

void shim_say(const char *fmt, ...)
{
}

const char *shim_ip_text(const struct rwy_ip *a)
{
	return "";
}

int shim_talk(const struct shim_relay *r, const struct rwy_ip *from, struct proxy_ask *a)
{
	return 0;
}

int shim_talk_any(struct shim_policy *p, const struct shim_rule *rule, const struct rwy_ip *from,
    struct proxy_ask *a, struct shim_relay **by)
{
	*by = &p->relay[rule->first];
	a->redirect_port = REDIRECT_PORT;
	return 0;
}

/* --------------------------------------------------------------------------------------------- */

static struct rwy_ip ip(uint8_t b, uint8_t d)
{
	return rwy_ip_from4((const uint8_t[]){10, b, 0, d});
}

static void resolve_to(struct rdma_cm_id *id, struct rwy_ip target)
{
	struct sockaddr_storage to;

	shim_addr_put(&to, &target, 7174);
	assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
}

/* The last way counts: by a relay with a trailer in the private data, directly without. */
static void the_last_way_counts(void **state)
{
	struct rdma_cm_id id = {.ps = RDMA_PS_TCP};
	const struct rwy_ip far = ip(2, 2), near = ip(1, 9), relay = ip(1, 1);
	char err[200];

	assert_int_equal(
	    shim_policy_parse(&policy, "redirect 10.2.0.0/24 via 10.1.0.1\n", err, sizeof(err)), 0);
	for (unsigned i = 0; i < 2; i++) {
		resolve_to(&id, far);
		assert_true(rwy_ip_eq(&resolved, &relay));
		assert_int_equal(rdma_connect(&id, NULL), 0);
		assert_true(private_len > 0);
		resolve_to(&id, near);
		assert_true(rwy_ip_eq(&resolved, &near));
		assert_int_equal(rdma_connect(&id, NULL), 0);
		assert_int_equal(private_len, 0);
	}
	assert_int_equal(rdma_destroy_id(&id), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_way_counts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
