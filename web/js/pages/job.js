/* job.js - one job: its next ticks, its definition, its latest runs, and what an operator may do. */
// SPDX-License-Identifier: MIT
import { each, h, put, text } from '../dom.js';
import { both, iso, localText, readLocal, span, until, zoneShort } from '../time.js';
import { get } from '../api.js';
import { button, card, code, confirm, count, empty, facts, may, named, num, once, page, pill, sends, table, to, when } from '../parts.js';
import { drawGraph, jobPath, scheduleText, starts, stateMark, statusMark } from '../work.js';

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

function askPause(job, again) {
  const until = h('input', { id: 'until', type: 'datetime-local', min: localText(Date.now() + 6e4) });
  return confirm({
    title: 'Pause this job?', action: 'Pause it', reason: true,
    say: ['No tick starts ', code(job.name), ' until it is resumed. A live run goes on, and it can still be run by hand.', h('label', { for: 'until', text: `Resume it by itself at (${zoneShort()}; may be empty)` }), until],
    run: reason => sends(jobPath(job.name, '/pause'), until.value ? { until_at: iso(readLocal(until.value)) } : {}, again)(reason), done: `Paused: ${job.name}`,
  });
}
const askResume = (job, again) => confirm({
  title: 'Resume this job?', action: 'Resume it', reason: 'optional', say: [code(job.name), ' is started by its schedule again.'],
  note: `Missed ticks: ${job.misfire.replace('_', ' ')}.`,
  run: sends(jobPath(job.name, '/resume'), {}, again), done: `Resumed: ${job.name}`,
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

export default function job(name) {
  const view = page(name, { back: ['Jobs', '#/jobs'], mono: true });
  const lead = h('p', { class: 'lead' }), mark = h('span'), acts = h('span', { class: 'acts' }), ticks = h('ul', { class: 'plain' }), about = h('div'), picture = h('section', { class: 'card' });
  const runs = runTable(), steps = workTable();
  let job = null;

  const buttons = () => once(acts, [!!job.paused, job.unreadable], () => put(acts, may('operate') && !job.unreadable && [button('Run now…', () => askRun(job), 'main'), job.paused ? button('Resume…', () => askResume(job, ask.now)) : button('Pause…', () => askPause(job, ask.now))]));
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
  const ask = view.keep(async () => {
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
