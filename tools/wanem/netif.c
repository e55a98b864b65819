/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AF_PACKET input and output; see netif.h. Receiving and sending use two sockets: the receiving one
 * asks for the virtio header, which tells about unfinished checksums and super-frames; the sending
 * one has no protocol and so receives nothing.
 */
#include "tools/wanem/netif.h"

#include "tools/wanem/line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define BLOCK_SIZE   65536u
#define BLOCK_COUNT  256u
#define FRAME_SIZE   9344u /* headers of the ring, 9018 bytes of frame, alignment */
#define PER_BLOCK    (BLOCK_SIZE / FRAME_SIZE)
#define FRAME_COUNT  (PER_BLOCK * BLOCK_COUNT)
#define SOCKET_BUF   (16 << 20)
#define VLAN_HLEN    4
#define MACS_LEN     12
#define UNTAGGED_MAX (WANEM_FRAME_MAX - VLAN_HLEN)

_Static_assert(WANEM_SLOT_SIZE >= WANEM_FRAME_MAX, "a slot holds the longest frame");

static struct tpacket2_hdr *ring_frame(const struct wanem_netif *nif)
{
	return (struct tpacket2_hdr *)(nif->ring + (size_t)(nif->cur / PER_BLOCK) * BLOCK_SIZE +
	                               (size_t)(nif->cur % PER_BLOCK) * FRAME_SIZE);
}

static int set_opt(int fd, int opt, int value)
{
	return setsockopt(fd, SOL_PACKET, opt, &value, sizeof(value));
}

static int bind_to(int fd, int ifindex, uint16_t protocol)
{
	struct sockaddr_ll addr = {
	    .sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = ifindex};

	return bind(fd, (struct sockaddr *)&addr, sizeof(addr));
}

/* Switches merging off: merged frames would leave as super-frames. Not all drivers have these
 * switches, so a failure is no error. */
static void merge_off(const struct wanem_netif *nif)
{
	struct ethtool_value value = {.cmd = ETHTOOL_SGRO};
	struct ifreq req;

	memset(&req, 0, sizeof(req));
	memcpy(req.ifr_name, nif->name, sizeof(nif->name));
	req.ifr_data = (void *)&value;
	ioctl(nif->tx_fd, SIOCETHTOOL, &req);
	value = (struct ethtool_value){.cmd = ETHTOOL_GFLAGS};
	if (!ioctl(nif->tx_fd, SIOCETHTOOL, &req) && (value.data & ETH_FLAG_LRO)) {
		value.cmd = ETHTOOL_SFLAGS;
		value.data &= ~(uint32_t)ETH_FLAG_LRO;
		ioctl(nif->tx_fd, SIOCETHTOOL, &req);
	}
}

static int open_rx(struct wanem_netif *nif)
{
	struct packet_mreq promisc = {.mr_ifindex = nif->ifindex, .mr_type = PACKET_MR_PROMISC};
	struct tpacket_req req = {.tp_block_size = BLOCK_SIZE,
	    .tp_block_nr = BLOCK_COUNT,
	    .tp_frame_size = FRAME_SIZE,
	    .tp_frame_nr = FRAME_COUNT};

	nif->rx_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (nif->rx_fd < 0)
		return -1;
	if (set_opt(nif->rx_fd, PACKET_VERSION, TPACKET_V2) || set_opt(nif->rx_fd, PACKET_VNET_HDR, 1) ||
	    set_opt(nif->rx_fd, PACKET_IGNORE_OUTGOING, 1) ||
	    setsockopt(nif->rx_fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)))
		return -1;
	nif->ring =
	    mmap(NULL, (size_t)BLOCK_SIZE * BLOCK_COUNT, PROT_READ | PROT_WRITE, MAP_SHARED, nif->rx_fd, 0);
	if (nif->ring == MAP_FAILED) {
		nif->ring = NULL;
		return -1;
	}
	if (setsockopt(nif->rx_fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promisc, sizeof(promisc)))
		return -1;
	return bind_to(nif->rx_fd, nif->ifindex, ETH_P_ALL);
}

