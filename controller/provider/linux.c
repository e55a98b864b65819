/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provider `linux`: the network is this machine's own interfaces, and the kernel enforces
 * reservations. A path is an interface and a destination, and may be a DSCP (`steer`). The tunnels
 * of a path share one htb class, whose rate is their sum; a u32 filter puts its packets into it.
 * Other traffic is not limited. The provider works in the process's network namespace and owns the
 * root qdisc (handle 5257:). Opening it makes a new one, so reservations of an earlier process are
 * gone until its tunnels are made again.
 */
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/if_ether.h>
#include <netlink/netlink.h>
#include <netlink/route/classifier.h>
#include <netlink/route/cls/u32.h>
#include <netlink/route/link.h>
#include <netlink/route/qdisc.h>
#include <netlink/route/qdisc/htb.h>

#include "controller/provider/internal.h"

#define ROOT    0x5257u
#define QUANTUM 60000u

struct where {
	int ifindex;
	int family;
	uint8_t addr[16];
	unsigned len;
	uint8_t dscp; /* 0: any */
	bool has;     /* its class and filter exist */
};

struct linux_net {
	struct provider p;
	struct provider_made made;
	struct where *where; /* one for each path */
	struct nl_sock *sock;
};

static void net_close(struct provider *p)
{
	struct linux_net *l = (struct linux_net *)p;

	if (!l)
		return;
	if (l->sock)
		nl_socket_free(l->sock);
	provider_made_fini(&l->made);
	free(l->where);
	free(l);
}

static void tc_place(void *tc, int ifindex, uint32_t parent, uint32_t handle)
{
	rtnl_tc_set_ifindex(TC_CAST(tc), ifindex);
	rtnl_tc_set_parent(TC_CAST(tc), parent);
	if (handle)
		rtnl_tc_set_handle(TC_CAST(tc), handle);
}

static int set_class(struct linux_net *l, unsigned path, uint64_t bps)
{
	struct rtnl_class *c = rtnl_class_alloc();
	uint64_t burst = bps / 8 / 100;
	int rc;

	if (!c)
		return -NLE_NOMEM;
	if (burst < 20000)
		burst = 20000; /* bytes: a few packets of any MTU */
	if (burst > 16u << 20)
		burst = 16u << 20;
	tc_place(c, l->where[path].ifindex, TC_HANDLE(ROOT, 0), TC_HANDLE(ROOT, path + 1));
	rc = rtnl_tc_set_kind(TC_CAST(c), "htb");
	if (rc == 0)
		rc = rtnl_htb_set_rate64(c, (bps + 7) / 8);
	if (rc == 0)
		rc = rtnl_htb_set_ceil64(c, (bps + 7) / 8);
	if (rc == 0)
		rc = rtnl_htb_set_rbuffer(c, (uint32_t)burst);
	if (rc == 0)
		rc = rtnl_htb_set_cbuffer(c, (uint32_t)burst);
	if (rc == 0)
		rc = rtnl_htb_set_quantum(c, QUANTUM);
	if (rc == 0)
		rc = rtnl_class_add(l->sock, c, NLM_F_CREATE);
	rtnl_class_put(c);
	return rc;
}

static struct rtnl_cls *filter_of(const struct linux_net *l, unsigned path)
{
	struct rtnl_cls *f = rtnl_cls_alloc();

	if (!f)
		return NULL;
	tc_place(f, l->where[path].ifindex, TC_HANDLE(ROOT, 0), 0);
	/* A path of any DSCP gets what those of one leave. */
	rtnl_cls_set_prio(f, (uint16_t)(path + 1 + (l->where[path].dscp ? 0 : PROVIDER_PATHS_MAX)));
	rtnl_cls_set_protocol(f, l->where[path].family == AF_INET ? ETH_P_IP : ETH_P_IPV6);
	return f;
}

/* Matches destination and DSCP in 32-bit words of the IP header. */
static int add_keys(struct rtnl_cls *f, const struct where *w)
{
	unsigned i, bits, at = w->family == AF_INET ? 16 : 24, words = w->family == AF_INET ? 1 : 4;
	const unsigned shift = w->family == AF_INET ? 18 : 22; /* of the DSCP in the first word */
	uint32_t v, mask;
	int rc = 0;

	if (w->dscp)
		rc = rtnl_u32_add_key_uint32(f, (uint32_t)w->dscp << shift, 63u << shift, 0, 0);

	for (i = 0; i < words && rc == 0; i++) {
		bits = w->len > 32 * i ? w->len - 32 * i : 0;
		if (bits == 0 && i > 0)
			break;
		mask = bits >= 32 ? UINT32_MAX : bits ? ~(UINT32_MAX >> bits) : 0;
		memcpy(&v, w->addr + 4 * i, 4);
		rc = rtnl_u32_add_key_uint32(f, ntohl(v) & mask, mask, (int)(at + 4 * i), 0);
	}
	return rc;
}

