/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: find the DPDK device of each, configure its queues, start it, watch its link. tap.c has
 * its kernel interface. */
#include <net/if.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/gw.h"
#include "gateway/port/mbuf.h"
#include "gateway/port/device.h"
#include "gateway/setup.h"

#define RX_DESC      1024
#define TX_DESC      1024
#define COPY_BUFFERS 1023
/* a pool's buffers may be a quarter larger than needed before copying costs less */
#define COPY_WORTH 4

/* --- find ------------------------------------------------------------------------------------ */

static int find_id(const char *device, uint16_t *id)
{
	struct rte_dev_iterator it;
	char name[CONF_STR * 2];
	uint16_t i, first = RTE_MAX_ETHPORTS;

	snprintf(name, sizeof(name), "%s", device);
	name[strcspn(name, ",")] = 0;
	if (rte_eth_dev_get_port_by_name(name, id) == 0)
		return 0;
	RTE_ETH_FOREACH_MATCHING_DEV(i, device, &it)
	{
		if (first == RTE_MAX_ETHPORTS)
			first = i;
	}
	*id = first;
	return first == RTE_MAX_ETHPORTS ? RWY_ENOENT : 0;
}

/* Drivers whose queues receive whether they are polled or not. */
static bool fixed_queues(const char *driver)
{
	return !strcmp(driver, "net_af_packet") || !strcmp(driver, "net_af_xdp") ||
	       !strcmp(driver, "net_ring");
}

static void describe(struct gw_port *p, const struct rte_eth_dev_info *info, unsigned workers)
{
	bool kernel_dev;

	snprintf(p->driver, sizeof(p->driver), "%s", info->driver_name);
	kernel_dev = !strcmp(p->driver, "net_af_packet") || !strcmp(p->driver, "net_af_xdp");
	if (!kernel_dev || !info->if_index || !if_indextoname(info->if_index, p->kernel_if))
		p->kernel_if[0] = 0;
	p->rxqs = fixed_queues(p->driver) ? info->max_rx_queues : RTE_MIN(workers, info->max_rx_queues);
	p->txqs = RTE_MIN(workers, info->max_tx_queues);
	p->rxqs = RTE_MAX(1u, p->rxqs);
	p->txqs = RTE_MAX(1u, p->txqs);
	p->ctl_worker = p->idx % workers;
	p->tx_shared = p->txqs < workers;
	p->multi_seg = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	p->copy_tx = !strcmp(p->driver, "net_ring");
}

static bool is_pairs(const struct conf *c, unsigned port)
{
	const int tunnel = conf_standby(c);

	return tunnel >= 0 && c->tunnel[tunnel].port_idx == port;
}

static int port_find(struct gw_app *app, unsigned idx)
{
	const struct conf_port *c = &app->conf->port[idx];
	struct gw_port *p = calloc(1, sizeof(*p));
	struct rte_eth_dev_info info;

	app->port[idx] = p;
	if (!p)
		return RWY_ENOMEM;
	p->conf = c;
	p->idx = (uint16_t)idx;
	p->vlan = c->vlan;
	p->pair = is_pairs(app->conf, idx);
	p->l2_len = c->vlan || (c->priority_tags && c->role == CONF_ROLE_LAN) ? GW_ETH + GW_VLAN : GW_ETH;
	p->tap_fd = p->multicast_fd = -1;
	if (find_id(c->device, &p->id) != 0 || rte_eth_dev_info_get(p->id, &info) != 0) {
		char why[160];

		gw_device_why("/sys", c->device, why, sizeof(why));
		gw_log(GW_LOG_ERROR, "port", "port=%s device=%s did not start: %s", c->name, c->device, why);
		return RWY_ENOENT;
	}
	for (unsigned i = 0; i < idx; i++)
		if (app->port[i]->id == p->id) {
			gw_log(GW_LOG_ERROR, "port", "port=%s and port=%s are the same device", c->name,
			    app->conf->port[i].name);
			return RWY_EEXIST;
		}
	describe(p, &info, app->workers);
	for (unsigned i = 0; i < GW_WORKERS_MAX; i++)
		rte_spinlock_init(&p->tx_lock[i]);
	return 0;
}

