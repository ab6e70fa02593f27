/* waits.js - who waits for whom: a picture for each group that hangs together, circles
 * first. */
// SPDX-License-Identifier: MIT
import { andMore, button, cut, empty, get, h, many, may, num, page, put, s, since, span, to, who } from '../parts.js';
import { askBreak } from './locks.js';

const BOX = { w: 168, h: 44 }, STEP = { x: 236, y: 62 }, MOST = 5;
const GROUPS_MAX = 24;

/* Nodes (names and clients) and what ties them: a client to the name it waits for, a name
 * to the client that holds it. */
function makeGraph(rows) {
  const nodes = new Map();
  const node = (id, kind, label, sub, href) => {
    if (!nodes.has(id)) nodes.set(id, { id, kind, label, sub, href, out: [], in: [] });
    return nodes.get(id);
  };
  const tie = (a, b, kind, note) => { const edge = { a, b, kind, note }; a.out.push(edge); b.in.push(edge); };
  for (const row of rows) {
    const name = node('n' + row.name, 'name', row.name, row.capacity ? `${row.capacity} permits` : '', to('locks', row.name));
    // Clients of one daemon are one process; their identity tells them apart.
    const client = p => Object.assign(node('p' + who(p) + ' ' + p.identity, 'who', who(p), p.label), { who: who(p) });
    row.holders.slice(0, MOST).forEach(p => tie(name, client(p), 'held'));
    row.waiters.slice(0, MOST).forEach(p => tie(client(p), name, 'waits', span(p.age_ms)));
    const more = (kind, n) => node(kind + row.name, 'more', andMore(n, MOST).trim(), '');
    if (row.holder_count > MOST) tie(name, more('h', row.holder_count), 'held');
    if (row.waiter_count > MOST) tie(more('m', row.waiter_count), name, 'waits');
  }
  return [...nodes.values()];
}

/* The nodes that hang together. */
function groups(nodes) {
  const seen = new Set(), out = [];
  for (const first of nodes) {
    const group = [], todo = [first];
    while (todo.length) {
      const n = todo.pop();
      if (seen.has(n)) continue;
      seen.add(n);
      group.push(n);
      todo.push(...n.out.map(e => e.b), ...n.in.map(e => e.a));
    }
    if (group.length) out.push(group);
  }
  return out;
}

/* The circle among these, as nodes in their order, and what the daemon says of it. */
function findCircle(group, circles) {
  for (const links of circles) {
    const ring = links.flatMap(l => {
      const name = group.find(n => n.id === 'n' + l.wants);
      return [group.find(n => n.who === l.who && n.out.some(e => e.b === name)), name];
    });
    if (ring.every(Boolean)) return { links, ring };
  }
  return { links: null, ring: [] };
}

/* Gives every node a place: a circle stands on a ring at the right, and clients that wait
 * stand to the left, as many steps away as they are from it; without a circle, holders
 * stand at the right. */
function place(group, ring) {
  const depth = new Map(), ends = group.filter(n => !n.out.length);
  const roots = ring.length ? ring : ends.length ? ends : group.filter(n => n.kind === 'name');
  const todo = [...roots];
  roots.forEach(n => depth.set(n, 0));
  while (todo.length) {
    const n = todo.shift();
    n.in.forEach(({ a }) => { if (!depth.has(a)) { depth.set(a, depth.get(n) + 1); todo.push(a); } });
  }
  const deep = Math.max(0, ...depth.values());
  const columns = Array.from({ length: deep + 1 }, (_, d) => group.filter(n => (depth.get(n) ?? 0) === d));
  const high = STEP.y * Math.max(...columns.map((c, d) => (ring.length && !d ? 3.2 : c.length)));
  columns.forEach((column, d) => {
    if (ring.length && !d) {
      const rx = STEP.x * 0.9, cx = deep * STEP.x + rx;
      ring.forEach((n, i) => {
        const turn = Math.PI + (i * 2 * Math.PI) / ring.length;
        Object.assign(n, { x: cx + Math.cos(turn) * rx, y: high / 2 + Math.sin(turn) * (high - BOX.h) / 2 });
      });
      return;
    }
    const near = n => n.out.reduce((sum, e) => sum + (e.b.y ?? high / 2), 0) / (n.out.length || 1);
    column.sort((a, b) => near(a) - near(b)).forEach((n, i) => Object.assign(n, { x: (deep - d) * STEP.x, y: high / 2 + (i - (column.length - 1) / 2) * STEP.y }));
  });
  return { w: Math.max(...group.map(n => n.x)) + BOX.w, h: high };
}

/* From the edge of one box to the edge of another. */
function curve(e, bend) {
  const border = (from, goal) => {
    const dx = goal.x - from.x, dy = goal.y - from.y;
    const k = Math.min(BOX.w / 2 / Math.max(1, Math.abs(dx)), BOX.h / 2 / Math.max(1, Math.abs(dy)));
    return [from.x + BOX.w / 2 + dx * k, from.y + dy * k];
  };
  const [ax, ay] = border(e.a, e.b), [bx, by] = border(e.b, e.a), mx = (ax + bx) / 2, my = (ay + by) / 2;
  if (bend) {
    const qx = mx + (by - ay) * 0.16, qy = my - (bx - ax) * 0.16;
    return { d: `M${ax},${ay} Q${qx},${qy} ${bx},${by}`, x: qx, y: qy - 5 };
  }
  return { d: `M${ax},${ay} C${mx},${ay} ${mx},${by} ${bx},${by}`, x: mx, y: my - 5 };
}

