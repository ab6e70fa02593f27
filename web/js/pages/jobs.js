/* jobs.js - jobs: when they are due, as a list or over time; one job; one run with its steps and
 * its output as it is written; the nodes that execute them; and what an operator may do. */
// SPDX-License-Identifier: MIT
import { each, h, put, s, text } from '../dom.js';
import { both, clock, hour, moment, now, since, span, until, zoneName } from '../time.js';
import { get, post, query, readEvents } from '../api.js';
import { card, confirm, count, empty, facts, leaseBar, many, may, page, pill, table, to, when, who } from '../parts.js';

/* ---- What the pages share. */

const jobPath = (name, tail = '') => `v1/jobs/${encodeURIComponent(name)}${tail}`;
const runPath = (id, tail = '') => `v1/runs/${encodeURIComponent(id)}${tail}`;
const code = name => h('code', { text: name });
const num = () => h('span', { class: 'num' });
const button = (label, onclick, cls = '') => h('button', { class: cls, type: 'button', text: label, onclick });
/* Draws anew only what differs, so that the focus stays. */
function once(el, state, draw) {
  const key = JSON.stringify(state);
  if (el.key !== key) { el.key = key; draw(); }
}

const KINDS = { OK: 'good', FAILED: 'bad', CANCELLED: 'warn', MISSED: 'warn', RETRY: 'warn', WAITING: 'warn', ACTIVE: 'live', RUNNING: 'live', CLAIMED: 'live' };
const OVER = ['OK', 'FAILED', 'CANCELLED', 'MISSED', 'SKIPPED'];
const isOver = state => OVER.includes(state);
const shade = state => 'hue ' + (KINDS[state] || '');
const stateMark = (state, reason) => [pill(state.toLowerCase(), KINDS[state]), reason && reason !== state.toLowerCase() && h('small', { text: ' ' + reason })];
const STATUS = { paused: 'warn', running: 'live', due: 'good' };
const statusMark = job => pill(job.status, STATUS[job.status]);

const scheduleText = job => job.schedule.join(' or ') || 'when asked';

/* The latest runs as bars, as high as they were long, the newest at the right. */
function streak(runs) {
  const top = Math.max(1, ...runs.map(r => r.took_ms || 0));
  return h('span', { class: 'streak' }, runs.map(r => h('a', { href: to('runs', r.id), class: shade(r.state), tabindex: -1, vars: { '--share': Math.max(0.15, Math.sqrt((r.took_ms || 0) / top)).toFixed(2) },
    title: `${moment(r.begun_at || r.made_at)}: ${r.state.toLowerCase()}${r.took_ms == null ? '' : ', ' + span(r.took_ms)}`, 'aria-label': r.id })));
}

/* How deep each step is: below all that it needs. */
function depths(steps) {
  const by = new Map(steps.map(step => [step.name, step])), known = new Map();
  const depth = step => {
    if (!known.has(step.name)) {
      known.set(step.name, 0); // ends a circle
      known.set(step.name, Math.max(0, ...(step.needs || []).map(n => by.get(n)).filter(Boolean).map(n => depth(n) + 1)));
    }
    return known.get(step.name);
  };
  return new Map(steps.map(step => [step.name, depth(step)]));
}

const W = 156, H = 42, ACROSS = 210, DOWN = 58;
const cut = (value, n) => (value.length > n ? value.slice(0, n - 1) + '…' : value);

