/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/agent/write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "shim/host.h"

static void rule_put(
    FILE *f, const struct shim_policy *p, const struct shim_rule *rule, const struct hagent_probe *probe)
{
	unsigned order = 0;

	fprintf(f, "redirect %s/%u via", shim_ip_text(&rule->addr),
	    rwy_ip_is4(&rule->addr) ? rule->len - 96u : rule->len);
	for (unsigned i = 0; i < rule->relays; i++) {
		const struct shim_relay *r = &p->relay[rule->first + i];

		if (r->order != order)
			fputs(" else", f);
		order = r->order;
		fprintf(f, " %s,weight=%u,port=%u%s", shim_ip_text(&r->addr), r->weight, r->port,
		    r->down || hagent_probe_down(probe, r) ? ",down" : "");
	}
	fputc('\n', f);
}

char *hagent_write_text(const struct shim_policy *policy, const struct hagent_probe *probe, const char *head)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	bool good;

	if (!f)
		return NULL;
	fprintf(f, "# Written by roceway-host-agent: changes are lost. %s\n", head);
	for (unsigned i = 0; i < policy->rules; i++)
		rule_put(f, policy, &policy->rule[i], probe);
	good = !ferror(f);
	good = fclose(f) == 0 && good;
	if (good)
		return text;
	free(text);
	return NULL;
}

bool hagent_write_file(const char *path, const char *text, bool tell)
{
	char other[512];
	FILE *f;
	bool good;

	snprintf(other, sizeof(other), "%s.new", path);
	f = fopen(other, "we");
	good = f && fputs(text, f) >= 0;
	/* Programs of all users read it. */
	good = good && fchmod(fileno(f), 0644) == 0;
	if (f)
		good = fclose(f) == 0 && good;
	if (good && rename(other, path) == 0)
		return true;
	if (tell)
		gw_log(GW_LOG_ERROR, "file", "%s: %s: programs go by the file before, if there is one", path,
		    strerror(errno));
	unlink(other);
	return false;
}
