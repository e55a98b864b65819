/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to gateway/carrier/: tunnels, their connections, and the data shared by workers and the
 * thread. Everything except struct gw_link and the rings belongs to the thread, under `lock`, which
 * it holds unless it sleeps.
 */
#ifndef GATEWAY_CARRIER_INTERNAL_H
#define GATEWAY_CARRIER_INTERNAL_H

#include <netinet/in.h>
#include <pthread.h>
#include <rte_ring.h>
#include <sys/socket.h>

#include "aead/schedule.h"
#include "base/sockaddr.h"
#include "gateway/carrier/carrier.h"
#include "gateway/carrier/quic.h"
#include "gateway/gw.h"
#include "gateway/port/mbuf.h"

#define GW_CONNS_MAX     512 /* sockets of all tunnels */
#define GW_CONNS_UNKNOWN 32  /* sockets whose tunnel is not known yet */
#define GW_CONN_RUN      64  /* most datagrams taken from a worker for one connection at a time */
#define GW_LINK_RING     4096
/* Bounds of the bytes that wait between a worker and the sockets: what TCP carries in 8 ms, within
 * these. More would only be a queue. */
#define GW_LINK_MIN (96u << 10)
#define GW_LINK_MAX (4u << 20)
#define GW_IN_RING  8192
/* epoll's data of a QUIC socket: this and its index */
#define GW_EV_QUIC ((uint64_t)1 << 62)
/* the same of RDMA's connection manager */
#define GW_EV_RDMA ((uint64_t)1 << 61)
/* the same of a TCP socket that accepts */
#define GW_EV_LISTEN ((uint64_t)1 << 63)

/* Data shared by the thread and one worker, for one tunnel. */
struct gw_link {
	struct rte_ring *out; /* the worker puts, the thread takes */
	/* written by the thread: number of the live set of connections; 0: none */
	_Atomic uint32_t set;
	_Atomic bool send; /* written by the thread: the worker sends by the carrier */
	/* written by the thread: what was lost so often goes by it (wan/stream.h); 0: nothing */
	_Atomic uint8_t detour;
	_Atomic uint64_t taken; /* written by the thread: bytes that it took */

	/* written by the worker: bytes handed over and not acknowledged */
	_Alignas(64) _Atomic uint64_t inflight;
	uint64_t given; /* worker: bytes put */
	uint32_t seen;  /* worker: the set that it knows */
	bool on;        /* worker: it sends by the carrier */
	uint8_t after;  /* worker: the present value of `detour` */
	bool failed;    /* worker: a datagram could not be handed over */
};

enum gw_conn_state { GW_CONN_FREE, GW_CONN_CONNECTING, GW_CONN_HELLO, GW_CONN_OPEN };

/* The kernel's counts of a connection at the last reading: data segments, retransmissions,
 * duplicates reported by the peer, segments acknowledged. Of QUIC: parts of streams, in the first
 * two. */
struct gw_conn_seen {
	uint32_t segs, again, twice, delivered;
};

/* Bytes of one stream that were received and not yet processed. */
struct gw_input {
	uint8_t *p;
	uint32_t cap, n;
};

struct gw_carriers;
struct gw_conn;
/* Operations of a connection: a table for each carrier. Carrier thread. */
struct gw_conn_kind {
	enum wan_carrier carrier;
	/* Read and write as much as possible now. Return NULL, or the reason why the connection
	 * must end. */
	const char *(*read)(struct gw_carriers *cs, struct gw_conn *c, rwy_time now);
	const char *(*write)(struct gw_carriers *cs, struct gw_conn *c);
	/* Whether a datagram of a worker could be written now. */
	bool (*room)(const struct gw_conn *c);
	/* Tells epoll which events the connection waits for. */
	void (*watch)(struct gw_carriers *cs, struct gw_conn *c);
	void (*close)(struct gw_conn *c);
	/* NULL, or the reason why it must end, as it has no socket that tells; NULL: never. */
	const char *(*tick)(const struct gw_conn *c, rwy_time now);
};

