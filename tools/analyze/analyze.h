/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds in a capture of RoCEv2 packets, for each queue pair: operations, rates, completion times,
 * retransmissions and their cause, and where the time went. It needs no gateway: any LAN
 * capture will do.
 *
 * Sans-I/O: packets go in with their time, in the order of the capture; results are read after
 * an_end(). One thread. Times are nanoseconds, sizes bytes. file.h reads captures.
 *
 * A flow is one direction of a connection, (VNI, source, destination, destination QPN): the
 * requests of the source, and what the destination answers to them. The flow that carries those
 * answers is its peer.
 */
#ifndef TOOLS_ANALYZE_H
#define TOOLS_ANALYZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "roce/parse.h"
#include "rwy/ip.h"
#include "rwy/time.h"
#include "tools/analyze/hist.h"

/*
 * The phases of a requester's time, by the gap before each packet that it sends.
 * X(enumerator, name, sentence)
 */
#define AN_PHASES(X)                                                                                         \
	X(AN_SENDING, "sending", "packets follow one another")                                               \
	X(AN_IDLE, "idle", "nothing is outstanding and the program posts nothing")                           \
	X(AN_WINDOW, "window", "everything posted is out; the next packet goes when an ACK comes")           \
	X(AN_READS, "read depth", "the next READ goes when the response of an earlier one comes")            \
	X(AN_CREDITS, "credits", "the responder grants no more messages (end-to-end credits)")               \
	X(AN_QUEUE, "queue", "the path or the responder is slower: ACKs wait in a queue")                    \
	X(AN_LOSS, "loss", "lost packets are repaired after a NAK")                                          \
	X(AN_TIMEOUT, "timeout", "a lost packet is repaired after the requester's timer")                    \
	X(AN_RNR, "rnr", "the responder has no receive buffer posted (RNR NAK)")                             \
	X(AN_CNP, "cnp", "the requester slows down after CNPs")                                              \
	X(AN_PACED, "paced", "the requester sends less than it may: its program or its rate limit")

enum an_phase {
#define X(e, n, s) e,
	AN_PHASES(X)
#undef X
	    AN_PHASE_COUNT
};
const char *an_phase_name(enum an_phase p);
const char *an_phase_text(enum an_phase p);

/* Counters of a flow's requests. X(field, sentence) */
#define AN_COUNTERS(X)                                                                                       \
	X(packets, "request packets, each PSN once")                                                         \
	X(bytes, "payload, each byte once: requests, and READ responses")                                    \
	X(messages, "messages that were completed")                                                          \
	X(sends, "SEND messages begun")                                                                      \
	X(writes, "WRITE messages begun")                                                                    \
	X(reads, "READ messages begun")                                                                      \
	X(atomics, "ATOMIC operations begun")                                                                \
	X(resent_packets, "request packets seen again")                                                      \
	X(resent_bytes, "payload of request packets seen again")                                             \
	X(resends, "times the requester went back")                                                          \
	X(resends_nak, "... after a PSN sequence NAK, or a lost response")                                   \
	X(resends_timeout, "... after its timer")                                                            \
	X(resends_rnr, "... after an RNR NAK")                                                               \
	X(resends_needless, "... and what it sent again had arrived")                                        \
	X(lost_before, "packets that first appear here as a repeat: lost before the capture")                \
	X(reordered, "packets that came late, without a repeat")                                             \
	X(naks_sequence, "PSN sequence NAKs")                                                                \
	X(naks_rnr, "RNR NAKs")                                                                              \
	X(naks_other, "NAKs that end the queue pair")                                                        \
	X(responses_lost, "READ responses missing in the sequence")                                          \
	X(responses_repeated, "READ responses seen again")                                                   \
	X(acks, "ACK packets")                                                                               \
	X(cnps, "CNPs to the requester")                                                                     \
	X(ce_marked, "packets with ECN CE")                                                                  \
	X(icrc_bad, "packets whose ICRC is wrong")                                                           \
	X(not_captured, "PSNs that were acknowledged and never seen: the capture lost them")                 \
	X(unasked, "responses to PSNs that nobody was seen to send, which are ignored")

struct an_counters {
#define X(f, s) uint64_t f;
	AN_COUNTERS(X)
#undef X
};

struct an_key {
	uint32_t vni; /* 0: not encapsulated */
	struct rwy_ip src, dst;
	uint32_t dqpn;
};

/* A moment of a flow for plots. */
enum an_mark {
	AN_MARK_SENT,
	AN_MARK_RESENT,
	AN_MARK_ACK,
	AN_MARK_NAK,
	AN_MARK_RNR,
	AN_MARK_TIMEOUT,
	AN_MARK_CNP
};
struct an_point {
	rwy_time at;
	uint64_t psn; /* unwrapped: packets since the flow's first PSN */
	uint8_t mark; /* enum an_mark */
};

