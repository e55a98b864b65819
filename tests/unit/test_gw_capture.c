/* SPDX-License-Identifier: Apache-2.0 */
/* Captures without DPDK (gateway/capture/): the filter, facts of packets, the ring, pcapng. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/capture/capture.h"
#include "gateway/capture/pcapng.h"
#include "roce/opcode.h"
#include "rwy/endian.h"
#include "wan/wire/pkt.h"

/* --- filter ------------------------------------------------------------------------------------ */

static bool tenant_red(void *ctx, const char *name, uint32_t *vni)
{
	*vni = 77;
	return !strcmp(name, "red");
}

static struct gw_cap_filter filter;
static struct gw_cap_fault fault;
static struct gw_cap_texts texts;

static int parse(const char *text)
{
	return gw_cap_filter_parse(&filter, text, tenant_red, NULL, &fault);
}

static const struct gw_cap_facts write_in = {.ip = true,
    .roce = true,
    .src = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 0, 2}},
    .dst = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 2, 0, 2}},
    .vni = 77,
    .dqpn = 0x12,
    .sqpn = 0x34,
    .psn = 5,
    .opcode = ROCE_RC_WRITE_FIRST,
    .stage = GW_CAP_LAN_IN,
    .decision = GW_CAP_DROP,
    .reason = GW_CAP_REASON(drop_low_memory)};

static void test_filter_takes(void **state)
{
	static const struct {
		const char *text;
		bool takes;
	} rows[] = {
	    {"", true},
	    {"  ", true},
	    {"tenant red", true},
	    {"vni 77", true},
	    {"vni 0x4d", true},
	    {"vni 78", false},
	    {"host 10.1.0.2", true},
	    {"host 10.2.0.2", true},
	    {"host 10.2.0.3", false},
	    {"src 10.1.0.0/16", true},
	    {"src 10.2.0.0/16", false},
	    {"dst 10.2.0.0/15", true},
	    {"dst 0.0.0.0/0", true},
	    {"dst ::/0", true},
	    {"dst ::ffff:10.2.0.2", true},
	    {"dst fd00::/8", false},
	    {"qpn 18", true},
	    {"qpn 0x34", true},
	    {"qpn 5", false},
	    {"opcode write", true},
	    {"OPCODE rc_rdma_write_first", true},
	    {"opcode RDMA_WRITE_FIRST", true},
	    {"opcode 6", true},
	    {"opcode read", false},
	    {"stage lan-in", true},
	    {"stage wan-in", false},
	    {"decision drop", true},
	    {"verdict send", false},
	    {"drop", true},
	    {"drop low_memory", true},
	    {"drop drop_low_memory", true},
	    {"reason drop_low_memory", true},
	    {"drop icrc", false},
	    {"reason accepted", false},
	    {"not drop", false},
	    {"not not drop", true},
	    {"drop and stage lan-in", true},
	    {"drop and stage lan-out", false},
	    {"stage lan-out or drop", true},
	    {"stage lan-out or stage wan-in", false},
	    /* `and` binds tighter */
	    {"drop or drop and stage wan-in", true},
	    {"(drop or drop) and stage wan-in", false},
	    {"stage wan-in and drop or drop", true},
	    {"stage wan-in and (drop or drop)", false},
	    {"not (stage wan-in or stage lan-out) and drop", true},
	    {"not stage wan-in and not stage lan-out", true},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (parse(rows[i].text))
			fail_msg("`%s`: %s", rows[i].text, fault.text);
		if (gw_cap_filter_takes(&filter, &write_in) != rows[i].takes)
			fail_msg("`%s`", rows[i].text);
	}
	/* what is no IP packet has no address and no QPN */
	assert_int_equal(parse("host 0.0.0.0/0 or qpn 0 or vni 0"), 0);
	assert_false(gw_cap_filter_takes(&filter, &(struct gw_cap_facts){0}));
}

