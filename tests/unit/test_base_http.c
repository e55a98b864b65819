/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client with a server of one thread that sends each case's bytes: answers, limits,
 * failures, lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/http.h"

#define LONG_MS 60000 /* never reached */

/* Answers the requests of one connection with `say`, in order; then it ends, or sends nothing
 * more. "!": there is no server any more when the request was heard. */
static struct server {
	int fd;
	char url[64];
	const char *say[8];
	bool stay;
	char heard[4096]; /* all received bytes */
	pthread_t thread;
} server;

static size_t body_length(const char *head)
{
	const char *at = strstr(head, "Content-Length: ");

	return at ? strtoul(at + 16, NULL, 10) : 0;
}

/* Reads one request; false: the client has closed. */
static bool hear(int fd)
{
	char *from = server.heard + strlen(server.heard), *end;
	size_t n = 0;
	ssize_t got;

	while (!(end = strstr(from, "\r\n\r\n")) || n < (size_t)(end + 4 - from) + body_length(from)) {
		got = read(fd, from + n, sizeof(server.heard) - 1 - (size_t)(from + n - server.heard));
		if (got <= 0)
			return false;
		n += (size_t)got;
		from[n] = 0;
	}
	return true;
}

static void *serve(void *arg)
{
	const int fd = accept(server.fd, NULL, NULL);
	char rest[256];

	for (unsigned i = 0; server.say[i] && hear(fd); i++) {
		if (*server.say[i] == '!') {
			close(server.fd);
			server.fd = -1;
			break;
		}
		for (const char *s = server.say[i]; *s; s += strcspn(s, "|") + (s[strcspn(s, "|")] == '|'))
			assert_true(write(fd, s, strcspn(s, "|")) >= 0); /* |: the next write */
	}
	while (server.stay && read(fd, rest, sizeof(rest)) > 0)
		;
	close(fd);
	return NULL;
}

static void start(struct sockaddr *a, socklen_t len, bool stay, const char *const *say)
{
	memset(&server, 0, sizeof(server));
	for (unsigned i = 0; say[i]; i++)
		server.say[i] = say[i];
	server.stay = stay;
	server.fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server.fd, a, len), 0);
	assert_int_equal(listen(server.fd, 4), 0);
	assert_int_equal(getsockname(server.fd, a, &len), 0);
	assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static void start_tcp(bool stay, const char *const *say)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	start((struct sockaddr *)&a, sizeof(a), stay, say);
	snprintf(server.url, sizeof(server.url), "http://127.0.0.1:%u/x", ntohs(a.sin_port));
}

static void stop(struct rwy_http *h)
{
	rwy_http_free(h); /* closes its connection */
	pthread_join(server.thread, NULL);
	if (server.fd >= 0)
		close(server.fd);
}

static struct rwy_http *client(size_t max)
{
	static const char *const headers[] = {"X-One: 1", NULL};
	const struct rwy_http_cfg cfg = {.protocols = "http,https", .headers = headers, .answer_max = max};
	struct rwy_http *h;

	assert_int_equal(rwy_http_new(&h, &cfg), 0);
	return h;
}

#define OK(len, body) "HTTP/1.1 200 OK\r\nContent-Length: " #len "\r\n\r\n" body
#define SAY(...)      ((const char *const[]){__VA_ARGS__, NULL})

/* --- requests --------------------------------------------------------------------------------- */

/* The server executed the request and died before it answered: nobody may say that it was not sent. */
static void once_is_not_unsent(void **state)
{
	struct rwy_http *h = client(100);
	struct rwy_http_answer a;
	enum rwy_http_fail fail;

	start_tcp(false, SAY(OK(5, "first"), "!"));
	assert_int_equal(rwy_http_ask_once(h, server.url, "one", LONG_MS, &a), RWY_HTTP_OK);
	assert_string_equal(a.body, "first");
	fail = rwy_http_ask_once(h, server.url, "two", LONG_MS, &a);
	assert_int_equal(fail, RWY_HTTP_BROKEN);
	assert_false(rwy_http_unsent(fail));
	assert_non_null(strstr(server.heard, "two"));
	stop(h);
	/* nobody listens: it was not sent */
	h = client(100);
	fail = rwy_http_ask_once(h, server.url, "three", LONG_MS, &a);
	assert_true(rwy_http_unsent(fail));
	rwy_http_free(h);
}

