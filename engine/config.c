/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults of struct eng_cfg. */
#include "engine/engine.h"

#include <string.h>

const char *eng_ack_mode_name(enum eng_ack_mode m)
{
	switch (m) {
	case ENG_ACK_NEAR:
		return "near";
	case ENG_ACK_FAR:
		return "far";
	case ENG_ACK_END:
		return "end";
	case ENG_ACK_CAUSAL:
		return "causal";
	case ENG_ACK_SITE:
		return "site";
	}
	rwy_unreachable();
}

void eng_cfg_default(struct eng_cfg *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->ack_mode = ENG_ACK_NEAR;
	cfg->conns_max = 100000;
	cfg->half_open_max = 1024;
	cfg->idle_expiry = 600 * RWY_SEC;
	cfg->host_window = 128;
	cfg->timers = (struct eng_timers){
	    .timeout_min = 50 * RWY_MS, .timeout_max = RWY_SEC, .retry = 7, .rnr_retry = 7};
	cfg->causal_beat = 20 * RWY_US;
	cfg->custody_conn = 32u << 20;
	cfg->custody_total = 256u << 20;
	cfg->buf_cost = 256;
	cfg->read_cache_conn = 4u << 20;
	cfg->read_cache_total = 64u << 20;
	cfg->np_min = 2u << 20;
	cfg->np_max = 16u << 20;
	cfg->np_percent = 10;
	cfg->rp = true;
	cfg->e2e = true;
	cfg->probe_timeout = 200 * RWY_MS;
}
