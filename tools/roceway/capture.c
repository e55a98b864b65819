/* SPDX-License-Identifier: Apache-2.0 */
/* roceway capture: packets of a running gateway into a file, or live into another program. */
#include "tools/roceway/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/http.h"
#include "rwy/err.h"

#define ANSWER_MAX 65536u
#define MIB        (UINT64_C(1) << 20)
#define TEXT_MAX   1100 /* a filter may have 1024 bytes: the gateway says so */
#define TARGET_MAX (128 + TEXT_MAX * 3)
#define KEEP_MIB   64
#define END_WAIT   3 /* seconds for the rest after an interrupt */

static const struct cli_opt capture_opts[] = {
    {"write", "FILE", "-w: the file; - is standard output, for another program"},
    {"snap", "BYTES", "-s: bytes of each packet; default: all"},
    {"count", "N", "-c: end after N packets"},
    {"seconds", "N", "end after N seconds"},
    {"rate", "N", "take at most N packets a second"},
    {"ring", "N", "keep the last N files, FILE with a number in its name, of --size each"},
    {"size", "MB", "of a file of the ring; default: 100"},
    {"trigger", "EVENTS", "write only connections with an event: nak,rnr,retransmit,error,drop"},
    {"keep", "MB", "memory for packets before an event; default: 64"},
    {"from-interface", "IF", "capture a kernel interface or an RDMA device, without a gateway"},
    {NULL, NULL, NULL},
};

static void on_signal(int sig)
{
	cap_stopped = cap_stopped ? 2 : 1;
}

struct capture {
	struct cap_limits limits;
	struct cap_file file;
	struct cap_blocks blocks;
	struct cap_trigger *trigger; /* NULL: none */
	bool failed;                 /* and told */
	bool ends;                   /* the gateway was told so */
	time_t ends_at;
	const struct cli *cli;
	/* by interface: what is missing, and up to the packet or statistics that came last */
	uint64_t lost[CAP_IFS_MAX], between[CAP_IFS_MAX];
	char filter[TEXT_MAX];
};

/* --- the stream ------------------------------------------------------------------------------- */

/* Statistics have a sum; a packet has what is missing since the one before. */
static void note_lost(struct capture *c, const uint8_t *block, size_t len)
{
	const bool packet = cap_block_type(block) == CAP_PACKET;
	size_t n;
	const uint8_t *v = cap_block_option(block, len, packet ? CAP_OPT_DROPCOUNT : CAP_OPT_IFDROP, &n);
	const uint32_t i = cap_block_interface(block);
	uint64_t lost;

	if (!v || n != 8 || i >= CAP_IFS_MAX)
		return;
	memcpy(&lost, v, 8);
	if (packet)
		lost += c->between[i];
	c->between[i] = lost;
	if (lost > c->lost[i])
		c->lost[i] = lost;
}

static bool on_block(void *ctx, const uint8_t *block, size_t len)
{
	struct capture *c = ctx;
	bool ok = true;

	switch (cap_block_type(block)) {
	case CAP_SECTION:
	case CAP_INTERFACE:
		ok = cap_file_head(&c->file, block, len);
		break;
	case CAP_PACKET:
		note_lost(c, block, len);
		if (c->trigger) {
			ok = cap_trigger_packet(c->trigger, block, len, &c->file);
			break;
		}
		ok = cap_file_add(&c->file, block, len);
		break;
	case CAP_STATISTICS:
		note_lost(c, block, len);
		ok = cap_file_add(&c->file, block, len);
		break;
	default: /* a later gateway's */
		ok = cap_file_add(&c->file, block, len);
		break;
	}
	c->failed = !ok;
	return ok;
}

static int on_data(void *ctx, const void *data, size_t len)
{
	struct capture *c = ctx;
	const int rc = cap_blocks_add(&c->blocks, data, len, on_block, c);

	if (!rc)
		return 0;
	if (!c->failed)
		cli_error(rc == RWY_ENOMEM ? "out of memory" : "the gateway's answer is no pcapng");
	c->failed = true;
	return 1;
}

/*
 * Called when all that has come is read. The first interrupt ends the capture at the
 * gateway: what workers took by then and the last statistics still come. The second one, or a
 * gateway that does not answer, ends it here.
 */
static int on_tick(void *ctx)
{
	struct capture *c = ctx;

	if (!cap_file_flush(&c->file, false)) {
		c->failed = true;
		return 1;
	}
	if (cap_stopped && !c->ends) {
		c->ends = true;
		c->ends_at = time(NULL) + END_WAIT;
		json_decref(api_send(c->cli, "DELETE", "/v1/capture", NULL, NULL));
	}
	return cap_stopped > 1 || (c->ends && time(NULL) > c->ends_at);
}