static void test_filter_faults(void **state)
{
	static const struct {
		const char *text, *says;
		unsigned at;
	} rows[] = {
	    {"hots 10.0.0.1", "expected tenant", 0},
	    {"drop and", "something is missing", 8},
	    {"drop or )", "expected tenant", 8},
	    {"host", "host needs a value", 4},
	    {"host and drop", "host needs a value", 5},
	    {"host 10.0.0", "expected an IP address", 5},
	    {"host 10.0.0.0/33", "prefix length up to 32", 14},
	    {"host 10.0.0.0/", "prefix length", 14},
	    {"host fe80::/129", "prefix length up to 128", 12},
	    {"qpn -1", "expected a number", 4},
	    {"qpn 0x1000000", "expected a number up to 16777215", 4},
	    {"opcode 256", "expected a number up to 255", 7},
	    {"opcode jump", "no opcode has this name", 7},
	    {"stage lan", "expected one of lan-in, wan-out, wan-in, lan-out", 6},
	    {"decision maybe", "expected one of take, drop", 9},
	    {"drop accepted", "no drop counter has this name", 5},
	    {"drop lan_rx_packets", "no drop counter has this name", 5},
	    {"reason lan_rx_packets", "has this name", 7},
	    {"tenant blue", "no tenant has this name", 7},
	    {"(drop", "not closed", 0},
	    {"drop)", "no parenthesis is open", 4},
	    {"drop stage lan-in", "no drop counter", 5},
	    {"stage lan-in drop", "expected `and` or `or`", 13},
	    {"vni \x01", "not allowed", 4},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(parse(rows[i].text), RWY_EINVAL);
		if (!strstr(fault.text, rows[i].says) || fault.at != rows[i].at)
			fail_msg("`%s`: %u: %s", rows[i].text, fault.at, fault.text);
	}
}

static void test_filter_bounds(void **state)
{
	char text[4096] = "drop";

	for (unsigned i = 1; i < GW_CAP_STEPS / 2; i++)
		strcat(text, " or drop");
	assert_int_equal(parse(text), 0);
	assert_int_equal(filter.n, GW_CAP_STEPS - 1);
	strcat(text, " or drop");
	assert_int_equal(parse(text), RWY_EINVAL);
	assert_non_null(strstr(fault.text, "too many parts"));
	memset(text, '(', GW_CAP_DEPTH + 1);
	text[GW_CAP_DEPTH + 1] = 0;
	assert_int_equal(parse(text), RWY_EINVAL);
	assert_int_equal(fault.at, GW_CAP_DEPTH);
	memset(text, ' ', GW_CAP_FILTER_MAX + 1);
	text[GW_CAP_FILTER_MAX + 1] = 0;
	assert_int_equal(parse(text), RWY_EINVAL);
	memset(text, 'x', 200);
	text[200] = 0;
	assert_int_equal(parse(text), RWY_EINVAL);
}

/* Every reason has a name, and the same name finds it. */
static void test_reasons(void **state)
{
	char text[96];

	for (unsigned i = 1; i < GW_CAP_REASONS; i++) {
		struct gw_cap_facts f = {.reason = (uint16_t)i};

		assert_true(*gw_cap_reason_name(i));
		if (gw_cap_reason_says(i) == GW_CAP_SAYS_NOTHING)
			continue;
		snprintf(text, sizeof(text), "reason %s", gw_cap_reason_name(i));
		assert_int_equal(parse(text), 0);
		assert_true(gw_cap_filter_takes(&filter, &f));
	}
	assert_string_equal(gw_cap_reason_name(GW_CAP_REASON(drop_tx_full)), "drop_tx_full");
	assert_string_equal(gw_cap_reason_name(0), "");
	assert_string_equal(gw_cap_reason_name(GW_CAP_REASONS), "");
}

/* --- facts ------------------------------------------------------------------------------------- */

