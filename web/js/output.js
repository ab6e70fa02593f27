/* output.js - the output of a run as it is written. It follows the end until somebody scrolls up. */
// SPDX-License-Identifier: MIT
import { h, put, text } from './dom.js';
import { clock } from './time.js';
import { query, readEvents } from './api.js';
import { button, empty, many, num } from './parts.js';
import { runPath } from './work.js';

const LINES_MAX = 3000;

export function output(id) {
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
