/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workload like NCCL's InfiniBand transport that checks every byte. Many QPs are set up over TCP,
 * all with the same start PSN and, by default, flow label 0. The receiver clears the sender to send
 * by RDMA WRITEs into the sender's fifo. The sender answers with WRITEs and WRITE WITH IMMEDIATE
 * (with data, or 0-length after the data). 8 steps are outstanding; timeout 20, retry 7, rnr 7. The
 * bytes and the size of each step are a seeded pattern of (QP, step); around them lies a poison
 * that must stay. It is no benchmark: its rate includes making and checking the pattern.
 *
 *   rwy_ncclish [options]           serves one client
 *   rwy_ncclish [options] HOST      connects
 *
 * Prints one line of JSON. Exit: 0 all bytes are right; 3 a QP or the peer reported an error; 4
 * wrong data; 5 no end within --limit; 1 could not start; 2 usage.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/pattern.h"
#include "lib/rc.h"
#include "lib/tcp.h"

#define DEPTH     8 /* steps outstanding on a QP: NCCL_STEPS */
#define QPS_MAX   1024
#define WRS_STEP  3 /* most work requests of a step */
#define EXIT_QP   3
#define EXIT_BAD  4
#define EXIT_LATE 5

struct options {
	const char *device, *host;
	const char *port;
	unsigned int qps, steps, chunk, gid, timeout, flow_label, psn, seed, limit, tc;
	bool bidir, psn_random;
};

/* The receiver's write into the sender's memory: room for this step. */
struct cts {
	uint64_t addr;
	uint32_t rkey;
	uint32_t size;
	uint64_t step; /* step + 1; written last, as part of the same WRITE */
};

/* The bootstrap messages over TCP, big-endian: one for the process and one for each QP. */
struct hello {
	uint32_t qps, steps, chunk, seed, bidir, mtu;
	uint8_t gid[16];
};

struct qp_hello {
	uint32_t qpn, psn, rkey, pad;
	uint64_t fifo;
};

struct flow {
	struct ibv_qp *qp;
	bool sender;
	uint32_t psn;
	struct qp_hello far;
	uint8_t *slots;      /* DEPTH slots: source of the sender, target of the receiver */
	struct cts *fifo;    /* sender: written by the receiver */
	struct cts *staging; /* receiver: source of the clear-to-send WRITEs */
	unsigned int next;   /* sender: next step to post; receiver: next step expected */
	unsigned int done;   /* sender: steps acknowledged; receiver: steps checked */
	unsigned int cts_sent, cts_done;
};

struct run {
	struct options opt;
	bool server;
	int tcp;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct hello far;
	struct flow *flows;
	size_t slot;
	unsigned int left; /* flows that are not finished */
	uint64_t bytes, bad_bytes, bad_imm;
	int status;
	char error[160];
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(struct run *r, int status, const char *format, ...)
{
	va_list ap;

	if (r->status)
		return; /* the first error matters */
	r->status = status;
	va_start(ap, format);
	vsnprintf(r->error, sizeof(r->error), format, ap);
	va_end(ap);
}

/* --- the steps ---------------------------------------------------------------------------------- */

static uint64_t step_seed(const struct run *r, unsigned int qp, unsigned int step)
{
	return rc_mix(((uint64_t)r->opt.seed << 48) ^ ((uint64_t)qp << 32) ^ step);
}

/* Most steps are full; some are short and odd, a few have one byte or only the immediate. */
static uint32_t step_size(const struct run *r, unsigned int qp, unsigned int step)
{
	uint64_t h = rc_mix(step_seed(r, qp, step));

	if (h % 8 < 5)
		return r->opt.chunk;
	if (h % 8 == 7)
		return (h >> 8) % 4 ? 1 : 0;
	return 1 + (uint32_t)((h >> 16) % r->opt.chunk);
}

/* --- verbs -------------------------------------------------------------------------------------- */

static int device_open(struct run *r)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	for (int i = 0; list && i < count && !r->ctx; i++)
		if (!r->opt.device || !strcmp(ibv_get_device_name(list[i]), r->opt.device))
			r->ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!r->ctx || ibv_query_port(r->ctx, 1, &r->port) ||
	    ibv_query_gid(r->ctx, 1, (int)r->opt.gid, &r->gid))
		return -1;
	r->pd = ibv_alloc_pd(r->ctx);
	r->channel = ibv_create_comp_channel(r->ctx);
	r->cq = r->channel
	            ? ibv_create_cq(r->ctx, (int)(r->opt.qps * DEPTH * (WRS_STEP + 3)), NULL, r->channel, 0)
	            : NULL;
	return r->pd && r->cq ? 0 : -1;
}

