/* overview.js - the first page: what needs a look, how much there is, who is wanted. */
// SPDX-License-Identifier: MIT
import { each, h, icon, put, text } from '../dom.js';
import { calm, clock, since, span } from '../time.js';
import { get, getMaybe, query } from '../api.js';
import { card, count, empty, many, page, to, when, who } from '../parts.js';
import { chart, spark } from '../chart.js';

const SERIES = 'held,waiting,granted,wait_p50_ms,wait_p95_ms,wait_p99_ms';

const NUMBERS = ['', 'One thing needs', 'Two things need', 'Three things need', 'Four things need', 'Five things need'];
const WORDS = { store: 'The store is away', stale: 'Holder seems to be gone', 'long-wait': 'Long wait' };

/* Circles first: they do not end by themselves. */
function attention(o, waits) {
  const circles = (waits?.circles || []).map(links => ({
    bad: true, icon: 'waits', href: '#/waits', word: 'Deadlock', since: Math.max(...links.map(l => l.waited_ms)),
    text: `${[...new Set(links.map(l => l.who))].join(' and ')} wait for each other`, sub: links.map(l => l.holds).join(', '),
  }));
  return [...circles, ...o.attention.map(a => ({
    bad: a.kind === 'store', icon: a.kind === 'store' ? 'warn' : 'locks', href: a.name ? to('locks', a.name) : '#/', word: WORDS[a.kind] || a.kind, text: a.name || WORDS[a.kind] || a.kind, sub: a.detail,
  }))];
}

function headline(o, things) {
  if (!o.store.up) return 'The store is away.';
  if (things.length) return `${NUMBERS[things.length] || count(things.length) + ' things need'} a look.`;
  return o.counts.names ? 'All quiet.' : 'Nobody holds anything.';
}

function tile(label, href) {
  const big = h(href ? 'a' : 'span', { class: 'big', href }), under = h('span', { class: 'under' });
  const el = h('div', { class: 'tile' }, h('span', { class: 'label', text: label }), big, under);
  el.show = (value, more) => { text(big, value); put(under, more); };
  return el;
}

const thing = a => h('li', { class: a.bad ? 'is-bad' : 'is-warn' }, h('a', { href: a.href, 'data-row': true },
  icon(a.icon), h('b', {}, h('span', { class: 'kindword', text: a.word + ' ' }), a.text === a.word ? '' : a.text), h('span', { text: a.sub || '' }), a.since != null && since(h('em', { class: 'num' }), a.since)));

/* A bar for each of the most wanted names. */
function wanted(list, rows) {
  const top = Math.max(1, ...rows.map(r => r.waiter_count));
  if (!rows.length) return put(list, h('li', {}, empty('Nobody waits.')));
  return each(list, rows, r => r.name, r => h('li', {}, h('a', { href: to('locks', r.name), text: r.name, title: r.name }), h('i'), h('b', { class: 'num' })), (li, r) => {
    li.children[1].style.setProperty('--share', r.waiter_count / top);
    text(li.lastChild, String(r.waiter_count));
  });
}

/* Who holds what for longest. */
const longest = (list, rows) => (rows.length
  ? each(list, rows, r => r.name + r.holders[0]?.fence, r => h('li', {}, h('a', { href: to('locks', r.name), text: r.name, title: r.name }), h('small', { text: who(r.holders[0]) }), since(h('span', { class: 'num' }), r.holders[0].age_ms)))
  : put(list, h('li', {}, empty('Nothing is held.'))));

/* An event of the feed: of locks here, of one lock on its page. */
const VERBS = { queued: 'waits for', acquired: 'took', released: 'gave back', expired: 'let run out', gave_up: 'no longer waits for' };
const after = e => (e.kind === 'queued' ? ` as number ${e.place}` : e.waited_ms > 50 ? ` after ${span(e.waited_ms)}` : e.held_ms ? ` after ${span(e.held_ms)}` : '');
const happened = (list, items) => (items.length
  ? each(list, items, e => e.id ?? [e.at, e.kind, e.name, e.fence, who(e), e.identity].join(), e => h('li', { class: 'event ' + e.kind }, when(e.at, clock),
    h('span', {}, h('b', { text: who(e) }), ` ${VERBS[e.kind] || e.kind} `, h('a', { href: to('locks', e.name), text: e.name }), h('small', { text: after(e) }))))
  : put(list, h('li', {}, empty('Nothing yet.'))));