/* A RoCEv2 packet from its IP header on; returns its length. */
static uint32_t packet(uint8_t *p, uint8_t opcode, uint32_t psn, uint8_t syndrome)
{
	const uint32_t len = 20 + 8 + 12 + 16 + 4;

	memset(p, 0, len);
	p[0] = 0x45;
	rwy_put16(p + 2, (uint16_t)len);
	p[8] = 64;
	p[9] = 17;
	memcpy(p + 12, (uint8_t[]){10, 1, 0, 2, 10, 2, 0, 2}, 8);
	rwy_put16(p + 22, 4791);
	rwy_put16(p + 24, (uint16_t)(len - 20));
	p[28] = opcode;
	p[35] = 0x12;
	rwy_put32(p + 36, psn);
	p[40] = syndrome;
	return len;
}

static void test_facts_and_id(void **state)
{
	struct gw_cap_facts a = {0}, b = {0}, c = {0}, d = {.vni = 9};
	uint8_t p[128], frame[160] = {0};
	uint32_t n = packet(p, ROCE_RC_WRITE_ONLY, 7, 0);

	gw_cap_facts_ip(&a, p, n);
	assert_true(a.ip && a.roce && !a.aeth);
	assert_int_equal(a.dqpn, 0x12);
	assert_int_equal(a.psn, 7);
	assert_int_not_equal(gw_cap_id(&a), 0);
	/* what a router or a gateway changes does not change the id */
	p[8] = 3;
	p[1] = 2;
	memcpy(frame + 14, p, n);
	rwy_put16(frame + 12, 0x0800);
	gw_cap_facts_frame(&b, frame, 14 + n, true);
	assert_true(gw_cap_id(&a) == gw_cap_id(&b));
	packet(p, ROCE_RC_WRITE_ONLY, 8, 0);
	gw_cap_facts_ip(&c, p, n);
	assert_true(gw_cap_id(&a) != gw_cap_id(&c));
	packet(p, ROCE_RC_WRITE_ONLY, 7, 0);
	gw_cap_facts_ip(&d, p, n);
	assert_true(gw_cap_id(&a) != gw_cap_id(&d));
	/* every cut is read without harm */
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *exact = malloc(i ? i : 1);
		struct gw_cap_facts f = {0};

		memcpy(exact, p, i);
		gw_cap_facts_ip(&f, exact, i);
		gw_cap_facts_frame(&f, exact, i, true);
		free(exact);
	}
}

static void test_events(void **state)
{
	static const struct {
		uint8_t syndrome;
		unsigned events;
	} rows[] = {{0x1f, 0}, {0x60, GW_CAP_NAK}, {0x63, GW_CAP_NAK | GW_CAP_ERROR}, {0x21, GW_CAP_RNR}};
	uint8_t p[128];

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gw_cap_facts f = {.decision = GW_CAP_TAKE};

		gw_cap_facts_ip(&f, p, packet(p, ROCE_RC_ACK, 1, rows[i].syndrome));
		assert_int_equal(gw_cap_events(&f), rows[i].events);
	}
	assert_int_equal(gw_cap_events(&write_in), GW_CAP_DROPPED);
}

static void test_comment(void **state)
{
	struct gw_cap_facts f = write_in, back = write_in;
	char a[GW_CAP_COMMENT], b[GW_CAP_COMMENT];

	gw_cap_comment(&texts, a, &f, GW_CAP_DROPPED | GW_CAP_AGAIN);
	assert_non_null(strstr(a, "stage=lan-in flow=vni77:10.1.0.2>10.2.0.2/0x12 decision=drop "
	                          "reason=drop_low_memory conn="));
	assert_non_null(strstr(a, " event=drop,retransmit"));
	/* both directions are one connection */
	back.src = f.dst;
	back.dst = f.src;
	back.sqpn = f.dqpn;
	back.dqpn = f.sqpn;
	gw_cap_comment(&texts, b, &back, 0);
	assert_memory_equal(strstr(a, "conn="), strstr(b, "conn="), 21);
	memset(&f.src, 0xfd, 16);
	memset(&f.dst, 0xfe, 16);
	gw_cap_comment(&texts, a, &f, 31);
	assert_true(strlen(a) < GW_CAP_COMMENT - 1);
}

/* --- the WAN ----------------------------------------------------------------------------------- */

static struct gw_cap_frags frags;

