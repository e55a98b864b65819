// SPDX-License-Identifier: Apache-2.0
// Draws the view that the address names, again every two seconds while the page is visible. A refresh does not
// replace a view while the user types or has something open.
import { get, Refused } from './api.js';
import { h } from './dom.js';
import { details, views } from './views.js';

const EVERY = 2000;
const main = document.getElementById('view');
const trouble = document.getElementById('trouble');
const health = document.getElementById('health');
let timer, abort, since;

function where() {
  const [path, rest] = location.hash.replace(/^#\//, '').split('?');
  const [name, ...id] = path.split('/');
  return { name: views[name] ? name : 'network', id: id.length ? decodeURIComponent(id.join('/')) : null, rest: rest ? decodeURIComponent(rest) : null };
}

function nav(name) {
  document.getElementById('nav').replaceChildren(...Object.keys(views).map((v) =>
    h('a', { href: `#/${v}`, 'aria-current': v === name ? 'page' : null }, v[0].toUpperCase() + v.slice(1))));
}

const busy = () => main.contains(document.activeElement) && document.activeElement.matches('input');

function say(error) {
  if (!error) {
    trouble.hidden = true;
    since = null;
    return;
  }
  since = since || new Date();
  trouble.hidden = false;
  trouble.textContent = error instanceof Refused ? `The controller refused: ${error.message}`
    : `The controller does not answer since ${since.toLocaleTimeString()}. What is shown is from before.`;
}

async function draw(first) {
  clearTimeout(timer);
  if (abort) abort.abort();
  abort = new AbortController();
  const { signal } = abort;
  const at = where();
  try {
    const [status, [title, ...nodes]] = await Promise.all([get('/v1/health', signal),
      at.id !== null && details[at.name] ? details[at.name](at.id, signal) : views[at.name](first ? at.rest : null, signal)]);
    if (signal.aborted) return;
    health.textContent = `${status.gateways_up} of ${status.gateways} gateways up, ${status.pairs ? `${status.pairs_protected} of ${status.pairs} pairs protected, ` : ''}${status.sessions} sessions, ${status.replica} ${status.version}, store ${status.store}`;
    health.className = status.ok ? '' : 'bad';
    document.title = `${title} – Roceway`;
    if (first || !busy()) main.replaceChildren(h('h1', null, title), ...nodes.flat(Infinity).filter(Boolean));
    main.dataset.ready = at.name;
    say(null);
  } catch (e) {
    if (signal.aborted) return;
    if (first) main.replaceChildren(h('h1', null, 'Nothing to show'), h('p', { class: 'note' }, e.message));
    say(e);
  }
  if (!document.hidden) timer = setTimeout(() => draw(false), EVERY);
}

function go() {
  delete main.dataset.ready;
  nav(where().name);
  draw(true);
}

addEventListener('hashchange', go);
addEventListener('visibilitychange', () => (document.hidden ? clearTimeout(timer) : draw(false)));
go();