static void requests_share_a_connection(void **state)
{
	struct rwy_http *h = client(100);
	struct rwy_http_answer a;
	char *body;

	start_tcp(false, SAY(OK(5, "first"), "HTTP/1.1 201 \r\nContent-Length: 0\r\n\r\n", OK(3, "|or|y")));
	assert_int_equal(rwy_http_ask(h, "GET", server.url, NULL, LONG_MS, &a), RWY_HTTP_OK);
	assert_int_equal(a.status, 200);
	assert_int_equal(a.len, 5);
	assert_string_equal(a.body, "first");
	body = rwy_http_take_body(h);
	assert_int_equal(rwy_http_ask(h, "PUT", server.url, "{}", LONG_MS, &a), RWY_HTTP_OK);
	assert_int_equal(a.status, 201);
	assert_string_equal(a.body, "");
	assert_null(rwy_http_take_body(h));
	assert_int_equal(rwy_http_set_headers(h, SAY("X-Two: 2")), 0);
	assert_int_equal(rwy_http_ask(h, "DELETE", server.url, NULL, LONG_MS, &a), RWY_HTTP_OK);
	assert_string_equal(a.body, "ory");
	stop(h);
	assert_string_equal(body, "first");
	free(body);
	assert_ptr_equal(strstr(server.heard, "GET /x HTTP/1.1\r\n"), server.heard);
	assert_non_null(strstr(server.heard, "\r\n\r\nPUT /x HTTP/1.1\r\n"));
	assert_non_null(strstr(server.heard, "\r\n\r\n{}DELETE /x HTTP/1.1\r\n"));
	assert_null(strstr(server.heard, "Expect"));
	assert_non_null(strstr(server.heard, "X-One: 1"));
	assert_null(strstr(strstr(server.heard, "DELETE"), "X-One"));
	assert_non_null(strstr(strstr(server.heard, "DELETE"), "X-Two: 2"));
}

static void a_socket_of_this_machine(void **state)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct rwy_http_cfg cfg = {.unix_socket = un.sun_path, .protocols = "http", .answer_max = 100};
	struct rwy_http_answer a;
	struct rwy_http *h;

	snprintf(un.sun_path, sizeof(un.sun_path), "/tmp/rwy-http-%d", (int)getpid());
	unlink(un.sun_path);
	assert_int_equal(rwy_http_new(&h, &cfg), 0);
	assert_int_equal(rwy_http_ask(h, "GET", "http://any/", NULL, LONG_MS, &a), RWY_HTTP_UNREACHABLE);
	start((struct sockaddr *)&un, sizeof(un), false, SAY(OK(2, "ok")));
	assert_int_equal(rwy_http_ask(h, "GET", "http://any/", NULL, LONG_MS, &a), RWY_HTTP_OK);
	assert_string_equal(a.body, "ok");
	stop(h);
	unlink(un.sun_path);
}

static void an_answer_is_bounded(void **state)
{
	for (unsigned max = 4; max < 6; max++) {
		struct rwy_http *h = client(max);
		struct rwy_http_answer a;

		start_tcp(true, SAY(OK(5, "12|345")));
		assert_int_equal(rwy_http_ask(h, "GET", server.url, NULL, LONG_MS, &a),
		    max < 5 ? RWY_HTTP_TOO_LARGE : RWY_HTTP_OK);
		stop(h);
	}
}

static void failures_have_names(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	struct rwy_http_answer answer;
	struct rwy_http *h = client(100);
	const int silent =
	    socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* has a port, and does not listen */
	char url[64];

	assert_int_equal(bind(silent, (struct sockaddr *)&a, len), 0);
	assert_int_equal(getsockname(silent, (struct sockaddr *)&a, &len), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(a.sin_port));
	assert_int_equal(rwy_http_ask(h, "GET", url, NULL, LONG_MS, &answer), RWY_HTTP_UNREACHABLE);
	assert_true(rwy_http_unsent(RWY_HTTP_UNREACHABLE));
	assert_int_equal(answer.os_error, ECONNREFUSED);
	assert_true(*answer.why);
	assert_string_equal(answer.body, "");
	close(silent);
	start_tcp(true, SAY("HTTP/1.1 200 OK\r\n"));
	assert_int_equal(rwy_http_ask(h, "GET", server.url, NULL, 50, &answer), RWY_HTTP_LATE);
	assert_false(rwy_http_unsent(RWY_HTTP_LATE));
	stop(h);
	h = client(100);
	start_tcp(false, SAY("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nless"));
	assert_int_equal(rwy_http_ask(h, "GET", server.url, NULL, LONG_MS, &answer), RWY_HTTP_BROKEN);
	stop(h);
	h = client(100);
	start_tcp(false, SAY(NULL)); /* it closes at once */
	snprintf(url, sizeof(url), "https%.40s", server.url + 4);
	assert_int_equal(rwy_http_ask(h, "GET", url, NULL, LONG_MS, &answer), RWY_HTTP_BAD_TLS);
	assert_true(rwy_http_unsent(RWY_HTTP_BAD_TLS));
	stop(h);
}

