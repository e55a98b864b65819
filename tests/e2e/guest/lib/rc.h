/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC connections by librdmacm for the lab's programs: one process with one memory region, one
 * completion queue and many connections, driven by rc_turn() on one thread. It moves no data
 * itself. Connections have the client's numbers in both processes, and each end learns address and
 * key of the other's memory from the CM messages.
 */
#ifndef RWY_GUEST_RC_H
#define RWY_GUEST_RC_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses, the same as those of rwy_ncclish. */
enum { RC_FINE = 0, RC_START = 1, RC_USAGE = 2, RC_QP = 3, RC_BAD = 4, RC_LATE = 5 };

struct rc_options {
	const char *host; /* of the server; NULL: this is the server */
	const char *port;
	unsigned int timeout; /* of the QPs, 4.096 us * 2^n; 0: librdmacm's own */
	unsigned int retry, rd_atomic;
	unsigned int conns;                  /* most connections, numbered from 0 */
	unsigned int open;                   /* most at the same time */
	unsigned int send_depth, recv_depth; /* of each QP */
};

struct rc;

struct rc_conn {
	struct rdma_cm_id *id; /* NULL: not open */
	unsigned int number;
	bool up;
	uint64_t addr; /* the far end's memory */
	uint32_t rkey;
};

/* What the program does when something happens. NULL: nothing. */
struct rc_ops {
	/* Server and client: before the connection's first packet; posts receives. */
	void (*prepare)(struct rc *, struct rc_conn *);
	void (*up)(struct rc *, struct rc_conn *);
	/* A completion; its tag is the lower half of wr_id. */
	void (*done)(struct rc *, struct rc_conn *, const struct ibv_wc *, uint32_t tag);
	/*
	 * The connection is over, or was not made (error < 0); completions that came before were
	 * handed out. The function closes it, or disconnects.
	 */
	void (*end)(struct rc *, struct rc_conn *, int error);
};

struct rc {
	struct rc_options opt;
	const struct rc_ops *ops;
	uint8_t *memory; /* zeroed, page aligned */
	size_t size;
	struct rc_conn *conns;
	int status; /* exit status; the first that was not RC_FINE */
	char error[160];
	/* Private. */
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
};

/* Makes memory of `size` bytes and, for a server, listens. 0, or -1 with errno. */
int rc_start(struct rc *rc, const struct rc_ops *ops, size_t size);
/* Begins to connect; up() or end() follows. 0 or -1. */
int rc_connect(struct rc *rc, unsigned int number);
/* Handles what has happened; if nothing has, waits at most `wait_ms`. True if there was something. */
bool rc_turn(struct rc *rc, int wait_ms);
/* Hands out the completions that are there. True if there were some. */
bool rc_completions(struct rc *rc);
/* Frees the connection and its QP. */
void rc_close(struct rc *rc, struct rc_conn *c);
/* Sets status and error, once. */
void rc_fail(struct rc *rc, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * Posts a signaled request of `size` bytes at memory + at, to or from the far memory at `far`. The
 * caller fills what else the opcode needs.
 */
void rc_post(struct rc *rc, struct rc_conn *c, struct ibv_send_wr *wr, uint32_t tag, size_t at, uint32_t size,
    uint64_t far);
void rc_recv(struct rc *rc, struct rc_conn *c, uint32_t tag, size_t at, uint32_t size);

/* True if the completion is a success; else rc_fail() was called. */
bool rc_good(struct rc *rc, const struct rc_conn *c, const struct ibv_wc *wc);

/* Seconds of the monotonic clock. */
double rc_now(void);
/* A well-mixed number. */
uint64_t rc_mix(uint64_t x);
/* Fills memory with the pattern of a seed; counts the bytes that differ from it. */
void rc_fill(uint8_t *to, uint64_t seed, size_t size);
size_t rc_check(const uint8_t *at, uint64_t seed, size_t size);

/* A program's long option with a number. */
struct rc_number {
	const char *name;
	unsigned int *to;
};

/* Reads --NAME NUMBER options, --port and the host. 0; -1: usage. */
int rc_options(struct rc_options *o, const struct rc_number *numbers, size_t n, int argc, char **argv);

#endif
