/* SPDX-License-Identifier: Apache-2.0 */
/* roceway replay: a capture played again. It asks no gateway. */
#include "tools/roceway/replay.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/analyze/file.h"
#include "tools/roceway/read.h"

static const struct cli_opt opts[] = {
    {"sim", NULL, "between two simulated gateways, in virtual time"},
    {"as", "IP", "the host of the capture that is played (--sim: the host of site a)"},
    {"with", "IP", "on a LAN: its peer in the capture, if it has several"},
    {"to", "IP", "the peer on the LAN, or behind gateways"},
    {"interface", "NAME", "the Ethernet interface to play on"},
    {"address", "IP", "own address there (default: the interface's)"},
    {"via", "IP", "the router to the peer (default: by the kernel's routes)"},
    {"pair", "HOST:PORT", "the replay that plays the peer; :PORT waits for it"},
    {"yes-this-host", NULL, "--to is no laboratory's address, and it is meant"},
    {"away", "LIST", "IP=TIME,...: round trip from where the capture was taken to this host"},
    {"speed", "X", "gaps between messages are divided by X (default 1; 0: none)"},
    {"rtt", "TIME", "--sim: round trip of the WAN (default 20ms)"},
    {"loss", "SHARE", "--sim: loss of the WAN, both ways (default 0)"},
    {"rate", "RATE", "--sim: rate of the WAN (default 10Gbit)"},
    {"wan", "LIST", "--sim: more of wanem's words, such as jitter=1ms,reorder=0.1%"},
    {"fault", "LIST", "--sim: outages, such as outage@2s+500ms,a-b@3s+1s"},
    {"seed", "N", "--sim: seed of all that is random (default 1)"},
    {"ack-mode", "near|far|end|causal", "--sim: the gateways' ack mode (default near)"},
    {NULL, NULL, NULL},
};

/* --- reading --------------------------------------------------------------------------------- */

/* Says why a schedule has nothing to play; true: it has. */
static bool is_playable(const char *path, const struct rp_schedule *s)
{
	const struct an_totals *t = an_totals(s->an);

	if (rp_schedule_messages(s))
		return true;
	if (!t->packets)
		cli_error("%s: has no packets", path);
	else if (!t->roce)
		cli_error("%s: none of its %llu packets is RoCEv2, or the snap length cut their headers",
		    path, (unsigned long long)t->packets);
	else if (s->headless)
		cli_error("%s: the snap length is shorter than the packets' headers", path);
	else if (s->unpaired)
		cli_error("%s: has one direction of its connections only", path);
	else
		cli_error("%s: has no whole message of an RC connection", path);
	return false;
}

static int load(const struct cli *cli, struct rp_schedule *s)
{
	if (!cli_read_captures(cli, s->an, &s->too_large))
		return EXIT_ERROR;
	if (rp_schedule_end(s) != 0) {
		cli_error("not enough memory");
		return EXIT_ERROR;
	}
	return is_playable(cli->word[0], s) ? EXIT_OK : EXIT_ERROR;
}

/* False: an option is of the other kind of replay, and would do nothing. It says which. */
static bool options_fit(const struct cli *cli)
{
	static const char *const sim[] = {"rtt", "loss", "rate", "wan", "fault", "seed", "ack-mode", NULL};
	static const char *const live[] = {
	    "with", "to", "interface", "address", "via", "pair", "yes-this-host", NULL};
	const bool is_sim = cli_value(cli, "sim");

	for (const char *const *o = is_sim ? live : sim; *o; o++)
		if (cli_value(cli, *o)) {
			cli_error(
			    "--%s: goes %s --sim", *o, is_sim ? "not together with" : "only together with");
			return false;
		}
	return true;
}

static int run_replay(const struct cli *cli)
{
	struct rp_schedule *s;
	int rc;

	if (!options_fit(cli))
		return EXIT_USAGE;
	if (!cli->words || cli->words > AN_FILES_MAX) {
		cli_error("replay: name 1 to %d capture files", AN_FILES_MAX);
		return EXIT_USAGE;
	}
	s = rp_schedule_new();
	if (!s) {
		cli_error("not enough memory");
		return EXIT_ERROR;
	}
	rc = load(cli, s);
	if (rc == EXIT_OK) {
		replay_notes(s);
		rc = !replay_away(cli, s)    ? EXIT_USAGE
		     : cli_value(cli, "sim") ? replay_sim(cli, s)
		                             : replay_live(cli, s);
	}
	rp_schedule_free(s);
	return rc;
}

const struct cli_cmd cmd_replay = {.name = "replay",
    .operand = "FILE",
    .no_socket = true,
    .many = true,
    .text = "play the hosts of a capture again (pcap, pcapng)",
    .more =
        "Hosts, not a tape: what a host of the capture posted is posted again, with the same gaps and\n"
        "after the same messages of its peer; real RC state decides what is sent again and answered.\n"
        "Several files are read as one, in the order of time; - is standard input.\n"
        "\n"
        "On a LAN (root, or CAP_NET_RAW) one host of the capture is played to another replay, which plays\n"
        "its peer, through whatever is between them: QPNs, PSNs, addresses and ICRC are new, and both\n"
        "say what differs from the capture and how exact the times were.\n"
        "\n"
        "--sim puts the capture's packets, as they are, between two gateways in virtual time and compares\n"
        "what arrives with the capture. The same file, options and seed give the same run: its hash says\n"
        "so. The exit status is 1 if something differs or does not complete.\n",
    .opts = opts,
    .run = run_replay};