/* The steps from left to right, each behind those that it needs. */
function graph(steps) {
  const depth = depths(steps), rows = [], at = new Map();
  for (const step of steps) {
    const x = depth.get(step.name);
    rows[x] = (rows[x] || 0) + 1;
    at.set(step.name, { x: x * ACROSS + 2, y: (rows[x] - 1) * DOWN + 2 });
  }
  const width = (rows.length - 1) * ACROSS + W + 4, height = (Math.max(...rows) - 1) * DOWN + H + 4;
  const edge = (from, to) => ({ class: 'edge', x1: from.x + W, y1: from.y + H / 2, x2: to.x, y2: to.y + H / 2 });
  return h('div', { class: 'scroll' }, s('svg', { class: 'steps', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': 'Order of the steps' },
    steps.flatMap(step => (step.needs || []).filter(n => at.has(n)).map(n => s('line', edge(at.get(n), at.get(step.name))))),
    steps.map(step => {
      const { x, y } = at.get(step.name), under = step.state ? step.state.toLowerCase() + (step.took_ms == null ? '' : ', ' + span(step.took_ms)) : step.kind;
      return s('g', { class: shade(step.state) }, s('title', { text: `${step.name}: ${under}` }), s('rect', { x, y, width: W, height: H, rx: 9 }),
        s('text', { x: x + 12, y: y + 18, text: cut(step.name, 19) }), s('text', { class: 'sub', x: x + 12, y: y + 33, text: cut(under || '', 24) }));
    })));
}

const drawGraph = (el, steps) => once(el, steps.map(x => [x.name, x.state, x.took_ms]), () => {
  el.hidden = steps.length < 2;
  put(el, !el.hidden && graph(steps));
});

/* A tick in the zone of its job; the title has it in that of the viewer. */
const tickMark = tick => h('time', { class: 'tickat', datetime: tick.at, title: both(tick.at), text: `${tick.local.replace('T', ' ')} ${tick.offset}` });

/* ---- Questions. `again()` shows what became of it. */

/* A key names the run, so that a request which is sent twice starts one. */
const drawKey = () => [...crypto.getRandomValues(new Uint8Array(6))].map(b => b.toString(16).padStart(2, '0')).join('');
const starts = (path, body, key = drawKey()) => async reason => {
  const got = await post(path, { ...body(), ...(reason && { reason }) }, 'POST', { 'Idempotency-Key': key });
  location.hash = to('runs', got.id);
  return got;
};

function askRun(job) {
  const fields = job.params.map(p => [p, h('input', { id: 'param-' + p.name, autocomplete: 'off', value: p.default ?? '' })]);
  return confirm({
    title: 'Run it now?', action: 'Run it', reason: 'optional',
    say: [code(job.name), ' is run once, besides its schedule.', fields.map(([p, field]) => [h('label', { for: field.id, text: p.name }), field])],
    note: job.live && `A run of it lives. Such runs: ${job.concurrency}.`,
    run: starts(jobPath(job.name, '/run'), () => ({ params: Object.fromEntries(fields.filter(([, field]) => field.value).map(([p, field]) => [p.name, field.value])) })), done: got => `Started: ${got.id}`,
  });
}

const change = (path, again, body = {}) => reason => post(path, reason ? { ...body, reason } : body).then(again);

const askPause = (job, again) => confirm({
  title: 'Pause this job?', action: 'Pause it', reason: true, say: ['No tick starts ', code(job.name), ' until it is resumed. A run that lives goes on, and it can still be run by hand.'],
  run: change(jobPath(job.name, '/pause'), again), done: `Paused: ${job.name}`,
});
const askResume = (job, again) => confirm({
  title: 'Resume this job?', action: 'Resume it', reason: 'optional', say: [code(job.name), ' is started by its schedule again.'],
  note: `Missed ticks: ${job.misfire.replace('_', ' ')}.`,
  run: change(jobPath(job.name, '/resume'), again), done: `Resumed: ${job.name}`,
});

const live = run => run.steps.filter(x => !isOver(x.state)).map(x => x.name);
const askCancel = (run, again) => confirm({
  title: 'Cancel this run?', danger: true, action: 'Cancel the run', reason: true,
  say: ['The run ', code(run.id), ' of ', code(run.job), ' ends. ', live(run).length ? ['Not done yet: ', h('b', { text: live(run).join(', ') }), '.'] : ''],
  note: 'Steps that run always still run; a second cancel ends them too.',
  run: change(runPath(run.id, '/cancel'), again), done: `Cancelled: ${run.id}`,
});
const askRerun = (run, from) => confirm({
  title: 'Run it again?', action: 'Run it again', reason: 'optional',
  say: ['A new run of ', code(run.job), ' begins, with the definition and the parameters of ', code(run.id), from && [', from the step ', code(from), ' on'], '.'],
  run: starts(runPath(run.id, '/rerun'), () => (from ? { from } : {})), done: got => `Started: ${got.id}`,
});
const askBookmark = (run, step, again) => confirm({
  title: 'Let this step go on?', action: 'Let it go on', reason: 'optional', say: ['The step ', code(step.name), ' of ', code(run.id), ' waits for ', code(step.bookmark), '. It ends, and those that need it begin.'],
  run: change(runPath(run.id, '/resume'), again, { bookmark: step.bookmark }), done: `Resumed: ${step.bookmark}`,
});

const PART = 200, SHOWN = 20;
const VIEWS = [['', 'List'], ['2', '2 hours'], ['12', '12 hours'], ['48', '2 days']];

/* ---- All of them. */

/* Less often than others: the store reads each run. */
function sparing(ask) {
  let kept = {};
  return async (what, ms) => {
    if (kept.what !== what || now() - kept.at > ms) kept = { what, at: now(), got: await ask(what) };
    return kept.got;
  };
}

/* The latest runs by job, the oldest first. */
async function latestRuns() {
  const by = {};
  for (const run of (await get('v1/runs?limit=300')).items) if ((by[run.job] ||= []).length < SHOWN) by[run.job].unshift(run);
  return by;
}

function jobTable() {
  return table('Jobs', 'jobs', ['Job', 'When', 'Status', 'Next', 'Last run', 'Latest runs'], {
    key: j => j.name, open: j => to('jobs', j.name),
    make: j => [h('span', {}, h('a', { class: 'name', href: to('jobs', j.name), text: j.name, tabindex: -1 }), h('small')), h('span', {}, code(''), h('small')), h('span'), num(), h('span'), h('span')],
    update: (cells, j) => {
      const last = j.runs.at(-1), [name, plan, status, next, took, bars] = cells.map(cell => cell.firstChild);
      text(name.lastChild, j.description || '');
      text(plan.firstChild, scheduleText(j));
      text(plan.lastChild, j.schedule.length ? ' ' + j.zone : '');
      if (j.paused || j.next_in_ms == null) until(next, null);
      else until(next, j.next_in_ms, j.got);
      next.title = j.next_at ? moment(j.next_at) : '';
      once(status, [j.status, j.paused, last?.id, last?.state, j.runs.length], () => {
        put(status, statusMark(j), j.paused?.reason && h('small', { text: j.paused.reason, title: j.paused.reason }));
        put(took, last ? [stateMark(last.state), last.took_ms != null && h('small', { class: 'num', text: ' ' + span(last.took_ms) })] : h('span', { class: 'dim', text: j.run_count ? many(j.run_count, 'run') : 'never' }));
        put(bars, streak(j.runs));
      });
    },
  });
}

/* A lane for each job: its runs before now, and its ticks to come. */
function timeline(got) {
  const from = +new Date(got.from), whole = new Date(got.to) - from, WIDE = 1000, LANE = 28, x = at => ((new Date(at) - from) / whole) * WIDE, here = x(got.now);
  const names = [...new Set([...got.runs, ...got.ticks].map(r => r.job))].sort(), lane = new Map(names.map((name, i) => [name, i * LANE]));
  const H = names.length * LANE, marks = Array.from({ length: 5 }, (_, i) => from + (whole * i) / 4);
  if (!names.length) return empty('Nothing in this time.');
  const bar = r => { const a = Math.max(0, x(r.begun_at || r.made_at)), b = r.ended_at ? x(r.ended_at) : r.begun_at ? here : a; return { x: a, width: Math.max(2.5, b - a) }; };
  return h('div', { class: 'lanes' }, h('div', {}, names.map(name => h('a', { href: to('jobs', name), text: name, title: name }))),
    h('div', {}, s('svg', { class: 'gantt jobtime', viewBox: `0 0 ${WIDE} ${H}`, preserveAspectRatio: 'none', vars: { '--h': H + 'px' }, role: 'img', 'aria-label': `${many(got.runs.length, 'run')}, ${many(got.ticks.length, 'tick')}` },
      marks.map(at => s('line', { class: 'grid', x1: x(at), x2: x(at), y1: 0, y2: H })),
      got.ticks.map(t => s('rect', { class: 'tick', x: x(t.at), y: lane.get(t.job) + 9, width: 2, height: 10 }, s('title', { text: `${t.job} is due ${moment(t.at)}` }))),
      got.runs.map(r => s('rect', { class: 'is ' + shade(r.state), ...bar(r), y: lane.get(r.job) + 6, height: 16, rx: 2, onclick: () => { location.hash = to('runs', r.id); } },
        s('title', { text: `${r.id}: ${r.state.toLowerCase()} ${moment(r.begun_at || r.made_at)}` }))),
      s('line', { class: 'here', x1: here, x2: here, y1: 0, y2: H })),
    h('div', { class: 'axis' }, marks.map(at => h('span', { text: whole > 864e5 ? moment(at).slice(0, -3) : hour(at) })))));
}

const iso = ms => new Date(ms).toISOString().slice(0, 19) + 'Z';

function all(address) {
  const view = page('Jobs', { lead: 'Commands that run by a schedule or when asked.' });
  const is = { q: address.get('q') || '', hours: address.get('hours') || '' };
  const rows = jobTable(), more = h('small'), latest = sparing(latestRuns), times = sparing(hours => get(query('v1/timeline', { from: iso(Date.now() - hours * 18e5), to: iso(Date.now() + hours * 18e5) }))), time = h('section', { class: 'card' });
  const views = h('div', { class: 'chips', role: 'group', 'aria-label': 'View' });

  function pick(next) {
    Object.assign(is, next);
    history.replaceState(null, '', query('#/jobs', is));
    for (const chip of views.children) chip.setAttribute('aria-pressed', String(chip.value === is.hours));
    ask.now();
  }
  put(views, VIEWS.map(([value, label]) => Object.assign(button(label, () => pick({ hours: value }), 'chip'), { value })));

  const showTime = got => put(time, h('header', {}, h('h2', { text: 'Runs, and ticks to come' }), h('small', { text: (got.complete ? '' : 'Not all of them: choose a shorter time. ') + zoneName() })), timeline(got));
  function showList([got, runs]) {
    rows.show(got.items.map(j => ({ ...j, got: got.got, runs: runs[j.name] || [] })), is.q
      ? empty('Nothing fits.', `No job has “${is.q}” in its name.`) : empty('There is no job.', 'dibs serve --jobs FILE or dibs job load FILE brings some.'));
    text(more, got.total > got.items.length ? `${count(got.total)} jobs; search to find the others.` : '');
  }
  const ask = view.keep(async () => {
    const hours = Number(is.hours) || 0;
    if (hours) return { hours, got: await times(hours, Math.max(4000, hours * 600)) };
    return { hours, got: await Promise.all([get(query('v1/jobs', { q: is.q, limit: PART })), latest(0, 3000)]) };
  }, ({ hours, got }) => {
    const shown = hours ? time : rows.el;
    if (!shown.isConnected) put(view.body, views, shown, more);
    if (!hours) return showList(got);
    text(more, '');
    showTime(got);
  }, { kinds: ['jobs', 'runs'] });
  pick({});
  return Object.assign(view, { find: q => pick({ q, hours: '' }) });
}

/* ---- One of them. */

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
    make: r => [h('a', { class: 'name', href: to('runs', r.id), text: r.id, tabindex: -1 }), h('span'), h('span', { text: r.cause }), h('span'), h('span', { class: 'num' })],
    update: (cells, r) => {
      put(cells[1].firstChild, stateMark(r.state, r.reason));
      put(cells[3].firstChild, when(r.begun_at));
      text(cells[4].firstChild, r.took_ms == null ? '–' : span(r.took_ms));
    },
  });
}

