/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tc filters by netlink: adding, deleting, reading back. flower.c writes the messages' contents.
 * Each request waits for the kernel's answer, which has a reason when it is negative (extended
 * acknowledgement).
 */
#include "gateway/offload/tc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_LIMIT 2 /* seconds; the kernel answers at once */

struct offload_tc {
	struct offload_tc_cfg cfg;
	struct offload_tc_devs devs;
	struct nl_sock *sk;
	bool made_vxlan;
	char no_vxlan[OFFLOAD_WHY];
};

/* --- requests -------------------------------------------------------------------------------- */

/* Returns the kernel's reason behind an error; else the error's text. */
static void refusal(const struct nlmsghdr *h, const struct nlmsgerr *err, char *why)
{
	const struct nlattr *msg = NULL;
	int len = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*err));

	if (h->nlmsg_flags & NLM_F_ACK_TLVS && len > 0)
		msg = nla_find((const struct nlattr *)(const void *)(err + 1), len, NLMSGERR_ATTR_MSG);
	if (msg && nla_len(msg) > 1)
		snprintf(why, OFFLOAD_WHY, "%.*s", nla_len(msg), (const char *)nla_data(msg));
	else
		snprintf(why, OFFLOAD_WHY, "%s", strerror(-err->error));
}

/* Calls `each` for the messages of an answer. Returns 0, or a negative errno with `why`. */
static int reply_read(
    struct offload_tc *t, uint32_t seq, void (*each)(struct nlmsghdr *h, void *arg), void *arg, char *why)
{
	for (;;) {
		struct sockaddr_nl from;
		unsigned char *buf = NULL;
		int n = nl_recv(t->sk, &from, &buf, NULL), rc = 1;

		if (n <= 0) {
			snprintf(
			    why, OFFLOAD_WHY, "no answer from the kernel: %s", n ? nl_geterror(n) : "closed");
			free(buf);
			return -ETIMEDOUT;
		}
		for (struct nlmsghdr *h = (struct nlmsghdr *)(void *)buf; rc > 0 && nlmsg_ok(h, n);
		     h = nlmsg_next(h, &n)) {
			const struct nlmsgerr *err = nlmsg_data(h);

			if (h->nlmsg_seq != seq)
				continue; /* the answer to an abandoned request */
			if (h->nlmsg_type == NLMSG_DONE) {
				rc = 0;
			} else if (h->nlmsg_type == NLMSG_ERROR) {
				rc = err->error < 0 ? err->error : 0;
				if (rc)
					refusal(h, err, why);
			} else if (each) {
				each(h, arg);
			}
		}
		free(buf);
		if (rc <= 0)
			return rc;
	}
}

/* Sends the message and frees it. */
static int request(
    struct offload_tc *t, struct nl_msg *m, void (*each)(struct nlmsghdr *h, void *arg), void *arg, char *why)
{
	int rc;

	nl_complete_msg(t->sk, m);
	rc = nl_send(t->sk, m);
	if (rc < 0) {
		snprintf(why, OFFLOAD_WHY, "netlink: %s", nl_geterror(rc));
		rc = -ETIMEDOUT;
	} else {
		rc = reply_read(t, nlmsg_hdr(m)->nlmsg_seq, each, arg, why);
	}
	nlmsg_free(m);
	return rc;
}

static struct nl_msg *tc_msg(
    int type, int flags, int ifindex, uint32_t parent, uint32_t handle, uint32_t info)
{
	struct nl_msg *m = nlmsg_alloc_simple(type, flags);
	const struct tcmsg head = {.tcm_family = AF_UNSPEC,
	    .tcm_ifindex = ifindex,
	    .tcm_parent = parent,
	    .tcm_handle = handle,
	    .tcm_info = info};

	if (m && nlmsg_append(m, (void *)(uintptr_t)&head, sizeof(head), NLMSG_ALIGNTO) < 0) {
		nlmsg_free(m);
		m = NULL;
	}
	return m;
}

