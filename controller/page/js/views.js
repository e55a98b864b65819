// SPDX-License-Identifier: Apache-2.0
// One function for each view: (rest of the address, signal) => title and nodes. It reads its data from the API.
import { get, list } from './api.js';
import { empty, facts, h, pill } from './dom.js';
import * as f from './format.js';
import { graph, tunnelKind } from './graph.js';
import { remember, spark } from './history.js';
import { gateway, pairCell, pairProblems, pairSort } from './pairs.js';
import { setFilter, table } from './table.js';

const col = (name, of, show, kind) => ({ name, of, show, num: kind === 'num', wide: kind === 'wide' });
const number = (name, of, show) => col(name, of, (r) => show(of(r)), 'num');

async function network(rest, signal) {
  const [{ sites }, gws, tuns] = await Promise.all([get('/v1/sites', signal), list('/v1/gateways', 'gateways', signal), list('/v1/tunnels', 'tunnels', signal)]);
  remember(tuns.items);
  if (!sites.length) return ['Network', empty('No sites yet. PUT /v1/sites/NAME adds one; gateways then register by themselves.')];
  const lost = gws.items.filter((g) => g.state !== 'up');
  return ['Network', h('div', { class: 'card' }, graph(sites, gws.items, tuns.items),
    h('div', { class: 'legend' }, [['good', 'up'], ['warn', 'loses 1 % or more, a document was refused, or a pair is not protected'], ['bad', 'lost']].map(([k, t]) => h('span', null, h('b', { class: k }), t)),
      h('span', null, 'Thicker: more bandwidth'), gws.more || tuns.more ? h('span', { class: 'warn' }, 'Only the first gateways and tunnels are drawn') : null)),
  pairProblems(gws.items),
  lost.length ? [h('h2', null, 'Lost gateways'), h('p', null, lost.slice(0, 50).map((g) => [h('a', { href: `#/gateways?${encodeURIComponent(g.name)}` }, g.name), ' ']))] : null];
}

const gatewayState = (g) => (g.state !== 'up' ? pill('lost', 'bad') : g.refusal ? pill('refused', 'warn') : pill('up', 'good'));

function gatewayColumns(items) {
  const pair = items.some((g) => g.pair) ? [col('Pair', pairSort, pairCell)] : [];
  const cap = (g, c) => g.capabilities && g.capabilities[c] && g.capabilities[c].bandwidth_bps;
  return [
    col('Gateway', (g) => g.name, (g) => h('a', { href: `#/gateways/${encodeURIComponent(g.name)}` }, g.name)), col('Site', (g) => g.site), col('State', (g) => g.state, gatewayState), ...pair,
    number('Sessions', (g) => g.load && g.load.sessions, f.count), number('Carries', (g) => g.load && g.load.rate_bps, f.rate),
    number('CPU', (g) => g.load && g.load.cpu_ppm, f.percent), number('Custody', (g) => g.load && g.load.custody_ppm, f.percent),
    number('RoCEv2', (g) => cap(g, 'rocev2'), f.rate), number('TCP', (g) => cap(g, 'tcp'), f.rate),
    col('Document', (g) => g.generation_running, (g) => (g.generation === g.generation_running ? `${g.generation}` : h('span', { class: 'warn' }, `${g.generation_running} of ${g.generation}`)), 'num'),
    col('WAN', (g) => (g.wan || []).join(' '), (g) => h('code', null, (g.wan || []).join(' '))), col('Version', (g) => g.version),
    number('Heard', (g) => g.age_ms, f.age), col('Refusal', (g) => g.refusal, (g) => f.text(g.refusal), 'wide'),
  ];
}

async function gateways(rest, signal) {
  if (rest) setFilter('gateways', rest);
  const { items, more } = await list('/v1/gateways', 'gateways', signal);
  return ['Gateways', table('gateways', gatewayColumns(items), items, { more, none: 'No gateway has registered yet.' })];
}

// The paths in networks that gateways send along, with what each gateway sends and may send, or why they send along none.
const sends = (t, p) => Object.entries(t.along || {}).flatMap(([gw, list]) => list.filter((x) => x.label === `${p.edge}/${p.path}`)
  .map((x) => `${gw} ${x.answers ? f.rate(x.rate_bps) : 'no answer'}`)).join(', ');