int gw_ports_find(struct gw_app *app)
{
	app->ports = app->conf->ports;
	for (unsigned i = 0; i < app->ports; i++) {
		int rc = port_find(app, i);

		if (rc)
			return rc;
	}
	return 0;
}

/* Bytes that a packet buffer must hold; af_packet's frame size counts unless it is far above the
 * MTU. */
uint32_t gw_ports_max_frame(const struct gw_app *app)
{
	uint32_t max = 0, want = 0;

	for (unsigned i = 0; i < app->ports; i++)
		max = RTE_MAX(max, app->conf->port[i].mtu + GW_FRAME_EXTRA);
	for (unsigned i = 0; i < app->ports; i++)
		if (gw_device_is_af_packet(app->conf->port[i].device)) {
			uint32_t frame = gw_device_ring_frame(&app->conf->port[i]) - GW_RING_MBUF;

			if (frame <= max + max / COPY_WORTH)
				want = RTE_MAX(want, frame);
		}
	return RTE_MAX(max, want);
}

/* --- configure ------------------------------------------------------------------------------- */

/* The kernel's interface under the port must accept frames as long as ours. Its MTU is raised,
 * never lowered. */
static void under_mtu(const struct gw_port *p)
{
	struct ifreq r = {0};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int want = (int)p->conf->mtu + (p->l2_len - GW_ETH);

	if (s < 0)
		return;
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", p->kernel_if);
	if (ioctl(s, SIOCGIFMTU, &r) == 0 && r.ifr_mtu < want) {
		gw_log(GW_LOG_NOTICE, "port", "port=%s raising mtu of %s from %d to %d", p->conf->name,
		    p->kernel_if, r.ifr_mtu, want);
		r.ifr_mtu = want;
		if (ioctl(s, SIOCSIFMTU, &r) != 0)
			gw_log(GW_LOG_WARNING, "port", "port=%s %s keeps its mtu: long packets will be lost",
			    p->conf->name, p->kernel_if);
	}
	close(s);
}

static int set_mtu(struct gw_port *p)
{
	int rc;

	if (p->kernel_if[0]) {
		under_mtu(p);
		return 0;
	}
	rc = rte_eth_dev_set_mtu(p->id, (uint16_t)p->conf->mtu);
	if (rc == -ENOTSUP || (rc && gw_device_is_vdev(p->conf->device)))
		return 0; /* a memory device: only its buffers limit frames */
	if (rc)
		gw_log(GW_LOG_ERROR, "port", "port=%s mtu %u refused: %s", p->conf->name, p->conf->mtu,
		    strerror(-rc));
	return rc ? RWY_EINVAL : 0;
}

static int configure(struct gw_port *p, const struct rte_eth_dev_info *info, bool intr)
{
	struct rte_eth_conf conf = {0};

	if (p->vlan && info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_STRIP)
		conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
	if (p->multi_seg)
		conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (p->rxqs > 1 && info->flow_type_rss_offloads) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf =
		    info->flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP);
	}
	conf.intr_conf.rxq = intr;
	return rte_eth_dev_configure(p->id, (uint16_t)p->rxqs, (uint16_t)p->txqs, &conf);
}

/* Buffers for a driver that needs larger ones than the pool's: a few, copied from at once. */
static int copy_pool(struct gw_port *p, const struct gw_pools *pools)
{
	uint32_t frame = gw_device_is_af_packet(p->conf->device) ? gw_device_ring_frame(p->conf) : 0;
	uint32_t room = frame + RTE_PKTMBUF_HEADROOM;
	char name[RTE_MEMPOOL_NAMESIZE];

	if (!frame || room - GW_RING_MBUF <= pools->room)
		return 0;
	snprintf(name, sizeof(name), "rwy_copy_%u", p->idx);
	p->rx_pool =
	    rte_pktmbuf_pool_create(name, COPY_BUFFERS, 0, 0, (uint16_t)RTE_MIN(room, 65535u), SOCKET_ID_ANY);
	if (!p->rx_pool)
		return RWY_ENOMEM;
	p->copy_rx = true;
	gw_log(GW_LOG_NOTICE, "port",
	    "port=%s framesz=%u is much larger than mtu %u needs: each packet is copied once more; "
	    "leave framesz, blocksz and framecnt out of device to have them chosen",
	    p->conf->name, frame, p->conf->mtu);
	return 0;
}

