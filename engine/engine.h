/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of one worker: everything a gateway does with packets, without I/O. It joins the
 * core's parts: flow table, both sides of connections, pairing, WAN tunnels, custody. The DPDK
 * gateway, the simulators and the fuzzers run it.
 *
 * Thread: an engine belongs to one worker. Its functions run on that worker's thread, except those
 * that say "any thread". Engines share nothing but the directory, and send each other notes: the
 * gateway gives all packets of an address pair and tenant to one worker, or all packets of a
 * connection (eng_cfg.directory).
 *
 * Times are rwy_time and rwy_dur, nanoseconds of the caller's clock; `now` never goes back. Sizes
 * are bytes, rates bytes a second. An int that is an error is one of rwy/err.h, 0 is success.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/counters.h"
#include "engine/directory.h"
#include "engine/journal.h"
#include "engine/recorder.h"
#include "engine/report.h"
#include "engine/states.h"
#include "roce/psn.h"
#include "rwy/buf.h"
#include "rwy/err.h"
#include "rwy/ip.h"
#include "rwy/time.h"
#include "wan/wan.h"

struct eng;
struct eng_note;

#define ENG_TUNNELS_MAX  64
#define ENG_PREFIXES_MAX 256

/*
 * A request is acknowledged when the near gateway, the far gateway or the far host has it; `causal`
 * is `near` with order between the connections of two hosts (docs/completion.md); `site`: when the
 * standby gateway has it, too, and as `near` while there is none (docs/standby.md).
 */
enum eng_ack_mode { ENG_ACK_NEAR, ENG_ACK_FAR, ENG_ACK_END, ENG_ACK_CAUSAL, ENG_ACK_SITE };

/*
 * Right to begin an RC connection. OPEN: any host. CM: hosts whose CM messages went through the
 * gateway. CONTROLLER: pairs that steering names. Connections that exist go on.
 */
enum eng_admission { ENG_ADMIT_OPEN, ENG_ADMIT_CM, ENG_ADMIT_CONTROLLER };
/* Another mode for the requests of some local hosts to some hosts behind tunnels. */
#define ENG_MODES_MAX 16
struct eng_mode {
	struct rwy_ip from, to;
	uint8_t from_len, to_len; /* 0..128, as in eng_prefix */
	uint8_t mode;             /* enum eng_ack_mode */
};

/* Static text. */
const char *eng_ack_mode_name(enum eng_ack_mode m);

/* Destinations behind a tunnel. */
struct eng_prefix {
	struct rwy_ip addr;
	uint8_t len; /* 0..128; IPv4 prefixes are mapped: 96 + length */
	uint8_t tunnel;
};

struct eng_tunnel_cfg {
	char name[ENG_NAME_MAX];
	uint16_t weight;    /* its share of address pairs among tunnels with the same prefix */
	uint64_t peer;      /* rwy_spread_id of the gateway at its other end; 0: not known */
	bool late;          /* it comes and goes: the witness's only if there is no other */
	struct wan_cfg wan; /* the engine sets ctx, ops, bufs and fec_code, the caller the rest */
};

/*
 * How long a local host may be silent. Where CM named a connection's counts and its timeout, these
 * decide when it is given up; docs/rc-semantics.md, "How long the far gateway waits".
 */
struct eng_timers {
	rwy_dur timeout_min, timeout_max; /* bounds of the time until it is asked again, not 0 */
	uint8_t retry;                    /* repeats without progress before it is given up */
	uint8_t rnr_retry;                /* 0..6; 7: without limit */
};

struct eng_board;
struct eng_hosts;
struct eng_lanes;

/* The program tells the program of the other gateway of the pair (eng_standby_note). */
enum eng_standby_kind {
	ENG_STANDBY_NEIGHBOURS, /* neighbours of its kernel */
	ENG_STANDBY_LINKS       /* links of a relay (proxy/mirror.h) */
};

/*
 * This gateway is one of a pair (standby.h). Both have the same addresses and tunnels, and one
 * tunnel of their own; its keepalive is the time after which silence is noticed, divided by four.
 */
