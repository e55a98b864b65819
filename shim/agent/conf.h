/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of roceway-host-agent, conf/samples/host-agent.conf: lines of a word and its values.
 * A # begins a comment.
 */
#ifndef SHIM_AGENT_CONF_H
#define SHIM_AGENT_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"

#define HAGENT_URLS 8
#define HAGENT_NAME 32  /* bytes with the 0 */
#define HAGENT_PATH 256 /* the same */

struct hagent_conf {
	char url[HAGENT_URLS][HAGENT_PATH]; /* of controllers: https://HOST:PORT */
	unsigned urls;                      /* 0: the policy is a file */
	char ca[HAGENT_PATH], certificate[HAGENT_PATH], key[HAGENT_PATH];
	char name[HAGENT_NAME], site[HAGENT_NAME];
	char policy[HAGENT_PATH]; /* file of the operator; "": a controller says it */
	char write[HAGENT_PATH];  /* the file for programs */
	uint32_t probe_ms;        /* between two questions to a relay: 50..60000 */
	bool drop;                /* without a controller programs go by the operator's own file */
};

/* RWY_EINVAL: err is one line, which names the file and the line in it. */
RWY_MUST_CHECK int hagent_conf_load(struct hagent_conf *c, const char *path, char *err, size_t size);

#endif
