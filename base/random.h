/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of the kernel. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

/* Not 0. Fit for keys and epochs; a system call. Any thread. */
uint64_t base_random64(void);

#endif
