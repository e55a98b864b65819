/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside gateway/carrier/: tunnels, their connections, and what workers and the thread share. All but
 * struct gw_link and the rings belongs to the thread, under `lock`: it holds it except while it sleeps.
 */
#ifndef GATEWAY_CARRIER_INTERNAL_H
#define GATEWAY_CARRIER_INTERNAL_H

#include <netinet/in.h>
#include <pthread.h>
#include <rte_ring.h>
#include <sys/socket.h>

#include "gateway/carrier/carrier.h"
#include "gateway/gw.h"
#include "gateway/port/mbuf.h"

#define GW_CONNS_MAX     512 /* sockets of all tunnels */
#define GW_CONNS_UNKNOWN 32  /* of them, whose tunnel is not known yet */
#define GW_CONN_RUN      64  /* datagrams taken from a worker for one connection at a time */
#define GW_LINK_RING     4096
/* Bytes waiting between a worker and the sockets at most: what TCP carries in 8 ms, within these. More would
 * only be a queue. */
#define GW_LINK_MIN (96u << 10)
#define GW_LINK_MAX (4u << 20)
#define GW_IN_RING  8192

/* Between the thread and one worker, of one tunnel. */
struct gw_link {
	struct rte_ring *out;   /* the worker puts, the thread takes */
	_Atomic uint32_t set;   /* the thread: number of the living set of connections, 0: none */
	_Atomic bool send;      /* the thread: send by it */
	_Atomic uint64_t taken; /* the thread: bytes that it took */

	_Alignas(64) _Atomic uint64_t inflight; /* the worker: handed over and not acknowledged */
	uint64_t given;                         /* the worker: bytes put */
	uint32_t seen;                          /* the worker: the set it knows of */
	bool on;                                /* the worker: it sends by it */
	bool failed;                            /* the worker: a datagram could not be handed over */
};

enum gw_conn_state { GW_CONN_FREE, GW_CONN_CONNECTING, GW_CONN_HELLO, GW_CONN_OPEN };

/* The kernel's counts of a connection when they were read last: segments with data, those of them that were
 * sent again, duplicates that the peer told of, segments acknowledged. */
struct gw_conn_seen {
	uint32_t segs, again, twice, delivered;
};

struct gw_conn {
	enum gw_conn_state state;
	int fd;
	uint32_t use; /* of this place */
	bool accepted, blocked, stalled;
	struct gw_carrier_tun *t; /* NULL: not known yet */
	struct rwy_ip peer;
	uint16_t port; /* ours, that it came to */
	struct wan_conn hello;
	rwy_time deadline;                                       /* to be open */
	uint8_t ctl[2 * (WAN_REC_HELLO_LEN + WAN_REC_WISH_LEN)]; /* goes before datagrams */
	unsigned ctl_n;
	struct rte_mbuf *out[GW_CONN_RUN];
	unsigned out_at, out_n;
	uint32_t off; /* of the first that is written */
	uint8_t *in;
	uint32_t in_cap, in_n;
	struct gw_conn_seen seen;
};

/* The path as a set of connections measures it; loss over the last segments. */
struct gw_carrier_measure {
	struct gw_carrier_path path;
	rwy_time next;
	uint64_t segs, lost16; /* remembered, lost ones times 2^16 */
};

/* Listens for all tunnels with this address and port. */
struct gw_listener {
	int fd; /* -1: free */
	struct rwy_ip addr;
	uint16_t port;
	unsigned users;
};

struct gw_carrier_tun {
	bool used;
	struct conf_tunnel conf;
	struct rwy_ip local, remote; /* of its connections */
	unsigned idx;
	uint64_t id;
	struct wan_agree agree;
	struct gw_link *link; /* as in struct gw_carriers */
	struct gw_listener *listener;
	uint32_t set; /* number of the living set, 0: none */
	bool sending;
	unsigned open, turn;
	rwy_time set_since, retry_at, quiet_since, moved_at;
	rwy_dur backoff;
	char congestion[16];
	char problem[192];
	struct gw_carrier_counters c;
	uint64_t seen_bytes; /* rx_bytes at the last tick */
	struct gw_carrier_measure measure;
};