struct eng_standby_cfg {
	bool on;
	uint8_t tunnel; /* number of the pair's own tunnel; eng_sb_witness(): the witness's */
	rwy_dur wait;   /* after the start: the other gateway is waited for so long */
	/*
	 * All workers of this gateway share it, and it outlives their engines. Their number is
	 * eng_cfg.workers, `worker` 0 leads. Both gateways have the same number. NULL: one worker.
	 */
	struct eng_board *board;
};

/*
 * For so long after it came up again a far gateway tells of connections that may be lost (peer.h),
 * and a second for the way.
 */
#define ENG_TELLS_FOR (66 * RWY_SEC)

struct eng_cfg {
	unsigned tunnels, prefixes;
	struct eng_tunnel_cfg tunnel[ENG_TUNNELS_MAX];
	struct eng_prefix prefix[ENG_PREFIXES_MAX]; /* of the plain LAN; the longest match wins */
	enum eng_ack_mode ack_mode;                 /* of the plain LAN */
	enum eng_admission admission;               /* likewise */
	struct eng_mode mode[ENG_MODES_MAX];        /* and exceptions; the first that matches */
	unsigned modes;
	uint32_t conns_max;       /* flow table entries (sides) of this worker */
	uint32_t half_open_max;   /* unpaired flows at most */
	rwy_dur idle_expiry;      /* silence after which a flow without custody is forgotten */
	uint32_t host_window;     /* requests in flight to a local host, each connection */
	struct eng_timers timers; /* of the plain LAN */
	/* Bytes in custody above which ACKs are withheld: of one connection, of this worker. */
	uint64_t custody_conn, custody_total;
	rwy_dur causal_beat; /* mode `causal`: from one ACK of busy connections to the next */
	uint32_t buf_cost;   /* least bytes that a packet counts: what a buffer takes */
	/*
	 * Bytes of buffers held at most (memory.h), of one direction of a connection, of this
	 * worker: requests in custody or parked, READ responses on their way back. 0: a quarter
	 * more than custody_conn and custody_total, and at least a host's window.
	 */
	uint64_t memory_conn, memory_total;
	uint64_t unpaired_total; /* of them for unpaired flows; 0: a quarter */
	/*
	 * Near source: bytes of a flow that wait for the WAN. CNPs begin at np_min with a
	 * probability that rises to np_percent (1..100) at np_max; above np_max each packet gets
	 * one. np_max 0: off.
	 */
	uint64_t np_min, np_max;
	uint32_t np_percent;
	/* Near destination: CNPs of a local host set the rate towards it (DCQCN). */
	bool rp;
	/* fastest port of a local host, the first value of its rate; 0: not known */
	uint64_t lan_Bps;
	bool e2e; /* end to end: a host's rate limits the data in flight of its flow */
	/*
	 * Bytes of buffers of READ responses kept for replays: of one connection, of this worker.
	 */
	uint64_t read_cache_conn, read_cache_total;
	/* for random numbers: epochs, indices, incarnations; for the flow table */
	uint64_t seed;
	uint64_t gateway; /* rwy_spread_id of this gateway; 0: not known */
	/*
	 * CM messages and datagrams of a tunnel may be for a host behind another one: lan_tx gets
	 * them, and its owner gives them to eng_tenant_rx() as from their source (a relay between
	 * others). Else they are dropped.
	 */
	bool onward;
	/*
	 * Memory that outlives the process (journal.h). The caller's, for as long as the engine
	 * lives; entries of an earlier process in it are taken up. NULL: none.
	 */
	struct eng_journal_entry *journal;
	uint32_t journal_n; /* its entries */
	/*
	 * The entries are all that the process before promised: it ended a moment ago, and found
	 * room for each. False: some may be missing, as after the machine's death; far gateways
	 * tell what they know (peer.h).
	 */
	bool journal_whole;
	/* Hosts may still answer what a process before this one asked, also if it left no entry. */
	bool follows;
	/*
	 * Set to 1 when a connection finds no free entry, or an entry is released because it is too
	 * old: the next process's journal is not whole. In the same memory; may be NULL.
	 */
	_Atomic uint32_t *journal_gap;
	/*
	 * For so long after eng_new() entries of an earlier process are taken up, and released
	 * later: their hosts have given up by then, or another gateway has served them. 0: always.
	 */
	rwy_dur journal_for;
	/*
	 * One of a pair: the term (standby.h) in which this gateway served last, in the same kind
	 * of memory; 0: it did not. NULL: it does not outlive the process.
	 */
	_Atomic uint64_t *term;
	rwy_dur probe_timeout; /* pairing: an unpaired flow's host has this long to answer */
	struct eng_standby_cfg standby;
	/*
	 * Steering by queue pair (directory.h): the table that all engines of this gateway share,
	 * and longer than any of them lives; NULL: every connection is at the home worker of its
	 * address pair. `worker` is this engine's number, below `workers`. Not with a standby, nor
	 * with ack mode `causal`.
	 */
	struct eng_directory *directory;
	uint8_t worker, workers;
	/* All workers share it (lanes.h), and it outlives their engines. NULL: one worker. */
	struct eng_lanes *lanes;
	struct eng_hosts *hosts; /* the same (hosts.h), all zero at first */
	/*
	 * The flight recorder (recorder.h): its entries, a power of two; 0: ENG_RECORDER_ENTRIES.
	 * Its memory is the caller's, for as long as the engine lives; NULL: the engine's own.
	 */
	uint32_t recorder_n;
	struct eng_recorder_ring *recorder;
};
/* The defaults. Tunnels, prefixes, seed, gateway and journal are 0. */
void eng_cfg_default(struct eng_cfg *cfg);

