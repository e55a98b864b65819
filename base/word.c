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
