/* SPDX-License-Identifier: Apache-2.0
 * The emulator's counters, as JSON, as a table and as one line.
 */
#ifndef WANEM_STATS_H
#define WANEM_STATS_H

#include "tools/wanem/run.h"

/* Prints the statistics as one line of JSON. */
void wanem_stats_json(FILE *f, struct wanem *w, uint64_t now);
void wanem_stats_text(FILE *f, struct wanem *w, uint64_t now);

/* Prints "wanem: a-to-b in 10 out 9 lost 1; b-to-a ...". */
void wanem_stats_line(FILE *f, struct wanem *w);

#endif
