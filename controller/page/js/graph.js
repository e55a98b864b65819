// SPDX-License-Identifier: Apache-2.0
// The network as a picture: sites at their coordinates (or on a circle), their gateways, and the tunnels.
// A few tunnels are drawn one by one; of many, those between two sites share a line.
import * as f from './format.js';
import { s } from './dom.js';
import { unprotected } from './pairs.js';

const W = 1200;
const H = 560;
const BOX_W = 170;
const ONE_BY_ONE = 120;
const DOTS = 24;

function spread(points) { // pushes boxes apart until none overlap, or it has tried enough
  for (let round = 0; round < 200; round++) {
    let moved = false;
    for (const a of points) for (const b of points) {
      if (a === b) continue;
      const dx = b.x - a.x, dy = b.y - a.y;
      const lackX = BOX_W + 70 - Math.abs(dx), lackY = 150 - Math.abs(dy);
      if (lackX <= 0 || lackY <= 0) continue;
      moved = true;
      if (lackX < lackY * 1.5) { const m = (dx < 0 ? -1 : 1) * Math.min(lackX / 2, 8); a.x -= m; b.x += m; }
      else { const m = (dy < 0 ? -1 : 1) * Math.min(lackY / 2, 8); a.y -= m; b.y += m; }
    }
    for (const p of points) {
      p.x = Math.min(W - BOX_W / 2 - 10, Math.max(BOX_W / 2 + 10, p.x));
      p.y = Math.min(H - 70, Math.max(60, p.y));
    }
    if (!moved) break;
  }
}

function layout(sites) {
  const known = sites.length > 1 && sites.every((x) => x.latitude_udeg !== undefined && x.longitude_udeg !== undefined);
  const points = sites.map((site, i) => ({ site, x: W / 2 - Math.cos((2 * Math.PI * i) / sites.length) * W * 0.34,
    y: H / 2 - Math.sin((2 * Math.PI * i) / sites.length) * H * 0.34 }));
  if (known) {
    const lon = sites.map((x) => x.longitude_udeg), lat = sites.map((x) => x.latitude_udeg);
    const [west, east, south, north] = [Math.min(...lon), Math.max(...lon), Math.min(...lat), Math.max(...lat)];
    for (const p of points) {
      p.x = 120 + ((p.site.longitude_udeg - west) / Math.max(east - west, 1)) * (W - 240);
      p.y = 90 + ((north - p.site.latitude_udeg) / Math.max(north - south, 1)) * (H - 200);
    }
  }
  spread(points);
  return points;
}

export const tunnelKind = (t) => (t.state !== 'up' ? 'bad' : t.loss_ppm >= 10000 || t.carrier === 'none' ? 'warn' : 'good');
const worst = (kinds) => (kinds.every((k) => k === 'bad') ? 'bad' : kinds.some((k) => k !== 'good') ? 'warn' : 'good');
const width = (bps) => Math.min(9, 1.5 + Math.max(0, Math.log10((bps || 0) / 1e8)) * 1.5);

function bent(a, b, bow) {
  const mx = (a.x + b.x) / 2, my = (a.y + b.y) / 2, dx = b.x - a.x, dy = b.y - a.y, l = Math.hypot(dx, dy) || 1;
  const c = { x: mx - (dy / l) * bow, y: my + (dx / l) * bow };
  return { d: `M${a.x} ${a.y}Q${c.x} ${c.y} ${b.x} ${b.y}`, mid: { x: (mx + c.x) / 2, y: (my + c.y) / 2 } };
}

function label(at, lines) {
  const w = Math.max(...lines.map((x) => x.length)) * 6.7 + 16, hgt = lines.length * 16 + 8;
  return s('g', null, s('rect', { class: 'label', x: at.x - w / 2, y: at.y - hgt / 2, width: w, height: hgt, rx: 5 }),
    lines.map((x, i) => s('text', { x: at.x, y: at.y - hgt / 2 + 17 + i * 16, 'text-anchor': 'middle', class: i ? 'dim' : null }, x)));
}

function range(values, show) {
  const v = values.filter((x) => x !== undefined);
  if (!v.length) return '–';
  const a = show(Math.min(...v)), b = show(Math.max(...v));
  return a === b ? a : `${a} to ${b}`;
}

