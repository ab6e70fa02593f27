/* locks.js - all names: as a tree by their parts, or as a list that is searched, filtered
 * and sorted by the daemon, of which the page holds only the parts that were looked at; and
 * one name: who holds it, who is next, who had it, and what was done to it. */
// SPDX-License-Identifier: MIT
import { ago, andMore, button, card, clock, code, confirm, copy, count, each, empty, facts, failed, get, getMaybe, h, icon, kindMark, leaseBar, many, may, now, num, page, pill, put, query, rested, s, sends, since, span, table, text, thing, ticks, timeLeft, to, when, who } from '../parts.js';
import { follow, on, state } from '../live.js';
import { list } from '../list.js';

/* ---- All of them. */

const PART = 200;        // items in one answer
const OPEN = 25;         // a branch of so many names is open unless it was closed
const GONE_MS = 20000;   // a name that became free stays so long, so that rows do not jump
const FILTERS = [['', 'In use', c => c.names], ['wanted', 'Wanted', c => c.wanted], ['stale', 'Seem gone', c => c.stale], ['permits', 'Semaphores', c => c.semaphores]];
const SORTS = [['', 'by name'], ['-waiting', 'most waiting first'], ['-age', 'held longest first'], ['left', 'least time left first']];

const id = item => item.branch ?? item.name;

/* What was opened and closed by hand, in this tab. */
const hand = new Map(JSON.parse(sessionStorage.getItem('dibs.branches') || '[]'));
function setOpen(branch, open) {
  hand.set(branch, open);
  sessionStorage.setItem('dibs.branches', JSON.stringify([...hand].slice(-500)));
}

/* The items of one prefix, in parts that go on one after the other. */
class Branch {
  constructor(prefix) { Object.assign(this, { prefix, parts: [{ after: '', items: [] }], total: 0 }); }

  /* Fetches a part again. Names that are gone stay for a while. */
  async fetch(part, params) {
    const answer = await get(query('v1/locks', { ...params, prefix: this.prefix, after: part.after, limit: PART }));
    const fresh = new Set(answer.items.map(id));
    const gone = params.tree ? part.items.filter(i => i.name && !fresh.has(i.name) && now() - (i.gone ?? now()) < GONE_MS)
      .map(i => ({ ...i, gone: i.gone ?? now(), holders: [], waiters: [], holder_count: 0, waiter_count: 0 })) : [];
    answer.items.forEach(i => { i.got = answer.got; });
    part.items = gone.length ? [...answer.items, ...gone].sort((a, b) => (id(a) < id(b) ? -1 : 1)) : answer.items;
    Object.assign(part, { next: answer.next, got: answer.got });
    Object.assign(this, { total: answer.total, complete: answer.complete });
    const at = this.parts.indexOf(part), next = this.parts[at + 1];
    if (!answer.next) this.parts.length = at + 1;
    else if (next && next.after !== answer.next) Object.assign(next, { after: answer.next, got: 0 });
  }

  more() {
    const last = this.parts.at(-1);
    if (last.next) this.parts.push({ after: last.next, items: [], got: 0 });
    return !!last.next;
  }
}

function makeRow(item) {
  if (item.branch != null) {
    return h('div', { class: 'row branch', role: 'row' }, h('span', { class: 'name', role: 'gridcell' }, icon('open'), h('b')), h('small', { role: 'gridcell' }));
  }
  const cells = { name: h('span', { class: 'name', role: 'gridcell' }), kind: h('span', { class: 'kind', role: 'gridcell' }), who: h('span', { class: 'who', role: 'gridcell' }),
    lease: h('span', { class: 'left', role: 'gridcell' }), age: h('span', { class: 'num age', role: 'gridcell' }), wait: h('span', { class: 'waiters', role: 'gridcell' }) };
  const el = h('div', { class: 'row lock', role: 'row' }, Object.values(cells));
  const bar = leaseBar(), link = h('a', { href: to('locks', item.name), tabindex: -1 });
  cells.lease.append(bar);
  cells.name.append(link);
  return Object.assign(el, { parts: { ...cells, bar, link } });
}

