// SPDX-License-Identifier: Apache-2.0
// A tunnel's measurements while this page is open, for the small curves. The controller keeps no history, so there
// are none from before the page was opened.
import { s } from './dom.js';

const KEEP = 90;
const past = new Map();

export function remember(tunnels) {
  for (const t of tunnels) {
    const p = past.get(t.name) || past.set(t.name, []).get(t.name);
    p.push({ rtt: t.rtt_us, loss: t.loss_ppm, bandwidth: t.bandwidth_bps });
    if (p.length > KEEP) p.shift();
  }
}

export function spark(name, key) {
  const values = (past.get(name) || []).map((x) => x[key]).filter((x) => x !== undefined);
  const most = Math.max(...values, 1);
  const step = 90 / Math.max(values.length - 1, 1);
  const d = values.map((v, i) => `${i ? 'L' : 'M'}${(i * step).toFixed(1)} ${(20 - (18 * v) / most).toFixed(1)}`).join('');
  return s('svg', { class: 'spark', viewBox: '0 0 90 22', role: 'img', 'aria-label': `the last ${values.length} values` },
    values.length > 1 ? s('path', { d }) : null);
}
