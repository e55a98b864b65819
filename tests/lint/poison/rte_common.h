// SPDX-License-Identifier: Apache-2.0
// Found instead of DPDK's rte_common.h by what is built without DPDK.
#error "rte_common.h: the sans-I/O folders are built without DPDK"