function updateBranch(el, item) {
  const open = item.isOpen;
  el.setAttribute('aria-expanded', open);
  el.setAttribute('aria-level', item.depth + 1);
  el.style.setProperty('--depth', item.depth);
  text(el.querySelector('b'), item.tail);
  text(el.lastChild, `${item.names > item.held ? count(item.names) + ' names, ' : ''}${count(item.held)} held${item.waiters ? `, ${count(item.waiters)} waiting` : ''}`);
}

function updateRow(el, item) {
  if (item.branch != null) return updateBranch(el, item);
  const p = item.holders[0], at = el.parts;
  el.style.setProperty('--depth', item.depth);
  el.setAttribute('aria-level', item.depth + 1);
  text(at.link, item.tail);
  at.link.title = item.name;
  if (p) at.bar.show(p, item.got);
  at.bar.style.setProperty('visibility', p ? 'visible' : 'hidden');
  const key = [item.holders.map(x => [x.fence, x.stale]), item.waiter_count, item.holder_count, item.permits_used].join();
  if (el.seen === key) return;
  el.seen = key;
  el.classList.toggle('is-stale', item.holders.some(x => x.stale));
  el.classList.toggle('is-free', !item.holder_count && !item.waiter_count);
  put(at.kind, kindMark(item));
  put(at.who, p && [h('b', { text: who(p) }), h('small', { text: andMore(item.holder_count, 1) || ' ' + p.label })]);
  if (p) since(at.age, p.age_ms, item.got);
  else ticks(at.age, () => text(at.age, ''));
  put(at.wait, item.waiter_count > 0 && [Array.from({ length: Math.min(5, item.waiter_count) }, () => h('i')), h('b', { text: count(item.waiter_count) })]);
  at.wait.title = item.waiters.map(who).join(', ') + andMore(item.waiter_count, item.waiters.length);
  at.wait.setAttribute('aria-label', item.waiter_count ? `${item.waiter_count} waiting` : 'nobody waits');
}

