/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario, which decides the whole run, as `key=value` words or as a file of `key value` lines.
 * Parsing reports faults with their place. docs/simulator.md has the keys.
 */
#ifndef SIM_WAN_SCEN_H
#define SIM_WAN_SCEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/time.h"

#define TUNNELS_MAX 64
#define PATHS_MAX   8

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
enum scen_bottleneck { BOTTLENECK_OWN, BOTTLENECK_ONE };

struct scen {
	char name[64];
	uint64_t seed;
	/* The path. */
	double rate, rrate; /* bit/s, there and back; rrate 0: as rate */
	double rtt, jitter; /* ns */
	enum scen_jitter jitter_dist;
	enum scen_order order;  /* whether jitter may reorder */
	char jitter_trace[200]; /* a file with recorded delays instead; empty: none */
	double loss, rloss;     /* share of datagrams; rloss < 0: as loss */
	double burst;           /* mean length of a loss burst; 1: independent losses */
	double reorder, reorder_delay, dup, corrupt;
	/* bytes in front of the link, 0: no limit; < 0: bandwidth-delay products, until
	 * scen_settle() */
	double queue;
	double mark; /* bytes from which ECN is marked, 0: never; < 0 as above */
	double outage_from, outage_len;
	double overhead; /* bytes of a datagram besides its UDP payload */
	double mtu;      /* UDP payload */
	/* Several paths: all as above, but for what `path` says, in the form of paths_parse(). */
	double paths;
	char path[200];
	enum scen_bottleneck bottleneck; /* each path has its own queue, or all have one */
	/* Cross traffic on the forward link. */
	char cross[64]; /* in the form of cross_parse(); empty: none */
	/* ns; stop 0: never; gap: delay of each next start */
	double cross_start, cross_stop, cross_gap;
	double cross_mtu;
	/* The gateways. */
	double tunnels, tunnel_gap; /* number of equal tunnels; delay of each next start */
	char cc[16];
	double ccrate; /* bit/s; 0: rate with `fixed`, no limit otherwise */
	char fec[16];
	enum scen_recovery recovery;
	double wake;    /* ns between two turns of a worker's loop */
	double window;  /* limit of the receiver, in bandwidth-delay products */
	double ahead;   /* bytes that a host is ahead of the wire */
	double timeout; /* go-back-N: the NIC's timer in ns */
	/* A reliable carrier beside the path, for what was lost `detour` times (0: none): bit/s and
	 * ns; 0: as the path. */
	double detour, detour_rate, detour_rtt;
	/* The work. */
	double pmtu, size, messages, warm, flows;
	enum scen_arrival arrival;
	/* bit/s from the hosts, in bursts of `chunk` bytes; 0: as much as the path carries */
	double demand, chunk;
	double on, off; /* ns of transfers and pauses; on 0: no pauses */
	/* stops of a gateway's process per second, and their longest duration in ns */
	double stalls, stall;
	char changes[256]; /* in the form of change_parse(); empty: none */
	/* if rtts > 0: back to back for so many round trips, the first `skip` not counted */
	double rtts, skip;
	enum scen_payload payload;
};

void scen_default(struct scen *s);
/* Both return false after writing one line into err. `where` names the origin of the word. */
bool scen_word(struct scen *s, const char *word, const char *where, char *err, size_t size);
bool scen_file(struct scen *s, const char *path, char *err, size_t size);
/* Checks that concern several keys. False: err has one line. */
bool scen_check(const struct scen *s, char *err, size_t size);
/* Turns bandwidth-delay products into bytes. Call it after all words. */
void scen_settle(struct scen *s);
/* Prints the words that repeat this run: every key that is not at its default. */
void scen_print(const struct scen *s, char *out, size_t size);
/* The same scenario without losses and other faults of the path. */
struct scen scen_lossless(const struct scen *s);
/* The reliable carrier as a scenario. */
struct scen scen_carrier(const struct scen *s);

/* True if packets do not fit into a datagram and travel in fragments. */
static inline bool scen_fragments(const struct scen *s)
{
	return s->mtu < s->pmtu + 200;
}

/* True if the run is thin. Fragments begin where a thin packet owns no bytes, and repairs need
 * packets that do not change before they are used. So both need real packets. */
static inline bool scen_thin(const struct scen *s)
{
	return s->payload == PAYLOAD_THIN && !scen_fragments(s);
}

static inline uint64_t scen_packets(const struct scen *s)
{
	return ((uint64_t)s->size + (uint64_t)s->pmtu - 1) / (uint64_t)s->pmtu;
}

#endif
