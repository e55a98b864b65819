/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librwyverbs.so stands before libibverbs and connects RC queue pairs to a relay, for programs that
 * exchange QPNs themselves. When a queue pair gets ready to receive, its program says whom it is
 * connected to: the relay is told, and gives the number that stands for the other one. The address
 * that the queue pair gets is the relay's. ibv_query_qp says what the program said.
 *
 * It may be preloaded, or opened in place of libibverbs: whatever is not here is found in
 * libibverbs, which it depends on, and what is here has the versions of libibverbs, for dlvsym().
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "shim/host.h"
#include "shim/table.h"
#include "shim/talk.h"

#define NEXT(f) __typeof__(&(f)) next = (__typeof__(&(f)))shim_next("libibverbs.so.1", #f, "IBVERBS_1.1")

/* A queue pair that goes by a relay. */
struct pair {
	struct shim_relay relay;
	struct rwy_ip local; /* GID of this host */
	struct proxy_target far;
	uint32_t lqpn, rqpn, alias;
};

static struct shim_table pairs = SHIM_TABLE(struct pair); /* by struct ibv_qp * */

static int fail(int rc)
{
	errno = -rc;
	return -rc;
}

static void say_refused(const struct pair *w, const struct proxy_ask *a, int rc)
{
	const char *relay = shim_ip_text(&w->relay.addr), *far = shim_ip_text(&w->far.addr);
	const char *why = rc == -EHOSTUNREACH || rc == -ENETUNREACH ? "no relay answers, the last one asked"
	                  : a->is_answer && a->answer               ? proxy_answer_text(a->answer)
	                                                            : strerror(-rc);

	shim_say("queue pair 0x%x of %s: relay %s: %s", w->rqpn, far, relay, why);
}

static struct proxy_ask ask_of(const struct pair *w, enum proxy_ask_kind kind)
{
	return (struct proxy_ask){.kind = (uint8_t)kind, .target = w->far, .lqpn = w->lqpn, .rqpn = w->rqpn};
}

/* Whether the change connects the queue pair to a host. The rest of *w is not set. */
static bool connects(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask, struct pair *w)
{
	union ibv_gid gid;

	memset(w, 0, sizeof(*w));
	if (!(mask & IBV_QP_STATE) || attr->qp_state != IBV_QPS_RTR || qp->qp_type != IBV_QPT_RC ||
	    !(mask & IBV_QP_AV) || !(mask & IBV_QP_DEST_QPN) || !attr->ah_attr.is_global)
		return false;
	memcpy(w->far.addr.b, attr->ah_attr.grh.dgid.raw, 16);
	w->lqpn = qp->qp_num;
	w->rqpn = attr->dest_qp_num;
	if (ibv_query_gid(qp->context, attr->ah_attr.port_num, attr->ah_attr.grh.sgid_index, &gid) != 0)
		return false; /* the change fails as well */
	memcpy(w->local.b, gid.raw, 16);
	return true;
}

static int pair_ask(struct pair *w, struct shim_policy *p)
{
	const struct shim_rule *rule;
	struct shim_relay *by = NULL;
	struct proxy_ask a = ask_of(w, PROXY_ASK_PAIR);
	int rc;

	rule = shim_policy_find(p, &w->far.addr);
	if (!rule)
		return 0;
	rc = shim_talk_any(p, rule, &w->local, &a, &by);
	w->relay = *by;
	w->alias = a.alias;
	/*
	 * librdmacm connects a server's queue pair to where the REQ came from: an address of the
	 * relay that the policy does not name, or this host. That connection goes its own way.
	 */
	if (a.is_answer && a.answer == PROXY_ANSWER_LOOP)
		return 0;
	if (!rc && !w->alias)
		rc = -EPROTO;
	if (rc) {
		say_refused(w, &a, rc);
		return rc;
	}
	return 1;
}

/* 1: by a relay, in *w; 0: directly; or a negative errno value, which a line explains. */
static int pair_begin(struct pair *w)
{
	struct shim_policy *p = shim_host_policy();
	int rc = p ? pair_ask(w, p) : -EINVAL;

	shim_host_policy_end(p);
	return rc;
}

/* The relay forgets it by itself, later, if this is lost. */
static void pair_end(const struct pair *w)
{
	struct proxy_ask a = ask_of(w, PROXY_ASK_UNPAIR);
	int was = errno, rc = shim_talk_briefly(&w->relay, &w->local, &a, 1);

	(void)rc;
	errno = was;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	NEXT(ibv_modify_qp);
	struct ibv_qp_attr by;
	struct pair w;
	int rc;

	/* One that goes by a relay is no more in a state that this change begins from: it fails. */
	if (shim_table_get(&pairs, qp, &w) || !connects(qp, attr, mask, &w)) {
		rc = next(qp, attr, mask);
		if (!rc && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET &&
		    shim_table_take(&pairs, qp, &w))
			pair_end(&w);
		return rc;
	}
	rc = pair_begin(&w);
	if (rc < 0)
		return fail(rc);
	if (!rc)
		return next(qp, attr, mask);
	by = *attr;
	memcpy(by.ah_attr.grh.dgid.raw, w.relay.addr.b, 16);
	by.dest_qp_num = w.alias;
	rc = shim_table_put(&pairs, qp, &w) ? next(qp, &by, mask) : fail(-ENOMEM);
	if (rc) {
		shim_table_take(&pairs, qp, NULL);
		pair_end(&w);
	}
	return rc;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	NEXT(ibv_query_qp);
	int rc = next(qp, attr, mask, init);
	struct pair w;

	if (rc || !shim_table_get(&pairs, qp, &w))
		return rc;
	if (attr->dest_qp_num == w.alias)
		attr->dest_qp_num = w.rqpn;
	if (!memcmp(attr->ah_attr.grh.dgid.raw, w.relay.addr.b, 16))
		memcpy(attr->ah_attr.grh.dgid.raw, w.far.addr.b, 16);
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	NEXT(ibv_destroy_qp);
	struct pair w;
	bool ours = shim_table_take(&pairs, qp, &w); /* before another one gets this pointer */
	int rc = next(qp);

	if (ours && rc && !shim_table_put(&pairs, qp, &w))
		shim_say("no memory: a queue pair keeps its link");
	if (ours && !rc)
		pair_end(&w);
	return rc;
}
