/* parts.js - what pages are made of: their frame and states, rows, holders, questions. It passes
 * dom.js, time.js and api.js on, so that a page imports all of that here. */
// SPDX-License-Identifier: MIT
export * from './dom.js';
export * from './time.js';
export * from './api.js';
import { dialog, each, h, icon, put, text, toast } from './dom.js';
import { both, calm, clock, moment, now, span, ticks } from './time.js';
import { follow, state } from './live.js';
import { post } from './api.js';

/* The address of a page: to('locks', name). */
export const to = (...parts) => '#/' + parts.map(encodeURIComponent).join('/');
const RANK = { read: 0, operate: 1, admin: 2 };
/* Whether the viewer's role allows it. The daemon decides; this only hides what it would refuse. */
export const may = role => (RANK[state.me?.role] ?? -1) >= RANK[role];
export const who = p => `${p.host}:${p.pid}`;
export const count = n => (n >= 10000 ? (n / 1000).toFixed(n < 100000 ? 1 : 0) + 'k' : String(n));
export const andMore = (n, shown) => (n > shown ? ` and ${n - shown} more` : '');
export const cut = (words, most) => (words.length > most ? words.slice(0, most - 1) + '…' : words);
export const many = (n, word) => `${count(n)} ${word}${n === 1 ? '' : 's'}`;

/* ---- A page and its states. */

export const empty = (title, sub, ...more) => h('div', { class: 'empty' }, h('p', { text: title }), sub && h('small', { text: sub }), more);

const WORDS = { 0: 'The daemon cannot be reached', 403: 'Not allowed', 404: 'Not here', 501: 'This store cannot do that', 503: 'The store is out of reach' };
export const failed = e => h('div', { class: 'empty failed', role: 'alert' }, icon('warn'), h('p', { text: WORDS[e.status] || 'That did not work' }), h('small', { text: e.message }));

let refresh = () => {}; // the page that is shown asks anew
/* A page with a title. page.keep(load, draw) asks again and again and draws the answers;
 * it shows that it loads, that it failed, or, when it had something to show before, how
 * old that is. main.js calls stop() when another page is shown.
 *
 *   const view = page('Queues', { lead: 'Work that waits.' });
 *   view.keep(() => get('v1/queues'), answer => { ... put(view.body, ...) ... });
 *   return view;
 */
export function page(title, { lead, back, mono } = {}) {
  const name = h('h1', {}, mono ? code(title) : title);
  const head = h('div', { class: 'title' }, back && h('a', { class: 'back', href: back[1], text: back[0] }), name);
  const note = h('p', { class: 'oldnote', role: 'status', hidden: true });
  const body = h('div', { class: 'body' });
  const el = h('div', { class: 'page' }, head, lead && h('p', { class: 'lead', text: lead }), note, body);
  const ends = [];

  function keep(load, draw, { every = 5000, kinds = [] } = {}) {
    let known = null, over = false;
    const slow = setTimeout(() => { if (!known && !body.firstChild) put(body, empty('Loading …')); }, 400);
    const ask = follow(async () => {
      try {
        const answer = await load();
        if (over) return;
        if (!known) put(body);
        known = new Date();
        note.hidden = true;
        draw(answer);
      } catch (e) {
        if (over || e.status === 401) return;
        if (!(e.status >= 0)) throw e; // a mistake of this program, which the console shows
        if (!known) put(body, failed(e));
        else {
          text(note, `Shown as of ${clock(known)}. ${e.message}`);
          note.hidden = false;
        }
      }
    }, { every, kinds });
    refresh = ask.now;
    ends.push(() => { over = true; clearTimeout(slow); ask.stop(); });
    return ask;
  }
  return { el, head, name, body, keep, ends, title, stop: () => ends.splice(0).forEach(end => end()) };
}

export const code = name => h('code', { text: name });
export const num = value => h('span', { class: 'num', text: value });
export const button = (label, onclick, cls) => h('button', { class: cls, type: 'button', text: label, onclick });
/* The name of a thing in a row that leads to it, which has the focus instead. */
export const named = (kind, name) => h('a', { class: 'name', href: to(kind, name), text: name, tabindex: -1 });
/* Draws anew only what differs, so that the focus stays. */
export function once(el, state, draw) {
  const key = JSON.stringify(state);
  if (el.key !== key) { el.key = key; draw(); }
}
export const card = (title, side, ...kids) => h('section', { class: 'card' }, title && h('header', {}, h('h2', { text: title }), side && (side.nodeType ? side : h('small', { text: side }))), kids);
export const pill = (label, kind = '') => h('span', { class: 'pill ' + kind, text: label });
/* facts([['Fence', '12'], cond && [...]]): pairs of a word and a text or an element. */
export const facts = pairs => h('dl', { class: 'facts' }, pairs.filter(Boolean).map(([k, v]) => h('div', {}, h('dt', { text: k }), h('dd', {}, v))));
/* A moment in the viewer's zone; its title has it in UTC too. */
export const when = (at, form = moment) => (at ? h('time', { class: 'num', datetime: new Date(at).toISOString(), title: both(at), text: form(at) }) : h('span', { class: 'dim', text: '–' }));

/* find() of a page: fn(text) when the typing rests. */
export function rested(fn) {
  let typing;
  return q => { clearTimeout(typing); typing = setTimeout(fn, 200, q); };
}

/* ---- A table of some hundreds of rows. `cls` gives the columns their widths (app.css);
 * make(row) returns the cells of a new row, update(cells, row) brings them up to date,
 * open(row) is the address that the row leads to. More rows than that: list.js. */
