/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client for thousands of HTTPS connections in one thread (epoll, GnuTLS, HTTP/1.1 kept alive),
 * and their certificates. It is for bench_control.c: strict enough to measure, no general HTTP
 * client.
 */
#ifndef CONTROL_CONN_H
#define CONTROL_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gnutls/gnutls.h>

struct ctl_loop;
struct ctl_conn;

/* An answer: the status, or -1 if the connection was lost. The body is valid during the call. */
typedef void ctl_answer_cb(struct ctl_conn *c, void *ctx, int status, const char *body, size_t len);

/* Writes ca.pem, server.pem, server.key, operator.pem and operator.key to `dir`, and keeps the CA
 * for ctl_cert(). 0, or -1. */
int ctl_certs_init(const char *dir);
/* Credentials with a certificate CN=name, OU=role. All share one key. NULL: failed. */
gnutls_certificate_credentials_t ctl_cert(const char *name, const char *role);

struct ctl_loop *ctl_loop_new(const char *host, uint16_t port);
/* A connection, which opens with its first request and lives as long as the loop. */
struct ctl_conn *ctl_conn_new(struct ctl_loop *l, gnutls_certificate_credentials_t cred, void *ctx);
bool ctl_busy(const struct ctl_conn *c);
/* Sends a request, one at a time; cb gets the answer. The body may be NULL. Opens the connection
 * (again) if necessary. */
void ctl_request(
    struct ctl_conn *c, const char *method, const char *path, const char *body, ctl_answer_cb *cb);
/* Waits for events, at most timeout_ms. */
void ctl_loop_run(struct ctl_loop *l, int timeout_ms);
/* The number of TLS handshakes; the number of lost connections. */
uint64_t ctl_handshakes(const struct ctl_loop *l);
uint64_t ctl_lost(const struct ctl_loop *l);

#endif