const definition = j => facts([['Schedule', code(scheduleText(j))], ['Missed ticks', j.misfire.replace('_', ' ')], ['While one runs', j.concurrency], j.lock && ['Lock', j.lock],
  j.run_timeout_ms > 0 && ['Run at most', span(j.run_timeout_ms)], j.params.length && ['Parameters', j.params.map(p => p.name).join(', ')], j.then_ok.length && ['Then', j.then_ok.join(', ')], j.then_failed.length && ['After a failure', j.then_failed.join(', ')],
  ['Set', j.set], j.loaded && ['Loaded from', j.loaded.from], ['Ticks missed', count(j.missed)]]);

function one(name) {
  const view = page(name, { back: ['Jobs', '#/jobs'], mono: true });
  const lead = h('p', { class: 'lead' }), mark = h('span'), acts = h('span', { class: 'acts' }), ticks = h('ul', { class: 'plain' }), about = h('div'), picture = h('section', { class: 'card' });
  const runs = runTable(), steps = workTable();
  let job = null;

  const buttons = () => once(acts, !!job.paused, () => put(acts, may('operate') && [button('Run now…', () => askRun(job), 'main'), job.paused ? button('Resume…', () => askResume(job, ask.now)) : button('Pause…', () => askPause(job, ask.now))]));
  function says() {
    const p = job.paused;
    if (p) return [`Paused by ${p.by}: ${p.reason || 'no reason given'}`, p.until_at && [', until ', when(p.until_at)]];
    return [job.description && `${job.description}. `, job.live && [h('a', { href: to('runs', job.live), text: `${job.live} lives` }), '. '], job.next_in_ms != null && ['Next in ', until(num(), job.next_in_ms, job.got), '.'], !job.enabled && 'It is off.'];
  }
  const still = () => once(about, [job.hash, job.loaded, job.missed, job.skipped], () => {
    put(about, definition(job));
    drawGraph(picture, job.steps);
    steps.show(job.steps);
  });
  const ask = view.keep(() => Promise.all([get(jobPath(name)), get(jobPath(name, '/next?n=8'))]), ([j, next]) => {
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

export const jobs = (name, address) => (name ? one(name) : all(address));

/* ---- The output of a run. It follows the end until somebody scrolls up. */

const LINES_MAX = 3000;
const CAUSES = { tick: 'it was due', hand: 'somebody asked', then: 'another run ended', rerun: 'run again', child: 'a step of another run' };

function output(id) {
  const lines = h('ol', { class: 'output', tabindex: 0, role: 'log', 'aria-label': 'Output', 'aria-live': 'off' });
  const title = h('h2', { text: 'Output' }), told = num(), note = h('div'), whole = button('All of it', () => pick(''), 'small'), jump = button('Follow the end', () => { lines.scrollTop = lines.scrollHeight; }, 'jump small');
  const el = h('section', { class: 'card outbox' }, h('header', {}, title, whole, told), lines, note, jump);
  let end = new AbortController(), waiting = [], total = 0, timer = 0, following = true, steps = null, is = {};
  whole.hidden = jump.hidden = true;
  lines.addEventListener('scroll', () => { following = lines.scrollTop + lines.clientHeight > lines.scrollHeight - 30; jump.hidden = following; });

  const line = ([at, kind, words, step]) => h('li', { class: kind }, kind === 'out' && steps.length > 1 && !is.step && h('b', { text: step }), h('span', { text: words }), at && h('time', { text: clock(at) }));
  /* Lines that come together are shown together. */
  function flush() {
    timer = 0;
    lines.append(...waiting.splice(0).slice(-LINES_MAX).map(line));
    while (lines.children.length > LINES_MAX) lines.firstChild.remove();
    text(told, many(total, 'line'));
    if (following) lines.scrollTop = lines.scrollHeight;
  }
  function event(kind, data, place) {
    if (place) end.last = place;
    if (kind === 'end') end.over = true;
    if (kind !== 'line') return;
    waiting.push(data);
    if (data[1] === 'out') total++;
    timer ||= setTimeout(flush, 60);
  }
  const say = (title, sub) => { put(note, title && empty(title, sub)); };

  /* Reads until the run is over, from where the stream ended. */
  async function read(mine) {
    while (!mine.signal.aborted && !mine.over) {
      try {
        await readEvents(query(runPath(id, '/output'), is), { last: mine.last, signal: mine.signal, event: (...news) => mine.signal.aborted || event(...news), heard: () => say() });
      } catch (e) {
        if (mine.signal.aborted || e.status === 401) return;
        say('The output cannot be read.', e.message);
        if (e.status >= 400 && e.status < 500) return;
      }
      if (!mine.over && !mine.signal.aborted) await new Promise(go => setTimeout(go, 2000));
    }
    if (mine.signal.aborted) return;
    if (!waiting.length && !lines.firstChild) say('Nothing was written.');
  }
  function begin() {
    end.abort();
    end = new AbortController();
    waiting = [];
    total = 0;
    following = true;
    put(lines);
    text(told, '');
    say();
    read(end);
  }
  function pick(step, attempt) {
    is = { step, attempt };
    text(title, step ? `Output of ${step}, attempt ${attempt}` : 'Output');
    whole.hidden = !step;
    begin();
    if (step) el.scrollIntoView({ block: 'nearest' });
  }
  return {
    el, pick, stop: () => end.abort(),
    show(names) {
      if (steps?.join() === names.join()) return;
      steps = names;
      begin();
    },
  };
}

/* Each step, and below it the attempts before its last. */
const lineUp = run => run.steps.flatMap(step => [{ ...step, key: step.name, run },
  ...run.attempts.filter(a => a.step === step.name && a.attempt < step.attempt).map(a => ({ ...a, name: a.step, key: `${a.step}.${a.attempt}`, earlier: true, run, took_ms: a.begun_at && a.ended_at ? new Date(a.ended_at) - new Date(a.begun_at) : null }))]);

const waitsFor = x => (x.waits_for && !isOver(x.state) ? ` for ${x.bookmark || x.waits_for}` : '') + (x.due_at && !isOver(x.state) ? ` until ${clock(x.due_at)}` : '');

function stepTable(out, again) {
  return table('Steps', 'runsteps', ['Step', 'State', 'Attempt', 'Node', 'Began', 'Took', 'Exit', ''], {
    key: x => x.key,
    make: x => [h('span', { class: x.earlier ? 'earlier' : '' }, x.earlier ? h('small', { text: 'before' }) : code(x.name)), h('span'), num(), h('span', { class: 'cutoff' }), h('span'), num(), num(), h('span', { class: 'acts' })],
    update: (cells, x, row) => {
      const [, state, attempt, node, begun, took, exit, acts] = cells.map(cell => cell.firstChild), over = isOver(x.run.state), live = ['RUNNING', 'CLAIMED'].includes(x.state);
      once(row, [{ ...x, run: 0 }, over], () => {
        put(state, x.earlier ? h('small', { class: 'badtext', text: x.reason || 'ok' }) : [stateMark(x.state, x.reason), h('small', { text: waitsFor(x) })]);
        text(attempt, x.attempt || '–');
        text(node, x.node || '–');
        node.title = x.node || '';
        put(begun, when(x.begun_at, clock));
        if (live && x.begun_at) since(took, Math.max(0, Date.now() - new Date(x.begun_at)));
        else put(cells[5], h('span', { class: 'num', text: x.took_ms == null ? '–' : span(x.took_ms) }));
        text(exit, (x.earlier || isOver(x.state)) && x.attempt ? x.exit_code : '–');
        put(acts, x.attempt > 0 && button('Output', () => out.pick(x.name, x.attempt), 'small'),
          may('operate') && !x.earlier && x.state === 'WAITING' && x.waits_for === 'bookmark' && button('Let it go on…', () => askBookmark(row.item.run, row.item, again()), 'small'),
          may('operate') && !x.earlier && over && x.run.steps.length > 1 && button('Rerun from here…', () => askRerun(row.item.run, x.name), 'small'));
      });
    },
  });
}

const cause = run => [CAUSES[run.cause] || run.cause, run.origin && [': ', ['then', 'rerun', 'child'].includes(run.cause) ? h('a', { href: to('runs', run.origin), text: run.origin }) : run.origin]];

const about = run => facts([['Took', run.took_ms != null ? span(run.took_ms) : run.begun_at ? since(num(), Math.max(0, Date.now() - new Date(run.begun_at))) : '–'], ['Why', h('span', {}, cause(run))], run.tick_at && ['Due', when(run.tick_at)],
  ['Began', when(run.begun_at)], run.delay_ms > 0 && ['Late by', span(run.delay_ms)],
  ...Object.entries(run.params).map(([k, v]) => [k, code(v)])]);

export const run = id => {
  const view = page(id, { back: ['Jobs', '#/jobs'], mono: true });
  const mark = h('span'), acts = h('span', { class: 'acts' }), sums = h('section', { class: 'card' }), picture = h('section', { class: 'card' }), out = output(id);
  const steps = stepTable(out, () => ask.now);
  let run = null;

  const buttons = over => once(acts, over, () => put(acts, may('operate') && (over ? button('Run again…', () => askRerun(run)) : button('Cancel…', () => askCancel(run, ask.now), 'danger'))));
  const ask = view.keep(() => get(runPath(id)), got => {
    run = got;
    if (!steps.el.isConnected) {
      const back = view.head.querySelector('.back');
      text(back, got.job);
      back.setAttribute('href', to('jobs', got.job));
      view.head.append(acts);
      view.name.append(mark);
      put(view.body, sums, picture, steps.el, out.el);
    }
    put(mark, stateMark(got.state, got.reason));
    put(sums, about(got));
    buttons(isOver(got.state));
    drawGraph(picture, got.steps);
    steps.show(lineUp(got), empty('It has no steps yet.'));
    out.show(got.steps.map(x => x.name));
  }, { every: 3000, kinds: ['runs'] });
  view.ends.push(out.stop);
  return view;
};

/* ---- Nodes. */

const askDrain = (node, again) => confirm({
  title: 'Drain this node?', danger: true, action: 'Drain it', reason: true,
  say: ['The node ', code(node.id), ' on ', h('b', { text: who(node) }), ' takes nothing new. ', 'It stops when what it executes has ended: ', many(node.steps.length, 'step'), '.'],
  note: 'To have it back, start it again.',
  run: change(`v1/nodes/${encodeURIComponent(node.id)}/drain`, again), done: `Drains: ${node.id}`,
});

export const nodes = () => {
  const view = page('Nodes', { lead: 'Processes that execute jobs.' });
  const note = h('small');
  const rows = table('Nodes', 'nodes', ['Node', 'State', 'Steps', 'Labels', 'Lease', 'Here for', ''], {
    key: n => n.id,
    make: n => [h('span', {}, code(n.id), h('small', { text: who(n) })), h('span'), h('span'), h('span', { text: n.labels || '–' }), leaseBar(), since(num(), n.age_ms, n.got), h('span')],
    update: (cells, n, line) => {
      cells[4].firstChild.show(n, n.got);
      once(line, [n.state, n.stale, n.slots, n.steps], () => {
        put(cells[1].firstChild, n.stale ? pill('seems to be gone', 'warn') : pill(n.state, n.state === 'draining' ? 'warn' : 'good'));
        put(cells[2].firstChild, h('b', { class: 'num', text: n.slots ? `${n.steps.length} of ${n.slots}` : String(n.steps.length) }), n.steps.map(x => h('a', { class: 'stepof', href: to('runs', x.run), text: `${x.run} ${x.step}` })));
        put(cells[6].firstChild, may('admin') && n.state !== 'draining' && button('Drain…', () => askDrain(line.item, ask.now), 'danger'));
      });
    },
  });
  const ask = view.keep(() => get('v1/nodes'), got => {
    if (!rows.el.isConnected) put(view.body, rows.el, note);
    rows.show(got.items.map(n => ({ ...n, got: got.got })), empty('No node is there: nothing is executed.', 'dibs work or dibs serve --jobs FILE starts one.'));
    text(note, `Board ${got.board}. The engine of this daemon: ${got.engine}.`);
  }, { every: 3000, kinds: ['runs'] });
  return view;
};
