/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses VNIs for tenants that name none. Thread: no state. */
#ifndef PLAN_VNI_H
#define PLAN_VNI_H

#include <stdint.h>

/* The range by default: the upper half of all VNIs (RFC 7348: 24 bits). People who type VNIs choose
 * small ones. */
#define PLAN_VNI_FIRST 0x800000u
#define PLAN_VNI_LAST  0xffffffu

/* The lowest number from first to last that is not among the n used ones, which it sorts in place;
 * used ones may be outside of the range, or appear twice. 0: all are used. first: at least 1. */
uint32_t plan_vni_free(uint32_t *used, unsigned n, uint32_t first, uint32_t last);

#endif
