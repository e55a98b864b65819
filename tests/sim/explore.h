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

#define QPS_MAX     24
#define WRS_MAX     64
#define MASS_MAX    600 /* operations with F_MASS */
#define NIC_WRS_MAX 200
#define AREA        (128u << 10)
#define MEM         (4 * AREA + 64)
#define SLOT        (16u << 10) /* bytes of a receive buffer */
#define SRC         0u
#define SINK        AREA
#define RECV        (2 * AREA)
#define READ_TO     (3 * AREA)
#define COUNTER     (4 * AREA)

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
	F_MASS = 4096,      /* ATOMICs and small READs in large numbers */
	F_SLOW = 8192,      /* hosts send at a limited rate, their queue pairs in turn */
	F_NIC = 1 << 14,    /* hosts are NICs: rc_host_cfg_nic() */
	F_RNR = 1 << 15,    /* receives are posted late */
	F_BOUNDS = 1 << 16, /* less memory than hosts have under way, and reservations of tenants */
	F_POOL = 1 << 17,   /* gateways have few packet buffers, and no others */
	F_CAUSAL = 1 << 18, /* programs need causal order across queue pairs, in ack mode `near` */
	F_TOLD = 1 << 19,   /* only a host with an error may lose data, also if its peer is dead */
	/* A host dies when its peer has asked for nothing more and has ACKs for what did not arrive. */
	F_IDLE = 1 << 20,
	/* A queue pair is reset in place when all is complete and not delivered: PSN 0 again, at once. */
	F_RESET = 1 << 21,
	F_CM = 1 << 22,      /* CM connects; the side with the last completion disconnects at once */
	F_HOSTILE = 1 << 23, /* one host tries to harm the others */
	/* When all is complete, all queue pairs are reset, and are ready to receive before they
	 * send. */
	F_RESET_ALL = 1 << 24,
	/* NICs with READs and ATOMICs behind WRITEs, and any ack mode: the WAN may take longer than
	 * they wait. */
	F_BEHIND = 1 << 25,
	F_UNCARRIED = 1 << 26, /* operations that gateways do not carry */
	F_DRAIN = 1 << 27,     /* gateways are drained and start again */
	F_DRAIN_CUT = 1 << 28, /* some of these are stopped before they are drained */
	F_KEYS = 1 << 29,      /* the tunnel is sealed, and its keys change all the time */
	F_PATHS = 1 << 30,     /* one to four paths, of which one is dead, lossy or longer */
};
/* Hosts answer nothing for up to seconds, then all at once. (An enumerator has 31 bits.) */
#define F_LATE (1u << 31)
/* Each site has a pair of gateways, of which one dies, stands still, or loses the other. */
#define F_STANDBY ((uint64_t)1 << 32)
/* Reservations of pairs of hosts and of queue pairs come, change and go. */
#define F_RATES ((uint64_t)1 << 33)
/* Many small messages in a row, so that the WAN carries several packets in a datagram. */
#define F_SMALL ((uint64_t)1 << 34)
/* What a very lossy path loses repeatedly goes by a reliable carrier, which stalls and breaks. */
#define F_DETOUR ((uint64_t)1 << 35)
/* both sites lose their active gateways, within some ms (with F_STANDBY) */
#define F_BOTH_DIE ((uint64_t)1 << 36)
/*
 * Gateways that stop lose their journals. With F_IDLE no host dies, but the near gateway of the one
 * that has ACKs for what did not arrive.
 */
#define F_MACHINE ((uint64_t)1 << 37)
/*
 * Gateways have two to four workers, which steer by queue pair, or with F_BY_PAIR by address pair. CM
 * sets up about half of the connections; without F_CM it may leave them open.
 */
#define F_WORKERS ((uint64_t)1 << 38)
/* Allocations of the gateways fail by chance. */
#define F_HEAP ((uint64_t)1 << 39)
/* At both sites, within some ms, the cable of the pair is cut, or its active gateway hands over. */
#define F_CROSS ((uint64_t)1 << 41)
/* Gateways of pairs have three workers, which steer by address pair: one leads, two follow. */
#define F_FOLLOWERS ((uint64_t)1 << 40)
/* Workers (F_WORKERS) steer by address pair. */
#define F_BY_PAIR ((uint64_t)1 << 42)
/* Turns of gateways take time, and what comes meanwhile is handled together, as with a busy NIC. */
#define F_BURSTS ((uint64_t)1 << 43)
/* LANs are congested at times: packets are marked, hosts send CNPs, some of them for nobody. */
#define F_MARKS ((uint64_t)1 << 44)
/* Faults that may cost no connection, and no host a wrong packet. */
#define F_MILD                                                                                               \
	(F_REUSE | F_TENANTS | F_CHANGES | F_MOVES | F_MASS | F_SLOW | F_BOUNDS | F_NIC | F_RNR | F_BEHIND | \
	    F_POOL | F_CAUSAL | F_TOLD | F_CM | F_HOSTILE | F_DRAIN | F_UNCARRIED | F_KEYS | F_PATHS |       \
	    F_LATE | F_RATES | F_SMALL | F_DETOUR | F_MACHINE | F_WORKERS | F_BY_PAIR | F_BURSTS | F_MARKS)
