/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs that librwyverbs connects by a relay. libibverbs and the relay are models. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "shim/host.h"
#include "shim/talk.h"

#define ALIAS 0x100
#define QPN   0x12
#define FAR   0x34

static struct shim_policy policy;
static struct ibv_qp_attr changed; /* the last change that libibverbs got */
static int refuse;                 /* that it answers with */
static enum proxy_answer answer;
static unsigned paired, unpaired;

/* --- libibverbs ------------------------------------------------------------------------------ */

static int modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	changed = *attr;
	return refuse;
}

static int destroy(struct ibv_qp *qp)
{
	return 0;
}

static int query(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	*attr = changed;
	return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	const struct rwy_ip local = rwy_ip_from4((const uint8_t[]){10, 1, 0, 2});

	memcpy(gid->raw, local.b, 16);
	return 0;
}

void *shim_next(const char *library, const char *name, const char *version)
{
	void (*f)(void) = !strcmp(name, "ibv_modify_qp")    ? (void (*)(void))modify
	                  : !strcmp(name, "ibv_destroy_qp") ? (void (*)(void))destroy
	                                                    : (void (*)(void))query;
	void *at;

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

int shim_talk_any(struct shim_policy *p, const struct shim_rule *rule, const struct rwy_ip *from,
    struct proxy_ask *a, struct shim_relay **by)
{
	*by = &p->relay[rule->first];
	a->is_answer = true;
	a->answer = (uint8_t)answer;
	a->alias = ALIAS;
	paired += answer == PROXY_ANSWER_OK;
	return answer == PROXY_ANSWER_OK ? 0 : -ELOOP;
}

int shim_talk_briefly(
    const struct shim_relay *r, const struct rwy_ip *from, struct proxy_ask *a, unsigned tries)
{
	assert_int_equal(a->kind, PROXY_ASK_UNPAIR);
	unpaired++;
	return 0;
}

/* --------------------------------------------------------------------------------------------- */

static struct rwy_ip ip(uint8_t b, uint8_t d)
{
	return rwy_ip_from4((const uint8_t[]){10, b, 0, d});
}

static int set_up(void **state)
{
	char err[200];

	memset(&policy, 0, sizeof(policy));
	assert_int_equal(shim_policy_via(&policy, "10.1.0.254", err, sizeof(err)), 0);
	refuse = 0;
	answer = PROXY_ANSWER_OK;
	paired = unpaired = 0;
	return 0;
}

static struct ibv_qp qp = {.qp_num = QPN, .qp_type = IBV_QPT_RC};

static int ready_to_receive(struct rwy_ip far)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR, .dest_qp_num = FAR, .ah_attr.is_global = 1};

	memcpy(a.ah_attr.grh.dgid.raw, far.b, 16);
	return ibv_modify_qp(&qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN);
}

static bool is_changed_to(struct rwy_ip addr, uint32_t qpn)
{
	return changed.dest_qp_num == qpn && !memcmp(changed.ah_attr.grh.dgid.raw, addr.b, 16);
}

/* The second change natively fails, and is told so; the link of the first one stays. */
static void test_ready_twice(void **state)
{
	assert_int_equal(ready_to_receive(ip(2, 7)), 0);
	assert_true(is_changed_to(ip(1, 254), ALIAS));
	refuse = EINVAL;
	assert_int_equal(ready_to_receive(ip(2, 7)), EINVAL);
	assert_int_equal(paired, 1);
	assert_int_equal(unpaired, 0);
	assert_int_equal(ibv_destroy_qp(&qp), 0);
	assert_int_equal(unpaired, 1);
}

static void test_refused(void **state)
{
	refuse = EINVAL;
	assert_int_equal(ready_to_receive(ip(2, 7)), EINVAL);
	assert_int_equal(paired, 1);
	assert_int_equal(unpaired, 1);
	assert_int_equal(ibv_destroy_qp(&qp), 0);
	assert_int_equal(unpaired, 1);
}

/*
 * librdmacm connects a server's queue pair to where the REQ came from: another address of the
 * relay, or this host.
 */
static void test_loop(void **state)
{
	answer = PROXY_ANSWER_LOOP;
	assert_int_equal(ready_to_receive(ip(1, 253)), 0);
	assert_true(is_changed_to(ip(1, 253), FAR));
	assert_int_equal(ibv_destroy_qp(&qp), 0);
	assert_int_equal(unpaired, 0);
}

#define CASE(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(test_ready_twice), CASE(test_refused), CASE(test_loop)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
