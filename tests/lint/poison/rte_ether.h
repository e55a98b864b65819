// SPDX-License-Identifier: Apache-2.0
// Found instead of DPDK's rte_ether.h by what is built without DPDK.
#error "rte_ether.h: the sans-I/O folders are built without DPDK"
