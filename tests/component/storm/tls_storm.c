/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_storm ADDRESS FROM PORT ALPN CERTIFICATE KEY CA N: a peer that, once its TLS is open, sends N
 * KeyUpdates and asks for one in return for each, and nothing else. Prints how many it could send
 * until the other end closed the connection, how many bytes came back, and what ended it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static size_t came; /* bytes from the other end */

static int die(const char *what)
{
	fprintf(stderr, "tls_storm: %s\n", what);
	return 2;
}

static ssize_t pull(gnutls_transport_ptr_t p, void *to, size_t n)
{
	ssize_t got = recv((int)(intptr_t)p, to, n, 0);

	came += got > 0 ? (size_t)got : 0;
	return got;
}

static int dial(const char *to, const char *from, const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET}, b = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_port = htons((uint16_t)atoi(port));
	if (fd < 0 || inet_pton(AF_INET, to, &a.sin_addr) != 1 ||
	    inet_pton(AF_INET, from, &b.sin_addr) != 1 || bind(fd, (struct sockaddr *)&b, sizeof(b)) != 0 ||
	    connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
		return -1;
	return fd;
}

static int begin(gnutls_session_t *s, gnutls_certificate_credentials_t c, const char *alpn, int fd)
{
	const gnutls_datum_t name = {(unsigned char *)(uintptr_t)alpn, (unsigned)strlen(alpn)};

	if (gnutls_init(s, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL) != 0 ||
	    gnutls_priority_set_direct(*s, "NORMAL:-VERS-ALL:+VERS-TLS1.3", NULL) != 0 ||
	    gnutls_credentials_set(*s, GNUTLS_CRD_CERTIFICATE, c) != 0 ||
	    gnutls_alpn_set_protocols(*s, &name, 1, GNUTLS_ALPN_MANDATORY) != 0)
		return GNUTLS_E_MEMORY_ERROR;
	gnutls_transport_set_int(*s, fd);
	gnutls_transport_set_pull_function(*s, pull);
	return gnutls_handshake(*s);
}

int main(int argc, char **argv)
{
	gnutls_certificate_credentials_t c;
	gnutls_session_t s;
	unsigned long sent = 0, n;
	uint8_t b[256];
	ssize_t rc;
	int fd;

	if (argc != 9)
		return die("expected ADDRESS FROM PORT ALPN CERTIFICATE KEY CA N");
	n = strtoul(argv[8], NULL, 10);
	fd = dial(argv[1], argv[2], argv[3]);
	if (fd < 0)
		return die(strerror(errno));
	if (gnutls_certificate_allocate_credentials(&c) != 0 ||
	    gnutls_certificate_set_x509_key_file(c, argv[5], argv[6], GNUTLS_X509_FMT_PEM) != 0 ||
	    gnutls_certificate_set_x509_trust_file(c, argv[7], GNUTLS_X509_FMT_PEM) < 0)
		return die("certificates");
	rc = begin(&s, c, argv[4], fd);
	if (rc < 0)
		return die(gnutls_strerror((int)rc));
	while (sent < n && (rc = gnutls_session_key_update(s, GNUTLS_KU_PEER)) == 0)
		sent++;
	/* What it says last; the storm ends when there is nothing more to read. */
	while ((rc = recv(fd, b, sizeof(b), 0)) > 0)
		came += (size_t)rc;
	printf("%lu of %lu sent, %zu bytes came, %s\n", sent, n, came, rc ? strerror(errno) : "closed");
	gnutls_deinit(s);
	gnutls_certificate_free_credentials(c);
	close(fd);
	return 0;
}
