// SPDX-License-Identifier: Apache-2.0
// Found instead of DPDK's rte_udp.h by `make nodpdk`.
#error "rte_udp.h: the sans-I/O folders are built without DPDK"