export function table(label, cls, columns, { key, make, update, open }) {
  const body = h('div', { class: 'rows', role: 'rowgroup' });
  const foot = h('div', { class: 'foot' });
  const head = h('div', { class: 'row head', role: 'row' }, columns.map(c => h('span', { role: 'columnheader', text: c })));
  const el = h('section', { class: `card table ${cls}` }, h('div', { role: 'table', 'aria-label': label }, h('div', { role: 'rowgroup' }, head), body), foot);
  const makeRow = row => {
    const cells = make(row).map((cell, i) => h('div', { role: 'cell', 'data-label': columns[i] }, cell));
    const line = h('div', { class: 'row', role: 'row' }, cells);
    line.cells = cells;
    if (open) {
      Object.entries({ tabindex: 0, 'data-row': '' }).forEach(([k, v]) => line.setAttribute(k, v));
      line.classList.add('opens');
      const go = () => { location.hash = open(line.item); };
      line.addEventListener('click', e => e.target.closest('a, button') || go());
      line.addEventListener('keydown', e => e.key === 'Enter' && e.target === line && go());
    }
    return line;
  };
  const show = (rows, none, total) => {
    each(body, rows, key, makeRow, (line, row) => { line.item = row; update?.(line.cells, row, line); });
    put(foot, rows.length ? total > rows.length && h('small', { text: `${rows.length} of ${count(total)}; search to find the others.` }) : none);
  };
  return { el, show, body, foot };
}

/* ---- Leases. All bars move together, and only by whole pixels: an animation for each
 * keeps a processor busy on a screen that is on all day. */
const bars = new Set();
function moveBar(el) {
  const left = Math.max(0, el.until - now());
  const px = Math.round(Math.min(1, left / el.ttl) * 200);
  if (px !== el.px) el.firstChild.style.transform = `scaleX(${(el.px = px) / 200})`;
}
setInterval(() => {
  if (document.hidden) return;
  for (const el of bars) if (el.isConnected) moveBar(el); else bars.delete(el);
}, 250);

/* The rest of a lease, as a bar. el.show(party, got) brings it up to date. */
export function leaseBar() {
  const el = h('span', { class: 'lease', role: 'img' }, h('i'));
  el.show = (p, got) => {
    Object.assign(el, { until: got + p.left_ms, ttl: p.ttl_ms || 1 });
    bars.add(el);
    moveBar(el);
    el.classList.toggle('stale', !!p.stale);
    const label = `${calm(p.left_ms)} left of ${span(p.ttl_ms)}`;
    if (el.title !== label) { el.title = label; el.setAttribute('aria-label', label); }
  };
  return el;
}

/* The time that a lease has left, in words that change. */
export const timeLeft = (p, got) => ticks(num(), el => text(el, `${calm(Math.max(0, p.left_ms - now() + got))} of ${span(p.ttl_ms)}`));

/* How a name is held: alone, shared by n, or n of so many permits. */
export function kindMark(row) {
  if (row.capacity) {
    const used = row.holder_count && row.permits_used;
    const dots = row.capacity <= 12 ? Array.from({ length: row.capacity }, (_, i) => h('i', { class: i < used ? 'on' : '' })) : [];
    return h('span', { class: 'permits', title: `${used} of ${row.capacity} permits` }, dots, h('b', { text: `${used}/${row.capacity}` }));
  }
  const shared = row.holders[0]?.mode === 'shared';
  const word = !row.holder_count ? 'free' : !shared ? 'exclusive' : row.holder_count > 1 ? `shared by ${row.holder_count}` : 'shared';
  return h('span', { class: 'mode' + (shared ? ' shared' : ''), text: word });
}

/* ---- Questions. Nothing is changed without one. */

/* confirm({
 *   title: 'Break this lease?', say: [nodes or texts that name what will change],
 *   note: 'what it cannot do', word: 'text to type' (for what cannot be undone),
 *   reason: true | 'optional', action: 'Break the lease', danger: true,
 *   run: async reason => ..., done: 'Broken: x' })
 * run() throws what the daemon refused; the dialog shows it and stays. */
export function confirm({ title, say, note, word, reason, action, danger, run, done }) {
  const why = reason && h('input', { id: 'reason', autocomplete: 'off', maxlength: 400 });
  const typed = word && h('input', { id: 'typed', autocomplete: 'off', spellcheck: 'false' });
  const go = h('button', { class: danger ? 'danger' : 'main', type: 'submit', text: action });
  const fault = h('p', { class: 'badtext', role: 'alert' });
  let busy = false; // it is sent once
  const ready = () => { go.disabled = busy || (reason === true && !why.value.trim()) || (!!word && typed.value !== word); };
  const box = dialog(title, h('form', { onsubmit: submit, oninput: ready },
    h('p', {}, say), note && h('p', { class: 'note', text: note }),
    why && [h('label', { for: 'reason', text: reason === true ? 'Reason, for the audit trail' : 'Reason, for the audit trail (may be empty)' }), why],
    typed && [h('label', { for: 'typed' }, 'Type ', code(word), ' to confirm'), typed],
    fault, h('footer', {}, button('Cancel', () => box.close()), go)));
  async function submit(e) {
    e.preventDefault();
    busy = go.disabled = true;
    text(fault, '');
    try {
      const got = await run(why ? why.value.trim() : undefined);
      box.close();
      toast(typeof done === 'function' ? done(got) : done);
    } catch (problem) {
      text(fault, problem.message);
      busy = false;
      ready();
    }
  }
  ready();
  (why || typed || go).focus();
  return box;
}

/* The usual form of run(): sends {reason, ...body} to a path; then the page shows what became of it. */
export const sends = (path, body = {}) => async reason => {
  const got = await post(path, reason ? { ...body, reason } : body);
  refresh();
  return got;
};
