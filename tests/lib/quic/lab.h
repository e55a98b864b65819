/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ends of gateway/carrier/quic.h over a link in virtual time, which delays datagrams, loses
 * some, or dies. A opens the connection. Bytes of all streams are checked as they arrive. The same
 * seed gives the same random values. Include cmocka.h before.
 */
#ifndef TESTS_LIB_QUIC_LAB_H
#define TESTS_LIB_QUIC_LAB_H

#include "gateway/carrier/quic.h"

#define QL_STREAMS 9
#define QL_DELAY   (10 * RWY_MS)
#define QL_HELD    65536 /* datagrams on the link */
#define QL_TO_END  (60 * RWY_SEC)

enum { QL_A, QL_B, QL_SITES };

/* A datagram on the link. */
struct ql_held {
	rwy_time at;
	unsigned to;
	uint16_t n;
	uint8_t ecn;
	uint8_t *p; /* malloced */
};

struct ql_site {
	struct gw_quic_end *end;
	struct gw_quic_conn *conn;
	struct gw_quic_addr addr;
	const char *expects; /* name of the other's certificate */
	bool opened, closed;
	char why[GW_QUIC_WHY];
	uint64_t got[QL_STREAMS], put[QL_STREAMS]; /* bytes */
	uint64_t wrong;                            /* of those that came */
};

struct quic_lab {
	struct ql_site site[QL_SITES];
	struct ql_held held[QL_HELD];
	unsigned head, tail; /* FIFO: the delay is constant */
	rwy_time now;
	unsigned loss_ppm, drop_next; /* datagrams lost at random; so many next ones are lost */
	bool cut;                     /* all are lost */
	uint64_t seed;
	char dir[64]; /* of the certificates */
	struct gw_quic_cfg cfg;
};

extern struct quic_lab ql;

/* A random value below 2^31. */
uint32_t ql_draw(void);
/* Bytes of a stream are a function of its number and the offset. */
uint8_t ql_byte(unsigned stream, uint64_t at);
/* Writes, up to `each` bytes, as much as there is room for on all streams. */
void ql_feed(struct ql_site *s, uint64_t each);

/* Both ends send `each` bytes on each stream. Runs until the condition holds; false: it does not
 * within `limit`. */
bool ql_run(bool (*until)(uint64_t each), uint64_t each, rwy_dur limit);
/* Conditions: all bytes arrived; both ends have a connection; none. */
bool ql_all_got(uint64_t each);
bool ql_both_open(uint64_t unused);
bool ql_never(uint64_t unused);

/* Both ends with these certificates and CAs; A opens. */
void ql_begin(const char *a, const char *ca_a, const char *b, const char *ca_b);
/* One end; crl: a revocation list, or NULL. All are names of files in ql.dir. */
void ql_end_make(unsigned i, const char *cert, const char *ca, const char *crl);
/* A opens a connection. */
void ql_dial(void);
/* Begins with good certificates, and all streams carry `each` bytes both ways. */
void ql_move(uint64_t each);

/* Before a test: the default configuration, the same seed, a clean link. After it: no ends, and
 * nothing on the link. */
int ql_set_up(void **state);
int ql_tear_down(void **state);
#define QL_TEST(f) cmocka_unit_test_setup_teardown(f, ql_set_up, ql_tear_down)

/*
 * A test program's main: makes a CA `ca`, the certificates `a` (site-a) and `b` (site-b), and those
 * of `certificates` unless it is NULL; runs `tests`; removes the files. The exit code.
 */
struct cert_ca;
int ql_main(void (*certificates)(struct cert_ca *ca), int (*tests)(void));

#endif
