/* SPDX-License-Identifier: Apache-2.0
 * Command line of wanem, the WAN link emulator. What it does is in run.c.
 */
#include "tools/wanem/ctl.h"
#include "tools/wanem/pcap.h"
#include "tools/wanem/stats.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define DEFAULT_HOLD 65536
#define MAX_HOLD     (1 << 24)
#define MAX_KEYS     32
#define RT_PRIORITY  10

enum opt {
	OPT_A = 1,
	OPT_B,
	OPT_A_TO_B,
	OPT_B_TO_A,
	OPT_SEED,
	OPT_CONTROL,
	OPT_PCAP,
	OPT_STATS_INTERVAL,
	OPT_HOLD,
	OPT_COALESCE,
	OPT_RT,
	OPT_VERSION,
	OPT_HELP,
	OPT_KEY = 256, /* + index into wanem_set_keys() */
};

static const struct option own_options[] = {
    {"a", required_argument, NULL, OPT_A},
    {"b", required_argument, NULL, OPT_B},
    {"a-to-b", required_argument, NULL, OPT_A_TO_B},
    {"b-to-a", required_argument, NULL, OPT_B_TO_A},
    {"seed", required_argument, NULL, OPT_SEED},
    {"control", required_argument, NULL, OPT_CONTROL},
    {"pcap", required_argument, NULL, OPT_PCAP},
    {"stats-interval", required_argument, NULL, OPT_STATS_INTERVAL},
    {"hold", required_argument, NULL, OPT_HOLD},
    {"coalesce", required_argument, NULL, OPT_COALESCE},
    {"rt", no_argument, NULL, OPT_RT},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
};

#define OWN_OPTIONS (sizeof(own_options) / sizeof(own_options[0]))

struct args {
	const char *ifname[2], *list[2]; /* a, b; a-to-b, b-to-a */
	const char *control, *pcap;
	struct wanem_cfg cfg; /* both directions, before their lists */
	uint64_t seed, stats_interval, coalesce;
	uint32_t hold;
	bool is_rt;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = 1;
}

static void help(void)
{
	puts("usage: wanem --a IF0 --b IF1 [options]\n"
	     "       wanem ctl SOCKET set|outage|stats|help ...\n\n"
	     "Joins two Ethernet interfaces by an emulated WAN link. A frame that enters one leaves "
	     "the other, later or never.\n\n"
	     "Settings, for both directions as --KEY VALUE, for one as --a-to-b 'KEY=VALUE,...' (or "
	     "--b-to-a):");
	for (const struct wanem_key *k = wanem_set_keys(); k->name; k++)
		printf("  --%-14s %-16s %s\n", k->name, k->arg, k->help);
	puts("\nOptions:\n"
	     "  --seed N                         the same seed makes the same decisions [1]\n"
	     "  --control SOCKET                 take commands on this Unix socket\n"
	     "  --pcap FILE                      write the frames that leave, both directions\n"
	     "  --stats-interval TIME            a line on stderr that often\n"
	     "  --hold N                         frames held in a direction at most [65536]\n"
	     "  --coalesce TIME                  gather frames that long before waking up: saves CPU, frames "
	     "leave late by\n"
	     "                                   up to as much; not done if the delay is below twice that\n"
	     "                                   [auto: 1/20 of the delay, at most 200us]\n"
	     "  --rt                             real-time priority, for exact times on a busy machine\n"
	     "  -V, --version; -h, --help\n\n"
	     "Units: ns us ms s; bit kbit Mbit Gbit; SHARE is 1% or 0.01. TIME 0 needs no unit.\n"
	     "While it runs: wanem ctl SOCKET set both loss=1% delay=10ms; set a-to-b rate=1Gbit; outage 3s; "
	     "stats --json");
}

__attribute__((format(printf, 1, 2))) static int usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("wanem: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	return 2;
}

static int whole(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	if (errno || *end || *text < '0' || *text > '9' || *out < min || *out > max)
		return usage(
		    "--%s: '%.40s' is not a whole number from %" PRIu64 " to %" PRIu64, name, text, min, max);
	return 0;
}

static int duration(const char *name, const char *text, uint64_t *out)
{
	struct wanem_err err;

	if (!wanem_set_time(text, UINT64_C(3600000000000), out, &err))
		return 0;
	return usage("--%s: %s", name, err.text);
}

static int take_key(struct args *a, int key, const char *value)
{
	struct wanem_err err;

	if (!wanem_set_key(&a->cfg, wanem_set_keys()[key].name, value, &err))
		return 0;
	return usage("--%s", err.text);
}

/* Applies one option to args. 0; 2 after a message; -1: exit with 0. */
static int option_set(struct args *a, int opt, const char *value)
{
	uint64_t v;
	int rc;

	if (opt >= OPT_KEY)
		return take_key(a, opt - OPT_KEY, value);
	switch ((enum opt)opt) {
	case OPT_A:
	case OPT_B:
		a->ifname[opt - OPT_A] = value;
		return 0;
	case OPT_A_TO_B:
	case OPT_B_TO_A:
		a->list[opt - OPT_A_TO_B] = value;
		return 0;
	case OPT_SEED:
		return whole("seed", value, 0, UINT64_MAX, &a->seed);
	case OPT_CONTROL:
		a->control = value;
		return 0;
	case OPT_PCAP:
		a->pcap = value;
		return 0;
	case OPT_STATS_INTERVAL:
		return duration("stats-interval", value, &a->stats_interval);
	case OPT_HOLD:
		rc = whole("hold", value, 1, MAX_HOLD, &v);
		a->hold = (uint32_t)v;
		return rc;
	case OPT_COALESCE:
		return duration("coalesce", value, &a->coalesce);
	case OPT_RT:
		a->is_rt = true;
		return 0;
	case OPT_VERSION:
		puts("wanem " RWY_VERSION);
		return -1;
	case OPT_HELP:
		help();
		return -1;
	case OPT_KEY:
		break;
	}
	return usage("wrong option (see --help)");
}