let pictures = 0; // names of arrow heads differ from picture to picture

function draw(group, ring) {
  const size = place(group, ring), pad = 14, mark = 'tip' + ++pictures;
  const hot = e => ring.includes(e.a) && ring[(ring.indexOf(e.a) + 1) % ring.length] === e.b;
  const edge = e => {
    const isHot = hot(e), c = curve(e, isHot), kind = isHot ? 'hot' : e.kind;
    return s('g', { class: `edge ${e.kind} ${isHot ? 'hot' : ''}` }, s('path', { d: c.d, 'marker-end': `url(#${mark}${kind})` }), e.note && s('text', { x: c.x, y: c.y, text: e.note }));
  };
  const node = n => s('g', { class: `node ${n.kind} ${ring.includes(n) ? 'hot' : ''}`, transform: `translate(${n.x},${n.y - BOX.h / 2})` },
    s(n.href ? 'a' : 'g', { href: n.href }, s('title', { text: `${n.label} ${n.sub}` }), s('rect', { width: BOX.w, height: BOX.h, rx: n.kind === 'name' ? BOX.h / 2 : 9 }),
      s('text', { x: BOX.w / 2, y: n.sub ? 19 : 27, text: cut(n.label, 23) }), n.sub && s('text', { class: 'sub', x: BOX.w / 2, y: 34, text: cut(n.sub, 27) })));
  const edges = group.flatMap(n => n.out).filter(e => group.includes(e.b));
  return s('svg', { class: 'waitgraph', viewBox: `${-pad} ${-pad} ${size.w + 2 * pad} ${size.h + 2 * pad}`, vars: { '--w': size.w + 2 * pad + 'px' }, role: 'group', 'aria-label': 'Who waits for whom' },
    s('defs', {}, ['held', 'waits', 'hot'].map(k => s('marker', { id: mark + k, class: 'tip ' + k, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto' }, s('path', { d: 'M0,0 L8,4 L0,8 Z' })))),
    group.map(node), edges.map(edge));
}

/* The circle in words, with what an operator may do about it. */
function story(links, rows) {
  const row = name => rows.find(r => r.name === name);
  return h('div', { class: 'story' }, links.map(l => h('p', {}, h('b', { text: l.who }), l.label && [' (', h('span', { text: l.label }), ')'], ' holds ', h('a', { href: to('locks', l.holds), text: l.holds }), ' and waits for ', h('a', { href: to('locks', l.wants), text: l.wants }), '. ',
    may('admin') && button(`Break ${l.holds}…`, () => {
      const holder = row(l.holds)?.holders.find(p => p.fence === l.fence);
      if (holder) askBreak(row(l.holds), holder);
      else location.hash = to('locks', l.holds);
    }, 'danger small'))));
}

export default function waits() {
  const view = page('Waits', { lead: 'Waits for names, and their holders. A circle does not end by itself.' });
  let drawn = '';
  view.keep(() => get('v1/waits?limit=200'), got => {
    const key = JSON.stringify([got.items.map(r => [r.name, r.holders.map(p => p.fence), r.holder_count, r.waiter_count, r.waiters.map(who)]), got.circles.map(c => c.map(l => l.fence)), got.total, innerWidth < 760]);
    if (key === drawn && view.body.firstChild) return;
    drawn = key;
    const all = groups(makeGraph(got.items)).map(group => ({ group, ...findCircle(group, got.circles), waiting: group.reduce((n, x) => n + x.out.filter(e => e.kind === 'waits').length, 0) }))
      .sort((a, b) => !!b.links - !!a.links || b.waiting - a.waiting);
    const left = [all.length > GROUPS_MAX && many(all.length - GROUPS_MAX, 'smaller group'), got.total > got.items.length && many(got.total - got.items.length, 'other wanted name')].filter(Boolean).join(' and ');
    const slim = innerWidth < 760, undrawn = got.circles.filter(c => !all.some(a => a.links === c));
    put(view.body, undrawn.map(c => h('section', { class: 'card knot circle', 'aria-label': 'Deadlock' }, h('h2', { text: 'Deadlock' }), story(c, got.items))), !all.length ? h('section', { class: 'card' }, empty('Nobody waits.', 'When a client does, it is drawn here.')) : h('div', { class: 'knots' }, all.slice(0, GROUPS_MAX).map(({ group, ring, links }) =>
      h('section', { class: 'card knot' + (links ? ' circle' : ''), 'aria-label': links ? 'Deadlock' : group.find(n => n.kind === 'name').label },
        links && h('header', {}, h('h2', { text: 'Deadlock' }), h('small', {}, 'for ', since(num(), Math.max(...links.map(l => l.waited_ms)), got.got))),
        links && story(links, got.items), h('div', { class: 'scroll' }, draw(slim && links ? ring : group, ring)),
        slim && links && group.length > ring.length && h('p', { class: 'note', text: `${group.length - ring.length} more stand behind it.` }))),
    left && h('p', { class: 'note' }, `Not drawn: ${left}. `, h('a', { href: '#/locks?state=wanted', text: 'The list of locks has them.' }))));
  }, { every: 2000, kinds: ['locks'] });
  return view;
}
