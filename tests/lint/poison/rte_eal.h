// SPDX-License-Identifier: Apache-2.0
// Found instead of DPDK's rte_eal.h by `make nodpdk`.
#error "rte_eal.h: roce/ wan/ cc/ vxlan/ and gateway/engine/ are built without DPDK"
