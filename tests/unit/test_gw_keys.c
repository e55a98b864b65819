/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Key exchanges (gateway/keys/exchange.h) between two ends in memory: both get the same secret;
 * certificates with something wrong are refused and named; a peer that says nonsense, or too much,
 * is bounded; a chain is checked again against a newer list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crl.h"
#include "gateway/keys/exchange.h"
#include "tests/lib/cert/cert.h"
#include "tests/lib/rng.h"

enum { C, S, ENDS };

static char dir[64];
static struct gw_cert *cert[ENDS];
static struct gw_kx *kx[ENDS];
static enum gw_kx_event last[ENDS];
static const struct gw_kx_offer offer = {
    .tunnel = 0x1122334455667788, .epoch = 7, .workers = 2, .alg = AEAD_AES_256_GCM};

static const char *path(unsigned i, const char *file, const char *end)
{
	static char mem[4][128];

	snprintf(mem[i], sizeof(mem[i]), "%s/%s.%s", dir, file, end);
	return mem[i];
}

static int read_cert(struct gw_cert **out, const char *name, const char *ca, const char *crl, char *why)
{
	const struct gw_cert_files f = {
	    path(0, name, "pem"), path(1, name, "key"), path(2, ca, "pem"), crl ? path(3, crl, "crl") : NULL};

	return gw_cert_read(out, &f, why, GW_CERT_WHY);
}

/* Writes a file of two. */
static void join(const char *to, const char *end, const char *const from[2])
{
	char cmd[512];

	snprintf(cmd, sizeof(cmd), "cat %s %s > %s", path(0, from[0], end), path(1, from[1], end),
	    path(2, to, end));
	assert_int_equal(system(cmd), 0);
}

/* Another CA of the same name, with a list. */
static void twin_new(void)
{
	struct cert_ca *twin;
	char folder[80];

	snprintf(folder, sizeof(folder), "%s/twin", dir);
	assert_int_equal(mkdir(folder, 0700), 0);
	twin = cert_ca_new(folder, "ca");
	cert_make(twin, &(struct cert_spec){.file = "leaf", .name = "leaf.net"});
	cert_revoke_last(twin, "list", 100);
	cert_ca_free(twin);
}

static void certs(const char *client, const char *server, const char *ca_of_server, const char *crl)
{
	char why[GW_CERT_WHY];

	assert_int_equal(read_cert(&cert[C], client, "ca", NULL, why), 0);
	assert_int_equal(read_cert(&cert[S], server, ca_of_server, crl, why), 0);
}

static void begin(const char *name)
{
	assert_int_equal(gw_kx_client(&kx[C], cert[C], &offer, name), 0);
	assert_int_equal(gw_kx_server(&kx[S], cert[S]), 0);
	last[C] = last[S] = GW_KX_EV_NONE;
}

static void end(void)
{
	for (unsigned i = 0; i < ENDS; i++) {
		gw_kx_free(kx[i]);
		gw_cert_free(cert[i]);
		kx[i] = NULL;
		cert[i] = NULL;
	}
}

/* Carries up to `piece` bytes at a time until both wait, or one has an event. */
static void run(size_t piece)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (unsigned i = 0; i < ENDS; i++) {
			size_t n;
			const uint8_t *p;

			last[i] = gw_kx_step(kx[i]);
			p = gw_kx_output(kx[i], &n);
			if (n > piece)
				n = piece;
			if (n && gw_kx_state(kx[!i]) != GW_KX_FAILED)
				assert_int_equal(gw_kx_input(kx[!i], p, n), 0);
			gw_kx_sent(kx[i], n);
			moved |= n > 0;
			if (last[i] != GW_KX_EV_NONE)
				return;
		}
	}
}

/* Goes on until this end has this event. */
static void until(unsigned who, enum gw_kx_event ev, size_t piece)
{
	for (unsigned i = 0; i < 100; i++) {
		run(piece);
		if (last[who] == ev)
			return;
	}
	fail_msg("no event %d: client %s %s, server %s %s", ev, gw_kx_state_name(gw_kx_state(kx[C])),
	    gw_kx_why(kx[C]), gw_kx_state_name(gw_kx_state(kx[S])), gw_kx_why(kx[S]));
}

