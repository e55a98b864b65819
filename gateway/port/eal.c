/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DPDK's environment: its arguments are made from the configuration, and its log lines go into our
 * log. Lcore 0 is the control thread, on any CPU; lcore i + 1 is worker i, pinned to the i-th CPU
 * of eal.cores if given, else on any CPU of the process.
 */
#include <ctype.h>
#include <fcntl.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/gw.h"
#include "gateway/port/device.h"
#include "gateway/setup.h"

#define ARGS_MAX (CONF_EAL_ARGS_MAX + 2 * CONF_PORTS_MAX + 16)

/* --- log ------------------------------------------------------------------------------------- */

/* DPDK logs much at start: its notices count as our debug lines. */
static int level_of(int dpdk)
{
	switch (dpdk) {
	case RTE_LOG_EMERG:
	case RTE_LOG_ALERT:
	case RTE_LOG_CRIT:
	case RTE_LOG_ERR:
		return GW_LOG_ERROR;
	case RTE_LOG_WARNING:
		return GW_LOG_WARNING;
	}
	return GW_LOG_DEBUG;
}

static ssize_t log_write(void *cookie, const char *buf, size_t n)
{
	static const char legacy[] =
	    "TELEMETRY: No legacy callbacks"; /* logged at every start, about an unused socket */
	int len = (int)n, level = level_of(rte_log_cur_msg_loglevel());

	if (!strncmp(buf, legacy, sizeof(legacy) - 1))
		level = GW_LOG_DEBUG;
	while (len && isspace((unsigned char)buf[len - 1]))
		len--;
	if (len)
		gw_log(level, "dpdk", "%.*s", len, buf);
	return (ssize_t)n;
}

static void log_redirect(void)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = log_write});

	if (!f)
		return;
	setvbuf(f, NULL, _IOLBF, 0);
	rte_openlog_stream(f);
}

/* --- CPUs ------------------------------------------------------------------------------------ */

/* Parses a list like "1-2,5" into a set. False: malformed. */
static bool cpu_list(const char *s, cpu_set_t *set, unsigned *order, unsigned *n)
{
	CPU_ZERO(set);
	*n = 0;
	while (*s) {
		char *end;
		unsigned long a = strtoul(s, &end, 10), b = a;

		if (end == s)
			return false;
		if (*end == '-') {
			s = end + 1;
			b = strtoul(s, &end, 10);
			if (end == s)
				return false;
		}
		if (b < a || b >= CPU_SETSIZE)
			return false;
		for (; a <= b && *n < CPU_SETSIZE; a++) {
			CPU_SET(a, set);
			order[(*n)++] = (unsigned)a;
		}
		if (*end && *end != ',')
			return false;
		s = *end ? end + 1 : end;
	}
	return *n > 0;
}

static void all_cpus(char *out, size_t size)
{
	cpu_set_t set;
	size_t n = 0;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE && n + 8 < size; i++)
		if (CPU_ISSET(i, &set))
			n += (size_t)snprintf(out + n, size - n, "%s%d", n ? "," : "", i);
}

/* Workers that never sleep and share a CPU wait for each other for milliseconds. */
static void warn_crowded(const struct conf *c)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (!c->cores[0] && c->polling == CONF_POLL_BUSY && !sched_getaffinity(0, sizeof(set), &set) &&
	    (unsigned)CPU_COUNT(&set) < c->workers)
		gw_log(GW_LOG_WARNING, "config", "polling: busy with %u workers on %d CPUs: they take turns",
		    c->workers, CPU_COUNT(&set));
}

/* Writes "0@(0,1),1@2,...". */
static int lcores(const struct conf *c, char *out, size_t size)
{
	char all[1024];
	cpu_set_t set;
	unsigned order[CPU_SETSIZE], cpus = 0;
	size_t n;

	all_cpus(all, sizeof(all));
	warn_crowded(c);
	if (c->cores[0]) {
		if (!cpu_list(c->cores, &set, order, &cpus)) {
			gw_log(GW_LOG_ERROR, "config",
			    "eal.cores: expected a list like \"1-2,5\", found `%s`", c->cores);
			return RWY_EINVAL;
		}
		if (cpus < c->workers) {
			gw_log(GW_LOG_ERROR, "config", "eal.cores names %u CPUs for %u workers", cpus,
			    c->workers);
			return RWY_EINVAL;
		}
	}
	n = (size_t)snprintf(out, size, "0@(%s)", all);
	for (unsigned i = 0; i < c->workers && n < size; i++)
		n += cpus ? (size_t)snprintf(out + n, size - n, ",%u@%u", i + 1, order[i])
		          : (size_t)snprintf(out + n, size - n, ",%u@(%s)", i + 1, all);
	return n < size ? 0 : RWY_EINVAL;
}

