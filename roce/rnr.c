/* SPDX-License-Identifier: Apache-2.0 */
/* Times of RNR NAK timer values (IBA 9.7.5.2.8, table 45). */
#include "roce/parse.h"

/* Times in units of 10 us. */
static const uint16_t rnr_10us[32] = {0, /* 65536: does not fit, see below */
    1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096,
    6144, 8192, 12288, 16384, 24576, 32768, 49152};

uint64_t roce_rnr_time(uint8_t value)
{
	uint64_t t = rnr_10us[value & 0x1f];

	return (t ? t : 65536) * 10000;
}
