/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the DPDK application: what ports, workers and the control thread know of each
 * other. app.h is the outside.
 *
 * Writers: a worker's struct is written by that worker, except the rings and atomics marked
 * otherwise; ports are written by the control thread before workers start, except `up`. What all
 * workers read is published (publish.h).
 */
#ifndef GATEWAY_GW_H
#define GATEWAY_GW_H

#include <pthread.h>
#include <rte_ring.h>
#include <rte_spinlock.h>

#include "gateway/app.h"
#include "gateway/publish.h"
#include "base/log.h"
#include "wan/lease.h"

#define GW_BURST       32
#define GW_TX_BUF      64
#define GW_HANDOFF_LEN 2048
#define GW_KERNEL_LEN  512 /* frames waiting for the kernel, or from it */
#define GW_RXQ_MAX     (CONF_PORTS_MAX * 4)
#define GW_ETH         14
#define GW_VLAN        4
#define GW_IFNAME      16
#define GW_FRAME_EXTRA (GW_ETH + 2 * GW_VLAN) /* bytes of a frame besides the MTU */

struct gw_cap_worker;
struct gw_nt;
struct gw_overlay;
struct gw_pools;
struct gw_sib_set;
struct gw_sib_worker;
struct gw_standby;
struct gw_session_ring;
struct gw_tenant_count;
struct rte_mbuf;
struct rte_mempool;
struct tenant_set;

struct gw_port {
	const struct conf_port *conf;
	uint16_t idx; /* index in gw_app.port[] */
	uint16_t id;  /* DPDK's port id */
	uint8_t mac[6];
	uint16_t vlan;  /* 0: untagged */
	uint8_t l2_len; /* GW_ETH, or with the VLAN tag */
	bool multi_seg; /* the driver sends chains */
	/* the driver needs larger buffers than the pool's: packets are received into `rx_pool` and
	 * copied */
	bool copy_rx;
	/* the driver passes mbufs on instead of sending bytes (net_ring): ours must not be lent */
	bool copy_tx;
	bool pair; /* of the tunnel to the other gateway of a pair */
	bool link_seen;
	bool rx_intr; /* receive queues can wake a sleeping worker */
	unsigned rxqs, txqs;
	struct rte_mempool *rx_pool;            /* copy_rx only */
	rte_spinlock_t tx_lock[GW_WORKERS_MAX]; /* per transmit queue; used when txqs < workers */
	bool tx_shared;
	_Atomic bool up; /* written by the control thread */
	_Atomic uint32_t speed_mbps;
	char driver[32];
	char kernel_if[GW_IFNAME]; /* the kernel interface under the port, or "" */
	int multicast_fd;          /* gw_multicast_open(kernel_if), or -1 */
	char tap[GW_IFNAME];
	int tap_fd;
	int tap_ifindex;
	unsigned ctl_worker; /* worker that sends the kernel's frames */
};

struct gw_rxq {
	struct gw_port *port;
	uint16_t queue;
	int intr_fd; /* -1: none */
};

/* Frames waiting to be sent on one queue of a port. */
struct gw_txq {
	struct gw_port *port;
	uint16_t queue;
	uint16_t n;
	struct rte_mbuf *pkt[GW_TX_BUF];
};

/* A path of a tunnel: the headers in front of the WAN header; the next hop is looked up when it may
 * have changed. */
struct gw_tun_path {
	struct gw_port *port;
	struct eng_nexthop nh;
	struct rwy_ip local, remote;
	uint16_t udp_port; /* UDP port of worker 0 */
	uint8_t ip_len;    /* 20 or 40 */
	uint8_t dscp;      /* DSCP << 2 of all datagrams; 0: as the tunnel says */
	uint32_t sum;      /* IPv4: sum of the header's 16-bit words, with length and checksum 0 */
	uint8_t hdr[48];   /* IP and UDP headers */
};
struct gw_tun {
	const struct conf_tunnel *conf; /* the worker's copy; NULL: this number is free */
	bool closed;                    /* being removed: no received datagram belongs to it */
	uint8_t paths;
	struct gw_tun_path path[1 + CONF_PATHS_MAX];
};