/* The whole course; both ends' secrets are the same, and no two exchanges' are. */
static struct aead_secret whole(size_t piece)
{
	struct aead_secret secret;

	begin("b.net");
	until(S, GW_KX_EV_ASKED, piece);
	assert_memory_equal(gw_kx_offer(kx[S]), &offer, sizeof(offer));
	assert_int_equal(gw_kx_accept(kx[S], 9), 0);
	secret = gw_kx_result(kx[S])->secret;
	assert_int_equal(gw_kx_result(kx[S])->own_epoch, 9);
	assert_int_equal(gw_kx_result(kx[S])->peer_epoch, 7);
	gw_kx_installed(kx[S]);
	until(C, GW_KX_EV_KEYS, piece);
	assert_int_equal(gw_kx_result(kx[C])->own_epoch, 7);
	assert_int_equal(gw_kx_result(kx[C])->peer_epoch, 9);
	assert_memory_equal(&gw_kx_result(kx[C])->secret, &secret, sizeof(secret));
	gw_kx_installed(kx[C]);
	until(S, GW_KX_EV_READY, piece);
	assert_int_equal(gw_kx_state(kx[C]), GW_KX_DONE);
	assert_int_equal(gw_kx_state(kx[S]), GW_KX_DONE);
	for (unsigned i = 0; i < sizeof(secret); i++) /* nobody keeps it */
		assert_int_equal(gw_kx_result(kx[C])->secret.b[i] | gw_kx_result(kx[S])->secret.b[i], 0);
	return secret;
}

static void test_both_get_the_secret(void **state)
{
	static const size_t pieces[] = {SIZE_MAX, 1400, 17, 1};
	struct aead_secret before = {{0}}, now;

	for (unsigned i = 0; i < 4; i++) {
		certs("a", "b", "ca", NULL);
		now = whole(pieces[i]);
		assert_memory_not_equal(&now, &before, sizeof(now));
		before = now;
		end();
	}
}

/* The server's workers cannot tell the keys from others, twice: both ends have the third secret. */
static void test_another_secret(void **state)
{
	struct aead_secret s[3];
	unsigned n = 0;

	certs("a", "b", "ca", NULL);
	begin("b.net");
	until(S, GW_KX_EV_ASKED, SIZE_MAX);
	assert_int_equal(gw_kx_accept(kx[S], 9), 0);
	s[0] = gw_kx_result(kx[S])->secret;
	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(gw_kx_again(kx[S]), 0);
		s[i] = gw_kx_result(kx[S])->secret;
		assert_memory_not_equal(&s[i], &s[i - 1], sizeof(s[i]));
	}
	gw_kx_installed(kx[S]);
	until(C, GW_KX_EV_KEYS, SIZE_MAX);
	assert_memory_equal(&gw_kx_result(kx[C])->secret, &s[2], sizeof(s[2]));
	gw_kx_installed(kx[C]);
	until(S, GW_KX_EV_READY, SIZE_MAX);
	end();
	/* not for ever */
	certs("a", "b", "ca", NULL);
	begin("b.net");
	until(S, GW_KX_EV_ASKED, SIZE_MAX);
	assert_int_equal(gw_kx_accept(kx[S], 9), 0);
	while (gw_kx_again(kx[S]) == 0)
		n++;
	assert_int_equal(n, 15);
	end();
}

