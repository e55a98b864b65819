/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the errors that programs get when a connection is refused or fails.
 *
 *   rwy_errors listen PORT CASE          one connection
 *   rwy_errors connect HOST PORT CASE
 *
 * Each end prints a line for each thing that it was told: an errno, a CM event with its status and
 * private data, a completion with its status. The exit status is 0: the lines are the result.
 *
 * CASE, what goes wrong: see `cases`.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT 2000 /* ms, for addresses and routes */
#define SIZE    4096u
#define REFUSAL 100 /* bytes of private data of a refusal, of at most 148 */

enum server { ACCEPTS, REJECTS, LEAVES, DIES };
enum request { NOTHING, SEND_TOO_LONG, WRITE_WRONG_KEY, WRITE_TOO_FAR, READ_WRONG_KEY, SEND_NO_RECEIVE };

static const struct error_case {
	const char *name;
	enum server server;
	enum request request;
} cases[] = {
    {"nobody", ACCEPTS, NOTHING}, /* nobody listens: only the client runs */
    {"reject", REJECTS, NOTHING}, /* the server refuses, with private data */
    {"leave", LEAVES, NOTHING},   /* it ends with the request unanswered */
    {"die", DIES, NOTHING},       /* it ends after the connection is there */
    {"send-too-long", ACCEPTS, SEND_TOO_LONG},
    {"write-wrong-key", ACCEPTS, WRITE_WRONG_KEY},
    {"write-too-far", ACCEPTS, WRITE_TOO_FAR},
    {"read-wrong-key", ACCEPTS, READ_WRONG_KEY},
    {"send-no-receive", ACCEPTS, SEND_NO_RECEIVE},
};

struct region { /* the server's memory: private data of its answer */
	uint64_t address;
	uint32_t key;
};

static uint8_t memory[2 * SIZE];

static const struct error_case *case_find(const char *name)
{
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, name))
			return &cases[i];
	return NULL;
}

static int step_failed(const char *step)
{
	printf("%s: %s\n", step, strerror(errno));
	return 0;
}

static void event_print(const struct rdma_cm_event *e)
{
	const struct rdma_conn_param *p = &e->param.conn;
	const uint8_t *data = p->private_data;

	printf("event %s status %d", rdma_event_str(e->event), e->status);
	if (e->event == RDMA_CM_EVENT_REJECTED && data) {
		printf(" data");
		for (unsigned i = 0; i < p->private_data_len; i++)
			printf(" %02x", data[i]);
	}
	putchar('\n');
}

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){.cap = {.max_send_wr = 4,
	                                     .max_recv_wr = 4,
	                                     .max_send_sge = 1,
	                                     .max_recv_sge = 1,
	                                     .max_inline_data = 16},
	    .sq_sig_all = 1,
	    .qp_type = IBV_QPT_RC};
}

static void completion_print(const char *queue, const struct ibv_wc *wc)
{
	printf("%s completion: %s\n", queue, ibv_wc_status_str(wc->status));
}

/* Waits for the next CM event of a connection. */
static void disconnect_await(struct rdma_cm_id *id)
{
	struct rdma_cm_event *e;

	if (rdma_get_cm_event(id->channel, &e)) {
		step_failed("event");
		return;
	}
	event_print(e);
	rdma_ack_cm_event(e);
}

/* --- server ----------------------------------------------------------------------------------- */

static int server_connect(struct rdma_cm_id *id, const struct error_case *c)
{
	struct ibv_qp_init_attr attr = qp_attr();
	struct region region;
	struct rdma_conn_param param = {.responder_resources = 1,
	    .initiator_depth = 1,
	    .rnr_retry_count = 1,
	    .private_data = &region,
	    .private_data_len = sizeof(region)};
	struct ibv_mr *mr;
	struct ibv_wc wc;

	if (rdma_create_qp(id, NULL, &attr))
		return step_failed("queue pair");
	mr = ibv_reg_mr(
	    id->pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!mr)
		return step_failed("memory");
	region = (struct region){(uintptr_t)memory, mr->rkey};
	if (c->request == SEND_TOO_LONG && rdma_post_recv(id, NULL, memory, 16, mr))
		return step_failed("receive");
	if (rdma_accept(id, &param))
		return step_failed("accept");
	if (c->server == DIES)
		_exit(0);
	if (c->request == SEND_TOO_LONG && rdma_get_recv_comp(id, &wc) > 0)
		completion_print("receive", &wc);
	disconnect_await(id);
	rdma_disconnect(id);
	return 0;
}

