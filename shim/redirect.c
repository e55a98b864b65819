/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librwyredirect.so stands before librdmacm (LD_PRELOAD) and sends connections to a relay. The
 * functions here are called by programs, and by librdmacm itself for rsockets: Debian's librdmacm
 * binds its calls of its own exported functions through its procedure linkage table, so a
 * definition that comes first is taken. rdma_create_ep calls an internal function instead of
 * rdma_resolve_addr, so it is here, too. rdma_getaddrinfo only translates names: the address that
 * it gives comes here with rdma_resolve_addr or rdma_create_ep.
 *
 * The relay is asked when the address is resolved. The target goes with the REQ, in a trailer of
 * its private data; where the program's own leave no room, the relay is told before.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include "shim/addr.h"
#include "shim/host.h"
#include "shim/table.h"
#include "shim/talk.h"

#define PRIVATE_MAX (PROXY_PRIVATE_LEN - PROXY_IPCM_LEN) /* of a program: RDMA_PS_TCP */

#define LIBRARY "librdmacm.so.1"
#define VERSION "RDMACM_1.0"
/* Programs without librdmacm load this library, too: it names nothing of that one. */
#define NEXT(f) __typeof__(&(f)) next = (__typeof__(&(f)))shim_next(LIBRARY, #f, VERSION)

/* Sets errno from a negative value. */
static int fail(int rc)
{
	errno = -rc;
	return -1;
}

/* How the connection of an identifier goes. */
struct way {
	struct proxy_target target; /* whom the program means */
	struct shim_relay relay;    /* that carries it */
	struct sockaddr_storage to; /* where the connection goes: the relay's redirect port */
	struct rwy_ip from;         /* source address that the program chose, if bound */
	bool bound;
	uint64_t cookie;
};

static struct shim_table ids = SHIM_TABLE(struct way); /* by struct rdma_cm_id * */

/* --- ways ------------------------------------------------------------------------------------- */

/* The source address, if the program chose one. */
static bool source_of(const struct sockaddr *src, const struct rdma_cm_id *id, struct rwy_ip *from)
{
	if (src && shim_addr_get(src, from, NULL) && !shim_addr_is_any(from))
		return true;
	return id && shim_addr_get(&id->route.addr.src_addr, from, NULL) && !shim_addr_is_any(from);
}

static void say_refused(const struct way *w, const struct proxy_ask *a, int rc)
{
	const char *relay = shim_ip_text(&w->relay.addr), *target = shim_ip_text(&w->target.addr);

	if (rc == -EHOSTUNREACH || rc == -ENETUNREACH)
		shim_say("%s port %u: no relay answers, the last one asked is %s port %u", target,
		    w->target.port, relay, w->relay.port);
	else if (a->is_answer && a->answer)
		shim_say(
		    "%s port %u: relay %s: %s", target, w->target.port, relay, proxy_answer_text(a->answer));
	else
		shim_say("%s port %u: relay %s: %s", target, w->target.port, relay, strerror(-rc));
}

/* The way to w->target, from w->from if it is bound. Results as of way_find(). */
static int way_ask(struct way *w, enum rdma_port_space ps, struct shim_policy *p)
{
	const struct shim_rule *rule = shim_policy_find(p, &w->target.addr);
	struct shim_relay *by = NULL;
	struct proxy_ask a = {.kind = PROXY_ASK_MAY};
	int rc;

	if (!rule)
		return 0;
	if (ps != RDMA_PS_TCP) {
		shim_say("%s port %u: relays carry RDMA_PS_TCP only, and this is port space 0x%x",
		    shim_ip_text(&w->target.addr), w->target.port, (unsigned)ps);
		return -EOPNOTSUPP;
	}
	a.target = w->target;
	rc = shim_talk_any(p, rule, w->bound ? &w->from : NULL, &a, &by);
	w->relay = *by;
	if (rc) {
		say_refused(w, &a, rc);
		return rc;
	}
	w->cookie = a.cookie;
	shim_addr_put(&w->to, &w->relay.addr, a.redirect_port);
	return 1;
}

/*
 * The way to dst. 1: by a relay, in *w; 0: directly; or a negative errno value, which a line on
 * standard error explains.
 */
static int way_find(struct way *w, enum rdma_port_space ps, const struct sockaddr *src,
    const struct rdma_cm_id *id, const struct sockaddr *dst)
{
	struct shim_policy *p = shim_host_policy();
	int rc = p ? 0 : -EINVAL;

	memset(w, 0, sizeof(*w));
	if (p && dst && shim_addr_get(dst, &w->target.addr, &w->target.port)) {
		w->bound = source_of(src, id, &w->from);
		rc = way_ask(w, ps, p);
	}
	shim_host_policy_end(p);
	return rc;
}