/* An active gateway gives its standby the secret of an exchange that it made in its name. */
static void test_standby_keeps(void **state)
{
	static const size_t pieces[] = {SIZE_MAX, 17, 1};
	struct gw_kx_result keys = {.own_epoch = 7, .peer_epoch = 9};

	for (unsigned i = 0; i < AEAD_SECRET; i++)
		keys.secret.b[i] = (uint8_t)(i + 1);
	for (unsigned i = 0; i < 4; i++) {
		certs("a", "b", "ca", NULL);
		assert_int_equal(gw_kx_client_keep(&kx[C], cert[C], offer.tunnel, &keys, "b.net"), 0);
		assert_int_equal(gw_kx_server(&kx[S], cert[S]), 0);
		until(S, GW_KX_EV_KEEP, i < 3 ? pieces[i] : SIZE_MAX);
		assert_int_equal(gw_kx_offer(kx[S])->tunnel, offer.tunnel);
		assert_memory_equal(gw_kx_result(kx[S]), &keys, sizeof(keys));
		if (i == 3) {
			gw_kx_refuse(kx[S], GW_KX_R_NO_STANDBY);
			until(C, GW_KX_EV_FAILED, SIZE_MAX);
			assert_int_equal(gw_kx_refused(kx[C]), GW_KX_R_NO_STANDBY);
			end();
			continue;
		}
		gw_kx_installed(kx[S]);
		until(C, GW_KX_EV_KEPT, pieces[i]);
		for (unsigned e = 0; e < ENDS; e++) {
			assert_int_equal(gw_kx_state(kx[e]), GW_KX_DONE);
			for (unsigned k = 0; k < AEAD_SECRET; k++)
				assert_int_equal(gw_kx_result(kx[e])->secret.b[k], 0);
		}
		end();
	}
}

/* The exchange itself is as any other; it says what it is for. */
static void test_reserve(void **state)
{
	struct gw_kx_offer o = offer;

	o.reserve = true;
	certs("a", "b", "ca", NULL);
	assert_int_equal(gw_kx_client(&kx[C], cert[C], &o, "b.net"), 0);
	assert_int_equal(gw_kx_server(&kx[S], cert[S]), 0);
	until(S, GW_KX_EV_ASKED, SIZE_MAX);
	assert_true(gw_kx_offer(kx[S])->reserve);
	assert_int_equal(gw_kx_offer(kx[S])->epoch, o.epoch);
	end();
}

static void test_refused_by_reason(void **state)
{
	certs("a", "b", "ca", NULL);
	begin("b.net");
	until(S, GW_KX_EV_ASKED, SIZE_MAX);
	gw_kx_refuse(kx[S], GW_KX_R_WORKERS);
	until(C, GW_KX_EV_FAILED, SIZE_MAX);
	assert_int_equal(gw_kx_refused(kx[C]), GW_KX_R_WORKERS);
	assert_string_equal(gw_kx_why(kx[C]), "the peer has another number of workers");
	end();
}

/* Each end has something wrong; the one that finds it says what, the other that it was refused. */
static void test_bad_certificates(void **state)
{
	static const struct {
		const char *client, *server, *server_ca, *crl, *name;
		unsigned finds;
		const char *why;
	} bad[] = {
	    {"a", "b", "ca", NULL, "c.net", C, "not for the name `c.net`"},
	    {"a", "foreign", "ca", NULL, "b.net", C, "issuer is unknown"},
	    {"a", "old", "ca", NULL, "b.net", C, "expired"},
	    {"foreign", "b", "ca", NULL, "b.net", S, "issuer is unknown"},
	    {"old", "b", "ca", NULL, "b.net", S, "expired"},
	    {"a", "early", "ca", NULL, "b.net", C, "not yet"},
	    {"early", "b", "ca", NULL, "b.net", S, "not yet"},
	    {"server", "b", "ca", NULL, "b.net", S, "purpose"},
	    {"revoked", "b", "ca", "list", "b.net", S, "revoked"},
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		certs(bad[i].client, bad[i].server, bad[i].server_ca, bad[i].crl);
		begin(bad[i].name);
		until(bad[i].finds, GW_KX_EV_FAILED, SIZE_MAX);
		if (!strstr(gw_kx_why(kx[bad[i].finds]), bad[i].why))
			fail_msg("case %u: %s", i, gw_kx_why(kx[bad[i].finds]));
		until(!bad[i].finds, GW_KX_EV_FAILED, SIZE_MAX);
		assert_non_null(strstr(gw_kx_why(kx[!bad[i].finds]), "the peer ended the handshake"));
		end();
	}
}