#define F_RESETS (F_RESET | F_RESET_ALL)
#define F_CRASH  (F_CRASH_NEAR | F_CRASH_FAR | F_CRASH_BOTH)

/* F_CM: states of one side of a connection. */
enum sim_cm { SIM_CM_DOWN, SIM_CM_ASKS, SIM_CM_ANSWERED, SIM_CM_UP, SIM_CM_LEAVES, SIM_CM_OVER };

struct side {
	struct rc_host h;
	struct run *run;
	unsigned idx, site, host, tenant; /* idx: number of its queue pair */
	uint32_t qpn;
	uint8_t *mem, *before; /* present content; content as drawn (sim_recall_memory()) */
	uint64_t drawn_from;
	struct rc_wr *wr; /* MASS_MAX of them */
	unsigned wrs, done, recvs;
	unsigned uncarried; /* F_UNCARRIED: index of the operation that is refused; 0: none */
	unsigned begun;     /* causal.c: messages of which a packet was sent */
	/* F_CAUSAL, F_NIC: operations posted; completions, with errors; completions after which the
	 * next operation was posted. */
	unsigned posted, completed, chained;
	unsigned recvs_due; /* F_RNR: receives that are still to be posted */
	rwy_time done_at;   /* of the last completion */
	bool error;
	bool gone;         /* its host died */
	roce_psn gone_psn; /* the request that it expected then */
	bool deaf;         /* F_HOSTILE: it ignores all packets */
	rwy_time cnp_at;   /* F_MARKS: its next CNP, at the earliest */
	enum sim_cm cm;
	rwy_time cm_at; /* when it sends its MAD again */
	enum rc_status status;
};

/* True if its host died or its queue pair was disconnected. */
static inline bool side_silent(const struct side *s)
{
	return s->gone || s->cm >= SIM_CM_LEAVES;
}

/* F_LATE: the next time, or the present one, in which a host answers nothing. */
struct sim_late {
	rwy_time begin, end;
	uint32_t often; /* 0: it always answers */
};

