/* SPDX-License-Identifier: Apache-2.0 */
/* The gateways of fp_lab.h, made by the gateway's own functions: configuration, ports, next hops,
 * workers. */
#include "engine/tunnel.h"
#include "tests/bench/fp_lab.h"

#include <getopt.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_thash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/port/kernel.h"
#include "gateway/setup.h"
#include "gateway/control/reservations.h"
#include "gateway/control/siblings.h"
#include "gateway/control/tunnels.h"
#include "rwy/endian.h"
#include "tests/bench/fp_workers.h"

/* The key of Microsoft's RSS specification, which most drivers have. */
static const uint8_t rss_key[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d,
    0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80,
    0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

#define BUFFERS  32768
#define UDP_PORT 4793                    /* of the tunnel, first worker */
#define RATE     ((uint64_t)50000000000) /* bytes per second, at which pacing never waits */

void fp_die(const char *what)
{
	fprintf(stderr, "fp_lab: %s\n", what);
	exit(1);
}

int fp_begin(int argc, char **argv, int log_level)
{
	int n;

	gw_log_init(log_level);
	n = rte_eal_init(argc, argv);
	if (n < 0)
		fp_die("EAL does not start");
	optind = 1;
	return n;
}

uint32_t fp_number(const char *s, uint32_t lo, uint32_t hi)
{
	char *end;
	const unsigned long v = strtoul(s, &end, 10);

	if (!*s || *end || v < lo || v > hi)
		fp_die("bad number");
	return (uint32_t)v;
}

static struct gw_kernel *kernel; /* for all gateways; nobody reads it */
static unsigned labs_made;       /* of the process so far; names tell them apart */

static struct rwy_ip ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return rwy_ip_from4((uint8_t[4]){a, b, c, d});
}

static struct rwy_ip ip6(uint8_t site, uint8_t host)
{
	return (struct rwy_ip){{0xfd, 0, [3] = site, [15] = host}};
}

/* Site s: LAN 10.(s+1).0.0/24 and fd00:(s+1)::/64, with the gateway at .1 and the host at .2; WAN
 * 192.0.2.(s+1). */
static void configure(struct fp_gw *g, const struct fp_cfg *cfg, enum fp_site s)
{
	struct conf *c = &g->conf;
	struct conf_tunnel *t = &c->tunnel[0];
	uint8_t own = (uint8_t)(s + 1), other = (uint8_t)(2 - s);

	snprintf(c->name, sizeof(c->name), "%c%d-%u", 'a' + s, (int)getpid(), labs_made);
	/* made by the gateway, closed to others */
	snprintf(c->journal_dir, sizeof(c->journal_dir), "/dev/shm/roceway-bench-%d", (int)getpid());
	c->workers = cfg->workers ? cfg->workers : 1;
	c->polling = CONF_POLL_BUSY;
	c->ports = FP_PORTS;
	c->port[FP_LAN].role = CONF_ROLE_LAN;
	c->port[FP_WAN].role = CONF_ROLE_WAN;
	for (unsigned i = 0; i < FP_PORTS; i++) {
		struct conf_port *p = &c->port[i];

		snprintf(p->name, sizeof(p->name), "%s", i == FP_LAN ? "lan" : "wan");
		rte_eth_dev_get_name_by_port(g->port[i].id, p->device);
		p->addr[0].addr = i == FP_LAN ? ip4(10, own, 0, 1) : ip4(192, 0, 2, own);
		p->addr[0].len = 96 + 24;
		p->addrs = 1;
		p->mtu = RTE_MAX(1500u, cfg->payload + (i == FP_LAN ? 100u : 250u));
		if (cfg->overlay != FP_PLAIN && i == FP_LAN)
			p->mtu += VXLAN_ENCAP_MAX;
	}
	c->port[FP_LAN].addr[1] = (struct conf_prefix){.addr = ip6(own, 1), .len = 64};
	c->port[FP_LAN].addrs = 2;
	c->tunnels = 1;
	snprintf(t->name, sizeof(t->name), "t");
	snprintf(t->cc, sizeof(t->cc), "fixed");
	snprintf(t->port, sizeof(t->port), "wan");
	t->port_idx = FP_WAN;
	t->local = ip4(192, 0, 2, own);
	t->remote = ip4(192, 0, 2, other);
	t->udp_port = UDP_PORT;
	t->prefix[0] = (struct conf_prefix){.addr = ip4(10, other, 0, 0), .len = 96 + 24};
	t->prefixes = 1;
	t->rate_Bps = RATE;
	t->security = cfg->keys ? CONF_SEC_KEYS : CONF_SEC_NONE;
	c->keys.rekey = 60 * RWY_SEC;
	/* The other values are those of conf/samples/gateway.yaml. */
	c->ack_mode = CONF_ACK_NEAR;
	c->conns_max = RTE_MAX(100000u, 4 * cfg->qps);
	c->half_open_max = 4096;
	c->idle_expiry = 600 * RWY_SEC;
	c->rnr_retry = c->retry = 7;
	c->ack_timeout_min = 50 * RWY_MS;
	c->ack_timeout_max = RWY_SEC;
	c->host_window = 128;
	c->buffers = BUFFERS;
	c->custody_conn = 32u << 20;
	c->custody_total = 256u << 20;
	c->read_cache_conn = 4u << 20;
	if (cfg->overlay != FP_PLAIN)
		fp_overlay_conf(c, cfg, s);
	if (cfg->relay)
		fp_relay_conf(c, s);
	if (cfg->conf)
		cfg->conf(c, s);
}

