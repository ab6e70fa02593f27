/* jobs.js - all jobs: when they are due and how their latest runs went, as a list, over time or in a
 * week with an hour in each cell; and one job: its next ticks, its definition, its latest runs, and
 * what an operator may do. */
// SPDX-License-Identifier: MIT
import { both, button, card, code, confirm, count, day, each, empty, facts, get, h, hour, iso, localText, many, may, moment, named, num, once, page, pill, put, query, readLocal, s, sends, span, sparing, table, text, to, until, when, zoneName, zoneShort } from '../parts.js';
import { drawGraph, jobPath, scheduleText, shade, starts, stateMark, statusMark } from '../work.js';

/* ---- Over time, and in a week. */

const HOUR = 36e5, DAY = 864e5;
const WORDS = { ok: 'ok', failed: 'failed', other: 'cancelled, missed or skipped', live: 'live', ticks: 'to come' }, KINDS = Object.keys(WORDS);
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -23], End: [0, 23] };
const list = (n, fn) => Array.from({ length: n }, (_, i) => fn(i));

/* A lane for each job: its runs before now, and its ticks to come. */
function timeline(got) {
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
function calendar(pick) {
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

/* ---- All of them. */

const PART = 200, SHOWN = 20;
const VIEWS = [['', 'List'], ['2', '2 hours'], ['12', '12 hours'], ['48', '2 days'], ['week', 'Week']];

/* The latest runs as bars, as high as they were long, the newest at the right. */
function streak(runs) {
  const top = Math.max(1, ...runs.map(r => r.took_ms || 0));
  return h('span', { class: 'streak' }, runs.map(r => h('a', { href: to('runs', r.id), class: shade(r.state), tabindex: -1, vars: { '--share': Math.max(0.15, Math.sqrt((r.took_ms || 0) / top)).toFixed(2) },
    title: `${r.made_at ? moment(r.begun_at || r.made_at) + ': ' : ''}${r.state.toLowerCase()}${r.took_ms == null ? '' : ', ' + span(r.took_ms)}`, 'aria-label': r.id })));
}

/* The latest runs by job, the oldest first. */
async function latestRuns() {
  const by = {};
  for (const run of (await get(`v1/runs?latest=${SHOWN}&limit=2000`)).items) if ((by[run.job] ||= []).length < SHOWN) by[run.job].unshift(run);
  return by;
}

function jobTable() {
  return table('Jobs', 'jobs', ['Job', 'When', 'Status', 'Next', 'Last run', 'Latest runs'], {
    key: j => j.name, open: j => to('jobs', j.name),
    make: j => [h('span', {}, named('jobs', j.name), h('small')), h('span', {}, code(''), h('small')), h('span'), num(), h('span'), h('span')],
    update: (cells, j) => {
      const last = j.runs.at(-1), [name, plan, status, next, took, bars] = cells.map(cell => cell.firstChild);
      text(name.lastChild, j.description || '');
      text(plan.firstChild, scheduleText(j));
      text(plan.lastChild, j.schedule.length ? ` ${j.schedule_text}, ${j.zone}` : '');
      plan.title = plan.textContent;
      until(next, j.paused ? null : j.next_in_ms, j.got);
      next.title = j.next_at ? moment(j.next_at) : '';
      once(status, [j.status, j.paused, last?.id, last?.state, j.runs.length], () => {
        put(status, statusMark(j), j.paused?.reason && h('small', { text: j.paused.reason, title: j.paused.reason }));
        put(took, last ? [stateMark(last.state), last.took_ms != null && h('small', { class: 'num', text: ' ' + span(last.took_ms) })] : h('span', { class: 'dim', text: j.run_count ? many(j.run_count, 'run') : 'never' }));
        put(bars, streak(j.runs));
      });
    },
  });
}

function all(address) {
  const view = page('Jobs', { lead: 'Commands that run by a schedule or when asked.' });
  const is = { q: address.get('q') || '', hours: address.get('hours') || '', week: address.get('week') || '', at: address.get('at') || '' };
  const rows = jobTable(), latest = sparing(latestRuns), times = sparing(hours => get(query('v1/timeline', { from: iso(Date.now() - hours * 18e5), to: iso(Date.now() + hours * 18e5) }))), time = h('section', { class: 'card' });
  const week = calendar(next => pick(next));
  const views = h('div', { class: 'chips', role: 'group', 'aria-label': 'View' });

  function pick(next) {
    Object.assign(is, next);
    history.replaceState(null, '', query('#/jobs', is));
    for (const chip of views.children) chip.setAttribute('aria-pressed', chip.value === (is.week ? 'week' : is.hours));
    ask.now();
  }
  put(views, VIEWS.map(([value, label]) => Object.assign(button(label, () => pick(value === 'week' ? { hours: '', week: 'now' } : { hours: value, week: '', at: '' }), 'chip'), { value })));

  const showTime = got => put(time, h('header', {}, h('h2', { text: 'Runs, and ticks to come' }), h('small', { text: (got.complete ? '' : 'Not all of them: choose a shorter time. ') + zoneName() })), timeline(got));
  function showList([got, runs]) {
    rows.show(got.items.map(j => ({ ...j, got: got.got, runs: runs[j.name] || [] })), is.q
      ? empty('Nothing fits.', `No job has “${is.q}” in its name.`) : empty('There is no job.', 'dibs serve --jobs FILE or dibs job load FILE brings some.'), got.total);
  }
  const ask = view.keep(async () => {
    const hours = Number(is.hours) || 0;
    if (is.week) return { week: await week.load(is) };
    if (hours) return { hours, got: await times(hours, Math.max(4000, hours * 600)) };
    return { hours, got: await Promise.all([get(query('v1/jobs', { q: is.q, limit: PART })), latest(0, 3000)]) };
  }, ({ hours, week: of, got }) => {
    const shown = of ? week.el : hours ? time : rows.el;
    if (!shown.isConnected) put(view.body, views, shown);
    if (!of && !hours) return showList(got);
    if (of) week.show(of);
    else showTime(got);
  }, { kinds: ['jobs', 'runs'] });
  pick({});
  return Object.assign(view, { find: q => pick({ q, hours: '', week: '', at: '' }) });
}

/* ---- One of them. */

/* A tick in the zone of its job; the title has it in that of the viewer. */
const tickMark = tick => h('time', { class: 'tickat', datetime: tick.at, title: both(tick.at), text: `${tick.local.replace('T', ' ')} ${tick.offset}` });

function askRun(job) {
  const fields = job.params.map(p => [p, h('input', { id: 'param-' + p.name, autocomplete: 'off', value: p.default ?? '' })]);
  return confirm({
    title: 'Run it now?', action: 'Run it', reason: 'optional',
    say: [code(job.name), ' is run once, besides its schedule.', fields.map(([p, field]) => [h('label', { for: field.id, text: p.name }), field])],
    note: job.live && `A run of it lives. Such runs: ${job.concurrency}.`,
    run: starts(jobPath(job.name, '/run'), () => ({ params: Object.fromEntries(fields.filter(([p, field]) => field.value || p.default).map(([p, field]) => [p.name, field.value])) })), done: got => `Started: ${got.id}`,
  });
}

function askPause(job) {
  const until = h('input', { id: 'until', type: 'datetime-local', min: localText(Date.now() + 6e4) });
  return confirm({
    title: 'Pause this job?', action: 'Pause it', reason: true,
    say: ['No tick starts ', code(job.name), ' until it is resumed. A live run goes on, and it can still be run by hand.', h('label', { for: 'until', text: `Resume it by itself at (${zoneShort()}; may be empty)` }), until],
    run: reason => sends(jobPath(job.name, '/pause'), until.value ? { until_at: iso(readLocal(until.value)) } : {})(reason), done: `Paused: ${job.name}`,
  });
}
const askResume = job => confirm({
  title: 'Resume this job?', action: 'Resume it', reason: 'optional', say: [code(job.name), ' is started by its schedule again.'],
  note: `Missed ticks: ${job.misfire.replace('_', ' ')}.`,
  run: sends(jobPath(job.name, '/resume')), done: `Resumed: ${job.name}`,
});

const WORKS = { run: step => step.run.join(' '), shell: step => step.shell, call: step => step.call, wait: step => step.bookmark || step.batch, sleep: step => span(step.sleep_ms), job: step => step.job };

function workTable() {
  return table('Steps', 'jobsteps', ['Step', 'Kind', 'What it does', 'After', 'How'], {
    key: x => JSON.stringify(x),
    make: x => [code(x.name), h('span', { text: x.kind }), h('code', { class: 'work', text: WORKS[x.kind]?.(x) || '–' }), h('span', { text: x.needs.join(', ') || '–' }),
      h('small', { text: [x.when !== 'ok' && `when ${x.when}`, x.attempts > 1 && `${x.attempts} attempts`, x.runs_on && `on ${x.runs_on}`].filter(Boolean).join('; ') || '–' })],
  });
}

function runTable() {
  return table('Latest runs', 'runs', ['Run', 'State', 'Why', 'Began', 'Took'], {
    key: r => r.id, open: r => to('runs', r.id),
    make: r => [named('runs', r.id), h('span'), h('span', { text: r.cause }), h('span'), num()],
    update: (cells, r) => {
      put(cells[1].firstChild, stateMark(r.state, r.reason));
      put(cells[3].firstChild, when(r.begun_at));
      text(cells[4].firstChild, span(r.took_ms));
    },
  });
}

const definition = j => facts([['Schedule', [code(scheduleText(j)), j.schedule_text && h('small', { text: ` ${j.schedule_text}, ${j.zone}` })]], ['Missed ticks', j.misfire.replace('_', ' ')], ['While one runs', j.concurrency], j.waits && ['Waits for its turn', code(j.waits)], j.lock && ['Lock', j.lock],
  j.run_timeout_ms > 0 && ['Run at most', span(j.run_timeout_ms)], j.params.length && ['Parameters', j.params.map(p => p.name).join(', ')], j.then_ok.length && ['Then', j.then_ok.join(', ')], j.then_failed.length && ['After a failure', j.then_failed.join(', ')],
  ['Set', j.set], j.loaded && ['Loaded from', j.loaded.from], ['Ticks missed', count(j.missed)]]);

function one(name) {
  const view = page(name, { back: ['Jobs', '#/jobs'], mono: true });
  const lead = h('p', { class: 'lead' }), mark = h('span'), acts = h('span', { class: 'acts' }), ticks = h('ul', { class: 'plain' }), about = h('div'), picture = h('section', { class: 'card' });
  const runs = runTable(), steps = workTable();
  let job = null;

  const buttons = () => once(acts, [!!job.paused, job.unreadable], () => put(acts, may('operate') && !job.unreadable && [button('Run now…', () => askRun(job), 'main'), job.paused ? button('Resume…', () => askResume(job)) : button('Pause…', () => askPause(job))]));
  function says() {
    const p = job.paused;
    if (p) return ['Paused by ', h('b', { text: p.by }), ': ', h('span', { text: p.reason || 'no reason given' }), p.until_at && [', until ', when(p.until_at)]];
    return [job.description && [h('span', { text: job.description }), '. '], job.live && [h('a', { href: to('runs', job.live), text: `${job.live} lives` }), '. '], job.next_in_ms != null && ['Next: ', until(num(), job.next_in_ms, job.got), '. '], job.enabled === false && 'It is off.', job.unreadable];
  }
  const still = () => once(about, [job.hash, job.loaded, job.missed, job.skipped, job.waits, job.unreadable], () => {
    if (job.unreadable) return put(about, empty('It cannot be read.'));
    put(about, definition(job));
    drawGraph(picture, job.steps);
    steps.show(job.steps);
  });
  view.keep(async () => {
    const j = await get(jobPath(name));
    return [j, j.unreadable ? { items: [] } : await get(jobPath(name, '/next?n=8'))];
  }, ([j, next]) => {
    job = j;
    if (!runs.el.isConnected) {
      view.head.append(acts);
      view.name.append(mark);
      view.head.after(lead);
      runs.el.prepend(h('header', {}, h('h2', { text: 'Latest runs' })));
      put(view.body, h('div', { class: 'two wide' }, h('div', { class: 'body' }, runs.el, picture, steps.el), h('div', { class: 'body' }, card('Next', j.zone, ticks), card('Definition', null, about))));
    }
    put(mark, statusMark(j));
    put(lead, says());
    each(ticks, next.items, t => t.at, t => h('li', {}, tickMark(t), t.rule && pill(t.rule, 'warn')));
    if (!next.items.length) put(ticks, empty(j.paused ? 'Paused.' : 'No tick to come.'));
    buttons();
    still();
    runs.show(j.runs, empty('It has not run yet.'));
  }, { kinds: ['jobs', 'runs'] });
  return view;
}

export default (name, address) => (name ? one(name) : all(address));
