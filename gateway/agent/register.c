/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway tells its control center of itself: addresses, ports, carriers, and what it is as a
 * relay. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "conf/schema.h"
#include "gateway/agent/internal.h"
#include "gateway/carrier/carrier.h"
#include "gateway/carrier/speed.h"

#define UDP_PORT 4793 /* port of a tunnel's first worker: the default of tunnels[].udp_port */
/* default of tunnels[].rate, when a port does not know its speed */
#define DEFAULT_BPS   10000000000
#define RDMA_QPS      4    /* default of tunnels[].tcp_connections */
#define RDMA_DATAGRAM 4096 /* bytes of a full one, as RoCE hosts send */

json_t *ctrl_ip(const struct rwy_ip *a)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(rwy_ip_is4(a) ? AF_INET : AF_INET6, rwy_ip_is4(a) ? a->b + 12 : a->b, text, sizeof(text));
	return json_string(text);
}

static json_t *with_port(const struct rwy_ip *a)
{
	json_t *ip = ctrl_ip(a), *all;

	all = json_sprintf(rwy_ip_is4(a) ? "%s:%d" : "[%s]:%d", json_string_value(ip), UDP_PORT);
	json_decref(ip);
	return all;
}

/* Lists TCP congestion controls: the configured one, or those that the kernel allows everybody. */
static json_t *tcp_algorithms(const struct conf_controller *c)
{
	static const char path[] = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
	json_t *list = json_array();
	FILE *f;
	char word[32];

	if (strcmp(c->tcp_cc, "auto") != 0) {
		json_array_append_new(list, json_string(c->tcp_cc));
		return list;
	}
	f = fopen(path, "re");
	while (f && fscanf(f, "%31s", word) == 1)
		if ((!strcmp(word, "bbr") || !strcmp(word, "cubic")) && json_array_size(list) < 8)
			json_array_append_new(list, json_string(word));
	if (f)
		fclose(f);
	return list;
}

/* Tells the relay's addresses, its ports for questions and redirected hosts, and its limit. */
static json_t *relay_of(const struct conf_relay *c)
{
	json_t *addresses = json_array();

	for (unsigned i = 0; i < c->addrs; i++)
		json_array_append_new(addresses, ctrl_ip(&c->addr[i]));
	return json_pack("{s:o, s:i, s:i, s:I}", "addresses", addresses, "ask_port", (int)c->ask_port,
	    "redirect_port", (int)c->redirect_port, "links_max", (json_int_t)c->links_max);
}

/* The control center is not told of a device that is not there: its documents would be refused. */
static bool rdma_there(const struct conf_controller *c)
{
	static const struct rwy_ip none;
	char addr[INET6_ADDRSTRLEN];

	if (rwy_ip_eq(&c->rdma_address, &none) || gw_carrier_rdma_there(&c->rdma_address))
		return !rwy_ip_eq(&c->rdma_address, &none);
	conf_print_ip(&c->rdma_address, addr, sizeof(addr));
	gw_log(
	    GW_LOG_WARNING, "controller", "no RDMA: no RDMA device has `controller.rdma_address` %s", addr);
	return false;
}

/* Tells the RDMA device's address, and what a tunnel's queue pairs can have under way. */
static json_t *rdma_of(const struct conf *conf, uint64_t bps)
{
	const struct conf_controller *c = &conf->controller;
	json_t *ip = ctrl_ip(&c->rdma_address), *address;
	const uint64_t window = (uint64_t)RDMA_QPS * c->rdma_buffers * RDMA_DATAGRAM;

	address = json_sprintf(
	    rwy_ip_is4(&c->rdma_address) ? "%s:%d" : "[%s]:%d", json_string_value(ip), (int)c->rdma_port);
	json_decref(ip);
	return json_pack("{s:I, s:o, s:i, s:I}", "bandwidth_bps",
	    (json_int_t)(c->rdma_bandwidth_Bps ? 8 * c->rdma_bandwidth_Bps : bps), "address", address, "qps",
	    RDMA_QPS, "window_bytes", (json_int_t)window);
}

/* The present ones: a reload may name other files. */
static void keys_get(struct gw_app *app, struct conf_tunnel_keys *out)
{
	gw_tunnels_read(app);
	*out = app->conf->keys;
	gw_tunnels_read_end(app);
}

