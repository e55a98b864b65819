/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /v1/capture: GET is a capture as a stream of pcapng, until its client goes away or it is over
 * (docs/capture.md). The section's comments tell which tunnels and connections there were. DELETE
 * ends it: the client of the stream gets the rest of it. A client that asks with `Upgrade:
 * roceway-capture` gets the stream in memory (base/slots.h), which comes with the byte behind the
 * answer's head.
 */
#include "gateway/api/api.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/capture/capture.h"
#include "gateway/control/tenants.h"

#define BATCH       64    /* connections that a worker copies at once */
#define FLOWS_MAX   512   /* in the comment */
#define COMMENT_MAX 60000 /* bytes of one comment; pcapng allows 65535 */
#define NUMBER_MAX  1000000000u
#define CHUNK       65536

/* --- the tables, as comments ------------------------------------------------------------------ */

static void add_ip(FILE *f, const char *name, const struct rwy_ip *a)
{
	json_t *ip = api_json_ip(a);

	fprintf(f, " %s=%s", name, json_string_value(ip));
	json_decref(ip);
}

static char *tunnels_text(const struct gw_app *app)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	for (unsigned i = 0; i < app->conf->tunnels; i++) {
		const struct conf_tunnel *t = &app->conf->tunnel[i];

		if (!t->name[0])
			continue;
		fprintf(f, "tunnel name=%s port=%s", t->name, t->port);
		add_ip(f, "local", &t->local);
		add_ip(f, "remote", &t->remote);
		fprintf(f, " udp_port=%u workers=%u security=%s\n", t->udp_port, app->workers,
		    t->security == CONF_SEC_NONE ? "none" : "keys");
	}
	fclose(f);
	return text;
}

struct batch {
	uint32_t cursor;
	unsigned n;
	struct eng_flow_info flow[BATCH];
};

static void batch_copy(struct eng *e, void *arg)
{
	struct batch *b = arg;

	b->n = eng_flows(e, &b->cursor, b->flow, BATCH);
}

static void add_flow(FILE *f, struct gw_app *app, const struct eng_flow_info *i)
{
	char tenant[1][TENANT_NAME_MAX];

	gw_tenant_names(app, &i->tenant, 1, tenant);
	fprintf(f, "flow tenant=%s", tenant[0]);
	add_ip(f, "local", &i->local);
	add_ip(f, "remote", &i->remote);
	fprintf(f,
	    " local_qpn=0x%x remote_qpn=0x%x tunnel=%s state=%s responder_psn=%u requester_una=%u "
	    "requester_nxt=%u pmtu=%u\n",
	    i->local_qpn, i->remote_qpn, i->tunnel, i->state, i->responder_psn, i->requester_una,
	    i->requester_nxt, i->pmtu);
}

/* Connections, of all workers that answer. */
static char *flows_text(struct gw_app *app)
{
	struct batch *b = calloc(1, sizeof(*b));
	char *text = NULL;
	size_t size;
	FILE *f = b ? open_memstream(&text, &size) : NULL;
	unsigned n = 0, more = 0;

	for (unsigned w = 0; f && w < app->workers; w++) {
		b->cursor = 0;
		do {
			if (gw_call(app, w, batch_copy, b))
				break;
			for (unsigned i = 0; i < b->n; i++) {
				const bool fits = n < FLOWS_MAX && !fflush(f) && size < COMMENT_MAX - 1024;

				if (fits)
					add_flow(f, app, &b->flow[i]);
				n += fits;
				more += !fits;
			}
		} while (b->cursor && n < FLOWS_MAX);
	}
	if (f && more)
		fprintf(f, "and more connections\n");
	if (f)
		fclose(f);
	free(b);
	return text;
}

/* --- the stream ------------------------------------------------------------------------------- */

struct api_stream {
	struct gw_cap_session *capture;
	struct MHD_Connection *conn;
	int fd;
	bool slots;
	struct MHD_UpgradeResponseHandle *upgraded; /* after the answer's head */
};

static void on_wake(void *ctx)
{
	MHD_resume_connection(((struct api_stream *)ctx)->conn);
}

static void on_wait(void *ctx)
{
	MHD_suspend_connection(((struct api_stream *)ctx)->conn);
}

/* The server does not look at a connection that is suspended. */
static bool is_gone(void *ctx)
{
	struct pollfd p = {.fd = ((struct api_stream *)ctx)->fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL);
}

static ssize_t on_read(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct api_stream *s = cls;
	const ssize_t n = gw_cap_read(s->capture, buf, max);

	return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static void on_free(void *cls)
{
	struct api_stream *s = cls;

	gw_cap_leave(s->capture);
	free(s);
}

struct MHD_Response *api_stream_response(struct api_stream *s)
{
	struct MHD_Response *r =
	    MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, CHUNK, on_read, s, on_free);

	if (!r)
		on_free(s);
	return r;
}

/* --- the stream in slots ---------------------------------------------------------------------- */

