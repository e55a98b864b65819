/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access control lists of files (acl(5)), as far as a program needs them that lets some groups use
 * a socket: to write one, and to read which groups it names. Not libacl: its names are those of
 * tenant/acl.h. The files' owner may do this; no capability is needed.
 */
#ifndef BASE_FILEACL_H
#define BASE_FILEACL_H

#include <stdint.h>

#include "rwy/err.h"

#define BASE_FILEACL_GROUPS 8

/* Lets owner, group and others do what mode says, and members of n groups (at most
 * BASE_FILEACL_GROUPS) read and write; n is 0: there is no list, only the mode. RWY_EINVAL, with
 * errno: EOPNOTSUPP if the file system has no lists. */
RWY_MUST_CHECK int base_fileacl_set(const char *path, unsigned mode, const uint32_t *gid, unsigned n);

/* The groups of the list that may write, at most max. Returns how many; 0: there is no list, or it
 * cannot be read. */
unsigned base_fileacl_groups(const char *path, uint32_t *gid, unsigned max);

#endif
