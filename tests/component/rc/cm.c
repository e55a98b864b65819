/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/component/rc/cm.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "roce/cm.h"
#include "roce/icrc.h"
#include "tests/lib/proxy_cm.h"

#define REPEAT_MS 500
#define WAIT_MS   20000
#define PKT_MAX   8192

/* The packet helpers assert by cmocka, whose library is not everywhere that this program runs. */
void _assert_true(
    const LargestIntegralType result, const char *const expression, const char *const file, const int line)
{
	if (result)
		return;
	fprintf(stderr, "%s:%d: %s\n", file, line, expression);
	abort();
}

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* The next CM message to this host; false: there is none now. */
static bool next(const struct cm_side *s, struct roce_cm_msg *m)
{
	static uint8_t ip[PKT_MAX];
	struct roce_pkt pkt;
	uint32_t n;

	while ((n = lan_receive(s->lan, ip, sizeof(ip))))
		if (roce_parse(ip, n, &pkt) == ROCE_PARSE_OK && roce_is_gsi(&pkt) && roce_icrc_ok(&pkt) &&
		    rwy_ip_eq(&pkt.dst, &s->host) && rwy_ip_eq(&pkt.src, &s->relay) &&
		    roce_cm_parse(&pkt, m) == 0)
			return true;
	return false;
}

static void send_mad(const struct cm_side *s, const uint8_t *mad)
{
	uint8_t bytes[TP_MAX];

	lan_send(s->lan, bytes, px_packet(bytes, mad, &s->host, &s->relay));
}

static void req_send(const struct cm_side *s, uint16_t port, unsigned n)
{
	const struct px_req r = {.src = s->host,
	    .dst = s->relay,
	    .comm = 0x100 + n,
	    .qpn = s->qpn,
	    .psn = s->psn,
	    .tid = 0x10000 + n,
	    .port = port};
	uint8_t bytes[TP_MAX];

	lan_send(s->lan, bytes, px_make_req(bytes, &r));
}

/* Host 1 accepts, as often as it is asked, and repeats that until the RTU comes. */
static void accept_req(struct cm_side *s, const struct roce_cm_msg *m, unsigned n)
{
	const struct cp_rep rep = {.tid = m->tid,
	    .comm = 0x200 + n,
	    .remote = m->local_comm_id,
	    .qpn = s->qpn,
	    .psn = s->psn,
	    .rnr = 7,
	    .resp_res = 8,
	    .init_depth = 8};
	uint8_t mad[256];

	s->alias = m->qpn;
	cp_make_rep(mad, &rep);
	send_mad(s, mad);
}

int cm_connect(struct cm_side side[2], uint16_t port, unsigned n)
{
	const uint64_t end = clock_ms() + WAIT_MS;
	uint64_t again = 0, again1 = UINT64_MAX;
	struct roce_cm_msg m, req = {0};
	uint8_t mad[256];

	side[0].alias = side[1].alias = 0;
	while (clock_ms() < end) {
		struct pollfd p[2] = {
		    {.fd = side[0].lan->fd, .events = POLLIN}, {.fd = side[1].lan->fd, .events = POLLIN}};

		if (!side[0].alias && clock_ms() >= again) {
			req_send(&side[0], port, n);
			again = clock_ms() + REPEAT_MS;
		}
		if (clock_ms() >= again1) {
			accept_req(&side[1], &req, n);
			again1 = clock_ms() + REPEAT_MS;
		}
		poll(p, 2, 50);
		while (next(&side[0], &m)) {
			if (m.attr == ROCE_CM_REJ && m.remote_comm_id == 0x100 + n)
				return m.rej_reason;
			if (m.attr != ROCE_CM_REP || m.remote_comm_id != 0x100 + n)
				continue;
			side[0].alias = m.qpn;
			cp_make_ids(mad, ROCE_CM_RTU, 0x10000 + n, 0x100 + n, 0x200 + n);
			send_mad(&side[0], mad);
		}
		while (next(&side[1], &m)) {
			if (m.attr == ROCE_CM_REQ && m.local_comm_id == 0x100 + n) {
				req = m;
				again1 = 0;
			}
			if (m.attr == ROCE_CM_RTU && m.local_comm_id == 0x100 + n)
				return 0;
		}
	}
	return -1;
}