/* A cached decision about a destination address. */
struct gw_verdict {
	struct rwy_ip addr;
	int16_t tunnel; /* >= 0, or enum gw_verdict_kind */
	uint16_t valid;
};
enum gw_verdict_kind { GW_TO_KERNEL = -1, GW_NO_ROUTE = -2, GW_OWN = -3 };
#define GW_VERDICTS 1024

/* A local host that sends: its address is resolved before the first response for it arrives over
 * the WAN. */
struct gw_seen {
	struct rwy_ip addr;
	uint64_t gen; /* generation of the table in which it was found; 0: not yet */
	rwy_time again;
	bool foreign; /* no host of a LAN has this address */
};
#define GW_SEEN 1024

struct gw_ask {
	struct rwy_ip addr;
	uint16_t port;
};
#define GW_ASKS 64

/* Empty buffers of one pool, taken in bulk: their headers are missed in the cache together, not one
 * after the other. */
#define GW_ROOM 32
struct gw_room {
	struct rte_mbuf *m[GW_ROOM];
	unsigned n;
};

/* A tunnel whose peer was heard of late; all others are looked through only when it is another. */
#define GW_PEERS_SEEN 256 /* a power of two */
struct gw_peer_seen {
	uint8_t tunnel, path;
};
static_assert(CONF_TUNNELS_MAX <= 256 && WAN_PATHS_MAX <= 256, "they fit a byte");

/* A worker has two parts: its own data with what it shows to others, and, from a separate cache
 * line on, what others write. */
struct gw_worker {
	struct gw_app *app;
	struct eng *eng;
	struct gw_pools *pools;
	const struct gw_nt *nt;       /* published, of this turn: the next-hop table, */
	const struct tenant_set *ts;  /*   the tenants, */
	const struct gw_sib_set *sib; /*   the siblings; NULL: this gateway is alone */
	struct gw_cap_worker *cap;    /*   its part of the capture; NULL: none runs */
	uint32_t sib_gen;             /* of the siblings' set that sibw is of; 0: of none */
	/* GW_TENANT_COUNTS, by tenant index; 0: the tenant is not known. */
	struct gw_tenant_count *tenants;
	/* Time of this turn; moves on with each burst that brings packets. */
	rwy_time now;
	rwy_time began;            /* when this turn did */
	uint64_t tunnel_congested; /* tunnels whose path is congested for good, as bits */
	rwy_time wake_at;          /* the control thread is not woken before */
	/* By next-hop id: set when the next hop is used; cleared by the control thread. */
	uint8_t *nh_used;
	struct gw_seen *seen;
	struct rte_ring *handoff;       /* frames that another worker received and this one owns */
	struct gw_hand *hand;           /* by worker: frames of this burst; NULL: one worker */
	struct rte_ring *notes;         /* of other workers (datapath/notes.h); NULL: none */
	struct rte_ring *from_kernel;   /* frames that the kernel sends through our ports */
	struct rte_ring *to_kernel;     /* owned by the control thread: all workers put, it takes */
	struct gw_edge *edge;           /* datapath/edge.h; NULL: no relay */
	struct gw_overlay *ov;          /* datapath/overlay.h */
	struct gw_sib_worker *sibw;     /* datapath/sibling.h */
	struct gw_standby *standby;     /* datapath/standby.h; NULL: it is not one of a pair */
	struct rwy_buf *lan[GW_TX_BUF]; /* packets for eng_tenant_rx */
	uint16_t lan_tenant[GW_TX_BUF]; /* index of each packet's tenant */
	struct gw_room small, big;      /* tx_make.c */
	struct gw_rxq rxq[GW_RXQ_MAX];
	struct gw_port *by_id[RTE_MAX_ETHPORTS];
	struct gw_verdict *verdict[CONF_PORTS_MAX];
	struct gw_txq txq[CONF_PORTS_MAX];
	struct gw_tun tun[CONF_TUNNELS_MAX];
	struct wan_lease lease[CONF_TUNNELS_MAX];     /* datapath/lease.h */
	rwy_time leased_at;                           /* when these changed last */
	struct gw_peer_seen peer_seen[GW_PEERS_SEEN]; /* rx.c */
	struct conf_tunnel *tun_conf;                 /* indexed like tun[] */
	/* ring for the control center; NULL: none is configured */
	struct gw_session_ring *sessions;
	/* next time that an address may be asked for, by hash of the address */
	rwy_time ask_time[GW_ASKS];
	struct gw_counters c;
	struct gw_worker_stats st;
	/* Time of the last change << 1 | up; 0: none yet. */
	_Atomic uint64_t tun_state[CONF_TUNNELS_MAX];
	_Atomic uint64_t heartbeat;
	struct gw_ask ask[GW_ASKS];
	_Atomic uint32_t ask_head;
	_Atomic uint32_t ask_tail; /* written by the control thread, rarely */
	unsigned idx, lcore;
	unsigned rxqs, ports, tunnels;
	unsigned lan_n;
	uint64_t handing; /* workers with frames in hand[], as bits of GW_WORKERS_MAX */
	/* intr_fd: receive interrupts; epoll_fd: all wake-ups; wake_fd: the eventfd; -1: none */
	int intr_fd, epoll_fd, wake_fd;
	bool low;           /* packet buffers are nearly used up */
	_Atomic bool poked; /* other workers have news: gw_standby_changed() */
	bool gated;         /* some ports are closed: datapath/standby.h */
	uint8_t gate;       /* enum gw_pair */
	bool kernel_fed;    /* frames wait for the control thread */
	bool carrier_fed;   /* datagrams wait for the carrier thread */

