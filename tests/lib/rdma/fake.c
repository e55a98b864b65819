/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/rdma/fake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#undef ibv_reg_mr

#define SAID 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rdma_fake_count count;
static enum rdma_fake_fault fault;
static uint8_t net = 10;
static void (*hears)(const uint8_t *p, uint32_t n);

struct event {
	struct rdma_cm_event pub;
	uint8_t said[SAID];
	struct event *next;
};

struct channel {
	struct rdma_event_channel pub;
	struct event *first;
};

struct recv_row {
	uint64_t id;
	struct ibv_sge sge;
};

struct cq {
	struct ibv_cq pub;
	struct ibv_wc *wc;
	uint32_t r, w;
	bool armed;
	unsigned events;
};

struct qp {
	struct ibv_qp pub;
	struct recv_row *recv;
	uint32_t r, w, sends; /* receives; requests whose completions were not polled */
	struct ibv_qp_cap cap;
};

struct id {
	struct rdma_cm_id pub;
	struct id *peer, *next;
	bool listens, asks, connected; /* asks: a REQ waits for an answer */
};

struct comp {
	struct ibv_comp_channel pub;
	struct cq *cq;
};

struct mr {
	struct ibv_mr pub;
	struct mr *next;
};

static struct ibv_device what;
static struct ibv_context device = {.device = &what};
static struct ibv_pd pd = {.context = &device};
static struct id *ids;
static struct mr *mrs;

#define DIE(...)                                                                                             \
	do {                                                                                                 \
		fprintf(stderr, "rdma_fake: " __VA_ARGS__);                                                  \
		abort();                                                                                     \
	} while (0)

void rdma_fake_fault(enum rdma_fake_fault f)
{
	pthread_mutex_lock(&lock);
	fault = f;
	pthread_mutex_unlock(&lock);
}

bool rdma_fake_waits(void)
{
	bool waits;

	pthread_mutex_lock(&lock);
	waits = fault > RDMA_FAKE_CUT;
	pthread_mutex_unlock(&lock);
	return waits;
}

void rdma_fake_listen(void (*fn)(const uint8_t *p, uint32_t n))
{
	pthread_mutex_lock(&lock);
	hears = fn;
	pthread_mutex_unlock(&lock);
}

void rdma_fake_counters(const char *folder)
{
	snprintf(what.ibdev_path, sizeof(what.ibdev_path), "%s", folder);
}

void rdma_fake_net(uint8_t first)
{
	net = first;
}

struct rdma_fake_count rdma_fake_count(void)
{
	struct rdma_fake_count c;

	pthread_mutex_lock(&lock);
	c = count;
	pthread_mutex_unlock(&lock);
	return c;
}

static void *make(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		DIE("no memory\n");
	__atomic_add_fetch(&count.objects, 1, __ATOMIC_RELAXED);
	return p;
}

static void unmake(void *p)
{
	__atomic_sub_fetch(&count.objects, 1, __ATOMIC_RELAXED);
	free(p);
}

static void ring(int fd)
{
	if (write(fd, &(uint64_t){1}, 8) < 0)
		DIE("eventfd\n");
}

static int fail(int e)
{
	errno = e;
	return -1;
}

/* --- the connection manager: events ----------------------------------------------------------- */
static void tell(
    struct id *to, enum rdma_cm_event_type type, struct id *listener, const struct rdma_conn_param *param)
{
	struct channel *ch = (struct channel *)to->pub.channel;
	struct event *e = make(sizeof(*e)), **at = &ch->first;

	e->pub = (struct rdma_cm_event){
	    .id = &to->pub, .listen_id = listener ? &listener->pub : NULL, .event = type};
	if (param && param->private_data_len) {
		memcpy(e->said, param->private_data, param->private_data_len);
		e->pub.param.conn.private_data = e->said;
		e->pub.param.conn.private_data_len = SAID - 8; /* padded with zeros */
	}
	while (*at)
		at = &(*at)->next;
	*at = e;
	ring(ch->pub.fd);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct channel *ch = make(sizeof(*ch));

	ch->pub.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return &ch->pub;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct channel *ch = (struct channel *)channel;

	if (ch->first)
		DIE("events of a destroyed channel\n");
	close(ch->pub.fd);
	unmake(ch);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct channel *ch = (struct channel *)channel;
	uint64_t n;

