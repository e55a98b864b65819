// SPDX-License-Identifier: Apache-2.0
// The controller's own API (openapi.yaml), read only.
const PAGE = 1000;

export class Refused extends Error {
  constructor(status, body) {
    super((body && body.error) || `HTTP ${status}`);
    this.status = status;
  }
}

export async function get(path, signal) {
  const limit = AbortSignal.timeout(10000);
  const r = await fetch(path, { signal: signal ? AbortSignal.any([signal, limit]) : limit, cache: 'no-store', headers: { Accept: 'application/json' } });
  const body = await r.json().catch(() => null);
  if (!r.ok) throw new Refused(r.status, body);
  return body;
}

// Reads a paged list, up to `most` entries: {items, more}.
export async function list(path, key, signal, most = 2000) {
  const items = [];
  let after = null;
  do {
    const words = new URLSearchParams({ limit: Math.min(PAGE, most - items.length) });
    if (after !== null) words.set('after', after);
    const page = await get(`${path}?${words}`, signal);
    items.push(...page[key]);
    after = page.next === undefined ? null : page.next;
  } while (after !== null && items.length < most);
  return { items, more: after !== null };
}
