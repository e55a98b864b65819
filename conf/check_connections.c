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

/* Workers that share address pairs keep no order between connections. */
static int check_order(const struct conf *c, bool causal, const struct conf_node *map, struct conf_error *err)
{
	if (c->steering != CONF_STEER_QP || !causal)
		return 0;
	return conf_fail_at(err, node_of(map, "ack_mode", "ack_modes"),
	    "expected another ack mode beside `gateway.steering: qp`, found `causal`");
}

static int check_steering(const struct conf *c, const struct conf_node *root, struct conf_error *err)
{
	const struct conf_node *n = node_of(conf_node_get(root, "gateway"), "steering", "steering");
	const char *with = c->relay.addrs         ? "a relay"
	                   : c->siblings          ? "`siblings`"
	                   : conf_standby(c) >= 0 ? "a standby"
	                                          : NULL;

	if (c->steering != CONF_STEER_QP || !with)
		return 0;
	return conf_fail_at(err, n, "expected `pair` for `steering` with %s, found `qp`", with);
}

int conf_check_connections(const struct conf *c, const struct conf_node *root, struct conf_error *err)
{
	const struct conf_node *map = conf_node_get(root, "connections");

	int rc = check_admission(c, c->admission, map, err);
	bool causal = c->ack_mode == CONF_ACK_CAUSAL;

	for (unsigned i = 0; i < c->modes; i++)
		causal |= c->mode[i].mode == TENANT_ACK_CAUSAL;
	rc = rc ? rc : check_steering(c, root, err);
	rc = rc ? rc : check_order(c, causal, map, err);
	return rc ? rc : check_timeouts(c->ack_timeout_min, c->ack_timeout_max, map, err);
}

int conf_check_tenant_connections(
    const struct conf *c, const struct conf_tenant *t, const struct conf_node *map, struct conf_error *err)
{
	int rc = check_admission(c, t->cfg.admission, map, err);
	bool causal = t->cfg.ack_mode == TENANT_ACK_CAUSAL;

	for (unsigned i = 0; i < t->cfg.modes; i++)
		causal |= t->cfg.mode[i].mode == TENANT_ACK_CAUSAL;
	rc = rc ? rc : check_order(c, causal, map, err);
	return rc ? rc : check_timeouts(t->cfg.timers.ack_min, t->cfg.timers.ack_max, map, err);
}
