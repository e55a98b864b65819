/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a run, as text, JSON or CSV. */
#ifndef SIM_DC_SHOW_H
#define SIM_DC_SHOW_H

#include "tests/sim/dc/work.h"

enum show_form { SHOW_TEXT, SHOW_JSON, SHOW_CSV, SHOW_CSV_HEAD, SHOW_HASH };

void show(FILE *f, struct work *w, double wall_s, enum show_form form);

#endif
