/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of HTTPS connections in one thread; see control_conn.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/control_conn.h"

#define REQUEST_MAX 8192
#define READ_CHUNK  65536

enum state { CLOSED, CONNECTING, HANDSHAKING, IDLE, WRITING, READING };

struct ctl_loop {
	int epoll;
	struct sockaddr_in to;
	/* 127.x.y.z; it changes after so many connections, since an address has few ports */
	uint32_t from;
	uint64_t opened, handshakes, lost;
};

struct ctl_conn {
	struct ctl_loop *loop;
	gnutls_certificate_credentials_t cred;
	gnutls_session_t tls;
	void *ctx;
	ctl_answer_cb *cb;
	int fd;
	enum state state;
	uint32_t events;
	char *out, *in;
	size_t out_len, out_at, in_len, in_size;
};

struct ctl_loop *ctl_loop_new(const char *host, uint16_t port)
{
	struct ctl_loop *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	if (inet_pton(AF_INET, host, &l->to.sin_addr) != 1) {
		free(l);
		return NULL;
	}
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	return l;
}

uint64_t ctl_handshakes(const struct ctl_loop *l)
{
	return l->handshakes;
}

uint64_t ctl_lost(const struct ctl_loop *l)
{
	return l->lost;
}

struct ctl_conn *ctl_conn_new(struct ctl_loop *l, gnutls_certificate_credentials_t cred, void *ctx)
{
	struct ctl_conn *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	c->loop = l;
	c->cred = cred;
	c->ctx = ctx;
	c->fd = -1;
	return c;
}

bool ctl_busy(const struct ctl_conn *c)
{
	return c->cb != NULL;
}

static void want(struct ctl_conn *c, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = c};

	if (events == c->events)
		return;
	(void)epoll_ctl(c->loop->epoll, c->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &e);
	c->events = events;
}

static void conn_close(struct ctl_conn *c)
{
	if (c->tls)
		gnutls_deinit(c->tls);
	if (c->fd >= 0)
		(void)close(c->fd);
	c->tls = NULL;
	c->fd = -1;
	c->events = 0;
	c->state = CLOSED;
}

static void answer(struct ctl_conn *c, int status, const char *body, size_t len)
{
	ctl_answer_cb *cb = c->cb;

	c->cb = NULL;
	free(c->out);
	c->out = NULL;
	if (cb)
		cb(c, c->ctx, status, body, len);
}

static void lost(struct ctl_conn *c)
{
	conn_close(c);
	c->loop->lost++;
	answer(c, -1, "", 0);
}

static void conn_open(struct ctl_conn *c)
{
	struct ctl_loop *l = c->loop;
	struct sockaddr_in from = {.sin_family = AF_INET};
	int one = 1;

	/* 10,000 connections from each address of 127.1.0.0/16. */
	from.sin_addr.s_addr = htonl(0x7f010001u + (uint32_t)(l->opened++ / 10000 % 200));
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0) {
		perror("socket");
		exit(1);
	}
	(void)setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)bind(c->fd, (struct sockaddr *)&from, sizeof(from));
	(void)connect(c->fd, (struct sockaddr *)&l->to, sizeof(l->to));
	gnutls_init(&c->tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
	gnutls_set_default_priority(c->tls);
	gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, c->cred);
	gnutls_transport_set_int(c->tls, c->fd);
	gnutls_session_set_verify_cert(c->tls, "localhost", 0);
	c->state = CONNECTING;
	c->in_len = 0;
	want(c, EPOLLOUT);
}

static bool again(ssize_t rc)
{
	return rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED;
}

/* The answer in c->in if it is complete: returns its length with the head. 0: incomplete; -1:
 * invalid. */
static ssize_t parse(const struct ctl_conn *c, int *status, size_t *head)
{
	const char *end = memmem(c->in, c->in_len, "\r\n\r\n", 4), *p;
	unsigned long long body = 0;

	if (!end)
		return 0;
	*head = (size_t)(end - c->in) + 4;
	if (sscanf(c->in, "HTTP/1.1 %d", status) != 1)
		return -1;
	for (p = c->in; p < end; p = strstr(p, "\r\n") + 2)
		if (strncasecmp(p, "Content-Length:", 15) == 0)
			body = strtoull(p + 15, NULL, 10);
	if (*status == 304 || *status == 204)
		body = 0;
	return c->in_len >= *head + body ? (ssize_t)(*head + body) : 0;
}

