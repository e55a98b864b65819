/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Complete gateways (ov_lab.h, with one and with two workers) with siblings: site A's are a2 and
 * a3, which exist here only as MAC addresses and frames; site B's gateway has none. With two
 * workers the site has a key, and packets are sealed. Site A has SL_HOSTS hosts, which are frames
 * as well.
 */
#ifndef TESTS_COMPONENT_SIBLING_LAB_H
#define TESTS_COMPONENT_SIBLING_LAB_H

#include "gateway/control/siblings.h"
#include "tests/component/ov_lab.h"

#define SL_WAIT    5000 /* ms, limit for expected frames */
#define SL_NOTHING 60   /* ms without an unexpected frame */
#define SL_HOSTS   16
#define SL_A2      0 /* places in the list */
#define SL_A3      1

struct sibling_lab {
	struct ov_lab ov;
	bool sealed; /* the site has a key */
};

extern struct sibling_lab sl;
extern const uint8_t sl_host_mac[6]; /* of all hosts */
extern const uint8_t sl_mac[2][6];   /* of a2 and a3; site A's gateway is told a2's only */

/* The address of a sibling, SL_A2 or SL_A3. */
struct rwy_ip sl_sibling(unsigned i);

/* --- the list, changed while the gateways run ------------------------------------------------- */

/* A thread's job; it sets `done` at its end, and rc to 0 or an error. */
struct sl_job {
	const struct gw_siblings_say *say;
	int rc;
	_Atomic bool done;
};
/* Runs fn(j) in a thread while the gateways turn. The test fails if rc is not 0. */
void sl_run(void *(*fn)(void *), struct sl_job *j);

/* a2 and a3 as in a document; the owner of each pair of hosts n at both sites. */
struct sl_said {
	bool lost2, lost3, no3;
	uint32_t weight;    /* of a2's tunnel; 0: none */
	int pair[SL_HOSTS]; /* by host: -1 ours, SL_A2, SL_A3; -2: not assigned */
	bool all;           /* pair[] is used */
	uint32_t dqpn;      /* if not 0: host 0's packets to this QP belong to `who`, */
	int who;            /* whatever its pair's owner */
};
/* Gives site A's gateway this list. */
void sl_say(const struct sl_said *x);
/* Assigns all pairs to `who`. */
void sl_say_all(int who);

/* --- packets ---------------------------------------------------------------------------------- */

/* A WRITE of site A's host n, 0 .. SL_HOSTS - 1, to a host of site B. */
struct fr_roce sl_packet(uint8_t n, uint32_t qpn, uint32_t psn, bool v6);
/* Sends an IP packet to the gateway's LAN port. */
void sl_inject(enum fp_site s, const uint8_t smac[6], const uint8_t *ip, uint32_t len);
/* Host n sends such a WRITE over IPv4. */
void sl_send_write(uint8_t n, uint32_t qpn, uint32_t psn);
/* The seal of an IP packet with BTH, behind it: GW_SEAL_LEN bytes. */
void sl_seal(uint8_t *ip, uint32_t len);
/* Receives site s's next frame on its LAN. False: none within ms. */
bool sl_next(enum fp_site s, unsigned ms, uint8_t buf[FR_MAX], struct fr_seen *f);
/* The queue pair that the packet is for. */
uint32_t sl_qpn(const struct fr_seen *f);
/* The next frame of A's LAN port is the WRITE of that QP, to that sibling. */
void sl_expect_handed(unsigned who, uint32_t qpn);
/* It arrives at B's host, and A's LAN gets only answers to the host. */
void sl_expect_carried(uint32_t qpn);
/* A QPN that no test has had; the 15 behind it are free, too. */
uint32_t sl_fresh(void);
/* Counters of site A. */
struct gw_counters sl_at_a(void);

/* A test program's main, as ov_main(). */
int sl_main(int argc, char **argv, int (*tests)(void));

#endif