static int memory_make(struct run *r)
{
	size_t fifo = DEPTH * sizeof(struct cts);
	size_t each = DEPTH * r->slot + 2 * fifo, size = each * r->opt.qps;
	uint8_t *mem = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	if (!mem)
		return -1;
	memset(mem, 0, size);
	for (unsigned int i = 0; i < r->opt.qps; i++) {
		struct flow *f = &r->flows[i];

		f->slots = mem + i * each;
		f->fifo = (struct cts *)(void *)(f->slots + DEPTH * r->slot);
		f->staging = f->fifo + DEPTH;
		f->sender = r->opt.bidir && i % 2 ? r->server : !r->server;
		memset(f->slots, PATTERN_POISON, DEPTH * r->slot);
	}
	r->mr = ibv_reg_mr(r->pd, mem, size, access);
	return r->mr ? 0 : -1;
}

static int qp_make(struct run *r, struct flow *f)
{
	struct ibv_qp_init_attr init = {
	    .send_cq = r->cq,
	    .recv_cq = r->cq,
	    .qp_type = IBV_QPT_RC,
	    .cap = {.max_send_wr = DEPTH * WRS_STEP + 8,
	        .max_recv_wr = DEPTH + 1,
	        .max_send_sge = 1,
	        .max_recv_sge = 1,
	        .max_inline_data = sizeof(struct cts)},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
	    .port_num = 1,
	    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

	f->psn = r->opt.psn_random ? (uint32_t)rand() & 0xffffff : r->opt.psn;
	f->qp = ibv_create_qp(r->pd, &init);
	return f->qp ? ibv_modify_qp(
	                   f->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
	             : -1;
}

static int qp_connect(struct run *r, struct flow *f)
{
	struct ibv_qp_attr rtr = {
	    .qp_state = IBV_QPS_RTR,
	    .path_mtu = (enum ibv_mtu)(r->far.mtu < r->port.active_mtu ? r->far.mtu : r->port.active_mtu),
	    .dest_qp_num = f->far.qpn,
	    .rq_psn = f->far.psn,
	    .max_dest_rd_atomic = 1,
	    .min_rnr_timer = 12,
	    .ah_attr = {.is_global = 1,
	        .port_num = 1,
	        .grh = {.sgid_index = (uint8_t)r->opt.gid,
	            .hop_limit = 255,
	            .traffic_class = (uint8_t)r->opt.tc,
	            .flow_label = r->opt.flow_label}},
	};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
	    .timeout = (uint8_t)r->opt.timeout,
	    .retry_cnt = 7,
	    .rnr_retry = 7,
	    .sq_psn = f->psn,
	    .max_rd_atomic = 1};

	memcpy(&rtr.ah_attr.grh.dgid, r->far.gid, 16);
	if (ibv_modify_qp(f->qp, &rtr,
	        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return -1;
	return ibv_modify_qp(f->qp, &rts,
	    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
	        IBV_QP_MAX_QP_RD_ATOMIC);
}

static int peers_meet(struct run *r)
{
	size_t size = r->opt.qps * sizeof(struct qp_hello);
	struct qp_hello *mine = calloc(1, size), *far = calloc(1, size);
	struct hello me = {htonl(r->opt.qps), htonl(r->opt.steps), htonl(r->opt.chunk), htonl(r->opt.seed),
	    htonl(r->opt.bidir), htonl(r->port.active_mtu), {0}};
	int rc = -1;

	memcpy(me.gid, r->gid.raw, 16);
	if (!mine || !far || tcp_swap(r->tcp, &me, &r->far, sizeof(me)))
		goto out;
	if (memcmp(&me, &r->far, offsetof(struct hello, mtu)) != 0) {
		fprintf(stderr, "rwy_ncclish: the two sides were given different options\n");
		goto out;
	}
	r->far.mtu = ntohl(r->far.mtu);
	for (unsigned int i = 0; i < r->opt.qps; i++) {
		const struct flow *f = &r->flows[i];

		mine[i] = (struct qp_hello){.qpn = htonl(f->qp->qp_num),
		    .psn = htonl(f->psn),
		    .rkey = htonl(r->mr->rkey),
		    .fifo = htobe64((uintptr_t)f->fifo)};
	}
	if (tcp_swap(r->tcp, mine, far, size))
		goto out;
	for (unsigned int i = 0; i < r->opt.qps; i++) {
		r->flows[i].far = (struct qp_hello){.qpn = ntohl(far[i].qpn),
		    .psn = ntohl(far[i].psn),
		    .rkey = ntohl(far[i].rkey),
		    .fifo = be64toh(far[i].fifo)};
		if (qp_connect(r, &r->flows[i]))
			goto out;
	}
	rc = 0;
out:
	free(mine);
	free(far);
	return rc;
}

/* --- the transfer ------------------------------------------------------------------------------- */

/* Work request ids: index of the flow, and the kind of work. */
enum wr_kind { WR_RECV, WR_CTS, WR_STEP };

static uint64_t wr_id(const struct run *r, const struct flow *f, enum wr_kind kind)
{
	return (uint64_t)(f - r->flows) << 8 | kind;
}

static void recv_post(struct run *r, struct flow *f)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id(r, f, WR_RECV)}, *bad;

	if (ibv_post_recv(f->qp, &wr, &bad))
		fail(r, EXIT_QP, "post_recv: %s", strerror(errno));
}

static void write_post(struct run *r, struct flow *f, struct ibv_send_wr *wr, const void *data, uint32_t size)
{
	struct ibv_sge sge = {.addr = (uintptr_t)data, .length = size, .lkey = r->mr->lkey};
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = size ? 1 : 0;
	if (ibv_post_send(f->qp, wr, &bad))
		fail(r, EXIT_QP, "post_send: %s", strerror(errno));
}

/* Receiver: poisons the slot and lets the sender write it. */
static void cts_post(struct run *r, struct flow *f)
{
	unsigned int step = f->cts_sent++, at = step % DEPTH;
	uint8_t *slot = f->slots + at * r->slot;
	struct ibv_send_wr wr = {.wr_id = wr_id(r, f, WR_CTS),
	    .opcode = IBV_WR_RDMA_WRITE,
	    .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
	    .wr.rdma = {f->far.fifo + at * sizeof(struct cts), f->far.rkey}};

	memset(slot, PATTERN_POISON, r->slot);
	recv_post(r, f);
	f->staging[at] = (struct cts){.addr = htobe64((uintptr_t)slot),
	    .rkey = htonl(r->mr->rkey),
	    .size = htonl(r->opt.chunk),
	    .step = htobe64(step + 1)};
	write_post(r, f, &wr, &f->staging[at], sizeof(struct cts));
}

/*
 * Sender: one step, in turn as data with the immediate; data, then a 0-length immediate; data in
 * halves, then the immediate.
 */
static void step_post(struct run *r, struct flow *f)
{
	unsigned int step = f->next++, qp = (unsigned int)(f - r->flows);
	const struct cts *cts = &f->fifo[step % DEPTH];
	uint64_t addr = be64toh(cts->addr);
	uint32_t rkey = ntohl(cts->rkey), size = step_size(r, qp, step), at = 0;
	uint8_t *slot = f->slots + (step % DEPTH) * r->slot;
	unsigned int writes = size ? step % 3 : 0;

	pattern_fill(slot, step_seed(r, qp, step), size);
	for (unsigned int i = 0; i < writes; i++) {
		uint32_t part = i + 1 < writes ? size / 2 : size - at;
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {addr + at, rkey}};

		if (part)
			write_post(r, f, &wr, slot + at, part);
		at += part;
	}
	struct ibv_send_wr last = {.wr_id = wr_id(r, f, WR_STEP),
	    .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
	    .send_flags = IBV_SEND_SIGNALED,
	    .imm_data = htonl(step),
	    .wr.rdma = {addr + at, rkey}};

	write_post(r, f, &last, slot + at, size - at);
	r->bytes += size;
}

