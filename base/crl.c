/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SOON (30 * 24 * 3600) /* s before its end */
/* GnuTLS sets these bits for a list's time, also when checks of the time are off. */
#define TIMES                                                                                                \
	(GNUTLS_CERT_INVALID | GNUTLS_CERT_REVOCATION_DATA_SUPERSEDED |                                      \
	    GNUTLS_CERT_REVOCATION_DATA_ISSUED_IN_FUTURE)

/*
 * A CA of the trust list signed it. Each is tried: CAs may have the same name, and GnuTLS takes the
 * first.
 */
static bool signed_by_one(gnutls_x509_trust_list_t trust, gnutls_x509_crl_t crl)
{
	gnutls_x509_trust_list_iter_t i = NULL;
	gnutls_x509_crt_t ca;
	bool is = false;

	while (!is && gnutls_x509_trust_list_iter_get_ca(trust, &i, &ca) == 0) {
		unsigned status = 0;
		int rc = gnutls_x509_crl_verify(crl, &ca, 1, 0, &status);

		is = rc == 0 && !(status & ~(unsigned)TIMES);
		gnutls_x509_crt_deinit(ca);
	}
	gnutls_x509_trust_list_iter_deinit(i);
	return is;
}

static void say_foreign(gnutls_x509_crl_t crl, const char *path, char *why, size_t size)
{
	gnutls_datum_t issuer = {0};

	(void)!gnutls_x509_crl_get_issuer_dn3(crl, &issuer, 0);
	snprintf(why, size,
	    "%.100s: expected a revocation list that one of the CAs signed, found one of `%.80s`", path,
	    issuer.data ? (const char *)issuer.data : "");
	gnutls_free(issuer.data);
}

/* Gives the list to trust. On an error the caller has it still. */
static int take(
    gnutls_x509_trust_list_t trust, gnutls_x509_crl_t crl, const char *path, char *why, size_t size)
{
	if (!signed_by_one(trust, crl)) {
		say_foreign(crl, path, why, size);
		return RWY_EINVAL;
	}
	if (gnutls_x509_trust_list_add_crls(trust, &crl, 1, 0, 0) == 1)
		return 0;
	snprintf(why, size, "out of memory");
	return RWY_ENOMEM;
}

/* Reads the file. Returns GnuTLS's error, or at least one list, each of which the caller frees, and
 * the array, too. */
static int lists_read(gnutls_x509_crl_t **list, unsigned *n, const char *path, char *why, size_t size)
{
	gnutls_datum_t text = {0};
	int rc = gnutls_load_file(path, &text);

	if (rc < 0) {
		snprintf(why, size, "%.100s: %s", path, strerror(errno));
		return rc;
	}
	rc = gnutls_x509_crl_list_import2(list, n, &text, GNUTLS_X509_FMT_PEM, 0);
	gnutls_free(text.data);
	if (rc >= 0 && !*n)
		rc = GNUTLS_E_NO_CERTIFICATE_FOUND;
	if (rc < 0)
		snprintf(
		    why, size, "%.100s: expected a revocation list in PEM: %.80s", path, gnutls_strerror(rc));
	return rc;
}

int base_crl_add(gnutls_x509_trust_list_t trust, const char *path, time_t *ends, char *why, size_t size)
{
	gnutls_x509_crl_t *list = NULL;
	unsigned n = 0, taken = 0;
	int rc = lists_read(&list, &n, path, why, size) < 0 ? RWY_EINVAL : 0;

	*ends = 0;
	while (rc == 0 && taken < n) {
		time_t end = gnutls_x509_crl_get_next_update(list[taken]);

		if (end != (time_t)-1 && (!*ends || end < *ends))
			*ends = end;
		rc = take(trust, list[taken], path, why, size);
		taken += rc == 0;
	}
	while (taken < n)
		gnutls_x509_crl_deinit(list[taken++]);
	gnutls_free(list);
	return rc;
}

bool base_crl_old(time_t ends, time_t now, char *text, size_t size)
{
	char day[32] = "";
	struct tm tm;

	if (!ends || now < ends - SOON)
		return false;
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&ends, &tm));
	snprintf(text, size, "the revocation list %s on %s; it is %s", now < ends ? "ends" : "ended", day,
	    now < ends ? "used after that, too" : "still used");
	return true;
}
