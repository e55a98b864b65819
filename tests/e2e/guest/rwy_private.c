/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private data of rdma_cm, as both ends see them.
 *
 *   rwy_private listen PORT N            accepts N connections; prints what each REQ brought
 *   rwy_private connect HOST PORT LEN    asks with LEN bytes: 1, 2, 3...; the sum of one answer is printed
 *   rwy_private ep HOST PORT LEN         the same by rdma_getaddrinfo and rdma_create_ep
 *
 * An error is a line with the step and its errno, and exit status 1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT 2000 /* ms */

static int failed(const char *step)
{
	printf("%s: %s\n", step, strerror(errno));
	return EXIT_FAILURE;
}

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){
	    .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	    .qp_type = IBV_QPT_RC};
}

static void print_data(const struct rdma_conn_param *p)
{
	const uint8_t *d = p->private_data;

	printf("len=%u data=", p->private_data_len);
	for (unsigned i = 0; d && i < p->private_data_len; i++)
		printf("%02x", d[i]);
	putchar('\n');
	fflush(stdout);
}

/* --- server ----------------------------------------------------------------------------------- */

static int serve_one(struct rdma_cm_id *listener)
{
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_conn_param param = {.private_data = "answer", .private_data_len = 6};
	struct rdma_cm_id *id;

	if (rdma_get_request(listener, &id))
		return failed("request");
	print_data(&id->event->param.conn);
	if (rdma_create_qp(id, NULL, &attr))
		return failed("queue pair");
	if (rdma_accept(id, &param))
		return failed("accept");
	/* Until the client leaves: the event is that, or an error that says so. */
	rdma_disconnect(id);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	return 0;
}

static int serve(const char *port, int n)
{
	struct sockaddr_in6 any = {
	    .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)strtol(port, NULL, 10))};
	struct rdma_cm_id *listener;

	if (rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&any) || rdma_listen(listener, 8))
		return failed("listen");
	for (int i = 0; i < n; i++)
		if (serve_one(listener))
			return EXIT_FAILURE;
	rdma_destroy_id(listener);
	return 0;
}

/* --- client ----------------------------------------------------------------------------------- */

static struct rdma_cm_id *by_steps(const char *host, const char *port)
{
	struct ibv_qp_init_attr attr = qp_attr();
	struct addrinfo *to;
	struct rdma_cm_id *id;

	if (getaddrinfo(host, port, &(struct addrinfo){.ai_flags = AI_NUMERICHOST}, &to))
		return NULL;
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)) {
		failed("id");
		return NULL;
	}
	if (rdma_resolve_addr(id, NULL, to->ai_addr, TIMEOUT)) {
		failed("address");
		return NULL;
	}
	if (rdma_resolve_route(id, TIMEOUT)) {
		failed("route");
		return NULL;
	}
	if (rdma_create_qp(id, NULL, &attr)) {
		failed("queue pair");
		return NULL;
	}
	freeaddrinfo(to);
	return id;
}

static struct rdma_cm_id *by_ep(const char *host, const char *port)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *to;
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(host, port, &hints, &to)) {
		failed("name");
		return NULL;
	}
	if (rdma_create_ep(&id, to, NULL, &attr)) {
		failed("endpoint");
		return NULL;
	}
	rdma_freeaddrinfo(to);
	return id;
}

static void print_peer(struct rdma_cm_id *id)
{
	struct sockaddr *peer = rdma_get_peer_addr(id);
	char text[INET6_ADDRSTRLEN] = "?";

	if (peer->sa_family == AF_INET)
		inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)peer)->sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)(void *)peer)->sin6_addr, text, sizeof(text));
	printf("peer=%s port=%u\n", text, ntohs(rdma_get_dst_port(id)));
}

static int ask(struct rdma_cm_id *id, int len)
{
	struct rdma_conn_param param = {.responder_resources = 1,
	    .initiator_depth = 1,
	    .retry_count = 7,
	    .private_data_len = (uint8_t)len};
	uint8_t data[256];

	if (!id)
		return EXIT_FAILURE;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i + 1);
	param.private_data = data;
	print_peer(id);
	if (rdma_connect(id, &param))
		return failed("connect");
	printf("answer=%.6s\n", (const char *)id->event->param.conn.private_data);
	rdma_disconnect(id);
	rdma_destroy_ep(id);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "listen"))
		return serve(argv[2], (int)strtol(argv[3], NULL, 10));
	if (argc == 5 && !strcmp(argv[1], "connect"))
		return ask(by_steps(argv[2], argv[3]), (int)strtol(argv[4], NULL, 10));
	if (argc == 5 && !strcmp(argv[1], "ep"))
		return ask(by_ep(argv[2], argv[3]), (int)strtol(argv[4], NULL, 10));
	fputs("usage: rwy_private listen PORT N | connect HOST PORT LEN | ep HOST PORT LEN\n", stderr);
	return 2;
}
