/* SPDX-License-Identifier: Apache-2.0 */
/* Relays for the benchmarks: the same program with its edge, and links that the hosts' libraries
 * would ask for. */
#include "tests/bench/fp_lab.h"

#include <stdio.h>

#include "gateway/datapath/edge.h"
#include "proxy/desk.h"

#define LINKS 16384 /* the default of relay.links_max */

struct rwy_ip fp_relay_ip(enum fp_site s)
{
	return rwy_ip_from4((uint8_t[4]){10, (uint8_t)(s + 1), 0, 1});
}

/* The values are the defaults of conf/schema.c; anybody may connect to anybody. */
void fp_relay_conf(struct conf *c, enum fp_site s)
{
	struct conf_relay *r = &c->relay;

	r->addr[0] = fp_relay_ip(s);
	r->addrs = 1;
	r->links_max = LINKS;
	r->half_open_max = 1024;
	r->host_max = 4096;
	r->idle_expiry = 86400 * RWY_SEC;
	r->allows = 1;
	r->allow[0] = (struct conf_allow){
	    {rwy_ip_from4((uint8_t[4]){10}), 96 + 8}, {rwy_ip_from4((uint8_t[4]){10}), 96 + 8}, {1, 65535}};
}

uint32_t fp_relay_pair(struct fp_lab *l, enum fp_site s, uint32_t lqpn, uint32_t rqpn)
{
	struct fp_gw *g = &l->gw[s];
	struct proxy_edge *e = &g->w->edge->core;
	struct rwy_ip host = fp_host_ip(&l->cfg, s), relay = fp_relay_ip(s);
	struct proxy_ask a = {.version = PROXY_ASK_VERSION,
	    .kind = PROXY_ASK_PAIR,
	    .target = {fp_host_ip(&l->cfg, (enum fp_site) !s), 0},
	    .lqpn = lqpn,
	    .rqpn = rqpn};

	a.cookie = proxy_desk_answer(e, &host, &relay, &a, gw_now()).cookie;
	a = proxy_desk_answer(e, &host, &relay, &a, gw_now());
	if (a.answer != PROXY_ANSWER_OK)
		fp_die(proxy_answer_text(a.answer));
	return a.alias;
}
