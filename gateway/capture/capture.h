/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capture on a running gateway (docs/capture.md). A capture has a ring for each worker, into which
 * it copies packets that the filter takes; a thread of its own writes them as pcapng, into memory
 * that the reader has, too, or into a buffer from which the API's thread reads. One capture runs at
 * a time. Workers find it by publication (gateway/publish.h) and never wait: what does not fit is
 * counted.
 */
#ifndef GATEWAY_CAPTURE_CAPTURE_H
#define GATEWAY_CAPTURE_CAPTURE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "gateway/app.h"
#include "gateway/capture/filter.h"
#include "gateway/capture/ring.h"

#define GW_CAP_SNAP_MAX 9728 /* the longest frame of any port */
#define GW_CAP_IFS      (CONF_PORTS_MAX * 2)
#define GW_CAP_BURST    64 /* frames of one transmission */

/* --- for the API ------------------------------------------------------------------------------ */

struct gw_cap_cfg {
	struct gw_cap_filter filter;
	uint32_t snap;    /* bytes of a packet, 1 .. GW_CAP_SNAP_MAX */
	uint64_t rate;    /* packets a second; 0: no limit */
	uint64_t count;   /* it ends after so many; 0: no limit */
	uint64_t seconds; /* or after so long */
	/* of the section header; copied. Texts up to a NULL. */
	const char *const *comment;
};

struct gw_cap_session;

/*
 * Begins a capture. wake(ctx) is called, with the capture's lock held, when bytes or the end have
 * come after gw_cap_read() had nothing. While the reader waits, gone(ctx) is asked now and then
 * whether it has left. RWY_EEXIST: one runs; RWY_ENOMEM. A failed one leaves nothing.
 */
struct gw_cap_reader {
	void (*wake)(void *ctx);
	bool (*gone)(void *ctx);
	/* Called by gw_cap_read(), with the lock held, before it returns 0. */
	void (*wait)(void *ctx);
	/*
	 * Not NULL: instead of all of these and gw_cap_read(), the reader has the stream in memory
	 * (base/slots.h), from gw_cap_attach() on. This is called once after it, on the capture's
	 * thread: the capture is over, and needs the socket no more.
	 */
	void (*over)(void *ctx);
	void *ctx;
};
RWY_MUST_CHECK int gw_cap_begin(struct gw_cap_session **out, struct gw_app *app, const struct gw_cap_cfg *cfg,
    const struct gw_cap_reader *reader);
/* Sends the memory over the socket. False: the reader is gone, or the capture is over and the
 * memory has all of it; over() is not called. */
bool gw_cap_attach(struct gw_cap_session *s, int socket);
/* Takes up to max bytes. 0: nothing now, wake() follows; -1: the capture has ended. */
ssize_t gw_cap_read(struct gw_cap_session *s, void *buf, size_t max);
/* The reader leaves: calls none of its functions afterwards. The capture ends by itself. */
void gw_cap_leave(struct gw_cap_session *s);
/*
 * Any thread: ends the capture that runs; its reader gets the rest, with the last statistics.
 * False: none runs.
 */
bool gw_cap_end(void);
/* Ends the capture, if one runs, and waits for its thread: before the HTTP server stops. No other
 * one begins. */
void gw_cap_stop(void);

/* --- for workers ------------------------------------------------------------------------------ */

/*
 * Counters that say what became of a packet, by group: `now` is where one group counts, `before`
 * what it counted when it was looked at last; both begin at the group's first reason. `asked` has
 * all bits of a counter that says something, and none of others.
 */
struct gw_cap_watch {
	uint64_t before[GW_CAP_REASONS], asked[GW_CAP_REASONS];
	uint8_t says[GW_CAP_REASONS]; /* enum gw_cap_says */
	bool made;
};

/* A received frame, from its bytes to the decision about it. */
struct gw_cap_rx {
	struct gw_cap_facts facts;
	struct gw_cap_rec *rec; /* its bytes, in the ring; NULL: no room, or unwanted */
	uint32_t end;           /* of the record: what `next` of the ring was then */
	uint32_t wire_len;
	uint8_t port;
	bool wanted; /* as far as was known when it came */
};

