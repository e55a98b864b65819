/* SPDX-License-Identifier: Apache-2.0 */
#include "rc.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RESOLVE_MS 10000
#define BURST      32

/* The private data of REQ and REP. Both ends are the same machine. */
struct hello {
	uint64_t addr;
	uint32_t rkey, number;
};

double rc_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

uint64_t rc_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static uint64_t pattern_word(uint64_t seed, size_t i)
{
	return rc_mix(seed) + i * 0x9e3779b97f4a7c15u;
}

void rc_fill(uint8_t *to, uint64_t seed, size_t size)
{
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = pattern_word(seed, i);

		memcpy(to + i, &word, size - i < 8 ? size - i : 8);
	}
}

size_t rc_check(const uint8_t *at, uint64_t seed, size_t size)
{
	size_t bad = 0;

	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = pattern_word(seed, i);
		size_t n = size - i < 8 ? size - i : 8;

		if (!memcmp(at + i, &word, n))
			continue;
		for (size_t k = 0; k < n; k++)
			bad += at[i + k] != ((const uint8_t *)&word)[k];
	}
	return bad;
}

void rc_fail(struct rc *rc, int status, const char *format, ...)
{
	va_list ap;

	if (rc->status)
		return;
	rc->status = status;
	va_start(ap, format);
	vsnprintf(rc->error, sizeof(rc->error), format, ap);
	va_end(ap);
}

/* --- set-up --------------------------------------------------------------------------------- */

static int listen_start(struct rc *rc)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};

	any.sin6_port = htons((uint16_t)strtoul(rc->opt.port, NULL, 10));
	if (rdma_create_id(rc->events, &rc->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(rc->listener, (struct sockaddr *)&any))
		return -1;
	return rdma_listen(rc->listener, 64);
}

int rc_start(struct rc *rc, const struct rc_ops *ops, size_t size)
{
	rc->ops = ops;
	rc->size = (size + 4095) & ~(size_t)4095;
	rc->memory = aligned_alloc(4096, rc->size);
	rc->conns = calloc(rc->opt.conns, sizeof(*rc->conns));
	rc->events = rdma_create_event_channel();
	if (!rc->memory || !rc->conns || !rc->events)
		return -1;
	memset(rc->memory, 0, rc->size);
	for (unsigned int i = 0; i < rc->opt.conns; i++)
		rc->conns[i].number = i;
	fcntl(rc->events->fd, F_SETFL, O_NONBLOCK);
	return rc->opt.host ? 0 : listen_start(rc);
}

/* The first connection shows the device. */
static int device_start(struct rc *rc, struct ibv_context *verbs)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
	             IBV_ACCESS_REMOTE_ATOMIC;
	unsigned int depth = rc->opt.open * (rc->opt.send_depth + rc->opt.recv_depth);

	if (rc->pd)
		return 0;
	rc->pd = ibv_alloc_pd(verbs);
	rc->channel = ibv_create_comp_channel(verbs);
	rc->cq = rc->channel ? ibv_create_cq(verbs, (int)depth, NULL, rc->channel, 0) : NULL;
	rc->mr = rc->pd ? ibv_reg_mr(rc->pd, rc->memory, rc->size, access) : NULL;
	if (!rc->cq || !rc->mr)
		return -1;
	fcntl(rc->channel->fd, F_SETFL, O_NONBLOCK);
	return ibv_req_notify_cq(rc->cq, 0);
}

static int qp_make(struct rc *rc, struct rc_conn *c)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
	    .cap = {.max_send_wr = rc->opt.send_depth,
	        .max_recv_wr = rc->opt.recv_depth,
	        .max_send_sge = 1,
	        .max_recv_sge = 1}};

	if (device_start(rc, c->id->verbs))
		return -1;
	init.send_cq = rc->cq;
	init.recv_cq = rc->cq;
	if (rdma_create_qp(c->id, rc->pd, &init))
		return -1;
	if (rc->ops->prepare)
		rc->ops->prepare(rc, c);
	return 0;
}

