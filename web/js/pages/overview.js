/* overview.js - the first page: what needs a look, how much there is, who is wanted, what comes. */
// SPDX-License-Identifier: MIT
import { ago, calm, card, clock, count, each, empty, get, getMaybe, h, icon, many, num, page, put, query, since, span, sparing, text, to, until, when, who } from '../parts.js';
import { chart, spark } from '../chart.js';
import { isOver, scheduleText } from '../work.js';

const SERIES = 'held,waiting,granted,wait_p50_ms,wait_p95_ms,wait_p99_ms';

/* The daemon counts waits in whole milliseconds. */
const ms = v => (v <= 1 ? '≤1ms' : span(v));
const sum = (rows, key) => rows.reduce((n, row) => n + row[key], 0);
const WORDS = { store: 'The store is away', stale: 'Holder seems to be gone', 'long-wait': 'Long wait' };

/* What went wrong elsewhere. Asked for less often: the store reads each queue and run. A part that could not be
 * read is as it was, and is named: without it nobody knows that all is quiet. */
const PARTS = { queues: 'v1/queues?limit=200', breakers: 'v1/breakers?limit=200', runs: 'v1/runs?latest=2&limit=2000', jobs: 'v1/jobs?sort=next&limit=8' };
const parts = {};
const beyond = sparing(async () => {
  const unread = [];
  await Promise.all(Object.entries(PARTS).map(async ([key, path]) => {
    try {
      parts[key] = await getMaybe(path);
    } catch (e) {
      if ([401, 403].includes(e.status)) parts[key] = null; // another token may have seen it
      unread.push({ key, why: e.message });
    }
  }));
  return { queues: parts.queues?.items || [], breakers: parts.breakers?.items || [], runs: parts.runs?.items || [], jobs: parts.jobs, unread };
});

/* The latest run of each job that is over, if it failed; open breakers; dead letters. */
function troubles({ queues, breakers, runs, unread }, up) {
  const seen = new Set(), last = runs.filter(r => isOver(r.state) && !seen.has(r.job) && seen.add(r.job));
  return [...last.filter(r => r.state === 'FAILED').map(r => ({ icon: 'jobs', href: to('runs', r.id), word: 'Failed', text: r.job, sub: r.id, since: ago(r.ended_at) })),
    ...breakers.filter(b => ['open', 'forced'].includes(b.state)).map(b => ({ icon: 'coordination', href: '#/coordination', word: 'Breaker open', text: b.name, sub: b.state === 'forced' ? 'by hand' : `${many(b.bad, 'bad call')}, again in ${calm(b.retry_ms)}` })),
    ...queues.filter(q => q.dead).map(q => ({ icon: 'queues', href: to('queues', q.name), word: 'Dead letters', text: q.name, sub: `${many(q.dead, 'message')} that nobody could do` })),
    ...(up && unread.length ? [{ icon: 'warn', href: '#/', word: 'Not read', text: unread.map(u => u.key).sort().join(', '), sub: unread[0].why }] : [])];
}

/* Circles first: they do not end by themselves; nor is a wait in one told twice. Long waits last: most end. */
function attention(o, waits, more) {
  const stuck = new Set((waits?.circles || []).flat().map(l => l.wants));
  const circles = (waits?.circles || []).map(links => ({
    bad: true, icon: 'waits', href: '#/waits', word: 'Deadlock', since: Math.max(...links.map(l => l.waited_ms)),
    text: `${[...new Set(links.map(l => l.who))].join(' and ')} wait for each other`, sub: links.map(l => l.holds).join(', '),
  }));
  const late = a => a.word === WORDS['long-wait'];
  return [...circles, ...o.attention.filter(a => a.kind !== 'long-wait' || !stuck.has(a.name)).map(a => ({
    bad: a.kind === 'store', icon: a.kind === 'store' ? 'warn' : 'locks', href: a.name ? to('locks', a.name) : '#/', word: WORDS[a.kind] || a.kind, text: a.name || WORDS[a.kind] || a.kind, sub: a.detail,
  })), ...troubles(more, o.store.up)].sort((a, b) => late(a) - late(b));
}

function headline(o, things) {
  if (!o.store.up) return 'The store is away.';
  const n = things.length + Math.max(0, o.attention_total - 50);
  if (n) return n > 1 ? count(n) + ' things need a look.' : 'One thing needs a look.';
  return o.counts.names ? 'All quiet.' : 'Nobody holds anything.';
}

