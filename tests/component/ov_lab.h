/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two gateways (tests/bench/fp_lab.h) with tenants, and hosts that are nothing but frames:
 *
 *   tenant  VNI   site A                                    site B
 *   red     5001  192.168.1.0/24 behind VTEPs               192.168.2.0/24 on VLAN 101
 *   blue    5002  the same addresses, VTEPs over IPv6       the same addresses behind VTEPs
 *   green   5003  192.168.1.0/24 on VLAN 103 (one host      192.168.2.0/24 behind VTEPs, proxy ARP off
 *                 is configured); denies WRITE from port 50000
 *
 * Red's DSCP is 26, and 10 while its path is congested. Blue has fd77:0:0:(site + 1)::/64 as well, the
 * gateway at ::fe, host n at ::n.
 *
 * In each the gateway is .254 at its site, and host .1 is at MAC ov_host_mac(site). The plain LAN is
 * fp_lab's.
 */
#ifndef TESTS_COMPONENT_OV_LAB_H
#define TESTS_COMPONENT_OV_LAB_H

#include <stdio.h>

#include "tests/bench/fp_lab.h"
#include "tests/component/frames.h"

enum ov_tenant { OV_RED, OV_BLUE, OV_GREEN, OV_TENANTS };

struct ov_lab {
	struct fp_lab fp;
	uint64_t in[FP_SITES], out[FP_SITES]; /* frames at the LAN ports */
	uint64_t wan_dscp[FP_SITES][64];      /* datagrams that a site sent, by DSCP */
};

/* Changes a site's configuration before its gateway is created; NULL: no change. Set before
 * ov_main(). */
extern void (*ov_conf_more)(struct conf *c, enum fp_site s);
/* The same for its next hops (fp_neighbour). */
extern void (*ov_hops_more)(struct fp_gw *g, enum fp_site s);
/* Once per process: DPDK and the lab. `workers` of each gateway. */
void ov_lab_new(struct ov_lab *l, unsigned workers);
/*
 * A test program's main: without an argument it is ov_both(); with one it makes the lab and runs
 * `tests`.
 */
int ov_main(int argc, char **argv, struct ov_lab *l, int (*tests)(void));
/*
 * Runs the program with the argument 1 and with 2, its number of workers, at the same time: it
 * mostly waits. Prints what they print, one after the other. The exit code.
 */
int ov_both(const char *program);

extern const uint32_t ov_vni[OV_TENANTS];
struct rwy_ip ov_ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d);
/* Host `n` of a site: the same address in every tenant. */
struct rwy_ip ov_host(enum fp_site s, uint8_t n);
struct rwy_ip ov_gw(enum fp_site s);
struct rwy_ip ov_host6(enum fp_site s, uint8_t n);
const uint8_t *ov_host_mac(enum fp_site s, uint8_t n);
const uint8_t *ov_gw_mac(enum ov_tenant t);
/* VTEP n (1 and 2 are the tenants'; 3 is no tenant's, but has a MAC), over IPv4 or IPv6, and the
 * gateway's end. */
struct rwy_ip ov_vtep(enum fp_site s, uint8_t n, bool v6);
struct rwy_ip ov_own(enum fp_site s, bool v6);
const uint8_t *ov_vtep_mac(enum fp_site s, uint8_t n);

enum ov_way { OV_VTEP4, OV_VTEP6, OV_VLAN };
enum ov_way ov_way(enum ov_tenant t, enum fp_site s);
uint16_t ov_vlan(enum ov_tenant t);

/* Sends a host's Ethernet frame, encapsulated as at the tenant's site, to the gateway's LAN
 * port. */
void ov_send(struct ov_lab *l, enum fp_site s, enum ov_tenant t, const uint8_t *eth, uint32_t len);
/* Encapsulates as ov_send(), into buf, without sending. */
uint32_t ov_wrap(
    struct ov_lab *l, enum fp_site s, enum ov_tenant t, const uint8_t *eth, uint32_t len, uint8_t *buf);
/* The same for an IP packet from host n to the gateway. */
void ov_send_ip(
    struct ov_lab *l, enum fp_site s, enum ov_tenant t, uint8_t n, const uint8_t *ip, uint32_t len);
/* Sends any frame unchanged. */
void ov_inject(struct ov_lab *l, enum fp_site s, const uint8_t *frame, uint32_t len);

/* Both gateways turn once, and the WAN between them carries. 0: nothing was to do. */
unsigned ov_turn(struct ov_lab *l);
/*
 * The same, for a loop that waits: a turn with nothing to do leaves the processor to others for a
 * moment.
 */
void ov_wait(struct ov_lab *l);
/* The next frame that a gateway sent on its LAN port, within `ms`. False: none. The frame is in buf. */
bool ov_receive(struct ov_lab *l, enum fp_site s, uint8_t buf[FR_MAX], uint32_t *len, unsigned ms);
/* Runs turns for a while; frames from the LAN ports are discarded, and counted in l->out. */
void ov_settle(struct ov_lab *l, unsigned ms);

/* Sums over workers. */
struct gw_counters ov_counters(struct ov_lab *l, enum fp_site s);
struct gw_overlay_counters ov_overlay(struct ov_lab *l, enum fp_site s);
struct gw_tenant_count ov_count(struct ov_lab *l, enum fp_site s, enum ov_tenant t);
/* Prints all that are not 0. */
void ov_dump(struct ov_lab *l, FILE *f);

#endif
