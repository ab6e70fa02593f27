/* calendar.js - runs of all jobs and their ticks to come: in lanes, and as a week with an
 * hour in each cell. */
// SPDX-License-Identifier: MIT
import { h, put, s, text } from '../dom.js';
import { day, hour, iso, localText, moment, readLocal, zoneShort } from '../time.js';
import { get, query, sparing } from '../api.js';
import { button, count, empty, many, once, to } from '../parts.js';
import { shade } from '../work.js';

const HOUR = 36e5, DAY = 864e5;
const WORDS = { ok: 'ok', failed: 'failed', other: 'cancelled, missed or skipped', live: 'live', ticks: 'to come' }, KINDS = Object.keys(WORDS);
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -23], End: [0, 23] };
const list = (n, fn) => Array.from({ length: n }, (_, i) => fn(i));

/* A lane for each job: its runs before now, and its ticks to come. */
export function timeline(got) {
  const from = +new Date(got.from), whole = new Date(got.to) - from, WIDE = 1000, LANE = 28, x = at => ((new Date(at) - from) / whole) * WIDE, here = x(got.now);
  const names = [...new Set([...got.runs, ...got.ticks].map(r => r.job))].sort(), lane = new Map(names.map((name, i) => [name, i * LANE]));
  const H = names.length * LANE, marks = list(5, i => from + (whole * i) / 4);
  if (!names.length) return empty('Nothing in this time.');
  const bar = r => { const a = Math.max(0, x(r.begun_at || r.made_at)), b = r.ended_at ? x(r.ended_at) : r.begun_at ? here : a; return { x: a, width: Math.max(2.5, b - a) }; };
  return h('div', { class: 'lanes' }, h('div', {}, names.map(name => h('a', { href: to('jobs', name), text: name, title: name }))),
    h('div', {}, s('svg', { class: 'gantt jobtime', viewBox: `0 0 ${WIDE} ${H}`, preserveAspectRatio: 'none', vars: { '--h': H + 'px' }, role: 'group', 'aria-label': `${many(got.runs.length, 'run')}, ${many(got.ticks.length, 'tick')}` },
      marks.map(at => s('line', { class: 'grid', x1: x(at), x2: x(at), y1: 0, y2: H })),
      got.ticks.map(t => s('rect', { class: 'tick', x: x(t.at), y: lane.get(t.job) + 9, width: 2, height: 10 }, s('title', { text: `${t.job} is due ${moment(t.at)}` }))),
      // Keys reach each of a few runs; of many, those of an hour of the week.
      got.runs.map(r => s('a', { href: to('runs', r.id), tabindex: got.runs[99] ? -1 : 0 }, s('title', { text: `${r.id}: ${r.state.toLowerCase()} ${moment(r.begun_at || r.made_at)}` }),
        s('rect', { class: 'is ' + shade(r.state), ...bar(r), y: lane.get(r.job) + 6, height: 16, rx: 2 }))),
      s('line', { class: 'here', x1: here, x2: here, y1: 0, y2: H })),
    h('div', { class: 'axis' }, marks.map(at => h('span', { text: whole > DAY ? moment(at).slice(0, -3) : hour(at) })))));
}

/* The sums of some cells. */
const sum = cells => Object.fromEntries(KINDS.map(k => [k, cells.reduce((n, c) => n + c[k], 0)]));
const few = n => (n < 1000 ? n : Math.round(n / 1000) + 'k');
const says = c => KINDS.filter(k => c[k]).map(k => `${count(c[k])} ${WORDS[k]}`).join(', ');
/* Days are texts, since one of them may have 23 or 25 hours. */
const shift = (date, days) => iso(Date.parse(date) + days * DAY).slice(0, 10);
const start = date => +readLocal(date + 'T00:00');
function mondayOf(week) {
  const date = /^\d{4}(-\d\d){2}$/.test(week) && Date.parse(week) ? week : localText(Date.now()).slice(0, 10);
  return shift(date, -((new Date(date).getUTCDay() + 6) % 7));
}
/* The cell of a moment: 24 for each day. */
function indexOf(monday, at) {
  const [date, time] = localText(at).split('T');
  return ((Date.parse(date) - Date.parse(monday)) / DAY) * 24 + parseInt(time, 10);
}

/* The end of an hour; of both, where the clocks show it twice. */
const endOf = (from, end = from + HOUR) => (hour(end) === hour(from) ? end + HOUR : end);

