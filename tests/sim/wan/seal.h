/* SPDX-License-Identifier: Apache-2.0 */
/* The datagram checksum of a thin run (seal.c): input from the simulators. */
#ifndef SIM_WAN_SEAL_H
#define SIM_WAN_SEAL_H

#include <stdbool.h>
#include <stdint.h>

extern bool seal_thin;
extern uint16_t seal_hdr_len; /* header bytes of the datagram that is being received */

#endif