const along = (t) => (t.paths || []).filter((p) => p.bandwidth_bps)
  .map((p) => `${p.edge}/${p.path} at most ${f.rate(p.rate_bps)}${sends(t, p) ? ` (${sends(t, p)})` : ''}`).join('; ') || t.unsteered;

async function tunnels(rest, signal) {
  if (rest) setFilter('tunnels', rest);
  const { items, more } = await list('/v1/tunnels', 'tunnels', signal);
  remember(items);
  const curve = (key, show, what) => (t) => [spark(t.name, key), ' ', show(t[what])];
  return ['Tunnels', table('tunnels', [
    col('Tunnel', (t) => t.name), col('Sites', (t) => t.sites.join(' – ')), col('State', (t) => t.state, (t) => pill(t.state, tunnelKind(t))),
    col('Carrier', (t) => t.carrier), number('Planned', (t) => t.rate_bps, f.rate), number('Reserved', (t) => t.reserved_bps, f.rate),
    col('Sent along', (t) => along(t), (t) => f.text(along(t)), 'wide'), number('Weight', (t) => t.weight, f.count),
    col('RTT', (t) => t.rtt_us, curve('rtt', f.time, 'rtt_us'), 'num'), number('Jitter', (t) => t.jitter_us, f.time),
    col('Loss', (t) => t.loss_ppm, curve('loss', f.percent, 'loss_ppm'), 'num'), number('Available', (t) => t.bandwidth_bps, f.rate),
    number('Measured', (t) => t.age_ms, f.age), number('Sessions', (t) => t.sessions, f.count), col('Why', (t) => t.reason, (t) => f.text(t.reason), 'wide'),
  ], items, { more, none: 'No tunnels: they come when gateways of two sites are up.' })];
}

const flow = (x) => h('code', null, `${x.source} → ${x.destination}`);

async function sessions(rest, signal) {
  const { items, more } = await list('/v1/sessions', 'sessions', signal);
  return ['Sessions', table('sessions', [
    col('Session', (x) => x.id, (x) => h('a', { href: `#/sessions/${encodeURIComponent(x.id)}` }, x.id)), number('VNI', (x) => x.vni, String),
    col('From, to', (x) => `${x.source} ${x.destination}`, flow), col('QPNs', (x) => `${x.source_qpn} ${x.destination_qpn}`, (x) => h('code', null, `${x.source_qpn} → ${x.destination_qpn}`)),
    col('Gateways', (x) => x.pair), col('Carrier', (x) => x.carrier), number('Rate', (x) => x.rate_bps, f.rate), number('Carried', (x) => x.bytes, f.bytes),
    col('Why', (x) => x.reason, (x) => f.text(x.reason), 'wide'), number('Heard', (x) => x.age_ms, f.age),
  ], items, { more, none: 'No open sessions.' })];
}

// Formats values of inputs and decisions by the unit at the end of their name.
function value(key, v) {
  if (v === null || v === undefined) return '–';
  if (typeof v === 'object' && 'value' in v) return [value(key, v.value), h('span', { class: 'dim' }, ` ${[v.source, v.age_ms === undefined ? null : `${f.age(v.age_ms)} ago`.replace('now ago', 'now')].filter(Boolean).join(', ')}`)];
  if (typeof v === 'object') return facts(Object.entries(v).map(([k, x]) => [label(k), value(k, x)]));
  if (typeof v === 'number') {
    for (const [end, show] of [['_bps', f.rate], ['_us', f.time], ['_ppm', f.percent]]) if (key.endsWith(end)) return show(v);
    if (key.endsWith('_ms')) return f.time(v * 1000);
  }
  return typeof v === 'boolean' ? (v ? 'yes' : 'no') : String(v);
}
const label = (k) => k.replace(/_(bps|us|ppm|ms)$/, '').replaceAll('_', ' ');
const block = (title, x) => h('section', { class: 'card pad' }, h('h2', null, title), facts(Object.entries(x || {}).map(([k, v]) => [label(k), value(k, v)])));

