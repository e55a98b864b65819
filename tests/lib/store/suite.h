/* SPDX-License-Identifier: Apache-2.0 */
/* The tests that every kind of store passes. */
#ifndef TESTS_LIB_STORE_SUITE_H
#define TESTS_LIB_STORE_SUITE_H

struct store;

/* The store under test. */
extern struct store *store;

/* Runs them as a group of this name, and returns how many failed. Before each, set_up opens an
 * empty `store`; after it, tear_down closes that. */
int store_suite_run(const char *name, int (*set_up)(void **state), int (*tear_down)(void **state));

#endif
