/* lock.js - one name: who holds it, who is next, who had it, and what was done to it. */
// SPDX-License-Identifier: MIT
import { copy, each, h, put, s, text } from '../dom.js';
import { ago, clock, since, span } from '../time.js';
import { get, getMaybe, query, thing } from '../api.js';
import { button, card, code, confirm, empty, facts, leaseBar, many, may, num, page, pill, sends, table, timeLeft, when, who } from '../parts.js';

/* Asks for a reason and for the name before a lease is ended by force. The fence that was
 * shown goes with it: another holder by then is left alone. */
export function askBreak(row, p) {
  const last = row.name.split(/[:/]/).pop(), next = row.waiters?.[0];
  return confirm({
    title: 'Break this lease?', danger: true, action: 'Break the lease', reason: true, word: last.length > 3 ? last : row.name,
    say: [code(row.name), ' is held by ', h('b', { text: who(p) }), ' under fence ', code(p.fence), '. ',
      next ? [h('b', { text: who(next) }), ' is next.'] : 'Nobody waits for it.'],
    note: 'Until the holder notices, it still believes that it holds the lock. Only a resource that checks fences is safe from it.',
    run: sends(thing('v1/locks', row.name, 'break'), { fence: p.fence }), done: `Broken: ${row.name}`,
  });
}

export function askYield(row, p) {
  return confirm({
    title: 'Ask the holder to give it back?', action: 'Ask', reason: true, say: [h('b', { text: who(p) }), ' is asked to give ', code(row.name), ' back. It may go on.'],
    note: 'Holders that do not listen for it are not told.',
    run: sends(thing('v1/locks', row.name, 'yield'), { fence: p.fence }), done: got => (got.asked ? `Asked: ${who(p)}` : `${who(p)} does not listen for such requests`),
  });
}

const WIDTHS = [60, 30, 10, 5, 2]; // minutes of the picture

/* The holds as bars on lanes, the latest at the right. */
function timeline(holds) {
  const bars = holds.map(b => ({ ...b, from: ago(b.granted_at), to: b.ended_at ? ago(b.ended_at) : 0 })).sort((a, b) => b.from - a.from);
  const minutes = WIDTHS.find(m => bars.filter(b => b.to < m * 60000).length <= 80 && bars[0].from > m * 30000) || WIDTHS.at(-1);
  const W = 1000, LANE = 22, whole = minutes * 60000, x = ms => W * (1 - Math.min(ms, whole) / whole), lanes = [];
  const shown = bars.filter(b => b.to < whole);
  for (const b of shown) {
    b.lane = lanes.findIndex(end => end >= b.from - 200);
    if (b.lane < 0) b.lane = lanes.push(0) - 1;
    lanes[b.lane] = b.to;
  }
  const H = 6 + Math.max(1, lanes.length) * LANE;
  return [s('svg', { class: 'gantt', viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: 'none', vars: { '--h': H + 'px' }, role: 'img', 'aria-label': `${many(shown.length, 'hold')} in the last ${minutes} minutes` },
    Array.from({ length: 6 }, (_, i) => s('line', { class: 'grid', x1: i * 200, x2: i * 200, y1: 0, y2: H })),
    shown.map(b => s('g', { class: b.how }, s('title', { text: `${who(b)} ${b.label}\nfence ${b.fence}\nwaited ${span(b.waited_ms)}, held ${span(b.from - b.to)}, ${b.how}` }),
      s('rect', { x: x(b.from), y: 4 + b.lane * LANE, width: Math.max(2, x(b.to) - x(b.from) - 1), height: 15, rx: 2 })))),
  h('div', { class: 'axis', 'aria-hidden': 'true' }, Array.from({ length: 6 }, (_, i) => h('span', { text: i === 5 ? 'now' : minutes < 5 ? `${((5 - i) * minutes * 60) / 5}s` : `${((5 - i) * minutes) / 5}m` })))];
}

function holderCard(p, row) {
  const bar = leaseBar(), left = h('span');
  const el = h('section', { class: 'card holder' + (p.stale ? ' is-stale' : ''), 'aria-label': `Holder ${who(p)}` },
    h('header', {}, h('h2', {}, h('span', { text: who(p) }), p.label && h('small', { text: p.label })), pill(p.stale ? 'seems to be gone' : p.mode === 'permits' ? `${p.permits} of ${row.capacity}` : p.mode, p.stale ? 'warn' : '')),
    h('div', { class: 'bigbar' }, bar, left),
    p.stale && h('p', { class: 'note', text: `${p.stale}. The lease runs on until its time is over.` }),
    p.claim && h('p', { class: 'note', text: 'It has been offered this and has not taken it up yet.' }),
    facts([['Held for', since(num(), p.age_ms, row.got)], ['Fence', h('span', {}, code(p.fence), copy(p.fence))],
      ['Owner', code(p.owner8 + '…')], p.identity && ['Identity', code(p.identity)], p.priority ? ['Priority', p.priority] : null,
      ...Object.entries(p.meta || {})]),
    may('operate') && h('footer', {}, button('Ask to give back…', () => askYield(row, p)),
      may('admin') && button('Break…', () => askBreak(el.row, p), 'danger')));
  el.show = (next, fresh) => {
    el.row = fresh;
    bar.show(next, fresh.got);
    put(left, timeLeft(next, fresh.got));
  };
  el.row = row;
  return el;
}

