/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between two engines inside WAN flows: the open information of a flow, and control
 * messages in a flow's order. docs/wire-format.md draws their bytes; all numbers are big-endian.
 * Encoders write ENG_..._LEN bytes and return that; decoders check the length first and return
 * false for a malformed message. Any thread: no state.
 */
#ifndef ENGINE_MSG_H
#define ENGINE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/ip.h"

/* A flow: a tenant's packets from src to dst with this destination QPN. */
struct eng_key {
	struct rwy_ip src, dst;
	uint32_t qpn;    /* 24 bits */
	uint32_t tenant; /* index in this engine; on the wire its VNI */
};

enum eng_open_type {
	ENG_OPEN_REQ = 1,  /* requests of key.src to key.dst's QP, near gateway to far gateway */
	ENG_OPEN_RSP = 2,  /* responses to the requests of that key, far gateway to near gateway */
	ENG_OPEN_MGMT = 3, /* CM MADs of the tunnel; in a pair's own tunnel messages of the pair */
	ENG_OPEN_COPY = 4, /* in a pair's own tunnel: copies of the requests of that key */
	ENG_OPEN_PEER = 5, /* what a gateway tells of its process, or of the other one's (peer.h) */
};

#define ENG_RETRY_UNKNOWN   255
#define ENG_ACK_TIMEOUT_MAX 32

struct eng_open {
	uint8_t type;             /* enum eng_open_type */
	uint8_t rnr_retry, retry; /* of the QP of key.src, 0..7, or ENG_RETRY_UNKNOWN */
	uint8_t ack_timeout;      /* one more than that of the QP of key.src in CM; 0: not known */
	/* MGMT, REQ: of a gateway that steers by queue pair; 0: by address pair */
	uint8_t workers;
	uint16_t pmtu;        /* bytes; 0: not known */
	uint32_t incarnation; /* changes when the near gateway begins the connection again */
	uint32_t peer_qpn;    /* QPN of key.src; 0: not known */
	uint32_t vni;         /* of the tenant; 0: plain LAN */
	struct eng_key key;   /* decoded with tenant 0: the receiver looks up the VNI */
};
#define ENG_OPEN_LEN 56

/* Writes ENG_OPEN_LEN bytes and returns their number; reads them, false if malformed. */
size_t eng_open_encode(uint8_t *out, const struct eng_open *o);
bool eng_open_decode(struct eng_open *o, const uint8_t *p, size_t len);

enum eng_ctrl_type {
	/*
	 * The far host answered: qpn is key.src's QPN, msn the far host's before the first packet.
	 */
	ENG_CTRL_SYNC = 1,
	ENG_CTRL_REWIND = 2, /* the far host expects psn, before the first packet of the flow */
	ENG_CTRL_FAIL = 3,   /* the connection ended at psn with syndrome; `end` has the reason */
	/*
	 * Near gateway to far gateway, first in a flow: an earlier process acknowledged its host up
	 * to psn. No request follows before SYNC or FAIL has come.
	 */
	ENG_CTRL_RESUME = 4,
	/*
	 * The far gateway has this queue pair at its worker `worker`: the requests are to go
	 * between the workers of that number. The far gateway forgets this flow.
	 */
	ENG_CTRL_MOVED = 5,
};

/* The reason of a FAIL. The numbers go over the wire: new ones come last. */
enum eng_end {
	ENG_END_UNKNOWN,     /* from an older gateway, which does not send it */
	ENG_END_REFUSED,     /* the host answered with the fatal NAK in `syndrome` */
	ENG_END_SILENT,      /* the host did not answer: retry count exceeded */
	ENG_END_NOT_READY,   /* RNR retry count exceeded */
	ENG_END_LOST,        /* acknowledged requests were, or may have been, lost with a gateway */
	ENG_END_ANSWER_LOST, /* a response to a READ or ATOMIC was lost with a gateway */
	ENG_END_FORGOTTEN,   /* asked after a restart, the host did not know the connection */
	ENG_END_MALFORMED,   /* the near gateway sent a malformed request */
	ENG_END_NO_MEMORY,   /* the far gateway had no memory to resume it */
	/* acknowledged requests of the other direction could not be delivered */
	ENG_END_UNDELIVERED,
	ENG_ENDS
};
/* Static text for the log. beside: at the gateway beside the host that ended the connection. */
const char *eng_end_text(enum eng_end end, uint8_t syndrome, bool beside);

struct eng_ctrl {
	uint8_t type;     /* enum eng_ctrl_type */
	uint8_t syndrome; /* FAIL: AETH syndrome (IBA 9.3.5.2) */
	uint8_t end;      /* enum eng_end; a number of a newer gateway is ENG_END_UNKNOWN */
	uint8_t worker;   /* MOVED */
	uint32_t incarnation, qpn, psn, msn;
};
#define ENG_NO_PSN   UINT32_MAX /* no PSN; in MOVED: the far host has acknowledged nothing */
#define ENG_CTRL_LEN 20

/* Messages of a flow of copies, from the active gateway of a pair to its standby (copy.h). */
enum eng_copy_type {
	ENG_COPY_BASE = 1,    /* the first one: psn of the first copy that follows, MSN before it */
	ENG_COPY_RELEASE = 2, /* requests before psn are not needed any more */
	ENG_COPY_PMTU = 3,    /* the path MTU is known */
};
struct eng_copy_msg {
	uint8_t type;  /* enum eng_copy_type */
	bool rewound;  /* BASE: after REWIND, and the far host has executed nothing since */
	uint16_t pmtu; /* bytes; 0: not known */
	uint32_t psn, msn;
};
#define ENG_COPY_LEN 12

/* Writes ENG_COPY_LEN bytes and returns their number; reads them, false if malformed. */
size_t eng_copy_encode(uint8_t *out, const struct eng_copy_msg *m);
bool eng_copy_decode(struct eng_copy_msg *m, const uint8_t *p, size_t len);

/* Messages of a flow ENG_OPEN_PEER. */
enum eng_peer_type {
	/* The receiver's earlier process had this flow; the sender has all requests before psn. */
	ENG_PEER_LOST = 1,
	ENG_PEER_SETTLED = 2, /* the sender's process owes nothing when it ends */
	ENG_PEER_SERVING = 3, /* it serves again */
	ENG_PEER_KNOWN = 4,   /* the answer to LOST: nothing of that flow is lost */
};
struct eng_peer_msg {
	uint8_t type;         /* enum eng_peer_type */
	bool alive;           /* LOST: the connection goes on there, as far as the sender knows */
	uint32_t psn;         /* LOST and KNOWN */
	struct eng_open open; /* the same: as the earlier process opened the flow */
};
#define ENG_PEER_LEN (8 + ENG_OPEN_LEN)

/* Writes at most ENG_PEER_LEN bytes and returns their number; reads them, false if malformed. */
size_t eng_peer_encode(uint8_t *out, const struct eng_peer_msg *m);
bool eng_peer_decode(struct eng_peer_msg *m, const uint8_t *p, size_t len);

/* Writes ENG_CTRL_LEN bytes and returns their number; reads them, false if malformed. */
size_t eng_ctrl_encode(uint8_t *out, const struct eng_ctrl *c);
bool eng_ctrl_decode(struct eng_ctrl *c, const uint8_t *p, size_t len);

#endif
