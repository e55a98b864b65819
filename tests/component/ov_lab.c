/* SPDX-License-Identifier: Apache-2.0 */
/* The lab of ov_lab.h. */
#include "tests/component/ov_lab.h"

#include <rte_eal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IDLE_US 50 /* the processor is others' meanwhile */

const uint32_t ov_vni[OV_TENANTS] = {5001, 5002, 5003};

/* --- names and numbers ------------------------------------------------------------------------------- */

struct rwy_ip ov_ip4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return rwy_ip_from4((uint8_t[4]){a, b, c, d});
}

struct rwy_ip ov_host(enum fp_site s, uint8_t n)
{
	return ov_ip4(192, 168, (uint8_t)(s + 1), n);
}

struct rwy_ip ov_gw(enum fp_site s)
{
	return ov_host(s, 254);
}

struct rwy_ip ov_host6(enum fp_site s, uint8_t n)
{
	return (struct rwy_ip){{0xfd, 0x77, [7] = (uint8_t)(s + 1), [15] = n}};
}

static const uint8_t *mac(uint8_t kind, uint8_t a, uint8_t b)
{
	static uint8_t m[4][16][256][6];
	uint8_t *p = m[kind][a][b];

	memcpy(p, (uint8_t[6]){0x02, 0xa0, kind, 0, a, b}, 6);
	return p;
}

const uint8_t *ov_host_mac(enum fp_site s, uint8_t n)
{
	return mac(0, (uint8_t)s, n);
}

const uint8_t *ov_vtep_mac(enum fp_site s, uint8_t n)
{
	return mac(1, (uint8_t)s, n);
}

const uint8_t *ov_gw_mac(enum ov_tenant t)
{
	return mac(2, (uint8_t)t, 0);
}

struct rwy_ip ov_vtep(enum fp_site s, uint8_t n, bool v6)
{
	if (v6)
		return (struct rwy_ip){{0xfd, 0, [3] = (uint8_t)(s + 1), [15] = (uint8_t)(10 + n)}};
	return ov_ip4(10, (uint8_t)(s + 1), 0, (uint8_t)(10 + n));
}

struct rwy_ip ov_own(enum fp_site s, bool v6)
{
	if (v6)
		return (struct rwy_ip){{0xfd, 0, [3] = (uint8_t)(s + 1), [15] = 1}};
	return ov_ip4(10, (uint8_t)(s + 1), 0, 1);
}

enum ov_way ov_way(enum ov_tenant t, enum fp_site s)
{
	static const enum ov_way way[OV_TENANTS][FP_SITES] = {
	    {OV_VTEP4, OV_VLAN}, {OV_VTEP6, OV_VTEP4}, {OV_VLAN, OV_VTEP4}};

	return way[t][s];
}

uint16_t ov_vlan(enum ov_tenant t)
{
	return (uint16_t)(101 + t);
}

/* --- configuration ----------------------------------------------------------------------------------- */

