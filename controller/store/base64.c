/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, 4): the form of keys and values in etcd's JSON. */
#include <stdlib.h>
#include <string.h>

#include "controller/store/internal.h"

static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *store_etcd_b64(const void *data, size_t len)
{
	const uint8_t *p = data;
	char *out = malloc((len + 2) / 3 * 4 + 1), *o = out;

	for (size_t i = 0; out && i < len; i += 3) {
		const unsigned left = (unsigned)(len - i);
		const uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
		                   (left > 2 ? p[i + 2] : 0);

		*o++ = digit[v >> 18];
		*o++ = digit[v >> 12 & 63];
		*o++ = left > 1 ? digit[v >> 6 & 63] : '=';
		*o++ = left > 2 ? digit[v & 63] : '=';
	}
	if (out)
		*o = 0;
	return out;
}

static int value(char c)
{
	const char *p = c ? strchr(digit, c) : NULL;

	return p ? (int)(p - digit) : -1;
}

char *store_etcd_unb64(const char *text, size_t *len)
{
	const size_t n = strlen(text);
	char *out = n % 4 ? NULL : malloc(n / 4 * 3 + 1);
	size_t k = 0;

	for (size_t i = 0; out && i < n; i += 4) {
		const bool last = i + 4 == n;
		const int pad = last ? (text[i + 3] == '=') + (text[i + 2] == '=' && text[i + 3] == '=') : 0;
		uint32_t v = 0;

		for (int d = 0; d < 4; d++) {
			const int x = d >= 4 - pad ? 0 : value(text[i + (size_t)d]);

			if (x < 0) {
				free(out);
				return NULL;
			}
			v = v << 6 | (uint32_t)x;
		}
		out[k++] = (char)(v >> 16);
		if (pad < 2)
			out[k++] = (char)(v >> 8);
		if (pad < 1)
			out[k++] = (char)v;
	}
	if (out)
		out[k] = 0;
	*len = k;
	return out;
}