static int add_filter(struct linux_net *l, unsigned path)
{
	struct rtnl_cls *f = filter_of(l, path);
	int rc;

	if (!f)
		return -NLE_NOMEM;
	rc = rtnl_tc_set_kind(TC_CAST(f), "u32");
	if (rc == 0)
		rc = add_keys(f, &l->where[path]);
	if (rc == 0)
		rc = rtnl_u32_set_classid(f, TC_HANDLE(ROOT, path + 1));
	if (rc == 0)
		rc = rtnl_u32_set_cls_terminal(f);
	if (rc == 0)
		rc = rtnl_cls_add(l->sock, f, NLM_F_CREATE | NLM_F_EXCL);
	rtnl_cls_put(f);
	return rc;
}

static int del_class(struct linux_net *l, unsigned path)
{
	struct rtnl_class *c = rtnl_class_alloc();
	int rc;

	if (!c)
		return -NLE_NOMEM;
	tc_place(c, l->where[path].ifindex, TC_HANDLE(ROOT, 0), TC_HANDLE(ROOT, path + 1));
	rc = rtnl_class_delete(l->sock, c);
	rtnl_class_put(c);
	return rc == -NLE_OBJ_NOTFOUND ? 0 : rc;
}

static int del_filter(struct linux_net *l, unsigned path)
{
	struct rtnl_cls *f = filter_of(l, path);
	int rc;

	if (!f)
		return -NLE_NOMEM;
	rc = rtnl_cls_delete(l->sock, f, 0);
	rtnl_cls_put(f);
	return rc == -NLE_OBJ_NOTFOUND ? 0 : rc;
}

/* Sets the kernel's reservation of a path to `bps`; 0: removes it. */
static int set_path(struct linux_net *l, unsigned path, uint64_t bps)
{
	struct where *w = &l->where[path];
	int rc;

	if (bps) {
		rc = set_class(l, path, bps);
		if (rc == 0 && !w->has) {
			rc = add_filter(l, path);
			if (rc)
				(void)del_class(l, path);
		}
		w->has = w->has || rc == 0;
		return rc;
	}
	if (!w->has)
		return 0;
	rc = del_filter(l, path);
	if (rc == 0)
		rc = del_class(l, path);
	w->has = w->has && rc != 0;
	return rc;
}

static int parse_remote(struct where *w, const char *text, struct provider_err *err)
{
	char addr[PLAN_NAME_MAX], *slash, *end;
	unsigned long len;

	(void)snprintf(addr, sizeof(addr), "%s", text);
	slash = strchr(addr, '/');
	if (slash)
		*slash++ = '\0';
	w->family = strchr(addr, ':') ? AF_INET6 : AF_INET;
	w->len = w->family == AF_INET ? 32 : 128;
	if (inet_pton(w->family, addr, w->addr) != 1)
		return provider_fail(err, RWY_EINVAL, "remote %.60s: is no address", text);
	if (slash) {
		len = strtoul(slash, &end, 10);
		if (*slash < '0' || *slash > '9' || *end || len > w->len)
			return provider_fail(err, RWY_EINVAL, "remote %.60s: is no prefix", text);
		w->len = (unsigned)len;
	}
	return 0;
}

/* Where a path goes, and by what its packets are told. */
static int parse_path(struct where *w, const struct provider_path *p, struct provider_err *err)
{
	if (p->route.steer.source_port)
		return provider_fail(err, RWY_EINVAL,
		    "path %.60s: steer.source_port: packets are told by `remote` and `dscp`", p->route.name);
	w->dscp = p->route.steer.dscp;
	return parse_remote(w, p->remote, err);
}

/* Makes our empty htb the root qdisc of an interface. */
static int make_root(struct linux_net *l, int ifindex)
{
	struct rtnl_qdisc *q = rtnl_qdisc_alloc();
	int rc;

	if (!q)
		return -NLE_NOMEM;
	tc_place(q, ifindex, TC_H_ROOT, 0);
	(void)rtnl_qdisc_delete(l->sock, q); /* there may be none */
	tc_place(q, ifindex, TC_H_ROOT, TC_HANDLE(ROOT, 0));
	rc = rtnl_tc_set_kind(TC_CAST(q), "htb");
	if (rc == 0)
		rc = rtnl_htb_set_defcls(q, 0);
	if (rc == 0)
		rc = rtnl_qdisc_add(l->sock, q, NLM_F_CREATE | NLM_F_EXCL);
	rtnl_qdisc_put(q);
	return rc;
}

static int find_interfaces(struct linux_net *l, struct provider_err *err)
{
	struct rtnl_link *link;
	unsigned i, j;
	int rc;

	for (i = 0; i < l->made.n; i++) {
		rc = parse_path(&l->where[i], &l->made.path[i], err);
		if (rc)
			return rc;
		rc = rtnl_link_get_kernel(l->sock, 0, l->made.path[i].interface, &link);
		if (rc)
			return provider_fail(err, RWY_EINVAL, "interface %.60s: %.100s",
			    l->made.path[i].interface, nl_geterror(rc));
		l->where[i].ifindex = rtnl_link_get_ifindex(link);
		rtnl_link_put(link);
	}
	for (i = 0; i < l->made.n; i++) {
		for (j = 0; j < i && l->where[j].ifindex != l->where[i].ifindex; j++)
			;
		rc = j == i ? make_root(l, l->where[i].ifindex) : 0;
		if (rc)
			return provider_fail(err, PROVIDER_EIO, "interface %.60s: htb: %.100s",
			    l->made.path[i].interface, nl_geterror(rc));
	}
	return 0;
}

