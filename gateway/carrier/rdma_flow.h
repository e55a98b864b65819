/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of one RDMA connection: credits, and what the two ends tell each other in the CM's
 * private data. Sans-I/O: no verbs, no clock.
 *
 * A message is one SEND and takes one receive that the peer has posted. A credit is a posted
 * receive that no message took yet. Each message has in its immediate data how many receives its
 * sender has posted since the beginning, modulo 2^32. An end that owes a quarter of its receives
 * says so in an empty message. Datagrams leave the last credit for that: so the two ends never wait
 * for each other, and no message meets an empty receive queue.
 */
#ifndef GATEWAY_CARRIER_RDMA_FLOW_H
#define GATEWAY_CARRIER_RDMA_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"
#include "rwy/time.h"

#define GW_RDMA_SLOTS_MIN 16
#define GW_RDMA_SLOTS_MAX 8192
/* a peer whose NIC acknowledges nothing for this long is dead */
#define GW_RDMA_SILENCE (4 * RWY_SEC)

struct gw_rdma_flow {
	uint32_t ours;    /* receives that we keep posted, and our buffers for sending */
	uint32_t peers;   /* receives that the peer keeps posted */
	uint32_t sent;    /* messages, as all counts below modulo 2^32 */
	uint32_t done;    /* of these, acknowledged by the peer's NIC */
	uint32_t allowed; /* messages that the peer has had receives for */
	uint32_t posted;  /* receives that we have posted */
	uint32_t told;    /* the same as last told to the peer */
	rwy_time since;   /* the last acknowledgement, or the first message after a pause */
	/* one message at a time tells the round trip: its count, and when it was sent; 0: none */
	uint32_t timed;
	rwy_time timed_at;
	rwy_dur srtt, min_rtt, rttvar; /* as of RFC 6298; srtt 0: none yet */
	rwy_time heard;                /* of the last round trip */
};

void gw_rdma_flow_init(struct gw_rdma_flow *f, uint32_t ours, uint32_t peers);
/* Datagrams that may be sent now. */
uint32_t gw_rdma_flow_room(const struct gw_rdma_flow *f);
/* An empty message is due, and may be sent. */
bool gw_rdma_flow_owes(const struct gw_rdma_flow *f);
/* A message is sent, with the returned number as immediate data. The caller has asked for room. */
uint32_t gw_rdma_flow_send(struct gw_rdma_flow *f, rwy_time now);
/* The peer's NIC has acknowledged the oldest message. */
void gw_rdma_flow_done(struct gw_rdma_flow *f, rwy_time now);
/* A message came. RWY_EMALFORMED: its immediate data cannot be true. */
RWY_MUST_CHECK int gw_rdma_flow_recv(struct gw_rdma_flow *f, uint32_t immediate);
/* One more receive was posted. */
void gw_rdma_flow_post(struct gw_rdma_flow *f);
bool gw_rdma_flow_dead(const struct gw_rdma_flow *f, rwy_time now);

/* --- private data of REQ and REP -------------------------------------------------------------- */
#define GW_RDMA_GREETING 8
struct gw_rdma_greeting {
	uint32_t slots; /* receives that the sender keeps posted */
	uint8_t cipher; /* of messages: 0: none, else 1 + enum aead_alg; both ends say the same */
};
void gw_rdma_greeting_put(uint8_t out[GW_RDMA_GREETING], const struct gw_rdma_greeting *g);
/* RWY_EMALFORMED: not of a gateway, or of a version that does not fit. The CM pads with zeros. */
RWY_MUST_CHECK int gw_rdma_greeting_get(const uint8_t *p, size_t n, struct gw_rdma_greeting *g);

/* --- private data of REJ ---------------------------------------------------------------------- */
/* X(enumerator, number, sentence of the end that is refused) */
#define GW_RDMA_REFUSALS(X)                                                                                  \
	X(GW_RDMA_R_VERSION, 1, "the peer does not know this version of the greeting")                       \
	X(GW_RDMA_R_KEYS, 2, "only one end has keys: `security` differs")                                    \
	X(GW_RDMA_R_CIPHER, 3, "the peer has another `keys.cipher`")                                         \
	X(GW_RDMA_R_MANY, 4, "too many connections have not named their tunnel")                             \
	X(GW_RDMA_R_RATE, 5, "too many handshakes")
enum gw_rdma_refusal {
#define X(e, n, s) e = (n),
	GW_RDMA_REFUSALS(X)
#undef X
};
void gw_rdma_refusal_put(uint8_t out[GW_RDMA_GREETING], enum gw_rdma_refusal r);
/* The sentence of a REJ's private data; NULL: it has none of ours. */
const char *gw_rdma_refusal_get(const uint8_t *p, size_t n);

#endif