/* Returns the rate of QUIC: as configured, or as measured once in the life of the program. */
static uint64_t quic_bps(struct gw_ctrl *k, const struct conf_tunnel_keys *keys, uint64_t bps)
{
	const struct conf *conf = k->app->conf;
	const uint64_t says = conf->controller.quic_bandwidth_Bps;
	char why[GW_CERT_WHY];

	if (says)
		return 8 * says;
	if (!k->quic_asked) {
		k->quic_asked = true;
		k->quic_Bps = gw_quic_speed(keys, &conf->quic, why, sizeof(why));
		if (k->quic_Bps)
			gw_log(GW_LOG_INFO, "controller", "QUIC measured: %" PRIu64 " Mbit/s",
			    k->quic_Bps * 8 / 1000000);
		else
			gw_log(GW_LOG_WARNING, "controller",
			    "no QUIC: `controller.quic_bandwidth` is `measured`, and that failed: %s", why);
	}
	return 8 * k->quic_Bps < bps ? 8 * k->quic_Bps : bps;
}

/* Tells of QUIC, if there are certificates for it. */
static void quic_add(struct gw_ctrl *k, uint64_t bps, json_t *o)
{
	struct conf_tunnel_keys keys;
	uint64_t most;
	json_t *quic;

	keys_get(k->app, &keys);
	most = *keys.certificate ? quic_bps(k, &keys, bps) : 0;
	if (!most)
		return;
	quic = json_pack("{s:I}", "bandwidth_bps", (json_int_t)most);
	/* bbr2 is what goes without saying: older control centers refuse what they do not know */
	if (k->app->conf->quic.cc == CONF_QUIC_CUBIC)
		json_object_set_new(quic, "congestion_control", json_string("cubic"));
	json_object_set_new(o, "quic", quic);
}

/* Lists the carriers that this gateway can use, and what it is as a relay. */
static json_t *capabilities(struct gw_ctrl *k, uint64_t bps)
{
	const struct conf *conf = k->app->conf;
	const struct conf_controller *c = &conf->controller;
	json_t *o = json_pack("{s:{s:I, s:b}}", "rocev2", "bandwidth_bps", (json_int_t)bps, "cnp", 1);
	const uint64_t tcp = c->tcp_bandwidth_Bps ? 8 * c->tcp_bandwidth_Bps : bps;
	json_t *algorithms = tcp_algorithms(c);

	if (json_array_size(algorithms))
		json_object_set_new(o, "tcp",
		    json_pack("{s:I, s:O}", "bandwidth_bps", (json_int_t)tcp, "algorithms", algorithms));
	json_decref(algorithms);
	quic_add(k, bps, o);
	if (rdma_there(c))
		json_object_set_new(o, "rdma", rdma_of(conf, bps));
	if (conf->relay.addrs)
		json_object_set_new(o, "relay", relay_of(&conf->relay));
	return o;
}

json_t *ctrl_registration(void *ctx)
{
	struct gw_ctrl *k = ctx;
	const struct conf *c = k->app->conf;
	json_t *lan = json_array(), *wan = json_array(), *ports = json_array(), *o;
	const int pair = conf_standby(c);
	uint64_t most = 0;

	for (unsigned p = 0; p < c->ports; p++) {
		const struct conf_port *port = &c->port[p];
		struct gw_port_stats s;

		if (pair >= 0 && !strcmp(port->name, c->tunnel[pair].port))
			continue; /* the cable to the other gateway of the pair */
		const uint64_t bps = gw_port_stats_get(k->app, p, &s) ? 0 : (uint64_t)s.speed_mbps * 1000000;

		for (unsigned a = 0; a < port->addrs; a++)
			json_array_append_new(port->role == CONF_ROLE_LAN ? lan : wan,
			    port->role == CONF_ROLE_LAN ? ctrl_ip(&port->addr[a].addr)
			                                : with_port(&port->addr[a].addr));
		if (bps)
			json_array_append_new(
			    ports, json_pack("{s:s, s:I}", "name", port->name, "speed_bps", (json_int_t)bps));
		if (port->role == CONF_ROLE_WAN && bps > most)
			most = bps;
	}
	if (most > CONF_TUNNEL_BPS_MAX)
		most = CONF_TUNNEL_BPS_MAX;
	if (c->controller.bandwidth_Bps)
		most = 8 * c->controller.bandwidth_Bps;
	o = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "site", c->controller.site, "version",
	    k->app->version, "lan", lan, "wan", wan, "ports", ports, "capabilities",
	    capabilities(k, most ? most : DEFAULT_BPS));
	if (*k->member)
		json_object_set_new(o, "pair", json_pack("{s:s}", "member", k->member));
	return o;
}
