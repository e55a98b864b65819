/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantities as people read them: three digits and a unit. Each returns one of 16 static buffers in
 * turn, so up to 16 may be in use at once. One thread.
 */
#ifndef BASE_SAY_H
#define BASE_SAY_H

const char *say_bytes(double bytes);           /* 1.50 MiB */
const char *say_bits(double bytes_per_second); /* 12.0 Gbps */
const char *say_time(double seconds);          /* 20.1 ms; 1 h 5 min */
const char *say_count(double n);               /* 1.20M */
const char *say_share(double ratio);           /* 0.5 -> 50.00 % */

#endif
