/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections by librdmacm that end as soon as they may. A client sends numbered messages (SEND,
 * and WRITE WITH IMMEDIATE) and calls rdma_disconnect() in the same moment that the last one is
 * completed; or it waits for an answer first. The server checks every byte. Both say for each
 * connection how far it came and with which error, so that a test can compare: everything
 * delivered, or an error at both ends.
 *
 *   rwy_messages [options]           serves --conns connections
 *   rwy_messages [options] HOST      makes them, --open at a time
 *
 * /tmp/t/PORT.client and .server have two 8-byte numbers while it runs, also after SIGKILL:
 * connections made, and messages completed (client) or received (server).
 *
 * Prints one line of JSON; "odd" lists [connection, messages, error] of those that were not fine.
 * Exit: 0 all are fine; 3 some are not; 4 wrong data; 5 no end within --limit; 1 could not start;
 * 2 usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/rc.h"

#define TAG_REPLY 0xffffffffu
#define ODD_MAX   40

struct progress {
	uint64_t conns, messages;
};

struct own {
	unsigned int posted, count; /* count: completed (client), received (server) */
	bool replied, over;
	int error; /* work completion's status, or CM's negative one */
};

static struct rc rc;
static struct own *own;
static struct progress *progress;
static unsigned int messages = 100, size = 4096, limit = 60, window = 128, reply, hold;
static unsigned int over, fine, odd;
static uint64_t bad_bytes;
static char odd_list[ODD_MAX * 40];
static bool held;
static volatile sig_atomic_t stopped;

static void on_signal(int signum)
{
	stopped = signum;
}

static uint64_t seed_of(unsigned int conn, unsigned int message)
{
	return (uint64_t)conn << 32 | message;
}

/* Most messages are full; some are short and odd. */
static uint32_t size_of(unsigned int conn, unsigned int message)
{
	uint64_t h = rc_mix(~seed_of(conn, message));

	return h % 4 ? size : 1 + (uint32_t)((h >> 8) % size);
}

static size_t place_of(unsigned int conn, unsigned int message)
{
	return ((size_t)(conn % rc.opt.open) * messages + message) * size;
}

static bool complete(const struct own *o)
{
	return o->count == messages && (!reply || o->replied);
}

static void message_post(struct rc_conn *c)
{
	struct own *o = &own[c->number];
	unsigned int n = o->posted++;
	struct ibv_send_wr wr = {.opcode = n % 3 == 1 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM};
	size_t at = place_of(c->number, n);

	wr.imm_data = htobe32(n);
	rc_fill(rc.memory + at, seed_of(c->number, n), size_of(c->number, n));
	rc_post(&rc, c, &wr, n, at, size_of(c->number, n), at);
}

static void messages_post(struct rc_conn *c)
{
	struct own *o = &own[c->number];

	while (o->posted < messages && o->posted - o->count < window)
		message_post(c);
}

/* The connection is over: notes how it ended, and the client goes on with the next of its row. */
static void conn_over(struct rc_conn *c, int error)
{
	struct own *o = &own[c->number];
	size_t used = strlen(odd_list);

	if (o->over)
		return;
	o->over = true;
	if (!o->error)
		o->error = error;
	over++;
	if (complete(o) && !o->error)
		fine++;
	else if (odd++ < ODD_MAX)
		snprintf(odd_list + used, sizeof(odd_list) - used, "%s[%u, %u, %d]", used ? ", " : "",
		    c->number, o->count, o->error);
	rc_close(&rc, c);
	if (rc.opt.host && c->number + rc.opt.open < rc.opt.conns && rc_connect(&rc, c->number + rc.opt.open))
		conn_over(&rc.conns[c->number + rc.opt.open], -errno);
}

static void on_prepare(struct rc *r, struct rc_conn *c)
{
	for (unsigned int i = 0; !r->opt.host && i < messages; i++)
		rc_recv(r, c, i, place_of(c->number, i), size);
	if (r->opt.host && reply)
		rc_recv(r, c, TAG_REPLY, 0, 0);
}

static void on_up(struct rc *r, struct rc_conn *c)
{
	progress->conns++;
	if (r->opt.host && !held)
		messages_post(c);
}

static void message_came(struct rc_conn *c, const struct ibv_wc *wc, uint32_t tag)
{
	struct own *o = &own[c->number];
	uint32_t want = size_of(c->number, tag);
	size_t bad = rc_check(rc.memory + place_of(c->number, tag), seed_of(c->number, tag), want);

	if (tag != o->count || be32toh(wc->imm_data) != tag || wc->byte_len != want || bad) {
		bad_bytes += bad;
		rc_fail(&rc, RC_BAD,
		    "connection %u: message %u has number %u, %u bytes of %u, %zu of them wrong", c->number,
		    tag, be32toh(wc->imm_data), wc->byte_len, want, bad);
	}
	o->count++;
	progress->messages++;
	if (reply && o->count == messages) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

		rc_post(&rc, c, &wr, TAG_REPLY, 0, 0, 0);
	}
}