// Tunnels in networks: one line per leg.
const reserved = (network) => table('reserved', [col('Tunnel', (l) => l.name), col('Sites', (l) => `${l.first} – ${l.second}`), col('Rule', (l) => l.shape), col('Network', (l) => l.provider),
  col('Edge', (l) => l.edge), col('Path', (l) => l.path), number('Reserved', (l) => l.bandwidth_bps, f.rate), number('Delay', (l) => l.delay_us, f.time), number('Jitter', (l) => l.jitter_us, f.time),
  col('Since (UTC)', (l) => l.reserved_ms, (l) => f.when(l.reserved_ms))], network.flatMap((n) => n.legs.map((leg) => ({ ...n, ...leg }))), { none: 'None.' });

function choices(title, rows, chosen) {
  if (!rows || !rows.length) return null;
  const keys = [...new Set(rows.flatMap((r) => Object.keys(r)))];
  return [h('h2', null, title), table(`choices ${title}`, keys.map((k) => col(label(k), (r) => r[k], (r) => value(k, r[k]), typeof rows[0][k] === 'number' ? 'num' : '')), rows, { marked: chosen })];
}

async function explain(id, signal) {
  const x = await get(`/v1/sessions/${encodeURIComponent(id)}/explain`, signal);
  const carrier = x.decision && x.decision.carrier, pair = x.decision && x.decision.pair;
  return [`Why ${id} goes as it does`, h('section', { class: 'card pad' }, h('p', { class: 'verdict' }, x.reason || x.rule), h('p', { class: 'note' }, 'Rule: ', h('code', null, x.rule))),
    choices('Carriers and what each promised', x.alternatives, (r) => r.carrier === carrier || r.chosen), choices('Pairs of gateways', x.pairs, (r) => r.pair === pair || r.chosen),
    x.network ? [h('h2', null, 'In the network, for job ', h('a', { href: `#/jobs/${encodeURIComponent(x.network.job)}` }, x.network.job), `: ${x.network.reason}`), reserved([x.network])] : null,
    h('h2', null, 'What it was decided on'), h('div', { class: 'grid' }, block('Session', x.session), block('Decision', x.decision), block('Inputs', x.inputs)),
    h('p', null, h('a', { href: '#/sessions' }, 'All sessions'))];
}

async function tenants(rest, signal) {
  const { tenants: items } = await get('/v1/tenants', signal);
  const sites = (t) => Object.entries(t.sites || {});
  return ['Tenants', table('tenants', [
    col('Tenant', (t) => t.name), number('VNI', (t) => t.vni, String), col('Sites', (t) => sites(t).map(([n]) => n).join(' ')),
    col('Prefixes', (t) => sites(t).flatMap(([, x]) => x.prefixes.map((p) => p.prefix)).join(' '),
      (t) => sites(t).map(([n, x]) => h('div', null, h('span', { class: 'dim' }, `${n}${x.vlan ? `, VLAN ${x.vlan}` : ''}: `), h('code', null, x.prefixes.map((p) => `${p.prefix} (${p.at})`).join(', ')))), 'wide'),
    col('Guarantee', (t) => t.guarantee, (t) => f.text(t.guarantee), 'num'), col('Limit', (t) => t.limit, (t) => f.text(t.limit), 'num'), number('Weight', (t) => t.weight, f.count),
    number('Priority', (t) => t.priority, f.count), col('Acknowledges', (t) => t.ack_mode || 'near'), number('ACL rules', (t) => (t.acl || []).length, f.count),
  ], items, { none: 'No tenants. PUT /v1/tenants/NAME adds one.' })];
}

async function jobs(rest, signal) {
  const { jobs: items } = await get('/v1/jobs', signal);
  return ['Jobs', table('jobs', [
    col('Job', (j) => j.name, (j) => h('a', { href: `#/jobs/${encodeURIComponent(j.name)}` }, j.name)), col('State', (j) => j.state, (j) => pill(j.state, j.state === 'planned' ? 'good' : 'bad')),
    col('Tenant', (j) => j.job.tenant, (j) => f.text(j.job.tenant)), number('Pairs', (j) => j.plan.length, f.count), number('At gateways', (j) => j.plan.reduce((a, p) => a + p.gateway_bps, 0), f.rate),
    number('At edges', (j) => j.plan.reduce((a, p) => a + p.edge_bps, 0), f.rate), number('Priority', (j) => j.job.priority || 0, f.count),
    col('Until', (j) => j.deadline_ms, (j) => f.text(j.deadline_ms && f.when(j.deadline_ms))), col('In networks', (j) => (j.network || []).map((n) => n.shape).join(' '), (j) => f.text((j.network || []).map((n) => `${n.first} – ${n.second}: ${f.rate(n.bandwidth_bps)}, ${n.shape}`).join('; '))),
    col('Spread by', (j) => j.job.granularity || 'address-pair'), col('Reason', (j) => j.reason, (j) => f.text(j.reason), 'wide'),
  ], items, { none: 'No jobs. A scheduler posts them to /v1/jobs.' })];
}

