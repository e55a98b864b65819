/* SPDX-License-Identifier: Apache-2.0 */
/* Start and stop: the functions that main.c calls, in this order. All run on the control thread.
 * Each logs its errors and returns RWY_E*. */
#ifndef GATEWAY_SETUP_H
#define GATEWAY_SETUP_H

#include "gateway/app.h"

struct gw_pools;
struct proxy_record;

/* port/eal.c: starts DPDK with the configuration's arguments, one lcore per worker besides the
 * control thread's. */
RWY_MUST_CHECK int gw_eal_init(const struct conf *c);
unsigned gw_eal_lcore(unsigned worker);
void gw_eal_cleanup(void);

/* clock.c: call it before gw_now(); takes 50 ms */
void gw_clock_init(void);

/* port/port.c: finds, configures and starts every configured port. */
RWY_MUST_CHECK int gw_ports_find(struct gw_app *app);
uint32_t gw_ports_max_frame(const struct gw_app *app);
RWY_MUST_CHECK int gw_ports_start(struct gw_app *app, struct gw_pools *pools);
/* Logs and publishes changes. */
void gw_ports_poll_link(struct gw_app *app);
void gw_ports_stop(struct gw_app *app);
void gw_ports_free(struct gw_app *app);

/* port/ifquiet.c: keeps the kernel from answering on the interface under an af_packet port. */
void gw_ifquiet_set(const char *ifname);
void gw_ifquiet_restore(void);
/* port/multicast.c: the interface takes all multicast frames until the returned file descriptor is
 * closed; -errno. */
RWY_MUST_CHECK int gw_multicast_open(const char *ifname);
/* Writes a file of /proc/sys; false: not possible. */
bool gw_sysctl_write(const char *path, const char *value);

/* port/tap.c: the kernel's interface of each port. */
RWY_MUST_CHECK int gw_taps_open(struct gw_app *app);
void gw_taps_close(struct gw_app *app);

/* control/workers.c: a worker with its engine's tenants, before it runs. */
RWY_MUST_CHECK int gw_worker_start(
    struct gw_worker **out, struct gw_app *app, unsigned idx, struct gw_pools *pools);

/* control/control.c: call it after gw_kernel_new */
RWY_MUST_CHECK int gw_control_new(struct gw_app *app, struct gw_pools *pools);
void gw_control_run(struct gw_app *app); /* returns at a signal */
void gw_control_free(struct gw_app *app);

/* control/tunnel_log.c: logs tunnels that come up, go down or stay down; called once a second. */
void gw_tunnels_log(struct gw_app *app);
/*
 * Whether each tunnel has been up for ENG_TELLS_FOR at a time, so that its far gateway has told
 * what it knows of connections that may be lost. As of the last gw_tunnels_log().
 */
bool gw_tunnels_told(const struct gw_app *app);
void gw_tunnels_log_end(struct gw_app *app);

/* datapath/jfile.c: the promises to hosts, in memory that outlives the process. */
/* Takes over what the last process left. */
RWY_MUST_CHECK int gw_jfile_open(struct gw_app *app);
void gw_jfile_region(const struct gw_app *app, unsigned worker, struct eng_cfg *out);
/* The journal of a relay's links, of conf.relay.links_max; NULL: there is none. */
struct proxy_record *gw_jfile_links(const struct gw_app *app);
void gw_jfile_alive(const struct gw_app *app); /* called once a second */
/*
 * Called once a second with gw_tunnels_told(). If the journal was not whole at the start, it is
 * whole for the next process only after every far gateway has told this one of what may be lost.
 */
void gw_jfile_told(const struct gw_app *app, bool all);
void gw_jfile_close(struct gw_app *app); /* called after the workers ended; the file stays */

/* datapath/jfile.c: the journal's directory, open; -1: there is none. Its owner is this process,
 * alone. */
int gw_jfile_dir(const struct gw_app *app);

/* datapath/notes.c: the directory of connections that the workers share, if `gateway.steering` asks
 * for one. Call new before the workers, free after them. */
RWY_MUST_CHECK int gw_directory_new(struct gw_app *app);
void gw_directory_free(struct gw_app *app);

/* datapath/standby.c: what the workers of one of a pair share, if there are several. Call new
 * before the workers, free after them. */
RWY_MUST_CHECK int gw_board_new(struct gw_app *app);
void gw_board_free(struct gw_app *app);

/* control/recorder_log.c: logs what came before connections failed; called once a second. */
void gw_recorder_log(struct gw_app *app);

/* datapath/recorder.c: the memory of the flight recorders, which outlives the process. Call open
 * after gw_jfile_open. It keeps what the last process left; without the file the recorders' memory
 * is the engines' own. */
void gw_recorder_open(struct gw_app *app);
void gw_recorder_region(const struct gw_app *app, unsigned worker, struct eng_cfg *out);
void gw_recorder_alive(const struct gw_app *app); /* called once a second */
void gw_recorder_close(struct gw_app *app);       /* after the workers ended; the file stays */

/* control/telemetry.c */
void gw_telemetry_start(struct gw_app *app);

#endif
