/* SPDX-License-Identifier: Apache-2.0 */
/* roceway analyze: its three ways of telling. */
#ifndef TOOLS_ROCEWAY_ANALYZE_H
#define TOOLS_ROCEWAY_ANALYZE_H

#include <jansson.h>
#include <stdio.h>

#include "tools/analyze/analyze.h"

#define ANALYZE_NAME_MAX 128

/* "10.1.0.2 > 10.2.0.3 0x11", with the VNI when there is one. */
void analyze_name(const struct an_flow *f, char out[ANALYZE_NAME_MAX]);
/* Bytes a second from its first to its last packet; 0: all in one moment. */
double analyze_rate(const struct an_flow *f);

/* Everything, for --json. A new reference. */
json_t *analyze_json(const struct an_totals *t, const struct an_flow *const *flow, size_t flows);
/* One page without anything from elsewhere. 0, or -1: out could not be written. */
int analyze_html(
    FILE *out, const char *title, const struct an_totals *t, const struct an_flow *const *flow, size_t flows);

#endif