#define INGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)

/* --- filters --------------------------------------------------------------------------------- */

static int device_of(const struct offload_tc *t, const struct offload_rule *r)
{
	return r->match.place == OFFLOAD_IN_VXLAN ? t->devs.vxlan : t->devs.port;
}

/* Returns the filter's info: a preference belongs to one protocol. */
static uint32_t info_of(const struct offload_rule *r)
{
	const uint32_t kind = r->match.family == 4 ? 0 : r->match.family == 6 ? 1 : 2;
	const uint32_t pref = OFFLOAD_TC_PREF + 3u * r->prio + kind;

	return TC_H_MAKE(pref << 16, htons(offload_flower_protocol(r)));
}

/* A filter as the kernel reports it. */
struct filter {
	uint32_t handle, info, flags;
	uint64_t packets, bytes;
	bool ours;
};

static void stats_read(const struct nlattr *action, struct filter *f)
{
	struct nlattr *stats = nla_find(nla_data(action), nla_len(action), TCA_ACT_STATS), *basic, *pkt64;
	struct gnet_stats_basic b = {0};

	basic = stats ? nla_find(nla_data(stats), nla_len(stats), TCA_STATS_BASIC) : NULL;
	pkt64 = stats ? nla_find(nla_data(stats), nla_len(stats), TCA_STATS_PKT64) : NULL;
	if (basic)
		nla_memcpy(&b, basic, sizeof(b));
	f->bytes = b.bytes;
	f->packets = pkt64 ? nla_get_u64(pkt64) : b.packets;
}

static void filter_parse(struct nlmsghdr *h, struct filter *f)
{
	const struct tcmsg *tc = nlmsg_data(h);
	const uint32_t pref = TC_H_MAJ(tc->tcm_info) >> 16;
	struct nlattr *options = nlmsg_find_attr(h, sizeof(*tc), TCA_OPTIONS), *a;

	*f = (struct filter){.handle = tc->tcm_handle, .info = tc->tcm_info};
	f->ours = tc->tcm_handle && pref >= OFFLOAD_TC_PREF && pref < OFFLOAD_TC_PREF + OFFLOAD_TC_PREFS;
	if (!options)
		return;
	a = nla_find(nla_data(options), nla_len(options), TCA_FLOWER_FLAGS);
	f->flags = a ? nla_get_u32(a) : 0;
	a = nla_find(nla_data(options), nla_len(options), TCA_FLOWER_ACT);
	if (a && nla_len(a) >= NLA_HDRLEN)
		stats_read(nla_data(a), f); /* of the first action: all see the same packets */
}

static enum offload_where where_of(uint32_t flags)
{
	return flags & TCA_CLS_FLAGS_IN_HW ? OFFLOAD_HARDWARE : OFFLOAD_KERNEL;
}

static int dump(struct offload_tc *t, int ifindex, void (*each)(struct nlmsghdr *h, void *arg), void *arg)
{
	char why[OFFLOAD_WHY];
	struct nl_msg *m = ifindex ? tc_msg(RTM_GETTFILTER, NLM_F_DUMP, ifindex, INGRESS, 0, 0) : NULL;

	if (!ifindex)
		return 0;
	return m ? request(t, m, each, arg, why) : -ENOMEM;
}

static void on_added(struct nlmsghdr *h, void *arg)
{
	if (h->nlmsg_type == RTM_NEWTFILTER)
		filter_parse(h, arg);
}

static int del(struct offload_tc *t, int ifindex, uint32_t handle, uint32_t info)
{
	char why[OFFLOAD_WHY];
	struct nl_msg *m = tc_msg(RTM_DELTFILTER, 0, ifindex, INGRESS, handle, info);
	int rc;

	if (!m || nla_put_string(m, TCA_KIND, "flower") < 0) {
		nlmsg_free(m);
		return RWY_ENOMEM;
	}
	rc = request(t, m, NULL, NULL, why);
	if (rc == -ENOENT || rc == -ENODEV) /* the filter is gone, or the device is */
		return RWY_ENOENT;
	return rc ? RWY_EAGAIN : 0;
}

