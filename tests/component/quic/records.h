/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records (wan/record.h) over our QUIC end, as a gateway has them, for quic_peer: HELLO until each
 * end has its nonce back, WISH, then so many datagrams, one after the other on the streams from 1 on.
 * What a datagram has follows from its number, so that both ends can check it. One connection.
 */
#ifndef TESTS_COMPONENT_QUIC_RECORDS_H
#define TESTS_COMPONENT_QUIC_RECORDS_H

#include "gateway/carrier/quic.h"

/* The connection is open; n: datagrams in each direction. */
void records_begin(struct gw_quic_conn *c, bool client, uint32_t n);
/* Bytes of a stream. False: they are wrong; one line says how. */
bool records_take(struct gw_quic_conn *c, unsigned stream, const uint8_t *p, size_t n);
/* Sends what there is room for. Call it in each turn. Says "done" when all is sent and received. */
void records_turn(void);

#endif