function words(row) {
  if (!row.holder_count) return row.waiter_count ? `Free, and ${row.waiter_count} wait.` : 'Free. Nobody holds it and nobody waits.';
  const by = row.capacity ? `${many(row.holder_count, 'holder')}; it has ${many(row.capacity, 'permit')}` : row.holder_count > 1 ? `${row.holder_count} readers` : 'one';
  return `Held by ${by}. ${row.waiter_count ? `${row.waiter_count} wait.` : 'Nobody waits.'}`;
}

const spans = x => [['p50', span(x.p50_us / 1000)], ['p95', span(x.p95_us / 1000)], ['p99', span(x.p99_us / 1000)]];

export default function lock(name) {
  const view = page(name, { back: ['Locks', '#/locks'], mono: true });
  view.name.append(copy(name));
  const lead = h('p', { class: 'lead' }), holders = h('div', { class: 'holders' }), picture = h('div'), stats = h('div'), queue = h('ol', { class: 'queue' });
  const past = table('Holds', 'holds', ['From', 'Holder', 'Waited', 'Held', 'Ended', 'Fence'], {
    key: b => b.fence + who(b) + b.granted_at,
    make: b => [when(b.granted_at), h('span', {}, h('b', { text: who(b) }), h('small', { text: ' ' + b.label })), num(span(b.waited_ms)), num(), h('span'), code(b.fence)],
    update: (cells, b) => { text(cells[3].firstChild, span(b.held_ms)); text(cells[4].firstChild, { held: 'is held', expired: 'ran out', ended: 'given back' }[b.how] || b.how); },
  });
  const trail = table('Changes by hand', 'trail', ['When', 'Who', 'What', 'Reason'], {
    key: e => e.position, make: e => [when(e.at), h('span', { text: e.who || e.by || '–' }), h('span', { text: e.action }), h('span', { class: 'why', text: e.reason || '–' })],
  });
  const trailCard = h('div', {}, h('h2', { class: 'over', text: 'Changed by hand' }), trail.el);

  function frame() {
    view.head.after(lead);
    put(view.body, holders, h('div', { class: 'two wide' }, card('Who had it', null, picture, stats), card('Who is next', null, queue)), past.el, trailCard);
  }

  function draw({ row, history, sums, audit }) {
    if (!queue.isConnected) frame();
    text(lead, words(row));
    each(holders, row.holders, p => p.fence + p.owner8 + (p.stale || '') + (p.claim ? 'c' : ''), p => holderCard(p, row), (el, p) => el.show(p, row));
    holders.classList.toggle('many', row.holders.length > 2);
    put(picture, history.items.length ? timeline(history.items) : empty('No holds were seen.', `Since ${clock(history.since_at)}, as far as the daemon looked.`));
    const mine = sums?.items.find(x => x.name === name);
    put(stats, mine && facts([['Acquired', mine.acquired], ['Lost', mine.lost], ...spans(mine.wait).map(([k, v]) => ['Waited ' + k, v]), ...spans(mine.hold).slice(0, 2).map(([k, v]) => ['Held ' + k, v])]));
    if (row.waiters.length) {
      each(queue, row.waiters, (w => who(w) + w.label + w.identity + w.mode + w.priority), w => h('li', {}, h('b', { text: who(w) }),
        h('small', { text: [w.label, w.mode !== 'exclusive' && w.mode, w.permits > 1 && many(w.permits, 'permit'), w.priority && `priority ${w.priority}`].filter(Boolean).join(' · ') }), since(num(), w.age_ms, row.got)));
    } else put(queue, h('li', { class: 'none' }, empty('Nobody waits.')));
    past.show(history.items.slice(0, 50), empty('None yet.'));
    trailCard.hidden = !audit?.items.length;
    if (audit) trail.show(audit.items);
  }

  view.keep(async () => {
    const [row, history, sums, audit] = await Promise.all([get(thing('v1/locks', name)), get(thing('v1/locks', name, 'history')),
      getMaybe(query('v1/stats', { prefix: name })), getMaybe(query('v1/audit', { name, limit: 20 }))]);
    return { row, history, sums, audit };
  }, draw, { every: 2000, kinds: ['locks'] });
  return view;
}
