/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's interface of each port: a tap named rwy-<port> with the port's MAC address, MTU and
 * configured addresses. The kernel does ARP, ND and ICMP for the gateway there. The interface lives
 * as long as its file descriptor, so it vanishes with the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/gw.h"
#include "gateway/setup.h"

/* what: "ipv4/conf" */
static void sysctl_set(const struct gw_port *p, const char *what, const char *key, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/%s/%s/%s", what, p->tap, key);
	gw_sysctl_write(path, value);
}

/* The tap answers only for its own addresses and takes no configuration from the network, whatever
 * the system's defaults are. */
static void sysctls(const struct gw_port *p)
{
	sysctl_set(p, "ipv4/conf", "arp_ignore", "1");
	sysctl_set(p, "ipv4/conf", "arp_announce", "2");
	sysctl_set(p, "ipv6/conf", "disable_ipv6", "0");
	sysctl_set(p, "ipv6/conf", "accept_ra", "0");
	sysctl_set(p, "ipv6/conf", "router_solicitations", "0");
}

/*
 * A gateway that takes over knows no neighbour, and the answer to its question goes to the other
 * one of the pair while that one still sends: it asks again soon, instead of once a second. It
 * waits for an answer as long as ever: 3 s for a host that it knows.
 */
static void ask_fast(const struct gw_port *p)
{
	static const char *const families[] = {"ipv4/neigh", "ipv6/neigh"};

	for (unsigned i = 0; i < 2; i++) {
		sysctl_set(p, families[i], "retrans_time_ms", "20");
		sysctl_set(p, families[i], "mcast_solicit", "50");
		sysctl_set(p, families[i], "ucast_solicit", "150");
	}
}

static int create(struct gw_port *p)
{
	struct ifreq r = {0};

	snprintf(p->tap, sizeof(p->tap), CONF_TAP "%s", p->conf->name);
	p->tap_fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (p->tap_fd < 0) {
		gw_log(GW_LOG_ERROR, "tap", "/dev/net/tun: %s", strerror(errno));
		return RWY_EINVAL;
	}
	r.ifr_flags = IFF_TAP | IFF_NO_PI;
	memcpy(r.ifr_name, p->tap, sizeof(p->tap));
	if (ioctl(p->tap_fd, TUNSETIFF, &r) != 0) {
		gw_log(GW_LOG_ERROR, "tap", "interface %s: %s%s", p->tap, strerror(errno),
		    errno == EBUSY ? ": does another gateway run in this network namespace?" : "");
		return RWY_EINVAL;
	}
	p->tap_ifindex = (int)if_nametoindex(p->tap);
	return 0;
}

static int link_up(struct nl_sock *s, const struct gw_port *p)
{
	struct rtnl_link *orig = NULL, *l = rtnl_link_alloc();
	struct nl_addr *mac = nl_addr_build(AF_LLC, p->mac, 6);
	int rc = -NLE_NOMEM;

	if (l && mac) {
		rtnl_link_set_addr(l, mac);
		rtnl_link_set_mtu(l, p->conf->mtu);
		rtnl_link_set_flags(l, IFF_UP);
		rc = rtnl_link_get_kernel(s, p->tap_ifindex, NULL, &orig);
	}
	if (!rc)
		rc = rtnl_link_change(s, orig, l, 0);
	if (rc)
		gw_log(GW_LOG_ERROR, "tap", "interface %s: %s", p->tap, nl_geterror(rc));
	nl_addr_put(mac);
	rtnl_link_put(orig);
	rtnl_link_put(l);
	return rc ? RWY_EINVAL : 0;
}

static int address_add(struct nl_sock *s, const struct gw_port *p, const struct conf_prefix *c)
{
	bool v4 = rwy_ip_is4(&c->addr);
	struct rtnl_addr *a = rtnl_addr_alloc();
	struct nl_addr *n = nl_addr_build(v4 ? AF_INET : AF_INET6, c->addr.b + (v4 ? 12 : 0), v4 ? 4 : 16);
	char text[64] = "";
	int rc = -NLE_NOMEM;

	if (a && n) {
		nl_addr_set_prefixlen(n, v4 ? c->len - 96 : c->len);
		rtnl_addr_set_ifindex(a, p->tap_ifindex);
		rtnl_addr_set_local(a, n);
		/* addresses are usable at once: no second of duplicate address detection */
		if (!v4)
			rtnl_addr_set_flags(a, IFA_F_NODAD);
		rc = rtnl_addr_add(s, a, 0);
		nl_addr2str(n, text, sizeof(text));
	}
	if (rc)
		gw_log(GW_LOG_ERROR, "tap", "interface %s address %s: %s", p->tap, text, nl_geterror(rc));
	nl_addr_put(n);
	rtnl_addr_put(a);
	return rc ? RWY_EINVAL : 0;
}

static int tap_open(struct nl_sock *s, struct gw_port *p, bool of_pair)
{
	int rc = create(p);

	if (rc)
		return rc;
	sysctls(p);
	if (of_pair && !p->pair)
		ask_fast(p);
	rc = link_up(s, p);
	for (unsigned i = 0; i < p->conf->addrs && !rc; i++)
		rc = address_add(s, p, &p->conf->addr[i]);
	return rc;
}

int gw_taps_open(struct gw_app *app)
{
	struct nl_sock *s = nl_socket_alloc();
	int rc = s && nl_connect(s, NETLINK_ROUTE) == 0 ? 0 : RWY_ENOMEM;

	for (unsigned i = 0; i < app->ports && !rc; i++)
		rc = tap_open(s, app->port[i], conf_standby(app->conf) >= 0);
	nl_socket_free(s);
	return rc;
}

void gw_taps_close(struct gw_app *app)
{
	for (unsigned i = 0; i < app->ports; i++)
		if (app->port[i] && app->port[i]->tap_fd >= 0) {
			close(app->port[i]->tap_fd);
			app->port[i]->tap_fd = -1;
		}
}