function between(tunnels) { // by pair of sites
  const pairs = new Map();
  for (const t of tunnels) {
    const key = [...t.sites].sort().join('\u0000');
    if (!pairs.has(key)) pairs.set(key, []);
    pairs.get(key).push(t);
  }
  return [...pairs.values()];
}

const described = (t) => `${t.name}: ${t.state}, ${t.carrier}, ${f.rate(t.rate_bps)}, RTT ${f.time(t.rtt_us)}, loss ${f.percent(t.loss_ppm)}, ${t.sessions} sessions`;

export function graph(sites, gateways, tunnels) {
  const points = layout(sites);
  const at = new Map(points.map((p) => [p.site.name, p]));
  const dot = new Map();
  const boxes = points.map((p) => {
    const here = gateways.filter((g) => g.site === p.site.name);
    const up = here.filter((g) => g.state === 'up').length;
    const shown = here.slice(0, DOTS), cols = Math.min(8, Math.max(shown.length, 1)), rows = Math.ceil(shown.length / 8);
    const height = 54 + Math.max(rows, 1) * 18, top = p.y - height / 2;
    shown.forEach((g, i) => dot.set(g.name, { x: p.x - (cols - 1) * 9 + (i % 8) * 18, y: top + 52 + Math.floor(i / 8) * 18 }));
    return s('a', { href: `#/gateways?${encodeURIComponent(p.site.name)}` },
      s('title', null, `${p.site.name}: ${up} of ${here.length} gateways up; ${(p.site.prefixes || []).join(', ')}`),
      s('rect', { class: 'site', x: p.x - BOX_W / 2, y: top, width: BOX_W, height, rx: 9 }),
      s('text', { x: p.x, y: top + 20, 'text-anchor': 'middle', 'font-weight': 600 }, p.site.name),
      s('text', { x: p.x, y: top + 37, 'text-anchor': 'middle', class: 'dim' },
        `${p.site.location ? `${p.site.location.slice(0, 16)}, ` : ''}${up}/${here.length} up`),
      shown.map((g) => s('circle', { class: `gw ${g.state === 'up' ? (g.refusal || unprotected(g) ? 'warn' : 'good') : 'bad'}`, r: 6.5, cx: dot.get(g.name).x, cy: dot.get(g.name).y },
        s('title', null, `${g.name}: ${g.state}`))));
  });
  const pairs = between(tunnels).filter((p) => p[0].sites.every((x) => at.has(x)));
  const single = tunnels.length <= ONE_BY_ONE;
  const labels = [];
  const lines = pairs.flatMap((pair) => {
    const [a, b] = pair[0].sites.map((x) => at.get(x));
    const href = `#/tunnels?${encodeURIComponent(pair[0].sites.join(' '))}`;
    const bow = Math.hypot(b.x - a.x, b.y - a.y) * 0.08;
    labels.push(s('a', { href }, label(bent(a, b, bow).mid, [
      `${range(pair.map((t) => t.rtt_us), f.time)}, loss ${range(pair.map((t) => t.loss_ppm), f.percent)}`,
      `${pair.filter((t) => t.state === 'up').length}/${pair.length} tunnels, ${[...new Set(pair.map((t) => t.carrier))].join(' + ')}`])));
    const drawn = single ? pair : [{ ...pair[0], name: `${pair.length} tunnels`, kind: worst(pair.map(tunnelKind)), rate_bps: pair.reduce((sum, t) => sum + t.rate_bps, 0) }];
    return drawn.map((t, i) => {
      const [p, q] = single ? t.gateways.map((g, k) => dot.get(g) || at.get(t.sites[k])) : [a, b];
      return s('a', { href }, s('title', null, single ? described(t) : `${t.name}, ${f.rate(t.rate_bps)}`),
        s('path', { class: t.kind || tunnelKind(t), d: bent(p, q, bow + (i - drawn.length / 2) * 3).d, 'stroke-width': width(t.rate_bps) }));
    });
  });
  return s('svg', { class: 'net', viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': `${sites.length} sites, ${gateways.length} gateways, ${tunnels.length} tunnels` }, lines, boxes, labels);
}
