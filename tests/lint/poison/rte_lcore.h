// SPDX-License-Identifier: Apache-2.0
// Found instead of DPDK's rte_lcore.h by `make nodpdk`.
#error "rte_lcore.h: the sans-I/O folders are built without DPDK"