/* A flow's cached next hop and priority towards the LAN; zero in a new flow. */
struct eng_nexthop {
	/* the gateway's cache of the next hop; of a relay's link; opaque to the engine */
	uint64_t cache[2], link;
	uint8_t pcp; /* of packets that the engine makes; as in struct rwy_buf */
};

/* A packet for a local host, from its IP header on. Either buf or bytes has it. */
struct eng_lan_tx {
	uint32_t tenant;
	struct rwy_buf *buf;  /* NULL: bytes */
	const uint8_t *bytes; /* a packet that the engine made; valid during the call */
	uint32_t len;         /* bytes */
	/* buf moves to the callee; else it stays in custody, and the callee takes a reference. */
	bool own;
	uint8_t pcp; /* for a VLAN tag, as in struct rwy_buf; 0: not known */
	/* eng_cfg.onward: counted, and shown only: it came by another tunnel than its source's */
	bool foreign;
	const struct rwy_ip *dst;
	struct eng_nexthop *nh; /* may be NULL */
};

/* Calls of the engine, all on its worker's thread, from inside one of its functions. */
struct eng_ops {
	void (*lan_tx)(void *ctx, const struct eng_lan_tx *tx);
	/*
	 * lan_tx probably gets packets with this next hop at the end of this turn: the callee may
	 * prefetch what it needs. May be NULL.
	 */
	void (*lan_ahead)(void *ctx, const struct eng_nexthop *nh);
	/*
	 * A UDP datagram for a path of the tunnel, or its carrier; struct wan_tx has the ownership.
	 */
	void (*wan_tx)(void *ctx, unsigned tunnel, const struct wan_tx *tx);
	/*
	 * A log line without newline, level 0 (error) .. 4 (debug); not for each packet. May be
	 * NULL.
	 */
	void (*log)(void *ctx, int level, const char *msg);
	/*
	 * A path stays congested (s has the sign, the begin and the measured values), or is no
	 * longer so: time to move the tunnel to another carrier, or back. May be NULL.
	 */
	void (*path_congested)(void *ctx, unsigned tunnel, uint8_t path, const struct wan_congest_state *s);
	/* A tunnel came up or went silent. May be NULL. */
	void (*tunnel_state)(void *ctx, unsigned tunnel, bool up, rwy_time now);
	/*
	 * One of a pair: it serves hosts from now on, so they must find it; or it does not.
	 * replaced: the other gateway has the tunnels for good, and this engine must be freed. May
	 * be NULL.
	 */
	void (*serves)(void *ctx, bool serves, bool replaced, rwy_time now);
	/*
	 * There is news on the board, or for other lanes, which workers share: the others should
	 * have a turn soon. NULL only without either.
	 */
	void (*board_changed)(void *ctx);
	/* One of a pair: a note of the other gateway (eng_standby_note). May be NULL. */
	void (*standby_note)(
	    void *ctx, enum eng_standby_kind kind, const uint8_t *bytes, uint32_t len, rwy_time now);
	/*
	 * One of a pair: whether the standby has what it must have of the program, too, in this
	 * round of copies (eng_standby_round). Asked until it is true. NULL: there is nothing.
	 */
	bool (*standby_whole)(void *ctx, uint32_t round);
	/*
	 * A note for the engine of another worker (note.h), which gets it before any packet that
	 * comes to that worker later. *n is copied. False: there is no room; its buffer stays the
	 * engine's. NULL only without a directory.
	 */
	bool (*note)(void *ctx, unsigned worker, const struct eng_note *n);
	/* Both QPNs of a connection are known (open), or it has ended. Once each. May be NULL. */
	void (*session)(void *ctx, bool open, const struct eng_session *s);
};