static int parse(struct args *a, int argc, char **argv)
{
	struct option options[OWN_OPTIONS + MAX_KEYS + 1] = {0};
	size_t n = OWN_OPTIONS;
	int opt, rc;

	*a = (struct args){.seed = 1, .hold = DEFAULT_HOLD, .coalesce = WANEM_COALESCE_AUTO};
	wanem_cfg_default(&a->cfg);
	memcpy(options, own_options, sizeof(own_options));
	for (int k = 0; wanem_set_keys()[k].name; k++)
		options[n++] =
		    (struct option){wanem_set_keys()[k].name, required_argument, NULL, OPT_KEY + k};
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":hV", options, NULL)) != -1) {
		if (opt == ':')
			return usage("%s needs a value (see --help)", argv[optind - 1]);
		if (opt == '?')
			return usage("unknown option %s (see --help)", argv[optind - 1]);
		rc = option_set(a, opt == 'h' ? OPT_HELP : opt == 'V' ? OPT_VERSION : opt, optarg);
		if (rc)
			return rc;
	}
	if (optind < argc)
		return usage("unexpected argument '%.40s' (see --help)", argv[optind]);
	if (!a->ifname[0] || !a->ifname[1])
		return usage("--a and --b are needed: the two interfaces to join");
	if (!strcmp(a->ifname[0], a->ifname[1]))
		return usage("--a and --b name the same interface");
	return 0;
}

/* Fills the settings of each direction and checks them. */
static int configure(const struct args *a, struct wanem *w)
{
	const char *wrong = wanem_cfg_check(&a->cfg);
	struct wanem_err err;

	for (int d = 0; d < 2; d++) {
		struct wanem_cfg cfg = a->cfg;

		if (a->list[d] && wanem_set_list(&cfg, a->list[d], &err))
			return usage("--%s: %s", w->dir[d].name, err.text);
		if (!a->list[d] && wrong)
			return usage("%s", wrong);
		wanem_link_init(&w->dir[d].link, a->seed * 2 + (uint64_t)d, &cfg);
	}
	return 0;
}

static int open_all(const struct args *a, struct wanem *w)
{
	struct wanem_err err;

	for (int i = 0; i < 2; i++) {
		if (wanem_netif_open(&w->nif[i], a->ifname[i], &err))
			goto fail;
		snprintf(err.text, sizeof(err.text), "no memory for %u frames (--hold)", a->hold);
		if (wanem_line_init(&w->dir[i].line, a->hold))
			goto fail;
	}
	if (a->pcap && !(w->pcap = wanem_pcap_open(a->pcap))) {
		snprintf(err.text, sizeof(err.text), "%.100s: %s", a->pcap, strerror(errno));
		goto fail;
	}
	if (a->control && wanem_ctl_open(&w->ctl, a->control, &err))
		goto fail;
	return 0;
fail:
	fprintf(stderr, "wanem: %s\n", err.text);
	return 1;
}

static void close_all(struct wanem *w)
{
	wanem_ctl_close(w->ctl);
	w->pcap_failed |= !wanem_pcap_check(&w->pcap, true);
	for (int i = 0; i < 2; i++) {
		wanem_netif_close(&w->nif[i]);
		wanem_line_free(&w->dir[i].line);
		wanem_link_free(&w->dir[i].link);
	}
}

static int link_run(const struct args *a, struct wanem *w, const sigset_t *mask)
{
	const struct sched_param prio = {.sched_priority = RT_PRIORITY};
	struct wanem_err err;
	int rc = 0;

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	if (a->is_rt && sched_setscheduler(0, SCHED_FIFO, &prio))
		perror("wanem: --rt");
	fprintf(stderr, "wanem: ready, %s <-> %s\n", a->ifname[0], a->ifname[1]);
	if (wanem_run(w, &stop, mask, &err)) {
		fprintf(stderr, "wanem: %s\n", err.text);
		rc = 1;
	}
	wanem_stats_line(stderr, w);
	return rc;
}

/* Signals that end the program are accepted only while the loop waits, with the mask returned
 * here. */
static void catch_signals(sigset_t *mask)
{
	struct sigaction act = {.sa_handler = on_signal};
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	sigprocmask(SIG_BLOCK, &ours, mask);
	sigdelset(mask, SIGTERM);
	sigdelset(mask, SIGINT);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
	static struct wanem w = {.dir = {{.name = "a-to-b"}, {.name = "b-to-a"}},
	    .nif = {{.rx_fd = -1, .tx_fd = -1}, {.rx_fd = -1, .tx_fd = -1}}};
	struct args a;
	sigset_t mask;
	int rc;

	if (argc > 1 && !strcmp(argv[1], "ctl"))
		return wanem_ctl_client(argc - 2, argv + 2);
	rc = parse(&a, argc, argv);
	if (rc)
		return rc < 0 ? 0 : rc;
	for (int i = 0; i < 2; i++) {
		w.dir[i].from = &w.nif[i];
		w.dir[i].to = &w.nif[!i];
	}
	w.seed = a.seed;
	w.coalesce = a.coalesce;
	w.stats_interval = a.stats_interval;
	rc = configure(&a, &w);
	if (!rc) {
		catch_signals(&mask);
		rc = open_all(&a, &w);
		if (!rc)
			rc = link_run(&a, &w, &mask);
	}
	close_all(&w);
	return rc ? rc : w.pcap_failed;
}
