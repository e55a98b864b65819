/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody in the WAN: listens on the two interfaces of the emulator between two gateways, and sends
 * forged frames (forge.h) to both, all kinds in turn, at a steady rate.
 *
 *   wan_attack NETNS DEV_A DEV_B PORT COUNT FRAMES_A_SECOND [SEED]
 *
 * It says `ready` when datagrams of both directions have passed, attacks for COUNT frames, and says
 * how many of each kind it sent to each gateway, as JSON. PORT: of the tunnels, and the one after it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rwy/time.h"
#include "tests/component/attacker/forge.h"

#define BATCH 32

/* The interface towards a gateway. */
static struct side {
	int fd;
	struct forge_book passed; /* towards this gateway */
	uint64_t sent[FORGE_KIND_COUNT], full;
} side[2];

static uint16_t port;

static void die(const char *what)
{
	fprintf(stderr, "wan_attack: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void sock_open(struct side *s, const char *dev)
{
	struct sockaddr_ll sa = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
	int on = 1, buf = 8 << 20;

	sa.sll_ifindex = (int)if_nametoindex(dev);
	s->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (!sa.sll_ifindex || s->fd < 0)
		die(dev);
	/* What it sends is not for the emulator: past the taps of the interface. */
	if (setsockopt(s->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) != 0 ||
	    setsockopt(s->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) != 0 ||
	    bind(s->fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
		die(dev);
	(void)!setsockopt(s->fd, SOL_SOCKET, SO_SNDBUFFORCE, &buf, sizeof(buf));
	(void)!setsockopt(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, &buf, sizeof(buf));
}

static void enter(const char *netns)
{
	char path[256];
	int ns;

	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET) != 0)
		die(netns);
	close(ns);
}

/* What comes from one gateway passes towards the other. */
static void listen_to(unsigned i)
{
	uint8_t frame[FORGE_FRAME];
	ssize_t n;

	for (unsigned k = 0; k < BATCH && (n = recv(side[i].fd, frame, sizeof(frame), 0)) > 0; k++)
		forge_learn(&side[!i].passed, frame, (size_t)n, port);
}

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * RWY_SEC + (uint64_t)t.tv_nsec;
}

static void learn_first(void)
{
	const uint64_t end = clock_ns() + 60 * RWY_SEC;

	while (side[0].passed.n < 20 || side[1].passed.n < 20) {
		struct pollfd p[2] = {
		    {.fd = side[0].fd, .events = POLLIN}, {.fd = side[1].fd, .events = POLLIN}};

		if (clock_ns() > end) {
			fprintf(stderr, "wan_attack: nothing passes\n");
			exit(2);
		}
		poll(p, 2, 100);
		listen_to(0);
		listen_to(1);
	}
	printf("ready\n");
}

/* False: this kind cannot be made yet. */
static bool attack(unsigned to, enum forge_kind kind, uint64_t *rng)
{
	uint8_t frame[FORGE_FRAME];
	size_t n = forge_make(&side[to].passed, &side[!to].passed, kind, rng, frame);

	if (!n)
		return false;
	while (send(side[to].fd, frame, n, 0) < 0) {
		if (errno != ENOBUFS && errno != EAGAIN)
			die("send");
		side[to].full++;
		sched_yield();
	}
	side[to].sent[kind]++;
	return true;
}

static void attack_all(uint64_t count, uint64_t a_second, uint64_t *rng)
{
	const uint64_t begin = clock_ns();

	for (uint64_t n = 0, tries = 0; n < count; tries++) {
		n += attack(tries & 1, (enum forge_kind)(tries / 2 % FORGE_KIND_COUNT), rng);
		if (tries % BATCH)
			continue;
		listen_to(0);
		listen_to(1);
		while ((clock_ns() - begin) / 1000 * a_second / 1000000 < n)
			usleep(200);
	}
}

static void report(void)
{
	for (unsigned i = 0; i < 2; i++) {
		uint64_t all = 0;

		printf("%s{", i ? ", " : "[");
		for (unsigned k = 0; k < FORGE_KIND_COUNT; k++) {
			printf("\"%s\": %" PRIu64 ", ", forge_names[k], side[i].sent[k]);
			all += side[i].sent[k];
		}
		printf("\"all\": %" PRIu64 ", \"full\": %" PRIu64 "}", all, side[i].full);
	}
	printf("]\n");
}

int main(int argc, char **argv)
{
	uint64_t rng, count, a_second;

	if (argc != 7 && argc != 8) {
		fprintf(stderr, "usage: wan_attack NETNS DEV_A DEV_B PORT COUNT FRAMES_A_SECOND [SEED]\n");
		return 2;
	}
	port = (uint16_t)strtoul(argv[4], NULL, 10);
	count = strtoull(argv[5], NULL, 10);
	a_second = strtoull(argv[6], NULL, 10);
	rng = argc == 8 ? strtoull(argv[7], NULL, 10) : 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	enter(argv[1]);
	for (unsigned i = 0; i < 2; i++)
		sock_open(&side[i], argv[2 + i]);
	learn_first();
	attack_all(count, a_second, &rng);
	report();
	return 0;
}
