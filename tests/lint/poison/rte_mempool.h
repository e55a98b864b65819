// SPDX-License-Identifier: Apache-2.0
// Found instead of DPDK's rte_mempool.h by `make nodpdk`.
#error "rte_mempool.h: roce/ wan/ cc/ vxlan/ and gateway/engine/ are built without DPDK"
