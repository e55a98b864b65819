/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/component/rc/lan.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

void lan_open(struct lan *l, const char *netns, const char *mac)
{
	struct sockaddr_ll sa = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
	struct ifreq r = {.ifr_name = "eth0"};
	char path[256];
	int ns, buf = 16 << 20;

	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET) != 0)
		goto err;
	close(ns);
	l->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_IP));
	if (l->fd < 0 || ioctl(l->fd, SIOCGIFHWADDR, &r) != 0)
		goto err;
	memcpy(l->head + 6, r.ifr_hwaddr.sa_data, 6);
	if (sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &l->head[0], &l->head[1], &l->head[2], &l->head[3],
	        &l->head[4], &l->head[5]) != 6)
		goto err;
	l->head[12] = 8;
	if (ioctl(l->fd, SIOCGIFINDEX, &r) != 0)
		goto err;
	sa.sll_ifindex = r.ifr_ifindex;
	if (bind(l->fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
		goto err;
	(void)!setsockopt(l->fd, SOL_SOCKET, SO_RCVBUFFORCE, &buf, sizeof(buf));
	return;
err:
	perror(netns);
	exit(2);
}

void lan_send(const struct lan *l, const uint8_t *ip, uint32_t len)
{
	struct iovec v[2] = {{(void *)(uintptr_t)l->head, 14}, {(void *)(uintptr_t)ip, len}};

	(void)!writev(l->fd, v, 2);
}

uint32_t lan_receive(const struct lan *l, uint8_t *ip, uint32_t size)
{
	uint8_t head[14];
	struct iovec v[2] = {{head, sizeof(head)}, {ip, size}};
	struct sockaddr_ll from = {0};
	struct msghdr m = {.msg_name = &from, .msg_iov = v, .msg_iovlen = 2};
	ssize_t n;

	do {
		m.msg_namelen = sizeof(from);
		n = recvmsg(l->fd, &m, 0);
	} while (n > 14 && from.sll_pkttype == PACKET_OUTGOING);
	return n > 14 ? (uint32_t)n - 14 : 0;
}
