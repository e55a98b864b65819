/* SPDX-License-Identifier: Apache-2.0 */
/* The prepared captures that were written after the analysis. */
#include "tests/lib/cap_world.h"

const struct cap_scene cap_held[] = {{0}};
const unsigned cap_held_n = 0;
