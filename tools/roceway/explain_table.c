/* SPDX-License-Identifier: Apache-2.0 */
/* Cells and tables shared by the explanations of sessions and jobs. */
#include "tools/roceway/explain.h"

#include <time.h>

const char *explain_bps(const json_t *o, const char *key)
{
	return jn(o, key) > 0 ? say_bits(jn(o, key) / 8) : "-";
}

const char *explain_us(const json_t *o, const char *key)
{
	return say_time(jn(o, key) / 1e6);
}

const char *explain_when(const json_t *o, const char *key)
{
	static char text[32];
	const time_t t = (time_t)(ji(o, key) / 1000);
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%SZ", &tm))
		*text = 0;
	return text;
}

void explain_print_events(const json_t *events)
{
	static const char *const columns[] = {"WHEN", "SEVERITY", "~EVENT", NULL};
	struct table *t = table_new(columns);
	const json_t *e;
	size_t i;

	json_array_foreach((json_t *)events, i, e)
	{
		table_add(t, "%s", explain_when(e, "time_ms"));
		table_add(t, "%s", js(e, "severity"));
		table_add(t, "%s", js(e, "text"));
	}
	table_print(t);
}

void explain_print_network(const json_t *tunnels)
{
	static const char *const columns[] = {"~TUNNEL", "RULE", "~NETWORK", "~EDGE", "~PATH", ">BANDWIDTH",
	    ">DELAY", ">JITTER", ">LOSS", NULL};
	struct table *t = table_new(columns);
	const json_t *n, *leg;
	size_t i, k;

	json_array_foreach((json_t *)tunnels, i, n)
	{
		json_array_foreach(json_object_get(n, "legs"), k, leg)
		{
			table_add(t, "%s", js(n, "name"));
			table_add(t, "%s", js(n, "shape"));
			table_add(t, "%s", js(leg, "provider"));
			table_add(t, "%s", js(leg, "edge"));
			table_add(t, "%s", js(leg, "path"));
			table_add(t, "%s", explain_bps(leg, "bandwidth_bps"));
			table_add(t, "%s", explain_us(leg, "delay_us"));
			table_add(t, "%s", explain_us(leg, "jitter_us"));
			table_add(t, "%s", say_share(jn(leg, "loss_ppm") / 1e6));
		}
	}
	table_print(t);
}