static int queues(struct gw_port *p, struct gw_pools *pools)
{
	uint16_t rxd = RX_DESC, txd = TX_DESC;
	struct rte_mempool *pool = p->copy_rx ? p->rx_pool : pools->big;
	int socket = rte_eth_dev_socket_id(p->id), rc = 0;

	rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &rxd, &txd);
	for (unsigned q = 0; q < p->rxqs && !rc; q++)
		rc = rte_eth_rx_queue_setup(p->id, (uint16_t)q, rxd, (unsigned)socket, NULL, pool);
	for (unsigned q = 0; q < p->txqs && !rc; q++)
		rc = rte_eth_tx_queue_setup(p->id, (uint16_t)q, txd, (unsigned)socket, NULL);
	return rc;
}

/* The address of the configuration. A driver that cannot have it takes all frames, and ours have it
 * as their source. RWY_EINVAL: it does neither. */
static int mac_set(struct gw_port *p)
{
	struct rte_ether_addr a;
	int rc;

	memcpy(a.addr_bytes, p->conf->mac, 6);
	memcpy(p->mac, p->conf->mac, 6);
	if (!strcmp(p->driver, "net_tap")) /* the address belongs to the kernel's end */
		return 0;
	rc = rte_eth_dev_default_mac_addr_set(p->id, &a);
	if (rc && rte_eth_promiscuous_enable(p->id) != 0 && !gw_device_is_vdev(p->conf->device)) {
		gw_log(GW_LOG_ERROR, "port", "port=%s driver=%s takes neither `mac` (%s) nor all frames",
		    p->conf->name, p->driver, strerror(-rc));
		return RWY_EINVAL;
	}
	return 0;
}

static int mac_of(struct gw_port *p)
{
	static const uint8_t none[6];
	struct rte_ether_addr a = {0};

	if (memcmp(p->conf->mac, none, 6) != 0)
		return mac_set(p);

	rte_eth_macaddr_get(p->id, &a);
	memcpy(p->mac, a.addr_bytes, 6);
	/* the address belongs to the kernel's end, so this port needs another one */
	if (!strcmp(p->driver, "net_tap"))
		p->mac[5] ^= 0x80;
	if (!memcmp(p->mac, none, 6)) /* memory devices have none: use a locally administered one */
		memcpy(p->mac, (uint8_t[6]){0x02, 'r', 'w', 'y', 0, (uint8_t)p->idx}, 6);
	return 0;
}

/* Asking a memory device for interrupts, which it lacks, makes DPDK log an error. */
static bool may_interrupt(const struct gw_port *p)
{
	return !gw_device_is_vdev(p->conf->device) || !strcmp(p->driver, "net_tap") ||
	       !strcmp(p->driver, "net_memif");
}

/*
 * For neighbor solicitations. A driver that has no such switch refuses. If a kernel interface is
 * under it, the kernel is asked.
 */
static void take_multicast(struct gw_port *p)
{
	int fd;

	if (rte_eth_allmulticast_enable(p->id) == 0 || !p->kernel_if[0])
		return;
	fd = gw_multicast_open(p->kernel_if);
	if (fd >= 0)
		p->multicast_fd = fd;
	else
		gw_log(GW_LOG_WARNING, "port",
		    "port=%s iface=%s does not take all multicast (%s): IPv6 hosts may not find this gateway",
		    p->conf->name, p->kernel_if, strerror(-fd));
}

static int port_start(struct gw_app *app, struct gw_port *p, struct gw_pools *pools)
{
	bool intr = app->conf->polling == CONF_POLL_ADAPTIVE;
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(p->id, &info);

	if (!rc && intr && configure(p, &info, true) != 0)
		intr = false;
	if (!rc && !intr)
		rc = configure(p, &info, false);
	if (!rc)
		rc = copy_pool(p, pools);
	if (!rc)
		rc = set_mtu(p);
	if (!rc)
		rc = queues(p, pools);
	if (!rc)
		rc = rte_eth_dev_start(p->id);
	if (rc) {
		gw_log(GW_LOG_ERROR, "port", "port=%s driver=%s does not start: %s", p->conf->name, p->driver,
		    strerror(-rc));
		return RWY_EINVAL;
	}
	p->rx_intr = intr && may_interrupt(p) && rte_eth_dev_rx_intr_ctl_q_get_fd(p->id, 0) >= 0;
	take_multicast(p);
	if (p->kernel_if[0])
		gw_ifquiet_set(p->kernel_if);
	return mac_of(p);
}

