/* SPDX-License-Identifier: Apache-2.0
 * The provider `linux` against this machine's kernel, in a network namespace of its own: classes and filters
 * are there, follow the tunnels, and hold traffic to what is reserved. Skipped where a namespace, or htb, is
 * not to be had.
 */
#include <arpa/inet.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "controller/provider/provider.h"

#define MBIT UINT64_C(1000000)

static struct provider_err err;
static char file[] = "/tmp/test_provider_linux.XXXXXX";
static bool able;

static bool run(const char *cmd)
{
	return system(cmd) == 0; /* NOLINT: fixed words */
}

/* The complete output of a command. */
static const char *say(const char *cmd)
{
	static char text[8192];
	FILE *f = popen(cmd, "r"); /* NOLINT: fixed words */
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	text[n] = '\0';
	if (f)
		(void)pclose(f);
	return text;
}

static int set_up(void **state)
{
	static const char paths[] =
	    "{\"paths\": ["
	    "{\"first\": \"a\", \"second\": \"b\", \"edge\": \"wan0\", \"name\": \"v4\", \"bandwidth_bps\": "
	    "100000000000,"
	    " \"delay_us\": 1, \"interface\": \"wan0\", \"remote\": \"192.0.2.2\"},"
	    "{\"first\": \"a\", \"second\": \"c\", \"edge\": \"wan0\", \"name\": \"v6\", \"bandwidth_bps\": "
	    "1000000000,"
	    " \"delay_us\": 1, \"interface\": \"wan0\", \"remote\": \"2001:db8::/33\"},"
	    "{\"first\": \"a\", \"second\": \"d\", \"edge\": \"wan0\", \"name\": \"best\", "
	    "\"bandwidth_bps\": "
	    "1000000000,"
	    " \"delay_us\": 1, \"interface\": \"wan0\", \"remote\": \"192.0.2.0/24\"},"
	    "{\"first\": \"a\", \"second\": \"d\", \"edge\": \"wan0\", \"name\": \"ef\", \"bandwidth_bps\": "
	    "1000000000,"
	    " \"delay_us\": 1, \"interface\": \"wan0\", \"remote\": \"192.0.2.0/24\", \"steer\": {\"dscp\": "
	    "46}},"
	    "{\"first\": \"a\", \"second\": \"d\", \"edge\": \"wan0\", \"name\": \"ef6\", \"bandwidth_bps\": "
	    "1000000000,"
	    " \"delay_us\": 1, \"interface\": \"wan0\", \"remote\": \"2001:db8:8000::/33\", \"steer\": "
	    "{\"dscp\": 46}},"
	    "{\"first\": \"a\", \"second\": \"b\", \"edge\": \"wan1\", \"name\": \"v4\", \"bandwidth_bps\": "
	    "1000000000,"
	    " \"delay_us\": 1, \"interface\": \"wan1\", \"remote\": \"198.51.100.0/24\"}]}";
	int fd = mkstemp(file);

	if (fd < 0 || write(fd, paths, strlen(paths)) != (ssize_t)strlen(paths) || close(fd))
		return -1;
	able = unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 && run("mount --make-rprivate /") &&
	       run("ip link add wan0 type veth peer name far0 2>/dev/null") &&
	       run("ip link add wan1 type veth peer name far1 2>/dev/null") && run("ip link set wan0 up") &&
	       run("ip link set far0 up") && run("ip link set wan1 up") && run("ip link set far1 up") &&
	       run("tc qdisc add dev wan0 root handle 1: htb 2>/dev/null");
	if (!able)
		print_message("no network namespace, or no htb: nothing is tested\n");
	return 0;
}

static int tear_down(void **state)
{
	return unlink(file);
}

static struct provider *open_one(void)
{
	const struct provider_option o = {"file", file};
	struct provider *p;

	if (provider_find("linux")->open(&p, &o, 1, &err))
		fail_msg("%s", err.text);
	return p;
}

static int make(struct provider *p, const char *name, const char *b, unsigned route, uint64_t bps)
{
	static struct plan_route r[PLAN_ROUTES_MAX];
	struct plan_placement pl = {.n = 1, .leg = {{(uint16_t)route, bps}}};

	assert_true(p->ops->routes(p, "a", b, r, PLAN_ROUTES_MAX, &err) > (int)route);
	return p->ops->make(p, name, "a", b, r, &pl, &err);
}

static bool has(const char *cmd, const char *what)
{
	return strstr(say(cmd), what) != NULL;
}

#define CLASSES "tc class show dev wan0"
#define FILTERS "tc filter show dev wan0"

static void test_follows_tunnels(void **state)
{
	struct provider *p;

	if (!able)
		skip();
	p = open_one(); /* in place of the htb of set_up */
	assert_true(has("tc qdisc show dev wan0", "qdisc htb 5257: root"));
	assert_string_equal(say(CLASSES), "");
	assert_int_equal(make(p, "t1", "b", 0, 50 * MBIT), 0);
	assert_true(has(CLASSES, "class htb 5257:1 root prio 0 rate 50Mbit ceil 50Mbit"));
	assert_true(has(FILTERS, "match c0000202/ffffffff at 16"));
	/* A second one on the path: the rates add up. Also above 34 Gbit/s. */
	assert_int_equal(make(p, "t2", "b", 0, 60000 * MBIT), 0);
	assert_true(has(CLASSES, "rate 60050Mbit ceil 60050Mbit"));
	assert_int_equal(make(p, "t2", "b", 0, 25 * MBIT), 0);
	assert_true(has(CLASSES, "rate 75Mbit ceil 75Mbit"));
	assert_int_equal(make(p, "t3", "c", 0, MBIT), 0);
	assert_true(has(CLASSES, "class htb 5257:2 root prio 0 rate 1Mbit ceil 1Mbit"));
	assert_true(has(FILTERS, "match 20010db8/ffffffff at 24"));
	assert_true(has(FILTERS, "match 00000000/80000000 at 28"));
	assert_int_equal(p->ops->drop(p, "t1", &err), 0);
	assert_true(has(CLASSES, "rate 25Mbit ceil 25Mbit"));
	assert_int_equal(p->ops->drop(p, "t2", &err), 0);
	assert_int_equal(p->ops->drop(p, "t3", &err), 0);
	assert_string_equal(say(CLASSES), "");
	assert_false(has(FILTERS, "match"));
	/* Tunnels stay when the provider ends, and another provider removes them. */
	assert_int_equal(make(p, "t1", "b", 1, 5 * MBIT), 0);
	p->ops->close(p);
	assert_true(has("tc class show dev wan1", "rate 5Mbit"));
	p = open_one();
	assert_string_equal(say("tc class show dev wan1"), "");
	p->ops->close(p);
}