static void step_arrived(struct run *r, struct flow *f, uint32_t imm)
{
	unsigned int step = f->next++, qp = (unsigned int)(f - r->flows);
	const uint8_t *slot = f->slots + (step % DEPTH) * r->slot;
	uint32_t size = step_size(r, qp, step);
	uint64_t bad = pattern_check(slot, step_seed(r, qp, step), size, r->slot);

	if (imm != step) {
		r->bad_imm++;
		fail(r, EXIT_BAD, "QP %u: immediate %u where %u was due", qp, imm, step);
	}
	if (bad) {
		r->bad_bytes += bad;
		fail(r, EXIT_BAD, "QP %u step %u: %llu of %u bytes wrong", qp, step, (unsigned long long)bad,
		    size);
	}
	r->bytes += size;
	f->done++;
	if (f->cts_sent < r->opt.steps)
		cts_post(r, f);
}

static void flow_finished(struct run *r, const struct flow *f)
{
	bool all = f->done == r->opt.steps && (f->sender || f->cts_done == r->opt.steps);

	if (all)
		r->left--;
}

static void wc_handle(struct run *r, const struct ibv_wc *wc)
{
	struct flow *f = &r->flows[wc->wr_id >> 8];

	if (wc->status != IBV_WC_SUCCESS) {
		fail(r, EXIT_QP, "QP %u: %s", (unsigned int)(f - r->flows), ibv_wc_status_str(wc->status));
		return;
	}
	switch ((enum wr_kind)(wc->wr_id & 0xff)) {
	case WR_RECV:
		step_arrived(r, f, ntohl(wc->imm_data));
		break;
	case WR_CTS:
		f->cts_done++;
		break;
	case WR_STEP:
		f->done++;
		break;
	}
	flow_finished(r, f);
}