static void ring_port(struct fp_port *p, enum fp_site s, unsigned i)
{
	char name[20];
	int id;

	for (unsigned q = 0; q < p->queues; q++) {
		snprintf(name, sizeof(name), "fp%u_rx%u%u%u", labs_made, s, i, q);
		p->rx[q] = rte_ring_create(name, FP_RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		snprintf(name, sizeof(name), "fp%u_tx%u%u%u", labs_made, s, i, q);
		p->tx[q] = rte_ring_create(name, FP_RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (!p->rx[q] || !p->tx[q])
			fp_die("no ring");
	}
	snprintf(name, sizeof(name), "fp%u_%u%u", labs_made, s, i);
	id = rte_eth_from_rings(name, p->rx, p->queues, p->tx, p->queues, 0);
	if (id < 0)
		fp_die("no ring port");
	p->id = (uint16_t)id;
	memcpy(p->mac, (uint8_t[6]){0x02, 0xf0, 0, 0, (uint8_t)s, (uint8_t)i}, 6);
}

void fp_neighbour(struct fp_gw *g, unsigned port, struct rwy_ip addr, const uint8_t *mac)
{
	struct gw_nb *b = gw_neigh_entry(g->app.neigh, (uint16_t)port, &addr);

	if (!b)
		fp_die("no next hop");
	memcpy(b->mac, mac, 6);
	b->state = GW_NH_REACHABLE;
	b->has_mac = b->live = true;
}

static void next_hops(struct fp_lab *l, enum fp_site s)
{
	static const uint8_t host[6] = {0x02, 0xaa, 0, 0, 0, 1};
	struct fp_gw *g = &l->gw[s];
	uint8_t own = (uint8_t)(s + 1), other = (uint8_t)(2 - s);
	struct gw_route r[] = {{.dst = ip4(10, own, 0, 0), .len = 96 + 24, .port = FP_LAN},
	    {.dst = ip6(own, 0), .len = 64, .port = FP_LAN},
	    {.dst = ip4(192, 0, 2, 0), .len = 96 + 24, .port = FP_WAN}};

	if (gw_publisher_new(&g->app.publisher, g->app.workers) != 0 || gw_neigh_new(&g->app) != 0)
		fp_die("no memory");
	fp_neighbour(g, FP_LAN, ip4(10, own, 0, 2), host);
	fp_neighbour(g, FP_LAN, ip6(own, 2), host);
	fp_neighbour(g, FP_WAN, ip4(192, 0, 2, other), l->gw[1 - s].port[FP_WAN].mac);
	if (l->cfg.hops)
		l->cfg.hops(g, s);
	if (gw_neigh_publish(&g->app, r, RTE_DIM(r)) != 0)
		fp_die("no memory");
}

static void gateway_ports(struct fp_lab *l, enum fp_site s)
{
	struct fp_gw *g = &l->gw[s];

	configure(g, &l->cfg, s);
	g->app.conf = &g->conf;
	g->app.workers = g->conf.workers;
	g->app.kernel = kernel;
	if (gw_ports_find(&g->app) != 0)
		fp_die("no gateway");
}

static void gateway_start(struct fp_lab *l, enum fp_site s)
{
	struct fp_gw *g = &l->gw[s];

	char path[CONF_STR + 96];

	if (gw_ports_start(&g->app, &l->pools) != 0)
		fp_die("ports do not start");
	for (unsigned i = 0; i < FP_PORTS; i++) {
		memcpy(g->app.port[i]->mac, g->port[i].mac, 6);
		/* The driver of a ring port cannot know how an mbuf is used; here it is read and
		 * returned, as a NIC does. */
		g->app.port[i]->copy_tx = false;
	}
	next_hops(l, s);
	if (gw_jfile_open(&g->app) != 0)
		fp_die("no journal");
	snprintf(path, sizeof(path), "%s/roceway-%s.journal", g->conf.journal_dir, g->conf.name);
	unlink(path); /* the mapping stays */
	rmdir(g->conf.journal_dir);
	if (gw_directory_new(&g->app) != 0)
		fp_die("no directory");
	if (gw_tenants_new(&g->app) != 0)
		fp_die("no tenants");
	if (gw_tunnels_new(&g->app, &g->conf, g->conf.tunnels, g->conf.tenants) != 0)
		fp_die("no tunnels");
	if (gw_siblings_new(&g->app) != 0)
		fp_die("no siblings");
	if (gw_reservations_new(&g->app) != 0)
		fp_die("no reservations");
	for (unsigned i = 0; i < g->app.workers; i++)
		if (gw_worker_start(&g->app.worker[i], &g->app, i, &l->pools) != 0)
			fp_die("no worker");
	g->w = g->app.worker[0];
}

/* What a handshake of the two gateways would give: each worker has secrets of its own. */
static void give_keys(struct fp_lab *l)
{
	for (unsigned s = 0; s < FP_SITES; s++)
		for (unsigned i = 0; i < l->gw[s].app.workers; i++) {
			const uint8_t w = (uint8_t)(16 * i);
			const struct aead_secret way[FP_SITES] = {{{1, w}}, {{2, w}}};
			const struct wan_secrets k = {.tx = way[s], .rx = way[!s]};
			struct eng *e = l->gw[s].app.worker[i]->eng;

			if (eng_tunnel_keys_offer(e, 0, &k, gw_now()) != 0)
				fp_die("no keys");
			eng_tunnel_keys_use(e, 0, gw_now());
		}
}

void fp_lab_new(struct fp_lab *l, const struct fp_cfg *cfg)
{
	uint32_t frame = 0;

	memset(l, 0, sizeof(*l));
	l->cfg = *cfg;
	labs_made++;
	gw_clock_init();
	if (!kernel && gw_kernel_new(&kernel) != 0)
		fp_die("no ring to the kernel");
	for (unsigned s = 0; s < FP_SITES; s++)
		for (unsigned i = 0; i < FP_PORTS; i++) {
			l->gw[s].port[i].queues = cfg->queues ? cfg->queues : 1;
			l->gw[s].port[i].by_port = i == FP_WAN && cfg->steered;
			ring_port(&l->gw[s].port[i], s, i);
		}
	for (unsigned s = 0; s < FP_SITES; s++) {
		gateway_ports(l, s);
		frame = RTE_MAX(frame, gw_ports_max_frame(&l->gw[s].app));
	}
	if (cfg->pools)
		l->pools = *cfg->pools;
	else if (gw_pools_new(&l->pools, BUFFERS, frame) != 0)
		fp_die("no memory for packet buffers");
	for (unsigned s = 0; s < FP_SITES; s++)
		gateway_start(l, s);
	if (cfg->keys)
		give_keys(l);
}

struct rte_mbuf *fp_copy(struct fp_lab *l, const void *bytes, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(l->pools.big);

	if (!m)
		fp_die("packet buffers are used up");
	memcpy(rte_pktmbuf_mtod(m, void *), bytes, len);
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	return m;
}

struct rte_mbuf *fp_carry(struct fp_lab *l, struct rte_mbuf *m)
{
	struct rte_mbuf *c = fp_copy(l, rte_pktmbuf_mtod(m, void *), m->data_len);

	for (const struct rte_mbuf *s = m->next; s; s = s->next)
		memcpy(rte_pktmbuf_append(c, s->data_len), rte_pktmbuf_mtod(s, void *), s->data_len);
	rte_pktmbuf_free(m);
	return c;
}

unsigned fp_queue_of(const struct fp_port *p, const struct rte_mbuf *m)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, RTE_ETHER_HDR_LEN);
	uint32_t tuple[3];

	if (p->queues == 1)
		return 0;
	if (p->queue_of)
		return p->queue_of(p, m);
	if (p->by_port)
		return (unsigned)(rwy_get16(ip + 22) - UDP_PORT) % p->queues;
	for (unsigned i = 0; i < RTE_DIM(tuple); i++) /* addresses, then ports */
		tuple[i] = rwy_get32(ip + 12 + 4 * i);
	return rte_softrss(tuple, RTE_DIM(tuple), rss_key) % p->queues;
}

void fp_arrive(struct fp_port *p, struct rte_mbuf *m)
{
	m->port = p->id;
	if (rte_ring_enqueue(p->rx[fp_queue_of(p, m)], m) != 0)
		fp_die("a receive ring is full");
}

bool fp_port_waits(const struct fp_port *p)
{
	for (unsigned q = 0; q < p->queues; q++)
		if (!rte_ring_empty(p->rx[q]))
			return true;
	return false;
}

bool fp_port_room(const struct fp_port *p)
{
	for (unsigned q = 0; q < p->queues; q++)
		if (rte_ring_full(p->rx[q]))
			return false;
	return true;
}

unsigned fp_sent(struct fp_port *p, struct rte_mbuf **m, unsigned n)
{
	unsigned got = 0;

	for (unsigned q = 0; q < p->queues && got < n; q++) {
		const unsigned k = rte_ring_dequeue_burst(p->tx[q], (void **)(m + got), n - got, NULL);

		for (unsigned i = got; q && i < got + k; i++)
			m[i] = fp_workers_sent(q, m[i]);
		got += k;
	}
	return got;
}
