// SPDX-License-Identifier: Apache-2.0
// Found instead of DPDK's rte_net_crc.h by what is built without DPDK.
#error "rte_net_crc.h: the sans-I/O folders are built without DPDK"