/* Checks the file alone: interfaces may appear later, and other programs may own them. */
static int net_check(const struct provider_option *o, unsigned n, struct provider_err *err)
{
	const char *file = provider_option(o, n, "file");
	struct provider_path *path = NULL;
	struct where w;
	int count, rc = provider_options_check(o, n, provider_linux.options, err);

	if (rc)
		return rc;
	if (!file)
		return provider_fail(err, RWY_EINVAL, "file: is missing");
	count = provider_json_file(&path, file, PROVIDER_JSON_SITES | PROVIDER_JSON_LINUX, err);
	for (int i = 0; i < count && !rc; i++)
		rc = parse_path(&w, &path[i], err);
	free(path);
	return count < 0 ? count : rc;
}

static int net_open(
    struct provider **out, const struct provider_option *o, unsigned n, struct provider_err *err)
{
	const char *file = provider_option(o, n, "file");
	struct provider_path *path = NULL;
	struct linux_net *l;
	int rc, count;

	*out = NULL;
	rc = provider_options_check(o, n, provider_linux.options, err);
	if (rc)
		return rc;
	if (!file)
		return provider_fail(err, RWY_EINVAL, "file: is missing");
	count = provider_json_file(&path, file, PROVIDER_JSON_SITES | PROVIDER_JSON_LINUX, err);
	if (count < 0)
		return count;
	l = calloc(1, sizeof(*l));
	if (!l) {
		free(path);
		return provider_fail(err, RWY_ENOMEM, "out of memory");
	}
	l->p.ops = &provider_linux;
	rc = provider_made_init(&l->made, path, (unsigned)count);
	l->where = calloc(count ? (size_t)count : 1, sizeof(*l->where));
	l->sock = nl_socket_alloc();
	if (rc || !l->where || !l->sock)
		rc = provider_fail(err, RWY_ENOMEM, "out of memory");
	else if (nl_connect(l->sock, NETLINK_ROUTE))
		rc = provider_fail(err, PROVIDER_EIO, "netlink cannot be opened");
	else
		rc = find_interfaces(l, err);
	if (rc) {
		net_close(&l->p);
		return rc;
	}
	*out = &l->p;
	return 0;
}

static int net_routes(struct provider *p, const char *first, const char *second, struct plan_route *out,
    unsigned max, struct provider_err *err)
{
	return provider_made_routes(&((struct linux_net *)p)->made, first, second, out, max);
}

/* Changes all paths from the tunnel `was` to `is`; each may be NULL. On an error the kernel's state
 * is as before. */
static int change(struct linux_net *l, const struct provider_tunnel *was, const struct provider_tunnel *is,
    struct provider_err *err)
{
	unsigned i, back;
	int rc;

	for (i = 0; i < l->made.n; i++) {
		if (provider_tunnel_bps(was, i) == provider_tunnel_bps(is, i))
			continue;
		rc = set_path(
		    l, i, l->made.taken[i] - provider_tunnel_bps(was, i) + provider_tunnel_bps(is, i));
		if (rc == 0)
			continue;
		for (back = 0; back < i; back++)
			if (provider_tunnel_bps(was, back) != provider_tunnel_bps(is, back))
				(void)set_path(l, back, l->made.taken[back]);
		return provider_fail(
		    err, PROVIDER_EIO, "interface %.60s: %.100s", l->made.path[i].interface, nl_geterror(rc));
	}
	return 0;
}

static int net_make(struct provider *p, const char *name, const char *first, const char *second,
    const struct plan_route *routes, const struct plan_placement *pl, struct provider_err *err)
{
	struct linux_net *l = (struct linux_net *)p;
	struct provider_tunnel *t;
	int rc;

	t = provider_made_new(&l->made, name, first, second, routes, pl, &rc, err);
	if (!t)
		return rc;
	rc = change(l, provider_made_find(&l->made, name), t, err);
	if (rc)
		provider_tunnel_free(t);
	else
		provider_made_put(&l->made, t);
	return rc;
}

static int net_drop(struct provider *p, const char *name, struct provider_err *err)
{
	struct linux_net *l = (struct linux_net *)p;
	int rc = change(l, provider_made_find(&l->made, name), NULL, err);

	if (rc == 0)
		provider_made_drop(&l->made, name);
	return rc;
}

static const char *const options[] = {
    "file: paths between the sites, with interface and remote (docs/controller-planning.md)", NULL};

const struct provider_ops provider_linux = {
    .name = "linux",
    .help = "this machine's interfaces, enforced by htb",
    .options = options,
    .forgets = true,
    .check = net_check,
    .open = net_open,
    .close = net_close,
    .routes = net_routes,
    .make = net_make,
    .drop = net_drop,
};