/* A datagram with an ACK, DELIVERED and the part of a packet from off on. */
static uint32_t datagram(uint8_t *p, const struct wan_f_data *d, const uint8_t *part, uint32_t len)
{
	const struct wan_f_ack ack = {.n = 2, .r = {{90, 100}, {10, 20}}};
	uint8_t *at = p + WAN_PKT_HDR;

	wan_pkt_put(p, &(struct wan_pkt){.version = WAN_VERSION, .index = 1, .pn = 5});
	at = wan_f_ack_put(at, 200, &ack);
	*at++ = WAN_F_PING;
	*at++ = WAN_F_DELIVERED;
	*at++ = 1;
	at += WAN_DELIVERED_ENTRY;
	at = wan_f_data_put(at, d);
	memcpy(at, part, len);
	return (uint32_t)(at - p) + len;
}

static void test_wan(void **state)
{
	struct gw_cap_facts lan = {0}, wan = {.stage = GW_CAP_WAN_OUT}, more = wan, other = wan;
	struct wan_f_data d = {.flow = 3, .seq = 9, .kind = RWY_BUF_PACKET};
	uint8_t p[128], g[512] = {0};
	uint32_t n = packet(p, ROCE_RC_WRITE_ONLY, 7, 0), len;

	gw_cap_facts_ip(&lan, p, n);
	len = datagram(g, &d, p, n);
	assert_true(gw_cap_facts_wan(&wan, &frags, g, len));
	assert_true(gw_cap_id(&wan) == gw_cap_id(&lan) && wan.dqpn == 0x12);
	for (uint32_t i = 0; i < len; i++) {
		uint8_t *exact = malloc(i ? i : 1);
		struct gw_cap_facts f = {.stage = GW_CAP_WAN_IN};

		memcpy(exact, g, i);
		gw_cap_facts_wan(&f, &frags, exact, i);
		free(exact);
	}
	/* a run is known by its first packet */
	d.run = 2;
	d.first = (uint16_t)n;
	wan = (struct gw_cap_facts){.stage = GW_CAP_WAN_OUT};
	len = datagram(g, &d, p, n);
	rwy_put16(g + len, (uint16_t)n);
	memcpy(g + len + WAN_RUN_NEXT, p, n);
	assert_true(gw_cap_facts_wan(&wan, &frags, g, len + WAN_RUN_NEXT + n));
	assert_true(gw_cap_id(&wan) == gw_cap_id(&lan) && wan.dqpn == 0x12);
	assert_false(gw_cap_facts_wan(&wan, &frags, g, len + WAN_RUN_NEXT + n - 1));
	/* and so is a bundle */
	d.bundle = true;
	wan = (struct gw_cap_facts){.stage = GW_CAP_WAN_OUT};
	len = datagram(g, &d, p, n);
	memcpy(wan_f_bundle_put(g + len, &d, n), p, n);
	assert_true(gw_cap_facts_wan(&wan, &frags, g, len + WAN_BUNDLE_ENTRY + n));
	assert_true(gw_cap_id(&wan) == gw_cap_id(&lan) && wan.dqpn == 0x12);
	d.bundle = false;
	d.run = 0;
	/* a later fragment is known by its first one, at the same stage */
	d.frag = true;
	d.total = (uint16_t)n;
	d.fsize = 48;
	wan = (struct gw_cap_facts){.stage = GW_CAP_WAN_OUT};
	len = datagram(g, &d, p, 48);
	assert_true(gw_cap_facts_wan(&wan, &frags, g, len));
	assert_true(gw_cap_id(&wan) == gw_cap_id(&lan) && !wan.later);
	d.index = 1;
	len = datagram(g, &d, p + 48, n - 48);
	assert_true(gw_cap_facts_wan(&more, &frags, g, len));
	assert_true(gw_cap_id(&more) == gw_cap_id(&lan) && more.later);
	other.stage = GW_CAP_WAN_IN;
	assert_false(gw_cap_facts_wan(&other, &frags, g, len));
	/* a sealed one is not read */
	g[3] = 1;
	assert_false(gw_cap_facts_wan(&other, &frags, g, len));
}

