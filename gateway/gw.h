/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the DPDK application: what ports, workers and the control thread know of each other. app.h is
 * the outside.
 *
 * Writers: a worker's struct is written by that worker, except the rings and atomics marked
 * otherwise; ports are written by the control thread before workers start, except `up`; the next-hop table is
 * published by the control thread (port/neigh.h).
 */
#ifndef GATEWAY_GW_H
#define GATEWAY_GW_H

#include <pthread.h>
#include <rte_ring.h>
#include <rte_spinlock.h>

#include "gateway/app.h"
#include "base/log.h"

#define GW_BURST       32
#define GW_TX_BUF      64
#define GW_HANDOFF_LEN 2048
#define GW_KERNEL_LEN  512 /* frames waiting for the kernel, or from it */
#define GW_RXQ_MAX     (CONF_PORTS_MAX * 4)
#define GW_ETH         14
#define GW_VLAN        4
#define GW_IFNAME      16
#define GW_FRAME_EXTRA (GW_ETH + 2 * GW_VLAN) /* bytes of a frame beside the MTU */

struct gw_nt;
struct gw_overlay;
struct gw_pools;
struct gw_sib_set;
struct gw_sib_worker;
struct gw_session_ring;
struct gw_tenant_count;
struct rte_mbuf;
struct rte_mempool;
struct tenant_set;

struct gw_port {
	const struct conf_port *conf;
	uint16_t idx; /* in gw_app.port[] */
	uint16_t id;  /* DPDK's */
	uint8_t mac[6];
	uint16_t vlan;  /* 0: untagged */
	uint8_t l2_len; /* GW_ETH, or with the VLAN tag */
	bool multi_seg; /* the driver sends chains */
	bool copy_rx;   /* the driver wants larger buffers than the pool's: received through `rx_pool` and
	                   copied */
	bool copy_tx; /* the driver passes mbufs on instead of sending bytes (net_ring): ours must not be lent
	               */
	bool link_seen;
	bool rx_intr; /* receive queues can wake a sleeping worker */
	unsigned rxqs, txqs;
	struct rte_mempool *rx_pool;            /* copy_rx only */
	rte_spinlock_t tx_lock[GW_WORKERS_MAX]; /* per transmit queue; used when txqs < workers */
	bool tx_shared;
	_Atomic bool up; /* control thread */
	_Atomic uint32_t speed_mbps;
	char driver[32];
	char kernel_if[GW_IFNAME]; /* the kernel interface under it, or "" */
	char tap[GW_IFNAME];
	int tap_fd;
	int tap_ifindex;
	unsigned ctl_worker; /* sends what the kernel sends */
};

struct gw_rxq {
	struct gw_port *port;
	uint16_t queue;
	int intr_fd; /* -1: none */
};

/* Frames waiting for one port. */
struct gw_txq {
	struct gw_port *port;
	uint16_t queue;
	uint16_t n;
	struct rte_mbuf *pkt[GW_TX_BUF];
};

/* One tunnel's headers in front of the WAN header, rebuilt when the next hop changes. */
struct gw_tun {
	const struct conf_tunnel *conf; /* the worker's own copy; NULL: this number is free */
	struct gw_port *port;
	struct eng_nexthop nh;
	bool closed;       /* being removed: nothing that comes is for it */
	uint16_t udp_port; /* this worker's */
	uint8_t ip_len;    /* 20 or 40 */
	uint32_t sum;      /* IPv4: of the header's 16-bit words, length and checksum 0 */
	uint8_t hdr[48];   /* IP and UDP headers */
};

/* A cached decision on a destination address. */
struct gw_verdict {
	struct rwy_ip addr;
	int16_t tunnel; /* >= 0, or enum gw_verdict_kind */
	uint16_t valid;
};
enum gw_verdict_kind { GW_TO_KERNEL = -1, GW_NO_ROUTE = -2, GW_OWN = -3 };
#define GW_VERDICTS 1024

/* A local host that sends: its own address is resolved before the first answer for it comes over the WAN. */
struct gw_seen {
	struct rwy_ip addr;
	uint64_t gen; /* of the table in which it was found, 0: not yet */
	rwy_time again;
};
#define GW_SEEN 1024

struct gw_ask {
	struct rwy_ip addr;
	uint16_t port;
};
#define GW_ASKS 64

/* In two parts: the worker's own with what it shows to others, and from a cache line of its own on what
 * others write. */
