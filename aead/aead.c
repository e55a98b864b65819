/* SPDX-License-Identifier: Apache-2.0 */
#include "aead/aead.h"

const struct aead_ops *aead_best(void)
{
	const struct aead_ops *fast = aead_ipsec_mb();

	return fast ? fast : &aead_gnutls;
}
