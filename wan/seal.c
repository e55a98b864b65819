/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a datagram: sealed with the key that keys_dgram.c chose, or in the clear. */
#include <string.h>

#include "wan/tunnel.h"

uint32_t wan_tx_size(const struct wan_tx *tx)
{
	return tx->hdr_len + tx->len + (tx->key ? AEAD_TAG : 0);
}

void wan_tx_write(const struct wan_tx *tx, uint8_t *out)
{
	const uint8_t *body = tx->buf ? tx->buf->data + tx->off : NULL;
	const uint32_t aad = WAN_SEALED_AAD;
	const struct aead_in in = {.head = tx->hdr + aad,
	    .head_len = tx->hdr_len - aad,
	    .body = body,
	    .body_len = body ? tx->len : 0};

	if (!tx->key) {
		memcpy(out, tx->hdr, tx->hdr_len);
		if (body)
			memcpy(out + tx->hdr_len, body, tx->len);
		return;
	}
	memcpy(out, tx->hdr, aad);
	tx->aead->seal(&tx->key->key, tx->nonce, out, aad, out + aad, &in);
}

void wan_tx_write_joined(const struct wan_tx *tx, uint8_t *out)
{
	const uint32_t aad = WAN_SEALED_AAD, head = tx->hdr_len - aad;
	uint8_t *const at = tx->buf->data + tx->off - head;
	const struct aead_in in = {.head = at, .head_len = head + tx->len};

	memcpy(at, tx->hdr + aad, head);
	memcpy(out, tx->hdr, aad);
	tx->aead->seal(&tx->key->key, tx->nonce, out, aad, out + aad, &in);
}
