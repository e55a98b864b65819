/* SPDX-License-Identifier: Apache-2.0 */
/* The world's inside, for world.c, gateway.c, faults.c, keys.c and carrier.c. */
#ifndef TESTS_SIM_WORLD_INT_H
#define TESTS_SIM_WORLD_INT_H

#include "engine/hosts.h"
#include "engine/lanes.h"
#include "engine/note.h"
#include "tests/sim/accounts.h"
#include "tests/sim/rates.h"
#include "tests/sim/world.h"

#define SIM_GATEWAYS      4 /* of sites 0 and 1; the second ones of pairs there */
#define SIM_ENGINES       (SIM_GATEWAYS * SIM_PAIR_WORKERS) /* of pairs with workers: the most */
#define SIM_PAIR_WAIT     (500 * RWY_MS)                    /* of a gateway of a pair that starts */
#define SIM_START         SIM_LINKS /* an event: the start of gateway 0; + 1: gateway 1, and so on */
#define SIM_STREAM        (SIM_START + SIM_ENGINES) /* a datagram from that site over the reliable carrier */
#define SIM_BROKEN        (SIM_STREAM + 2) /* + its number: a gateway learns that the carrier broke */
#define SIM_CARRIER_CONNS 3
#define SIM_CARRIER_ROOM  1024 /* most datagrams on the way */
#define SIM_JOURNAL       1024

#define SIM_NOTES   256 /* most that wait for a worker */
#define SIM_WAITING 512 /* most packets that wait for a worker's turn, a power of two */

/* A gateway at a site, or one of its workers. */
struct site {
	struct eng *e;
	struct world *w;
	unsigned idx;           /* the site */
	unsigned gateway;       /* its number: that of its worker 0 in w->site */
	unsigned worker;        /* its number */
	struct eng_note *notes; /* of other workers, SIM_NOTES; NULL: it is the only one */
	unsigned notes_n;
	/* packets for its next turn (bursts.c), a ring; the turn before takes until busy_until */
	struct due waiting[SIM_WAITING];
	unsigned waiting_at, waiting_n;
	rwy_time busy_until;
	bool second;   /* of a pair */
	bool replaced; /* its engine must start again */
	unsigned starts;
	uint64_t bufs; /* buffers that the engine holds */
	rwy_time paused_until;
	rwy_time next; /* result of the last eng_next() */
	unsigned polls;
	unsigned turns;     /* without rest since it got or sent anything */
	rwy_time turned_at; /* time of the last of these */
	struct sim_common common;
	struct sim_rates rates;
	unsigned ring; /* packets that wait for the end of a pause */
	struct sim_tenant tenant_at[SIM_TENANTS + 1];
	uint8_t world_of[SIM_TENANT_IDX];              /* by engine index: the world's tenant */
	struct eng_journal_entry journal[SIM_JOURNAL]; /* survives a crash, and so do the next two */
	bool journal_whole;
	_Atomic uint64_t term;
	bool stream;
	unsigned detour; /* what is lost so often goes by the carrier; 0: nothing */
	/* on the way; present connection, and what is left of its run */
	unsigned stream_n, stream_at, stream_run;
	rwy_time stream_free[SIM_CARRIER_CONNS];
};

/* keys.c: exchanges of keys between two gateways. */
struct sim_exchange {
	unsigned of[2];     /* the gateways, of site 0 and 1 */
	bool there;         /* pairs: both speak on the WAN */
	rwy_time at;        /* the next exchange */
	rwy_time use_at[2]; /* when each end learns that the other one has the keys */
	unsigned sets;
	/* Keys for the standby of each end: when it gets them, and what it has them for (needs()). */
	rwy_time reserve_at[2];
	uint64_t reserved[2];
};

