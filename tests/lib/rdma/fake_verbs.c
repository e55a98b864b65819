/* SPDX-License-Identifier: Apache-2.0 */
/* libibverbs: queue pairs, completions, memory; and the attacker. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/lib/rdma/fake_int.h"

#undef ibv_reg_mr

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

struct comp {
	struct ibv_comp_channel pub;
	struct cq *cq;
};

struct mr {
	struct ibv_mr pub;
	struct mr *next;
};

static struct mr *mrs;

static void complete(struct cq *q, const struct ibv_wc *wc)
{
	struct comp *ch = (struct comp *)q->pub.channel;

	if (q->w - q->r >= (uint32_t)q->pub.cqe)
		RDMA_FAKE_DIE("a completion queue overflows\n");
	q->wc[q->w++ % (uint32_t)q->pub.cqe] = *wc;
	if (!q->armed)
		return;
	q->armed = false;
	q->events++;
	rdma_fake_ring(ch->pub.fd);
}

static void registered(const struct ibv_sge *s)
{
	for (const struct mr *m = mrs; m; m = m->next)
		if (m->pub.lkey == s->lkey && s->addr >= (uintptr_t)m->pub.addr &&
		    s->addr + s->length <= (uintptr_t)m->pub.addr + m->pub.length)
			return;
	RDMA_FAKE_DIE("memory that is not registered\n");
}

/* The attacker: changes what a SEND has put into memory. False: the SEND does not arrive. */
static bool attack(uint8_t *p, struct ibv_wc *wc)
{
	static uint8_t before[16384];
	static uint32_t len;
	const enum rdma_fake_fault f = wc->byte_len >= RDMA_FAKE_BIG ? rdma_fake.fault : RDMA_FAKE_NONE;

	if (f == RDMA_FAKE_FLIP)
		p[wc->byte_len / 2] ^= 4;
	if (f == RDMA_FAKE_CREDIT)
		wc->imm_data = htonl(ntohl(wc->imm_data) + 1);
	if (f == RDMA_FAKE_REPEAT && len) {
		memcpy(p, before, len);
		wc->byte_len = len;
	}
	if (f >= RDMA_FAKE_FLIP)
		rdma_fake.fault = RDMA_FAKE_NONE;
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

	if (rdma_fake.hears && wr->num_sge)
		rdma_fake.hears((const uint8_t *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length);
	if (to->r == to->w) {
		rdma_fake.count.rnr++;
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
	const struct rdma_fake_id *i = qp->qp_context;

	pthread_mutex_lock(&rdma_fake.lock);
	for (; wr; wr = wr->next) {
		struct ibv_wc wc = {.wr_id = wr->wr_id, .opcode = IBV_WC_SEND};

		if (++q->sends > q->cap.max_send_wr)
			RDMA_FAKE_DIE("a send queue overflows\n");
		if (wr->num_sge && !(wr->send_flags & IBV_SEND_INLINE))
			registered(wr->sg_list);
		if (wr->send_flags & IBV_SEND_INLINE && wr->sg_list->length > q->cap.max_inline_data)
			RDMA_FAKE_DIE("too long for inline data\n");
		rdma_fake.count.sends++;
		rdma_fake.count.empties += !wr->num_sge;
		rdma_fake.count.inlined += (wr->send_flags & IBV_SEND_INLINE) != 0;
		if (!i->connected || rdma_fake.fault == RDMA_FAKE_CUT)
			continue;
		if (rdma_fake.fault == RDMA_FAKE_ERROR) {
			rdma_fake.fault = RDMA_FAKE_NONE;
			wc.status = IBV_WC_RETRY_EXC_ERR;
		} else {
			wc.status = arrive((struct qp *)i->peer->pub.qp, wr);
		}
		complete((struct cq *)qp->send_cq, &wc);
	}
	pthread_mutex_unlock(&rdma_fake.lock);
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct qp *q = (struct qp *)qp;

	pthread_mutex_lock(&rdma_fake.lock);
	for (; wr; wr = wr->next) {
		if (q->w - q->r >= q->cap.max_recv_wr)
			RDMA_FAKE_DIE("a receive queue overflows\n");
		registered(wr->sg_list);
		q->recv[q->w++ % q->cap.max_recv_wr] = (struct recv_row){wr->wr_id, *wr->sg_list};
	}
	pthread_mutex_unlock(&rdma_fake.lock);
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct cq *q = (struct cq *)cq;
	int got = 0;

	pthread_mutex_lock(&rdma_fake.lock);
	for (; got < n && q->r != q->w; got++) {
		wc[got] = q->wc[q->r++ % (uint32_t)cq->cqe];
		if (wc[got].opcode == IBV_WC_SEND && cq->cq_context)
			((struct qp *)cq->cq_context)->sends--;
	}
	pthread_mutex_unlock(&rdma_fake.lock);
	return got;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	pthread_mutex_lock(&rdma_fake.lock);
	((struct cq *)cq)->armed = true;
	pthread_mutex_unlock(&rdma_fake.lock);
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *p, struct ibv_qp_init_attr *a)
{
	struct qp *q = rdma_fake_make(sizeof(*q));

	q->cap = a->cap;
	q->recv = calloc(a->cap.max_recv_wr, sizeof(*q->recv));
	q->pub = (struct ibv_qp){
	    .context = &rdma_fake.device, .qp_context = id, .send_cq = a->send_cq, .recv_cq = a->recv_cq};
	a->send_cq->cq_context = q; /* one queue pair has it to itself */
	id->qp = &q->pub;
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct qp *q = (struct qp *)id->qp;

	pthread_mutex_lock(&rdma_fake.lock);
	if (((struct rdma_fake_id *)id)->connected)
		RDMA_FAKE_DIE("a queue pair that is connected\n");
	q->pub.send_cq->cq_context = NULL;
	id->qp = NULL;
	free(q->recv);
	rdma_fake_unmake(q);
	pthread_mutex_unlock(&rdma_fake.lock);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct comp *ch = rdma_fake_make(sizeof(*ch));

	rdma_fake.device.ops.poll_cq = poll_cq;
	rdma_fake.device.ops.req_notify_cq = req_notify_cq;
	rdma_fake.device.ops.post_send = post_send;
	rdma_fake.device.ops.post_recv = post_recv;
	ch->pub.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return &ch->pub;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	if (((struct comp *)channel)->cq)
		RDMA_FAKE_DIE("a channel with a completion queue\n");
	close(channel->fd);
	rdma_fake_unmake(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(
    struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel, int vector)
{
	struct cq *q = rdma_fake_make(sizeof(*q));

	q->wc = calloc((size_t)cqe, sizeof(*q->wc));
	q->pub = (struct ibv_cq){.context = &rdma_fake.device, .channel = channel, .cqe = cqe};
	((struct comp *)channel)->cq = q;
	return &q->pub;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct cq *q = (struct cq *)cq;

	if (cq->cq_context)
		RDMA_FAKE_DIE("a completion queue with a queue pair\n");
	((struct comp *)cq->channel)->cq = NULL;
	free(q->wc);
	rdma_fake_unmake(q);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct cq *q = ((struct comp *)channel)->cq;
	uint64_t n;

	pthread_mutex_lock(&rdma_fake.lock);
	if (!q->events) {
		(void)!read(channel->fd, &n, 8);
		pthread_mutex_unlock(&rdma_fake.lock);
		return rdma_fake_fail(EAGAIN);
	}
	q->events--;
	*cq = &q->pub;
	pthread_mutex_unlock(&rdma_fake.lock);
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned nevents)
{
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *p, void *addr, size_t length, int access)
{
	static uint32_t keys;
	struct mr *m = rdma_fake_make(sizeof(*m));

	pthread_mutex_lock(&rdma_fake.lock);
	m->pub = (struct ibv_mr){.addr = addr, .length = length, .lkey = ++keys};
	m->next = mrs;
	mrs = m;
	pthread_mutex_unlock(&rdma_fake.lock);
	return &m->pub;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *p, void *addr, size_t length, uint64_t iova, unsigned access)
{
	return ibv_reg_mr(p, addr, length, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct mr **at = &mrs;

	pthread_mutex_lock(&rdma_fake.lock);
	while (*at != (struct mr *)mr)
		at = &(*at)->next;
	*at = (*at)->next;
	rdma_fake_unmake(mr);
	pthread_mutex_unlock(&rdma_fake.lock);
	return 0;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "status of the fake";
}
