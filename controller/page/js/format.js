// SPDX-License-Identifier: Apache-2.0
// Formats numbers. A missing value is a dash, never zero.
const none = '–';
const missing = (x) => x === undefined || x === null;
const digits = (x) => (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2));

function scaled(x, step, units) {
  let i = 0;
  while (x >= step && i < units.length - 1) { x /= step; i++; }
  return `${i ? digits(x) : Math.round(x)} ${units[i]}`;
}

export const rate = (bps) => (missing(bps) ? none : bps === 0 ? '0' : scaled(bps, 1000, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']));
export const bytes = (b) => (missing(b) ? none : scaled(b, 1000, ['B', 'kB', 'MB', 'GB', 'TB', 'PB']));
export const time = (us) => (missing(us) ? none : us < 1000 ? `${us} µs` : us < 1e6 ? `${digits(us / 1e3)} ms` : `${digits(us / 1e6)} s`);
export const percent = (ppm) => (missing(ppm) ? none : ppm === 0 ? '0 %' : ppm < 100 ? `${ppm} ppm` : `${digits(ppm / 1e4)} %`);
export const count = (n) => (missing(n) ? none : n.toLocaleString('en'));
export const text = (t) => (missing(t) || t === '' ? none : String(t));
export const when = (ms) => new Date(ms).toISOString().replace('T', ' ').slice(0, 19);
export function age(ms) {
  if (missing(ms)) return none;
  const sec = ms / 1000;
  return sec < 1 ? 'now' : sec < 120 ? `${Math.round(sec)} s` : sec < 7200 ? `${Math.round(sec / 60)} min` : `${Math.round(sec / 3600)} h`;
}