struct world {
	struct sim_cfg cfg;
	const struct sim_ops *ops;
	void *ctx;
	rwy_time now;
	struct sim_rng rng;
	/* by site; then the second ones of pairs; then the same of the other workers */
	struct site site[SIM_ENGINES];
	unsigned gateways;                     /* 2, or 4 with pairs */
	unsigned engines;                      /* the same, or with all workers */
	struct eng_directory *directory[2];    /* of each site; NULL: they steer by address pair */
	struct eng_lanes lanes[SIM_GATEWAYS];  /* of each gateway, if it has several workers */
	struct eng_hosts hosts[SIM_GATEWAYS];  /* the same */
	struct eng_board *board[SIM_GATEWAYS]; /* of each gateway; NULL: one worker, or no pairs */
	struct sim_links links;
	uint64_t hash, streamed, no_buffer;
	bool two_served;
	const char *accounts; /* what was wrong with them, with reservations or turns first, or NULL */
	struct sim_tenant tenant[2][SIM_TENANTS + 1]; /* of each site, as its gateways are to have it */
	struct eng_steering *steering[2];             /* of each site; NULL: no assignments */
	uint32_t set;                                 /* number of the carrier's incarnation; 0: none yet */
	/* Its ends: worker 0 of a gateway of each site. Of a pair it is the one that began to serve last. */
	struct site *carrier[2];
	struct sim_exchange keys[SIM_GATEWAYS]; /* of each gateway of site 0 with each of site 1 */
	rwy_time keys_look_at; /* pairs: when it is looked next which gateways may exchange keys */
	struct sim_rng key_rng, turn_rng;
};

/* A worker of a gateway. */
static inline struct site *sim_at(struct world *w, unsigned gateway, unsigned worker)
{
	return &w->site[gateway + w->gateways * worker];
}

/* It is there, and does not stand still. */
static inline bool sim_runs(const struct site *s)
{
	return s->e && s->w->now >= s->paused_until;
}

/* When it may have a turn. */
static inline rwy_time sim_free_at(const struct site *s)
{
	return rwy_time_max(s->paused_until, s->busy_until);
}

/* keys.c */
void sim_keys_cfg(const struct world *w, struct wan_cfg *c);
void sim_keys_start(struct world *w);     /* both gateways run, and have keys */
void sim_keys_restarted(struct world *w); /* one of them has none */
rwy_time sim_keys_next(const struct world *w);
void sim_keys_tick(struct world *w);

/* gateway.c */
void sim_tenants_init(struct site *s); /* the tenants at the beginning */
void sim_gateway_start(struct site *s);
/* The gateway's engines end, if it is there; others begin `after` later. */
void sim_process_stop(struct world *w, unsigned gateway, rwy_dur after); /* its journal stays */
void sim_gateway_stop(struct world *w, unsigned gateway, rwy_dur after);
void sim_gateway_poll(struct site *s, rwy_time now); /* one turn */
/* faults.c: the number of the site's gateway that serves, or of one that is there. */
unsigned sim_serving(const struct world *w, unsigned site);
bool sim_serves(const struct site *s); /* as one without a pair always does */
/* workers.c: several workers. */
void sim_workers_init(struct world *w); /* directories or boards, before engines start */
void sim_workers_fini(struct world *w);
/* The gateway's worker for a packet of a host, by its addresses and its queue pair. */
struct site *sim_worker_of(struct world *w, unsigned gateway, const struct sim_buf *m);
/* Other workers of the gateway have a turn. */
void sim_workers_wake(struct site *s);
bool sim_note_send(struct site *s, unsigned worker, const struct eng_note *n);
/* The engine gets the notes that wait for it. */
void sim_notes_take(struct site *s);
/*
 * The engine of s has ended: its notes go, and with the last engine of the gateway what its workers
 * shared.
 */
void sim_worker_stopped(struct site *s);
void sim_gateway_turn(struct site *s, rwy_time now); /* one for a timer of its own */

/* The packet of d has a buffer; false: none was free, and it is lost. */
bool sim_buffer_found(struct site *s, const struct due *d);
void sim_packet_to_engine(struct site *s, const struct due *d); /* after sim_buffer_found() */
bool sim_tenant_there(const struct site *s, const struct due *d);
/* bursts.c: packets wait for the worker's next turn. */
void sim_burst_add(struct site *s, const struct due *d);
void sim_burst_take(struct site *s); /* the turn begins */
void sim_burst_drop(struct site *s); /* the engine has ended */

/* An event of the gateway's site: a packet for it. The gateway may be dead, or stand still: then it
 * finds what its receive ring held. */
void sim_to_gateway(struct world *w, struct site *s, const struct due *d);

/* carrier.c: the reliable carrier. Takes m. */
void sim_carrier_send(struct site *s, struct sim_buf *m);
/* A datagram from this site arrives. */
void sim_carrier_deliver(struct world *w, unsigned from, const struct due *d);
/* The gateway learns that the carrier broke. */
void sim_carrier_broken(struct world *w, unsigned gateway);
/*
 * The gateway begins to serve, or it stopped. Connections of a carrier belong to a process: with a
 * pair, what they carry on comes to the gateway that has the address now, which knows nothing of them.
 */
void sim_carrier_served(struct site *s);
void sim_carrier_stopped(struct world *w, unsigned gateway);

#endif
