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

/* SENDs vanish and nobody acknowledges them; the next SEND fails, once. */
enum rdma_fake_fault { RDMA_FAKE_NONE, RDMA_FAKE_CUT, RDMA_FAKE_ERROR };
void rdma_fake_fault(enum rdma_fake_fault f);
/* An address of the device begins with this byte (IPv4). */
void rdma_fake_net(uint8_t first);

/* The device is removed: every id is told. It comes back when its net is set. */
void rdma_fake_remove(void);

struct rdma_fake_count {
	uint64_t sends, empties, inlined;
	uint64_t rnr;     /* SENDs that met an empty receive queue */
	uint64_t objects; /* ids, queue pairs, completion queues and channels, memory regions */
};
struct rdma_fake_count rdma_fake_count(void);

#endif
