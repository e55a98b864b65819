/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two complete gateways (tests/bench/fp_lab.h), hosts that write all the time, and the reliable
 * carriers between them: TCP and QUIC over real sockets of the loopback interface, RDMA over the
 * made-up device of tests/lib/rdma/fake.h. The responder checks that every byte arrives once and in
 * order; no host ever gets an error. All of it belongs to one thread, but for the carriers' own.
 */
#ifndef TESTS_COMPONENT_CARRIER_LAB_H
#define TESTS_COMPONENT_CARRIER_LAB_H

#include "gateway/carrier/internal.h"
#include "gateway/setup.h"
#include "tests/component/ov_lab.h"

/* Site A is at CL_LO(1), site B at CL_LO(2). */
#define CL_LO(n) rwy_ip_from4((uint8_t[4]){127, 88, 0, n})
/* The same of their RDMA devices. */
#define CL_RDMA(n) CL_LO((uint8_t)(100 + (n)))

struct carrier_lab {
	struct fp_lab fp;
	struct fp_hosts *hosts;
	bool no_udp;                  /* all native datagrams are lost */
	unsigned dropped_of_8;        /* of eight native datagrams, by chance */
	uint64_t udp[FP_SITES];       /* datagrams that a site sent natively */
	uint64_t fallbacks[FP_SITES]; /* for cl_both_fell() */
	uint16_t port;                /* of all carriers; the next one is free */
	bool keys;                    /* set before cl_main: the tunnel has keys */
	char certs[64];               /* directory: ca, a, b; and those of another CA: other, x */
};

extern struct carrier_lab cl;

struct gw_app *cl_app(enum fp_site s);
struct gw_carrier_info cl_info(enum fp_site s);
/* Counters of all workers of the site. */
struct wan_counters cl_wan_sum(enum fp_site s);

/* One turn of all workers, hosts and the WAN; send: hosts ask for more. */
void cl_turn(bool send);
/* Turns until fn; the test fails after 20 s. */
void cl_until(bool (*fn)(void), bool send);
/* Runs until this many more packets have arrived. */
void cl_carry(uint64_t packets);
/* The site asks for the carrier. */
void cl_ask(enum fp_site s, enum wan_carrier c);
/* A site's connection dies as in a network failure: no warning, data in flight. */
void cl_kill_one(enum fp_site s);
/* All packets arrive once, and no host got an error. */
void cl_check_hosts(void);
/*
 * Site A asks for the carrier, everything goes by it, and site B asks for the native one: nothing
 * is sent twice, no connection is left.
 */
void cl_moves_there_and_back(enum wan_carrier c, bool (*there)(void));

/* Ends the wait of a site before it connects again. */
void cl_hurry(void);

/* For cl_until(): both sites send by this carrier. */
bool cl_both_tcp(void);
bool cl_both_quic(void);
bool cl_both_rdma(void);
bool cl_both_native(void);
bool cl_both_want(enum wan_carrier c);
/* No connection is open at either site. */
bool cl_both_closed(void);
/* Both have measured the path. */
bool cl_measured(void);
/* Both fell back to the native carrier since cl.fallbacks. */
bool cl_both_fell(void);

/*
 * A test program's main: without an argument it is ov_both(); with one, the number of workers of
 * each gateway, it makes the lab and runs `tests`. Once per process.
 */
int cl_main(int argc, char **argv, int (*tests)(void));
/* The last test: gateways end, all packet buffers and RDMA objects are free. */
void cl_test_end(void **state);

#endif