	pthread_mutex_lock(&lock);
	if (!ch->first) {
		(void)!read(ch->pub.fd, &n, 8);
		pthread_mutex_unlock(&lock);
		return fail(EAGAIN);
	}
	*event = &ch->first->pub;
	ch->first = ch->first->next;
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	unmake(event);
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return "event of the fake";
}

void rdma_fake_remove(void)
{
	pthread_mutex_lock(&lock);
	net = 0;
	for (struct id *i = ids; i; i = i->next)
		tell(i, RDMA_CM_EVENT_DEVICE_REMOVAL, NULL, NULL);
	pthread_mutex_unlock(&lock);
}

/* --- ids -------------------------------------------------------------------------------------- */
static struct id *id_new(struct rdma_event_channel *channel, void *context)
{
	struct id *i = make(sizeof(*i));

	i->pub.channel = channel;
	i->pub.context = context;
	i->next = ids;
	ids = i;
	return i;
}

int rdma_create_id(
    struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	pthread_mutex_lock(&lock);
	*id = &id_new(channel, context)->pub;
	pthread_mutex_unlock(&lock);
	return 0;
}

static void part(struct id *i, const struct rdma_conn_param *said)
{
	struct id *peer = i->peer;

	if (!peer)
		return;
	if (i->connected)
		tell(peer, RDMA_CM_EVENT_DISCONNECTED, NULL, NULL);
	else if (i->asks)
		tell(peer, RDMA_CM_EVENT_REJECTED, NULL, said);
	i->connected = peer->connected = false;
	i->peer = peer->peer = NULL;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct id *i = (struct id *)id, **at = &ids;
	struct event **e, *gone;

	pthread_mutex_lock(&lock);
	if (id->qp)
		DIE("an id with a queue pair\n");
	part(i, NULL);
	for (e = &((struct channel *)id->channel)->first; *e;)
		if ((*e)->pub.id == id) {
			gone = *e;
			*e = gone->next;
			unmake(gone);
		} else {
			e = &(*e)->next;
		}
	while (*at != i)
		at = &(*at)->next;
	*at = i->next;
	unmake(i);
	pthread_mutex_unlock(&lock);
	return 0;
}

static void device_set(struct rdma_cm_id *id)
{
	id->verbs = &device;
	id->port_num = 1;
	id->pd = &pd;
}

