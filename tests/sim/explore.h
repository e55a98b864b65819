/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault explorer. Each seed draws a world (links, losses, ack mode, queue pairs), a fault and a
 * workload. At the end the hosts' memories must be what the operations make of them, or a queue
 * pair must have an error.
 */
#ifndef TESTS_SIM_EXPLORE_H
#define TESTS_SIM_EXPLORE_H

#include "tests/sim/world.h"
#include "tests/lib/rc_host.h"

#define QPS_MAX  24
#define WRS_MAX  64
#define MASS_MAX 600 /* operations with F_MASS */
#define AREA     (128u << 10)
#define MEM      (4 * AREA + 64)
#define SLOT     (16u << 10) /* bytes of a receive buffer */
#define SRC      0u
#define SINK     AREA
#define RECV     (2 * AREA)
#define READ_TO  (3 * AREA)
#define COUNTER  (4 * AREA)

/* The faults of a world, as a mask. */
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
	F_CHANGES = 1024, /* tenants change; with F_TENANTS */
	/* the tunnel moves to a reliable carrier and back, and the carrier breaks */
	F_MOVES = 2048,
	F_MASS = 4096,         /* ATOMICs and small READs in large numbers */
	F_SLOW = 8192,         /* hosts send at a limited rate, their queue pairs in turn */
	F_DRAIN = 1 << 27,     /* gateways are drained and start again */
	F_DRAIN_CUT = 1 << 28, /* some of these are stopped before they are drained */
	/* A host dies when its peer has asked for nothing more and has ACKs for what did not arrive. */
	F_IDLE = 1 << 20,
	/* A queue pair is reset in place when all is complete and not delivered: PSN 0 again, at once. */
	F_RESET = 1 << 21,
	F_BOUNDS = 65536, /* less memory than hosts have under way, and reservations of tenants */
};
/* Faults that may cost no connection, and no host a wrong packet. */
#define F_MILD  (F_REUSE | F_TENANTS | F_CHANGES | F_MOVES | F_MASS | F_SLOW | F_BOUNDS | F_DRAIN)
#define F_CRASH (F_CRASH_NEAR | F_CRASH_FAR | F_CRASH_BOTH)

struct side {
	struct rc_host h;
	struct run *run;
	unsigned site, host, tenant;
	uint32_t qpn;
	uint8_t *mem, *before; /* present content; content as drawn (sim_recall_memory()) */
	uint64_t drawn_from;
	struct rc_wr *wr; /* MASS_MAX of them */
	unsigned wrs, done, recvs;
	rwy_time done_at; /* of the last completion */
	bool error;
	bool gone;         /* its host died */
	roce_psn gone_psn; /* the request that it expected then */
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
	double slowest; /* in multiples of what was expected */
	unsigned fault_site;
	bool fault_done, outage, verbose;
	unsigned resets[QPS_MAX]; /* F_RESET: how often */
	bool zero_psn;
	bool silent; /* the hosts are silent: no queue pair is alive */
	/* When each host's timer is due (0: its queue pair is in error and needs none), and the
	 * first of them. */
	rwy_time due[QPS_MAX][2], due_first;
	bool due_known; /* due_first is up to date */
	/* F_CHANGES: number and time of the changes; the tenant that may be removed (0: none);
	 * masks of the tenants that were removed, and of those that ever had ack mode `near`. */
	unsigned steps, mortal, removed, near;
	rwy_time change_at, move_at; /* move_at: F_MOVES, the next move */
	/* F_DRAIN: how many are still to come; when to look again; a bound of the present one; which
	 * gateways drain, and whether they are to serve again afterwards. */
	unsigned drains;
	rwy_time drain_at, drain_end;
	bool draining[2], drain_cancel;
	/* F_SLOW, for each host: the time of a byte, the time when its last byte has left, and the
	 * queue pair in turn. */
	rwy_dur slow[2][SIM_HOSTS];
	rwy_time busy[2][SIM_HOSTS];
	unsigned turn;
	const char *why;
	char detail[256];
};

/* Notes the first fault; n: a number that tells more. */
void sim_fail(struct run *r, const char *why, const struct side *s, unsigned n);

/* True if its queue pair is in error and its application knows it. */
static inline bool side_dead(const struct side *s)
{
	return s->error || s->h.rq_error;
}

/* memory.c: the workload, and the content that memory must have. */
void sim_draw_memory(struct run *r, struct side *s);
/* s->before becomes the content as drawn, until the next call for its site. */
void sim_recall_memory(struct side *s);
void sim_draw_wrs(struct run *r, struct side *s, struct side *peer);
bool sim_takes_recv(const struct rc_wr *w);
/* Checks one direction. Both sides have been recalled; the operations are executed on that
 * content. */
void sim_check_direction(struct run *r, struct side *s, struct side *p);

/* Checks the engines' buffers: the READ responses kept for replays, besides packets in flight, of
 * which there are none at the end. */
void sim_check_buffers(struct run *r, bool ended);

/* hosts.c: hosts, their packets and timers, and the faults at fault_at. */
extern const struct sim_ops sim_host_ops;
void sim_completed(void *ctx, const struct rc_comp *c);
void sim_pump(struct run *r, struct side *s); /* called after everything that made a host act */
bool sim_finished(void *ctx); /* true if every operation is done, or its queue pair in error */
bool sim_drained(void *ctx);  /* true if all that gateways acknowledged has reached the hosts */

/* changes.c: tenants that change while they run. */
void sim_changes_begin(struct run *r);
void sim_changes_tick(struct run *r, rwy_time now);
void sim_changes_end(struct run *r);
/* True if operations of this side may be missing without an error, since a site removed its
 * tenant. */
static inline bool side_removed(const struct run *r, const struct side *s)
{
	return r->removed >> s->tenant & 1;
}

/* moves.c: changes of the carrier while all runs. */
void sim_moves_tick(struct run *r, rwy_time now);

/* drains.c: gateways that are drained while all runs. */
void sim_drains_begin(struct run *r);
void sim_drains_tick(struct run *r, rwy_time now);

/* explore.c */
void sim_reset_qp(struct run *r, unsigned i); /* both sides, with new work */
struct how {
	bool verbose, quiet;
	bool hash;   /* print a hash of all packets and of the end time */
	double slow; /* > 0: report runs that take so many times the expected duration */
};
bool sim_run_seed(uint64_t seed, unsigned faults, const struct how *how);

#endif
