/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two engines say to each other inside WAN flows: the open information of a flow, and control messages
 * in a flow's order. Byte drawings: docs/wire-format.md. Everything is big-endian. Decoding is bounds-first:
 * false means malformed.
 */
#ifndef ENGINE_MSG_H
#define ENGINE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/ip.h"

/* A flow as design.md names it: a tenant's packets from src to dst with this destination QPN. */
struct eng_key {
	struct rwy_ip src, dst;
	uint32_t qpn;
	uint32_t tenant; /* index here; between gateways its VNI stands for it */
};

enum eng_open_type {
	ENG_OPEN_REQ = 1,  /* requests of key.src to key.dst's QP, near -> far */
	ENG_OPEN_RSP = 2,  /* the answers to the requests of that same key, far -> near */
	ENG_OPEN_MGMT = 3, /* CM MADs, reliable */
};

struct eng_open {
	uint8_t type;
	uint8_t rnr_retry, retry; /* of the requester's QP; 255: not known */
	uint16_t pmtu;            /* 0: not known */
	uint32_t incarnation;     /* changes when the near gateway starts the flow anew */
	uint32_t peer_qpn;        /* the QPN of key.src, 0: not known */
	uint32_t vni;             /* of the tenant, 0: plain */
	struct eng_key key;       /* without its tenant */
};
#define ENG_OPEN_LEN 56

size_t eng_open_encode(uint8_t *out, const struct eng_open *o);
bool eng_open_decode(struct eng_open *o, const uint8_t *p, size_t len);

enum eng_ctrl_type {
	ENG_CTRL_SYNC =
	    1, /* the far host answered: qpn = key.src's QPN, msn = its MSN before our first packet */
	ENG_CTRL_REWIND = 2, /* the far host expects psn, before what we were given */
	ENG_CTRL_FAIL = 3,   /* the far host refused psn with syndrome; the connection is over */
	ENG_CTRL_RESUME = 4, /* near -> far, first in a flow: an earlier process acknowledged its host up to
	                        psn; no requests follow before SYNC or FAIL has come */
};

/* Why FAIL ended a connection. Numbers go over the wire: new ones come last. */
enum eng_end {
	ENG_END_UNKNOWN,     /* an older gateway does not say */
	ENG_END_REFUSED,     /* the host answered with the NAK that `syndrome` is */
	ENG_END_SILENT,      /* the host did not answer: retry count */
	ENG_END_NOT_READY,   /* RNR retry count */
	ENG_END_LOST,        /* acknowledged requests went with a gateway */
	ENG_END_ANSWER_LOST, /* the answer of a READ or ATOMIC did */
	ENG_END_FORGOTTEN,   /* asked after a restart, the host did not know the connection */
	ENG_END_MALFORMED,   /* a request that the near gateway must not send */
	ENG_END_NO_MEMORY,
	ENG_ENDS
};
/* A sentence for the log, at the gateway beside the host that ended it, or at the other one. */
const char *eng_end_text(enum eng_end end, uint8_t syndrome, bool beside);

struct eng_ctrl {
	uint8_t type;
	uint8_t syndrome;
	uint8_t end; /* enum eng_end; a number of a newer gateway is ENG_END_UNKNOWN */
	uint32_t incarnation, qpn, psn, msn;
};
#define ENG_CTRL_LEN 20

size_t eng_ctrl_encode(uint8_t *out, const struct eng_ctrl *c);
bool eng_ctrl_decode(struct eng_ctrl *c, const uint8_t *p, size_t len);

#endif