static bool on_slot(void *ctx, const uint8_t *data, size_t len)
{
	struct capture *c = ctx;
	const int rc = cap_blocks_whole(data, len, on_block, c);

	if (!rc)
		return true;
	if (!c->failed)
		cli_error("the gateway's answer is no pcapng");
	c->failed = true;
	return false;
}

static bool on_slots_tick(void *ctx)
{
	return !on_tick(ctx);
}

/* "filter: ..." with the place below it, or the gateway's error. */
static void tell_refused(const struct capture *c, const struct rwy_http_answer *a)
{
	json_t *j = json_loads(a->body, 0, NULL);
	const char *error = js(j, "error");
	const long long at = ji(j, "at");

	if (*error && json_object_get(j, "at"))
		cli_error("%s\n    %s\n    %*s^", error, c->filter, (int)at, "");
	else if (*error)
		cli_error("the gateway answers: %s", error);
	else
		cli_error("the gateway answers with HTTP status %ld", a->status);
	json_decref(j);
}

static bool stream_end(
    const struct cli *cli, const struct capture *c, enum rwy_http_fail fail, const struct rwy_http_answer *a)
{
	if (c->failed)
		return false;
	if (fail == RWY_HTTP_ENDED || (fail == RWY_HTTP_OK && a->status == 200))
		return true;
	if (a->status && a->status != 200)
		tell_refused(c, a);
	else if (a->status == 200)
		cli_error("the gateway has ended the capture");
	else
		cli_unreachable(cli, a->why, a->os_error);
	return false;
}

static void tell_done(const struct cli *cli, const struct capture *c)
{
	unsigned long long lost = c->file.added - c->file.packets; /* if the disk is full */

	for (unsigned i = 0; i < CAP_IFS_MAX; i++)
		lost += c->lost[i];
	fprintf(stderr, "%llu packets written, %llu lost", (unsigned long long)c->file.packets, lost);
	if (c->trigger)
		fprintf(stderr, ", of %u connections with an event", cap_trigger_connections(c->trigger));
	fputc('\n', stderr);
}

static void add_number(char *page, size_t size, const char *name, uint64_t v)
{
	char text[24];

	if (!v)
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	api_query(page, size, name, text);
}

static void target_make(const struct capture *c, char *url, size_t size)
{
	snprintf(url, size, "/v1/capture");
	if (*c->filter)
		api_query(url, size, "filter", c->filter);
	add_number(url, size, "snap", c->limits.snap);
	add_number(url, size, "rate", c->limits.rate);
	add_number(url, size, "count", c->limits.count);
	add_number(url, size, "seconds", c->limits.seconds);
}

/* False: the gateway does not give it in memory, or there is another reason, which an ordinary
 * answer tells. */
static bool capture_slots(const struct cli *cli, struct capture *c, const char *target, bool *ok)
{
	struct cap_slots s;
	enum cap_slots_end end;

	if (cap_slots_open(&s, cli->socket, target))
		return false;
	end = cap_slots_run(&s, on_slot, on_slots_tick, c);
	cap_slots_close(&s);
	if (end == CAP_SLOTS_GONE)
		cli_error("the gateway has ended the capture");
	if (end == CAP_SLOTS_SILENT)
		cli_error("the gateway does not answer any more");
	*ok = end != CAP_SLOTS_GONE && end != CAP_SLOTS_SILENT && !c->failed;
	return true;
}

static bool capture_stream(const struct cli *cli, struct capture *c, const char *target)
{
	static const struct rwy_http_stream_ops ops = {.data = on_data, .tick = on_tick};
	const struct rwy_http_cfg cfg = {
	    .unix_socket = cli->socket, .protocols = "http", .answer_max = ANSWER_MAX};
	char url[TARGET_MAX + 16];
	struct rwy_http_answer a;
	struct rwy_http *http;
	enum rwy_http_fail fail;
	bool ok;
	int rc;

	snprintf(url, sizeof(url), "http://gateway%s", target);
	if (rwy_http_new(&http, &cfg)) {
		cli_error("out of memory");
		return false;
	}
	fail = rwy_http_stream(http, url, CAP_SILENCE_MS, &ops, c, &rc, &a);
	ok = stream_end(cli, c, fail, &a);
	rwy_http_free(http);
	return ok;
}

static int capture_gateway(const struct cli *cli, struct capture *c)
{
	char target[TARGET_MAX];
	bool ok;

	target_make(c, target, sizeof(target));
	if (!capture_slots(cli, c, target, &ok))
		ok = capture_stream(cli, c, target);
	if (!cap_file_flush(&c->file, true))
		ok = false;
	if (c->file.head_len)
		tell_done(cli, c);
	return ok ? EXIT_OK : EXIT_ERROR;
}

/* --- options ---------------------------------------------------------------------------------- */

