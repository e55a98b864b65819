/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault explorer: each seed draws a world (links, losses, ack mode, queue pairs), a fault and a workload;
 * at the end the hosts' memories must be what the operations say, or a queue pair must have an error.
 */
#ifndef TESTS_SIM_EXPLORE_H
#define TESTS_SIM_EXPLORE_H

#include "tests/sim/world.h"
#include "tests/lib/rc_host.h"

#define QPS_MAX  24
#define WRS_MAX  64
#define MASS_MAX 600 /* F_MASS */
#define AREA     (128u << 10)
#define MEM      (4 * AREA + 64)
#define SLOT     (16u << 10) /* a receive buffer */
#define SRC      0u
#define SINK     AREA
#define RECV     (2 * AREA)
#define READ_TO  (3 * AREA)
#define COUNTER  (4 * AREA)

/* What happens to a world, as a mask. */
enum faults {
	F_OUTAGE = 1,
	F_CRASH_NEAR = 2,
	F_CRASH_FAR = 4,
	F_LAN_LOSS = 8,
	F_REUSE = 16,
	F_SQUEEZE = 32,
	F_CRASH_BOTH = 64,
	F_PAUSE = 128,
	F_HOST = 256,
	F_TENANTS = 512,
	F_CHANGES = 1024, /* of the tenants: with F_TENANTS */
	F_MOVES = 2048,   /* to a reliable carrier and back, and it breaks */
	F_MASS = 4096,    /* ATOMICs and small READs in masses */
	F_SLOW = 8192,    /* hosts send at a rate of theirs, their queue pairs by turns */
};
/* What may cost nobody's connection, and no host a wrong packet. */
#define F_MILD  (F_REUSE | F_TENANTS | F_CHANGES | F_MOVES | F_MASS | F_SLOW)
#define F_CRASH (F_CRASH_NEAR | F_CRASH_FAR | F_CRASH_BOTH)

struct side {
	struct rc_host h;
	struct run *run;
	unsigned site, host, tenant;
	uint32_t qpn;
	uint8_t *mem, *before; /* now; as it was drawn (sim_recall_memory) */
	uint64_t drawn_from;
	struct rc_wr *wr; /* MASS_MAX */
	unsigned wrs, done, recvs;
	rwy_time done_at; /* of the last completion */
	bool error;
	bool gone; /* its host died */
	enum rc_status status;
};

struct run {
	struct world *w;
	struct sim_cfg cfg;
	struct sim_rng rng;
	struct side qp[QPS_MAX][2];
	unsigned qps;
	unsigned faults;
	unsigned round;
	rwy_time round_at, fault_at, fault_end;
	double slowest; /* times what could be expected */
	unsigned fault_site;
	bool fault_done, outage, verbose;
	bool zero_psn;
	bool deaf; /* no queue pair is alive */
	/* When each host's timer is due (0 while it is deaf, with its queue pair gone: nobody looks), and the
	 * first of them. */
	rwy_time due[QPS_MAX][2], due_first;
	bool due_known; /* due_first is */
	/* F_CHANGES: how many are to come and when; the tenant that may be removed, 0: none; those that were,
	 * and those that once were in ack mode `near`, as masks */
	unsigned steps, mortal, removed, near;
	rwy_time change_at, move_at; /* F_MOVES: the next */
	/* F_SLOW, of each host: time a byte takes, and when the last is gone; whose turn it is */
	rwy_dur slow[2][SIM_HOSTS];
	rwy_time busy[2][SIM_HOSTS];
	unsigned turn;
	const char *why;
	char detail[256];
};

/* The first thing that is wrong; n: whatever tells more. */
void sim_fail(struct run *r, const char *why, const struct side *s, unsigned n);

/* Its queue pair is in error, and its application knows. */
static inline bool side_dead(const struct side *s)
{
	return s->error || s->h.rq_error;
}

/* memory.c: the workload and what memory must be */
void sim_draw_memory(struct run *r, struct side *s);
void sim_recall_memory(struct side *s); /* s->before as it was drawn, until the next of its site */
void sim_draw_wrs(struct run *r, struct side *s, struct side *peer);
bool sim_takes_recv(const struct rc_wr *w);
/* Both have been recalled; executes on what they were. */
void sim_check_direction(struct run *r, struct side *s, struct side *p);

/* Engines hold the READ responses that they keep for their hosts; else what is on its way, at the end
 * nothing. */
void sim_check_buffers(struct run *r, bool ended);

/* hosts.c: hosts, their packets and timers, and what happens to the world at fault_at */
extern const struct sim_ops sim_host_ops;
void sim_completed(void *ctx, const struct rc_comp *c);
void sim_pump(struct run *r, struct side *s); /* after anything that made a host act */
bool sim_finished(void *ctx);                 /* every operation is done, or its queue pair in error */
bool sim_drained(void *ctx);                  /* everything a gateway answered for has reached the hosts */

/* changes.c: tenants, while they run */
void sim_changes_begin(struct run *r);
void sim_changes_tick(struct run *r, rwy_time now);
void sim_changes_end(struct run *r);
/* Operations of this side may be missing without an error: its tenant was removed at a site. */
static inline bool side_removed(const struct run *r, const struct side *s)
{
	return r->removed >> s->tenant & 1;
}

/* moves.c: to another carrier, while all runs */
void sim_moves_tick(struct run *r, rwy_time now);

/* explore.c */
struct how {
	bool verbose, quiet;
	bool hash;   /* print what tells runs apart: of all packets, and when it ended */
	double slow; /* > 0: report runs that take so many times what could be expected */
};
bool sim_run_seed(uint64_t seed, unsigned faults, const struct how *how);

#endif
