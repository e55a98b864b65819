/* SPDX-License-Identifier: Apache-2.0 */
/* roceway recorder: the last decisions of the gateway's workers, the newest last. */
#include "tools/roceway/recorder.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_opt opts[] = {
    {"local", "IP", "only about connections of this local host"},
    {"remote", "IP", "only about connections with this remote host"},
    {"qpn", "QPN", "only with this queue pair at either end (12 or 0xc)"},
    {"vni", "N", "only of the tenant with this VNI; 0: of the plain LAN"},
    {"kind", "KIND", "only of this kind, such as fail, timeout or tunnel"},
    {"worker", "N", "only of this worker"},
    {"limit", "N", "the newest N (1 to 10000; default 100)"},
    {"file", "FILE", "of a process that is gone: its file in gateway.journal_dir"},
    {NULL, NULL, NULL},
};

/* --- table ------------------------------------------------------------------------------------ */

/* The fields that all entries about connections have in common. */
struct common {
	const char *local, *remote; /* NULL: there is none; "": they differ */
	bool workers, tenants;      /* of several workers; some of a tenant */
};

static const char *same(const char *so_far, const char *next)
{
	return !so_far || !strcmp(so_far, next) ? next : "";
}

static struct common common_of(const json_t *list)
{
	struct common c = {0};
	long long worker = -1;
	const json_t *o;
	size_t i;

	json_array_foreach((json_t *)list, i, o)
	{
		c.workers = c.workers || (worker >= 0 && worker != ji(o, "worker"));
		worker = ji(o, "worker");
		c.tenants = c.tenants || ji(o, "vni");
		if (!*js(o, "local"))
			continue;
		c.local = same(c.local, js(o, "local"));
		c.remote = same(c.remote, js(o, "remote"));
	}
	return c;
}

static void add_qpn(struct table *t, const json_t *o, const char *key)
{
	if (!*js(o, "local"))
		table_add(t, "-");
	else if (ji(o, key))
		table_add(t, "%lld", ji(o, key));
	else
		table_add(t, "?");
}

/* HH:MM:SS.uuuuuu of the time. */
static const char *time_of_day(const json_t *o)
{
	const char *t = strchr(js(o, "time"), 'T');

	return t ? t + 1 : "";
}

static void add_row(struct table *t, const json_t *o, const struct common *c, bool hosts)
{
	table_add(t, "%.15s", time_of_day(o));
	if (c->workers)
		table_add(t, "%lld", ji(o, "worker"));
	if (c->tenants)
		table_add(t, ji(o, "vni") ? "%lld" : "-", ji(o, "vni"));
	if (hosts)
		table_add(t, "%s", *js(o, "local") ? js(o, "local") : "-");
	add_qpn(t, o, "local_qpn");
	if (hosts)
		table_add(t, "%s", *js(o, "local") ? js(o, "remote") : "-");
	add_qpn(t, o, "remote_qpn");
	table_add(t, "%s", js(o, "text"));
}

/* Two long IPv6 addresses need a line each. */
static void print_hosts(const char *local, const char *remote)
{
	const bool fits = strlen("local host , remote host ") + strlen(local) + strlen(remote) <= TABLE_WIDTH;

	printf("local host %s,%cremote host %s\n\n", local, fits ? ' ' : '\n', remote);
}

void recorder_print(const json_t *j)
{
	json_t *list = json_object_get(j, "entries");
	const size_t n = json_array_size(list);
	const struct common c = common_of(list);
	const bool hosts = !c.local || !*c.local || !*c.remote;
	const char *columns[10];
	unsigned k = 0;
	struct table *t;
	const json_t *o;
	size_t i;

	if (!n) {
		puts("no entries");
		return;
	}
	columns[k++] = "TIME (UTC)";
	if (c.workers)
		columns[k++] = ">WORKER";
	if (c.tenants)
		columns[k++] = ">VNI";
	if (hosts)
		columns[k++] = "~LOCAL";
	columns[k++] = hosts ? ">QPN" : ">LOCAL QPN";
	if (hosts)
		columns[k++] = "~REMOTE";
	columns[k++] = hosts ? ">QPN" : ">REMOTE QPN";
	columns[k++] = "~WHAT";
	columns[k] = NULL;
	if (!hosts)
		print_hosts(c.local, c.remote);
	t = table_new(columns);
	json_array_foreach(list, i, o) add_row(t, o, &c, hosts);
	table_print(t);
	printf("\n%zu %s, from %.10s on\n", n, n == 1 ? "entry" : "entries",
	    js(json_array_get(list, 0), "time"));
}

/* --- the command ------------------------------------------------------------------------------ */

static json_t *fetch(const struct cli *cli, const struct recorder_filter *f)
{
	char page[1024], n[32];

	snprintf(page, sizeof(page), "/v1/recorder");
	snprintf(n, sizeof(n), "%lu", f->limit);
	api_query(page, sizeof(page), "limit", n);
	if (f->local)
		api_query(page, sizeof(page), "local", f->local);
	if (f->remote)
		api_query(page, sizeof(page), "remote", f->remote);
	if (f->qpn)
		api_query(page, sizeof(page), "qpn", f->qpn);
	if (f->vni)
		api_query(page, sizeof(page), "vni", f->vni);
	if (f->kind)
		api_query(page, sizeof(page), "kind", f->kind);
	if (f->worker)
		api_query(page, sizeof(page), "worker", f->worker);
	return api_get_json(cli, page, NULL);
}

static bool read_limit(const struct cli *cli, unsigned long *limit)
{
	const char *s = cli_value(cli, "limit");
	char *end = "";

	*limit = s ? strtoul(s, &end, 10) : 100;
	if (!s || (*s >= '0' && *s <= '9' && !*end && *limit && *limit <= RECORDER_LIMIT))
		return true;
	cli_error("--limit: expected a number from 1 to %d, found %s", RECORDER_LIMIT, s);
	return false;
}

static int run_recorder(const struct cli *cli)
{
	struct recorder_filter f = {.local = cli_value(cli, "local"),
	    .remote = cli_value(cli, "remote"),
	    .kind = cli_value(cli, "kind"),
	    .worker = cli_value(cli, "worker"),
	    .qpn = cli_value(cli, "qpn"),
	    .vni = cli_value(cli, "vni")};
	int rc = EXIT_ERROR;
	json_t *j;

	if (!read_limit(cli, &f.limit))
		return EXIT_USAGE;
	j = cli_value(cli, "file") ? recorder_file_read(cli_value(cli, "file"), &f, &rc) : fetch(cli, &f);
	if (!j)
		return rc;
	if (cli->json)
		print_json(j);
	else
		recorder_print(j);
	json_decref(j);
	return EXIT_OK;
}

const struct cli_cmd cmd_recorder = {.name = "recorder",
    .text = "the last decisions of the gateway about connections",
    .more =
        "The newest last: states, NAKs, timeouts, ACKs that wait, failures and why. Ordinary packets leave\n"
        "no entry. A QPN of `?` is not known yet. With --file the record of a gateway that crashed or\n"
        "stopped: the next one keeps it as roceway-NAME.recorder.crash or .last.\n",
    .opts = opts,
    .run = run_recorder};