static void on_read(struct ctl_conn *c)
{
	ssize_t n, len;
	char *body;
	size_t head;
	int status;

	for (;;) {
		if (c->in_size - c->in_len < READ_CHUNK + 1) {
			c->in_size = c->in_size ? c->in_size * 2 : 2 * READ_CHUNK;
			c->in = realloc(c->in, c->in_size);
			if (!c->in)
				abort();
		}
		n = gnutls_record_recv(c->tls, c->in + c->in_len, READ_CHUNK);
		if (again(n))
			return;
		if (n == GNUTLS_E_REHANDSHAKE)
			continue;
		if (n <= 0) {
			lost(c);
			return;
		}
		c->in_len += (size_t)n;
		c->in[c->in_len] = '\0';
		len = parse(c, &status, &head);
		if (len < 0) {
			lost(c);
			return;
		}
		if (len > 0)
			break;
	}
	/* One request, one answer: further bytes are ignored. The callback may send the next
	 * request. */
	body = c->in;
	c->in = NULL;
	c->in_len = c->in_size = 0;
	c->state = IDLE;
	answer(c, status, body + head, (size_t)len - head);
	free(body);
}

static void on_write(struct ctl_conn *c)
{
	ssize_t n;

	while (c->out_at < c->out_len) {
		n = gnutls_record_send(c->tls, c->out + c->out_at, c->out_len - c->out_at);
		if (again(n)) {
			want(c, EPOLLIN | EPOLLOUT);
			return;
		}
		if (n < 0) {
			lost(c);
			return;
		}
		c->out_at += (size_t)n;
	}
	c->state = READING;
	want(c, EPOLLIN);
}

static void on_handshake(struct ctl_conn *c)
{
	int rc = gnutls_handshake(c->tls);

	if (again(rc)) {
		want(c, gnutls_record_get_direction(c->tls) ? EPOLLOUT : EPOLLIN);
		return;
	}
	if (rc < 0 && gnutls_error_is_fatal(rc)) {
		lost(c);
		return;
	}
	if (rc < 0)
		return;
	c->loop->handshakes++;
	c->state = WRITING;
	on_write(c);
}

void ctl_request(
    struct ctl_conn *c, const char *method, const char *path, const char *body, ctl_answer_cb *cb)
{
	size_t size = REQUEST_MAX + (body ? strlen(body) : 0);

	c->cb = cb;
	c->out = malloc(size);
	if (!c->out)
		abort();
	c->out_len = (size_t)snprintf(c->out, size,
	    "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
	    "%zu\r\n\r\n%s",
	    method, path, body ? strlen(body) : 0, body ? body : "");
	c->out_at = 0;
	if (c->state == CLOSED) {
		conn_open(c);
	} else {
		c->state = WRITING;
		on_write(c);
	}
}

/* Bytes without a request: session tickets, or the server closes. The next request connects
 * again. */
static void on_idle(struct ctl_conn *c)
{
	char byte;
	ssize_t n = gnutls_record_recv(c->tls, &byte, 1);

	if (!again(n))
		conn_close(c);
}

static void on_event(struct ctl_conn *c)
{
	int err = 0;
	socklen_t len = sizeof(err);

	switch (c->state) {
	case CLOSED:
		break;
	case CONNECTING:
		(void)getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len);
		if (err) {
			lost(c);
			break;
		}
		c->state = HANDSHAKING;
		on_handshake(c);
		break;
	case HANDSHAKING:
		on_handshake(c);
		break;
	case IDLE:
		on_idle(c);
		break;
	case WRITING:
		on_write(c);
		break;
	case READING:
		on_read(c);
		break;
	}
}

void ctl_loop_run(struct ctl_loop *l, int timeout_ms)
{
	struct epoll_event e[256];
	int i, n = epoll_wait(l->epoll, e, 256, timeout_ms);

	for (i = 0; i < n; i++)
		on_event(e[i].data.ptr);
}