static int tc_del(void *ctx, const struct offload_rule *r, uint32_t handle)
{
	struct offload_tc *t = ctx;

	return del(t, device_of(t, r), handle, info_of(r));
}

/* Adds a filter. NLM_F_ECHO: the kernel sends back the filter with the driver's result. */
static int tc_add(
    void *ctx, const struct offload_rule *r, uint32_t handle, enum offload_where *where, char *why)
{
	struct offload_tc *t = ctx;
	const uint32_t flags = t->cfg.skip_hw || *where < OFFLOAD_HARDWARE ? TCA_CLS_FLAGS_SKIP_HW : 0;
	struct nl_msg *m = tc_msg(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ECHO, device_of(t, r),
	    INGRESS, handle, info_of(r));
	struct filter f = {0};
	int rc = m ? offload_flower_put(m, r, &t->devs, flags, why) : RWY_ENOMEM;

	if (rc) {
		nlmsg_free(m);
		return rc;
	}
	rc = request(t, m, on_added, &f, why);
	if (rc == -ENOSPC || rc == -ENOMEM)
		return RWY_ENOMEM;
	if (rc == -ETIMEDOUT) { /* no answer: it may be there */
		(void)!tc_del(ctx, r, handle);
		return RWY_EAGAIN;
	}
	if (rc == -EEXIST || rc == -EBUSY || rc == -EAGAIN || rc == -ENODEV)
		return RWY_EAGAIN;
	*where = where_of(f.flags);
	return rc ? RWY_EINVAL : 0;
}

/* --- all our filters -------------------------------------------------------------------------- */

struct found {
	struct filter *f;
	unsigned n, room;
	bool lost; /* memory was too short for all */
};

static void on_found(struct nlmsghdr *h, void *arg)
{
	struct found *all = arg;
	struct filter f;

	if (h->nlmsg_type != RTM_NEWTFILTER)
		return;
	filter_parse(h, &f);
	if (!f.ours)
		return;
	if (all->n == all->room) {
		const unsigned room = all->room ? 2 * all->room : 64;
		struct filter *more = realloc(all->f, room * sizeof(*more));

		all->lost = all->lost || !more;
		if (!more)
			return;
		all->f = more;
		all->room = room;
	}
	all->f[all->n++] = f;
}

static int flush_device(struct offload_tc *t, int ifindex)
{
	struct found all = {0};
	int rc = dump(t, ifindex, on_found, &all);

	if (rc == -ENODEV || rc == -ENOENT) /* no device, or no filter chain on it: so no filter */
		rc = 0;
	for (unsigned i = 0; i < all.n && !rc; i++) {
		rc = del(t, ifindex, all.f[i].handle, all.f[i].info);
		if (rc == RWY_ENOENT)
			rc = 0;
	}
	free(all.f);
	return rc || all.lost ? RWY_EAGAIN : 0;
}

static int tc_flush(void *ctx)
{
	struct offload_tc *t = ctx;
	int a = flush_device(t, t->devs.port), b = flush_device(t, t->devs.vxlan);

	return a ? a : b;
}

static int read_device(struct offload_tc *t, int ifindex, struct offload_sync *s)
{
	struct found all = {0};
	int rc = dump(t, ifindex, on_found, &all);

	for (unsigned i = 0; i < all.n && !rc; i++)
		offload_sync_seen(
		    s, all.f[i].handle, where_of(all.f[i].flags), true, all.f[i].packets, all.f[i].bytes);
	free(all.f);
	return rc || all.lost ? RWY_EAGAIN : 0;
}

static int tc_read(void *ctx, struct offload_sync *s)
{
	struct offload_tc *t = ctx;
	int a = read_device(t, t->devs.port, s), b = read_device(t, t->devs.vxlan, s);

	return a ? a : b;
}

