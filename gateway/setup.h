/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and stopping: what main.c calls, in this order. All on the control thread. Each logs what went
 * wrong and returns RWY_E*. */
#ifndef GATEWAY_SETUP_H
#define GATEWAY_SETUP_H

#include "gateway/app.h"

struct gw_pools;
struct rte_ring;

/* port/eal.c: DPDK with the configuration's arguments, one lcore a worker besides the control thread's. */
RWY_MUST_CHECK int gw_eal_init(const struct conf *c);
unsigned gw_eal_lcore(unsigned worker);
bool gw_eal_is_vdev(const char *device);
void gw_eal_cleanup(void);

/* datapath/call.c */
void gw_clock_init(void);

/* control/engcfg.c: the same number at both ends, another for each worker */
uint64_t gw_tunnel_id(const struct conf_tunnel *t, unsigned worker);
/* control/engcfg.c: what the engine of one worker is told. */
RWY_MUST_CHECK int gw_eng_cfg(struct eng_cfg *out, const struct conf *c, unsigned worker);

/* One tunnel of it. */
RWY_MUST_CHECK int gw_eng_tunnel_cfg(
    struct eng_tunnel_cfg *e, const struct conf *c, unsigned idx, unsigned worker);
/* The plain LAN's prefixes behind one tunnel, after *n others; ENG_PREFIXES_MAX at most. */
RWY_MUST_CHECK int gw_eng_prefixes(
    struct eng_prefix *prefix, unsigned *n, const struct conf *c, unsigned tunnel);
/* What a tunnel may hold, one of `tunnels`. */
void gw_eng_tunnel_memory(
    struct wan_cfg *w, unsigned tunnels, unsigned workers, uint32_t buffers, uint32_t cost);

/* Bounds that follow from the packet buffers there are: `buffers` in all, `cost` bytes of memory each. At
 * most half of a worker's share may be in custody and a quarter held for the hosts; the rest is for what is
 * under way. */
void gw_eng_cfg_memory(struct eng_cfg *out, unsigned workers, uint32_t buffers, uint32_t cost);

/* port/port.c: the device string for EAL, with what the driver needs filled in (af_packet's frame size). */
void gw_port_device(const struct conf_port *p, char *out, size_t size);
/* port/port.c: finds, configures and starts every port of the configuration. */
RWY_MUST_CHECK int gw_ports_find(struct gw_app *app);
uint32_t gw_ports_max_frame(const struct gw_app *app);
RWY_MUST_CHECK int gw_ports_start(struct gw_app *app, struct gw_pools *pools);
void gw_ports_poll_link(struct gw_app *app); /* logs and publishes changes */
void gw_ports_stop(struct gw_app *app);
void gw_ports_free(struct gw_app *app);

/* port/under.c: keeps the kernel from answering on the interface that lies under an af_packet port. */
void gw_under_quiet(const char *ifname);
void gw_under_restore(void);
bool gw_sysctl_write(const char *path, const char *value);

/* port/tap.c: the kernel's interface of each port. */
RWY_MUST_CHECK int gw_taps_open(struct gw_app *app);
void gw_taps_close(struct gw_app *app);

/* control/control.c */
RWY_MUST_CHECK int gw_control_new(struct gw_app *app, struct gw_pools *pools);
struct rte_ring *gw_control_ring(const struct gw_app *app); /* workers put frames for the kernel */
void gw_control_run(struct gw_app *app);                    /* until a signal */
void gw_control_free(struct gw_app *app);

/* control/tunnel_tell.c: once a second, what the log says of tunnels that come up, go down or do not come up.
 */
void gw_tunnels_tell(struct gw_app *app);
void gw_tunnels_tell_end(struct gw_app *app);

/* control/jfile.c: what hosts were promised, in memory that outlives the process. */
RWY_MUST_CHECK int gw_jfile_open(struct gw_app *app); /* takes up what the last process left */
void gw_jfile_region(const struct gw_app *app, unsigned worker, struct eng_cfg *out);
void gw_jfile_alive(const struct gw_app *app); /* once a second */
void gw_jfile_close(struct gw_app *app);       /* after the workers; the file stays */

/* control/telemetry.c */
void gw_telemetry_start(struct gw_app *app);

#endif
