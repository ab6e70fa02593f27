/* jobs.js - all jobs: when they are due and how their latest runs went, as a list, over time or in a week. */
// SPDX-License-Identifier: MIT
import { h, put, text } from '../dom.js';
import { iso, moment, span, until, zoneName } from '../time.js';
import { get, query, sparing } from '../api.js';
import { button, code, empty, many, named, num, once, page, table, to } from '../parts.js';
import { scheduleText, shade, stateMark, statusMark } from '../work.js';
import calendar, { timeline } from './calendar.js';
import job from './job.js';

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

export default (name, address) => (name ? job(name) : all(address));