static int open_tx(struct wanem_netif *nif)
{
	int size = SOCKET_BUF;

	nif->tx_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (nif->tx_fd < 0)
		return -1;
	if (setsockopt(nif->tx_fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(nif->tx_fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	set_opt(nif->tx_fd, PACKET_QDISC_BYPASS, 1); /* only saves time: a failure is no error */
	return bind_to(nif->tx_fd, nif->ifindex, 0);
}

int wanem_netif_open(struct wanem_netif *nif, const char *name, struct wanem_err *err)
{
	int e;

	*nif = (struct wanem_netif){.rx_fd = -1, .tx_fd = -1};
	if (strlen(name) < sizeof(nif->name)) {
		memcpy(nif->name, name, strlen(name) + 1);
		nif->ifindex = (int)if_nametoindex(name);
	}
	errno = ENODEV;
	if (!nif->ifindex)
		goto fail;
	if (open_tx(nif) || open_rx(nif))
		goto fail;
	merge_off(nif);
	return 0;
fail:
	e = errno;
	snprintf(err->text, sizeof(err->text), "interface %.40s: %s%s", name, strerror(e),
	    e == EPERM ? " (needs CAP_NET_RAW and CAP_NET_ADMIN)" : "");
	wanem_netif_close(nif);
	return -1;
}

void wanem_netif_close(struct wanem_netif *nif)
{
	if (nif->ring)
		munmap(nif->ring, (size_t)BLOCK_SIZE * BLOCK_COUNT);
	if (nif->rx_fd >= 0)
		close(nif->rx_fd);
	if (nif->tx_fd >= 0)
		close(nif->tx_fd);
	*nif = (struct wanem_netif){.rx_fd = -1, .tx_fd = -1};
}

bool wanem_netif_recover(struct wanem_netif *nif)
{
	socklen_t len = sizeof(int);
	struct ifreq req;
	int e;

	getsockopt(nif->rx_fd, SOL_SOCKET, SO_ERROR, &e, &len);
	getsockopt(nif->tx_fd, SOL_SOCKET, SO_ERROR, &e, &len);
	memset(&req, 0, sizeof(req));
	if (!if_indextoname((unsigned)nif->ifindex, req.ifr_name) || ioctl(nif->tx_fd, SIOCGIFFLAGS, &req))
		return false;
	nif->is_down = !(req.ifr_flags & IFF_UP);
	return true;
}

bool wanem_netif_peek(struct wanem_netif *nif, struct wanem_frame *out)
{
	struct tpacket2_hdr *h = ring_frame(nif);
	uint32_t status = atomic_load_explicit((_Atomic uint32_t *)&h->tp_status, memory_order_acquire);
	struct virtio_net_hdr vnet;

	if (!(status & TP_STATUS_USER))
		return false;
	out->data = (const uint8_t *)h + h->tp_mac;
	memcpy(&vnet, out->data - sizeof(vnet), sizeof(vnet));
	out->has_vlan = status & TP_STATUS_VLAN_VALID;
	out->vlan_tci = h->tp_vlan_tci;
	out->vlan_tpid = status & TP_STATUS_VLAN_TPID_VALID ? h->tp_vlan_tpid : ETH_P_8021Q;
	out->len = h->tp_snaplen + (out->has_vlan ? VLAN_HLEN : 0);
	out->time_ns = (uint64_t)h->tp_sec * UINT64_C(1000000000) + h->tp_nsec;
	out->is_usable = h->tp_len == h->tp_snaplen && h->tp_snaplen <= UNTAGGED_MAX &&
	                 h->tp_snaplen >= ETH_HLEN && vnet.gso_type == VIRTIO_NET_HDR_GSO_NONE;
	out->needs_csum = vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
	out->csum_start = vnet.csum_start;
	out->csum_offset = vnet.csum_offset;
	return true;
}

void wanem_netif_release(struct wanem_netif *nif)
{
	struct tpacket2_hdr *h = ring_frame(nif);

	atomic_store_explicit((_Atomic uint32_t *)&h->tp_status, TP_STATUS_KERNEL, memory_order_release);
	nif->cur = nif->cur + 1 == FRAME_COUNT ? 0 : nif->cur + 1;
}

/* Computes the Internet checksum from start to the end and stores it at start + offset, where the
 * pseudo header's sum is. */
static void finish_csum(uint8_t *frame, uint32_t len, uint32_t start, uint32_t offset)
{
	uint32_t sum = 0;

	if (start + offset + 2 > len)
		return;
	for (uint32_t i = start; i + 1 < len; i += 2)
		sum += (uint32_t)frame[i] << 8 | frame[i + 1];
	if ((len - start) & 1)
		sum += (uint32_t)frame[len - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	sum = ~sum & 0xffff;
	if (!sum)
		sum = 0xffff;
	frame[start + offset] = (uint8_t)(sum >> 8);
	frame[start + offset + 1] = (uint8_t)sum;
}

void wanem_frame_copy(const struct wanem_frame *frame, uint8_t *dst)
{
	uint32_t tag = frame->has_vlan ? VLAN_HLEN : 0;

	if (tag) {
		memcpy(dst, frame->data, MACS_LEN);
		dst[MACS_LEN] = (uint8_t)(frame->vlan_tpid >> 8);
		dst[MACS_LEN + 1] = (uint8_t)frame->vlan_tpid;
		dst[MACS_LEN + 2] = (uint8_t)(frame->vlan_tci >> 8);
		dst[MACS_LEN + 3] = (uint8_t)frame->vlan_tci;
		memcpy(dst + MACS_LEN + tag, frame->data + MACS_LEN, frame->len - tag - MACS_LEN);
	} else {
		memcpy(dst, frame->data, frame->len);
	}
	if (frame->needs_csum)
		finish_csum(dst, frame->len, frame->csum_start + tag, frame->csum_offset);
}

int wanem_netif_send(struct wanem_netif *nif, const struct wanem_out *out, unsigned count)
{
	struct mmsghdr msg[WANEM_TX_BATCH];
	struct iovec iov[WANEM_TX_BATCH];
	int sent;

	if (count > WANEM_TX_BATCH)
		count = WANEM_TX_BATCH;
	for (unsigned i = 0; i < count; i++) {
		iov[i] = (struct iovec){.iov_base = (void *)(uintptr_t)out[i].data, .iov_len = out[i].len};
		msg[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
	}
	sent = sendmmsg(nif->tx_fd, msg, count, MSG_DONTWAIT);
	return sent < 0 ? -errno : sent;
}

uint32_t wanem_netif_ring_drops(struct wanem_netif *nif)
{
	struct tpacket_stats stats = {0};
	socklen_t len = sizeof(stats);

	getsockopt(nif->rx_fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len);
	return stats.tp_drops;
}
