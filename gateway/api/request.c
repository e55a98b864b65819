/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of a request, and the reply to a faulty one. */
#include "gateway/api/api.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/control/tenants.h"
#include "gateway/control/tunnels.h"

/* A client's words in it may be no UTF-8, or be cut within a letter. */
static json_t *words_json(char *text)
{
	json_t *j = json_string(text);

	if (j)
		return j;
	for (char *c = text; *c; c++)
		if (*c & 0x80)
			*c = '?';
	return json_string(text);
}

void api_fail(struct api_reply *reply, unsigned status, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (reply->status != 200)
		return; /* the first fault is reported */
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_decref(reply->json);
	free(reply->text);
	reply->text = NULL;
	reply->status = status;
	reply->json = json_pack("{s:o}", "error", words_json(text));
}

void api_fail_body(struct api_reply *reply, const struct conf_error *err)
{
	api_fail(reply, 400, "%s", err->msg);
	if (!err->line)
		return;
	json_object_set_new(reply->json, "line", json_integer(err->line));
	json_object_set_new(reply->json, "column", json_integer(err->column));
}

const char *api_param(const struct api_req *req, const char *name)
{
	for (unsigned i = 0; i < req->params; i++)
		if (!strcmp(req->param[i].name, name))
			return req->param[i].value;
	return NULL;
}

bool api_ip(const struct api_req *req, struct api_reply *reply, const char *name, struct rwy_ip *out)
{
	const char *s = api_param(req, name);
	uint8_t v4[4];

	if (!s)
		return false;
	if (inet_pton(AF_INET, s, v4) == 1)
		*out = rwy_ip_from4(v4);
	else if (inet_pton(AF_INET6, s, out->b) != 1)
		api_fail(reply, 400, "parameter %s: expected an IP address", name);
	return true;
}

const char *api_tunnel_param(const struct api_req *req, struct api_reply *reply)
{
	const char *name = api_param(req, "tunnel");

	if (name && *name && gw_tunnel_find(req->app, name) < 0)
		api_fail(reply, 404, "no tunnel %.64s", name);
	return name;
}

const char *api_tenant_param(const struct api_req *req, struct api_reply *reply)
{
	const char *name = api_param(req, "tenant");

	if (name && *name && strcmp(name, GW_TENANT_REMOVED) != 0 && !gw_tenant_exists(req->app, name))
		api_fail(reply, 404, "no tenant %.64s", name);
	return name;
}

bool api_flag(const struct api_req *req, struct api_reply *reply, const char *name)
{
	const char *v = api_param(req, name);

	if (v && *v && strcmp(v, "0") != 0 && strcmp(v, "1") != 0)
		api_fail(reply, 400, "parameter %s: expected 0 or 1", name);
	return v && strcmp(v, "0") != 0;
}

uint64_t api_number(
    const struct api_req *req, struct api_reply *reply, const char *name, uint64_t dflt, uint64_t max)
{
	const char *s = api_param(req, name);
	char *end;
	uint64_t v;

	if (!s)
		return dflt;
	errno = 0;
	v = strtoull(s, &end, !strncmp(s, "0x", 2) ? 16 : 10);
	if (*s < '0' || *s > '9' || *end || errno || v > max) {
		api_fail(
		    reply, 400, "parameter %s: expected a number up to %llu", name, (unsigned long long)max);
		return dflt;
	}
	return v;
}
