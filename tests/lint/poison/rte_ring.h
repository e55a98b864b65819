// SPDX-License-Identifier: Apache-2.0
// Found instead of DPDK's rte_ring.h by what is built without DPDK.
#error "rte_ring.h: the sans-I/O folders are built without DPDK"