/* True if something happened. */
static bool flows_advance(struct run *r)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(r->cq, 16, wc);
	bool moved = n > 0;

	for (int i = 0; i < n && !r->status; i++)
		wc_handle(r, &wc[i]);
	for (unsigned int i = 0; i < r->opt.qps && !r->status; i++) {
		struct flow *f = &r->flows[i];

		/* One step per QP at a time, so that the QPs' packets mix. */
		if (f->sender && f->next < r->opt.steps && f->next - f->done < DEPTH &&
		    be64toh(__atomic_load_n(&f->fifo[f->next % DEPTH].step, __ATOMIC_ACQUIRE)) ==
		        f->next + 1) {
			step_post(r, f);
			moved = true;
		}
	}
	return moved;
}

/*
 * Sleeps until a completion or for 1 ms, since a clear-to-send makes no completion. Notices a peer
 * that is gone.
 */
static void flows_wait(struct run *r)
{
	struct pollfd p[2] = {{.fd = r->channel->fd, .events = POLLIN}, {.fd = r->tcp, .events = POLLRDHUP}};
	struct ibv_cq *cq;
	void *context;

	if (poll(p, 2, 1) > 0 && p[0].revents && !ibv_get_cq_event(r->channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		ibv_req_notify_cq(cq, 0);
	}
	if (p[1].revents & (POLLRDHUP | POLLHUP | POLLERR))
		fail(r, EXIT_QP, "the peer is gone");
}

static void transfer(struct run *r)
{
	double end = now() + r->opt.limit;

	r->left = r->opt.qps;
	ibv_req_notify_cq(r->cq, 0);
	for (unsigned int i = 0; i < r->opt.qps; i++)
		for (unsigned int k = 0; !r->flows[i].sender && k < DEPTH && k < r->opt.steps; k++)
			cts_post(r, &r->flows[i]);
	while (r->left && !r->status) {
		if (!flows_advance(r))
			flows_wait(r);
		if (now() > end)
			fail(r, EXIT_LATE, "%u QPs not done after %u s", r->left, r->opt.limit);
	}
}

/* --- main --------------------------------------------------------------------------------------- */

static int usage(void)
{
	fprintf(stderr, "usage: rwy_ncclish [--qps N] [--steps N] [--chunk BYTES] [--gid INDEX] [--timeout "
	                "N] [--psn N|random]\n"
	                "  [--flow-label N] [--tc N] [--bidir] [--seed N] [--limit SECONDS] [--port N] "
	                "[--device NAME] [HOST]\n"
	                "  --flow-label: not 0 gives all QPs one UDP source port; --bidir: odd QPs carry "
	                "data the other way\n");
	return 2;
}

static int options_read(struct options *o, int argc, char **argv)
{
	static const struct option names[] = {{"qps", 1, 0, 'q'}, {"steps", 1, 0, 'n'}, {"chunk", 1, 0, 's'},
	    {"gid", 1, 0, 'g'}, {"timeout", 1, 0, 't'}, {"psn", 1, 0, 'P'}, {"flow-label", 1, 0, 'f'},
	    {"tc", 1, 0, 'c'}, {"bidir", 0, 0, 'b'}, {"seed", 1, 0, 'S'}, {"limit", 1, 0, 'l'},
	    {"port", 1, 0, 'p'}, {"device", 1, 0, 'd'}, {0, 0, 0, 0}};
	const struct {
		int key;
		unsigned int *to;
	} numbers[] = {{'q', &o->qps}, {'n', &o->steps}, {'s', &o->chunk}, {'g', &o->gid}, {'t', &o->timeout},
	    {'P', &o->psn}, {'f', &o->flow_label}, {'c', &o->tc}, {'S', &o->seed}, {'l', &o->limit}};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		bool known = true;

		if (c == 'b')
			o->bidir = true;
		else if (c == 'p')
			o->port = optarg;
		else if (c == 'd')
			o->device = optarg;
		else if (c == 'P' && !strcmp(optarg, "random"))
			o->psn_random = true;
		else
			known = false;
		for (size_t i = 0; !known && i < sizeof(numbers) / sizeof(numbers[0]); i++)
			if (numbers[i].key == c) {
				*numbers[i].to = (unsigned int)strtoul(optarg, NULL, 0);
				known = true;
			}
		if (!known)
			return -1;
	}
	o->host = optind < argc ? argv[optind] : NULL;
	return o->qps && o->qps <= QPS_MAX && o->steps && o->chunk && optind + 1 >= argc ? 0 : -1;
}

