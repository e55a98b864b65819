/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/program.h"

int main(int argc, char **argv)
{
	return gw_program_main(&(struct gw_program){.name = "roceway-gateway"}, argc, argv);
}