static void tenant_conf(struct conf_tenant *c, enum ov_tenant t, enum fp_site s)
{
	static const char *const name[OV_TENANTS] = {"red", "blue", "green"};
	struct tenant_prefix *p = calloc(4, sizeof(*p));
	struct rwy_ip *v = calloc(2, sizeof(*v));
	struct acl_rule *r = calloc(1, sizeof(*r));
	struct tenant_host *h = calloc(1, sizeof(*h));
	bool vlan = ov_way(t, s) == OV_VLAN;

	if (!p || !v || !r || !h)
		fp_die("no memory");
	tenant_cfg_default(&c->cfg);
	snprintf(c->cfg.name, sizeof(c->cfg.name), "%s", name[t]);
	c->cfg.vni = ov_vni[t];
	c->cfg.vlan = vlan ? ov_vlan(t) : 0;
	p[0].p = (struct prefix){.addr = ov_host(s, 0), .len = 96 + 24};
	p[0].at.side = vlan ? TENANT_LAN : TENANT_VTEP;
	p[1].p = (struct prefix){.addr = ov_host(1 - s, 0), .len = 96 + 24};
	p[1].at.side = TENANT_TUNNEL;
	p[2].p = (struct prefix){.addr = ov_host6(s, 0), .len = 64};
	p[2].at = p[0].at;
	p[3].p = (struct prefix){.addr = ov_host6(1 - s, 0), .len = 64};
	p[3].at = p[1].at;
	c->cfg.prefix = p;
	c->cfg.prefixes = t == OV_BLUE ? 4 : 2;
	for (uint8_t i = 0; !vlan && i < 2; i++)
		v[i] = ov_vtep(s, (uint8_t)(i + 1), ov_way(t, s) == OV_VTEP6);
	c->cfg.vtep = v;
	c->cfg.vteps = vlan ? 0 : 2;
	c->cfg.proxy_arp = t != OV_GREEN;
	memcpy(c->cfg.gw_mac, ov_gw_mac(t), 6);
	c->cfg.gw_ip[0] = ov_gw(s);
	if (t == OV_RED) {
		memset(c->cfg.dscp.map, 26, sizeof(c->cfg.dscp.map));
		memset(c->cfg.dscp_congested.map, 10, sizeof(c->cfg.dscp_congested.map));
	}
	if (t == OV_BLUE)
		c->cfg.gw_ip[1] = ov_host6(s, 0xfe);
	*r = (struct acl_rule){.sport_lo = 50000, .sport_hi = 50000, .classes = 1 << ACL_WRITE};
	c->cfg.rule = r;
	c->cfg.rules = t == OV_GREEN;
	*h = (struct tenant_host){.addr = ov_host(s, 77)};
	memcpy(h->mac, ov_host_mac(s, 77), 6);
	c->cfg.host = h;
	c->cfg.hosts = t == OV_GREEN && vlan;
}

void (*ov_conf_more)(struct conf *c, enum fp_site s);
void (*ov_hops_more)(struct fp_gw *g, enum fp_site s);

static void conf(struct conf *c, enum fp_site s)
{
	c->tenants = OV_TENANTS;
	c->tenant = calloc(OV_TENANTS, sizeof(*c->tenant));
	if (!c->tenant)
		fp_die("no memory");
	for (unsigned t = 0; t < OV_TENANTS; t++)
		tenant_conf(&c->tenant[t], (enum ov_tenant)t, s);
	if (ov_conf_more)
		ov_conf_more(c, s);
}

static void hops(struct fp_gw *g, enum fp_site s)
{
	for (uint8_t n = 1; n <= 3; n++) {
		fp_neighbour(g, FP_LAN, ov_vtep(s, n, false), ov_vtep_mac(s, n));
		fp_neighbour(g, FP_LAN, ov_vtep(s, n, true), ov_vtep_mac(s, n));
	}
	if (ov_hops_more)
		ov_hops_more(g, s);
}

void ov_lab_new(struct ov_lab *l, unsigned workers)
{
	struct fp_cfg cfg = {
	    .payload = 1024, .qps = 1, .message = 1, .workers = workers, .conf = conf, .hops = hops};

	char *eal[] = {"test", "--no-huge", "--no-shconf", "-m", "400", "--no-pci", "--lcores", "0",
	    "--log-level", "error", NULL};

	gw_log_init(GW_LOG_WARNING);
	if (rte_eal_init(10, eal) < 0)
		fp_die("EAL does not start");
	memset(l, 0, sizeof(*l));
	fp_lab_new(&l->fp, &cfg);
}

int ov_main(int argc, char **argv, struct ov_lab *l, int (*tests)(void))
{
	int rc;

	if (argc < 2)
		return ov_both(argv[0]);
	ov_lab_new(l, argv[1][0] == '2' ? 2 : 1);
	rc = tests();
	if (rc)
		ov_dump(l, stderr);
	return rc;
}