static int serve(const char *port, const struct error_case *c)
{
	struct sockaddr_in6 any = {
	    .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)strtol(port, NULL, 10))};
	struct rdma_cm_id *listener, *id;
	uint8_t why[REFUSAL];

	for (unsigned i = 0; i < sizeof(why); i++)
		why[i] = (uint8_t)(i * 3 + 1);
	if (rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&any) || rdma_listen(listener, 1))
		return step_failed("listen");
	if (rdma_get_request(listener, &id))
		return step_failed("request");
	switch (c->server) {
	case REJECTS:
		if (rdma_reject(id, why, sizeof(why)))
			step_failed("reject");
		return 0;
	case LEAVES:
		_exit(0);
	case ACCEPTS:
	case DIES:
		break;
	}
	return server_connect(id, c);
}

/* --- client ----------------------------------------------------------------------------------- */

/* Posts what the case asks for, and prints how it ends. */
static int request_post(struct rdma_cm_id *id, enum request what, struct region to)
{
	struct ibv_mr *mr = ibv_reg_mr(id->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_wc wc;
	int rc = 0;

	if (!mr)
		return step_failed("memory");
	switch (what) {
	case NOTHING:
		return 0;
	case SEND_TOO_LONG:
	case SEND_NO_RECEIVE:
		rc = rdma_post_send(id, NULL, memory, SIZE, mr, 0);
		break;
	case WRITE_WRONG_KEY:
		rc = rdma_post_write(id, NULL, memory, 64, mr, 0, to.address, to.key ^ 0xff00);
		break;
	case WRITE_TOO_FAR:
		rc = rdma_post_write(id, NULL, memory, 2 * SIZE, mr, 0, to.address, to.key);
		break;
	case READ_WRONG_KEY:
		rc = rdma_post_read(id, NULL, memory, 64, mr, 0, to.address, to.key ^ 0xff00);
		break;
	}
	if (rc)
		return step_failed("request");
	if (rdma_get_send_comp(id, &wc) > 0)
		completion_print("send", &wc);
	/* The queue pair is in the error state: what follows is flushed. */
	if (!rdma_post_send(id, NULL, memory, 8, mr, 0) && rdma_get_send_comp(id, &wc) > 0)
		completion_print("send", &wc);
	return 0;
}

static int ask(const char *host, const char *port, const struct error_case *c)
{
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_conn_param param = {
	    .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 1};
	struct region to = {0};
	struct addrinfo *at;
	struct rdma_cm_id *id;

	if (getaddrinfo(host, port, &(struct addrinfo){.ai_flags = AI_NUMERICHOST}, &at))
		return step_failed("name");
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return step_failed("id");
	if (rdma_resolve_addr(id, NULL, at->ai_addr, TIMEOUT))
		return step_failed("address");
	if (rdma_resolve_route(id, TIMEOUT))
		return step_failed("route");
	if (rdma_create_qp(id, NULL, &attr))
		return step_failed("queue pair");
	if (rdma_connect(id, &param)) {
		step_failed("connect");
		if (id->event)
			event_print(id->event);
		return 0;
	}
	printf("connected\n");
	if (id->event->param.conn.private_data_len >= sizeof(to))
		memcpy(&to, id->event->param.conn.private_data, sizeof(to));
	if (c->server == DIES) {
		disconnect_await(id);
		return 0;
	}
	request_post(id, c->request, to);
	rdma_disconnect(id);
	rdma_destroy_ep(id);
	return 0;
}

int main(int argc, char **argv)
{
	const struct error_case *c = argc > 3 ? case_find(argv[argc - 1]) : NULL;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (c && argc == 4 && !strcmp(argv[1], "listen"))
		return serve(argv[2], c);
	if (c && argc == 5 && !strcmp(argv[1], "connect"))
		return ask(argv[2], argv[3], c);
	fputs("usage: rwy_errors listen PORT CASE | connect HOST PORT CASE\n", stderr);
	return 2;
}