static struct rdma_conn_param conn_param(const struct rc *rc, const struct rc_conn *c, struct hello *me)
{
	*me = (struct hello){.addr = (uintptr_t)rc->memory, .rkey = rc->mr->rkey, .number = c->number};
	return (struct rdma_conn_param){.private_data = me,
	    .private_data_len = sizeof(*me),
	    .responder_resources = (uint8_t)rc->opt.rd_atomic,
	    .initiator_depth = (uint8_t)rc->opt.rd_atomic,
	    .retry_count = (uint8_t)rc->opt.retry,
	    .rnr_retry_count = 7};
}

int rc_connect(struct rc *rc, unsigned int number)
{
	struct rc_conn *c = &rc->conns[number];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *ai;
	uint8_t timeout = (uint8_t)rc->opt.timeout;
	int bad;

	if (getaddrinfo(rc->opt.host, rc->opt.port, &hints, &ai))
		return -1;
	bad = rdma_create_id(rc->events, &c->id, c, RDMA_PS_TCP) ||
	      (timeout && rdma_set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1)) ||
	      rdma_resolve_addr(c->id, NULL, ai->ai_addr, RESOLVE_MS);
	freeaddrinfo(ai);
	return bad ? -1 : 0;
}

void rc_close(struct rc *rc, struct rc_conn *c)
{
	if (!c->id)
		return;
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	rdma_destroy_id(c->id);
	c->id = NULL;
	c->up = false;
}

/* --- CM's events ------------------------------------------------------------------------------ */

static void hello_take(struct rc_conn *c, const struct rdma_conn_param *p)
{
	struct hello far;

	if (p->private_data_len < sizeof(far))
		return;
	memcpy(&far, p->private_data, sizeof(far));
	c->addr = far.addr;
	c->rkey = far.rkey;
}

static void request_take(struct rc *rc, struct rdma_cm_id *id, const struct rdma_conn_param *p)
{
	struct rdma_conn_param mine;
	struct hello me, far;
	struct rc_conn *c;

	memcpy(&far, p->private_data, sizeof(far));
	if (far.number >= rc->opt.conns || rc->conns[far.number].id) {
		rdma_reject(id, NULL, 0);
		rc_fail(rc, RC_START, "a request with a wrong number: %u", far.number);
		return;
	}
	c = &rc->conns[far.number];
	c->id = id;
	id->context = c;
	hello_take(c, p);
	if (qp_make(rc, c)) {
		rc_fail(rc, RC_START, "QP %u: %s", c->number, strerror(errno));
		return;
	}
	mine = conn_param(rc, c, &me);
	if (rdma_accept(id, &mine))
		rc->ops->end(rc, c, -errno);
}

static int route_resolved(struct rc *rc, struct rc_conn *c)
{
	struct rdma_conn_param mine;
	struct hello me;

	if (qp_make(rc, c))
		return -1;
	mine = conn_param(rc, c, &me);
	return rdma_connect(c->id, &mine);
}

static void event_handle(struct rc *rc, struct rc_conn *c, const struct rdma_cm_event *e)
{
	int bad = 0;

	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		bad = rdma_resolve_route(c->id, RESOLVE_MS);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		bad = route_resolved(rc, c);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (rc->opt.host)
			hello_take(c, &e->param.conn);
		c->up = true;
		if (rc->ops->up)
			rc->ops->up(rc, c);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rc_completions(rc);
		rc->ops->end(rc, c, e->status);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		rc->ops->end(rc, c, e->status ? e->status : -ECONNREFUSED);
		break;
	default:
		break;
	}
	if (bad)
		rc->ops->end(rc, c, -errno);
}

/*
 * The event is copied and acknowledged before it is handled, because rdma_destroy_id() waits for
 * the acknowledgement.
 */
static bool event_next(struct rc *rc)
{
	struct rdma_cm_event *e, copy;
	uint8_t data[256] = {0};

	if (rdma_get_cm_event(rc->events, &e))
		return false;
	copy = *e;
	if (e->param.conn.private_data)
		memcpy(data, e->param.conn.private_data, e->param.conn.private_data_len);
	copy.param.conn.private_data = data;
	rdma_ack_cm_event(e);
	if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		request_take(rc, copy.id, &copy.param.conn);
	else if (copy.id->context)
		event_handle(rc, copy.id->context, &copy);
	return true;
}