static int start(struct run *r)
{
	r->tcp = tcp_open(r->server ? NULL : r->opt.host, r->opt.port);
	if (r->tcp < 0) {
		perror("rwy_ncclish: TCP bootstrap");
		return -1;
	}
	if (device_open(r) || memory_make(r)) {
		perror("rwy_ncclish: device or memory");
		return -1;
	}
	for (unsigned int i = 0; i < r->opt.qps; i++)
		if (qp_make(r, &r->flows[i])) {
			perror("rwy_ncclish: QP");
			return -1;
		}
	if (peers_meet(r)) {
		perror("rwy_ncclish: bootstrap");
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct run r = {.opt = {.qps = 64,
	                    .steps = 32,
	                    .chunk = 65536,
	                    .gid = 1,
	                    .timeout = 20,
	                    .seed = 1,
	                    .limit = 120,
	                    .port = "18777"}};
	char mine = 'r', theirs = 0;

	if (options_read(&r.opt, argc, argv))
		return usage();
	r.server = !r.opt.host;
	r.slot = ((size_t)r.opt.chunk + 64 + 63) & ~(size_t)63;
	r.flows = calloc(r.opt.qps, sizeof(*r.flows));
	srand((unsigned int)time(NULL) ^ (unsigned int)getpid());
	if (!r.flows || start(&r) || tcp_swap(r.tcp, &mine, &theirs, 1)) {
		free(r.flows);
		return 1;
	}
	double begin = now();

	transfer(&r);
	double seconds = now() - begin;

	/* The other side's last acknowledgements need this side's QPs: both end together. */
	if (!r.status && tcp_swap(r.tcp, &mine, &theirs, 1))
		fail(&r, EXIT_QP, "the peer ended with an error");
	printf("{\"role\": \"%s\", \"qps\": %u, \"steps\": %u, \"chunk\": %u, \"bytes\": %llu, \"seconds\": "
	       "%.3f, \"MBps\": %.2f, "
	       "\"bad_bytes\": %llu, \"bad_imm\": %llu, \"status\": %d, \"error\": \"%s\"}\n",
	    r.server ? "server" : "client", r.opt.qps, r.opt.steps, r.opt.chunk, (unsigned long long)r.bytes,
	    seconds, (double)r.bytes / seconds / 1e6, (unsigned long long)r.bad_bytes,
	    (unsigned long long)r.bad_imm, r.status, r.error);
	free(r.flows);
	return r.status;
}
