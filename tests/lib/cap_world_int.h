/* SPDX-License-Identifier: Apache-2.0 */
/* Inside cap_world: cap_world.c has hosts and time, cap_path.c links and gateways. */
#ifndef TESTS_LIB_CAP_WORLD_INT_H
#define TESTS_LIB_CAP_WORLD_INT_H

#include "rwy/due.h"
#include "tests/lib/cap_world.h"

/* Where packets arrive; the site is added. SERVED: host B has had its time for a request. */
enum cap_where { CAP_TO_HOST = 0, CAP_SERVED = 2, CAP_TO_GATEWAY = 4, CAP_TO_PEER = 6 };

struct cap_world;
struct cap_site {
	struct cap_world *w;
	unsigned idx;
	struct eng *e;
	bool up;
	struct link out;              /* away from the site: the path, or the WAN */
	struct link up_lan, down_lan; /* from the host, to the host */
	rwy_time port_free;           /* of the host's port */
	unsigned turn;                /* the connection that sends next */
};

struct cap_conn {
	const struct cap_program *p;
	struct cap_world *w;
	struct rc_host host[2];
	uint8_t *mem[2];
	rwy_time *post_at; /* of messages that wait for their time: posted .. planned */
	uint32_t posted, planned, recvs, done;
	rwy_time next_recv;
	bool failed;
	/* Of host A's rate: its packets take `slow` times as long, since CNPs came. */
	uint32_t slow;
	rwy_time next_tx, next_faster, last_cnp;
};

struct cap_world {
	const struct cap_scene *s;
	void (*capture)(struct cap_world *w, unsigned place, const uint8_t *ip, uint32_t len);
	cap_frame *frame;
	void *ctx;
	struct cap_conn conn[CAP_CONNS];
	unsigned conns;
	struct cap_site site[2];
	struct due_heap due;
	uint64_t order, rng, bufs;
	unsigned ends, cnps;
	rwy_time now, begin, served; /* served: host B is busy until then */
};

/* cap_path.c */
void cap_path_init(struct cap_world *w);
void cap_path_free(struct cap_world *w);
/* A packet of the host of a site. */
void cap_path_send(struct cap_world *w, unsigned site, const uint8_t *ip, uint32_t len);
/* A packet arrives at a gateway. Takes b. */
void cap_path_gateway(struct cap_world *w, unsigned site, bool lan, struct rwy_buf *b);
void cap_path_poll(struct cap_world *w);
rwy_time cap_path_next(const struct cap_world *w);

#endif