async function job(name, signal) {
  const j = await get(`/v1/jobs/${encodeURIComponent(name)}`, signal);
  const qpns = j.plan.some((p) => p.source_qpn) ? [col('QPNs', (p) => p.source_qpn, (p) => h('code', null, p.source_qpn ? `${p.source_qpn} → ${p.destination_qpn}` : 'others'))] : [];
  const often = (d) => (d.period_us ? ` each ${f.time(d.period_us)}, through in ${f.time(d.window_us || d.period_us)}` : '');
  const sizes = new Set([...(j.job.pairs || []), j.job.demand || {}].filter((d) => d.bytes).map((d) => f.bytes(d.bytes) + often(d)));
  const asked = [sizes.size && `pairs of ${[...sizes].slice(0, 3).join('; ')}`, j.deadline_ms && `until ${f.when(j.deadline_ms)}`, `priority ${j.job.priority || 0}`,
    'dscp' in j.job && `DSCP ${j.job.dscp}`, j.job.carrier && `by ${j.job.carrier} only`, j.preempts && `it took the room of ${j.preempts.join(', ')}`].filter(Boolean).join(', ');
  return [`Job ${j.name}`, h('p', { class: 'verdict' }, pill(j.state, j.state === 'planned' ? 'good' : 'bad'), ' ', j.reason || ''), h('p', null, asked),
    table('plan', [col('From, to', (p) => `${p.source} ${p.destination}`, flow), ...qpns, col('Gateways', (p) => p.pair), col('Carrier', (p) => p.carrier),
      number('Gateway', (p) => p.gateway_bps, f.rate), number('WAN edge', (p) => p.edge_bps, f.rate)], j.plan, { none: 'The plan is empty.' }),
    j.network ? [h('h2', null, 'Tunnels in networks'), reserved(j.network)] : null, h('p', null, h('a', { href: '#/jobs' }, 'All jobs'))];
}

async function links(rest, signal) {
  const x = await get('/v1/links?limit=1000', signal);
  return ['Links', h('h2', null, 'Measured by gateways'), table('measured', [
    col('From', (l) => l.gateway), col('To', (l) => l.peer), col('Carrier', (l) => l.carrier), number('RTT', (l) => l.rtt_us, f.time), number('Smallest', (l) => l.rtt_min_us, f.time), number('Jitter', (l) => l.jitter_us, f.time),
    number('Loss', (l) => l.loss_ppm, f.percent), col('Losses', (l) => (!l.loss_ppm || !l.burst ? '–' : l.burst > 1 ? `in bursts of ${l.burst}` : 'single')), number('Available', (l) => l.bandwidth_bps, f.rate), col('Source', (l) => l.source), number('Age', (l) => l.age_ms, f.age),
  ], x.measured, { more: x.next, none: 'Nothing measured yet.' }), h('h2', null, 'Reported by the networks’ controllers'), table('pushed', [
    col('From', (l) => l.site_a), col('To', (l) => l.site_b), col('Class', (l) => l.class), number('Bandwidth', (l) => l.bandwidth_bps, f.rate), number('Delay', (l) => l.delay_us, f.time), number('Jitter', (l) => l.jitter_us, f.time),
    number('Loss', (l) => l.loss_ppm, f.percent), col('Source', (l) => l.source), number('Age', (l) => l.age_ms, f.age),
  ], x.pushed, { none: 'No network controller has said anything.' }), h('h2', null, 'Reserved in networks for jobs'), table('reserved', [
    col('Tunnel', (l) => l.name), col('Job', (l) => l.job, (l) => h('a', { href: `#/jobs/${encodeURIComponent(l.job)}` }, l.job)), col('From', (l) => l.site_a), col('To', (l) => l.site_b),
    number('Bandwidth', (l) => l.bandwidth_bps, f.rate), number('Delay', (l) => l.delay_us, f.time), number('Jitter', (l) => l.jitter_us, f.time), number('Loss', (l) => l.loss_ppm, f.percent),
    col('Source', (l) => l.source), number('Age', (l) => l.age_ms, f.age),
  ], x.reserved, { none: 'Nothing is reserved.' })];
}