struct gw_conn {
	const struct gw_conn_kind *kind;
	enum gw_conn_state state;
	int fd;                    /* TCP */
	struct gw_conn_tls *tls;   /* TCP and RDMA of a tunnel with keys; NULL: in the clear */
	struct gw_rdma_conn *rdma; /* RDMA */
	struct gw_quic_conn *quic; /* QUIC; and its streams' input */
	struct gw_input *streams;
	uint32_t use; /* use count of this entry */
	bool accepted, blocked, stalled;
	bool counted;             /* why it ends is counted */
	struct gw_carrier_tun *t; /* NULL: not known yet */
	struct rwy_ip peer;
	uint16_t port; /* our port that it came to */
	struct wan_conn hello;
	rwy_time deadline;                                       /* latest time to become open */
	uint8_t ctl[2 * (WAN_REC_HELLO_LEN + WAN_REC_WISH_LEN)]; /* sent before datagrams */
	unsigned ctl_n;
	struct rte_mbuf *out[GW_CONN_RUN];
	unsigned out_at, out_n;
	uint32_t off; /* bytes already written of the first one */
	struct gw_input in;
	struct gw_conn_seen seen;
};

/* The path as measured by a set of connections; the loss covers the most recent segments. */
struct gw_carrier_measure {
	struct gw_carrier_path path;
	rwy_time next;
	uint64_t segs, lost16; /* segments in the average; lost ones, times 2^16 */
	/* RDMA: the device's count of NAKs, and our datagrams, when they were read last */
	bool naks_known, losses;
	uint64_t naks, sent;
};

/* A socket that accepts connections of all tunnels with this address and port. */
struct gw_listener {
	int fd; /* -1: free */
	struct rwy_ip addr;
	uint16_t port;
	unsigned users;
};

/* A UDP socket for QUIC connections of all tunnels with this address and port. */
struct gw_quic_port {
	struct gw_carriers *cs;
	int fd; /* -1: free */
	struct gw_quic_addr local;
	unsigned users;
	struct gw_quic_end *end;
	rwy_time full_until; /* the socket had no room */
};

struct gw_carrier_tun {
	bool used;
	struct conf_tunnel conf;
	struct rwy_ip local, remote; /* addresses of its TCP and QUIC connections */
	struct rwy_ip rdma_local, rdma_remote;
	unsigned idx;
	uint64_t id;
	struct wan_agree agree;
	struct gw_link *link; /* the tunnel's entries of gw_carriers.link */
	struct gw_listener *listener;
	struct gw_quic_port *quic;
	struct gw_rdma_port *rdma;
	enum wan_carrier via; /* of the live set */
	uint32_t set;         /* number of the live set; 0: none */
	bool sending, detouring;
	unsigned open, turn;
	rwy_time set_since, retry_at, quiet_since, moved_at;
	/* TLS handshakes of the peer's address are paid until then (GW_TLS_EACH) */
	rwy_time theirs;
	rwy_dur backoff;
	char congestion[16];
	char problem[192];
	struct gw_carrier_counters c;
	uint64_t seen_bytes; /* rx_bytes at the last tick */
	struct gw_carrier_measure measure;
};

/* Packet buffers are taken from a pool in bulk, because a thread that is not a worker has no
 * cache. */
#define GW_STASH 32
struct gw_stash {
	struct rte_mbuf *m[GW_STASH];
	unsigned n;
};

/* Calls of a connection to its set (set.c). *why is set when the connection must end. Carrier
 * thread. */
struct gw_conn_ops {
	void (*hello)(struct gw_carriers *cs, struct gw_conn *c, const struct wan_rec *rec, const char **why,
	    rwy_time now);
	void (*wish)(struct gw_carriers *cs, struct gw_carrier_tun *t, const struct wan_rec *rec,
	    const char **why, rwy_time now);
	void (*lost)(struct gw_carriers *cs, struct gw_conn *c, const char *why, rwy_time now);
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
	unsigned top, first; /* entries of conn[] in use; where the next turn begins */
	_Atomic int waiting; /* number of other threads that want the lock */
	uint64_t strangers, slow, early, rate, many;
	uint64_t touched;        /* set of workers that got something */
	_Atomic uint64_t active; /* set of tunnels with links */
	struct rte_ring *in[GW_WORKERS_MAX];
	/* indexed by worker; NULL until first used, then kept */
	struct gw_link *link[CONF_TUNNELS_MAX];
	struct gw_stash big, small;
	struct gw_carrier_tun tun[CONF_TUNNELS_MAX];
	struct gw_listener listener[CONF_TUNNELS_MAX];
	struct gw_quic_port quic[CONF_TUNNELS_MAX];
	struct gw_quic_tls *tls; /* NULL: no certificates, no QUIC */
	enum aead_alg alg;       /* of RDMA connections with keys, as of their tunnels */
	rwy_dur rekey;
	struct gw_rdma *rdma; /* NULL: no tunnel wants RDMA */
	char why[256];        /* the last reason to end a connection that is no constant */
	struct gw_conn conn[GW_CONNS_MAX];
};