struct gw_worker {
	struct gw_app *app;
	struct eng *eng;
	struct gw_pools *pools;
	struct gw_nt *nt;                /* the next-hop table of this turn */
	const struct tenant_set *ts;     /* the tenants of this turn, never NULL */
	struct gw_sib_set *sib;          /* datapath/sibling.h; NULL: this gateway is alone */
	struct gw_tenant_count *tenants; /* GW_TENANT_COUNTS, by tenant index; 0: whose tenant is not known */
	rwy_time now;                    /* of this turn; moves on with each burst that brings packets */
	rwy_time began;                  /* when this turn did */
	uint64_t tunnel_congested;       /* set of tunnels whose path is, for good */
	rwy_time wake_at;                /* the control thread is not woken before */
	uint8_t
	    *nh_used; /* by next-hop id: a packet went there since the control thread looked (it clears) */
	struct gw_seen *seen;
	struct rte_ring *handoff;       /* frames that another worker received and we own */
	struct rte_ring *from_kernel;   /* frames that the kernel sends through our ports */
	struct rte_ring *to_kernel;     /* the control thread's: all workers put, it takes */
	struct gw_overlay *ov;          /* datapath/overlay.h */
	struct gw_sib_worker *sibw;     /* datapath/sibling.h */
	struct rwy_buf *lan[GW_TX_BUF]; /* packets for eng_tenant_rx */
	uint16_t lan_tenant[GW_TX_BUF]; /* whose they are */
	struct gw_rxq rxq[GW_RXQ_MAX];
	struct gw_port *by_id[RTE_MAX_ETHPORTS];
	struct gw_verdict *verdict[CONF_PORTS_MAX];
	struct gw_txq txq[CONF_PORTS_MAX];
	struct gw_tun tun[CONF_TUNNELS_MAX];
	struct conf_tunnel *tun_conf;     /* of the same numbers */
	struct gw_session_ring *sessions; /* for the control center; NULL: there is none */
	rwy_time ask_time[GW_ASKS];       /* by hash of the address: not asked again before */
	struct gw_counters c;
	struct gw_worker_stats st;
	_Atomic uint64_t tun_state[CONF_TUNNELS_MAX]; /* time of the last change << 1 | up; 0: none yet */
	_Atomic uint64_t nt_gen; /* oldest table this worker may still read; control thread reads */
	_Atomic uint64_t ts_gen; /* the same of the tenants' set; who changes them reads */
	_Atomic uint64_t heartbeat;
	struct gw_ask ask[GW_ASKS];
	_Atomic uint32_t ask_head;
	_Atomic uint32_t ask_tail; /* control thread, rarely */
	unsigned idx, lcore;
	unsigned rxqs, ports, tunnels;
	unsigned lan_n;
	int intr_fd, epoll_fd, wake_fd; /* receive interrupts, all wake-ups, the eventfd among them; or -1 */
	bool low;                       /* packet buffers are nearly used up */
	bool kernel_fed;                /* there is something for the control thread */
	bool carrier_fed;               /* and for the carrier's */

	_Alignas(64) void (*call_fn)(struct eng *e, void *arg); /* gw_call: callers and worker */
	void *call_arg;
	pthread_mutex_t call_lock; /* one caller at a time */
	_Atomic int call_state;
	_Atomic bool stop;
	_Atomic bool asleep; /* in epoll: gw_worker_wake */
};

/* The worker that a flow belongs to, the same in both directions and at both gateways. vni: its tenant's; 0:
 * none. */
static inline unsigned gw_owner(
    uint32_t vni, const struct rwy_ip *a, const struct rwy_ip *b, unsigned workers)
{
	return (eng_owner_hash(a, b) ^ vni * 0x9e3779b1u) % workers;
}

/* datapath/rx.c: one burst of frames from the wire or from another worker (`owned`: no further hand-over).
 * Takes all.
 */
void gw_rx(struct gw_worker *w, struct rte_mbuf **pkts, unsigned n, bool owned);
void gw_rx_flush(struct gw_worker *w);
void gw_rx_forget(struct gw_worker *w); /* what it decided by the plain LAN's prefixes */

/* datapath/eng_ops.c */
extern const struct eng_ops gw_eng_ops;
/* datapath/tx_wan.c. A tunnel on this worker: begins (c is copied), changes but for its ends, takes nothing
 * more that comes, is free. Before the worker runs, or on its thread. */
void gw_tx_tunnel_init(struct gw_worker *w, unsigned tunnel, const struct conf_tunnel *c);
void gw_tx_tunnel_set(struct gw_worker *w, unsigned tunnel, const struct conf_tunnel *c);
void gw_tx_tunnel_close(struct gw_worker *w, unsigned tunnel);
void gw_tx_tunnel_fini(struct gw_worker *w, unsigned tunnel);
/* datapath/tx_frame.c: an untagged frame of the kernel */
void gw_tx_frame(struct gw_worker *w, struct gw_port *p, struct rte_mbuf *m);
/* datapath/tx.c: all port queues */
void gw_tx_flush(struct gw_worker *w);

/* datapath/hosts.c. Forgets some of what the worker knows of a removed tenant's hosts, 20 us at most; on the
 * worker's thread. True: nothing is left; else it is called again. Only then may the index be another
 * tenant's. */
bool gw_hosts_clear(struct gw_worker *w, uint32_t index);

/* datapath/worker_call.c: the worker's end of gw_call */
bool gw_call_pending(const struct gw_worker *w);
void gw_call_serve(struct gw_worker *w);

/* wake.c: any thread; does something only when the worker sleeps with interrupts */
void gw_worker_wake(struct gw_worker *w);

/* datapath/worker.c: without tenants and siblings, see gw_worker_start */
RWY_MUST_CHECK int gw_worker_new(
    struct gw_worker **out, struct gw_app *app, unsigned idx, struct gw_pools *pools);
void gw_worker_free(struct gw_worker *w);
int gw_worker_main(void *worker); /* lcore function */
/* One turn of its loop: receive, engine, transmit. Returns how much there was to do. */
unsigned gw_worker_turn(struct gw_worker *w);

#endif
