/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the capture files of a command line, with progress on a terminal. */
#ifndef TOOLS_ROCEWAY_READ_H
#define TOOLS_ROCEWAY_READ_H

#include <stdbool.h>

struct an;
struct cli;

/*
 * Reads all files of cli into a; says which of them ends in the middle of a packet. False: says why
 * not. too_large: a flag that the reader of packets sets when it ends the reading for that; NULL:
 * it has none.
 */
bool cli_read_captures(const struct cli *cli, struct an *a, const bool *too_large);

#endif