/* The server says one header without end. */
static void headers_are_bounded(void **state)
{
	static char say[70000 + 64];
	struct rwy_http *h = client(100);
	struct rwy_http_answer a;
	size_t len = (size_t)snprintf(say, sizeof(say), "HTTP/1.1 200 OK\r\n");

	while (len < 70000)
		len += (size_t)snprintf(
		    say + len, sizeof(say) - len, "X-More: 0123456789012345678901234567890123456789\r\n");
	start_tcp(true, SAY(say));
	assert_int_equal(rwy_http_ask(h, "GET", server.url, NULL, LONG_MS, &a), RWY_HTTP_TOO_LARGE);
	stop(h);
}

static void names_are_escaped(void **state)
{
	char *s = rwy_http_escape("a/b c?");

	assert_string_equal(s, "a%2Fb%20c%3F");
	free(s);
}

/* --- requests that do not block --------------------------------------------------------------- */

static struct rwy_http *wait_done(
    struct rwy_http_loop *l, enum rwy_http_fail *fail, struct rwy_http_answer *out)
{
	struct rwy_http *h;

	while (!(h = rwy_http_done(l, fail, out)))
		rwy_http_loop_wait(l, LONG_MS);
	return h;
}

/* One client asks a server that accepts no connection; the other's answers come meanwhile. */
static void a_request_waits_for_no_other(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rwy_http *slow = client(100), *h = client(100);
	const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char body[] = "{1}", url[64];
	socklen_t len = sizeof(in);
	struct rwy_http_loop *l;
	struct rwy_http_answer a;
	enum rwy_http_fail fail;

	assert_int_equal(bind(silent, (struct sockaddr *)&in, len), 0);
	assert_int_equal(listen(silent, 4), 0);
	assert_int_equal(getsockname(silent, (struct sockaddr *)&in, &len), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(in.sin_port));
	assert_int_equal(rwy_http_loop_new(&l), 0);
	assert_null(rwy_http_done(l, &fail, &a));
	assert_int_equal(rwy_http_begin(l, slow, "GET", url, NULL, LONG_MS), 0);
	start_tcp(false, SAY(OK(5, "first"), OK(0, "")));
	assert_int_equal(rwy_http_begin(l, h, "PUT", server.url, body, LONG_MS), 0);
	body[1] = '2'; /* it was copied */
	assert_ptr_equal(wait_done(l, &fail, &a), h);
	assert_int_equal(fail, RWY_HTTP_OK);
	assert_int_equal(a.status, 200);
	assert_string_equal(a.body, "first");
	assert_int_equal(rwy_http_begin(l, h, "GET", server.url, NULL, LONG_MS), 0);
	assert_ptr_equal(wait_done(l, &fail, &a), h);
	assert_string_equal(a.body, "");
	stop(h);
	assert_non_null(strstr(server.heard, "\r\n\r\n{1}GET /x"));
	rwy_http_end(slow);
	rwy_http_end(slow); /* none is under way: fine */
	assert_null(rwy_http_done(l, &fail, &a));
	rwy_http_free(slow);
	rwy_http_loop_free(l);
	close(silent);
}

static void a_request_fails_in_time(void **state)
{
	struct rwy_http *h = client(100);
	struct rwy_http_loop *l;
	struct rwy_http_answer a;
	enum rwy_http_fail fail;

	assert_int_equal(rwy_http_loop_new(&l), 0);
	start_tcp(true, SAY("HTTP/1.1 200 OK\r\n"));
	assert_int_equal(rwy_http_begin(l, h, "GET", server.url, NULL, 50), 0);
	assert_ptr_equal(wait_done(l, &fail, &a), h);
	assert_int_equal(fail, RWY_HTTP_LATE);
	assert_true(*a.why);
	assert_string_equal(a.body, "");
	/* It is freed with a request under way. */
	assert_int_equal(rwy_http_begin(l, h, "GET", server.url, NULL, LONG_MS), 0);
	stop(h);
	rwy_http_loop_free(l);
}