/*
 * A new engine in *out. cfg is copied; ops, ctx and the functions of bufs must outlive the engine.
 * Connections of the journal are taken up. RWY_ENOMEM, RWY_EINVAL: *out is not set.
 */
RWY_MUST_CHECK int eng_new(struct eng **out, const struct eng_cfg *cfg, const struct eng_ops *ops, void *ctx,
    struct rwy_bufs bufs, rwy_time now);
/*
 * Frees everything that it holds, buffers too. Journal entries stay, unless it is ENG_SETTLED. NULL
 * allowed.
 */
void eng_free(struct eng *e);

/*
 * IP packets of local hosts (data at the IP header) for hosts behind a tunnel, and the tenant of
 * each. Takes all n buffers. Parsed, checked, and handled at once; ACKs go out with eng_poll().
 */
void eng_tenant_rx(struct eng *e, struct rwy_buf **bufs, const uint16_t *tenants, unsigned n, rwy_time now);
/*
 * The same for a caller that follows each packet: seen(ctx, i) is called after packet i and before
 * packet i + 1. It may read counters and call eng_sender_qpn(), nothing else.
 */
void eng_tenant_rx_seen(struct eng *e, struct rwy_buf **bufs, const uint16_t *tenants, unsigned n,
    rwy_time now, void (*seen)(void *ctx, unsigned i), void *ctx);
/* A UDP payload from the tunnel's peer on `path`; ecn: bits of its IP header, 0..3. Takes b. */
void eng_wan_rx(struct eng *e, unsigned tunnel, uint8_t path, struct rwy_buf *b, uint8_t ecn, rwy_time now);
/*
 * The reliable carrier of a tunnel (TCP, QUIC or RDMA); wan/stream.h describes each function. Its
 * datagrams leave by eng_ops.wan_tx with wan_tx.stream set and come in by eng_stream_rx, which
 * takes b. eng_stream_use: sends by the carrier, or natively again. eng_stream_detour: what was
 * lost `after` times goes by it. Both: RWY_ENOMEM, RWY_ENOENT (no such tunnel), RWY_EINVAL
 * (`after`): nothing changed. eng_stream_room: sets its room, in datagrams and bytes.
 * eng_stream_lost: it broke, and the tunnel sends natively. eng_stream_inflight: bytes that it has
 * and the peer has not acknowledged. The others do nothing for a tunnel that does not exist.
 */