struct gw_capture;
/* One worker's part. The worker writes, but for the ring's tail. */
struct gw_cap_worker {
	struct gw_capture *cap;
	struct gw_counters *c; /* the worker's own counters */
	struct gw_cap_ring ring;
	uint32_t kept; /* end of the ring's last record that stays */
	bool open;     /* records before it may not stay: not to be published yet */
	/* by interface: port * 2, and one more for stages out */
	_Atomic uint64_t taken[GW_CAP_IFS]; /* by the filter */
	_Atomic uint64_t lost[GW_CAP_IFS];  /* of these: the ring was full, or the rate exceeded */
	struct gw_cap_frags frags;
	struct gw_cap_watch watch;
	/* the burst that is received, and for each packet that waits for the engine, its frame */
	struct gw_cap_rx rx[GW_CAP_BURST];
	uint8_t waiting[GW_CAP_BURST];
	unsigned rx_n;
	uint8_t frame[GW_CAP_SNAP_MAX]; /* of a frame that is not in one piece */
	/* of the frames that are being sent; NULL: none */
	struct gw_cap_rec *sending[GW_CAP_BURST];
	uint64_t relayed; /* id of the packet that a relay is sending: it gave it other addresses */
};

struct gw_capture { /* published */
	struct gw_cap_filter filter;
	uint32_t snap;
	bool limited;           /* by `budget` */
	_Atomic int64_t budget; /* packets that may still be taken; the capture's thread adds */
	unsigned workers;
	_Atomic unsigned holders; /* the publisher and the session; the last one frees it */
	_Atomic bool asleep;      /* the capture's thread: a worker whose ring fills wakes it, */
	int wake_fd;              /*   by this */
	struct gw_cap_worker *worker[GW_WORKERS_MAX];
};

/* Number of the interface of a port and stage. */
static inline unsigned gw_cap_if(unsigned port, unsigned stage)
{
	return port * 2 + (stage == GW_CAP_WAN_OUT || stage == GW_CAP_LAN_OUT);
}

/* The worker's part of the capture in force; NULL: none is. */
static inline struct gw_cap_worker *gw_cap_of(const struct gw_capture *c, unsigned worker)
{
	return c ? c->worker[worker] : NULL;
}

/* A place for a frame of wire_len bytes, up to the snap length; NULL: the ring is full. It stays
 * with gw_cap_keep(). */
struct gw_cap_rec *gw_cap_place(struct gw_cap_worker *cw, uint32_t wire_len);
/*
 * A packet that the filter takes, counted on its interface, with its bytes in r; NULL: there was no
 * place. False: it is lost, which is counted, too.
 */
bool gw_cap_keep(struct gw_cap_worker *cw, struct gw_cap_rec *r, uint32_t end, const struct gw_cap_facts *f,
    unsigned port, rwy_time now, uint32_t wire_len);
/* The whole of it: asks the filter, copies the parts, up to the snap length, and publishes. */
void gw_cap_put(struct gw_cap_worker *cw, const struct gw_cap_facts *f, unsigned port, rwy_time now,
    const struct iovec *part, unsigned parts);
/* Publishes what stays, unless the ring has frames that are not decided yet. */
void gw_cap_publish(struct gw_cap_worker *cw);

/* A capture of this configuration with one holder, and all its memory. NULL: out of memory. */
struct gw_capture *gw_capture_new(const struct gw_app *app, const struct gw_cap_cfg *cfg);
void gw_capture_release(void *capture); /* one holder less; the last one frees it */
/* Zeroed memory in whole cache lines, of large pages if it is large. free() it. NULL: there is
 * none. */
void *gw_cap_zeroed(size_t size);

/* --- text.c ----------------------------------------------------------------------------------- */

#define GW_CAP_COMMENT 320
/* Texts of flows seen of late, by hash; zeroed memory is empty. */
#define GW_CAP_FLOWS 1024
struct gw_cap_flow_text {
	struct rwy_ip src, dst;
	uint32_t vni, dqpn, sqpn;
	bool used, roce;
	uint8_t flow_len, conn_len;
	char text[192]; /* " flow=..", " conn=.." */
};
struct gw_cap_texts {
	struct gw_cap_flow_text v[GW_CAP_FLOWS];
};
/* The comment of a packet: stage= flow= decision= reason= conn= event=. events: as gw_cap_events(),
 * and GW_CAP_AGAIN. Returns its length. */
size_t gw_cap_comment(
    struct gw_cap_texts *t, char out[GW_CAP_COMMENT], const struct gw_cap_facts *f, unsigned events);

#endif
