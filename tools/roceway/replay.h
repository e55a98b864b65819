/* SPDX-License-Identifier: Apache-2.0 */
/* roceway replay: its parts. Each returns an exit code. */
#ifndef TOOLS_ROCEWAY_REPLAY_H
#define TOOLS_ROCEWAY_REPLAY_H

#include "tools/replay/host.h"
#include "tools/roceway/roceway.h"

/* Text of an address, in one of two static buffers in turn. */
const char *replay_ip(const struct rwy_ip *ip);
/* "10.1.0.2:0x11 > 10.2.0.3:0x12", the requests of a side. */
#define REPLAY_NAME_MAX 128
void replay_name(const struct rp_conn *c, unsigned side, char out[REPLAY_NAME_MAX]);

/* An IPv4 or IPv6 address. False, after cli_error(). */
bool replay_ip_read(const char *opt, const char *text, struct rwy_ip *out);
/* --away, into the schedule. False, after cli_error(). */
bool replay_away(const struct cli *cli, struct rp_schedule *s);
/* --speed; 1 if it is not given. False, after cli_error(). */
bool replay_speed(const struct cli *cli, double *out);

/* --sim: between two simulated gateways. */
int replay_sim(const struct cli *cli, const struct rp_schedule *s);
/* On a LAN. */
int replay_live(const struct cli *cli, const struct rp_schedule *s);

/* "as captured", or what went wrong. Static text. */
const char *replay_result(const struct rp_host *h);
/* The time from the first to the last post of a host, beside the capture's; 0: fewer than two. */
double replay_stretch(const struct rp_host *h);
/* "-" if there is none. */
const char *replay_quantile(const struct an_hist *h, double q);
/* Prints what differs; nothing if nothing does. */
void replay_differences(const struct rp_conn *c, unsigned side, const struct rp_host *h);
/* New references. */
json_t *replay_hist_json(const struct an_hist *h);
json_t *replay_side_json(const struct rp_conn *c, unsigned side, const struct rp_host *h);

/* Prints what the schedule lacks, a line each, on standard error; and makes its JSON. */
void replay_notes(const struct rp_schedule *s);
json_t *replay_schedule_json(const struct rp_schedule *s);

#endif
