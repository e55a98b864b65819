/* SPDX-License-Identifier: Apache-2.0 */
/* Inside roceway links: what links.c and links_segments.c share. */
#ifndef TOOLS_ROCEWAY_LINKS_H
#define TOOLS_ROCEWAY_LINKS_H

#include "tools/roceway/roceway.h"

/* Prints the segments of each link of this relay, after a second. Returns an exit code. */
int links_segments(const struct cli *cli);

#endif
