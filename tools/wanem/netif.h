/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ethernet frames from and to a Linux interface by AF_PACKET: a memory-mapped receive ring
 * (TPACKET_V2, a kernel time stamp for each frame) and batched sends past the qdisc. No emulation
 * here.
 */
#ifndef WANEM_NETIF_H
#define WANEM_NETIF_H

#include "tools/wanem/set.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WANEM_TX_BATCH 64

struct wanem_netif {
	char name[16];
	int ifindex;
	int rx_fd, tx_fd;
	bool is_down; /* as wanem_netif_recover() found it last */
	uint8_t *ring;
	unsigned cur; /* index of the next frame in the ring */
};

/* A received frame, valid until wanem_netif_release(). */
struct wanem_frame {
	const uint8_t *data;
	uint32_t len;     /* bytes that wanem_frame_copy() writes */
	uint64_t time_ns; /* CLOCK_REALTIME */
	bool is_usable;   /* false: it is too long, or an offload super-frame */
	bool has_vlan;    /* the kernel removed the tag from the bytes */
	bool needs_csum;  /* the sender left the checksum to the hardware */
	uint16_t vlan_tci, vlan_tpid;
	uint16_t csum_start, csum_offset;
};

/* Opens the interface in promiscuous mode with GRO and LRO off. 0, or -1 with a sentence in *err.
 * Needs CAP_NET_RAW and CAP_NET_ADMIN. */
int wanem_netif_open(struct wanem_netif *nif, const char *name, struct wanem_err *err);
void wanem_netif_close(struct wanem_netif *nif);

/* Clears a pending error and updates is_down. While is_down the caller repeats it now and then,
 * because an interface that goes down and is then removed reports only one error. False: the
 * interface does not exist any more. */
bool wanem_netif_recover(struct wanem_netif *nif);

/* The next received frame; does not wait. False: there is none. */
bool wanem_netif_peek(struct wanem_netif *nif, struct wanem_frame *out);
void wanem_netif_release(struct wanem_netif *nif);

/* Copies the frame to dst (WANEM_SLOT_SIZE bytes), inserts the VLAN tag and completes the
 * checksum. */
void wanem_frame_copy(const struct wanem_frame *frame, uint8_t *dst);

struct wanem_out {
	const uint8_t *data;
	uint32_t len;
};

/* Sends up to WANEM_TX_BATCH frames. Returns how many, or -errno if it sent none. */
int wanem_netif_send(struct wanem_netif *nif, const struct wanem_out *out, unsigned count);

/* Frames that the kernel dropped since the last call because the ring was full. */
uint32_t wanem_netif_ring_drops(struct wanem_netif *nif);

#endif
