/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of the fake share the device, and ids, which have a queue pair. */
#ifndef TESTS_LIB_RDMA_FAKE_INT_H
#define TESTS_LIB_RDMA_FAKE_INT_H

#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/rdma/fake.h"

struct rdma_fake {
	pthread_mutex_t lock; /* of all of it, and of every id, queue pair and completion queue */
	struct rdma_fake_count count;
	enum rdma_fake_fault fault;
	void (*hears)(const uint8_t *p, uint32_t n);
	struct ibv_device what;
	struct ibv_context device;
	struct ibv_pd pd;
};
extern struct rdma_fake rdma_fake;

struct rdma_fake_id {
	struct rdma_cm_id pub;
	struct rdma_fake_id *peer, *next;
	bool listens, asks, connected; /* asks: a REQ waits for an answer */
};

#define RDMA_FAKE_DIE(...)                                                                                   \
	do {                                                                                                 \
		fprintf(stderr, "rdma_fake: " __VA_ARGS__);                                                  \
		abort();                                                                                     \
	} while (0)

/* Zeroed memory of an object, which is counted. */
void *rdma_fake_make(size_t size);
void rdma_fake_unmake(void *p);
void rdma_fake_ring(int fd); /* an eventfd */

static inline int rdma_fake_fail(int e)
{
	errno = e;
	return -1;
}

#endif
