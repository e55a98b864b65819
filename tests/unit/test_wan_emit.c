/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One datagram of each frame of the native carrier, and a HELLO. Without an argument it checks that
 * they decode. With the name of a file it writes them there as pcap and says on standard output, one
 * line a datagram, which fields are in it: dissector.py compares that with what tshark sees through
 * tools/dissector/roceway.lua.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/msg.h"
#include "rwy/checksum.h"
#include "rwy/endian.h"
#include "tests/lib/rc_pkt.h"
#include "wan/wire/pkt.h"

#define IP_LEN   20
#define UDP_LEN  8
#define ETH_LEN  14
#define DGRAM    2048
#define UDP_PORT 4793

static FILE *pcap;
static unsigned count;

static void put32(uint32_t v) /* pcap: this machine's order */
{
	assert_int_equal(fwrite(&v, 4, 1, pcap), 1);
}

/* Writes the datagram [d, end) and its line: the name, then "field=value" words. */
static void emit(uint8_t *d, uint8_t *end, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void emit(uint8_t *d, uint8_t *end, const char *name, const char *fmt, ...)
{
	uint16_t len = (uint16_t)(end - d);
	uint8_t head[ETH_LEN + IP_LEN + UDP_LEN] = {[12] = 8, [ETH_LEN] = 0x45, [ETH_LEN + 6] = 0x40},
	                                copy[DGRAM];
	uint8_t *ip = head + ETH_LEN, *udp = ip + IP_LEN;
	va_list ap;

	wan_pkt_seal(d, len, NULL, 0);
	memcpy(copy, d, len);
	assert_true(wan_pkt_open(copy, len));
	count++;
	if (!pcap)
		return;
	rwy_put16(ip + 2, (uint16_t)(IP_LEN + UDP_LEN + len));
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, (uint8_t[]){192, 0, 2, 1, 198, 51, 100, 2}, 8);
	rwy_put16(ip + 10, (uint16_t)~rwy_csum(ip, IP_LEN));
	rwy_put16(udp, UDP_PORT);
	rwy_put16(udp + 2, UDP_PORT);
	rwy_put16(udp + 4, (uint16_t)(UDP_LEN + len));
	put32(count);
	put32(0);
	put32((uint32_t)sizeof(head) + len);
	put32((uint32_t)sizeof(head) + len);
	assert_int_equal(fwrite(head, sizeof(head), 1, pcap), 1);
	assert_int_equal(fwrite(d, len, 1, pcap), 1);
	printf("%s ", name);
	if ((*d & 15) == WAN_PKT_FRAMES)
		printf("pn=%u path=2 index=0x00abcdef ", 1000 + count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* A header; frames go behind it. */
static uint8_t *begin(uint8_t *d)
{
	struct wan_pkt h = {.version = WAN_VERSION, .path = 2, .index = 0xabcdef, .pn = 1001 + count};

	memset(d, 0, DGRAM);
	wan_pkt_put(d, &h);
	return d + WAN_PKT_HDR;
}

static void emit_acks(void)
{
	struct wan_f_ack a = {.path = 1,
	    .n = 3,
	    .delay_us = 77,
	    .at_us = 0xfffffff0,
	    .r = {{5000000000, 5000000100}, {4999000000, 4999999998}, {3, 7}}};
	uint8_t d[DGRAM], *p = begin(d);

	p = wan_f_ack_put(p, 200, &a);
	emit(d, p, "ACK",
	    "ack.largest=5000000100 ack.delay=77 ack.at=4294967280 ack.ranges=3 "
	    "ack.range=5000000000-5000000100,4999000000-4999999998,3-7");
	a.has_ecn = true;
	a.ect0 = 9;
	a.ect1 = 8;
	a.ce = 7;
	p = wan_f_ack_put(begin(d), 200, &a);
	emit(d, p, "ACK_ECN", "ack.ranges=3 ack.ect0=9 ack.ect1=8 ack.ce=7");
}

static uint8_t *put_counts(uint8_t *p)
{
	*p++ = WAN_F_DELIVERED;
	*p++ = 2;
	for (uint32_t i = 0; i < 2; i++, p += WAN_DELIVERED_ENTRY) {
		rwy_put32(p, 0x100001 + i);
		rwy_put32(p + 4, 50 + i);
	}
	return p;
}

static void emit_small(void)
{
	uint8_t d[DGRAM], *p = begin(d);

	*p++ = WAN_F_PING;
	emit(d, p, "PING", " ");
	emit(d, put_counts(begin(d)), "DELIVERED", "count=2 flow=0x00100001,0x00100002 delivered=50,51");
	p = begin(d);
	*p = WAN_F_CREDIT;
	rwy_put32(p + 1, 4096);
	rwy_put64(p + 5, 1ull << 33);
	emit(d, p + WAN_CREDIT_LEN, "CREDIT", "credit.buffers=4096 credit.bytes=8589934592");
	p = begin(d);
	*p = WAN_F_RATE;
	p[1] = 1;
	rwy_put32(p + 2, 0x200003);
	rwy_put64(p + 6, 65536);
	rwy_put64(p + 14, 1250000000);
	emit(d, p + WAN_RATE_HEAD + WAN_RATE_ENTRY, "RATE",
	    "count=1 flow=0x00200003 rate.window=65536 rate.drain=1250000000");
	p = begin(d);
	*p = WAN_F_ABORT;
	rwy_put32(p + 1, 8);
	p += WAN_ABORT_LEN;
	*p = WAN_F_RESET;
	rwy_put32(p + 1, 9);
	emit(d, p + WAN_RESET_LEN, "ABORT", "flow=0x00000008,0x00000009 frame=0x07,0x08");
	p = begin(d);
	*p = WAN_F_REBUILT;
	p[1] = 3;
	p[2] = 1;
	rwy_put64(p + 3, 123456789012);
	p[11] = 4;
	emit(d, p + WAN_REBUILT_HEAD + WAN_REBUILT_ENTRY, "REBUILT",
	    "rebuilt.first=123456789012 rebuilt.more=4");
}

static void emit_data(void)
{
	uint8_t d[DGRAM], info[ENG_OPEN_LEN], inner[RC_PKT_MAX], *p;
	struct eng_open o = {.type = ENG_OPEN_REQ,
	    .rnr_retry = 7,
	    .retry = 255,
	    .ack_timeout = 19,
	    .pmtu = 1024,
	    .incarnation = 3,
	    .peer_qpn = 0x11,
	    .vni = 5001,
	    .key = {.src = rwy_ip_from4((const uint8_t[]){10, 1, 0, 2}),
	        .dst = rwy_ip_from4((const uint8_t[]){10, 2, 0, 3}),
	        .qpn = 0x12}};
	struct rc_mk m = {
	    .opcode = ROCE_RC_WRITE_ONLY, .psn = 77, .dqpn = 0x12, .len = 256, .payload_len = 256};
	uint32_t len = rc_pkt_make(inner, &m);
	struct wan_f_data f = {.open = true, .flow = 0x300004, .seq = 9, .base = 9, .info = info};

	f.info_len = (uint8_t)eng_open_encode(info, &o);
	/* Control frames come before the data. */
	p = wan_f_data_put(put_counts(begin(d)), &f);
	memcpy(p, inner, len);
	emit(d, p + len, "DATA",
	    "data.open=1 kind=0 tagged=0 seq=9 open.base=9 open.type=1 open.rnr_retry=7 open.retry=255 "
	    "open.ack_timeout=19 open.pmtu=1024 "
	    "incarnation=3 open.peer_qpn=0x00000011 open.src=10.1.0.2 open.dst=10.2.0.3 qpn=0x00000012 "
	    "vni=5001 "
	    "infiniband.bth.destqp=0x000012 infiniband.bth.psn=77");
	f = (struct wan_f_data){.frag = true, .flow = 1, .seq = 2, .total = 4096, .fsize = 1400, .index = 1};
	p = wan_f_data_put(begin(d), &f);
	memset(p, 0x45, 1400);
	emit(d, p + 1400, "FRAGMENT", "data.frag=1 frag.total=4096 frag.size=1400 frag.index=1");
	f = (struct wan_f_data){.kind = 3, .flow = 1, .seq = 2, .wait = true, .after = {7, 19}};
	p = wan_f_data_put(begin(d), &f);
	rwy_put32(p, 0x300004);
	rwy_put32(p + 4, 21);
	emit(d, p + 8, "ORDER",
	    "data.wait=1 kind=3 after.flow=0x00000007 after.count=19 order.flow=0x00300004 order.count=21");
	struct eng_ctrl c = {.type = ENG_CTRL_FAIL,
	    .syndrome = 0x62,
	    .end = ENG_END_REFUSED,
	    .incarnation = 3,
	    .qpn = 0x11,
	    .psn = 500,
	    .msn = 20};

	f = (struct wan_f_data){.kind = 1, .flow = 1, .seq = 3};
	p = wan_f_data_put(begin(d), &f);
	eng_ctrl_encode(p, &c);
	emit(d, p + ENG_CTRL_LEN, "CONTROL",
	    "kind=1 control=3 control.syndrome=0x62 control.end=1 incarnation=3 qpn=0x00000011 psn=500 "
	    "msn=20");
	f = (struct wan_f_data){.dgram = true, .kind = 2, .pcp = 8 + 5};
	p = wan_f_data_put(begin(d), &f);
	rwy_put32(p, 5001);
	memcpy(p + 4, inner, len);
	emit(d, p + 4 + len, "DGRAM", "kind=2 tagged=1 pcp=5 vni=5001 infiniband.bth.psn=77");
}

/* Three packets in one datagram, the second one shorter. */
static void emit_run(void)
{
	uint8_t d[DGRAM], inner[RC_PKT_MAX], *p = NULL;

	for (unsigned i = 0; i < 3; i++) {
		uint32_t size = i == 1 ? 8 : 64;
		struct rc_mk m = {.opcode = ROCE_RC_WRITE_ONLY,
		    .psn = 100 + i,
		    .dqpn = 0x12,
		    .len = size,
		    .payload_len = size};
		uint32_t len = rc_pkt_make(inner, &m);

		if (!i) {
			struct wan_f_data f = {
			    .flow = 0x300004, .seq = 9, .pcp = 8 + 3, .run = 3, .first = (uint16_t)len};

			p = wan_f_data_put(put_counts(begin(d)), &f);
		} else {
			rwy_put16(p, (uint16_t)len);
			p += WAN_RUN_NEXT;
		}
		memcpy(p, inner, len);
		p += len;
	}
	emit(d, p, "RUN",
	    "kind=0 tagged=1 pcp=3 seq=9 run.packets=3 run.length=124,68,124 "
	    "infiniband.bth.psn=100,101,102");
}

/* Packets of two flows in one datagram. */
static void emit_bundle(void)
{
	uint8_t d[DGRAM], inner[RC_PKT_MAX], *p = begin(d);

	for (unsigned i = 0; i < 2; i++) {
		struct rc_mk m = {
		    .opcode = ROCE_RC_WRITE_ONLY, .psn = 200 + i, .dqpn = 0x12, .len = 8, .payload_len = 8};
		uint32_t len = rc_pkt_make(inner, &m);
		struct wan_f_data f = {.flow = 0x300004 + i,
		    .seq = 9 - i,
		    .pcp = 8 + 3,
		    .bundle = true,
		    .run = 2,
		    .first = (uint16_t)len};

		p = i ? wan_f_bundle_put(p, &f, len) : wan_f_data_put(p, &f);
		memcpy(p, inner, len);
		p += len;
	}
	emit(d, p, "BUNDLE",
	    "kind=0,0 tagged=1,1 pcp=3,3 flow=0x00300004,0x00300005 seq=9,8 bundle.packets=2 "
	    "bundle.length=68,68 infiniband.bth.psn=200,201");
}

static void emit_repairs(void)
{
	struct wan_f_repair r = {
	    .path = 2, .depth = 4, .k = 3, .m = 2, .index = 1, .first = 990, .map_len = 1, .map = {0x0b}};
	uint8_t d[DGRAM], *p = wan_f_repair_put(begin(d), &r);

	memset(p, 0x5a, 40);
	emit(d, p + 40, "REPAIR",
	    "repair.depth=4 repair.k=3 repair.m=2 repair.index=1 repair.first=990 repair.map=0b");
	r.shared = true;
	r.span = 16;
	r.gaps = true;
	p = wan_f_repair_put(begin(d), &r);
	memset(p, 0x5a, 40);
	emit(d, p + 40, "SHARED", "repair.span=16 repair.gaps=1 repair.depth=4");
}

static void emit_hello(void)
{
	struct wan_f_hello h = {.flags = WAN_HELLO_WANT | WAN_HELLO_FEC | WAN_HELLO_PCP |
	                                 WAN_HELLO_TAKE << WAN_HELLO_CLAIM | WAN_HELLO_HELD,
	    .claim = WAN_HELLO_INHERIT | 7,
	    .mtu = 1472,
	    .index = 0x12345678,
	    .tunnel_id = 0x1111,
	    .epoch = 0x2222,
	    .nonce = 0x3333,
	    .echo = 0x4444,
	    .echo_epoch = 0x5555,
	    .rx_window = 4096,
	    .ack_delay_us = 1000,
	    .rx_bytes = 1 << 30,
	    .more = WAN_HELLO_RUN | WAN_HELLO_BUNDLE};
	struct wan_pkt head = {.version = WAN_VERSION, .type = WAN_PKT_HELLO};
	uint8_t d[DGRAM] = {0};

	wan_pkt_put(d, &head);
	emit(d, wan_f_hello_put(d + WAN_PKT_HDR, &h), "HELLO",
	    "type=1 hello.want=1 hello.fec=1 hello.pcp=1 hello.mtu=1472 hello.index=0x12345678 "
	    "hello.tunnel_id=0x0000000000001111 "
	    "hello.epoch=0x0000000000002222 hello.nonce=0x0000000000003333 hello.echo=0x0000000000004444 "
	    "hello.echo_epoch=0x0000000000005555 hello.rx_window=4096 hello.ack_delay=1000 "
	    "hello.rx_bytes=1073741824 hello.claim=2 hello.held=1 hello.gone=0 hello.inherit=1 "
	    "hello.claim_number=7 hello.run=1 hello.bundle=1");
}

static void emit_all(void **state)
{
	emit_acks();
	emit_small();
	emit_data();
	emit_run();
	emit_bundle();
	emit_repairs();
	emit_hello();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(emit_all),
	};
	static const uint32_t head[6] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65535, 1};

	if (argc > 1) {
		pcap = fopen(argv[1], "wb");
		if (!pcap || fwrite(head, sizeof(head), 1, pcap) != 1) {
			perror(argv[1]);
			return 1;
		}
		emit_all(NULL);
		return fclose(pcap) ? 1 : 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
