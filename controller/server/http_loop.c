/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of the HTTP server. Each runs a daemon of the library for its share of the
 * connections. The loop is our own because the library polls a client during its handshake without
 * a pause; here it pauses. Requests that wait are in http_wait.c, requests in http.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "controller/server/http.h"
#include "controller/server/server.h"
#include "controller/server/trust.h"

#define IDLE_SECONDS 310u /* between requests; longer than the longest poll */
/* Bytes of each connection, all in use: a request without its body, and a reply's head. */
#define CONN_MEMORY (8u << 10)
#define PAGE_CONNS  64u
#define BACKLOG     4096

#define ROUND     (100 * RWY_MS) /* longest time between two searches for slow clients */
#define ASK       (20 * RWY_US)  /* pause for each client in its handshake */
#define PAUSE_MAX (5 * RWY_MS)
#define PAUSE_MIN RWY_MS /* when nothing arrives */
#define DRAIN     (500 * RWY_MS)

/* --- the loop --------------------------------------------------------------------------------- */

static void pause_for(rwy_dur d)
{
	if (d)
		nanosleep(&(struct timespec){(time_t)(d / RWY_SEC), (long)(d % RWY_SEC)}, NULL);
}

static void wait_events(struct ctlr_http_worker *w, rwy_dur most)
{
	struct pollfd fd[2] = {{.fd = w->epoll, .events = POLLIN}, {.fd = w->wake, .events = POLLIN}};
	const struct timespec ts = {(time_t)(most / RWY_SEC), (long)(most % RWY_SEC)};
	uint64_t n;

	if (ppoll(fd, 2, &ts, NULL) > 0 && fd[1].revents && read(w->wake, &n, sizeof(n)) < 0)
		gw_log(GW_LOG_DEBUG, "http", "no event woke this thread");
}

/* The pause before clients in their handshake are polled again, so that the loop does not spin. */
static rwy_dur ask_pause(const struct ctlr_http_worker *w)
{
	rwy_dur d = w->greeting.n * ASK;

	if (!w->greeting.n)
		return 0;
	if (!w->progress && d < PAUSE_MIN)
		d = PAUSE_MIN;
	return d < PAUSE_MAX ? d : PAUSE_MAX;
}

static void worker_turn(struct ctlr_http_worker *w)
{
	rwy_dur most = ctlr_http_resume_some(w, ctlr_now(), false);
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(w->mhd, &ms) == MHD_YES && ms < most / RWY_MS)
		most = ms * RWY_MS;
	if (!most)
		pause_for(ask_pause(w));
	wait_events(w, most < ROUND ? most : ROUND);
	w->progress = false;
	ctlr_http_resume_some(w, ctlr_now(), false);
	MHD_run(w->mhd);
	ctlr_http_conns_slow(w, w->c->conf->request, ctlr_now());
}

static void *worker_main(void *arg)
{
	struct ctlr_http_worker *w = arg;
	rwy_time end;

	while (!atomic_load_explicit(&w->stop, memory_order_acquire))
		worker_turn(w);
	/* The library must not have suspended connections when it stops. Requests that wait get
	 * their reply. */
	end = ctlr_now() + DRAIN;
	do {
		ctlr_http_resume_some(w, ctlr_now(), true);
		w->progress = false;
		MHD_run(w->mhd);
	} while ((w->suspended || w->progress) && ctlr_now() < end);
	return NULL;
}

/* --- start, stop ------------------------------------------------------------------------------ */

static void on_log(void *cls, const char *fmt, va_list ap)
{
	char text[256];

	vsnprintf(text, sizeof(text), fmt, ap);
	gw_log(GW_LOG_DEBUG, "http", "%s", text);
}

