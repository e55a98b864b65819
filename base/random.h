/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers from the kernel. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

/* Returns a number other than 0, fit for keys and epochs. Makes a system call. Any thread. */
uint64_t base_random64(void);

#endif