static void test_names_and_time(void **state)
{
	struct gw_cert_peer peer;
	struct gw_cert *newer;
	char why[GW_CERT_WHY];

	certs("revoked", "b", "ca", NULL);
	begin("b.net");
	until(S, GW_KX_EV_ASKED, SIZE_MAX);
	assert_int_equal(gw_kx_peer(kx[S], &peer), 0);
	assert_true(gw_cert_peer_named(&peer, "r.net"));
	assert_false(gw_cert_peer_named(&peer, "b.net"));
	assert_true(peer.expires > time(NULL));
	assert_true(gw_cert_peer_verify(cert[S], &peer, "r.net", why, sizeof(why)));
	assert_false(gw_cert_peer_verify(cert[S], &peer, "b.net", why, sizeof(why)));
	assert_int_equal(read_cert(&newer, "b", "ca", "list", why), 0);
	assert_false(gw_cert_peer_verify(newer, &peer, "r.net", why, sizeof(why)));
	assert_non_null(strstr(why, "revoked"));
	gw_cert_free(newer);
	assert_int_equal(read_cert(&newer, "b", "ca2", NULL, why), 0); /* the CA went */
	assert_false(gw_cert_peer_verify(newer, &peer, "r.net", why, sizeof(why)));
	gw_cert_free(newer);
	gw_cert_peer_drop(&peer);
	end();
}

/* A list that no CA of `ca` signed would revoke nothing: it is refused, also one of the same name. */
static void test_foreign_lists(void **state)
{
	char why[GW_CERT_WHY];
	struct gw_cert *c;

	assert_int_equal(read_cert(&c, "b", "ca", "list-foreign", why), RWY_EINVAL);
	assert_non_null(
	    strstr(why, "list-foreign.crl: expected a revocation list that one of the CAs signed, "
	                "found one of `CN=ca2`"));
	assert_int_equal(read_cert(&c, "b", "ca", "twin/list", why), RWY_EINVAL);
	assert_non_null(strstr(why, "found one of `CN=ca`"));
	join("both", "pem", (const char *[]){"ca", "twin/ca"});
	join("both", "crl", (const char *[]){"list", "twin/list"});
	assert_int_equal(read_cert(&c, "b", "ca", "both", why), RWY_EINVAL);
	assert_int_equal(read_cert(&c, "b", "both", "twin/list", why), 0); /* the second of two CAs */
	gw_cert_free(c);
	assert_int_equal(read_cert(&c, "b", "both", "both", why), 0);
	gw_cert_free(c);
}

/* A list that has ended revokes as before, and says when it ended. */
static void test_list_that_ends(void **state)
{
	char why[GW_CERT_WHY];
	struct gw_cert_peer peer;
	struct gw_cert *c;
	time_t now = time(NULL);

	certs("revoked", "b", "ca", NULL);
	begin("b.net");
	until(S, GW_KX_EV_ASKED, SIZE_MAX);
	assert_int_equal(gw_kx_peer(kx[S], &peer), 0);
	assert_int_equal(gw_cert_crl_ends(cert[S]), 0);
	assert_int_equal(read_cert(&c, "b", "ca", "list-old", why), 0);
	assert_true(gw_cert_crl_ends(c) < now - 9 * 24 * 3600 && gw_cert_crl_ends(c) > now - 11 * 24 * 3600);
	assert_false(gw_cert_peer_verify(c, &peer, "r.net", why, sizeof(why)));
	assert_non_null(strstr(why, "revoked"));
	gw_cert_free(c);
	gw_cert_peer_drop(&peer);
	end();
	assert_false(base_crl_old(0, now, why, sizeof(why)));
	assert_false(base_crl_old(now + 31 * 24 * 3600, now, why, sizeof(why)));
	assert_true(base_crl_old(now + 29 * 24 * 3600, now, why, sizeof(why)));
	assert_non_null(strstr(why, "ends on 2"));
	assert_true(base_crl_old(now, now, why, sizeof(why)));
	assert_non_null(strstr(why, "ended on 2"));
}

static void write_file(const char *p, const void *text, size_t n, mode_t mode)
{
	FILE *f = fopen(p, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(p, mode), 0);
}

