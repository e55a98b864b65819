/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roceway doctor: what of this machine is in a gateway's or an RDMA host's way, and what to do
 * about it. It only reads. The checks are in doctor_gateway.c and doctor_host.c.
 */
#include <sys/stat.h>

#include "tools/roceway/doctor.h"

static const struct cli_opt doctor_opts[] = {
    {"host", NULL, "check an RDMA host instead of a gateway's machine"},
    {"root", "PATH", "look at copies of /sys and /proc: at sys/ and proc/ below this folder"},
    {NULL, NULL, NULL},
};

static void print_findings(const json_t *found)
{
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)found, i, o)
	{
		char head[64];

		snprintf(head, sizeof(head), "%-4s  %-21s", js(o, "verdict"), js(o, "check"));
		print_fact(head, 28, js(o, "finding"));
		if (*js(o, "do"))
			print_fact("", 28, js(o, "do"));
	}
}

/* Both folders must be there: all findings about an empty one would be wrong. */
static bool root_good(const char *root)
{
	static const char *const below[] = {"sys", "proc"};

	for (unsigned i = 0; i < 2; i++) {
		char path[4096];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", root, below[i]);
		if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
			cli_error("--root %s: there is no folder %s", root, path);
			return false;
		}
	}
	return true;
}

static int run_doctor(const struct cli *cli)
{
	const char *root = cli_value(cli, "root");
	struct doctor d = {.root = root ? root : "", .found = json_array()};
	json_t *all;

	if (root && !root_good(root)) {
		json_decref(d.found);
		return EXIT_USAGE;
	}
	(cli_value(cli, "host") ? doctor_host : doctor_gateway)(&d);
	if (cli->json) {
		all = json_pack("{s:b, s:O}", "good", !d.bad, "findings", d.found);
		print_json(all);
		json_decref(all);
	} else {
		print_findings(d.found);
	}
	json_decref(d.found);
	return d.bad ? EXIT_ERROR : EXIT_OK;
}

const struct cli_cmd cmd_doctor = {.name = "doctor",
    .no_socket = true,
    .text = "checks this machine, for a gateway or (--host) for RDMA over distance",
    .more = "Each finding is ok, a note, or bad, with what to do about it. It changes nothing and needs no\n"
            "running gateway. Exits with 1 if a finding is bad.\n",
    .opts = doctor_opts,
    .run = run_doctor};