/* Paths of a DSCP come before those of any, whatever their order in the file. */
static void test_dscp(void **state)
{
	struct provider *p;
	const char *text, *ef, *best;

	if (!able)
		skip();
	p = open_one();
	assert_int_equal(make(p, "t1", "d", 0, MBIT), 0);
	assert_int_equal(make(p, "t2", "d", 1, 2 * MBIT), 0);
	assert_int_equal(make(p, "t3", "d", 2, 3 * MBIT), 0);
	text = say(FILTERS);
	ef = strstr(text, "match 00b80000/00fc0000 at 0");
	best = strstr(text, "flowid 5257:3");
	assert_true(ef && best && ef < best);
	assert_true(has(FILTERS, "match 0b800000/0fc00000 at 0"));
	assert_true(has(CLASSES, "class htb 5257:4 root prio 0 rate 2Mbit ceil 2Mbit"));
	p->ops->close(p);
	p = open_one();
	p->ops->close(p);
}

/* A refusal of the kernel leaves everything unchanged. */
static void test_refused(void **state)
{
	struct provider *p;

	if (!able)
		skip();
	p = open_one();
	assert_int_equal(make(p, "t1", "b", 1, 5 * MBIT), 0);
	assert_true(run("ip link del wan1"));
	assert_int_equal(make(p, "t1", "b", 1, 6 * MBIT), PROVIDER_EIO);
	assert_non_null(strstr(err.text, "interface wan1: "));
	p->ops->close(p);
	assert_true(run("ip link add wan1 type veth peer name far1") && run("ip link set wan1 up") &&
	            run("ip link set far1 up"));
}

static uint64_t number(const char *path)
{
	char cmd[128];

	(void)snprintf(cmd, sizeof(cmd), "cat %s", path);
	return strtoull(say(cmd), NULL, 10);
}

static double seconds(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int socket_to(const char *to)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(9)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(inet_pton(AF_INET, to, &a.sin_addr), 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static char data[1400];

/* Sends as fast as it can for half a second to `to`; returns the bits a second that left. */
static double flood(const char *to)
{
	int fd = socket_to(to);
	uint64_t before = number("/sys/class/net/wan0/statistics/tx_bytes");
	double from = seconds(), till;

	do
		(void)!send(fd, data, sizeof(data), MSG_DONTWAIT);
	while (seconds() - from < 0.5);
	before = number("/sys/class/net/wan0/statistics/tx_bytes") - before;
	till = seconds();
	(void)close(fd);
	return (double)before * 8 / (till - from);
}

/* Packets that have ever come to the tunnel's class: sent, dropped, and those that wait. */
static unsigned long in_class(void)
{
	const char *text = say("tc -s class show dev wan0"), *wait;
	unsigned long sent, dropped, waiting;

	text = strstr(text, " Sent ");
	assert_non_null(text);
	assert_int_equal(sscanf(text, " Sent %*u bytes %lu pkt (dropped %lu,", &sent, &dropped), 2);
	wait = strstr(text, " backlog ");
	assert_non_null(wait);
	assert_int_equal(sscanf(wait, " backlog %*[^ ] %lup", &waiting), 1);
	return sent + dropped + waiting;
}

#define BESIDE 2000 /* 2.2 seconds' worth of the tunnel's rate */

/* What goes to somebody else never comes to the tunnel's class, and is all sent at once. */
static void test_holds(void **state)
{
	struct provider *p;
	unsigned long theirs;
	uint64_t left;
	double held;
	int fd;

	if (!able)
		skip();
	/* /sys shows the namespace that mounted it. */
	if (!run("mount -t sysfs none /sys 2>/dev/null"))
		skip();
	p = open_one();
	assert_true(run("ip addr add 192.0.2.1/24 dev wan0") &&
	            run("ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev wan0") &&
	            run("ip neigh add 192.0.2.3 lladdr 02:00:00:00:00:03 dev wan0"));
	assert_int_equal(make(p, "t1", "b", 0, 8 * MBIT), 0);
	held = flood("192.0.2.2");
	/* 20000 bytes of burst in half a second are 320 kbit/s. */
	assert_true(held > 0 && held < 8.4e6);
	theirs = in_class();
	left = number("/sys/class/net/wan0/statistics/tx_packets");
	fd = socket_to("192.0.2.3");
	for (unsigned i = 0; i < BESIDE; i++)
		assert_int_equal(send(fd, data, sizeof(data), 0), sizeof(data));
	assert_true(number("/sys/class/net/wan0/statistics/tx_packets") - left >= BESIDE);
	assert_int_equal(in_class(), theirs);
	(void)close(fd);
	print_message("  reserved 8 Mbit/s: %.2f Mbit/s\n", held / 1e6);
	p->ops->close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_follows_tunnels),
	    cmocka_unit_test(test_dscp),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_holds),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