int ov_both(const char *program)
{
	FILE *out[2];
	char line[1000];
	int bad = 0;

	for (unsigned i = 0; i < 2; i++) {
		snprintf(line, sizeof(line), "'%s' %u 2>&1", program, i + 1);
		out[i] = popen(line, "r");
		if (!out[i])
			fp_die("the program does not start itself");
	}
	for (unsigned i = 0; i < 2; i++) {
		while (fgets(line, sizeof(line), out[i]))
			fputs(line, stdout);
		bad += pclose(out[i]) != 0;
	}
	return bad > 0;
}

/* --- in and out -------------------------------------------------------------------------------------- */

void ov_inject(struct ov_lab *l, enum fp_site s, const uint8_t *frame, uint32_t len)
{
	l->in[s]++;
	fp_arrive(&l->fp.gw[s].port[FP_LAN], fp_copy(&l->fp, frame, len));
}

uint32_t ov_wrap(
    struct ov_lab *l, enum fp_site s, enum ov_tenant t, const uint8_t *eth, uint32_t len, uint8_t *out)
{
	const uint8_t *gw = l->fp.gw[s].port[FP_LAN].mac;
	bool v6 = ov_way(t, s) == OV_VTEP6;
	struct fr_outer o = {.src = ov_vtep(s, 1, v6), .dst = ov_own(s, v6), .vni = ov_vni[t]};

	memcpy(o.dmac, gw, 6);
	memcpy(o.smac, ov_vtep_mac(s, 1), 6);
	if (ov_way(t, s) != OV_VLAN)
		return fr_vxlan(out, &o, eth, len);
	return fr_eth(out, eth, eth + 6, ov_vlan(t), (uint16_t)(eth[12] << 8 | eth[13]), eth + 14, len - 14);
}

void ov_send(struct ov_lab *l, enum fp_site s, enum ov_tenant t, const uint8_t *eth, uint32_t len)
{
	uint8_t out[FR_MAX];

	len = ov_wrap(l, s, t, eth, len, out);
	ov_inject(l, s, out, len);
}

void ov_send_ip(
    struct ov_lab *l, enum fp_site s, enum ov_tenant t, uint8_t n, const uint8_t *ip, uint32_t len)
{
	uint8_t eth[FR_MAX];
	const uint8_t *dst = ov_way(t, s) == OV_VLAN ? l->fp.gw[s].port[FP_LAN].mac : ov_gw_mac(t);

	len = fr_eth(eth, dst, ov_host_mac(s, n), 0, ip[0] >> 4 == 4 ? 0x0800 : 0x86dd, ip, len);
	ov_send(l, s, t, eth, len);
}

static struct rte_mbuf *flat(struct ov_lab *l, struct rte_mbuf *m)
{
	struct rte_mbuf *c = fp_copy(&l->fp, rte_pktmbuf_mtod(m, void *), m->data_len);

	for (struct rte_mbuf *x = m->next; x; x = x->next)
		memcpy(rte_pktmbuf_append(c, x->data_len), rte_pktmbuf_mtod(x, void *), x->data_len);
	rte_pktmbuf_free(m);
	return c;
}

static unsigned wan(struct ov_lab *l, enum fp_site from)
{
	struct rte_mbuf *m;
	unsigned n = 0;

	for (; fp_sent(&l->fp.gw[from].port[FP_WAN], &m, 1); n++) {
		l->wan_dscp[from][rte_pktmbuf_mtod(m, uint8_t *)[GW_ETH + 1] >> 2]++;
		fp_arrive(&l->fp.gw[1 - from].port[FP_WAN], flat(l, m));
	}
	return n;
}

unsigned ov_turn(struct ov_lab *l)
{
	unsigned work = 0;

	for (unsigned s = 0; s < FP_SITES; s++) {
		for (unsigned i = 0; i < l->fp.gw[s].app.workers; i++)
			work += gw_worker_turn(l->fp.gw[s].app.worker[i]);
		work += wan(l, (enum fp_site)s);
	}
	return work;
}

void ov_wait(struct ov_lab *l)
{
	if (!ov_turn(l))
		usleep(IDLE_US);
}

