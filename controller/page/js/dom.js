// SPDX-License-Identifier: Apache-2.0
// Creates elements. Text is always text: no report of a gateway can become markup.
const SVG = 'http://www.w3.org/2000/svg';

function fill(e, attrs, children) {
  for (const [k, v] of Object.entries(attrs || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v === true ? '' : v);
  }
  for (const c of children.flat(Infinity)) if (c !== null && c !== undefined && c !== false) e.append(c);
  return e;
}

export const h = (tag, attrs, ...children) => fill(document.createElement(tag), attrs, children);
export const s = (tag, attrs, ...children) => fill(document.createElementNS(SVG, tag), attrs, children);
export const pill = (text, kind) => h('span', { class: `pill ${kind}` }, text);
export const empty = (text) => h('div', { class: 'empty' }, text);
export const facts = (pairs) => h('dl', null, pairs.filter(([, v]) => v !== undefined && v !== null && v !== '')
  .map(([k, v]) => [h('dt', null, k), h('dd', null, v)]));
