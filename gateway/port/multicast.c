/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multicast of a kernel interface under an af_packet or af_xdp port. The drivers of these ports
 * cannot ask the network card for it, and the kernel does not either while IPv6 is off there
 * (ifquiet.c). Neighbor solicitations (RFC 4861) are multicast: without them no host finds the
 * gateway's IPv6 address. A packet socket that receives nothing asks for all of them; when it is
 * closed, or the process dies, the kernel takes that back.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/setup.h"

int gw_multicast_open(const char *ifname)
{
	struct packet_mreq m = {.mr_ifindex = (int)if_nametoindex(ifname), .mr_type = PACKET_MR_ALLMULTI};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m)) != 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}