/* --- the ring ---------------------------------------------------------------------------------- */

static void test_ring(void **state)
{
	struct gw_cap_ring r = {.size = 4096};
	uint32_t made = 0, read = 0;

	r.mem = aligned_alloc(64, r.size);
	/* records of many sizes, read at another pace: all come out, in order and whole */
	for (unsigned round = 0; round < 20000; round++) {
		const uint32_t len = (round * 37) % 700;
		struct gw_cap_rec *rec = gw_cap_ring_room(&r, len);
		const struct gw_cap_rec *got;

		if (rec) {
			rec->facts.psn = made++;
			memset(gw_cap_rec_bytes(rec), (int)(rec->facts.psn & 255), len);
			assert_true(gw_cap_ring_first(&r) == NULL || gw_cap_ring_first(&r) != rec);
			gw_cap_ring_publish(&r);
		}
		if (rec && round % 3)
			continue;
		while ((got = gw_cap_ring_first(&r)) && (round % 5 || !rec)) {
			assert_int_equal(got->facts.psn, read++);
			for (uint32_t i = 0; i < got->len; i++)
				assert_int_equal(gw_cap_rec_bytes(got)[i], got->facts.psn & 255 & 255);
			gw_cap_ring_pop(&r, got);
		}
	}
	assert_true(made > 10000 && read > made - 20);
	free(r.mem);
}

/* A worker's part: what the filter takes is copied or counted as lost. */
static void test_put(void **state)
{
	static struct gw_capture cap;
	static struct gw_cap_worker cw;
	static struct gw_counters c;
	uint8_t bytes[300];
	const struct iovec part[] = {{bytes, 100}, {bytes, 200}};
	const struct gw_cap_rec *r;
	unsigned n = 0;

	memset(bytes, 7, sizeof(bytes));
	cw = (struct gw_cap_worker){.cap = &cap, .c = &c, .ring.size = 4096};
	cw.ring.mem = aligned_alloc(64, 4096);
	cap.snap = 150;
	assert_int_equal(gw_cap_filter_parse(&cap.filter, "drop", NULL, NULL, &fault), 0);
	gw_cap_put(&cw, &write_in, 1, 5, part, 2);
	r = gw_cap_ring_first(&cw.ring);
	assert_non_null(r);
	assert_int_equal(r->len, 150);
	assert_int_equal(r->wire_len, 300);
	assert_int_equal(gw_cap_rec_bytes(r)[149], 7);
	gw_cap_put(&cw, &(struct gw_cap_facts){.decision = GW_CAP_TAKE}, 1, 5, part, 2);
	assert_int_equal(cw.taken[2], 1);
	/* full */
	for (unsigned i = 0; i < 100; i++)
		gw_cap_put(&cw, &write_in, 1, 5, part, 2);
	assert_int_equal(cw.taken[2], 101);
	assert_true(cw.lost[2] > 50 && c.capture_lost == cw.lost[2]);
	for (; (r = gw_cap_ring_first(&cw.ring)); n++)
		gw_cap_ring_pop(&cw.ring, r);
	assert_int_equal(n + cw.lost[2], 101);
	/* the rate */
	cap.limited = true;
	cap.budget = 3;
	for (unsigned i = 0; i < 5; i++)
		gw_cap_put(&cw, &write_in, 1, 5, part, 2);
	assert_int_equal(c.capture_over_rate, 2);
	free(cw.ring.mem);
}