const struct offload_ops offload_tc_ops = {tc_add, tc_del, tc_flush, tc_read};

/* --- devices --------------------------------------------------------------------------------- */

/* Makes the qdisc that holds filters. An existing one of either kind will do. */
static int place_make(struct offload_tc *t, int ifindex, char *why)
{
	struct nl_msg *m = tc_msg(
	    RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, ifindex, TC_H_CLSACT, TC_H_MAKE(TC_H_CLSACT, 0), 0);
	int rc;

	if (!m || nla_put_string(m, TCA_KIND, "clsact") < 0) {
		nlmsg_free(m);
		return RWY_ENOMEM;
	}
	rc = request(t, m, NULL, NULL, why);
	return rc && rc != -EEXIST ? RWY_EINVAL : 0;
}

static void vxlan_open(struct offload_tc *t)
{
	t->devs.vxlan = offload_vxlan_open(t->sk, t->cfg.vxlan, &t->made_vxlan, t->no_vxlan);
	if (t->devs.vxlan && place_make(t, t->devs.vxlan, t->no_vxlan) != 0)
		t->devs.vxlan = 0;
}

static int socket_open(struct offload_tc *t, char *why)
{
	const struct timeval limit = {.tv_sec = ANSWER_LIMIT};
	const int on = 1;
	int rc = -NLE_NOMEM, fd;

	t->sk = nl_socket_alloc();
	if (t->sk)
		rc = nl_connect(t->sk, NETLINK_ROUTE);
	if (rc < 0) {
		snprintf(why, OFFLOAD_WHY, "netlink: %s", nl_geterror(rc));
		return RWY_EINVAL;
	}
	nl_socket_disable_seq_check(t->sk); /* this file reads answers to tc requests, not libnl */
	fd = nl_socket_get_fd(t->sk);
	/* without these options reasons are shorter */
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return 0;
}

int offload_tc_new(struct offload_tc **out, const struct offload_tc_cfg *cfg, char *why)
{
	struct offload_tc *t = calloc(1, sizeof(*t));
	int rc;

	if (!t) {
		snprintf(why, OFFLOAD_WHY, "out of memory");
		return RWY_ENOMEM;
	}
	t->cfg = *cfg;
	rc = socket_open(t, why);
	t->devs.port = (int)if_nametoindex(cfg->port);
	if (!rc && !t->devs.port) {
		snprintf(why, OFFLOAD_WHY, "there is no device %s", cfg->port);
		rc = RWY_ENOENT;
	}
	if (!rc)
		rc = place_make(t, t->devs.port, why);
	if (rc) {
		offload_tc_free(t);
		return rc;
	}
	vxlan_open(t);
	*out = t;
	return 0;
}

void offload_tc_free(struct offload_tc *t)
{
	if (t && t->made_vxlan)
		offload_vxlan_delete(t->sk, t->devs.vxlan);
	if (t)
		nl_socket_free(t->sk);
	free(t);
}

static bool renumbered(int *ifindex, const char *name)
{
	const int now = (int)if_nametoindex(name);
	const bool other = *ifindex && now != *ifindex;

	if (other && now)
		*ifindex = now;
	return other && now;
}

bool offload_tc_changed(struct offload_tc *t)
{
	char why[OFFLOAD_WHY];
	bool a = renumbered(&t->devs.port, t->cfg.port), b = renumbered(&t->devs.vxlan, t->cfg.vxlan);

	if (a)
		(void)place_make(t, t->devs.port, why);
	if (b)
		(void)place_make(t, t->devs.vxlan, why);
	return a || b;
}

const char *offload_tc_port(const struct offload_tc *t)
{
	return t->cfg.port;
}

const char *offload_tc_vxlan(const struct offload_tc *t)
{
	return t->devs.vxlan ? t->cfg.vxlan : "";
}

const char *offload_tc_no_vxlan(const struct offload_tc *t)
{
	return t->devs.vxlan ? "" : t->no_vxlan;
}
