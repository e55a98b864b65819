// SPDX-License-Identifier: Apache-2.0
// Found instead of DPDK's rte_ring.h by `make nodpdk`.
#error "rte_ring.h: the sans-I/O folders are built without DPDK"
