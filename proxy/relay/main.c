/* SPDX-License-Identifier: Apache-2.0 */
/* roceway-proxy: the gateway's program with a relay's edge in front of its engine. */
#include "gateway/program.h"

int main(int argc, char **argv)
{
	return gw_program_main(&(struct gw_program){.name = "roceway-proxy", .relay = true}, argc, argv);
}
