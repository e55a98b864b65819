/* SPDX-License-Identifier: Apache-2.0 */
#include "base/word.h"

#include <string.h>

bool base_word_in(const char *word, const char *words)
{
	const size_t n = strlen(word);

	if (strchr(word, ' '))
		return false;
	for (const char *at = words; n && (at = strstr(at, word)); at += n)
		if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

unsigned base_word_distance(const char *a, const char *b)
{
	const size_t n = strlen(a), m = strlen(b);
	unsigned row[BASE_WORD_MAX + 1];

	if (n > BASE_WORD_MAX || m > BASE_WORD_MAX)
		return BASE_WORD_MAX;
	for (size_t j = 0; j <= m; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned diagonal = row[0]++;

		for (size_t j = 1; j <= m; j++) {
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);

			best = row[j] + 1 < best ? row[j] + 1 : best;
			best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[m];
}
