/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway/carrier/quic.h and certificates with something wrong (tests/lib/quic/lab.h): who refuses
 * the handshake, and what both ends say of it; files that cannot be used.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/cert/cert.h"
#include "tests/lib/quic/lab.h"

static bool no_certificate; /* the next credentials get none */

int __wrap_gnutls_certificate_set_x509_key_file(
    gnutls_certificate_credentials_t c, const char *cert, const char *key, gnutls_x509_crt_fmt_t f);
int __real_gnutls_certificate_set_x509_key_file(
    gnutls_certificate_credentials_t c, const char *cert, const char *key, gnutls_x509_crt_fmt_t f);
int __wrap_gnutls_certificate_set_x509_key_file(
    gnutls_certificate_credentials_t c, const char *cert, const char *key, gnutls_x509_crt_fmt_t f)
{
	if (no_certificate) {
		no_certificate = false;
		return 0;
	}
	return __real_gnutls_certificate_set_x509_key_file(c, cert, key, f);
}

static bool both_closed(uint64_t unused)
{
	(void)unused;
	return ql.site[QL_A].closed && ql.site[QL_B].closed;
}

/* Neither end opens; who says why, and in which words. */
static void check_refused(unsigned by, const char *says)
{
	assert_true(ql_run(both_closed, 0, QL_TO_END));
	assert_false(ql.site[QL_A].opened || ql.site[QL_B].opened);
	if (!strstr(ql.site[by].why, says))
		fail_msg("`%s`, not `%s`; the other `%s`", ql.site[by].why, says, ql.site[1 - by].why);
	if (!strstr(ql.site[1 - by].why, "the peer refused the handshake: "))
		fail_msg("`%s` after `%s`", ql.site[1 - by].why, ql.site[by].why);
	assert_int_equal(gw_quic_end_counters(ql.site[by].end)->refused_certificate, 1);
	assert_int_equal(gw_quic_end_counters(ql.site[1 - by].end)->refused_certificate, 0);
	ql_tear_down(NULL);
}

static void test_certificates(void **state)
{
	(void)state;
	ql_begin("a", "ca", "c", "ca");
	check_refused(QL_A, "the peer's certificate is not for the name `site-b`");
	ql_begin("c", "ca", "b", "ca");
	check_refused(QL_B, "the peer's certificate is not for the name `site-a`");
	ql_begin("a", "ca", "foreign", "ca");
	check_refused(QL_A, "The certificate issuer is unknown");
	ql_begin("foreign", "ca", "b", "ca");
	check_refused(QL_B, "The certificate issuer is unknown");
	ql_begin("a", "ca", "old", "ca");
	check_refused(QL_A, "expired");
	ql_begin("old-a", "ca", "b", "ca");
	check_refused(QL_B, "expired");
	ql_begin("server", "ca", "b", "ca");
	check_refused(QL_B, "purpose");
	ql_begin("a", "ca", "b", "ca");
	gw_quic_end_free(ql.site[QL_B].end);
	ql_end_make(QL_B, "revoked", "ca", NULL);
	gw_quic_end_free(ql.site[QL_A].end);
	ql_end_make(QL_A, "a", "ca", "list");
	ql_dial();
	check_refused(QL_A, "revoked");
}

static void test_no_certificate(void **state)
{
	(void)state;
	no_certificate = true;
	ql_begin("a", "ca", "b", "ca");
	check_refused(QL_B, "the peer has no certificate");
}

static void test_files(void **state)
{
	char c[128], k[128], a[128], why[200] = "";
	struct gw_cert_files f = {c, k, a, NULL};
	struct gw_quic_tls *t = NULL;

	(void)state;
	snprintf(c, sizeof(c), "%s/a.pem", ql.dir);
	snprintf(k, sizeof(k), "%s/b.key", ql.dir);
	snprintf(a, sizeof(a), "%s/ca.pem", ql.dir);
	assert_int_equal(gw_quic_tls_new(&t, &f, why, sizeof(why)), RWY_EINVAL);
	assert_non_null(strstr(why, "b.key"));
	snprintf(a, sizeof(a), "%s/nosuch.pem", ql.dir);
	assert_int_equal(gw_quic_tls_new(&t, &f, why, sizeof(why)), RWY_EINVAL);
	assert_non_null(strstr(why, "nosuch.pem"));
	snprintf(a, sizeof(a), "%s/a.key", ql.dir); /* no certificate in it */
	assert_int_equal(gw_quic_tls_new(&t, &f, why, sizeof(why)), RWY_EINVAL);
	assert_null(t);
}

static void certificates(struct cert_ca *ca)
{
	static const struct cert_spec more[] = {{.file = "c", .name = "site-c"},
	    {.file = "old", .name = "site-b", .expired = true},
	    {.file = "old-a", .name = "site-a", .expired = true},
	    {.file = "server", .name = "site-a", .server_only = true}, {.file = "revoked", .name = "site-b"}};
	struct cert_ca *other = cert_ca_new(ql.dir, "other");

	for (unsigned i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		cert_make(ca, &more[i]);
	cert_revoke_last(ca, "list", 100);
	cert_make(other, &(struct cert_spec){.file = "foreign", .name = "site-b"});
	cert_ca_free(other);
}

static int tests(void)
{
	const struct CMUnitTest t[] = {
	    QL_TEST(test_certificates), QL_TEST(test_no_certificate), QL_TEST(test_files)};

	return cmocka_run_group_tests(t, NULL, NULL);
}

int main(void)
{
	return ql_main(certificates, tests);
}