/* tunnel.c: tunnels, for other threads */
/* Wakes the thread. */
void gw_carriers_wake(struct gw_carriers *cs);
/* Takes the lock from the thread. */
void gw_carriers_lock(struct gw_carriers *cs);
/* Adds a tunnel; errors as gw_carrier_tunnel. With the lock, or before the thread runs. */
RWY_MUST_CHECK int gw_carrier_add(struct gw_carriers *cs, unsigned idx, const struct conf_tunnel *c);

/* sock.c: sockets and their options. */
/* Chooses a tunnel's congestion control: sets t->congestion. RWY_EINVAL with a sentence in
 * t->problem. */
int gw_sock_congestion(struct gw_carrier_tun *t);
/* The next two return a socket, or -1 with errno. */
int gw_sock_listen(const struct gw_carrier_tun *t);
int gw_sock_connect(const struct gw_carrier_tun *t); /* non-blocking: in progress or connected */
void gw_sock_tune(int fd, const struct gw_carrier_tun *t);

/* conn.c: one connection */
/* Takes ownership of fd, -1 for QUIC. NULL: no room, fd is closed. */
struct gw_conn *gw_conn_new(struct gw_carriers *cs, const struct gw_conn_kind *kind, int fd, bool accepted);
/* Closes the connection and frees its slot; its set is not told. */
void gw_conn_free(struct gw_carriers *cs, struct gw_conn *c);
/* Processes all complete records of an input. False: one has to wait for a worker or memory. *why
 * is set when the connection must end. */
bool gw_conn_records(
    struct gw_carriers *cs, struct gw_conn *c, struct gw_input *in, const char **why, rwy_time now);
/* The connection stopped reading, or reads again. */
void gw_conn_stall(struct gw_carriers *cs, struct gw_conn *c, bool on);
/* Takes up to `max` datagrams of one worker into c->out. False: none waits. */
bool gw_conn_fill(struct gw_carriers *cs, struct gw_conn *c, unsigned max);
extern const struct gw_conn_kind gw_conn_tcp;

/* conn_tls.c: TLS in a TCP or RDMA connection, which has c->tls */
/* Begins: c->accepted says the role. name: the peer's; NULL: gw_conn_tls_named tells. The
 * connection has c->tls afterwards, which is freed with it; without a socket its owner moves the
 * bytes. RWY_ENOMEM. */
RWY_MUST_CHECK int gw_conn_tls_new(struct gw_carriers *cs, struct gw_conn *c, const char *name);
void gw_conn_tls_free(struct gw_conn *c); /* without TLS: nothing */
/* The handshake is over; the next bytes that GnuTLS moves are written. */
bool gw_conn_tls_open(const struct gw_conn *c);
bool gw_conn_tls_wants_write(const struct gw_conn *c);
/* The next three return -1 with errno: EAGAIN, or EPROTO and the reason in cs->why. The first goes
 * on with the handshake: 0, it is over. The others are as recv() and writev(). */
int gw_conn_tls_handshake(struct gw_carriers *cs, struct gw_conn *c);
ssize_t gw_conn_tls_recv(struct gw_carriers *cs, struct gw_conn *c, void *p, size_t n);
ssize_t gw_conn_tls_send(struct gw_carriers *cs, struct gw_conn *c, const struct iovec *v, unsigned n);
/* Bytes were read from the socket and not yet taken. */
bool gw_conn_tls_pending(const struct gw_conn *c);
/* Without a socket: takes n bytes of the peer. RWY_ENOMEM: more than a handshake may have. */
RWY_MUST_CHECK int gw_conn_tls_input(struct gw_conn *c, const void *p, size_t n);
/* Without a socket: returns bytes for the peer, *n of them, valid until the next call on c. */
const uint8_t *gw_conn_tls_output(const struct gw_conn *c, size_t *n);
/* Without a socket: n bytes of gw_conn_tls_output() were sent. */
void gw_conn_tls_sent(struct gw_conn *c, size_t n);
/* After the handshake: a secret of this connection (RFC 5705). RWY_EINVAL: it gives none. */
RWY_MUST_CHECK int gw_conn_tls_secret(const struct gw_conn *c, uint8_t context, struct aead_secret *out);
/* The client's certificate has this name. */
bool gw_conn_tls_named(const struct gw_conn *c, const char *name);
/* The peer's certificate is still valid; false: cs->why. */
bool gw_conn_tls_still(struct gw_carriers *cs, const struct gw_conn *c, const char *name);

