/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program behind roceway-gateway and roceway-proxy: they differ in their name, and in whether
 * the file must have `relay`.
 */
#ifndef GATEWAY_PROGRAM_H
#define GATEWAY_PROGRAM_H

#include <stdbool.h>

struct gw_program {
	const char *name;
	bool relay; /* the file must have `relay`; else it must not */
};

/* The whole program: reads the command line, runs until a signal. Returns the exit status. */
int gw_program_main(const struct gw_program *p, int argc, char **argv);

#endif