static void test_bad_files(void **state)
{
	static const char junk[] = "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n";
	char why[GW_CERT_WHY];
	struct gw_cert *c;

	write_file(path(0, "junk", "pem"), junk, sizeof(junk) - 1, 0644);
	write_file(path(0, "junk", "key"), junk, 0, 0600);
	write_file(path(0, "short", "pem"), junk, 20, 0644);
	assert_int_equal(read_cert(&c, "a", "junk", NULL, why), RWY_EINVAL);
	assert_non_null(strstr(why, "junk.pem: expected CA certificates in PEM: "));
	write_file(path(0, "junk", "crl"), junk, sizeof(junk) - 1, 0644); /* a certificate instead */
	assert_int_equal(read_cert(&c, "a", "ca", "junk", why), RWY_EINVAL);
	assert_non_null(strstr(why, "junk.crl: expected a revocation list in PEM: "));
	assert_int_equal(read_cert(&c, "a", "short", NULL, why), RWY_EINVAL);
	assert_int_equal(read_cert(&c, "junk", "ca", NULL, why), RWY_EINVAL);
	assert_int_equal(read_cert(&c, "none", "ca", NULL, why), RWY_EINVAL);
	assert_non_null(strstr(why, "No such file"));
	write_file(path(0, "lone", "key"), junk, 0, 0600);
	assert_int_equal(read_cert(&c, "lone", "ca", NULL, why), RWY_EINVAL);
	assert_non_null(strstr(why, "lone.pem: No such file"));
	assert_int_equal(read_cert(&c, "a", "lone", NULL, why), RWY_EINVAL);
	assert_non_null(strstr(why, "lone.pem: No such file"));
	assert_int_equal(mkfifo(path(0, "fifo", "crl"), 0600), 0); /* nobody waits for a writer */
	assert_int_equal(read_cert(&c, "a", "ca", "fifo", why), RWY_EINVAL);
	assert_non_null(strstr(why, "fifo.crl: expected a file"));
	for (unsigned mode = 0; mode < 0700; mode += 4) {
		int want = (mode & 037) ? RWY_EINVAL : 0;

		if (mode && mode != 0604 && mode != 0640 && mode != 0644 && mode != 0600)
			continue;
		assert_int_equal(chmod(path(0, "a", "key"), mode), 0);
		assert_int_equal(read_cert(&c, "a", "ca", NULL, why), want);
		if (want)
			assert_non_null(strstr(why, "others can neither read nor write"));
		else
			gw_cert_free(c);
	}
	assert_int_equal(chmod(path(0, "a", "key"), 0600), 0);
}

/* Reads a file of at most `size` bytes. */
static size_t read_file(const char *p, void *to, size_t size)
{
	FILE *f = fopen(p, "re");
	size_t n;

	assert_non_null(f);
	n = fread(to, 1, size, f);
	assert_true(n && n < size);
	assert_int_equal(fclose(f), 0);
	return n;
}

/* GnuTLS 3.7 loses memory when it reads a damaged certificate: that is no leak of ours. */
__attribute__((weak)) void __lsan_disable(void);
__attribute__((weak)) void __lsan_enable(void);

static int read_damaged(struct gw_cert **out, const char *name, const char *ca, char *why)
{
	int rc;

	if (__lsan_disable)
		__lsan_disable();
	rc = read_cert(out, name, ca, NULL, why);
	if (__lsan_enable)
		__lsan_enable();
	return rc;
}