function tile(label, href) {
  const big = h(href ? 'a' : 'span', { class: 'big', href }), under = h('span', { class: 'under' });
  const el = h('div', { class: 'tile' }, h('span', { class: 'label', text: label }), big, under);
  el.show = (value, more) => { text(big, value); put(under, more); };
  return el;
}

const thing = a => h('li', { class: a.bad ? 'is-bad' : 'is-warn' }, h('a', { 'data-row': true },
  icon(a.icon), h('b', {}, h('span', { class: 'kindword', text: a.word + ' ' }), a.text === a.word ? '' : a.text), h('span'), a.since != null && h('em', { class: 'num' })));
/* What it says of the thing, which changes. */
const retell = ({ firstChild: link }, a) => {
  link.setAttribute('href', a.href);
  text(link.children[2], a.sub || '');
  if (a.since != null) since(link.lastChild, a.since);
};

/* A list, or the words for none. */
const fill = (list, rows, none, ...how) => (rows.length ? each(list, rows, ...how) : put(list, h('li', {}, empty(none))));

/* A bar for each of the most wanted names. */
function wanted(list, rows) {
  const top = Math.max(1, ...rows.map(r => r.waiter_count));
  fill(list, rows, 'Nobody waits.', r => r.name, r => h('li', {}, h('a', { href: to('locks', r.name), text: r.name, title: r.name }), h('i'), h('b', { class: 'num' })), (li, r) => {
    li.children[1].style.setProperty('--share', r.waiter_count / top);
    text(li.lastChild, r.waiter_count);
  });
}

/* The next ticks. */
const coming = (list, got) => each(list, got.items.filter(j => j.next_in_ms != null && !j.paused), j => j.name + j.next_at,
  j => h('li', {}, h('a', { href: to('jobs', j.name), text: j.name, title: j.name }), h('small', { text: scheduleText(j) }), until(num(), j.next_in_ms, got.got)));

/* Who holds what for longest, but for the engine of jobs, which holds its own for as long as it runs. */
const longest = (list, rows) => fill(list, rows, 'Nothing is held.', r => r.name + r.holders[0]?.fence, r => h('li', {}, h('a', { href: to('locks', r.name), text: r.name, title: r.name }), h('small', { text: who(r.holders[0]) }), since(num(), r.holders[0].age_ms)));

/* An event of the feed: of locks here, of one lock on its page. */
const VERBS = { queued: 'waits for', acquired: 'took', released: 'gave back', expired: 'let run out', lost: 'lost', gave_up: 'no longer waits for' };
const after = e => (e.kind === 'queued' ? ` as number ${e.place}` : e.waited_ms > 50 ? ` after ${span(e.waited_ms)}` : e.held_ms ? ` after ${span(e.held_ms)}` : '');
const happened = (list, items) => fill(list, items, 'Nothing yet.', e => e.id ?? [e.at, e.kind, e.name, e.fence, who(e), e.identity].join(), e => h('li', { class: 'event ' + e.kind }, when(e.at, clock),
    h('span', { title: `${who(e)} ${VERBS[e.kind] || e.kind} ${e.name}${after(e)}` }, h('b', { text: who(e) }), ` ${VERBS[e.kind] || e.kind} `, h('a', { href: to('locks', e.name), text: e.name }), h('small', { text: after(e) }))));

