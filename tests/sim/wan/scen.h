/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario: everything that decides a run, as `key=value` words or as a file of `key value` lines. Parsing
 * finds what cannot be and says where. See docs/simulator.md for the keys.
 */
#ifndef SIM_WAN_SCEN_H
#define SIM_WAN_SCEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/time.h"

#define TUNNELS_MAX 64

enum scen_arrival { ARRIVE_ONE, ARRIVE_BACK };
enum scen_recovery {
	RECOVER_ROCEWAY,
	RECOVER_SR,
	RECOVER_EC,
	RECOVER_GBN,
	RECOVER_TCP_CUBIC,
	RECOVER_TCP_BBR
};
enum scen_jitter { JITTER_UNIFORM, JITTER_NORMAL, JITTER_PARETO };
enum scen_order { ORDER_KEPT, ORDER_FREE };
enum scen_payload { PAYLOAD_THIN, PAYLOAD_FULL };

struct scen {
	char name[64];
	uint64_t seed;
	/* the path */
	double rate, rrate; /* bits a second, there and back; rrate 0: as rate */
	double rtt, jitter; /* ns */
	enum scen_jitter jitter_dist;
	enum scen_order order;  /* may a datagram that jitter makes late be overtaken? */
	char jitter_trace[200]; /* a file of recorded delays instead, empty: none */
	double loss, rloss;     /* share of datagrams; rloss < 0: as loss */
	double burst;           /* mean length of a loss burst, 1: independent */
	double reorder, reorder_delay, dup, corrupt;
	double queue; /* bytes in front of the link, 0: no bound; below 0, until scen_settle: bandwidth-delay
	                 products */
	double mark;  /* bytes from which on ECN is marked, 0: never; below 0 as above */
	double outage_from, outage_len;
	double overhead; /* bytes a datagram costs besides its UDP payload */
	double mtu;      /* UDP payload */
	/* others on the link there */
	char cross[64];                            /* as cross_parse takes it, empty: nobody */
	double cross_start, cross_stop, cross_gap; /* ns; stop 0: never; gap: each starts so much later */
	double cross_mtu;
	/* the gateways */
	double tunnels, tunnel_gap; /* alike, one after the other */
	char cc[16];
	double ccrate; /* bits a second; 0: rate with `fixed`, no bound otherwise */
	char fec[16];
	enum scen_recovery recovery;
	double wake;    /* ns between two turns of a worker's loop */
	double window;  /* what the receiver may hold, in bandwidth-delay products */
	double ahead;   /* bytes a host is in front of the wire */
	double timeout; /* go-back-N: the NIC's timer, ns */
	/* the work */
	double pmtu, size, messages, warm, flows;
#define TUNNELS_MAX 64

	enum scen_arrival arrival;
	double demand,
	    chunk; /* bits a second that the hosts give, in bursts of `chunk` bytes; 0: all the path takes */
	double on, off; /* transfers of `on` ns and pauses of `off`; on 0: no pauses */
	double stalls,
	    stall; /* how often a second a gateway's process does not run, and for how long at most, ns */
	char changes[256]; /* as change_parse takes it, empty: none */
	double rtts,
	    skip; /* when rtts > 0: back to back for so many round trips, the first `skip` not counted */
	enum scen_payload payload;
};

void scen_default(struct scen *s);
/* Both return false after writing one line into err. `where` names the origin of the word. */
bool scen_word(struct scen *s, const char *word, const char *where, char *err, size_t size);
bool scen_file(struct scen *s, const char *path, char *err, size_t size);
/* What only the whole can tell. */
bool scen_check(const struct scen *s, char *err, size_t size);
/* What was given in bandwidth-delay products becomes bytes. After all words. */
void scen_settle(struct scen *s);
/* The words that repeat this run: every key that is not at its default. */
void scen_print(const struct scen *s, char *out, size_t size);
/* The same without anything that goes wrong on the path. */
struct scen scen_lossless(const struct scen *s);

/* Packets that do not fit a datagram go in fragments. */
static inline bool scen_fragments(const struct scen *s)
{
	return s->mtu < s->pmtu + 200;
}

/* Fragments begin where a thin packet has nothing of its own, and what repairs are made of must not change
 * before they are used: they are always real. */
static inline bool scen_thin(const struct scen *s)
{
	return s->payload == PAYLOAD_THIN && !scen_fragments(s);
}

static inline uint64_t scen_packets(const struct scen *s)
{
	return ((uint64_t)s->size + (uint64_t)s->pmtu - 1) / (uint64_t)s->pmtu;
}

#endif