// Relays, their links and the hosts that follow the controller's redirects.
async function relays(rest, signal) {
  if (rest) setFilter('relays', rest);
  const [gws, ls, hosts] = await Promise.all([list('/v1/gateways', 'gateways', signal), list('/v1/relay-links', 'links', signal), list('/v1/hosts', 'hosts', signal)]);
  const relay = (g) => g.capabilities.relay, end = (l, i) => l.ends[i] || {};
  const of = (i) => [col(i ? 'Other host' : 'Host', (l) => end(l, i).host, (l) => h('code', null, f.text(end(l, i).host))), number('QPN', (l) => end(l, i).qpn, f.text),
    col('By relay', (l) => end(l, i).gateway, (l) => (end(l, i).gateway ? [h('span', { class: end(l, i).state === 'up' ? null : 'bad' }, end(l, i).gateway), ' ', h('code', null, end(l, i).relay)] : '–')), number('Carried', (l) => end(l, i).bytes, f.bytes)];
  return ['Relays', table('relays', [
    col('Relay', (g) => g.name), col('Site', (g) => g.site), col('State', (g) => g.state, gatewayState), col('Hosts connect to', (g) => relay(g).addresses.join(' '), (g) => h('code', null, relay(g).addresses.join(' '))),
    number('Links', (g) => g.load && g.load.links, f.count), number('Room for', (g) => relay(g).links_max, f.count), number('Carries', (g) => g.load && g.load.rate_bps, f.rate),
    number('CPU', (g) => g.load && g.load.cpu_ppm, f.percent), number('Heard', (g) => g.age_ms, f.age),
  ], gws.items.filter((g) => g.capabilities.relay), { more: gws.more, none: 'No relay has registered yet.' }),
  h('h2', null, 'Links'), table('relay links', [
    col('Link', (l) => l.link, (l) => h('code', null, l.link)), ...of(0), col('Tunnel', (l) => l.tunnel), col('Carrier', (l) => l.carrier), number('RTT', (l) => l.rtt_us, f.time),
    number('Loss', (l) => l.loss_ppm, f.percent), ...of(1), number('Open', (l) => end(l, 0).age_ms, f.age),
  ], ls.items, { more: ls.more, none: 'No open links.' }),
  h('h2', null, 'Hosts'), table('hosts', [
    col('Host', (x) => x.name), col('Site', (x) => x.site), col('State', (x) => x.state, (x) => pill(x.state, x.state === 'up' ? 'good' : 'bad')), number('Follows', (x) => x.generation, String),
    col('Relays that do not answer it', (x) => x.down.join(' '), (x) => (x.down.length ? h('code', { class: 'warn' }, x.down.join(' ')) : '–'), 'wide'), col('Version', (x) => x.version), number('Heard', (x) => x.age_ms, f.age),
  ], hosts.items, { more: hosts.more, none: 'No host asks for redirects.' })];
}

async function events(rest, signal) {
  const x = await get('/v1/events?limit=1000', signal);
  return ['Events', table('events', [
    col('Time (UTC)', (e) => e.time_ms, (e) => f.when(e.time_ms)), col('', (e) => e.severity, (e) => pill(e.severity, { info: 'good', warning: 'warn', error: 'bad' }[e.severity])),
    col('What', (e) => e.what), col('Name', (e) => e.name, (e) => f.text(e.name)), col('Event', (e) => e.text, null, 'wide'),
  ], [...x.events].reverse(), { none: 'Nothing has happened yet.' })];
}

export const views = { network, gateways, tunnels, sessions, relays, tenants, jobs, links, events };
export const details = { gateways: gateway, sessions: explain, jobs: job };