/* Packet buffers taken from a pool at once: a thread that is not a worker has no cache of its own. */
#define GW_STASH 32
struct gw_stash {
	struct rte_mbuf *m[GW_STASH];
	unsigned n;
};

struct gw_carriers;
/* A connection's calls to its set (set.c). *why is set when the connection must end. Carrier's thread. */
struct gw_conn_ops {
	void (*hello)(struct gw_carriers *cs, struct gw_conn *c, const struct wan_rec *rec, const char **why,
	    rwy_time now);
	void (*wish)(struct gw_carriers *cs, struct gw_carrier_tun *t, const struct wan_rec *rec,
	    const char **why, rwy_time now);
};

struct gw_carriers {
	struct gw_app *app;
	struct gw_pools *pools;
	const struct gw_conn_ops *conn_ops;
	pthread_mutex_t lock;
	pthread_t thread;
	bool running;
	_Atomic bool stop, asleep;
	int epoll_fd, wake_fd;
	uint64_t epoch;
	uint32_t sets;
	unsigned unknown, stalled;
	unsigned top, first; /* places of conn[] in use; where a turn begins */
	_Atomic int waiting; /* other threads that want the lock */
	uint64_t strangers, slow;
	uint64_t touched;        /* workers that got something */
	_Atomic uint64_t active; /* tunnels with links */
	struct rte_ring *in[GW_WORKERS_MAX];
	struct gw_link *link[CONF_TUNNELS_MAX]; /* of each worker; NULL until first used, then for good */
	struct gw_stash big, small;
	struct gw_carrier_tun tun[CONF_TUNNELS_MAX];
	struct gw_listener listener[CONF_TUNNELS_MAX];
	struct gw_conn conn[GW_CONNS_MAX];
};

/* sock.c: sockets and what is asked of them */
struct gw_sockaddr {
	struct sockaddr_storage ss;
	socklen_t len;
};
void gw_sock_addr(struct gw_sockaddr *out, const struct rwy_ip *a, uint16_t port);
void gw_sock_ip(const struct gw_sockaddr *a, struct rwy_ip *out);
/* The congestion control a tunnel gets: name into t->congestion. RWY_EINVAL with a sentence in t->problem. */
int gw_sock_congestion(struct gw_carrier_tun *t);
/* A socket, or -1 with errno. */
int gw_sock_listen(const struct gw_carrier_tun *t);
int gw_sock_connect(const struct gw_carrier_tun *t); /* non-blocking: under way, or there */
void gw_sock_tune(int fd, const struct gw_carrier_tun *t);
int gw_sock_error(int fd);

/* conn.c: one connection */
struct gw_conn *gw_conn_new(struct gw_carriers *cs, int fd, bool accepted); /* takes fd; NULL: closed it */
void gw_conn_free(struct gw_carriers *cs, struct gw_conn *c);
/* Read and write as much as is possible now. NULL, or why the connection must end. */
const char *gw_conn_read(struct gw_carriers *cs, struct gw_conn *c, rwy_time now);
const char *gw_conn_write(struct gw_carriers *cs, struct gw_conn *c);
void gw_conn_watch(struct gw_carriers *cs, struct gw_conn *c); /* tells epoll what it waits for */

/* measure.c: what its connections say of the path, looked at twice a second */
void gw_measure_tick(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now);

/* set.c: a tunnel's connections together */
extern const struct gw_conn_ops gw_set_conn_ops;
void gw_set_tell(struct gw_carriers *cs, struct gw_carrier_tun *t); /* our wish, on all connections */
void gw_set_lost(struct gw_carriers *cs, struct gw_conn *c, const char *why, rwy_time now);
void gw_set_tick(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now);
void gw_set_close(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now);
/* How much longer than the other end this one waits before it connects by itself. */
rwy_dur gw_set_second(const struct gw_carrier_tun *t);
void gw_set_update(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now); /* who sends by what */

#endif
