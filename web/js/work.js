/* work.js - what the pages of jobs, runs and nodes share: states, paths, the order of steps. */
// SPDX-License-Identifier: MIT
import { cut, h, once, pill, post, put, s, span, to } from './parts.js';

export const jobPath = (name, tail = '') => `v1/jobs/${encodeURIComponent(name)}${tail}`;
export const runPath = (id, tail = '') => `v1/runs/${encodeURIComponent(id)}${tail}`;

const KINDS = { OK: 'good', FAILED: 'bad', CANCELLED: 'warn', MISSED: 'warn', UNREADABLE: 'warn', RETRY: 'warn', WAITING: 'warn', ACTIVE: 'live', RUNNING: 'live', CLAIMED: 'live' };
const OVER = ['OK', 'FAILED', 'CANCELLED', 'MISSED', 'SKIPPED'];
export const isOver = state => OVER.includes(state);
export const shade = state => 'hue ' + (KINDS[state] || '');
export const stateMark = (state, reason) => [pill(state.toLowerCase(), KINDS[state]), reason && reason !== state.toLowerCase() && h('small', { text: ' ' + reason })];
const STATUS = { paused: 'warn', running: 'live', due: 'good' };
export const statusMark = job => pill(job.status, STATUS[job.status]);

export const scheduleText = job => job.schedule.join(' or ') || 'when asked';

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
  return h('div', { class: 'scroll' }, s('svg', { class: 'steps', viewBox: `0 0 ${width} ${height}`, width, height, vars: { '--w': width + 'px' }, role: 'img', 'aria-label': 'Order of the steps' },
    steps.flatMap(step => (step.needs || []).filter(n => at.has(n)).map(n => s('line', edge(at.get(n), at.get(step.name))))),
    steps.map(step => {
      const { x, y } = at.get(step.name), under = step.state ? step.state.toLowerCase() + (step.took_ms == null ? '' : ', ' + span(step.took_ms)) : step.kind;
      return s('g', { class: shade(step.state) }, s('title', { text: `${step.name}: ${under}` }), s('rect', { x, y, width: W, height: H, rx: 9 }),
        s('text', { x: x + 12, y: y + 18, text: cut(step.name, 19) }), s('text', { class: 'sub', x: x + 12, y: y + 33, text: cut(under || '', 24) }));
    })));
}

export const drawGraph = (el, steps) => once(el, steps.map(x => [x.name, x.state, x.took_ms]), () => {
  el.hidden = steps.length < 2;
  put(el, !el.hidden && graph(steps));
});

/* A key names the run, so that a request which is sent twice starts one. */
const drawKey = () => [...crypto.getRandomValues(new Uint8Array(6))].map(b => b.toString(16).padStart(2, '0')).join('');
export const starts = (path, body, key = drawKey()) => async reason => {
  const got = await post(path, { ...body(), ...(reason && { reason }) }, 'POST', { 'Idempotency-Key': key });
  location.hash = to('runs', got.id);
  return got;
};
