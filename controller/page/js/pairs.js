// SPDX-License-Identifier: Apache-2.0
// Pairs of gateways: whether the standby could take over, as a table's cell and as a view of its own.
import { get } from './api.js';
import { facts, h, pill } from './dom.js';
import * as f from './format.js';
import { table } from './table.js';

const CONTRADICT = ['both-serve', 'past-epoch'];

export const unprotected = (g) => Boolean(g.pair && !g.pair.protected);
const kind = (p) => (p.protected ? 'good' : CONTRADICT.includes(p.reason) ? 'bad' : 'warn');
export const pairPill = (p) => pill(p.protected ? 'protected' : 'not protected', kind(p));

// "rack-1 serves, rack-2 ready"; a gateway that is none of a pair has a dash.
export function pairCell(g) {
  if (!g.pair) return '–';
  const { members, serves } = g.pair;
  const one = (m) => `${m.member} ${m.lease !== 'up' ? 'lost' : m.member === serves ? 'serves' : m.state || 'silent'}`;
  return h('span', { title: g.pair.why }, pairPill(g.pair), ' ', members.map(one).join(', '));
}
export const pairSort = (g) => g.pair && [g.pair.protected ? 'protected' : `not protected ${g.pair.reason}`, ...g.pair.members.map((m) => m.member), g.pair.serves].join(' ');

export const pairProblems = (gateways) => {
  const bad = gateways.filter(unprotected);
  return bad.length ? [h('h2', null, 'Pairs that are not protected'), bad.slice(0, 20).map((g) => h('p', null, h('a', { href: `#/gateways/${encodeURIComponent(g.name)}` }, g.name), ' ', pairPill(g.pair), ' ', g.pair.why))] : null;
};

const col = (name, of, show, num) => ({ name, of, show, num, wide: false });
const at = (e) => (e ? `${f.when(e.at_ms)}: ${e.text}` : '–');

// One gateway; of a pair with both members and what happened to them.
export async function gateway(name, signal) {
  const g = await get(`/v1/gateways/${encodeURIComponent(name)}`, signal);
  const p = g.pair, x = await get('/v1/events?limit=1000', signal);
  const told = x.events.filter((e) => e.name === name).reverse().slice(0, 50);
  return [`Gateway ${name}`,
    h('section', { class: 'card pad' }, p ? h('p', { class: 'verdict' }, pairPill(p), ' ', p.why) : null, facts([
      ['Site', g.site], ['State', pill(g.state, g.state === 'up' ? 'good' : 'bad')], ['Serves', p && (p.serves || 'nobody')], ['Since (UTC)', p && p.since_ms ? f.when(p.since_ms) : null],
      ['Epoch', p && String(p.epoch)], ['They differ in', p && p.differ], ['WAN', h('code', null, g.wan.join(' '))], ['LAN', h('code', null, g.lan.join(' '))], ['Refusal', g.refusal]])),
    p ? [h('h2', null, 'The two of the pair'), table('members', [
      col('Member', (m) => m.member), col('Lease', (m) => m.lease, (m) => pill(m.lease, m.lease === 'up' ? 'good' : 'bad')), col('State', (m) => m.state, (m) => h('span', { title: m.meaning }, f.text(m.state))),
      col('Heard of the other', (m) => m.other, (m) => f.text(m.other || (m.state ? 'silent' : ''))), col('Epoch', (m) => m.epoch, (m) => f.text(m.epoch), true),
      col('Came to serve (UTC)', (m) => m.served && m.served.at_ms, (m) => at(m.served)), col('Lost its standby (UTC)', (m) => m.lost && m.lost.at_ms, (m) => at(m.lost)),
      col('Document', (m) => m.generation_running, (m) => (m.generation_running === g.generation ? `${g.generation}` : h('span', { class: 'warn' }, `${m.generation_running} of ${g.generation}`)), true),
      col('Version', (m) => m.version), col('Heard', (m) => m.age_ms, (m) => f.age(m.age_ms), true), col('Refusal', (m) => m.refusal, (m) => f.text(m.refusal)),
    ], p.members, { marked: (m) => m.member === p.serves })] : null,
    h('h2', null, 'What happened'), table('gateway events', [
      col('Time (UTC)', (e) => e.time_ms, (e) => f.when(e.time_ms)), col('', (e) => e.severity, (e) => pill(e.severity, { info: 'good', warning: 'warn', error: 'bad' }[e.severity])),
      { ...col('Event', (e) => e.text), wide: true },
    ], told, { none: 'Nothing that the controller remembers.' }),
    h('p', null, h('a', { href: '#/gateways' }, 'All gateways'))];
}