int gw_ports_start(struct gw_app *app, struct gw_pools *pools)
{
	for (unsigned i = 0; i < app->ports; i++) {
		int rc = port_start(app, app->port[i], pools);

		if (rc)
			return rc;
	}
	gw_ports_poll_link(app);
	return 0;
}

/* --- watch ----------------------------------------------------------------------------------- */

static void link_log(const struct gw_port *p, bool up, uint32_t mbps)
{
	const uint8_t *m = p->mac;

	if (up)
		gw_log(GW_LOG_INFO, "port",
		    "port=%s up speed=%uMbps mac=%02x:%02x:%02x:%02x:%02x:%02x mtu=%u driver=%s rxq=%u "
		    "txq=%u%s%s",
		    p->conf->name, mbps, m[0], m[1], m[2], m[3], m[4], m[5], p->conf->mtu, p->driver, p->rxqs,
		    p->txqs, p->kernel_if[0] ? " iface=" : "", p->kernel_if);
	else
		gw_log(GW_LOG_WARNING, "port", "port=%s down", p->conf->name);
}

void gw_ports_poll_link(struct gw_app *app)
{
	for (unsigned i = 0; i < app->ports; i++) {
		struct gw_port *p = app->port[i];
		struct rte_eth_link l = {0};
		bool up;
		uint32_t mbps;

		if (rte_eth_link_get_nowait(p->id, &l) != 0)
			continue;
		/* net_tap asks the kernel for its interface by name, which fails once the interface
		 * moved to another namespace. */
		up = l.link_status == RTE_ETH_LINK_UP || !strcmp(p->driver, "net_tap");
		mbps = l.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : l.link_speed;
		atomic_store(&p->speed_mbps, mbps); /* it may change while the link is up */
		if (p->link_seen && up == atomic_load(&p->up))
			continue;
		p->link_seen = true;
		atomic_store(&p->up, up);
		link_log(p, up, mbps);
	}
}

void gw_ports_stop(struct gw_app *app)
{
	for (unsigned i = 0; i < app->ports; i++)
		if (app->port[i] && app->port[i]->link_seen) {
			rte_eth_dev_stop(app->port[i]->id);
			rte_eth_dev_close(app->port[i]->id);
		}
	gw_ifquiet_restore();
}

void gw_ports_free(struct gw_app *app)
{
	for (unsigned i = 0; i < app->ports; i++) {
		if (app->port[i]) {
			rte_mempool_free(app->port[i]->rx_pool);
			if (app->port[i]->multicast_fd >= 0)
				close(app->port[i]->multicast_fd);
		}
		free(app->port[i]);
		app->port[i] = NULL;
	}
}

int gw_port_stats_get(const struct gw_app *app, unsigned port, struct gw_port_stats *out)
{
	const struct gw_port *p = port < app->ports ? app->port[port] : NULL;
	struct rte_eth_stats s = {0};

	memset(out, 0, sizeof(*out));
	if (!p)
		return RWY_EINVAL;
	rte_eth_stats_get(p->id, &s);
	out->up = atomic_load(&p->up);
	out->speed_mbps = atomic_load(&p->speed_mbps);
	memcpy(out->mac, p->mac, 6);
	memcpy(out->driver, p->driver, sizeof(out->driver));
	memcpy(out->tap, p->tap, sizeof(out->tap));
	out->rx_queues = p->rxqs;
	out->tx_queues = p->txqs;
	out->rx_packets = s.ipackets;
	out->rx_bytes = s.ibytes;
	out->tx_packets = s.opackets;
	out->tx_bytes = s.obytes;
	out->rx_missed = s.imissed;
	out->rx_errors = s.ierrors;
	out->rx_nombuf = s.rx_nombuf;
	out->tx_errors = s.oerrors;
	return 0;
}
