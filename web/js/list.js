/* list.js - a list of any length: only the rows in view are on the page.
 *
 * The rows have one height (--row in app.css), and the page itself scrolls. Up, Down,
 * Home, End and j, k move from row to row, Right and Left open and close a branch. */
// SPDX-License-Identifier: MIT
import { each, h } from './dom.js';

const BEYOND = 12; // rows that are ready above and below those in view

/* list(label, { key, make, update, near, act })
 *   make(item), update(el, item): the element of a row
 *   near(item): called for the items in view after each drawing, e.g. to fetch more
 *   act(item, 'open' | 'right' | 'left'): Enter or a click; the arrow keys */
export function list(label, { key, make, update, near, act }) {
  const el = h('div', { class: 'rows tall', role: 'rowgroup', 'aria-label': label });
  let items = [], active = null, queued = 0;

  function draw() {
    queued = 0;
    if (!el.isConnected) return;
    const height = parseFloat(getComputedStyle(el).getPropertyValue('--row')) || 38;
    const above = -el.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(above / height) - BEYOND);
    const last = Math.min(items.length, Math.ceil((above + innerHeight) / height) + BEYOND);
    const shown = [];
    for (let i = first; i < last; i++) shown.push(i);
    // The row that has the focus stays, wherever the page was scrolled to.
    const focused = el.contains(document.activeElement) ? items.findIndex(item => key(item) === active) : -1;
    if (focused >= 0 && (focused < first || focused >= last)) shown.push(focused);
    el.style.setProperty('height', items.length * height + 'px');
    if (!items.some(item => key(item) === active)) active = items.length ? key(items[Math.min(first + BEYOND, items.length - 1)]) : null;
    each(el, shown, i => key(items[i]), i => makeRow(items[i]), (row, i) => {
      row.item = items[i];
      row.tabIndex = key(items[i]) === active ? 0 : -1;
      row.setAttribute('aria-rowindex', i + 2);
      const y = i * height + 'px';
      if (row.y !== y) row.style.setProperty('top', (row.y = y));
      update(row, items[i]);
    });
    near?.(items.slice(first, last), last >= items.length);
  }
  const soon = () => { queued ||= requestAnimationFrame(draw); };

  function makeRow(item) {
    const row = make(item);
    row.addEventListener('click', e => { if (!e.target.closest('a, button')) { active = key(row.item); act(row.item, 'open'); } });
    row.addEventListener('focus', () => { active = key(row.item); });
    return row;
  }

  /* Goes so many rows on, and gives that row the focus. */
  function move(by) {
    const at = items.findIndex(item => key(item) === active);
    const inside = el.contains(document.activeElement);
    const next = Math.max(0, Math.min(items.length - 1, inside ? at + by : at));
    if (!items.length) return;
    active = key(items[next]);
    const height = parseFloat(getComputedStyle(el).getPropertyValue('--row')) || 38;
    const y = el.getBoundingClientRect().top + next * height;
    if (y < 60 || y + height > innerHeight - 80) scrollBy(0, y - innerHeight / 2);
    draw();
    el.kept?.get(active)?.focus({ preventScroll: true });
  }

  const KEYS = { ArrowDown: () => move(1), ArrowUp: () => move(-1), Home: () => move(-items.length), End: () => move(items.length),
    PageDown: () => move(15), PageUp: () => move(-15) };
  el.addEventListener('keydown', e => {
    const row = e.target.closest('.row');
    if (e.ctrlKey || e.metaKey || e.altKey || !row || e.target !== row) return;
    if (KEYS[e.key]) KEYS[e.key]();
    else if (e.key === 'Enter' || e.key === ' ') act(row.item, 'open');
    else if (e.key === 'ArrowRight') act(row.item, 'right');
    else if (e.key === 'ArrowLeft') act(row.item, 'left');
    else return;
    e.preventDefault();
  });
  addEventListener('scroll', soon, { passive: true });
  addEventListener('resize', soon);
  return {
    el, move,
    show(next) { items = next; draw(); },
    redraw: soon,
    stop() { removeEventListener('scroll', soon); removeEventListener('resize', soon); cancelAnimationFrame(queued); },
  };
}
