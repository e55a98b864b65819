/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder of an engine: a ring of its last decisions. It is always on. A decision is
 * what an operator asks about later: a state that changed, a NAK, a timeout, ACKs that wait, the
 * reason of a failure; never an ordinary packet. docs/recorder.md lists the kinds.
 *
 * Memory of the caller may outlive the process (the gateway maps a file). An entry is written so
 * that a reader, or who reads the memory after a crash, sees it whole or not at all. One writer,
 * the engine's thread, which does not allocate, lock or wait. Any thread reads.
 */
#ifndef ENGINE_RECORDER_H
#define ENGINE_RECORDER_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/ip.h"
#include "rwy/time.h"

struct eng;

/*
 * X(enumerator, name, sentence): kinds of decisions. %side, %from, %to, %value, %psn and %name in
 * a sentence stand for fields of the entry.
 * Kinds of OFTEN may come with many packets in a row: of one connection only some are recorded in a
 * short time, and LEFT_OUT says how many are not.
 */
#define ENG_RECORD_SELDOM(X)                                                                                 \
	X(ENG_REC_START, "start", "the worker's engine starts")                                              \
	X(ENG_REC_TUNNEL, "tunnel", "tunnel %name: %to")                                                     \
	X(ENG_REC_CONGESTED, "congested", "tunnel %name, path %value: congested by %to")                     \
	X(ENG_REC_DRAIN, "drain", "draining: %from -> %to")                                                  \
	X(ENG_REC_BEGIN, "begin", "%side enters the flow table")                                             \
	X(ENG_REC_FORGET, "forget", "%side forgotten, %value s after its last packet")                       \
	X(ENG_REC_RESPONDER, "responder", "responder: %from -> %to, PSN %psn")                               \
	X(ENG_REC_REQUESTER, "requester", "requester: %from -> %to, PSN %psn")                               \
	X(ENG_REC_PAIR, "pair", "paired: both QPNs known by %to")                                            \
	X(ENG_REC_UNPAIR, "unpair", "no longer paired")                                                      \
	X(ENG_REC_TURN, "turn", "pairing: the host gets its first packet")                                   \
	X(ENG_REC_TURN_END, "turn_end", "pairing: no answer in time, others go first")                       \
	X(ENG_REC_RESTART, "restart", "a new connection at PSN %psn (%to); of the old one dropped: %value")  \
	X(ENG_REC_OPENED, "opened", "the other gateway opens the flow of requests")                          \
	X(ENG_REC_REFUSED_FLOW, "refused_flow", "the other gateway refuses the flow of requests")            \
	X(ENG_REC_SENT, "sent", "%to sent to the other gateway, PSN %psn")                                   \
	X(ENG_REC_OWED, "owed", "no buffer for %to to the other gateway: tried again")                       \
	X(ENG_REC_RECEIVED, "received", "%to from the other gateway, PSN %psn")                              \
	X(ENG_REC_FAIL, "fail", "%side failed at PSN %psn: %value")                                          \
	X(ENG_REC_LOST, "lost", "the local queue pair is ended: %value")                                     \
	X(ENG_REC_IMPATIENT, "impatient", "the host waits %value ms for an ACK: too short for this path")    \
	X(ENG_REC_DISCONNECT, "disconnect", "CM: the hosts disconnect")                                      \
	X(ENG_REC_DREQ_WAITS, "dreq_waits", "the host's DREQ waits until its requests are delivered")        \
	X(ENG_REC_DREQ_SENT, "dreq_sent", "the host's DREQ goes to the far host")                            \
	X(ENG_REC_LEFT_OUT, "left_out", "entries of this connection left out here: %value")

#define ENG_RECORD_OFTEN(X)                                                                                  \
	X(ENG_REC_NAK_SENT, "nak_sent", "NAK to the host at PSN %psn: %to")                                  \
	X(ENG_REC_NAK_RECEIVED, "nak_received", "NAK of the host at PSN %psn: %to")                          \
	X(ENG_REC_RNR_NAK, "rnr_nak", "RNR NAK of the host at PSN %psn: asked again in %value us")           \
	X(ENG_REC_IMPLIED_NAK, "implied_nak", "answer to PSN %psn lost on the LAN: asked again")             \
	X(ENG_REC_TIMEOUT, "timeout", "no answer of the host to PSN %psn, in a row: %value")                 \
	X(ENG_REC_RESENT, "resent", "sent to the host again from PSN %psn on: %value")                       \
	X(ENG_REC_WITHHELD, "withheld", "ACKs to the host wait for %to, %value KiB in custody")              \
	X(ENG_REC_RELEASED, "released", "ACKs to the host go on after %value us")                            \
	X(ENG_REC_SINGLE, "single", "one ACK for a host whose timer ran out, PSN %psn")                      \
	X(ENG_REC_REFUSED, "refused", "refused at PSN %psn: %value")                                         \
	X(ENG_REC_ROOM, "room", "memory again: the host is asked for PSN %psn")                              \
	X(ENG_REC_READ_HELD, "read_held", "no memory for a READ response, PSN %psn: asked again later")