/* A listening socket; -1 with errno. */
static int listen_on(const char *address)
{
	struct sockaddr_storage a;
	const int one = 1;
	unsigned len;
	int fd, e;

	if (!ctlr_address(address, &a, &len)) {
		errno = EINVAL;
		return -1;
	}
	fd = socket(a.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* Its connections inherit this: a handshake consists of several writes, which would wait
	 * for ACKs. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (a.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (!bind(fd, (struct sockaddr *)&a, len) && !listen(fd, BACKLOG))
		return fd;
	e = errno;
	close(fd);
	errno = e;
	return -1;
}

static struct MHD_Daemon *daemon_new(struct ctlr_http_worker *w, int fd, unsigned connections)
{
	const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
	const struct MHD_OptionItem tls[] = {
	    {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)ctlr_trust_key(w->c->trust)},
	    {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)ctlr_trust_cert(w->c->trust)},
	    {MHD_OPTION_HTTPS_MEM_TRUST, 0, (void *)(uintptr_t)ctlr_trust_ca(w->c->trust)},
	    {MHD_OPTION_HTTPS_PRIORITIES, 0,
	        (void *)(uintptr_t) "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
	    {MHD_OPTION_END, 0, NULL}};
	const struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

	return MHD_start_daemon(flags | (w->plain ? 0 : MHD_USE_TLS), 0, NULL, NULL, ctlr_http_request, w,
	    MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
	    MHD_OPTION_NOTIFY_COMPLETED, ctlr_http_completed, w, MHD_OPTION_NOTIFY_CONNECTION,
	    ctlr_http_connection, w, MHD_OPTION_URI_LOG_CALLBACK, ctlr_http_uri, w,
	    MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)CONN_MEMORY, MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_ARRAY,
	    w->plain ? none : tls, MHD_OPTION_END);
}

/* Starts a worker. On failure it frees all that it made. */
static int worker_new(
    struct ctlr_http *h, struct ctlr_http_worker *w, int listening, bool plain, unsigned connections)
{
	const int fd = fcntl(listening, F_DUPFD_CLOEXEC, 0);

	w->server = h;
	w->c = h->c;
	w->plain = plain;
	w->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	pthread_mutex_init(&w->lock, NULL);
	if (fd >= 0 && w->wake >= 0)
		w->mhd = daemon_new(w, fd, connections);
	if (w->mhd) { /* it owns fd */
		w->epoll = MHD_get_daemon_info(w->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
		if (!pthread_create(&w->thread, NULL, worker_main, w))
			return 0;
		MHD_stop_daemon(w->mhd);
	} else if (fd >= 0) {
		close(fd);
	}
	if (w->wake >= 0)
		close(w->wake);
	pthread_mutex_destroy(&w->lock);
	return RWY_EINVAL;
}

static int add_listener(
    struct ctlr_http *h, const char *address, bool plain, unsigned threads, unsigned connections)
{
	const int fd = listen_on(address);
	int rc = fd < 0 ? RWY_EINVAL : 0;

	if (fd < 0)
		gw_log(GW_LOG_ERROR, "http", "cannot listen on %s: %s", address, strerror(errno));
	for (unsigned i = 0; !rc && i < threads; i++) {
		rc = worker_new(h, &h->w[h->n], fd, plain, connections / threads + 1);
		if (rc)
			gw_log(GW_LOG_ERROR, "http", "%s: certificate and key do not fit, or no memory",
			    address);
		else
			h->n++;
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

int ctlr_http_start(struct ctlr *c)
{
	struct ctlr_http *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return RWY_ENOMEM;
	h->c = c;
	c->http = h;
	rc = ctlr_http_tickets_new(h);
	if (!rc)
		rc = add_listener(h, c->conf->address, false, c->conf->threads, c->conf->connections);
	if (!rc && *c->conf->page)
		rc = add_listener(h, c->conf->page, true, 1, PAGE_CONNS);
	if (!rc)
		gw_log(GW_LOG_NOTICE, "http", "listening on %s%s%s", c->conf->address,
		    *c->conf->page ? ", the page on " : "", c->conf->page);
	return rc;
}

void ctlr_http_stop(struct ctlr *c)
{
	struct ctlr_http *h = c->http;

	if (!h)
		return;
	ctlr_http_refuse(c);
	for (unsigned i = 0; i < h->n; i++) {
		atomic_store_explicit(&h->w[i].stop, true, memory_order_release);
		ctlr_http_wake(&h->w[i]);
	}
	for (unsigned i = 0; i < h->n; i++) {
		pthread_join(h->w[i].thread, NULL);
		MHD_stop_daemon(h->w[i].mhd);
		close(h->w[i].wake);
		pthread_mutex_destroy(&h->w[i].lock);
	}
	ctlr_http_tickets_free(h);
	free(h);
	c->http = NULL;
}
