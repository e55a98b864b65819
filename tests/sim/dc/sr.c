/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/dc/nic.h"

void sr_new(struct qp *qp)
{
	(void)qp;
}
void sr_free(struct qp *qp)
{
	(void)qp;
}
bool sr_next(struct qp *qp, uint64_t *psn)
{
	(void)qp, (void)psn;
	return false;
}
void sr_acked(struct qp *qp, const struct dc_pkt *p, rwy_time now)
{
	(void)qp, (void)p, (void)now;
}
void sr_data(struct qp *qp, struct dc_pkt *p, rwy_time now)
{
	(void)qp, (void)p, (void)now;
}
void sr_timeout(struct qp *qp, rwy_time now)
{
	(void)qp, (void)now;
}
