/* SPDX-License-Identifier: Apache-2.0 */
/* A worker as it begins: with its engine's tenants. */
#include "gateway/control/tenants.h"
#include "gateway/gw.h"
#include "gateway/setup.h"

int gw_worker_start(struct gw_worker **out, struct gw_app *app, unsigned idx, struct gw_pools *pools)
{
	int rc = gw_worker_new(out, app, idx, pools);

	if (rc)
		return rc;
	/* The engine reads the tenants' part of the journal before a packet comes. */
	rc = gw_tenants_engine(app, (*out)->eng, idx, gw_now());
	if (!rc)
		return 0;
	gw_worker_free(*out);
	*out = NULL;
	return rc;
}
