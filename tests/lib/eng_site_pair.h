/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A site with a pair of gateways and a site with one, in virtual time. Site A has the engines A1 and
 * A2 (engine/standby.h) with a cable between them, site B has one. The test makes the packets of
 * hosts. What is sent to site A, both gateways get, for they share addresses. Links are perfect until
 * the test cuts them or holds them back.
 */
#ifndef TESTS_LIB_ENG_SITE_PAIR_H
#define TESTS_LIB_ENG_SITE_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "tests/lib/rc_pkt.h"

enum { SP_A1, SP_A2, SP_B, SP_GATEWAYS };
enum { SP_SITE_A, SP_SITE_B, SP_SITES };

/* Numbers of the tunnels: between the sites; the pair's own; another one between the sites, which is
 * there if sp_tune is or calls sp_two_tunnels. */
#define SP_WAN   0
#define SP_CABLE 1
#define SP_WAN_2 2

#define SP_TENANTS 8 /* 1 .. 8 */

#define SP_STEP    (RWY_MS / 10) /* from one turn of all engines to the next; delay of cable and LAN */
#define SP_WAN_WAY RWY_MS
#define SP_SILENCE (20 * RWY_MS)  /* after it a gateway notices that the cable is dead */
#define SP_WAIT    (500 * RWY_MS) /* eng_standby_cfg.wait */

/* One direction each. */
enum sp_link {
	SP_A_TO_B,
	SP_B_TO_A,
	SP_1_TO_2,
	SP_2_TO_1,
	SP_LAN_A,
	SP_LAN_B,
	SP_A_TO_B_2, /* of the second tunnel between the sites */
	SP_B_TO_A_2,
	SP_LINKS
};
/* HELD: what is sent waits until the link is GOOD again; CUT: it is lost, also what waits. */
enum sp_link_state { SP_GOOD, SP_HELD, SP_CUT };

struct sp_gw {
	struct eng *e; /* NULL: it is dead, or was not started */
	unsigned idx;
	uint64_t bufs;
	bool frozen;
	bool starved;               /* the engine gets no buffer */
	bool serves;                /* as ops.serves said last; and how often it was called, */
	unsigned told, replaced;    /* and how often with `replaced` */
	unsigned sent;              /* packets to hosts */
	uint8_t note[ENG_NOTE_MAX]; /* the last one of the other gateway */
	uint32_t note_len;
	enum eng_standby_kind note_kind;
	bool lacks; /* its program has something that the standby lacks */
	/*
	 * NAKs by which it asked for what hosts may have sent before it took over, up to SP_ASKS
	 * for each connection. Each counts as an ACK of all before.
	 */
	unsigned asked;
};

/* A packet that a host got. */
struct sp_packet {
	unsigned site, from; /* from: the gateway that sent it */
	uint8_t opcode, syndrome;
	roce_psn psn;
	roce_msn msn;
	uint32_t dqpn, tenant; /* tenant: as in sp_host_sends_as */
	rwy_time at;
};

#define SP_ASKS      4
#define SP_HEARD_MAX 512
struct sp_host {
	unsigned n;
	struct sp_packet heard[SP_HEARD_MAX];
	unsigned acks, naks, requests, responses;
	struct sp_packet ack; /* the last one */
};

extern struct sp_gw sp_gw[SP_GATEWAYS];
extern struct sp_host sp_host[SP_SITES];
extern rwy_time sp_now;
/* Changes the configuration of a gateway before it starts; may be NULL. */
extern void (*sp_tune)(struct eng_cfg *c, unsigned gw);
void sp_two_tunnels(struct eng_cfg *c, unsigned gw);
/* After its start: adds tenants; may be NULL. */
extern void (*sp_started)(unsigned gw);
/* Called with each packet that a host gets; may be NULL. It may call sp_host_sends. */
extern void (*sp_heard)(const struct sp_packet *p);

/* No gateway runs. Ack mode of site A: `site`. */
int sp_set_up(void **state);
/* The same, and A1 serves with A2 as its complete standby. */
int sp_set_up_paired(void **state);
int sp_tear_down(void **state); /* fails if a buffer leaked */
void sp_start(unsigned gw);
/* Its process is gone; what it sent is still on its way. */
void sp_kill(unsigned gw);
/* It does nothing; what it gets waits in its NIC, up to SP_RING datagrams, until it goes on. */
#define SP_RING 256
void sp_freeze(unsigned gw, bool on);
void sp_run(rwy_dur time);
/* Fails the test if the gateway is not in this state (names of engine/states.h) within `limit`. */
void sp_reach(unsigned gw, const char *state, rwy_dur limit);
void sp_link(enum sp_link l, enum sp_link_state s);
void sp_cable(enum sp_link_state s); /* both directions */
/* Datagrams that wait in a link. */
unsigned sp_waiting(enum sp_link l);
void sp_host_sends(unsigned site, const struct rc_mk *m);
/* In tenant `tenant`, whose index in a gateway is sp_index(gateway, tenant); 0: the plain LAN. */
void sp_host_sends_as(unsigned site, uint32_t tenant, const struct rc_mk *m);
void sp_host_sends_bytes(unsigned site, uint32_t tenant, const uint8_t *ip, uint32_t len);
uint32_t sp_index(unsigned gw, uint32_t tenant);
const char *sp_state(unsigned gw);
const struct eng_counters *sp_counters(unsigned gw);
/* Bytes of buffers of this kind that the engine holds. */
uint64_t sp_bytes(unsigned gw, enum eng_mem_kind k);

#endif