/* Certificate, key and CA that end anywhere: refused by name of the file, or all that counts is there. */
static void test_truncated_files(void **state)
{
	static const struct {
		const char *file, *end, *cert, *ca;
		mode_t mode;
	} part[] = {{"a", "pem", "cut", "ca", 0644}, {"a", "key", "cut", "ca", 0600},
	    {"ca", "pem", "a", "cut", 0644}};
	static const char foot[] = "-----END";
	char why[GW_CERT_WHY], text[4096];
	struct gw_cert *c;

	for (unsigned i = 0; i < 3; i++) {
		size_t n;

		write_file(
		    path(0, "cut", "key"), text, read_file(path(1, "a", "key"), text, sizeof(text)), 0600);
		write_file(
		    path(0, "cut", "pem"), text, read_file(path(1, "a", "pem"), text, sizeof(text)), 0644);
		n = read_file(path(0, part[i].file, part[i].end), text, sizeof(text));
		text[n] = 0;
		for (size_t k = 0; k < n; k++) {
			bool whole = k > (size_t)(strstr(text, foot) - text) + sizeof(foot) - 1;

			write_file(path(0, "cut", part[i].end), text, k, part[i].mode);
			if (read_damaged(&c, part[i].cert, part[i].ca, why) == 0) {
				gw_cert_free(c);
				assert_true(whole);
			} else {
				assert_non_null(strstr(why, "cut."));
			}
		}
	}
}

/* A bundle of CAs with something in it that is none. */
static void test_junk_in_bundle(void **state)
{
	static const char words[] = "Some CA\n=======\n",
	                  block[] = "-----BEGIN CERTIFICATE-----\nMIIBnonsense\n-----END CERTIFICATE-----\n";
	char why[GW_CERT_WHY], text[8192];
	struct gw_cert *c;
	size_t n = sizeof(words) - 1;

	memcpy(text, words, n);
	n += read_file(path(0, "ca", "pem"), text + n, 4096);
	write_file(path(0, "bundle", "pem"), text, n, 0644);
	assert_int_equal(read_cert(&c, "a", "bundle", NULL, why), 0); /* words are no harm */
	gw_cert_free(c);
	memcpy(text + n, block, sizeof(block) - 1);
	write_file(path(0, "bundle", "pem"), text, n + sizeof(block) - 1, 0644);
	assert_int_equal(read_damaged(&c, "a", "bundle", why), RWY_EINVAL);
	assert_non_null(strstr(why, "bundle.pem"));
}

/* Bytes that are no TLS: an error, never more. */
static void test_nonsense(void **state)
{
	uint64_t r = 1;
	static const uint8_t head[] = {0x16, 3, 1, 2, 0, 1}; /* of a ClientHello */
	uint8_t junk[4096];

	for (unsigned i = 0; i < 200; i++) {
		certs("a", "b", "ca", NULL);
		begin("b.net");
		for (unsigned k = 0; k < sizeof(junk); k++)
			junk[k] = (uint8_t)rng_next(&r);
		if (i & 1)
			memcpy(junk, head, sizeof(head));
		assert_int_equal(gw_kx_input(kx[S], junk, sizeof(junk)), 0);
		gw_kx_input_end(kx[S]); /* or it waits for the end of a long record */
		until(S, GW_KX_EV_FAILED, SIZE_MAX);
		end();
	}
}

/*
 * Who changes bytes on their way ends the exchange, or changes nothing (TLS 1.3 ignores the version
 * of plaintext records): the ends never have different secrets. A record whose length was enlarged
 * makes its receiver wait for the rest, which fails when the connection's time is over.
 */
static void test_changed_on_the_way(void **state)
{
	unsigned done = 0;
	uint64_t r = 2;

	for (unsigned i = 0; i < 100; i++) {
		unsigned at = (unsigned)(rng_next(&r) % 2500), sent = 0, has = 0;
		struct aead_secret secret[ENDS];
		bool failed = false;

		certs("a", "b", "ca", NULL);
		begin("b.net");
		for (unsigned round = 0; round < 40 && !failed; round++)
			for (unsigned e = 0; e < ENDS; e++) {
				size_t n;
				const uint8_t *p;
				uint8_t copy[32768];

				if (gw_kx_step(kx[e]) == GW_KX_EV_FAILED)
					failed = true;
				if (gw_kx_state(kx[e]) == GW_KX_DECIDES)
					assert_int_equal(gw_kx_accept(kx[e], 9), 0);
				if (gw_kx_state(kx[e]) == GW_KX_INSTALLS) {
					secret[e] = gw_kx_result(kx[e])->secret;
					has |= 1u << e;
					gw_kx_installed(kx[e]);
				}
				p = gw_kx_output(kx[e], &n);
				memcpy(copy, p, n);
				if (sent <= at && at < sent + n)
					copy[at - sent] ^= (uint8_t)(1 + rng_next(&r) % 255);
				sent += (unsigned)n;
				gw_kx_sent(kx[e], n);
				if (n && gw_kx_input(kx[!e], copy, n) != 0)
					failed = true;
			}
		for (unsigned e = 0; e < ENDS && !failed && has != 3; e++) {
			if (has & 1u << e)
				continue;
			gw_kx_input_end(kx[e]);
			assert_int_equal(gw_kx_step(kx[e]), GW_KX_EV_FAILED);
			failed = true;
		}
		if (has == 3)
			assert_memory_equal(&secret[C], &secret[S], sizeof(secret[C]));
		done += !failed;
		end();
	}
	assert_true(done < 50); /* most changes were noticed */
}