/* False, after cli_error(): not a number from 1 to max. */
static bool number(const struct cli *cli, const char *opt, uint64_t max, uint64_t *v)
{
	const char *text = cli_value(cli, opt);
	char *end;

	if (!text)
		return true;
	errno = 0;
	*v = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && *v && *v <= max)
		return true;
	cli_error("--%s: expected a number from 1 to %llu", opt, (unsigned long long)max);
	return false;
}

static bool join_words(const struct cli *cli, char out[TEXT_MAX])
{
	size_t used = 0;

	*out = 0;
	for (unsigned i = 0; i < cli->words; i++) {
		const int n = snprintf(out + used, TEXT_MAX - used, "%s%s", i ? " " : "", cli->word[i]);

		if (n < 0 || used + (size_t)n >= TEXT_MAX) {
			cli_error("the filter is too long");
			return false;
		}
		used += (size_t)n;
	}
	return true;
}

static bool read_options(const struct cli *cli, struct capture *c)
{
	const char *trigger = cli_value(cli, "trigger");
	uint64_t ring = 0, size = 100, keep = KEEP_MIB;

	c->file.path = cli_value(cli, "write");
	if (!c->file.path) {
		cli_error("capture: --write FILE says where to; - is standard output");
		return false;
	}
	if (!number(cli, "snap", 262144, &c->limits.snap) ||
	    !number(cli, "count", INT64_MAX, &c->limits.count) ||
	    !number(cli, "seconds", 1000000000, &c->limits.seconds) ||
	    !number(cli, "rate", 1000000000, &c->limits.rate) || !number(cli, "ring", 99999, &ring) ||
	    !number(cli, "size", 1000000, &size) || !number(cli, "keep", 65536, &keep) ||
	    !join_words(cli, c->filter))
		return false;
	if (!strcmp(c->file.path, "-") && (isatty(STDOUT_FILENO) || ring)) {
		cli_error(ring ? "--ring needs a file"
		               : "capture: standard output is a terminal: tshark -r - reads it");
		return false;
	}
	if ((cli_value(cli, "size") && !ring) || (cli_value(cli, "keep") && !trigger)) {
		cli_error(ring || trigger ? "--size is for --ring, --keep for --trigger"
		                          : "--size needs --ring, --keep needs --trigger");
		return false;
	}
	c->file.ring = (unsigned)ring;
	c->file.max = size * MIB;
	if (trigger)
		c->trigger = cap_trigger_new(trigger, keep * MIB);
	return !trigger || c->trigger;
}

static bool interface_fits(const struct cli *cli)
{
	static const char *const no[] = {"rate", "ring", "trigger"};

	for (unsigned i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (cli_value(cli, no[i])) {
			cli_error("--%s is not for --from-interface", no[i]);
			return false;
		}
	return true;
}

static int run_capture(const struct cli *cli)
{
	const char *interface = cli_value(cli, "from-interface");
	const struct sigaction sa = {.sa_handler = on_signal};
	struct capture *c = calloc(1, sizeof(*c));
	int rc = EXIT_USAGE;

	if (!c) {
		cli_error("out of memory");
		return EXIT_ERROR;
	}
	c->file.fd = -1;
	c->cli = cli;
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	/* A terminal that goes ends the capture as an interrupt does; with nohup(1) it goes on. */
	if (signal(SIGHUP, on_signal) == SIG_IGN)
		signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file as large as it may be is a full disk */
	umask(077);
	if (read_options(cli, c) && (!interface || interface_fits(cli))) {
		if (interface)
			rc = cap_interface(cli, interface, c->filter, &c->limits, c->file.path);
		else
			rc = capture_gateway(cli, c);
	}
	cap_file_close(&c->file);
	cap_trigger_free(c->trigger);
	free(c->blocks.data);
	free(c);
	return rc;
}

const struct cli_cmd cmd_capture = {.name = "capture",
    .no_json = true,
    .operand = "FILTER",
    .many = true,
    .letters = (const char *const[]){"wwrite", "ssnap", "ccount", NULL},
    .text = "packets of a running gateway, at each stage, as pcapng",
    .more =
        "FILTER: tenant NAME, vni N, host|src|dst ADDRESS[/LENGTH], qpn N, opcode NAME, stage NAME,\n"
        "decision NAME, drop [REASON], reason NAME, with and, or, not and parentheses. Stages: lan-in,\n"
        "wan-out, wan-in, lan-out; WAN stages are in the clear. Decisions: take, drop, kernel, forward,\n"
        "send. A packet's comment has its stage, flow, decision and reason; its packet ID is the same in\n"
        "all stages and at both gateways. It ends with --count, --seconds or an interrupt.\n"
        "\n"
        "    roceway capture -w drops.pcapng drop\n"
        "    roceway capture -w - host 10.1.0.2 and not opcode ack | tshark -r -\n"
        "    roceway capture -w why.pcapng --trigger nak,rnr\n"
        "\n"
        "With --from-interface FILTER is libpcap's, and the file is pcap.\n",
    .opts = capture_opts,
    .run = run_capture};
