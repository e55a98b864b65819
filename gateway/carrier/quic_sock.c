/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP sockets for QUIC: many datagrams a system call, by UDP_SEGMENT and UDP_GRO where the kernel
 * has them, with DF and ECN.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/carrier/internal.h"

#define BUFFER (8 << 20)
#define READS  16 /* most system calls for one socket at a time */

static void set_int(int fd, int level, int name, int value)
{
	/* each option is only an improvement */
	(void)!setsockopt(fd, level, name, &value, sizeof(value));
}

static void buffer(int fd, int force, int plain)
{
	int size = BUFFER / 2;

	if (setsockopt(fd, SOL_SOCKET, force, &size, sizeof(size)) != 0)
		set_int(fd, SOL_SOCKET, plain, size);
}

int gw_quic_sock_new(const struct gw_quic_addr *local, uint8_t dscp)
{
	bool v4 = rwy_ip_is4(&local->ip);
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), e;
	struct base_sockaddr a;

	if (fd < 0)
		return -1;
	base_sockaddr_make(&a, &local->ip, local->port);
	buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
	buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
	set_int(fd, IPPROTO_UDP, UDP_GRO, 1);
	if (v4) {
		set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
		set_int(fd, IPPROTO_IP, IP_RECVTOS, 1);
		set_int(fd, IPPROTO_IP, IP_TOS, dscp << 2);
	} else {
		set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
		set_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
		set_int(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
		set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, dscp << 2);
	}
	if (bind(fd, (struct sockaddr *)&a.ss, a.len) == 0)
		return fd;
	e = errno;
	close(fd);
	errno = e;
	return -1;
}

/* --- sending ---------------------------------------------------------------------------------- */
static ssize_t send_some(int fd, const struct gw_quic_out *out, size_t at, size_t n)
{
	struct base_sockaddr a;
	struct iovec v = {(void *)(uintptr_t)(out->data + at), n};
	union {
		struct cmsghdr align;
		char b[CMSG_SPACE(sizeof(uint16_t))];
	} ctl = {0};
	struct msghdr h = {.msg_name = &a.ss, .msg_iov = &v, .msg_iovlen = 1};
	uint16_t segment = (uint16_t)out->segment;

	base_sockaddr_make(&a, &out->remote.ip, out->remote.port);
	h.msg_namelen = a.len;
	if (n > out->segment) {
		struct cmsghdr *m = &ctl.align;

		h.msg_control = ctl.b;
		h.msg_controllen = sizeof(ctl.b);
		m->cmsg_level = IPPROTO_UDP;
		m->cmsg_type = UDP_SEGMENT;
		m->cmsg_len = CMSG_LEN(sizeof(segment));
		memcpy(CMSG_DATA(m), &segment, sizeof(segment));
	}
	return sendmsg(fd, &h, MSG_NOSIGNAL);
}

bool gw_quic_sock_send(int fd, const struct gw_quic_out *out)
{
	size_t step = out->len;

	for (size_t at = 0; at < out->len;) {
		size_t n = out->len - at < step ? out->len - at : step;

		if (send_some(fd, out, at, n) < 0) {
			if (errno == EAGAIN || errno == ENOBUFS)
				return false;
			if (n > out->segment && (errno == EIO || errno == EINVAL)) {
				step = out->segment; /* no segmentation on this path */
				continue;
			}
			/* Anything else is a lost datagram, as a probe that is too large is. */
		}
		at += n;
	}
	return true;
}

/* --- receiving -------------------------------------------------------------------------------- */
/* Reads what the kernel says about one or more datagrams. */
static void controls(struct msghdr *h, size_t *segment, uint8_t *ecn)
{
	for (struct cmsghdr *m = CMSG_FIRSTHDR(h); m; m = CMSG_NXTHDR(h, m)) {
		int v = 0;

		if (m->cmsg_level == IPPROTO_UDP && m->cmsg_type == UDP_GRO) {
			memcpy(&v, CMSG_DATA(m), sizeof(v));
			if (v > 0)
				*segment = (size_t)v;
		} else if (m->cmsg_level == IPPROTO_IP && m->cmsg_type == IP_TOS) {
			*ecn = *CMSG_DATA(m) & 3;
		} else if (m->cmsg_level == IPPROTO_IPV6 && m->cmsg_type == IPV6_TCLASS) {
			memcpy(&v, CMSG_DATA(m), sizeof(v));
			*ecn = v & 3;
		}
	}
}

void gw_quic_sock_read(int fd, struct gw_quic_end *e, rwy_time now)
{
	static _Thread_local uint8_t b[65536];

	for (unsigned i = 0; i < READS; i++) {
		struct base_sockaddr a;
		struct gw_quic_addr from = {0};
		struct iovec v = {b, sizeof(b)};
		_Alignas(struct cmsghdr) char ctl[128];
		struct msghdr h = {.msg_name = &a.ss,
		    .msg_namelen = sizeof(a.ss),
		    .msg_iov = &v,
		    .msg_iovlen = 1,
		    .msg_control = ctl,
		    .msg_controllen = sizeof(ctl)};
		ssize_t n = recvmsg(fd, &h, 0);
		size_t segment = n > 0 ? (size_t)n : 1;
		uint8_t ecn = 0;

		if (n < 0)
			return;
		base_sockaddr_ip(&a, &from.ip);
		/* IPv6 has its port in the same place */
		from.port = ntohs(((const struct sockaddr_in *)&a.ss)->sin_port);
		controls(&h, &segment, &ecn);
		for (size_t at = 0; at < (size_t)n; at += segment)
			gw_quic_read(
			    e, &from, b + at, (size_t)n - at < segment ? (size_t)n - at : segment, ecn, now);
	}
}
