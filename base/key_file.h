/* SPDX-License-Identifier: Apache-2.0 */
/* Files with private keys. */
#ifndef BASE_KEY_FILE_H
#define BASE_KEY_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* False: the file is not there, or others than its user and group may open it; `why` says it in a
 * sentence. The group may read it, as distributions do it for keys. Any thread. */
bool base_key_private(const char *path, char *why, size_t size);

#endif