/*
 * Payload over time, from the flow's first packet on. The width doubles when time runs out of bins.
 */
#define AN_BINS 256
struct an_bins {
	rwy_dur width;
	uint64_t fresh[AN_BINS], again[AN_BINS]; /* bytes for the first time; bytes of repeats */
};

/* A conclusion, most important first. */
struct an_finding {
	const char *word; /* "window", "loss", "rnr", ...: stable, for programs */
	char text[320];   /* for people: one or two sentences */
};
#define AN_FINDINGS_MAX 8

/* The requester's side, from the CM messages in the capture. */
struct an_cm {
	bool known;
	uint8_t retry_count, ack_timeout; /* ack_timeout: 4.096 us * 2^n */
	uint8_t rnr_retry;                /* 7: for ever */
	uint8_t read_depth;               /* READs and ATOMICs outstanding at most */
};

/* The responses that travel in a flow; internal (pair.c). */
struct an_given {
	rwy_time first, last; /* 0: there was none */
	roce_psn psn;         /* of the last one */
	uint32_t odd;         /* in a row that do not fit the peer, or any flow */
};

/* The packet that was the last one in a flow; internal (copy.c). */
struct an_seen {
	uint64_t mark;
	rwy_time at;
	uint64_t place; /* in the capture; 0: none was */
};

struct an_flow {
	struct an_key key;
	struct an_cm cm;
	uint32_t again;       /* connections that CM set up behind others */
	struct an_flow *peer; /* NULL: no packet of the other direction is known to belong to it */
	rwy_time first, last; /* of its requests and their responses */
	struct an_counters c;
	uint32_t pmtu; /* largest payload, rounded up to a path MTU; 0: none seen */
	rwy_dur phase[AN_PHASE_COUNT];
	struct an_hist rtt;        /* request to its ACK, not of repeated ones */
	struct an_hist completion; /* first packet of a message to its ACK or last response */
	struct an_hist reaction;   /* ACK to the next packet, where that waited for it */
	struct an_hist waited;     /* rtt, of the ACKs that were waited for because of the window */
	struct an_hist timer;      /* last sign of life to a repeat by timeout */
	uint64_t most_bytes;       /* outstanding at most */
	uint32_t most_messages, most_reads;
	uint8_t fatal; /* AETH syndrome of the NAK that ended it; 0: none */
	bool stalled;  /* repeats at the end, and no answer any more */
	uint32_t stalled_resends;
	struct an_bins bins;
	struct an_point *point; /* decimated */
	size_t points;
	struct an_finding finding[AN_FINDINGS_MAX];
	unsigned findings;
	struct an_given given;
	struct an_seen seen;
	struct an_requester *rq; /* this and the next two are internal */
	struct an_open *open;    /* it has requests and no peer: its answers are looked for */
	void *user;              /* of an_watch()'s callee; NULL in a new flow */
	struct an_flow *next;
};

/* The whole capture. */
struct an_totals {
	uint64_t packets;     /* in the capture */
	uint64_t roce;        /* that are RoCEv2 of a known transport */
	uint64_t malformed;   /* RoCEv2 that does not parse */
	uint64_t cut;         /* shorter than on the wire: ICRC not checked */
	uint64_t other;       /* RoCEv2 that belongs to no RC connection: CM, UD, UC */
	uint64_t copies;      /* packets that the capture has once more; each counts once */
	uint64_t unpaired;    /* responses whose requester is not known */
	uint64_t backwards;   /* packets with an earlier time than the one before */
	rwy_time first, last; /* time of the first and of the last packet */
};

struct an;
/* points: at most so many plot points a flow, 0 = none. NULL: no memory. */
struct an *an_new(size_t points);
void an_free(struct an *a);
/*
 * One Ethernet frame (or a bare IP packet, see `ip`) of wire_len bytes, of which len were captured.
 * at: since any epoch. Frames that are not RoCEv2 are counted. RWY_ENOMEM ends the analysis.
 */
int an_frame(struct an *a, rwy_time at, const uint8_t *frame, uint32_t len, uint32_t wire_len, bool ip);
/*
 * Shows each RC packet whose ICRC is good or was not captured, in the flow that it travels in, and
 * each CM packet, with f NULL. pkt lies in memory of `a` and is valid during the call; its first
 * `captured` bytes from the IP header on are known, the rest is zero. vni: as in an_key. What saw()
 * returns, other than 0, ends the analysis.
 */
typedef int an_saw(
    void *ctx, struct an_flow *f, uint32_t vni, const struct roce_pkt *pkt, uint32_t captured, rwy_time now);
void an_watch(struct an *a, an_saw *saw, void *ctx);
/* After the last packet: findings, stalls. */
void an_end(struct an *a);
/* In the order of their first packet; flows without requests are among them. */
const struct an_flow *an_flows(const struct an *a);
const struct an_totals *an_totals(const struct an *a);

#endif