/* A week without counts. A cell knows when it begins and ends; an hour that the clocks skip has neither. */
function makeWeek(monday, open) {
  const cells = list(168, i => h('button', { type: 'button', role: 'gridcell', class: 'none', vars: { '--d': (i / 24 | 0) + 2, '--k': (i % 24) + 2 }, onclick: () => open(cells[i].from) }));
  for (let at = start(monday); at < start(shift(monday, 7)); at += HOUR) {
    const cell = cells[indexOf(monday, at)];
    cell.from ||= at;
    cell.to = at + HOUR;
  }
  const days = list(7, d => h('span', { role: 'rowheader', vars: { '--d': d + 2 } }, day(start(shift(monday, d))).split(' ').map(word => h('span', { text: word + ' ' })), h('small')));
  const rove = cell => cells.forEach(other => { other.tabIndex = other === cell ? 0 : -1; });
  const within = (n, max) => Math.max(0, Math.min(max, n));
  const el = h('div', { class: 'week', role: 'grid', 'aria-label': 'Week', onfocusin: e => rove(e.target), onkeydown: e => {
    const at = cells.indexOf(e.target), by = MOVES[e.key];
    if (!by) return;
    // On a narrow screen days are side by side, and hours below each other.
    const [d, k] = e.key[0] === 'A' && matchMedia('(max-width: 760px)').matches ? [by[1], by[0]] : by;
    cells[within((at / 24 | 0) + d, 6) * 24 + within((at % 24) + k, 23)].focus();
    e.preventDefault();
  } }, h('div', { role: 'row' }, h('span', { role: 'columnheader', text: zoneShort() }), list(24, k => h('span', { role: 'columnheader', vars: { '--k': k + 2 }, text: k }))),
  days.map((name, d) => h('div', { role: 'row' }, name, cells.slice(d * 24, d * 24 + 24))));
  rove(cells.find(cell => cell.to > Date.now()) || cells[0]);
  return { el, monday, cells, days };
}

function drawCell(cell, c, here, chosen) {
  const runs = c.ok + c.failed + c.other + c.live;
  cell.className = `${runs ? shade(c.failed ? 'FAILED' : c.other ? 'MISSED' : c.ok ? 'OK' : 'ACTIVE') : ''} ${here ? 'here' : ''}`;
  cell.title = `${day(cell.from)} ${hour(cell.from)}${cell.to - cell.from > HOUR ? ' twice' : ''}: ${says(c) || 'nothing'}`;
  cell.setAttribute('aria-label', cell.title);
  cell.setAttribute('aria-selected', chosen);
  put(cell, runs > 0 && h('b', { text: few(runs) }), c.failed > 0 && h('em', { text: '✕' + few(c.failed) }), c.ticks > 0 && h('small', { text: '+' + few(c.ticks) }));
}

function fill({ monday, cells, days }, got, chosen) {
  const now = Date.parse(got.now), parts = cells.map(() => []);
  got.cells.forEach(c => parts[indexOf(monday, c.at)].push(c));
  cells.forEach((cell, i) => {
    const state = [sum(parts[i]), cell.from <= now && now < cell.to, cell.from === chosen];
    if (cell.from) once(cell, state, () => drawCell(cell, ...state));
  });
  days.forEach((name, d) => text(name.lastChild, says(sum(parts.slice(d * 24, d * 24 + 24).flat()))));
}

/* pick({ week, at }) changes the address: a day of the week or "now", and the hour that is open. */
export default function calendar(pick) {
  const ask = (from, to, step_s) => get(query('v1/timeline', { from: iso(from), to: iso(to), step_s }));
  const weeks = sparing(monday => ask(start(monday), start(shift(monday, 7)), 3600)), hours = sparing(at => ask(at, endOf(Date.parse(at)) - 1));
  const name = h('h2'), note = h('small'), box = h('div'), nothing = empty('Nothing in this week.'), below = h('section', { class: 'card' });
  const chip = (label, next) => button(label, () => pick({ week: next(), at: '' }), 'chip');
  let week = null, opened = false;
  const el = h('div', { class: 'body' }, h('section', { class: 'card' }, h('header', {}, name,
    h('span', { class: 'chips' }, chip('‹ Earlier', () => shift(week.monday, -7)), chip('This week', () => 'now'), chip('Later ›', () => shift(week.monday, 7)))), box, note), below);

  async function load(is) {
    const monday = mondayOf(is.week);
    return [monday, is.at, ...await Promise.all([weeks(monday, 15000), Date.parse(is.at) && hours(is.at, 5000)])];
  }
  function show([monday, at, got, open]) {
    if (week?.monday !== monday) week = makeWeek(monday, from => { opened = true; pick({ at: iso(from) }); });
    const shown = got.cells.length ? week.el : nothing;
    if (!shown.isConnected) put(box, shown);
    fill(week, got, Date.parse(at));
    text(name, `${day(start(monday))} to ${day(start(shift(monday, 6)))}`);
    text(note, (got.complete ? '' : 'Not all of them: there are too many. ') + 'Runs by their begin; ✕ failed, + to come.');
    below.hidden = !open;
    if (open) once(below, [open.runs, open.ticks, at], () => put(below, h('header', {}, h('h2', { text: `${day(at)}, ${hour(at)} to ${hour(endOf(Date.parse(at)))}` }), button('Close', () => pick({ at: '' }), 'small')), timeline(open)));
    if (open && opened) below.scrollIntoView({ block: 'nearest' });
    opened &&= !open;
  }
  return { el, load, show };
}