/* certs.c. RWY_EINVAL, RWY_ENOMEM; logged. */
RWY_MUST_CHECK int gw_carriers_certs_read(struct gw_carriers *cs, const struct conf_tunnel_keys *k);

/* quic_sock.c: UDP sockets for QUIC */
/* Returns a socket, or -1 with errno. */
int gw_quic_sock_new(const struct gw_quic_addr *local, uint8_t dscp);
/* False: the socket is full. */
bool gw_quic_sock_send(int fd, const struct gw_quic_out *out);
/* Reads what is there and gives it to the end. */
void gw_quic_sock_read(int fd, struct gw_quic_end *e, rwy_time now);

/* quic_port.c: tunnels' QUIC connections */
/* The tunnel's port. NULL: t->problem says why. */
struct gw_quic_port *gw_quic_port_get(struct gw_carriers *cs, struct gw_carrier_tun *t);
void gw_quic_port_put(struct gw_carriers *cs, struct gw_quic_port *p);
/* Opens a connection of the tunnel; NULL: t->problem says why. */
struct gw_conn *gw_quic_port_open(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now);
/* Everything due on all ports. Returns when it must be called next. */
rwy_time gw_quic_ports_turn(struct gw_carriers *cs, rwy_time now);

/* The name of a reliable carrier, as in a sentence. */
static inline const char *gw_carrier_word(enum wan_carrier c)
{
	return c == WAN_CARRIER_TCP ? "TCP" : c == WAN_CARRIER_QUIC ? "QUIC" : "RDMA";
}

/* rdma_listen.c: where tunnels' RDMA connections arrive */
/* The address and port where they arrive. NULL: t->problem says why. */
struct gw_rdma_port *gw_rdma_port_get(struct gw_carriers *cs, struct gw_carrier_tun *t);
void gw_rdma_port_put(struct gw_rdma_port *p);
/* Looks for its device again, if that is gone. */
void gw_rdma_port_tick(struct gw_carriers *cs, struct gw_rdma_port *p, rwy_time now);
/* After all connections were freed. */
void gw_rdma_stop(struct gw_carriers *cs);
/* rdma_port.c: tunnels' RDMA connections */
/* Opens a connection of the tunnel; NULL: t->problem says why. */
struct gw_conn *gw_rdma_open(struct gw_carriers *cs, struct gw_carrier_tun *t);
/* Processes what the connection manager tells. */
void gw_rdma_turn(struct gw_carriers *cs, rwy_time now);
/* rdma_measure.c: NAKs that made the connection's device go back. False: it does not count them. */
bool gw_rdma_naks(const struct gw_conn *c, uint64_t *out);
struct gw_rdma_flow;
/* What the connection's acknowledgements tell of round trips. */
const struct gw_rdma_flow *gw_rdma_flow_of(const struct gw_conn *c);

/* measure.c: measures the path by the kernel's counts, twice a second */
void gw_measure_tick(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now);

/* set.c: all connections of a tunnel */
extern const struct gw_conn_ops gw_set_conn_ops;
/* Sends our wish on all connections. */
void gw_set_tell(struct gw_carriers *cs, struct gw_carrier_tun *t);
/* A connection has ended: closes the whole set if it was open. */
void gw_set_lost(struct gw_carriers *cs, struct gw_conn *c, const char *why, rwy_time now);
/* Deadlines, connections to open or close, and measurement of one tunnel; call periodically. */
void gw_set_tick(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now);
/* Closes all connections of a tunnel. */
void gw_set_close(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now);
/* Returns how much longer than the other end this one waits before it connects. */
rwy_dur gw_set_second(const struct gw_carrier_tun *t);
/* Tells the workers which carrier to use. */
void gw_set_update(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now);

#endif