unsigned gw_eal_lcore(unsigned worker)
{
	return worker + 1;
}

/* --- arguments ------------------------------------------------------------------------------- */

static bool user_gave(const struct conf *c, const char *const *names)
{
	for (unsigned i = 0; i < c->eal_argc; i++)
		for (const char *const *n = names; *n; n++)
			if (!strcmp(c->eal_args[i], *n) ||
			    (!strncmp(*n, "--", 2) && !strncmp(c->eal_args[i], *n, strlen(*n)) &&
			        c->eal_args[i][strlen(*n)] == '='))
				return true;
	return false;
}

/*
 * The user's arguments. DPDK 22.11 refuses --no-huge together with --in-memory (ordinary memory is
 * "legacy" memory to it). The pair means: no files in hugetlbfs and none in the run directory,
 * which is --no-huge --no-shconf.
 */
static int user_args(const struct conf *c, char **argv)
{
	static const char *const no_huge[] = {"--no-huge", NULL}, *const prefix[] = {"--file-prefix", NULL};
	static char name[CONF_NAME + 32];
	bool huge = !user_gave(c, no_huge);
	int n = 0;

	/* directory of the telemetry socket; two gateways on one machine differ */
	if (!user_gave(c, prefix)) {
		snprintf(name, sizeof(name), "--file-prefix=rwy-%s", c->name);
		argv[n++] = name;
	}
	for (unsigned i = 0; i < c->eal_argc; i++)
		argv[n++] =
		    !huge && !strcmp(c->eal_args[i], "--in-memory") ? (char *)"--no-shconf" : c->eal_args[i];
	return n;
}

/* DPDK prints its whole usage on standard output when it rejects an argument; its log line is
 * enough. */
static int eal_quiet(int argc, char **argv)
{
	int out = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC), rc;

	fflush(stdout);
	if (out >= 0 && null >= 0)
		dup2(null, STDOUT_FILENO);
	rc = rte_eal_init(argc, argv);
	fflush(stdout);
	if (out >= 0 && null >= 0)
		dup2(out, STDOUT_FILENO);
	if (out >= 0)
		close(out);
	if (null >= 0)
		close(null);
	return rc;
}

/* DPDK leaves its run directory behind. An exit handler removes its telemetry socket, so the
 * directory is removed in a handler registered earlier, which runs later. */
static char run_dir[256];

static void run_dir_remove(void)
{
	if (run_dir[0])
		rmdir(run_dir);
}

int gw_eal_init(const struct conf *c)
{
	static const char *const core_flags[] = {"-l", "-c", "--lcores", NULL};
	static const char *const pci_flags[] = {"-a", "-b", "--allow", "--block", "--no-pci", NULL};
	static char cores[4096], dev[CONF_PORTS_MAX][512], *argv[ARGS_MAX];
	int argc = 0, rc;
	bool pci = false;

	if (user_gave(c, core_flags)) {
		gw_log(GW_LOG_ERROR, "config",
		    "eal.args must not place threads (-l, -c, --lcores): use eal.cores and workers");
		return RWY_EINVAL;
	}
	rc = lcores(c, cores, sizeof(cores));
	if (rc)
		return rc;
	argv[argc++] = (char *)"roceway-gateway";
	argv[argc++] = (char *)"--lcores";
	argv[argc++] = cores;
	for (unsigned i = 0; i < c->ports; i++) {
		bool v = gw_device_is_vdev(c->port[i].device);

		gw_device_string(&c->port[i], dev[i], sizeof(dev[i]));
		argv[argc++] = (char *)(v ? "--vdev" : "-a");
		argv[argc++] = dev[i];
		pci = pci || !v;
	}
	if (!pci && !user_gave(c, pci_flags))
		argv[argc++] = (char *)"--no-pci";
	argc += user_args(c, argv + argc);
	log_redirect();
	atexit(run_dir_remove);
	if (eal_quiet(argc, argv) < 0) {
		/* rte_errno has "no such device" for one that could not be opened, too. */
		gw_log(GW_LOG_ERROR, "dpdk", "DPDK did not start: the reason is above (%s)",
		    rte_strerror(rte_errno));
		return RWY_EINVAL;
	}
	if (rte_eal_get_runtime_dir())
		snprintf(run_dir, sizeof(run_dir), "%s", rte_eal_get_runtime_dir());
	return 0;
}

void gw_eal_cleanup(void)
{
	rte_eal_cleanup();
}
