/* SPDX-License-Identifier: Apache-2.0 */
/* Private to gateway/keys/. Everything belongs to the thread, under `lock`, which it holds unless
 * it sleeps. */
#ifndef GATEWAY_KEYS_INTERNAL_H
#define GATEWAY_KEYS_INTERNAL_H

#include <pthread.h>

#include "base/log.h"
#include "base/sockaddr.h"
#include "gateway/tls/cert.h"
#include "gateway/keys/exchange.h"
#include "gateway/keys/follow.h"
#include "gateway/keys/keys.h"

#define KEYS_CONNS    (2 * CONF_TUNNELS_MAX)
#define KEYS_PER_PEER 3                /* connections of one peer that wait for it */
#define KEYS_DEADLINE (5 * RWY_SEC)    /* of an exchange */
#define KEYS_EACH     (250 * RWY_MS)   /* a peer may come so often, */
#define KEYS_BURST    (12 * KEYS_EACH) /* and as often at once as this has room for */

enum keys_conn_state { KEYS_CONN_FREE, KEYS_CONN_CONNECTING, KEYS_CONN_OPEN, KEYS_CONN_LAST_WORDS };

struct gw_keys;
struct keys_tun;

struct keys_conn {
	enum keys_conn_state state;
	int fd;
	uint32_t use; /* use count of this entry */
	struct gw_kx *kx;
	struct keys_tun *t; /* NULL: accepted, and the tunnel is not known yet */
	bool accepted;
	bool reserve; /* it is for the keys of a standby (reserve.c) */
	struct rwy_ip local, peer;
	uint16_t port; /* of our end, where it was accepted */
	rwy_time deadline;
};

struct keys_listener {
	int fd; /* -1: free */
	struct rwy_ip addr;
	uint16_t port;
	unsigned users;
};

/* A sentence that was logged. Two ends that do not fit have several that take turns. */
#define KEYS_SAID 4
struct keys_said {
	uint64_t sentence;
	rwy_time at;
};

/* What a standby's keys are for: its process, and how many exchanges there were before, with the
 * peer and over the cable. */
struct keys_reserved {
	uint64_t epoch, exchanges, of_cable;
};

/* Keys of the standby for a tunnel, at the active gateway. */
struct keys_reserve {
	struct keys_conn *ask;     /* the exchange with the peer; NULL: none */
	struct keys_conn *give;    /* the secret's way to the standby; NULL: none */
	struct keys_reserved now;  /* what it is for */
	struct keys_reserved done; /* the last that succeeded; zeros: none did */
	rwy_time retry;            /* none begins before */
	rwy_dur backoff;           /* after a failure */
};

struct keys_tun {
	enum gw_keys_state state;
	struct conf_tunnel conf;
	struct rwy_ip local, remote; /* addresses of its connections */
	unsigned idx;
	uint64_t id;
	struct keys_listener *listener;
	struct keys_conn *own;   /* the exchange that this end began; NULL: none */
	struct keys_conn *taken; /* the peer's that this end accepted; NULL: none */
	struct keys_reserve reserve;
	uint64_t peer_epoch; /* of the last exchange */
	struct gw_cert_peer peer;
	rwy_time since;   /* of the keys */
	rwy_time renew;   /* they get old then */
	rwy_time heard;   /* the last time that the tunnel was up, or that it got keys */
	rwy_time retry;   /* no exchange begins before */
	rwy_time theirs;  /* the peer's connections are paid until then (KEYS_EACH) */
	rwy_dur backoff;  /* after a failure */
	rwy_dur patience; /* of the next connection with TCP's handshake */
	rwy_dur quiet;    /* after an exchange because of silence */
	char problem[256];
	struct keys_said said[KEYS_SAID];
	unsigned said_next;
	struct gw_keys_counters c;
};

/* Calls of a connection to its tunnel (tunnel.c). */
struct keys_conn_ops {
	/* Something came out of the exchange. The connection may be gone afterwards. */
	void (*event)(struct gw_keys *k, struct keys_conn *c, enum gw_kx_event ev, rwy_time now);
	/* The connection has failed, why says it. It is freed, as soon as it has said its last. */
	void (*failed)(struct gw_keys *k, struct keys_conn *c, const char *why, rwy_time now);
};
extern const struct keys_conn_ops keys_tun_ops;

struct keys_stamp {   /* of a file; all 0: there is none */
	int64_t time; /* of its last change, ns */
	uint64_t size, inode;
};