#define ENG_RECORD_KINDS(X) ENG_RECORD_SELDOM(X) ENG_RECORD_OFTEN(X)

enum eng_record_kind {
	ENG_REC_NONE,
#define X(e, n, s) e,
	ENG_RECORD_KINDS(X)
#undef X
	    ENG_REC_KINDS
};
#define ENG_REC_OFTEN ENG_REC_NAK_SENT /* this one and those after it */

/* %to of WITHHELD: what ACKs wait for. */
enum eng_record_wait { ENG_WAIT_MEMORY, ENG_WAIT_READ };
/* %to of TUNNEL. */
enum eng_record_tunnel { ENG_TUNNEL_DOWN, ENG_TUNNEL_UP, ENG_TUNNEL_RESTARTED };
/* The part that decided. */
enum eng_record_side { ENG_OF_ENGINE, ENG_OF_RESPONDER, ENG_OF_REQUESTER };

/* One decision. Fields that its kind does not use are 0. */
struct eng_record {
	uint32_t seq; /* its number in the ring, from 1 on; wraps, and is never 0 */
	uint32_t value;
	rwy_time at; /* never before that of the entry with the number before */
	union {
		struct {
			struct rwy_ip local, remote;
		};
		char name[32]; /* side ENG_OF_ENGINE: of the tunnel, or "" */
	};
	uint32_t local_qpn : 24, kind : 8; /* QPNs: 0: not known */
	uint32_t remote_qpn : 24, side : 8;
	uint32_t vni : 24, from : 8; /* of the tenant; 0: plain LAN */
	uint32_t psn : 24, to : 8;
};
static_assert(sizeof(struct eng_record) == 64, "one cache line");

/* A struct eng_record whose words are read while they are written. */
struct eng_record_slot {
	_Atomic uint64_t word[8];
};
static_assert(sizeof(struct eng_record_slot) == sizeof(struct eng_record), "the same bytes");

/* Its size is ENG_RECORDER_SIZE(entries), and it begins with zeros. Best aligned to 64 bytes. */
struct eng_recorder_ring {
	_Atomic uint32_t newest; /* number of the newest entry; 0: there is none */
	uint32_t entries;        /* a power of two; set by eng_new */
	uint8_t reserved[56];
	struct eng_record_slot slot[];
};
static_assert(sizeof(struct eng_recorder_ring) == 64, "slots are cache lines");
#define ENG_RECORDER_SIZE(entries) (sizeof(struct eng_recorder_ring) + 64 * (size_t)(entries))
#define ENG_RECORDER_ENTRIES       16384u     /* default; 1 MiB */
#define ENG_RECORDER_MAX           (1u << 20) /* entries of a ring */

/* Any thread: the ring of an engine, for as long as the engine lives. */
const struct eng_recorder_ring *eng_recorder(const struct eng *e);
/*
 * Any thread: copies the entry with this number. False: it is not there, no more or not yet. Begin
 * with ring->newest and go down, at most ring->entries times.
 */
bool eng_recorder_get(const struct eng_recorder_ring *ring, uint32_t seq, struct eng_record *out);

/* --- recorder_text.c: any thread; static text --- */
const char *eng_record_name(enum eng_record_kind kind); /* "nak_sent" */
/* The sentence as in ENG_RECORD_KINDS. */
const char *eng_record_sentence(enum eng_record_kind kind);
/* The kind of a name; ENG_REC_NONE: there is none. */
enum eng_record_kind eng_record_find(const char *name);
const char *eng_record_side_name(unsigned side); /* "engine", "responder", "requester" */
/* Words for the field, or "": the kind does not use it, or it is not a name. */
const char *eng_record_from(const struct eng_record *r);
const char *eng_record_to(const struct eng_record *r);
/* The same for `value`: a reason, or a counter's sentence. */
const char *eng_record_why(const struct eng_record *r);
/* Writes the sentence with its fields; cut at size - 1. */
void eng_record_say(const struct eng_record *r, char *out, size_t size);

/* --- a file of rings that outlives a process --- */
#define ENG_RECORDER_MAGIC UINT64_C(0x5257595245433031) /* "RWYREC01" */
#define ENG_RECORDER_HEAD  4096u                        /* bytes in front of the rings */
/* The beginning of the file. Rings follow at ENG_RECORDER_HEAD, ENG_RECORDER_SIZE(entries) each. */
struct eng_recorder_head {
	uint64_t magic;
	uint32_t workers, entries;
	_Atomic uint64_t wall;  /* UTC of the engines' time 0, ns; once a second */
	_Atomic uint64_t alive; /* the engines' time, once a second */
	_Atomic uint32_t ended; /* 1: the process stopped in order */
	uint32_t pid;
	char name[64], version[32]; /* of the gateway */
};
static_assert(sizeof(struct eng_recorder_head) <= ENG_RECORDER_HEAD, "it fits");
/* True: a file of `size` bytes with this beginning is complete. */
bool eng_recorder_head_ok(const struct eng_recorder_head *h, uint64_t size);
/* The ring of a worker in such a file; NULL: it has not begun. */
const struct eng_recorder_ring *eng_recorder_in(const struct eng_recorder_head *h, unsigned worker);

#endif
