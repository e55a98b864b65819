/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as one tenant, as clients of the local API send it. First byte: bit 0, a change of the
 * existing tenant; bit 1, the request has its name. The result is one message, or a tenant that is
 * the same after printing and reading it in both formats.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void)0 : abort())

static const char file[] =
    "gateway: {name: a}\n"
    "ports:\n"
    "  - {name: lan, device: net_null0, role: lan, vlan: 7, addresses: [10.1.0.1/24]}\n"
    "  - {name: wan, device: net_null1, role: wan, addresses: [192.0.2.1/24]}\n"
    "tunnels:\n"
    "  - {name: b, port: wan, local: 192.0.2.1, remote: 192.0.2.2, security: none}\n"
    "  - {name: c, port: wan, local: 192.0.2.1, remote: 192.0.2.3, security: none}\n"
    "tenants:\n";
static const char red[] = "  - name: red\n"
                          "    vni: 5001\n"
                          "    vlan: 101\n"
                          "    prefixes: [{prefix: 10.1.0.0/24, at: vtep}, {prefix: 10.2.0.0/24, at: b}]\n"
                          "    vteps: [10.1.0.11]\n"
                          "    acl: [{action: deny, source: 10.1.0.66/32}]\n"
                          "    guarantee: 1Gbps\n";

static char *print(const struct conf *c, const struct conf_tenant *t, enum conf_format format)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	CHECK(f);
	conf_tenant_print(f, c, t, format);
	fclose(f);
	return text;
}

static void again(const struct conf *c, const struct conf_tenant *t)
{
	char *json = print(c, t, CONF_JSON), *yaml = print(c, t, CONF_YAML), *text, *other;
	struct conf_tenant u;
	struct conf_error err;
	struct conf *d = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	CHECK(!conf_tenant_parse(c, json, strlen(json), NULL, NULL, &u, &err));
	other = print(c, &u, CONF_JSON);
	CHECK(!strcmp(json, other));
	free(other);
	conf_tenant_fini(&u);
	CHECK(f);
	fprintf(f, "%s%s", file, yaml);
	fclose(f);
	CHECK(!conf_parse(&d, text, len, "yaml", &err) && d->tenants == 1);
	other = print(d, &d->tenant[0], CONF_JSON);
	CHECK(!strcmp(json, other));
	free(other);
	conf_free(d);
	free(text);
	free(json);
	free(yaml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct conf *c;
	const uint8_t how = size ? data[0] : 0;
	struct conf_tenant t;
	struct conf_error err;
	char text[sizeof(file) + sizeof(red)];

	snprintf(text, sizeof(text), "%s%s", file, red);
	if (!c)
		CHECK(!conf_parse(&c, text, strlen(text), "file", &err));
	if (conf_tenant_parse(c, (const char *)data + (size != 0), size - (size != 0), how & 2 ? "red" : NULL,
	        how & 1 ? &c->tenant[0] : NULL, &t, &err)) {
		CHECK(*err.msg && !t.cfg.prefix && !t.cfg.vtep && !t.cfg.host && !t.cfg.rule);
		for (const char *m = err.msg; *m; m++)
			CHECK((uint8_t)*m >= 0x20);
		return 0;
	}
	CHECK(t.cfg.vni && *t.cfg.name && t.cfg.prefixes && t.cfg.prefix);
	again(c, &t);
	conf_tenant_fini(&t);
	return 0;
}