/* A peer that never finishes may send only so much. */
static void test_too_much(void **state)
{
	static const uint8_t head[] = {0x16, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc};
	uint8_t zero[1024] = {0};
	unsigned i;
	int rc;

	certs("a", "b", "ca", NULL);
	begin("b.net");
	rc = gw_kx_input(kx[S], head, sizeof(head));
	for (i = 0; i < 1000 && !rc; i++)
		rc = gw_kx_input(kx[S], zero, sizeof(zero));
	assert_int_equal(rc, RWY_EMALFORMED);
	assert_true(i < 64);
	end();
}

static void test_peer_closes(void **state)
{
	certs("a", "b", "ca", NULL);
	begin("b.net");
	until(S, GW_KX_EV_ASKED, SIZE_MAX);
	assert_int_equal(gw_kx_accept(kx[S], 9), 0);
	gw_kx_installed(kx[S]);
	gw_kx_input_end(kx[S]);
	assert_int_equal(gw_kx_step(kx[S]), GW_KX_EV_FAILED);
	assert_string_equal(gw_kx_why(kx[S]), "the peer closed the connection in mid-handshake");
	end();
}

static int setup(void **state)
{
	struct cert_ca *ca, *foreign;

	snprintf(dir, sizeof(dir), "/tmp/rwy_keys_XXXXXX");
	assert_non_null(mkdtemp(dir));
	ca = cert_ca_new(dir, "ca");
	foreign = cert_ca_new(dir, "ca2");
	cert_make(ca, &(struct cert_spec){.file = "a", .name = "a.net"});
	cert_make(ca, &(struct cert_spec){.file = "b", .name = "b.net"});
	cert_make(ca, &(struct cert_spec){.file = "old", .name = "b.net", .expired = true});
	cert_make(ca, &(struct cert_spec){.file = "early", .name = "b.net", .not_yet = true});
	cert_make(ca, &(struct cert_spec){.file = "server", .name = "a.net", .server_only = true});
	cert_make(ca, &(struct cert_spec){.file = "revoked", .name = "r.net"});
	cert_revoke_last(ca, "list", 100);
	cert_revoke_last(ca, "list-old", -10);
	cert_make(foreign, &(struct cert_spec){.file = "foreign", .name = "b.net"});
	cert_revoke_last(foreign, "list-foreign", 100);
	twin_new();
	cert_ca_free(ca);
	cert_ca_free(foreign);
	return 0;
}

static int teardown(void **state)
{
	char cmd[96];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_both_get_the_secret),
	    cmocka_unit_test(test_another_secret),
	    cmocka_unit_test(test_standby_keeps),
	    cmocka_unit_test(test_reserve),
	    cmocka_unit_test(test_refused_by_reason),
	    cmocka_unit_test(test_bad_certificates),
	    cmocka_unit_test(test_names_and_time),
	    cmocka_unit_test(test_foreign_lists),
	    cmocka_unit_test(test_list_that_ends),
	    cmocka_unit_test(test_bad_files),
	    cmocka_unit_test(test_truncated_files),
	    cmocka_unit_test(test_junk_in_bundle),
	    cmocka_unit_test(test_nonsense),
	    cmocka_unit_test(test_changed_on_the_way),
	    cmocka_unit_test(test_too_much),
	    cmocka_unit_test(test_peer_closes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