/* The program asks whom it is connected to: to its target. */
static void peer_put(struct rdma_cm_id *id, const struct way *w)
{
	struct sockaddr_storage s;

	shim_addr_put(&s, &w->target.addr, w->target.port);
	memcpy(&id->route.addr.dst_storage, &s, sizeof(id->route.addr.dst_storage));
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	NEXT(rdma_resolve_addr);
	struct way w;
	int rc = way_find(&w, id->ps, src, id, dst);

	if (rc < 0)
		return fail(rc);
	if (!rc) {
		/* An earlier try of this identifier may have gone by a relay. */
		shim_table_take(&ids, id, NULL);
		return next(id, src, dst, timeout_ms);
	}
	/* Before the call: without an event channel its event comes inside. */
	if (!shim_table_put(&ids, id, &w))
		return fail(-ENOMEM);
	rc = next(id, src, (struct sockaddr *)&w.to, timeout_ms);
	if (rc)
		shim_table_take(&ids, id, NULL);
	return rc;
}

int rdma_create_ep(
    struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd, struct ibv_qp_init_attr *qp)
{
	NEXT(rdma_create_ep);
	struct rdma_addrinfo by;
	struct way w;
	int rc;

	if (!res || res->ai_flags & RAI_PASSIVE)
		return next(id, res, pd, qp);
	rc = way_find(&w, (enum rdma_port_space)res->ai_port_space, res->ai_src_addr, NULL, res->ai_dst_addr);
	if (rc < 0)
		return fail(rc);
	if (!rc)
		return next(id, res, pd, qp);
	by = *res;
	by.ai_dst_addr = (struct sockaddr *)&w.to;
	by.ai_dst_len = w.to.ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	by.ai_route_len = 0; /* it is the target's, not the relay's */
	rc = next(id, &by, pd, qp);
	if (rc)
		return rc;
	if (!shim_table_put(&ids, *id, &w)) {
		__typeof__(&rdma_destroy_ep) destroy =
		    (__typeof__(&rdma_destroy_ep))shim_next(LIBRARY, "rdma_destroy_ep", VERSION);

		destroy(*id);
		return fail(-ENOMEM);
	}
	peer_put(*id, &w);
	return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	NEXT(rdma_get_cm_event);
	int rc = next(channel, event);
	struct way w;

	/* librdmacm has asked the kernel for the addresses, which knows the relay's. */
	if (!rc && shim_table_get(&ids, (*event)->id, &w))
		peer_put((*event)->id, &w);
	return rc;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	NEXT(rdma_destroy_id);

	shim_table_take(&ids, id, NULL);
	return next(id);
}

/* --- the REQ ---------------------------------------------------------------------------------- */

/* Tells the relay whom the REQ of this source port means. */
static int once_ask(struct rdma_cm_id *id, const struct way *w)
{
	struct proxy_ask a = {.kind = PROXY_ASK_ONCE, .cookie = w->cookie, .target = w->target};
	struct rwy_ip from;
	bool bound = source_of(NULL, id, &from);
	int rc;

	shim_addr_get(&id->route.addr.src_addr, &from, &a.source_port);
	rc = shim_talk(&w->relay, bound ? &from : NULL, &a);

	if (rc)
		say_refused(w, &a, rc);
	return rc;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	/* As librdmacm takes NULL: what the queue pair was made for, and no retries. */
	struct rdma_conn_param with = {
	    .responder_resources = RDMA_MAX_RESP_RES, .initiator_depth = RDMA_MAX_INIT_DEPTH};
	NEXT(rdma_connect);
	uint8_t data[PRIVATE_MAX] = {0};
	struct way w;
	unsigned len, own;
	int rc;

	if (!shim_table_get(&ids, id, &w))
		return next(id, param);
	if (param)
		with = *param;
	own = with.private_data ? with.private_data_len : 0;
	if (own > PRIVATE_MAX)
		return next(id, param); /* the kernel refuses it, and says so in its own way */
	len = proxy_trailer_len(&w.target);
	if (own + len > PRIVATE_MAX) {
		rc = once_ask(id, &w);
		return rc ? fail(rc) : next(id, param);
	}
	if (own)
		memcpy(data, with.private_data, own);
	proxy_trailer_write(data + PRIVATE_MAX - len, &w.target);
	with.private_data = data;
	with.private_data_len = PRIVATE_MAX;
	return next(id, &with);
}