struct gw_keys {
	struct gw_app *app;
	const struct keys_conn_ops *ops;
	pthread_mutex_t lock;
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	_Atomic int waiting; /* number of other threads that want the lock */
	int epoll_fd, wake_fd;
	uint64_t epoch;                /* of this process */
	struct gw_cert *cert;          /* NULL: there is none */
	struct conf_tunnel_keys files; /* what it was read from */
	/* The list that was read last, and the one whose reading failed: read again at crl_again */
	struct keys_stamp crl, crl_failed;
	rwy_time crl_again;
	rwy_time crl_say_at;   /* its end is looked at again, for the log */
	rwy_time check_at;     /* the peers' certificates are checked again */
	struct keys_pair pair; /* as of the last tick */
	rwy_time reserve_at;   /* no exchange for the standby begins before */
	struct gw_keys_totals all;
	struct keys_tun tun[CONF_TUNNELS_MAX];
	struct keys_listener listener[CONF_TUNNELS_MAX];
	struct keys_conn conn[KEYS_CONNS];
};

/* epoll's data of a listener: this and its index; of the wake-up: all bits */
#define KEYS_EV_LISTEN ((uint64_t)1 << 63)
#define KEYS_EV_WAKE   UINT64_MAX

/* sock.c. -1 with errno. */
int keys_sock_listen(const struct rwy_ip *addr, uint16_t port);
int keys_sock_connect(const struct rwy_ip *local, const struct rwy_ip *remote, uint16_t port);

/* listener.c */
/* A listener on the tunnel's address and port, shared with others. NULL with errno. */
struct keys_listener *keys_listen(struct gw_keys *k, const struct keys_tun *t);
void keys_unlisten(struct keys_listener *l);
void keys_accept(struct gw_keys *k, struct keys_listener *l, rwy_time now);

/* conn.c: one connection */
/* Takes ownership of fd. NULL: no room; fd is closed. */
struct keys_conn *keys_conn_new(struct gw_keys *k, int fd, bool accepted, rwy_time now);
void keys_conn_free(struct gw_keys *k, struct keys_conn *c);
void keys_conn_event(struct gw_keys *k, uint64_t which, uint32_t events, rwy_time now);
/* Sends what the exchange has to say, and closes the connection then. */
void keys_conn_last_words(struct gw_keys *k, struct keys_conn *c);

/* problem.c */
/* A log line if the revocation list ends soon or has ended; to be called again at crl_say_at. */
void keys_crl_say(struct gw_keys *k, rwy_time now);
/* A sentence about the tunnel's keys, for the API and, unless it was said lately, for the log. */
void keys_tun_problem(struct keys_tun *t, const char *why, rwy_time now);
/* Doubles *backoff, between bounds. Returns when to try again. */
rwy_time keys_tun_later(rwy_dur *backoff, rwy_time now);

/* tunnel.c: the course of a tunnel's exchanges */
/* Begins an exchange when it is time. Returns when it wants to be called again. */
rwy_time keys_tun_tick(struct gw_keys *k, struct keys_tun *t, rwy_time now);
/* The keys are of no use any more (gw_app.pair has changed): an exchange begins at once. */
void keys_tun_anew(struct keys_tun *t, rwy_time now);
/* A connection that this end began is not established in time. It is freed. */
void keys_tun_unanswered(struct gw_keys *k, struct keys_conn *c, rwy_time now);
/* The peer's certificate is checked again; keys end if it is not valid. */
void keys_tun_check(struct gw_keys *k, struct keys_tun *t, rwy_time now);

/* reserve.c: keys for the standby of a pair */
/* Begins an exchange for it when one is missing. Returns when it wants to be called again. */
rwy_time keys_reserve_tick(struct gw_keys *k, struct keys_tun *t, rwy_time now);
/* There is a standby, and it has such keys. */
bool keys_reserve_done(struct gw_keys *k, const struct keys_tun *t);
/* The peer asks for keys of its standby, and may have them. */
void keys_reserve_asked(struct gw_keys *k, struct keys_conn *c, struct keys_tun *t, rwy_time now);
/* As in keys_conn_ops, for connections with `reserve`, and for GW_KX_EV_KEEP of any. */
void keys_reserve_event(struct gw_keys *k, struct keys_conn *c, enum gw_kx_event ev, rwy_time now);
void keys_reserve_failed(struct gw_keys *k, struct keys_conn *c, const char *why, rwy_time now);

/* workers.c: keys for the workers. RWY_EEXIST: do another exchange; RWY_EAGAIN, RWY_ENOMEM. */
RWY_MUST_CHECK int keys_workers_offer(struct gw_app *app, unsigned tunnel, const struct gw_kx_result *r);
RWY_MUST_CHECK int keys_workers_reserve(struct gw_app *app, unsigned tunnel, const struct gw_kx_result *r);
void keys_workers_kept(struct gw_app *app, unsigned tunnel);
RWY_MUST_CHECK int keys_workers_keep(struct gw_app *app, unsigned tunnel, const struct gw_kx_result *r);
RWY_MUST_CHECK int keys_workers_use(struct gw_app *app, unsigned tunnel);
void keys_workers_end(struct gw_app *app, unsigned tunnel);
/* The tunnel is up on all workers. */
bool keys_workers_up(const struct gw_app *app, unsigned tunnel);

#endif