void eng_stream_rx(struct eng *e, unsigned tunnel, struct rwy_buf *b, rwy_time now);
RWY_MUST_CHECK int eng_stream_use(struct eng *e, unsigned tunnel, bool on, rwy_time now);
RWY_MUST_CHECK int eng_stream_detour(struct eng *e, unsigned tunnel, unsigned after, rwy_time now);
void eng_stream_room(struct eng *e, unsigned tunnel, uint32_t datagrams, uint64_t bytes);
void eng_stream_lost(struct eng *e, unsigned tunnel, rwy_time now);
uint64_t eng_stream_inflight(const struct eng *e, unsigned tunnel);
/* Recent rate, bytes per second; 0: not known. */
uint64_t eng_stream_rate(const struct eng *e, unsigned tunnel);
/*
 * One turn: timers, owed ACKs, requests for local hosts, datagrams. Call after each burst and at
 * eng_next(). Returns the amount of work, 0 when idle.
 */
unsigned eng_poll(struct eng *e, rwy_time now);
/* When eng_poll() has something to do at the latest; RWY_NEVER: only after a packet. */
rwy_time eng_next(const struct eng *e);

/*
 * Tenants. Each has an address space of its own: keys, pairs, routes. Tenant 0 is the plain LAN,
 * there from the start as eng_cfg says. Others are added, changed and removed while traffic runs.
 * Here a tenant is an index, between gateways its VNI.
 */
#define ENG_TENANTS_MAX 65536
struct eng_tenant_cfg {
	uint32_t vni; /* 1 .. 2^24 - 1; tenant 0: 0 */
	enum eng_ack_mode ack_mode;
	enum eng_admission admission;
	/* For connections that begin later; timeout_max 0: all as the plain LAN's. */
	struct eng_timers timers;
	const struct eng_mode *mode; /* exceptions, up to ENG_MODES_MAX; copied */
	unsigned modes;
	/* Flow table entries, unpaired flows; 0: only eng_cfg's bound. */
	uint32_t flows_max, half_open_max;
	uint64_t custody; /* bytes held above which its ACKs are withheld */
	/* Bytes held at most; 0: a quarter more, and at least a host's window more. */
	uint64_t memory;
	/*
	 * Bytes of eng_cfg.custody_total that are reserved for it. Above them it uses the part that
	 * is not reserved, like tenants without a reservation. The sum of all should not exceed the
	 * total.
	 */
	uint64_t reserve;
	/* Share of every tunnel in this worker. weight 0: it shares class 0 with other such
	 * tenants. */
	struct wan_class_cfg share;
	const struct eng_prefix *prefix; /* destinations behind tunnels; copied */
	unsigned prefixes;
};
/*
 * Adds tenant `idx` (1 .. ENG_TENANTS_MAX - 1) or changes it; its connections go on. An added
 * tenant's journal entries are taken up. RWY_EINVAL: index, VNI (0, too large, another tenant's),
 * share, or a tunnel that does not exist. RWY_EAGAIN: it is being removed. RWY_ENOMEM. Then nothing
 * has changed.
 */
RWY_MUST_CHECK int eng_tenant_set(
    struct eng *e, uint32_t idx, const struct eng_tenant_cfg *cfg, rwy_time now);
/*
 * The tenant accepts no new flow, and the sweep removes its connections in steps. True: it is
 * removed; false: call again later.
 */
bool eng_tenant_remove(struct eng *e, uint32_t idx);
/* False: no such tenant. */
bool eng_tenant_stats(const struct eng *e, uint32_t idx, struct eng_tenant_stats *out);

/*
 * Replaces all prefixes of tenant 0; copied. Connections stay in their tunnel. RWY_EINVAL: too
 * many, a length above 128, or a tunnel that does not exist.
 */
RWY_MUST_CHECK int eng_prefixes_set(struct eng *e, const struct eng_prefix *prefix, unsigned n);
/* The tunnel that a host of tenant 0 is behind; -1: none. */
int eng_route_plain(const struct eng *e, const struct rwy_ip *dst);
/* Length of the longest of those prefixes that has the host, 0..128; -1: it is behind no tunnel. */
int eng_route_plain_len(const struct eng *e, const struct rwy_ip *host);

/*
 * Several gateways at both sites. An address pair belongs to one pair of gateways: the winner of
 * weighted rendezvous hashing (rwy/spread.h) among all pairs with a tunnel, by the tunnels'
 * weights. Where peers are known this decides between an engine's own tunnels, too, so that both
 * sites choose the same. Plain LAN only.
 */