/* --- data ------------------------------------------------------------------------------------- */

bool rc_completions(struct rc *rc)
{
	struct ibv_wc wc[BURST];
	bool some = false;
	int n;

	while (rc->cq && (n = ibv_poll_cq(rc->cq, BURST, wc)) > 0) {
		some = true;
		for (int i = 0; i < n; i++)
			rc->ops->done(rc, &rc->conns[wc[i].wr_id >> 32], &wc[i], (uint32_t)wc[i].wr_id);
	}
	return some;
}

bool rc_good(struct rc *rc, const struct rc_conn *c, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS)
		return true;
	rc_fail(rc, RC_QP, "QP %u: %s", c->number, ibv_wc_status_str(wc->status));
	return false;
}

bool rc_turn(struct rc *rc, int wait_ms)
{
	struct pollfd p[2] = {{.fd = rc->events->fd, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	struct ibv_cq *cq;
	void *context;

	if (rc_completions(rc) | event_next(rc))
		return true;
	if (!wait_ms)
		return false;
	p[1].fd = rc->channel ? rc->channel->fd : -1;
	poll(p, 2, wait_ms);
	if (rc->channel && !ibv_get_cq_event(rc->channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		ibv_req_notify_cq(cq, 0);
	}
	return rc_completions(rc) | event_next(rc);
}

void rc_post(struct rc *rc, struct rc_conn *c, struct ibv_send_wr *wr, uint32_t tag, size_t at, uint32_t size,
    uint64_t far)
{
	struct ibv_sge sge = {.addr = (uintptr_t)rc->memory + at, .length = size, .lkey = rc->mr->lkey};
	struct ibv_send_wr *bad;

	wr->wr_id = (uint64_t)c->number << 32 | tag;
	wr->send_flags |= IBV_SEND_SIGNALED;
	wr->sg_list = &sge;
	wr->num_sge = size ? 1 : 0;
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = c->addr + far;
		wr->wr.atomic.rkey = c->rkey;
	} else {
		wr->wr.rdma.remote_addr = c->addr + far;
		wr->wr.rdma.rkey = c->rkey;
	}
	if (ibv_post_send(c->id->qp, wr, &bad))
		rc_fail(rc, RC_QP, "post_send: %s", strerror(errno));
}

void rc_recv(struct rc *rc, struct rc_conn *c, uint32_t tag, size_t at, uint32_t size)
{
	struct ibv_sge sge = {.addr = (uintptr_t)rc->memory + at, .length = size, .lkey = rc->mr->lkey};
	struct ibv_recv_wr wr = {
	    .wr_id = (uint64_t)c->number << 32 | tag, .sg_list = &sge, .num_sge = size ? 1 : 0};
	struct ibv_recv_wr *bad;

	if (ibv_post_recv(c->id->qp, &wr, &bad))
		rc_fail(rc, RC_QP, "post_recv: %s", strerror(errno));
}

/* --- options ------------------------------------------------------------------------------------ */

static int option_number(const struct rc_number *numbers, size_t n, const char *name, const char *value)
{
	char *end;

	for (size_t i = 0; i < n; i++)
		if (!strcmp(numbers[i].name, name)) {
			*numbers[i].to = (unsigned int)strtoul(value, &end, 0);
			return *end ? -1 : 0;
		}
	return -1;
}

int rc_options(struct rc_options *o, const struct rc_number *numbers, size_t n, int argc, char **argv)
{
	int i = 1;

	for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2)
		if (!strcmp(argv[i], "--port"))
			o->port = argv[i + 1];
		else if (option_number(numbers, n, argv[i] + 2, argv[i + 1]))
			return -1;
	o->host = i < argc ? argv[i++] : NULL;
	return i == argc && !(o->host && o->host[0] == '-') ? 0 : -1;
}
