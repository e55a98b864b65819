/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CM between a host A of site 0 and a host B of site 1 of eng_pair, 10.1.0.3 and 10.2.0.3. Each
 * message is sent at the host's gateway; call eng_pair_run() after it.
 */
#ifndef TESTS_LIB_ENG_CM_H
#define TESTS_LIB_ENG_CM_H

#include <stdint.h>

#define CM_QPN_A  0x51
#define CM_QPN_B  0x50
#define CM_PSN_A  0x700 /* of A's first request */
#define CM_PSN_B  0x900
#define CM_MTU    1024
#define CM_COMM_A 0xa1
#define CM_COMM_B 0xb1

/* The same as packets for another harness: their bytes in `out`, and their length. */
uint32_t eng_cm_make_req(uint8_t *out, uint8_t retry, uint8_t rnr_retry, uint8_t timeout);
uint32_t eng_cm_make_rep(uint8_t *out, uint8_t rnr_retry);
uint32_t eng_cm_make_dreq(uint8_t *out);

/* A's REQ with these values (0..7, 0..7, 0..31); B's REP, with ACK delay 15; A's DREQ. */
void eng_cm_req(uint16_t tenant, uint8_t retry, uint8_t rnr_retry, uint8_t timeout);
void eng_cm_rep(uint16_t tenant, uint8_t rnr_retry);
void eng_cm_dreq(uint16_t tenant);
/* REQ and REP, and the time that they take. */
void eng_cm_connect(uint16_t tenant, uint8_t retry, uint8_t rnr_retry, uint8_t timeout);

#endif
