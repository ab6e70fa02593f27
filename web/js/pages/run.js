/* run.js - one run: its steps and their attempts, its output as it is written, and what an operator may do. */
// SPDX-License-Identifier: MIT
import { ago, button, clock, code, confirm, empty, facts, get, h, many, may, num, once, page, put, query, readEvents, sends, since, span, table, text, to, when } from '../parts.js';
import { drawGraph, isOver, runPath, starts, stateMark } from '../work.js';

/* ---- The output. It follows the end until somebody scrolls up. */

const LINES_MAX = 3000;

function output(id) {
  const lines = h('div', { class: 'output', tabindex: 0, role: 'log', 'aria-label': 'Output', 'aria-live': 'off' });
  const title = h('h2', { text: 'Output' }), told = num(), note = h('div'), whole = button('All of it', () => pick(''), 'small'), jump = button('Follow the end', () => { lines.scrollTop = lines.scrollHeight; }, 'jump small');
  const el = h('section', { class: 'card outbox' }, h('header', {}, title, whole, told), lines, note, jump);
  let end = new AbortController(), waiting = [], total = 0, timer = 0, following = true, steps = null, is = {};
  whole.hidden = jump.hidden = true;
  lines.addEventListener('scroll', () => { following = lines.scrollTop + lines.clientHeight > lines.scrollHeight - 30; jump.hidden = following; });

  const line = ([at, kind, words, step]) => h('div', { class: kind }, kind === 'out' && steps.length > 1 && !is.step && h('b', { text: step }), h('span', { text: words }), at && h('time', { text: clock(at) }));
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

/* ---- The run. */

const CAUSES = { tick: 'it was due', hand: 'somebody asked', then: 'another run ended', rerun: 'run again', child: 'a step of another run' };

const live = run => run.steps.filter(x => !isOver(x.state)).map(x => x.name);
/* A second cancel ends more than the first: only whoever has seen the first sends one. */
const askCancel = run => confirm({
  title: 'Cancel this run?', danger: true, action: 'Cancel the run', reason: true,
  say: ['The run ', code(run.id), ' of ', code(run.job), ' ends. ', live(run).length ? ['Not done yet: ', h('b', { text: live(run).join(', ') }), '.'] : ''],
  note: run.cancels ? 'It was cancelled before. This ends its steps that always run, too.' : 'Steps that always run still run.',
  run: async reason => {
    if ((await get(runPath(run.id))).cancels > run.cancels) throw Error('It was cancelled meanwhile. Nothing was sent.');
    return sends(runPath(run.id, '/cancel'))(reason);
  }, done: `Cancelled: ${run.id}`,
});
const askRerun = (run, from) => confirm({
  title: 'Run it again?', action: 'Run it again', reason: 'optional',
  say: ['A new run of ', code(run.job), ' begins, with the definition and the parameters of ', code(run.id), from && [', from the step ', code(from), ' on'], '.'],
  run: starts(runPath(run.id, '/rerun'), () => (from ? { from } : {})), done: got => `Started: ${got.id}`,
});
const askBookmark = (run, step) => confirm({
  title: 'Let this step go on?', action: 'Let it go on', reason: 'optional', say: ['The step ', code(step.name), ' of ', code(run.id), ' waits for ', code(step.bookmark), '. It ends, and those that need it begin.'],
  run: sends(runPath(run.id, '/resume'), { bookmark: step.bookmark }), done: `Resumed: ${step.bookmark}`,
});

/* Each step, and below it the attempts before its last. */
const lineUp = run => run.steps.flatMap(step => [{ ...step, key: step.name, run },
  ...run.attempts.filter(a => a.step === step.name && a.attempt < step.attempt).map(a => ({ ...a, name: a.step, key: `${a.step}.${a.attempt}`, earlier: true, run, took_ms: a.begun_at && a.ended_at ? new Date(a.ended_at) - new Date(a.begun_at) : null }))]);

const waitsFor = x => (x.waits_for && !isOver(x.state) ? ` for ${x.bookmark || x.waits_for}` : '') + (x.due_at && !isOver(x.state) ? ` until ${clock(x.due_at)}` : '');

function stepTable(out) {
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
        if (live && x.begun_at) since(took, ago(x.begun_at));
        else put(cells[5], num(span(x.took_ms)));
        text(exit, (x.earlier || isOver(x.state)) && x.attempt ? x.exit_code : '–');
        put(acts, x.attempt > 0 && button('Output', () => out.pick(x.name, x.attempt), 'small'),
          may('operate') && !x.earlier && x.state === 'WAITING' && x.waits_for === 'bookmark' && button('Let it go on…', () => askBookmark(row.item.run, row.item), 'small'),
          may('operate') && !x.earlier && over && x.run.steps.length > 1 && button('Rerun from here…', () => askRerun(row.item.run, x.name), 'small'));
      });
    },
  });
}

const cause = run => [CAUSES[run.cause] || run.cause, run.origin && [': ', ['then', 'rerun', 'child'].includes(run.cause) ? h('a', { href: to('runs', run.origin), text: run.origin }) : run.origin]];

const about = run => facts([['Took', run.took_ms != null ? span(run.took_ms) : run.begun_at ? since(num(), ago(run.begun_at)) : '–'], ['Why', h('span', {}, cause(run))], run.tick_at && ['Due', when(run.tick_at)],
  ['Began', when(run.begun_at)], run.delay_ms > 0 && ['Late by', span(run.delay_ms)],
  ...Object.entries(run.params).map(([k, v]) => [k, code(v)])]);

export default function run(id) {
  const view = page(id, { back: ['Jobs', '#/jobs'], mono: true });
  const mark = h('span'), acts = h('span', { class: 'acts' }), sums = h('section', { class: 'card' }), picture = h('section', { class: 'card' }), out = output(id);
  const steps = stepTable(out);
  let run = null;

  const buttons = (over, { cancels }) => once(acts, [over, cancels], () => put(acts, may('operate') && (over ? button('Run again…', () => askRerun(run)) : cancels < 2 && button(cancels ? 'Cancel again…' : 'Cancel…', () => askCancel(run), 'danger'))));
  view.keep(() => get(runPath(id)), got => {
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
    buttons(isOver(got.state), got);
    drawGraph(picture, got.steps);
    steps.show(lineUp(got), empty('It has no steps yet.'));
    out.show(got.steps.map(x => x.name));
  }, { every: 3000, kinds: ['runs'] });
  view.ends.push(out.stop);
  return view;
}
