/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The book of what jobs took: bandwidth by name of gateway or path. Memory of the controller's, rebuilt from
 * the stored jobs at start. One thread at a time. All operations O(1) in what is booked elsewhere.
 */
#ifndef PLAN_BOOK_H
#define PLAN_BOOK_H

#include "controller/plan/job.h"

struct plan_book;

RWY_MUST_CHECK int plan_book_new(struct plan_book **out); /* RWY_ENOMEM */
void plan_book_free(struct plan_book *b);                 /* NULL: fine */
/* Books all of n, or nothing: RWY_ENOMEM. Sums stop at UINT64_MAX. */
RWY_MUST_CHECK int plan_book_claim(struct plan_book *b, const struct plan_claim *t, unsigned n);
/* Releases claims; more than was claimed counts as all of it. */
void plan_book_release(struct plan_book *b, const struct plan_claim *t, unsigned n);
uint64_t plan_book_claimed(const struct plan_book *b, const char *name);
/* Names of claims: "gw/NAME", "net/FIRST/SECOND/EDGE/PATH". Always ended, cut at len. */
void plan_book_gateway(char *out, size_t len, const char *gateway);
void plan_book_route(
    char *out, size_t len, const char *first, const char *second, const char *edge, const char *path);

#endif