function all(address) {
  const view = page('Locks');
  const is = { q: address.get('q') || '', state: address.get('state') || '', sort: address.get('sort') || '', flat: address.has('flat') };
  const tree = () => !is.flat && !is.sort && !is.q;
  let branches = new Map([['', new Branch('')]]), items = [], inView = [], failure = null, loaded = false, turn = 0;

  const rows = list('Locks', { key: i => (i.branch != null ? 'b' : 'n') + id(i), make: makeRow, update: updateRow, act, near });
  const foot = h('div', { class: 'foot' });
  const grid = h('div', { role: 'treegrid', 'aria-label': 'Locks', 'aria-colcount': 6 }, h('div', { role: 'rowgroup' }, h('div', { class: 'row head', role: 'row' },
    ['Name', 'Kind', 'Holder', 'Lease', 'Held for', 'Waiting'].map(t => h('span', { role: 'columnheader', text: t })))), rows.el);
  const note = h('p', { class: 'oldnote', role: 'status', hidden: true });
  const chips = h('div', { class: 'chips', role: 'group', 'aria-label': 'Which locks' });
  const sort = h('select', { 'aria-label': 'Order', onchange: () => change({ sort: sort.value }) }, SORTS.map(([v, label]) => h('option', { value: v, text: label, selected: v === is.sort })));

  /* Every part that the view begins or ends in; opened branches below their row. */
  function flatten() {
    const out = [], seen = new Set();
    (function walk(branch, depth) {
      const closed = [], open = []; // prefixes that the items at hand are in
      for (const part of branch.parts) for (const item of part.items) {
        const name = id(item);
        if (seen.has((item.branch != null ? 'b' : 'n') + name) || closed.some(c => name.startsWith(c) && name !== c)) continue;
        while (open.length && !name.startsWith(open.at(-1))) open.pop();
        Object.assign(item, { part, of: branch, depth: depth + open.length, tail: tree() ? name.slice((open.at(-1) ?? branch.prefix).length) || name : name });
        seen.add((item.branch != null ? 'b' : 'n') + name);
        out.push(item);
        if (item.branch == null) continue;
        const alone = branch.total === item.names && !depth; // the only one at the top
        item.isOpen = hand.get(name) ?? (item.open || alone);
        if (item.open && !item.isOpen) closed.push(name);
        else if (item.open) open.push(name);
        else if (item.isOpen) {
          if (!branches.has(name)) branches.set(name, new Branch(name));
          walk(branches.get(name), item.depth + 1);
        }
      }
    })(branches.get(''), 0);
    return out;
  }

  function draw() {
    const root = branches.get('');
    items = flatten();
    rows.show(items);
    grid.setAttribute('aria-rowcount', items.length + 1);
    text(chipsCount, root.total && (is.q || is.state) ? `${count(root.total)} fit` : '');
    put(foot, items.length ? (root.complete === false && h('small', { text: 'There are more names than are listed; search for them.' }))
      : failure ? failed(failure) : !loaded ? empty('Loading …')
        : is.q || is.state ? empty('Nothing fits.', is.q ? `No name, host or label has “${is.q}” in it.` : 'No lock is like that now.')
          : empty('Nobody holds anything.', 'dibs run NAME -- COMMAND takes a lock.'));
  }

  function near(shown, atEnd) {
    inView = shown;
    const parts = new Set(shown.map(i => i.part));
    const missing = [...branches.values()].flatMap(b => b.parts.filter(p => !p.got && (parts.has(p) || !p.items.length)));
    if (atEnd && items.length && items.at(-1).of.more()) ask.now();
    else if (missing.length && loaded && !failure) ask.now();
  }

  async function load() {
    const mine = ++turn, params = { tree: tree() ? OPEN : '', q: is.q, state: is.state, sort: is.sort };
    const parts = new Set(inView.map(i => i.part));
    const want = [...branches.values()].flatMap(b => b.parts.filter((p, i) => parts.has(p) || !p.got || (i === 0 && b.prefix === '')).map(p => [b, p]));
    try {
      for (const [branch, part] of want) {
        await branch.fetch(part, params);
        if (mine !== turn) return;
      }
      failure = null;
      loaded = true;
      note.hidden = true;
    } catch (e) {
      if (e.status === 401) return;
      failure = e;
      note.hidden = !items.length;
      text(note, `Not up to date: ${e.message}`);
    }
    draw();
  }

  /* Another search, filter or order: everything anew, and the address says so. */
  function change(next) {
    Object.assign(is, next);
    history.replaceState(null, '', query('#/locks', { q: is.q, state: is.state, sort: is.sort, flat: is.flat ? '1' : '' }));
    branches = new Map([['', new Branch('')]]);
    turn++;
    loaded = false;
    showChips();
    scrollTo(0, 0);
    ask.now();
  }

  function act(item, how) {
    if (item.branch == null) { if (how === 'open') location.hash = to('locks', item.name); return; }
    const open = how === 'open' ? !item.isOpen : how === 'right';
    if (open === item.isOpen) return;
    setOpen(item.branch, open);
    draw();
    ask.now();
  }

  const chipsCount = h('small');
  let marks = []; // the numbers on the chips
  const number = () => marks.forEach((mark, i) => { const n = state.overview && FILTERS[i][2](state.overview.counts); text(mark, n ? ' ' + count(n) : ''); });
  const buttons = () => [FILTERS.map(([value, label], i) => h('button', { class: 'chip', type: 'button', 'aria-pressed': String(is.state === value), onclick: () => change({ state: value }) }, label, marks[i])), chipsCount, h('span', { class: 'spring' }), sort,
  h('button', { class: 'chip', type: 'button', 'aria-pressed': String(!tree()), disabled: !!(is.sort || is.q), onclick: () => change({ flat: !is.flat }) }, 'Flat')];

  function showChips() {
    marks = FILTERS.map(() => h('em'));
    put(chips, buttons());
    number();
  }

  showChips();
  put(view.body, chips, note, h('section', { class: 'card table locks' }, grid, foot));
  if (is.q) document.getElementById('find').value = is.q;
  const ask = follow(load, { every: 2000, kinds: ['locks'] });
  view.ends.push(ask.stop, rows.stop, on('overview', number), () => { document.getElementById('find').value = ''; });
  return Object.assign(view, { shown: rows.redraw, move: rows.move, find: rested(q => q !== is.q && change({ q })) });
}

/* ---- One of them. */

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

function one(name) {
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

export default (name, address) => (name ? one(name) : all(address));