static void *wake(void *loop)
{
	rwy_http_loop_wake(loop);
	return NULL;
}

/* Without the wake-up the test would not end in an hour. */
static void another_thread_wakes(void **state)
{
	struct rwy_http_loop *l;
	pthread_t thread;

	assert_int_equal(rwy_http_loop_new(&l), 0);
	assert_int_equal(pthread_create(&thread, NULL, wake, l), 0);
	rwy_http_loop_wait(l, 3600 * 1000);
	pthread_join(thread, NULL);
	rwy_http_loop_free(l);
}

/* --- lines ------------------------------------------------------------------------------------ */

struct lines {
	char text[128];
	unsigned end_after, n; /* lines; 0: all */
};

static int on_line(void *ctx, const char *text, size_t len)
{
	struct lines *l = ctx;

	snprintf(l->text + strlen(l->text), sizeof(l->text) - strlen(l->text), "<%.*s>", (int)len, text);
	return ++l->n == l->end_after ? 42 : 0;
}

static int on_tick(void *ctx)
{
	return 0;
}

static enum rwy_http_fail read_lines(struct lines *l, size_t max, bool stay, const char *say, int *rc)
{
	static const struct rwy_http_lines_ops ops = {.line = on_line, .tick = on_tick};
	struct rwy_http *h = client(max);
	enum rwy_http_fail fail;

	start_tcp(stay, SAY(say));
	fail = rwy_http_lines(h, server.url, "{}", stay && !l->end_after ? 150 : LONG_MS, &ops, l, rc);
	stop(h);
	return fail;
}

#define STREAM "HTTP/1.1 200 OK\r\n\r\n"

static void lines_come_whole(void **state)
{
	struct lines l = {.n = 0};
	int rc;

	assert_int_equal(read_lines(&l, 100, false, STREAM "o|ne\ntw|o\n|\nth|ree\npart", &rc), RWY_HTTP_OK);
	assert_string_equal(l.text, "<one><two><><three>");
	assert_int_equal(rc, 0);
	assert_ptr_equal(strstr(server.heard, "POST /x"), server.heard);
}

static void lines_end(void **state)
{
	struct lines l = {.end_after = 2};
	int rc;

	assert_int_equal(read_lines(&l, 100, true, STREAM "1\n2\n3\n", &rc), RWY_HTTP_ENDED);
	assert_int_equal(rc, 42);
	assert_string_equal(l.text, "<1><2>");
	l = (struct lines){.n = 0};
	assert_int_equal(read_lines(&l, 100, true, STREAM "1\n", &rc), RWY_HTTP_LATE);
	assert_string_equal(l.text, "<1>");
	l = (struct lines){.n = 0};
	assert_int_equal(read_lines(&l, 4, true, STREAM "12345", &rc), RWY_HTTP_TOO_LARGE);
	assert_string_equal(l.text, "");
}

static int on_stream(void *ctx, const void *data, size_t len)
{
	return 0;
}

static void silence_has_a_reason(void **state)
{
	static const struct rwy_http_stream_ops ops = {.data = on_stream, .tick = on_tick};
	struct rwy_http *h = client(100);
	struct rwy_http_answer a;
	int rc;

	start_tcp(true, SAY(""));
	assert_int_equal(rwy_http_stream(h, server.url, 1000, &ops, NULL, &rc, &a), RWY_HTTP_LATE);
	assert_string_equal(a.why, "no answer in 1 seconds");
	stop(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(once_is_not_unsent),
	    cmocka_unit_test(requests_share_a_connection),
	    cmocka_unit_test(a_socket_of_this_machine),
	    cmocka_unit_test(an_answer_is_bounded),
	    cmocka_unit_test(failures_have_names),
	    cmocka_unit_test(headers_are_bounded),
	    cmocka_unit_test(names_are_escaped),
	    cmocka_unit_test(a_request_waits_for_no_other),
	    cmocka_unit_test(a_request_fails_in_time),
	    cmocka_unit_test(another_thread_wakes),
	    cmocka_unit_test(lines_come_whole),
	    cmocka_unit_test(lines_end),
	    cmocka_unit_test(silence_has_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
