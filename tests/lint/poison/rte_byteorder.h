/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for DPDK's rte_byteorder.h where the build leaves DPDK out: it must not be included. */
#error "rte_byteorder.h: the sans-I/O folders are built without DPDK"