bool ov_receive(struct ov_lab *l, enum fp_site s, uint8_t buf[FR_MAX], uint32_t *len, unsigned ms)
{
	rwy_time end = gw_now() + ms * RWY_MS;
	struct rte_mbuf *m;

	while (!fp_sent(&l->fp.gw[s].port[FP_LAN], &m, 1)) {
		if (gw_now() > end)
			return false;
		ov_wait(l);
	}
	m = flat(l, m);
	*len = m->data_len;
	memcpy(buf, rte_pktmbuf_mtod(m, void *), RTE_MIN(*len, (uint32_t)FR_MAX));
	rte_pktmbuf_free(m);
	l->out[s]++;
	return true;
}

void ov_settle(struct ov_lab *l, unsigned ms)
{
	rwy_time end = gw_now() + ms * RWY_MS;
	struct rte_mbuf *m;

	do {
		ov_wait(l);
		for (unsigned s = 0; s < FP_SITES; s++)
			while (fp_sent(&l->fp.gw[s].port[FP_LAN], &m, 1)) {
				rte_pktmbuf_free(m);
				l->out[s]++;
			}
	} while (gw_now() < end);
}

/* --- counters ---------------------------------------------------------------------------------------- */

struct gw_counters ov_counters(struct ov_lab *l, enum fp_site s)
{
	const struct gw_app *app = &l->fp.gw[s].app;
	struct gw_counters c;

	gw_counters_get(app, app->workers, &c);
	return c;
}

struct gw_overlay_counters ov_overlay(struct ov_lab *l, enum fp_site s)
{
	const struct gw_app *app = &l->fp.gw[s].app;
	struct gw_overlay_counters c;

	gw_overlay_counters_get(app, app->workers, &c);
	return c;
}

struct gw_tenant_count ov_count(struct ov_lab *l, enum fp_site s, enum ov_tenant t)
{
	const struct gw_app *app = &l->fp.gw[s].app;
	const struct tenant *found = tenant_by_vni(gw_tenants_of(app), ov_vni[t]);
	struct gw_tenant_count c = {0};

	for (unsigned i = 0; found && i < app->workers; i++) {
		const struct gw_tenant_count *w = &app->worker[i]->tenants[found->index];

		c.rx_packets += w->rx_packets;
		c.rx_bytes += w->rx_bytes;
		c.tx_packets += w->tx_packets;
		c.tx_bytes += w->tx_bytes;
		c.forged_host += w->forged_host;
		for (unsigned k = 0; k < TENANT_ADMIT_COUNT; k++)
			c.drop[k] += w->drop[k];
	}
	return c;
}

void ov_dump(struct ov_lab *l, FILE *f)
{
	for (unsigned s = 0; s < FP_SITES; s++) {
		struct gw_counters c = ov_counters(l, (enum fp_site)s);
		struct gw_overlay_counters o = ov_overlay(l, (enum fp_site)s);
		const uint64_t *v = (const uint64_t *)(const void *)&o;

		fprintf(
		    f, "site %c: in %lu out %lu", 'A' + s, (unsigned long)l->in[s], (unsigned long)l->out[s]);
#define X(n, t)                                                                                              \
	if (c.n)                                                                                             \
		fprintf(f, " " #n "=%lu", (unsigned long)c.n);
		GW_COUNTERS(X)
#undef X
		for (unsigned i = 0; i < GW_OVERLAY_COUNTERS; i++)
			if (v[i])
				fprintf(f, " %s=%lu", gw_overlay_names[i].name, (unsigned long)v[i]);
		for (unsigned w = 0; w < l->fp.gw[s].app.workers; w++) {
			const struct eng_counters *e = eng_counters(l->fp.gw[s].app.worker[w]->eng);

			fprintf(f, "\n  engine %u:", w);
#define X(n, t)                                                                                              \
	if (e->n)                                                                                            \
		fprintf(f, " " #n "=%lu", (unsigned long)e->n);
			ENG_COUNTERS(X)
#undef X
		}
		fprintf(f, "\n");
	}
}
