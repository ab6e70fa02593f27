/* jobs.js - all jobs: when they are due and how their latest runs went, as a list or over time. */
// SPDX-License-Identifier: MIT
import { h, put, s, text } from '../dom.js';
import { hour, moment, span, until, zoneName } from '../time.js';
import { get, query, sparing } from '../api.js';
import { button, code, count, empty, many, named, num, once, page, table, to } from '../parts.js';
import { scheduleText, shade, stateMark, statusMark } from '../work.js';
import job from './job.js';

const PART = 200, SHOWN = 20;
const VIEWS = [['', 'List'], ['2', '2 hours'], ['12', '12 hours'], ['48', '2 days']];

/* The latest runs as bars, as high as they were long, the newest at the right. */
function streak(runs) {
  const top = Math.max(1, ...runs.map(r => r.took_ms || 0));
  return h('span', { class: 'streak' }, runs.map(r => h('a', { href: to('runs', r.id), class: shade(r.state), tabindex: -1, vars: { '--share': Math.max(0.15, Math.sqrt((r.took_ms || 0) / top)).toFixed(2) },
    title: `${moment(r.begun_at || r.made_at)}: ${r.state.toLowerCase()}${r.took_ms == null ? '' : ', ' + span(r.took_ms)}`, 'aria-label': r.id })));
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
    make: j => [h('span', {}, named('jobs', j.name), h('small')), h('span', {}, code(''), h('small')), h('span'), num(), h('span'), h('span')],
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

export default (name, address) => (name ? job(name) : all(address));
