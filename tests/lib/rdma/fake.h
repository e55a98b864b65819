/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An RDMA device without hardware, for tests that link it: those functions of librdmacm and
 * libibverbs that gateway/carrier/rdma_*.c calls, between ids of one process. A SEND arrives at
 * once. It is strict: memory that is not registered, more requests than a queue has room for, and
 * objects that are destroyed in the wrong order end the test.
 */
#ifndef TESTS_LIB_RDMA_FAKE_H
#define TESTS_LIB_RDMA_FAKE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * SENDs vanish and nobody acknowledges them; the next SEND fails, once. The others are an attacker
 * who can write what the queue pair takes for the peer's, once, with a SEND of RDMA_FAKE_BIG bytes or
 * more: a bit of it is changed; it is replaced by the one before; it is left out and acknowledged;
 * its immediate data are larger by one.
 */
enum rdma_fake_fault {
	RDMA_FAKE_NONE,
	RDMA_FAKE_CUT,
	RDMA_FAKE_ERROR,
	RDMA_FAKE_FLIP,
	RDMA_FAKE_REPEAT,
	RDMA_FAKE_SWALLOW,
	RDMA_FAKE_CREDIT
};
#define RDMA_FAKE_BIG 512
void rdma_fake_fault(enum rdma_fake_fault f);
/* Whether the fault that happens once is still to come. */
bool rdma_fake_waits(void);
/* Calls it with the bytes of each SEND on the wire, under a lock; NULL: nobody listens. */
void rdma_fake_listen(void (*fn)(const uint8_t *p, uint32_t n));
/* An address of the device begins with this byte (IPv4). */
void rdma_fake_net(uint8_t first);

/* The folder of the device's counters, as in /sys/class/infiniband; "": it has none. */
void rdma_fake_counters(const char *folder);

/* The device is removed: every id is told. It comes back when its net is set. */
void rdma_fake_remove(void);

struct rdma_fake_count {
	uint64_t sends, empties, inlined;
	uint64_t rnr;     /* SENDs that met an empty receive queue */
	uint64_t objects; /* ids, queue pairs, completion queues and channels, memory regions */
};
struct rdma_fake_count rdma_fake_count(void);

#endif