/* A frame that is refused leaves no gap behind the last one that stays, and one before it is passed over. */
static void test_refused(void **state)
{
	static struct gw_capture cap = {.snap = 100};
	static struct gw_cap_worker cw = {.cap = &cap, .open = true};
	struct gw_counters c = {0};
	struct gw_cap_rec *first, *second, *last;
	uint32_t end;

	cw.c = &c;
	cw.ring.size = 4096;
	cw.ring.mem = aligned_alloc(64, 4096);
	first = gw_cap_place(&cw, 60);
	first->skip = true;
	second = gw_cap_place(&cw, 300);
	assert_int_equal(second->len, 100);
	end = cw.ring.next;
	last = gw_cap_place(&cw, 60);
	last->skip = true;
	assert_true(gw_cap_keep(&cw, second, end, &write_in, 1, 5, 300));
	gw_cap_publish(&cw);
	assert_null(gw_cap_ring_first(&cw.ring)); /* frames before it may not stay */
	cw.open = false;
	gw_cap_publish(&cw);
	assert_int_equal(cw.ring.next, end);
	assert_ptr_equal(gw_cap_ring_first(&cw.ring), second);
	gw_cap_ring_pop(&cw.ring, second);
	assert_null(gw_cap_ring_first(&cw.ring));
	free(cw.ring.mem);
}

/* --- before a packet is handled ----------------------------------------------------------------- */

static void test_filter_may(void **state)
{
	struct gw_cap_facts f = write_in;
	static const struct {
		const char *text;
		bool may, unread;
	} of[] = {{"", true, true}, {"stage lan-in", true, true}, {"stage wan-out", false, false},
	    {"drop", true, true}, {"not drop", true, true}, {"stage wan-out and drop", false, false},
	    {"stage wan-out or drop", true, true}, {"not (stage lan-in or drop)", false, false},
	    {"dst 203.0.113.9", false, true}, {"not dst 203.0.113.9", true, true},
	    {"dst 203.0.113.9 and drop", false, true}, {"opcode cnp", false, true}, {"qpn 0x999", true, true},
	    {"reason accepted", true, true}};

	f.stage = GW_CAP_LAN_IN;
	f.sqpn = 0;
	for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		assert_int_equal(parse(of[i].text), 0);
		f.unread = false;
		assert_int_equal(gw_cap_filter_may(&filter, &f), of[i].may);
		f.unread = true;
		assert_int_equal(gw_cap_filter_may(&filter, &f), of[i].unread);
	}
	assert_int_equal(parse("qpn 0x999"), 0);
	assert_true(filter.asks_qpn);
	f.unread = false;
	f.sqpn = 0x111;
	assert_false(gw_cap_filter_may(&filter, &f));
}

/* --- pcapng ------------------------------------------------------------------------------------ */

static void test_pcapng(void **state)
{
	uint8_t mem[1024];
	struct gw_cap_out o = {.data = mem, .max = sizeof(mem)};
	const char *const comment[] = {"one", "two", NULL};
	struct gw_cap_epb p = {.interface = 0,
	    .time = 1,
	    .len = 5,
	    .wire_len = 9,
	    .data = mem,
	    .comment = "x",
	    .comment_len = 1};
	uint32_t type, len, blocks = 0;

	assert_true(gw_cap_put_section(&o, "test", comment));
	assert_true(gw_cap_put_interface(&o, "lan lan-in", "", 9000));
	while (gw_cap_put_packet(&o, &p))
		;
	assert_true(o.len <= o.max && o.len > o.max - 110);
	for (size_t at = 0; at < o.len; at += len, blocks++) {
		memcpy(&type, mem + at, 4);
		memcpy(&len, mem + at + 4, 4);
		assert_true(len >= 12 && len % 4 == 0 && at + len <= o.len);
		assert_memory_equal(mem + at + len - 4, &len, 4);
		assert_int_equal(type, blocks == 0 ? 0x0a0d0d0a : blocks == 1 ? 1 : 6);
	}
	assert_true(blocks > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_filter_takes),
	    cmocka_unit_test(test_filter_faults),
	    cmocka_unit_test(test_filter_bounds),
	    cmocka_unit_test(test_reasons),
	    cmocka_unit_test(test_facts_and_id),
	    cmocka_unit_test(test_events),
	    cmocka_unit_test(test_comment),
	    cmocka_unit_test(test_wan),
	    cmocka_unit_test(test_ring),
	    cmocka_unit_test(test_put),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_filter_may),
	    cmocka_unit_test(test_pcapng),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