bool api_stream_in_slots(const struct api_stream *s)
{
	return s->slots;
}

static void on_over(void *ctx)
{
	MHD_upgrade_action(((struct api_stream *)ctx)->upgraded, MHD_UPGRADE_ACTION_CLOSE);
}

/* The answer's head has left. */
static void on_upgraded(void *cls, struct MHD_Connection *conn, void *req, const char *extra,
    size_t extra_size, MHD_socket sock, struct MHD_UpgradeResponseHandle *urh)
{
	struct api_stream *s = cls;

	s->upgraded = urh;
	if (!gw_cap_attach(s->capture, sock))
		MHD_upgrade_action(urh, MHD_UPGRADE_ACTION_CLOSE);
}

struct MHD_Response *api_stream_switch(struct api_stream *s)
{
	struct MHD_Response *r = MHD_create_response_for_upgrade(on_upgraded, s);

	if (!r)
		api_stream_end(s);
	else
		MHD_add_response_header(r, MHD_HTTP_HEADER_UPGRADE, API_STREAM_SLOTS);
	return r;
}

void api_stream_end(struct api_stream *s)
{
	if (s)
		on_free(s);
}

/* --- the page --------------------------------------------------------------------------------- */

static bool tenant_vni(void *ctx, const char *name, uint32_t *vni)
{
	struct conf_tenant *t = calloc(1, sizeof(*t));
	const bool found = t && gw_tenant_get(ctx, name, t) == 0;

	if (found) {
		*vni = t->cfg.vni;
		conf_tenant_fini(t);
	}
	free(t);
	return found;
}

static void read_cfg(const struct api_req *req, struct api_reply *reply, struct gw_cap_cfg *cfg)
{
	const char *filter = api_param(req, "filter");
	struct gw_cap_fault fault;

	cfg->snap = (uint32_t)api_number(req, reply, "snap", GW_CAP_SNAP_MAX, UINT32_MAX);
	if (!cfg->snap)
		api_fail(reply, 400, "parameter snap: expected a number of bytes from 1 on");
	if (cfg->snap > GW_CAP_SNAP_MAX)
		cfg->snap = GW_CAP_SNAP_MAX;
	cfg->rate = api_number(req, reply, "rate", 0, NUMBER_MAX);
	cfg->count = api_number(req, reply, "count", 0, INT64_MAX);
	cfg->seconds = api_number(req, reply, "seconds", 0, NUMBER_MAX);
	if (reply->status != 200 ||
	    !gw_cap_filter_parse(&cfg->filter, filter ? filter : "", tenant_vni, req->app, &fault))
		return;
	api_fail(reply, 400, "filter: %s", fault.text);
	json_object_set_new(reply->json, "at", json_integer(fault.at));
}

static void begin(const struct api_req *req, struct api_reply *reply, struct gw_cap_cfg *cfg)
{
	char *tunnels = tunnels_text(req->app), *flows = flows_text(req->app);
	const char *comment[3] = {0};
	struct api_stream *s = calloc(1, sizeof(*s));
	const char *asks = MHD_lookup_connection_value(req->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_UPGRADE);
	struct gw_cap_reader reader = {.wake = on_wake, .gone = is_gone, .wait = on_wait, .ctx = s};
	unsigned n = 0;
	int rc = RWY_ENOMEM;

	if (tunnels && *tunnels)
		comment[n++] = tunnels;
	if (flows && *flows)
		comment[n++] = flows;
	cfg->comment = comment;
	if (s) {
		s->conn = req->conn;
		s->slots = asks && !strcmp(asks, API_STREAM_SLOTS);
		reader.over = s->slots ? on_over : NULL;
		s->fd = MHD_get_connection_info(req->conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
		rc = gw_cap_begin(&s->capture, req->app, cfg, &reader);
	}
	if (rc == RWY_EEXIST)
		api_fail(reply, 409, "another capture runs: one runs at a time");
	else if (rc)
		api_fail(reply, 503, "no memory for a capture");
	if (rc)
		free(s);
	else
		reply->stream = s;
	free(tunnels);
	free(flows);
}

static void end(struct api_reply *reply)
{
	if (gw_cap_end())
		reply->json = json_pack("{s:b}", "ends", 1);
	else
		api_fail(reply, 404, "no capture runs");
}

void api_capture(const struct api_req *req, struct api_reply *reply)
{
	struct gw_cap_cfg *cfg;

	if (!strcmp(req->method, "DELETE")) {
		end(reply);
		return;
	}
	cfg = calloc(1, sizeof(*cfg));
	reply->type = "application/x-pcapng";
	if (!cfg)
		api_fail(reply, 503, "no memory for a capture");
	else
		read_cfg(req, reply, cfg);
	if (reply->status == 200 && api_flag(req, reply, "check"))
		reply->json = json_pack("{s:s}", "filter", "good");
	else if (reply->status == 200)
		begin(req, reply, cfg);
	free(cfg);
}