struct eng_candidate {          /* a tunnel of another gateway of this site */
	uint64_t gateway, peer; /* rwy_spread_id */
	uint64_t weight;
};
/*
 * Returns the index in cand of the tunnel that carries the pair of a local and a remote host; -1:
 * this gateway carries it, or no tunnel leads there. own: factor of the weights of this gateway's
 * tunnels. Computes one hash for each pair of gateways.
 */
int eng_candidate_find(const struct eng *e, const struct rwy_ip *local, const struct rwy_ip *remote,
    uint32_t own, const struct eng_candidate *cand, unsigned n);
/* This engine has the flow of the local host's requests to QP dqpn of the remote host. */
bool eng_has(const struct eng *e, const struct rwy_ip *local, const struct rwy_ip *remote, uint32_t dqpn);
/* The same, or an unpaired flow from the remote host waits for the local host's first response. */
bool eng_holds(const struct eng *e, const struct rwy_ip *local, const struct rwy_ip *remote, uint32_t dqpn);

/* Any thread: a hash of an address pair, equal for both directions. */
uint32_t eng_owner_hash(const struct rwy_ip *a, const struct rwy_ip *b);
/*
 * Any thread: the home worker of an address pair, the same for both directions and at both
 * gateways. vni: of its tenant; 0: none. workers: not 0.
 */
unsigned eng_owner(uint32_t vni, const struct rwy_ip *a, const struct rwy_ip *b, unsigned workers);

/*
 * Settling (`roceway drain`): before a gateway stops, the far hosts get all that its own hosts have
 * ACKs for, and these get the answers of their READs and ATOMICs. What a host has no ACK for, it
 * sends again to the next process.
 */
enum eng_settle_state {
	ENG_SERVING,
	ENG_SETTLING, /* requests are acknowledged when the far host has them, in every ack mode */
	ENG_CLOSING,  /* no new request is accepted; waits for the last answers */
	ENG_SETTLED,  /* the same, and nothing is owed: the engine may be freed at any time */
};
struct eng_settle_info {
	enum eng_settle_state state;
	uint32_t flows; /* that owe something, as of the last pass over all */
	uint64_t bytes; /* that they owe, an estimate */
	uint32_t kept;  /* that owe something that the standby of the pair has: not in `flows` */
};
/* Nothing if it settles already. eng_poll() goes on with it. */
void eng_settle_begin(struct eng *e, rwy_time now);
/* Serves again. Nothing if it does not settle. */
void eng_settle_cancel(struct eng *e, rwy_time now);
/* Copies how far settling is, as of the last pass over all connections. */
void eng_settle_get(const struct eng *e, struct eng_settle_info *out);
/*
 * One of a pair of gateways: its standby takes over at once, as if this gateway had died.
 * Connections of ack mode `site` go on there; those of other modes lose what they are owed, so
 * settle first. eng_ops.serves tells that this gateway serves no more. Later it tells that this
 * gateway is replaced (the standby serves), or that it serves again (the standby did not take over
 * in time). False: no standby has everything (the state is not `paired`); nothing happens.
 */
bool eng_standby_hand_over(struct eng *e, rwy_time now);
/*
 * One of a pair: tells the program of the other gateway something, 1 to ENG_NOTE_MAX bytes. Notes
 * arrive in order, and may be lost with the process at the other end. RWY_EAGAIN: nobody is there,
 * or there is no memory.
 */
#define ENG_NOTE_MAX 1024u
RWY_MUST_CHECK int eng_standby_note(
    struct eng *e, enum eng_standby_kind kind, const void *bytes, uint32_t len, rwy_time now);
/*
 * Changes each time copies for the standby begin; 0: there is none that gets copies. Notes of one
 * round go to one process.
 */
uint32_t eng_standby_round(const struct eng *e);
/* In mode `site` nothing is acknowledged now that the standby does not have. */
bool eng_standby_gates(const struct eng *e);

#endif
