// SPDX-License-Identifier: Apache-2.0
// A table that sorts by its headings and filters by words. Columns: {name, of: row => value to sort by,
// show: row => node or text, num, wide}. The user's choices are kept while the page is open, also over refreshes.
import { empty, h } from './dom.js';

const chosen = new Map(); // id -> {column, down, words}

function compare(a, b) {
  if (a === undefined || a === null) return b === undefined || b === null ? 0 : 1;
  if (b === undefined || b === null) return -1;
  return typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'en', { numeric: true });
}

const state = (id) => chosen.get(id) || chosen.set(id, { column: null, down: false, words: '' }).get(id);

export function setFilter(id, words) { state(id).words = words; }

function matches(row, columns, words) {
  const all = columns.map((c) => c.of(row)).filter((v) => v !== undefined && v !== null).join(' ').toLowerCase();
  return words.every((w) => all.includes(w));
}

export function table(id, columns, rows, { none, more, marked, controls } = {}) {
  const st = state(id);
  const body = h('tbody');
  const told = h('span', { class: 'dim' });
  const heads = columns.map((c) => h('th', { class: c.num && 'num', scope: 'col' },
    h('button', { onclick: () => { st.down = st.column === c.name && !st.down; st.column = c.name; draw(); } }, c.name)));
  const filter = h('input', { type: 'search', placeholder: 'Filter by words', 'aria-label': 'Filter by words', oninput: (e) => { st.words = e.target.value; draw(); } });

  function draw() {
    const words = st.words.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = rows.filter((r) => matches(r, columns, words));
    const by = columns.find((c) => c.name === st.column);
    if (by) shown.sort((a, b) => compare(by.of(a), by.of(b)) * (st.down ? -1 : 1));
    columns.forEach((c, i) => {
      if (c === by) heads[i].setAttribute('aria-sort', st.down ? 'descending' : 'ascending');
      else heads[i].removeAttribute('aria-sort');
    });
    body.replaceChildren(...shown.slice(0, 500).map((r) => h('tr', { class: marked && marked(r) && 'chosen' },
      columns.map((c) => h('td', { class: [c.num && 'num', c.wide && 'wide'].filter(Boolean).join(' ') || null }, c.show ? c.show(r) : String(c.of(r) ?? '–'))))));
    told.textContent = `${shown.length} of ${rows.length}${more ? ' (the first; the API has more)' : ''}${shown.length > 500 ? ', 500 shown' : ''}`;
    wrap.replaceChildren(rows.length ? h('table', null, h('thead', null, h('tr', null, heads)), body) : empty(none || 'Nothing here yet.'));
  }

  const wrap = h('div', { class: 'card' });
  filter.value = st.words;
  draw();
  return [rows.length > 8 || st.words ? h('div', { class: 'bar' }, filter, told, controls) : null, wrap];
}
