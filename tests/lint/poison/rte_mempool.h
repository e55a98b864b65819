// SPDX-License-Identifier: Apache-2.0
// Found instead of DPDK's rte_mempool.h by `make nodpdk`.
#error "rte_mempool.h: the sans-I/O folders are built without DPDK"