export default function overview() {
  const view = page('Overview');
  const lead = h('p', { class: 'lead' });
  const look = h('ul', { class: 'attention', 'aria-label': 'What needs a look' });
  const held = tile('Locks held', '#/locks?state=held'), waiting = tile('Waiting', '#/waits'), long = tile('Longest wait now', '#/waits'),
    stale = tile('Seem gone', '#/locks?state=stale'), semaphores = tile('Semaphores', '#/locks?state=permits'), store = tile('Listing the store');
  const bars = h('ol', { class: 'bars' }), old = h('ul', { class: 'plain' }), feed = h('ul', { class: 'feed' });
  const charts = h('div', { class: 'two', hidden: true });
  const news = card('Just now', null, feed);
  view.name.className = 'hello';
  let lines = null;

  function frame() {
    view.head.after(lead);
    put(view.body, look, h('div', { class: 'tiles' }, held, waiting, long, stale, semaphores, store), charts,
      h('div', { class: 'three' }, card('Most wanted', null, bars), card('Held for longest', null, old), news));
  }

  /* Lines over the last hour. A step without a point is a gap in the line. */
  function drawSeries(series) {
    charts.hidden = !series;
    if (!series) return;
    if (!lines) {
      lines = [chart('Granted in 5 s, and waiting', [{ label: 'granted', color: '--accent', area: true }, { label: 'waiting', color: '--dot' }], { unit: v => count(Math.round(v)) }),
        chart('Time to acquire', [{ label: 'p50', color: '--accent' }, { label: 'p95', color: '--info' }, { label: 'p99', color: '--dot' }], { unit: span, log: true })];
      put(charts, lines.map(l => l.el));
      view.ends.push(() => lines.forEach(l => l.stop()));
    }
    const points = series.items, column = key => points.map(p => (p[key] < 0 ? null : p[key]));
    lines[0].show(points.map(p => p.at_s), ['granted', 'waiting'].map(column));
    lines[1].show(points.map(p => p.at_s), ['wait_p50_ms', 'wait_p95_ms', 'wait_p99_ms'].map(key => column(key).map(v => (v == null ? null : Math.max(0.1, v)))));
  }

  view.keep(async () => {
    const [o, waits, ages, events, series] = await Promise.all([get('v1/overview'), get('v1/waits?limit=100'), get(query('v1/locks', { state: 'held', sort: '-age', limit: 8 })), getMaybe('v1/feed?limit=12'),
      getMaybe(query('v1/series', { names: SERIES }))]);
    return { o, waits, ages, events, series };
  }, ({ o, waits, ages, events, series }) => {
    if (!look.isConnected) frame();
    const things = attention(o, waits), c = o.counts, wait = Math.max(0, ...waits.items.flatMap(r => r.waiters.map(w => w.age_ms)));
    text(view.name, headline(o, things));
    text(lead, c.names ? `${many(c.held, 'name')} held, ${count(c.waiters)} waiting for ${many(c.wanted, 'name')}.${o.complete ? '' : ' There are more names than are listed.'}`
      : 'dibs run nightly-backup -- ./backup.sh takes the first lock.');
    each(look, things.slice(0, 12), a => a.word + a.text, thing);
    const recent = key => series && series.items.length > 1 && spark(series.items.slice(-60).map(p => Math.max(0, p[key])), key === 'waiting' ? 'wait' : '');
    held.show(count(c.held), recent('held') || many(c.names, 'name'));
    waiting.show(count(c.waiters), recent('waiting') || (c.wanted ? 'for ' + many(c.wanted, 'name') : 'nobody'));
    long.show(wait ? calm(wait) : '–', wait ? '' : 'nobody waits');
    stale.show(count(c.stale), c.stale ? 'still have a lease' : 'none');
    semaphores.show(count(c.semaphores), 'in use');
    store.show(span(o.store.look_us / 1000), o.store.url.split(':')[0]);
    wanted(bars, o.contended);
    longest(old, ages.items);
    news.hidden = !events;
    if (events) happened(feed, events.items);
    drawSeries(series);
  }, { every: 3000, kinds: ['locks'] });
  return view;
}
