/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host asks relays on the loopback: the cookie, what gets lost, relays that are not there, and
 * which of several is asked. Each relay is a thread with a desk.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "proxy/desk.h"
#include "shim/addr.h"
#include "shim/talk.h"

#define RELAYS 3

struct server {
	struct proxy_edge edge;
	struct proxy_policy policy;
	struct proxy_acl acl;
	struct rwy_ip addr;
	int fd, stop[2];
	uint16_t port;
	unsigned lose; /* requests, before it answers */
	unsigned heard;
	pthread_t thread;
};

static struct server server[RELAYS];
static struct shim_policy policy;
static const struct shim_rule *rule;

static struct rwy_ip ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return rwy_ip_from4((const uint8_t[]){a, b, c, d});
}

static void answer(struct server *s)
{
	struct sockaddr_storage from = {0};
	socklen_t n = sizeof(from);
	uint8_t bytes[256];
	ssize_t len = recvfrom(s->fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &n);
	struct proxy_ask a, other;
	struct rwy_ip host;

	if (len < 0 || proxy_ask_read(bytes, (size_t)len, &a) != 0 ||
	    !shim_addr_get((struct sockaddr *)&from, &host, NULL))
		abort();
	s->heard++;
	if (s->lose && s->lose--)
		return;
	a = proxy_desk_answer(&s->edge, &host, &s->addr, &a, 1000 * RWY_SEC);
	other = a; /* to an older request: it is not taken for this one's */
	other.id++;
	other.answer = PROXY_ANSWER_REFUSED;
	proxy_ask_write(bytes, &other);
	sendto(s->fd, bytes, PROXY_ASK_LEN, 0, (struct sockaddr *)&from, n);
	proxy_ask_write(bytes, &a);
	sendto(s->fd, bytes, PROXY_ASK_LEN, 0, (struct sockaddr *)&from, n);
}

static void *serve(void *arg)
{
	struct server *s = arg;
	struct pollfd p[2] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->stop[0], .events = POLLIN}};

	for (;;) {
		if (poll(p, 2, -1) < 0)
			abort();
		if (p[1].revents)
			return NULL;
		answer(s);
	}
}

static void server_begin(struct server *s, unsigned i)
{
	struct sockaddr_storage at;
	socklen_t n = sizeof(at);
	struct proxy_map_cfg cfg;

	memset(s, 0, sizeof(*s));
	s->addr = ip4(127, 0, 0, (uint8_t)(10 + i));
	s->acl = (struct proxy_acl){{ip4(127, 0, 0, 0), 104}, {ip4(10, 2, 0, 0), 120}, 7000, 7000};
	s->policy = (struct proxy_policy){
	    .addr = {s->addr}, .addrs = 1, .acl = &s->acl, .acls = 1, .redirect_port = (uint16_t)(4790 + i)};
	proxy_map_cfg_default(&cfg);
	assert_int_equal(proxy_edge_init(&s->edge, &s->policy, &cfg), 0);
	s->fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&at, shim_addr_put(&at, &s->addr, 0)), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &n), 0);
	assert_true(shim_addr_get((struct sockaddr *)&at, &s->addr, &s->port));
	assert_int_equal(pipe(s->stop), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_end(struct server *s)
{
	if (!s->thread)
		return;
	assert_int_equal(write(s->stop[1], "", 1), 1);
	pthread_join(s->thread, NULL);
	close(s->fd);
	close(s->stop[0]);
	close(s->stop[1]);
	proxy_edge_fini(&s->edge);
	s->thread = 0;
}

/* The first two share, the third is behind `else`. */
static int set_up(void **state)
{
	static const char format[] = "redirect 10.2.0.0/24 via 127.0.0.10,port=%u 127.0.0.11,port=%u "
	                             "else 127.0.0.12,port=%u";
	const struct rwy_ip target = ip4(10, 2, 0, 7);
	char text[200], err[200];

	for (unsigned i = 0; i < RELAYS; i++)
		server_begin(&server[i], i);
	snprintf(text, sizeof(text), format, server[0].port, server[1].port, server[2].port);
	assert_int_equal(shim_policy_parse(&policy, text, err, sizeof(err)), 0);
	rule = shim_policy_find(&policy, &target);
	return 0;
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < RELAYS; i++)
		server_end(&server[i]);
	return 0;
}