export default function overview() {
  const view = page('Overview');
  const lead = h('p', { class: 'lead' });
  const look = h('ul', { class: 'attention', 'aria-label': 'What needs a look' });
  const held = tile('Locks held', '#/locks?state=held'), waiting = tile('Waiting', '#/waits'), long = tile('Longest wait now', '#/waits'),
    slow = tile('Time to acquire, p99'), stale = tile('Seem gone', '#/locks?state=stale'), queued = tile('In queues', '#/queues');
  const bars = h('ol', { class: 'bars' }), old = h('ul', { class: 'plain' }), next = h('ul', { class: 'plain' }), feed = h('ul', { class: 'feed' });
  const charts = h('div', { class: 'two', hidden: true });
  const news = card('Just now', null, feed), soon = card('Coming up', null, next);
  view.name.className = 'hello';
  let lines = null;
  /* While the store is away, what it said last. */
  const said = { waits: { items: [], circles: [] }, ages: { items: [] } };
  const last = (key, path) => get(path).then(got => (said[key] = got), e => { if (e.status !== 503) throw e; return said[key]; });

  function frame() {
    view.head.after(lead);
    put(view.body, look, h('div', { class: 'tiles' }, held, waiting, long, slow, stale, queued), charts,
      h('div', { class: 'three' }, h('div', { class: 'body' }, card('Most wanted', null, bars), soon), card('Held for longest', null, old), news));
  }

  /* Lines over the last hour. A step without a point is a gap in the line. */
  function drawSeries(series) {
    charts.hidden = !series;
    if (!series) return;
    if (!lines) {
      lines = [chart('Granted in 5 s, and waiting', [{ label: 'granted', color: '--accent', area: true }, { label: 'waiting', color: '--dot' }], { unit: v => count(Math.round(v)) }),
        chart('Time to acquire', [{ label: 'p50', color: '--accent' }, { label: 'p95', color: '--info' }, { label: 'p99', color: '--dot' }], { unit: ms, log: true })];
      put(charts, lines.map(l => l.el));
      view.ends.push(() => lines.forEach(l => l.stop()));
    }
    const points = series.items, column = key => points.map(p => (p[key] < 0 ? null : p[key]));
    lines[0].show(points.map(p => p.at_s), ['granted', 'waiting'].map(column));
    lines[1].show(points.map(p => p.at_s), ['wait_p50_ms', 'wait_p95_ms', 'wait_p99_ms'].map(key => column(key).map(v => (v == null ? null : Math.max(1, v)))));
  }

  view.keep(async () => {
    const [o, waits, ages, events, series, more] = await Promise.all([get('v1/overview'), last('waits', 'v1/waits?limit=100'), last('ages', query('v1/locks', { state: 'held', sort: '-age', limit: 16 })), getMaybe('v1/feed?limit=12'),
      getMaybe(query('v1/series', { names: SERIES })), beyond('', 8000)]);
    return { o, waits, ages, events, series, more };
  }, ({ o, waits, ages, events, series, more }) => {
    if (!look.isConnected) frame();
    const things = attention(o, waits, more), c = o.counts, wait = Math.max(0, ...waits.items.flatMap(r => r.waiters.map(w => w.age_ms)));
    text(view.name, headline(o, things));
    text(lead, c.names ? `${many(c.held, 'name')} held, ${count(c.waiters)} waiting for ${many(c.wanted, 'name')}.${o.complete ? '' : ' There are more names than are listed.'}`
      : 'dibs run nightly-backup -- ./backup.sh takes the first lock.');
    each(look, things.slice(0, 60), a => a.word + a.text, thing, retell);
    const recent = key => series && series.items.length > 1 && spark(series.items.slice(-60).map(p => Math.max(0, p[key])), key === 'waiting' ? 'wait' : '');
    held.show(count(c.held), recent('held') || many(c.names, 'name'));
    waiting.show(count(c.waiters), recent('waiting') || (c.wanted ? 'for ' + many(c.wanted, 'name') : 'nobody'));
    long.show(wait ? calm(wait) : '–', wait ? '' : 'nobody waits');
    stale.show(count(c.stale), c.stale ? 'still have a lease' : 'none');
    const times = series?.items.slice(-60).findLast(p => p.wait_p99_ms >= 0 && p.wait_p99_ms != null), dead = sum(more.queues, 'dead');
    slow.show(times ? ms(times.wait_p99_ms) : '–', times ? `p50 ${ms(times.wait_p50_ms)}` : 'none in 5 minutes');
    const known = !more.unread.some(u => u.key === 'queues');
    queued.show(!known && !more.queues.length ? '–' : count(sum(more.queues, 'ready') + sum(more.queues, 'later') + sum(more.queues, 'out')), !known ? 'not read' : dead ? many(dead, 'dead letter') : more.queues.length ? 'in ' + many(more.queues.length, 'queue') : 'no queue');
    soon.hidden = !more.jobs?.items.some(j => j.next_in_ms != null);
    if (!soon.hidden) coming(next, more.jobs);
    wanted(bars, o.contended);
    longest(old, ages.items.filter(r => !r.name.startsWith('job/{')).slice(0, 8));
    news.hidden = !events;
    if (events) happened(feed, events.items);
    drawSeries(series);
  }, { every: 3000, kinds: ['locks'] });
  return view;
}
