/* chart.js - lines over time (uPlot, fetched when the first chart is shown), and small
 * lines without axes. */
// SPDX-License-Identifier: MIT
import { clock, empty, h, hour, put, s, text } from './parts.js';

let library;
const load = () => (library ||= new Promise((go, fail) => {
  const el = h('script', { src: 'vendor/uPlot.iife.min.js' });
  el.addEventListener('load', () => go(globalThis.uPlot));
  el.addEventListener('error', fail);
  document.head.append(el);
}));

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* chart('Time to acquire', [{ label: 'p99', color: '--wait', area: true }], { unit, log })
 * has el and show(times, columns): moments in seconds, and a list of values for each line.
 * stop() lets go of it. */
export function chart(title, lines, { unit = String, log = false, height = 190 } = {}) {
  const legend = h('div', { class: 'legend' }, lines.map(l => h('span', { vars: { '--c': `var(${l.color})` } }, h('i'), l.label + ' ', h('b'))));
  const box = h('div', { class: 'plot' });
  const el = h('section', { class: 'card chart', 'aria-label': title }, h('header', {}, h('h2', { text: title }), legend), box);
  let plot = null, data = null, theme = '';

  const values = at => lines.forEach((l, i) => {
    const v = data?.[i + 1][at];
    text(legend.children[i].lastChild, v == null ? '–' : unit(v));
  });

  function options() {
    const axis = { stroke: colour('--ink-3'), font: '11px ' + colour('--sans'), grid: { stroke: colour('--line-2'), width: 1 }, ticks: { show: false }, gap: 6 };
    const scale = log ? { distr: 3, range: (u, lo, hi) => [1, 10 ** Math.ceil(Math.log10(Math.max(10, hi)))] } : { range: (u, lo, hi) => [0, Math.max(1, hi * 1.15)] };
    return {
      width: box.clientWidth, height, padding: [8, 24, 0, 0], legend: { show: false },
      cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } }, scales: { x: { time: true }, y: scale },
      axes: [{ ...axis, grid: { show: false }, space: 80, size: 26, values: (u, v) => v.map(x => (v[1] - v[0] < 60 ? clock : hour)(x * 1000)) },
        { ...axis, size: 48, space: 36, incrs: log ? undefined : [1, 2, 5, 10, 50, 100, 500, 1000, 5000], splits: log ? (u, i, lo, hi) => Array.from({ length: Math.round(Math.log10(hi / lo)) + 1 }, (_, k) => lo * 10 ** k) : undefined, values: (u, v) => v.map(x => (x == null ? '' : unit(x))) }],
      series: [{}, ...lines.map(l => ({ stroke: colour(l.color), width: 1.6, points: { show: false }, fill: l.area ? colour(l.color) + '22' : undefined }))],
      hooks: { setCursor: [u => values(u.cursor.idx ?? data[0].length - 1)] },
    };
  }

  async function draw() {
    if (!(data?.[0].length > 1)) return put(box, empty('Nothing to draw yet.'));
    const UPlot = await load();
    if (!el.isConnected || !box.clientWidth) return;
    const is = document.documentElement.dataset.theme + box.clientWidth;
    if (plot && theme === is) plot.setData(data);
    else {
      plot?.destroy();
      put(box);
      theme = is;
      plot = new UPlot(options(), data, box);
    }
    values(data[0].length - 1);
  }
  const size = new ResizeObserver(() => { if (data) draw(); });
  size.observe(box);
  return {
    el,
    show(times, columns) { data = [times, ...columns]; return draw(); },
    stop() { size.disconnect(); plot?.destroy(); plot = null; },
  };
}

/* A small line of values, the latest at the right. */
export function spark(values, cls = '') {
  const w = 120, high = 28, top = Math.max(1, ...values), step = w / Math.max(1, values.length - 1);
  const points = values.map((v, i) => `${(i * step).toFixed(1)},${(high - 2 - (v / top) * (high - 5)).toFixed(1)}`).join(' L');
  return s('svg', { class: 'spark ' + cls, viewBox: `0 0 ${w} ${high}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    values.length > 1 && [s('path', { class: 'area', d: `M0,${high} L${points} L${w},${high} Z` }), s('path', { class: 'line', d: 'M' + points })]);
}
