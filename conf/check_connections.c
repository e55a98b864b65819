/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over keys that `connections` and tenants share: times, admission. */
#include "conf/schema.h"

/* The value's node; if the file has neither key: that of the group. */
static const struct conf_node *node_of(const struct conf_node *map, const char *key, const char *other)
{
	const struct conf_node *n = conf_node_get(map, key);

	n = n ? n : conf_node_get(map, other);
	return n ? n : map;
}

static int check_timeouts(rwy_dur min, rwy_dur max, const struct conf_node *map, struct conf_error *err)
{
	char want[32], found[32];

	if (min <= max)
		return 0;
	conf_print_value(CONF_T_DURATION, min, want, sizeof(want));
	conf_print_value(CONF_T_DURATION, max, found, sizeof(found));
	return conf_fail_at(err, node_of(map, "ack_timeout_max", "ack_timeout_min"),
	    "expected at least `ack_timeout_min`, %s, for `ack_timeout_max`, found `%s`", want, found);
}

static int check_admission(const struct conf *c, enum tenant_admission admission, const struct conf_node *map,
    struct conf_error *err)
{
	if (admission != TENANT_ADMISSION_CONTROLLER || conf_has_controller(c))
		return 0;
	return conf_fail_at(err, node_of(map, "admission", "admission"),
	    "expected `open` or `cm` for `admission` without `controller.urls`, found `controller`");
}

int conf_check_connections(const struct conf *c, const struct conf_node *root, struct conf_error *err)
{
	const struct conf_node *map = conf_node_get(root, "connections");

	int rc = check_admission(c, c->admission, map, err);

	return rc ? rc : check_timeouts(c->ack_timeout_min, c->ack_timeout_max, map, err);
}

int conf_check_tenant_connections(
    const struct conf *c, const struct conf_tenant *t, const struct conf_node *map, struct conf_error *err)
{
	int rc = check_admission(c, t->cfg.admission, map, err);

	return rc ? rc : check_timeouts(t->cfg.timers.ack_min, t->cfg.timers.ack_max, map, err);
}
