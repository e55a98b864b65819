/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The book of claimed bandwidth: what jobs use of each gateway and path, by name, in bit/s. It is
 * memory only; the controller rebuilds it from the stored jobs at start. The cost of an operation
 * does not depend on how much is booked.
 *
 * Thread: one at a time.
 */
#ifndef PLAN_BOOK_H
#define PLAN_BOOK_H

#include "controller/plan/job.h"

struct plan_book;

RWY_MUST_CHECK int plan_book_new(struct plan_book **out); /* RWY_ENOMEM */
void plan_book_free(struct plan_book *b);                 /* NULL is allowed */
/* Books all n claims, or none: RWY_ENOMEM. Sums stop at UINT64_MAX. */
RWY_MUST_CHECK int plan_book_claim(struct plan_book *b, const struct plan_claim *t, unsigned n);
/* Releases claims. A release of more than was claimed leaves 0. */
void plan_book_release(struct plan_book *b, const struct plan_claim *t, unsigned n);
/* The rate claimed under this name, bit/s; 0: none. */
uint64_t plan_book_claimed(const struct plan_book *b, const char *name);
/* Names of claims: "gw/NAME", "path/FIRST/SECOND", "net/FIRST/SECOND/EDGE/PATH". Always terminated,
 * cut at len bytes. */
void plan_book_gateway(char *out, size_t len, const char *gateway);
void plan_book_path(char *out, size_t len, const char *first, const char *second);
void plan_book_route(
    char *out, size_t len, const char *first, const char *second, const char *edge, const char *path);

#endif
