/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes captures: model hosts (rc_host.h) talk over a path in virtual time, natively or through two
 * gateways (the engines of the product), and what passes the ports of a host is handed on as
 * frames. The same scene gives the same frames, bit for bit.
 *
 *     host A ---- path ---- host B            native: to_b, to_a
 *     host A -- lan_a -- gateway A == to_b, to_a == gateway B -- lan_b -- host B
 *
 * One thread. It ends the process when there is no memory.
 */
#ifndef TESTS_LIB_CAP_WORLD_H
#define TESTS_LIB_CAP_WORLD_H

#include "engine/engine.h"
#include "tests/lib/link.h"
#include "tests/lib/rc_host.h"

#define CAP_CONNS 4
#define CAP_QPN_A 0x100 /* of connection 0 at host A; the next one has 0x101 */
#define CAP_QPN_B 0x200

/* The ports of the hosts, and that of gateway B on its LAN. */
enum cap_place { CAP_AT_A, CAP_AT_B, CAP_AT_GATEWAY_B, CAP_PLACES };

/* What the program of host A does with a queue pair. messages 0: there is no such queue pair. */
struct cap_program {
	enum rc_wr_op op;
	uint32_t size, messages;
	uint32_t depth;      /* messages posted at once */
	uint32_t first_size; /* of the first message; 0: as the others */
	rwy_dur think;       /* from a completion to the next message */
	rwy_dur recv_every;  /* host B posts a receive so often; 0: all at once */
	uint32_t recvs;      /* receives that it has from the start, if recv_every */
	uint32_t rkey;       /* 0: the right one */
	uint32_t rd_max;     /* READs and ATOMICs outstanding; 0: as a host has it */
};

struct cap_scene {
	const char *name;   /* of the file */
	const char *expect; /* word of the first finding */
	const char *about;
	enum cap_place place; /* the capture is taken at this port */
	struct cap_program program[CAP_CONNS];
	unsigned asked; /* the queue pair that the expected word is for */
	uint64_t seed;
	/* Hosts; 0: as rc_host_cfg_default() or, with `nic`, rc_host_cfg_nic() has it. */
	bool nic, credits;
	uint32_t window;
	rwy_dur timeout;
	uint8_t retry;
	uint64_t rate_Bps; /* of their ports; 0: 25 Gbit/s */
	rwy_dur serve;     /* host B takes so long for each request packet */
	bool cnps;         /* host B sends CNPs for marked packets; host A slows down after CNPs */
	rwy_dur b_dies;    /* host B is gone, so long after the beginning; 0: never */
	/* The path. A delay of 0 is that of a LAN. */
	struct link_cfg to_b, to_a;
	uint32_t mtu_most;  /* longer IP packets vanish on their way to B; 0: none */
	unsigned lose_ends; /* of the packets that end a message each so many one is lost; 0: none */
	/* Gateways. */
	bool gateways;
	enum eng_ack_mode ack_mode;
	struct link_cfg lan_a, lan_b; /* both directions of each */
	uint64_t custody;             /* of one connection; 0: the default */
	rwy_dur linger;               /* time that the world has after all messages are done */
	/* The file. */
	uint32_t snap; /* bytes of a packet; 0: all */
	uint32_t vni;  /* frames are in VXLAN; 0: they are not */
};

/* Takes a frame; `captured` bytes of it are there. */
typedef void cap_frame(
    void *ctx, rwy_time at, const uint8_t *frame, uint32_t captured, uint32_t len, enum cap_place place);

/* What the hosts count, which the analysis may be compared with. */
struct cap_result {
	unsigned done, failed; /* messages */
	unsigned resent;       /* request packets of host A */
	unsigned naks;         /* PSN sequence NAKs of host B */
	unsigned rnrs, cnps;
	bool up; /* the gateways' tunnel came up, or there are none */
};

/*
 * Plays the scene until all messages are done, or failed, and `linger` after that; or nothing happens
 * any more.
 */
struct cap_result cap_play(const struct cap_scene *s, cap_frame *frame, void *ctx);

/* The prepared captures: cap_scenes.c, and those of cap_held.c, which were written after the
 * analysis. */
extern const struct cap_scene cap_scenes[], cap_held[];
extern const unsigned cap_scenes_n, cap_held_n;

#endif