static struct proxy_ask ask_of(enum proxy_ask_kind kind)
{
	return (struct proxy_ask){
	    .kind = (uint8_t)kind, .target = {ip4(10, 2, 0, 7), 7000}, .source_port = 1234};
}

/* The cookie is learned; what is lost is asked again; answers to other requests do not count. */
static void one_relay(void **state)
{
	const struct rwy_ip from = ip4(127, 0, 0, 5);
	struct proxy_ask a = ask_of(PROXY_ASK_ONCE);

	server[0].lose = 1;
	assert_int_equal(shim_talk(&policy.relay[0], &from, &a), 0);
	assert_int_equal(a.redirect_port, 4790);
	assert_true(a.cookie != 0);
	assert_int_equal(server[0].heard, 3);
	assert_non_null(proxy_once_find(
	    &server[0].edge.once, &from, &server[0].addr, 1234, 1000 * RWY_SEC)); /* of that address */
	a = ask_of(PROXY_ASK_MAY);
	a.target.port = 22;
	assert_int_equal(shim_talk(&policy.relay[0], NULL, &a), -EACCES);
	assert_int_equal(a.answer, PROXY_ANSWER_REFUSED);
	a.target.addr = server[0].addr;
	assert_int_equal(shim_talk(&policy.relay[0], NULL, &a), -ELOOP);
	server[0].policy.redirect_port = 0;
	a = ask_of(PROXY_ASK_MAY);
	assert_int_equal(shim_talk(&policy.relay[0], NULL, &a), -EOPNOTSUPP);
	a = ask_of(PROXY_ASK_COUNT);
	assert_int_equal(shim_talk(&policy.relay[0], NULL, &a), -EPROTO);
	server_end(&server[0]);
	assert_int_equal(shim_talk(&policy.relay[0], NULL, &a), -EHOSTUNREACH);
}

static unsigned by_whom(void)
{
	struct proxy_ask a = ask_of(PROXY_ASK_MAY);
	struct shim_relay *by;

	assert_int_equal(shim_talk_any(&policy, rule, NULL, &a, &by), 0);
	assert_int_equal(a.redirect_port, 4790 + (by - policy.relay));
	return (unsigned)(by - policy.relay);
}

static void several(void **state)
{
	struct proxy_ask a = ask_of(PROXY_ASK_MAY);
	unsigned n[RELAYS] = {0};
	struct shim_relay *by;

	for (unsigned i = 0; i < 200; i++)
		n[by_whom()]++;
	assert_true(n[0] > 50 && n[1] > 50 && !n[2]);
	/* Refused is refused: the others are not asked. */
	a.target.port = 22;
	assert_int_equal(shim_talk_any(&policy, rule, NULL, &a, &by), -EACCES);
	assert_int_equal(server[2].heard, 0);
	/* One is gone: after it was noticed once it is left out. */
	server_end(&server[0]);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(by_whom(), 1);
	server_end(&server[1]);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(by_whom(), 2);
	assert_true(server[2].heard >= 3); /* a relay that is slow here is asked again */
	server_end(&server[2]);
	a = ask_of(PROXY_ASK_MAY);
	assert_int_equal(shim_talk_any(&policy, rule, NULL, &a, &by), -EHOSTUNREACH);
}

/* What the file says is down is asked when no other is left, however often. */
static void down(void **state)
{
	policy.relay[0].down = true;
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(by_whom(), 1);
	server_end(&server[1]);
	assert_int_equal(by_whom(), 2);
	policy.relay[2].down = true;
	assert_int_equal(by_whom(), 0);
	server_end(&server[0]);
	assert_int_equal(by_whom(), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(one_relay, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(several, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(down, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
