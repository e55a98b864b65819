/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wraps ISA-L's erasure coding in a thin run (linker option --wrap): computes only the columns that
 * thin packets own. A column of a Reed-Solomon code depends only on the same column of the other
 * packets, so the results equal those of a full run.
 */
#include <isa-l.h>

#include "tests/sim/wan/run.h"

#define COLUMNS 128 /* THIN_BYTES and the bytes that a frame may put in front */

void __real_ec_encode_data(int len, int k, int rows, uint8_t *tables, uint8_t **data, uint8_t **coding);
void __wrap_ec_encode_data(int len, int k, int rows, uint8_t *tables, uint8_t **data, uint8_t **coding);
void __real_ec_encode_data_update(
    int len, int k, int rows, int vec_i, uint8_t *tables, uint8_t *data, uint8_t **coding);
void __wrap_ec_encode_data_update(
    int len, int k, int rows, int vec_i, uint8_t *tables, uint8_t *data, uint8_t **coding);
void __real_gf_vect_dot_prod(int len, int vlen, uint8_t *tables, uint8_t **src, uint8_t *dest);
void __wrap_gf_vect_dot_prod(int len, int vlen, uint8_t *tables, uint8_t **src, uint8_t *dest);
void __real_gf_vect_mad(int len, int vec, int vec_i, uint8_t *tables, uint8_t *src, uint8_t *dest);
void __wrap_gf_vect_mad(int len, int vec, int vec_i, uint8_t *tables, uint8_t *src, uint8_t *dest);

static int columns(int len)
{
	return seal_thin && len > COLUMNS ? COLUMNS : len;
}

void __wrap_ec_encode_data(int len, int k, int rows, uint8_t *tables, uint8_t **data, uint8_t **coding)
{
	__real_ec_encode_data(columns(len), k, rows, tables, data, coding);
}

void __wrap_ec_encode_data_update(
    int len, int k, int rows, int vec_i, uint8_t *tables, uint8_t *data, uint8_t **coding)
{
	__real_ec_encode_data_update(columns(len), k, rows, vec_i, tables, data, coding);
}

void __wrap_gf_vect_dot_prod(int len, int vlen, uint8_t *tables, uint8_t **src, uint8_t *dest)
{
	__real_gf_vect_dot_prod(columns(len), vlen, tables, src, dest);
}

void __wrap_gf_vect_mad(int len, int vec, int vec_i, uint8_t *tables, uint8_t *src, uint8_t *dest)
{
	__real_gf_vect_mad(columns(len), vec, vec_i, tables, src, dest);
}
