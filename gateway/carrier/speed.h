/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures what the thread of the carriers can send or receive by QUIC on this machine: the
 * control center predicts by it. Two ends with this gateway's own certificate talk over the
 * loopback interface, and the CPU time of each counts.
 */
#ifndef GATEWAY_CARRIER_SPEED_H
#define GATEWAY_CARRIER_SPEED_H

#include "conf/conf.h"

/*
 * Returns bytes per second of the slower end; 0: not measured, with one sentence in why[size]. It
 * takes some hundredths of a second of the calling thread, 2 s at most. Any thread but a worker's.
 */
uint64_t gw_quic_speed(const struct conf_tunnel_keys *k, const struct conf_quic *q, char *why, size_t size);

#endif