	/* gw_call: shared by callers and worker */
	_Alignas(64) void (*call_fn)(struct eng *e, void *arg);
	void *call_arg;
	pthread_mutex_t call_lock; /* one caller at a time */
	_Atomic int call_state;
	_Atomic bool stop;
	_Atomic bool asleep; /* waits in epoll: see gw_worker_wake */
};

/* Frames of a burst that another worker owns: they go to it together. */
struct gw_hand {
	struct rte_mbuf *m[GW_BURST];
	unsigned n;
};

/* datapath/rx.c: processes one burst of frames, GW_BURST at most, from the wire or from another
 * worker (`owned`: no further hand-over). Takes all frames. */
void gw_rx(struct gw_worker *w, struct rte_mbuf **pkts, unsigned n, bool owned);
/* Gives the collected packets to the engine. */
void gw_rx_flush(struct gw_worker *w);
/* Forgets decisions made by the plain LAN's prefixes, about destinations and sources. */
void gw_rx_forget(struct gw_worker *w);

/* datapath/eng_ops.c */
extern const struct eng_ops gw_eng_ops, gw_relay_eng_ops;
/* datapath/tx_wan.c. A tunnel of this worker: init begins it (copies c), set changes it except for
 * its ends and returns a bit mask of the paths that lead elsewhere now, close refuses further
 * datagrams, fini frees it. Call them before the worker runs, or on its thread. */
void gw_tx_tunnel_init(struct gw_worker *w, unsigned tunnel, const struct conf_tunnel *c);
uint32_t gw_tx_tunnel_set(struct gw_worker *w, unsigned tunnel, const struct conf_tunnel *c);
void gw_tx_tunnel_close(struct gw_worker *w, unsigned tunnel);
void gw_tx_tunnel_fini(struct gw_worker *w, unsigned tunnel);
/* datapath/tx_frame.c: sends an untagged frame of the kernel */
void gw_tx_frame(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m);
/* datapath/tx.c: flushes all port queues */
void gw_tx_flush(struct gw_worker *w);

/* datapath/hosts.c: forgets some of a removed tenant's hosts, for at most 20 us, on the worker's
 * thread. True: nothing is left; else call it again. The index may be reused only then. */
bool gw_hosts_clear(struct gw_worker *w, uint32_t index);

/* datapath/worker_call.c: the worker's side of gw_call */
bool gw_call_pending(const struct gw_worker *w);
void gw_call_serve(struct gw_worker *w);

/* wake.c: any thread; acts only when the worker sleeps with interrupts */
void gw_worker_wake(struct gw_worker *w);

/*
 * datapath/worker.c: without tenants in its engine, see gw_worker_start. It reads what is published
 * from now on: nothing that is replaced is freed before its first turn.
 */
RWY_MUST_CHECK int gw_worker_new(
    struct gw_worker **out, struct gw_app *app, unsigned idx, struct gw_pools *pools);
void gw_worker_free(struct gw_worker *w);
int gw_worker_main(void *worker); /* lcore function */
/* Runs one turn of the loop: receive, engine, transmit. Returns the amount of work. */
unsigned gw_worker_turn(struct gw_worker *w);

#endif