struct run {
	struct world *w;
	struct sim_cfg cfg;
	struct sim_rng rng;
	struct side qp[QPS_MAX][2];
	unsigned qps;
	uint64_t faults;
	unsigned round;
	unsigned fault_round; /* in which the fault came; 0: not yet */
	rwy_time round_at, fault_at, fault_end;
	double slowest; /* in multiples of what was expected */
	unsigned fault_site;
	/* F_MACHINE: the next process of that site's gateway dies, too, and leaves its journal */
	rwy_time again_at;
	bool fault_done, outage, verbose;
	uint32_t packets;         /* --packets */
	unsigned resets[QPS_MAX]; /* F_RESET: how often */
	bool zero_psn;
	bool nic_reads; /* F_NIC: all operations are READs and ATOMICs */
	bool greeting;  /* F_NIC: some first operation is not complete */
	bool silent;    /* the hosts are silent: no queue pair is alive */
	/* When each host's timer is due (0: its queue pair is in error and needs none), and the
	 * first of them. */
	rwy_time due[QPS_MAX][2], due_first;
	bool due_known; /* due_first is up to date */
	/* F_CHANGES: number and time of the changes; the tenant that may be removed (0: none);
	 * masks of the tenants that were removed, and of those that ever had ack mode `near`. */
	unsigned steps, mortal, removed, near;
	rwy_time change_at, move_at; /* move_at: F_MOVES, the next move */
	/* F_CHANGES, F_STANDBY: a gateway does not know of the last change of this tenant yet; 0: all do */
	unsigned late_gateway, late_tenant;
	/* F_DRAIN: how many are still to come; when to look again; a bound of the present one; which
	 * gateways drain, and whether they are to serve again afterwards. */
	unsigned drains;
	rwy_time drain_at, drain_end;
	bool draining[2], drain_cancel;
	/* F_PATHS: the next change, its own draws, and the path that is not well. */
	rwy_time path_at;
	struct sim_rng path_rng;
	struct sim_rng use_rng;
	unsigned path_bad;
	/* F_DETOUR: the next change, and its own draws. */
	rwy_time detour_at;
	struct sim_rng detour_rng;
	/* F_RATES: the next change, and its own draws. */
	rwy_time rate_at;
	struct sim_rng rate_rng;
	/* F_LATE, for each host; its own draws; when each queue pair begins (RWY_NEVER: it has), and
	 * the first of them. */
	struct sim_late late[2][SIM_HOSTS];
	rwy_time begin[QPS_MAX], begin_at;
	struct sim_rng late_rng;
	/* F_STANDBY: its own draws; what is still to come, and when; the site whose pair has no cable,
	 * until then; something has happened; and when a pair was not whole. */
	struct sim_rng pair_rng, mark_rng;
	unsigned pair_steps, cable_site;
	int heir; /* the gateway to which another one handed over */
	rwy_time pair_at, cable_at, dies_at, mute_at;
	/* F_BOTH_DIE, F_CROSS: when it happens to both_site, and how often yet */
	rwy_time both_at;
	rwy_time mend_at; /* F_CROSS: both cables come back */
	unsigned both_site, both_n;
	unsigned mute_site;
	bool pair_hit, pair_bare;
	/* The gateway that served a site died with its witness, and one that knows less goes on. */
	bool pair_stale[2];
	rwy_time recv_at; /* F_RNR: when receives are posted */
	rwy_time cm_at;   /* F_CM, F_WORKERS: the first of the sides' */
	bool cm_open;     /* F_WORKERS: connections of CM before did not end */
	/* F_HOSTILE: its way; its queue pairs, the last of qps; the same while they run, else 0; when
	 * its next forged packet is due; its own draws. */
	unsigned bad_way, bad_n, bad_qps;
	rwy_time bad_at;
	struct sim_rng bad_rng;
	roce_psn bad_psn[8];
	uint32_t forged;
	/* F_SLOW, F_NIC, for each host: the time of a byte (0: no limit), the time when its last byte
	 * has left, and the queue pair in turn. */
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

/* rounds.c: all rounds of a world; alone: without the hostile host. */
void sim_run_rounds(struct run *r, bool alone);

/* check.c */
void sim_check(struct run *r);         /* at the end of a round */
void sim_check_end(struct run *r);     /* at the end of the world */
rwy_dur sim_took(const struct run *r); /* until the last completion of the round */

/* print.c */
void sim_print_world(const struct run *r);
void sim_print_counters(const struct run *r);
void sim_print_packet(
    const struct run *r, const struct side *s, const char *how, const uint8_t *ip, uint32_t len);

/* memory.c: the workload, and the content that memory must have. */
void sim_draw_memory(struct run *r, struct side *s);
/* s->before becomes the content as drawn, until the next call for its site. */
void sim_recall_memory(struct side *s);
void sim_draw_wrs(struct run *r, struct side *s, struct side *peer);
bool sim_takes_recv(const struct rc_wr *w);
/* F_UNCARRIED: one of the operations of one of the two sides may become one that is refused. */
void sim_draw_uncarried(struct run *r, struct side *s);
/* True if s or its peer has such an operation: then they may have errors. */
bool sim_refused(const struct run *r, const struct side *s);
/*
 * Such an operation, and none before it, must have failed, as an invalid request. From then on the
 * operations before it are all that s had. Not calm: something may have ended the connection before,
 * with another error.
 */
void sim_check_uncarried(struct run *r, struct side *s, bool calm);
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
bool sim_changes_over(struct run *r); /* all are done, and nothing is left of removed tenants */
/* A completion in this ack mode says that the near gateway has the data. */
static inline bool sim_early(enum eng_ack_mode m)
{
	return m == ENG_ACK_NEAR || m == ENG_ACK_CAUSAL;
}

/* True if operations of this side may be missing without an error, since a site removed its
 * tenant. */
static inline bool side_removed(const struct run *r, const struct side *s)
{
	return r->removed >> s->tenant & 1;
}

/* moves.c: changes of the carrier while all runs. */
void sim_moves_tick(struct run *r, rwy_time now);

/* detours.c: what is lost repeatedly goes by the carrier. */
void sim_detours_begin(struct run *r, rwy_time now);
void sim_detours_tick(struct run *r, rwy_time now);
void sim_detours_end(struct run *r);

/* paths.c: a tunnel of several paths. */
void sim_paths_draw(struct run *r);
void sim_paths_tick(struct run *r, rwy_time now);
void sim_paths_heal(struct run *r); /* the bad path is well */

/* rates.c: reservations. */
void sim_rates_begin(struct run *r);
void sim_rates_tick(struct run *r, rwy_time now);

/* pairs.c: pairs of gateways. */
/* marks.c: a host is about to send; it has got a packet. */
void sim_marks_sent(struct run *r, const struct side *s, uint8_t *ip, rwy_time now);
void sim_marks_received(struct run *r, struct side *s, const struct roce_pkt *pkt, rwy_time now);
void sim_pairs_draw(struct run *r);
/* A gateway of the site is about to fail. */
void sim_pairs_note(struct run *r, unsigned site);
void sim_pairs_tick(struct run *r, rwy_time now);

/* late.c: hosts that answer late. */
void sim_draw_late(struct run *r);
void sim_late_begin(struct run *r); /* instead of posting all at once */
void sim_late_tick(struct run *r, rwy_time now);
/* When the host does its work again; 0: it does. */
rwy_time sim_late_until(struct run *r, unsigned site, unsigned host);
/* The same of the host that the packet is for; for sim_ops. */
rwy_time sim_host_ready(void *ctx, unsigned site, const uint8_t *ip, uint32_t len);

/* drains.c: gateways that are drained while all runs. */
void sim_drains_begin(struct run *r);
void sim_drains_tick(struct run *r, rwy_time now);
/* draw.c: the world. */
void sim_draw_links(struct run *r);
void sim_draw_qps(struct run *r);
void sim_draw_squeeze(struct run *r);
void sim_draw_bounds(struct run *r);
void sim_draw_small(struct run *r);
void sim_draw_slow(struct run *r);
/* Sets up both sides of a queue pair between the hosts of this number. */
void sim_side_init(struct run *r, unsigned qp, unsigned host, unsigned tenant);
void sim_connect_qp(struct run *r, struct side *s); /* a new connection of both sides, and its workload */

/* nic.c: NICs, packet buffers, late receives. */
void sim_nic_links(struct run *r);
void sim_nic_cfg(struct run *r, struct rc_host_cfg *c);
void sim_nic_begin(struct run *r); /* posts the first operations; instead of posting all */
void sim_nic_go_on(struct run *r); /* called after each completion while r->greeting */
void sim_pool_cfg(struct run *r);
void sim_recvs_begin(struct run *r, struct side *s, unsigned n); /* posts n receives; with F_RNR some later */
void sim_recvs_tick(struct run *r, rwy_time now);

/* causal.c: causal order across queue pairs. */
void sim_causal_sent(struct run *r, struct side *s); /* called after every packet of s */
void sim_causal_executed(struct run *r, const struct side *p, roce_msn msg);
void sim_chain_begin(struct run *r); /* posts the first operations; instead of posting all */
void sim_chain_tick(struct run *r);  /* called after completions */

/* cm.c: connections that CM sets up and ends. */
void sim_cm_begin(struct run *r); /* instead of posting */
void sim_cm_begin_some(struct run *r);
void sim_cm_end_some(struct run *r);
void sim_cm_packet(struct run *r, unsigned site, const struct roce_pkt *pkt);
void sim_cm_leave(struct run *r, struct side *s); /* disconnects if all is complete */
void sim_cm_give_up(struct side *s);              /* it sets nothing up any longer */
void sim_cm_tick(struct run *r, rwy_time now);
/* Sends a MAD of 256 bytes between the sites' hosts of these numbers. */
void sim_mad_send(
    struct run *r, unsigned site, unsigned host, unsigned peer, unsigned tenant, const uint8_t *mad);
bool sim_cm_over(const struct run *r); /* true if every connection was set up and has ended */

/* hostile.c: the hostile host. */
void sim_hostile_draw(struct run *r);
void sim_hostile_begin(struct run *r);
void sim_hostile_end(struct run *r);
void sim_hostile_tick(struct run *r, rwy_time now);
const char *sim_hostile_way(const struct run *r); /* "": there is none */
/* Bytes that the other hosts' tenant reserves. */
uint64_t sim_reserve(const struct sim_cfg *c);
void sim_check_reserved(struct run *r);
/* True for a side of its queue pairs, of which nothing is checked. */
static inline bool sim_is_bad(const struct run *r, const struct side *s)
{
	return s->idx >= r->qps - r->bad_qps;
}

/* explore.c */
void sim_reset_qp(struct run *r, unsigned i); /* both sides, with new work */
void sim_post_qp(struct run *r, struct side *s);
struct how {
	bool verbose, quiet;
	uint32_t packets;            /* > 0: print the packets of the queue pairs with this QPN */
	bool hash;                   /* print a hash of all packets and of the end time */
	double slow;                 /* > 0: report runs that take so many times the expected duration */
	bool alone;                  /* F_HOSTILE: without the hostile host */
	const struct aead_ops *aead; /* F_KEYS: seals; NULL: the test's table */
	rwy_dur *took;               /* where to write how long the other hosts took, or NULL */
	/* Where to add the datagrams with several packets, and those that took a detour, or NULL. */
	uint64_t *runs, *detours;
};
bool sim_run_seed(uint64_t seed, uint64_t faults, const struct how *how);

#endif
