/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of a change of tenants, in the words of the configuration and with its place in the
 * file. */
#include <stdio.h>
#include <string.h>

#include "gateway/control/tenants_int.h"

void gw_txn_err_locate(const struct gw_txn_input *a, const struct conf_tenant *t)
{
	*a->err = (struct conf_error){0};
	if (!t || !t->line)
		return;
	snprintf(a->err->file, sizeof(a->err->file), "%s", a->app->conf_path ? a->app->conf_path : "");
	a->err->line = t->line;
	a->err->column = t->column;
}

int gw_txn_err_tenant(const struct gw_txn_input *a, int rc, const struct tenant_err *te)
{
	const struct conf_tenant *t = NULL;
	char text[sizeof(a->err->msg) - CONF_NAME];
	const char *tunnel = "";

	for (unsigned i = 0; i < a->n && !t; i++)
		if (!strcmp(a->t[i].cfg.name, te->name))
			t = &a->t[i];
	gw_txn_err_locate(a, t);
	if (te->why == TENANT_E_GUARANTEE && te->item >= 0)
		tunnel = a->app->conf->tunnel[te->item].name;
	snprintf(a->err->msg, sizeof(a->err->msg), "%s%s%s", tenant_err_text(te, text, sizeof(text)),
	    tunnel[0] ? " tunnel " : "", tunnel);
	return rc;
}

int gw_txn_err_memory(const struct gw_txn_input *a)
{
	gw_txn_err_locate(a, NULL);
	snprintf(a->err->msg, sizeof(a->err->msg), "out of memory");
	return RWY_ENOMEM;
}

int gw_txn_err_worker(const struct gw_txn_input *a, unsigned worker, int rc)
{
	gw_txn_err_locate(a, NULL);
	if (rc == RWY_EAGAIN)
		snprintf(a->err->msg, sizeof(a->err->msg), "worker %u does not answer: try again", worker);
	else
		snprintf(a->err->msg, sizeof(a->err->msg), "worker %u cannot take it: %s", worker,
		    rc == RWY_ENOMEM ? "out of memory" : "its engine refuses it");
	return rc;
}