static bool has_device(const struct sockaddr *a)
{
	return a->sa_family == AF_INET &&
	       (ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24) == net;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	if (!has_device(addr))
		return fail(ENODEV);
	memcpy(&id->route.addr.src_storage, addr, sizeof(struct sockaddr_in));
	device_set(id);
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	((struct id *)id)->listens = true;
	return 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	if (rdma_bind_addr(id, src))
		return -1;
	memcpy(&id->route.addr.dst_storage, dst, sizeof(struct sockaddr_in));
	pthread_mutex_lock(&lock);
	tell((struct id *)id, RDMA_CM_EVENT_ADDR_RESOLVED, NULL, NULL);
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	pthread_mutex_lock(&lock);
	tell((struct id *)id, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL, NULL);
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct id *i = (struct id *)id, *l = ids, *asked;

	pthread_mutex_lock(&lock);
	while (l && !(l->listens && !memcmp(&l->pub.route.addr.src_sin, &id->route.addr.dst_sin, 8)))
		l = l->next;
	if (!l || fault == RDMA_FAKE_CUT) {
		tell(i, l ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_REJECTED, NULL, NULL);
	} else {
		asked = id_new(l->pub.channel, l->pub.context);
		asked->pub.route.addr.dst_sin = id->route.addr.src_sin;
		device_set(&asked->pub);
		asked->asks = true;
		asked->peer = i;
		i->peer = asked;
		tell(asked, RDMA_CM_EVENT_CONNECT_REQUEST, l, param);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct id *i = (struct id *)id;

	pthread_mutex_lock(&lock);
	if (!i->peer) {
		pthread_mutex_unlock(&lock);
		return fail(ENOTCONN);
	}
	i->asks = false;
	i->connected = i->peer->connected = true;
	tell(i->peer, RDMA_CM_EVENT_ESTABLISHED, NULL, param);
	tell(i, RDMA_CM_EVENT_ESTABLISHED, NULL, NULL);
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	const struct rdma_conn_param said = {.private_data = data, .private_data_len = len};

	pthread_mutex_lock(&lock);
	part((struct id *)id, &said);
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	return rdma_reject(id, NULL, 0);
}

/* --- verbs ------------------------------------------------------------------------------------ */
static void complete(struct cq *q, const struct ibv_wc *wc)
{
	struct comp *ch = (struct comp *)q->pub.channel;

	if (q->w - q->r >= (uint32_t)q->pub.cqe)
		DIE("a completion queue overflows\n");
	q->wc[q->w++ % (uint32_t)q->pub.cqe] = *wc;
	if (!q->armed)
		return;
	q->armed = false;
	q->events++;
	ring(ch->pub.fd);
}

static void registered(const struct ibv_sge *s)
{
	for (const struct mr *m = mrs; m; m = m->next)
		if (m->pub.lkey == s->lkey && s->addr >= (uintptr_t)m->pub.addr &&
		    s->addr + s->length <= (uintptr_t)m->pub.addr + m->pub.length)
			return;
	DIE("memory that is not registered\n");
}

/* The attacker: changes what a SEND has put into memory. False: the SEND does not arrive. */
static bool attack(uint8_t *p, struct ibv_wc *wc)
{
	static uint8_t before[16384];
	static uint32_t len;
	const enum rdma_fake_fault f = wc->byte_len >= RDMA_FAKE_BIG ? fault : RDMA_FAKE_NONE;

	if (f == RDMA_FAKE_FLIP)
		p[wc->byte_len / 2] ^= 4;
	if (f == RDMA_FAKE_CREDIT)
		wc->imm_data = htonl(ntohl(wc->imm_data) + 1);
	if (f == RDMA_FAKE_REPEAT && len) {
		memcpy(p, before, len);
		wc->byte_len = len;
	}
	if (f >= RDMA_FAKE_FLIP)
		fault = RDMA_FAKE_NONE;
	if (wc->byte_len >= RDMA_FAKE_BIG && wc->byte_len <= sizeof(before)) {
		len = wc->byte_len;
		memcpy(before, p, len);
	}
	return f != RDMA_FAKE_SWALLOW;
}

/* One SEND arrives; returns its status. */
static enum ibv_wc_status arrive(struct qp *to, const struct ibv_send_wr *wr)
{
	struct recv_row *row;
	struct ibv_wc wc = {.opcode = IBV_WC_RECV, .wc_flags = IBV_WC_WITH_IMM, .imm_data = wr->imm_data};

	if (hears && wr->num_sge)
		hears((const uint8_t *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length);
	if (to->r == to->w) {
		count.rnr++;
		return IBV_WC_RNR_RETRY_EXC_ERR;
	}
	row = &to->recv[to->r % to->cap.max_recv_wr];
	if (wr->num_sge) {
		if (wr->sg_list->length > row->sge.length)
			return IBV_WC_REM_INV_REQ_ERR;
		memcpy((void *)(uintptr_t)row->sge.addr, (const void *)(uintptr_t)wr->sg_list->addr,
		    wr->sg_list->length);
		wc.byte_len = wr->sg_list->length;
	}
	if (!attack((uint8_t *)(uintptr_t)row->sge.addr, &wc))
		return IBV_WC_SUCCESS;
	to->r++;
	wc.wr_id = row->id;
	complete((struct cq *)to->pub.recv_cq, &wc);
	return IBV_WC_SUCCESS;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct qp *q = (struct qp *)qp;
	const struct id *i = qp->qp_context;

	pthread_mutex_lock(&lock);
	for (; wr; wr = wr->next) {
		struct ibv_wc wc = {.wr_id = wr->wr_id, .opcode = IBV_WC_SEND};

		if (++q->sends > q->cap.max_send_wr)
			DIE("a send queue overflows\n");
		if (wr->num_sge && !(wr->send_flags & IBV_SEND_INLINE))
			registered(wr->sg_list);
		if (wr->send_flags & IBV_SEND_INLINE && wr->sg_list->length > q->cap.max_inline_data)
			DIE("too long for inline data\n");
		count.sends++;
		count.empties += !wr->num_sge;
		count.inlined += (wr->send_flags & IBV_SEND_INLINE) != 0;
		if (!i->connected || fault == RDMA_FAKE_CUT)
			continue;
		if (fault == RDMA_FAKE_ERROR) {
			fault = RDMA_FAKE_NONE;
			wc.status = IBV_WC_RETRY_EXC_ERR;
		} else {
			wc.status = arrive((struct qp *)i->peer->pub.qp, wr);
		}
		complete((struct cq *)qp->send_cq, &wc);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct qp *q = (struct qp *)qp;

	pthread_mutex_lock(&lock);
	for (; wr; wr = wr->next) {
		if (q->w - q->r >= q->cap.max_recv_wr)
			DIE("a receive queue overflows\n");
		registered(wr->sg_list);
		q->recv[q->w++ % q->cap.max_recv_wr] = (struct recv_row){wr->wr_id, *wr->sg_list};
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct cq *q = (struct cq *)cq;
	int got = 0;

	pthread_mutex_lock(&lock);
	for (; got < n && q->r != q->w; got++) {
		wc[got] = q->wc[q->r++ % (uint32_t)cq->cqe];
		if (wc[got].opcode == IBV_WC_SEND && cq->cq_context)
			((struct qp *)cq->cq_context)->sends--;
	}
	pthread_mutex_unlock(&lock);
	return got;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	pthread_mutex_lock(&lock);
	((struct cq *)cq)->armed = true;
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *p, struct ibv_qp_init_attr *a)
{
	struct qp *q = make(sizeof(*q));

	q->cap = a->cap;
	q->recv = calloc(a->cap.max_recv_wr, sizeof(*q->recv));
	q->pub = (struct ibv_qp){
	    .context = &device, .qp_context = id, .send_cq = a->send_cq, .recv_cq = a->recv_cq};
	a->send_cq->cq_context = q; /* one queue pair has it to itself */
	id->qp = &q->pub;
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct qp *q = (struct qp *)id->qp;

	pthread_mutex_lock(&lock);
	if (((struct id *)id)->connected)
		DIE("a queue pair that is connected\n");
	q->pub.send_cq->cq_context = NULL;
	id->qp = NULL;
	free(q->recv);
	unmake(q);
	pthread_mutex_unlock(&lock);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct comp *ch = make(sizeof(*ch));

	device.ops.poll_cq = poll_cq;
	device.ops.req_notify_cq = req_notify_cq;
	device.ops.post_send = post_send;
	device.ops.post_recv = post_recv;
	ch->pub.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return &ch->pub;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	if (((struct comp *)channel)->cq)
		DIE("a channel with a completion queue\n");
	close(channel->fd);
	unmake(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(
    struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
	struct cq *q = make(sizeof(*q));

	q->wc = calloc((size_t)cqe, sizeof(*q->wc));
	q->pub = (struct ibv_cq){.context = &device, .channel = channel, .cqe = cqe};
	((struct comp *)channel)->cq = q;
	return &q->pub;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct cq *q = (struct cq *)cq;

	if (cq->cq_context)
		DIE("a completion queue with a queue pair\n");
	((struct comp *)cq->channel)->cq = NULL;
	free(q->wc);
	unmake(q);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct cq *q = ((struct comp *)channel)->cq;
	uint64_t n;

	pthread_mutex_lock(&lock);
	if (!q->events) {
		(void)!read(channel->fd, &n, 8);
		pthread_mutex_unlock(&lock);
		return fail(EAGAIN);
	}
	q->events--;
	*cq = &q->pub;
	pthread_mutex_unlock(&lock);
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned nevents)
{
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *p, void *addr, size_t length, int access)
{
	static uint32_t keys;
	struct mr *m = make(sizeof(*m));

	pthread_mutex_lock(&lock);
	m->pub = (struct ibv_mr){.addr = addr, .length = length, .lkey = ++keys};
	m->next = mrs;
	mrs = m;
	pthread_mutex_unlock(&lock);
	return &m->pub;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *p, void *addr, size_t length, uint64_t iova, unsigned access)
{
	return ibv_reg_mr(p, addr, length, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct mr **at = &mrs;

	pthread_mutex_lock(&lock);
	while (*at != (struct mr *)mr)
		at = &(*at)->next;
	*at = (*at)->next;
	unmake(mr);
	pthread_mutex_unlock(&lock);
	return 0;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "status of the fake";
}
