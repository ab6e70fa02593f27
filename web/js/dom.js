/* dom.js - elements: making them, changing them, and little else.
 *
 * Text from the store becomes a text node or the value of a harmless attribute, never
 * markup: nothing in this program parses HTML. */
// SPDX-License-Identifier: MIT
const SVG = 'http://www.w3.org/2000/svg';

/* A link leads to a page of this program. A name such as "javascript:..." is no address. */
function address(value) {
  if (!value.startsWith('#')) throw new Error('not an address of this program: ' + value);
  return value;
}

function set(el, key, value) {
  if (value == null || value === false) return;
  if (key === 'text') el.textContent = value;
  else if (key === 'vars') Object.entries(value).forEach(([name, x]) => el.style.setProperty(name, x));
  else if (key.startsWith('on')) el.addEventListener(key.slice(2), value);
  else el.setAttribute(key, value === true ? '' : key === 'href' ? address(value) : value);
}

const real = kids => kids.flat(9).filter(kid => kid != null && kid !== false);

function fill(el, props, kids) {
  Object.entries(props || {}).forEach(([key, value]) => set(el, key, value));
  el.append(...real(kids));
  return el;
}

/* h('a', { href: '#/locks', text: 'Locks', onclick: fn, vars: { '--depth': 1 } }, kids...) */
export const h = (tag, props, ...kids) => fill(document.createElement(tag), props, kids);
export const s = (tag, props, ...kids) => fill(document.createElementNS(SVG, tag), props, kids);

/* Makes these the only children of el. */
export function put(el, ...kids) {
  el.kept = null;
  el.replaceChildren(...real(kids));
  return el;
}

export function text(el, value) {
  if (el.textContent !== String(value)) el.textContent = value;
}

/* Makes the children of `parent` those of `items`, in order. An element is made once
 * for each key and updated in place, so that focus, selection and motion stay. */
export function each(parent, items, key, make, update) {
  if (!parent.kept) put(parent).kept = new Map();
  const kept = parent.kept, seen = new Map();
  for (const item of items) {
    let id = key(item);
    while (seen.has(id)) id += '+'; // two threads of one process
    seen.set(id, item);
  }
  // First, so that what stays behind them is not moved: that takes the focus from it.
  for (const [id, el] of kept) if (!seen.has(id)) { el.remove(); kept.delete(id); }
  let at = parent.firstElementChild;
  for (const [id, item] of seen) {
    let el = kept.get(id);
    if (!el) kept.set(id, (el = make(item)));
    update?.(el, item);
    if (el === at) at = at.nextElementSibling;
    else parent.insertBefore(el, at);
  }
  return parent;
}

const PATHS = {
  overview: 'M4 4h6v9H4zM14 11h6v9h-6zM4 17h6v3H4zM14 4h6v3h-6z',
  locks: 'M6 11h12v9H6zM8 11V8a4 4 0 0 1 8 0v3M12 14.5v2',
  waits: 'M4 4h4v4H4zM16 16h4v4h-4zM8 6h6a4 4 0 0 1 4 4v6M16 18h-6a4 4 0 0 1-4-4V8',
  coordination: 'M6 21V4h11l-2.5 3.75L17 11.5H6',
  queues: 'M4 7h16M4 12h16M4 17h10',
  jobs: 'M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0zM12 7v5l3.5 2',
  nodes: 'M4 4.5h16v6H4zM4 13.5h16v6H4zM7.5 7.5h.01M7.5 16.5h.01',
  audit: 'M6 3.5h9l4 4v13H6zM9.5 8h2.5M9.5 12h6M9.5 16h6',
  search: 'M17 10.5a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0zM15.5 15.5 20 20',
  light: 'M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0zM12 3v2M12 19v2M3 12h2M19 12h2M6 6l1 1M17 17l1 1M6 18l1-1M17 7l1-1',
  dark: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1', open: 'M9 5l7 7-7 7', out: 'M10 4H5v16h5M15 8l4 4-4 4M19 12H9',
  warn: 'M12 4 2.8 20h18.4zM12 10v4.5M12 17.2v.01',
};
export const icon = name => s('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' }, s('path', { d: PATHS[name] || PATHS.warn }));

/* Says in a corner how something ended. */
export function toast(message, kind = 'ok') {
  const el = h('div', { class: 'toast ' + kind, text: message });
  document.getElementById('toasts').append(el);
  setTimeout(() => el.remove(), kind === 'ok' ? 6000 : 12000);
}

export const copy = value => h('button', {
  class: 'quiet', type: 'button', title: 'Copy', 'aria-label': 'Copy ' + value,
  onclick: () => navigator.clipboard?.writeText(value).then(() => toast('Copied'), () => toast('Not copied: the browser refuses', 'bad')),
}, icon('copy'));

/* A dialog over the page, which has the focus until it is closed; then what had it before. */
export function dialog(title, ...kids) {
  const before = document.activeElement;
  const el = h('dialog', { 'aria-label': title }, h('h2', { text: title }), ...kids);
  el.addEventListener('close', () => { el.remove(); if (before?.isConnected) before.focus(); });
  el.addEventListener('click', e => { if (e.target === el) el.close(); });
  document.body.append(el);
  el.showModal();
  return el;
}