static void on_done(struct rc *r, struct rc_conn *c, const struct ibv_wc *wc, uint32_t tag)
{
	struct own *o = &own[c->number];

	if (o->over)
		return; /* of a QP that is gone */
	if (wc->status != IBV_WC_SUCCESS) {
		o->error = (int)wc->status;
		rdma_disconnect(c->id);
		conn_over(c, 0);
		return;
	}
	if (tag == TAG_REPLY) {
		o->replied = true;
	} else if (!r->opt.host) {
		message_came(c, wc, tag);
	} else {
		o->count++;
		progress->messages++;
		messages_post(c);
	}
	if (r->opt.host && complete(o))
		rdma_disconnect(c->id);
}

static void on_end(struct rc *r, struct rc_conn *c, int error)
{
	if (!r->opt.host && c->up)
		rdma_disconnect(c->id); /* answers DREQ, as programs do at once */
	conn_over(c, error);
}

/* The client's messages wait until the test makes the file. */
static void hold_until(const char *file)
{
	if (!held || access(file, F_OK))
		return;
	held = false;
	for (unsigned int i = 0; i < rc.opt.conns; i++)
		if (rc.conns[i].up)
			messages_post(&rc.conns[i]);
}

static int progress_make(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/t/%s.%s", rc.opt.port, rc.opt.host ? "client" : "server");
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || ftruncate(fd, sizeof(*progress)))
		return -1;
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return progress == MAP_FAILED ? -1 : 0;
}

static const struct rc_ops ops = {.prepare = on_prepare, .up = on_up, .done = on_done, .end = on_end};

static int client_or_server_start(void)
{
	own = calloc(rc.opt.conns, sizeof(*own));
	rc.opt.send_depth = rc.opt.host ? window : 1;
	rc.opt.recv_depth = rc.opt.host ? 1 : messages;
	if (!own || progress_make() || rc_start(&rc, &ops, (size_t)rc.opt.open * messages * size))
		return -1;
	held = hold && rc.opt.host;
	for (unsigned int i = 0; rc.opt.host && i < rc.opt.open && i < rc.opt.conns; i++)
		if (rc_connect(&rc, i))
			return -1;
	return 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: rwy_messages [--port N] [--conns N] [--open N] [--messages N] [--size BYTES] "
	                "[--window N] "
	                "[--reply 1] [--hold 1]\n  [--timeout N] [--retry N] [--limit SECONDS] [HOST]\n"
	                "  --reply 1: the client waits for an answer to the last message\n"
	                "  --hold 1: its messages wait until /tmp/t/PORT.go is there\n");
	return RC_USAGE;
}

int main(int argc, char **argv)
{
	const struct rc_number numbers[] = {{"conns", &rc.opt.conns}, {"open", &rc.opt.open},
	    {"messages", &messages}, {"size", &size}, {"window", &window}, {"reply", &reply}, {"hold", &hold},
	    {"timeout", &rc.opt.timeout}, {"retry", &rc.opt.retry}, {"limit", &limit}};
	char go[64];

	/* No READs: a connection that may send them gets fewer ACKs while nothing crosses the WAN. */
	rc.opt = (struct rc_options){.port = "7471", .conns = 1, .open = 1, .retry = 7};
	if (rc_options(&rc.opt, numbers, sizeof(numbers) / sizeof(numbers[0]), argc, argv) || !rc.opt.open ||
	    !messages || !size || !window)
		return usage();
	signal(SIGTERM, on_signal);
	if (client_or_server_start()) {
		perror("rwy_messages");
		return RC_START;
	}
	snprintf(go, sizeof(go), "/tmp/t/%s.go", rc.opt.port);
	for (double end = rc_now() + limit; over < rc.opt.conns && !stopped;) {
		rc_turn(&rc, 20);
		hold_until(go);
		if (rc_now() > end) {
			rc_fail(
			    &rc, RC_LATE, "%u connections not over after %u s", rc.opt.conns - over, limit);
			break;
		}
	}
	if (odd)
		rc_fail(&rc, RC_QP, "%u connections are not fine", odd);
	printf("{\"role\": \"%s\", \"conns\": %u, \"over\": %u, \"fine\": %u, \"messages\": %llu, "
	       "\"bad_bytes\": %llu, "
	       "\"odd\": [%s], \"status\": %d, \"error\": \"%s\"}\n",
	    rc.opt.host ? "client" : "server", rc.opt.conns, over, fine,
	    (unsigned long long)progress->messages, (unsigned long long)bad_bytes, odd_list, rc.status,
	    rc.error);
	return rc.status;
}
