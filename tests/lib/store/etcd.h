/* SPDX-License-Identifier: Apache-2.0 */
/* Real etcd nodes on the loopback, for tests. */
#ifndef TESTS_LIB_STORE_ETCD_H
#define TESTS_LIB_STORE_ETCD_H

#include <stdbool.h>
#include <sys/types.h>

#define CLUSTER_NODES 3

struct cluster {
	char dir[64];
	char url[CLUSTER_NODES][64], peer[CLUSTER_NODES][64];
	pid_t pid[CLUSTER_NODES];
};

bool cluster_start(struct cluster *c); /* false: etcd is not installed, or does not start */
bool cluster_node_start(struct cluster *c, unsigned i);
void cluster_node_kill(struct cluster *c, unsigned i, int sig);
void cluster_stop(struct cluster *c);

#endif
