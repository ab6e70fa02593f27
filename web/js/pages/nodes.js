/* nodes.js - the processes that execute jobs, and the daemons. */
// SPDX-License-Identifier: MIT
import { button, code, confirm, empty, get, h, leaseBar, many, may, num, once, page, pill, put, sends, since, table, text, to, when, who } from '../parts.js';

const askDrain = node => confirm({
  title: 'Drain this node?', danger: true, action: 'Drain it', reason: true,
  say: ['The node ', code(node.id), ' on ', h('b', { text: who(node) }), ' takes nothing new. ', 'It stops when what it executes has ended: ', many(node.steps.length, 'step'), '.'],
  note: 'To have it back, start it again.',
  run: sends(`v1/nodes/${encodeURIComponent(node.id)}/drain`), done: `Drains: ${node.id}`,
});

export default function nodes() {
  const view = page('Nodes', { lead: 'Processes that execute jobs, and daemons.' });
  const note = h('small');
  const rows = table('Nodes', 'nodes', ['Node', 'State', 'Steps', 'Labels', 'Lease', 'Here for', ''], {
    key: n => n.id,
    make: n => [h('span', {}, code(n.id), h('small', { text: who(n) })), h('span'), h('span'), h('span', { text: n.labels || '–' }), leaseBar(), since(num(), n.age_ms, n.got), h('span')],
    update: (cells, n, line) => {
      cells[4].firstChild.show(n, n.got);
      once(line, [n.state, n.stale, n.slots, n.steps], () => {
        put(cells[1].firstChild, n.stale ? pill('seems to be gone', 'warn') : pill(n.state, n.state === 'draining' ? 'warn' : 'good'));
        put(cells[2].firstChild, h('b', { class: 'num', text: n.slots ? `${n.steps.length} of ${n.slots}` : n.steps.length }), n.steps.map(x => h('a', { class: 'stepof', href: to('runs', x.run), text: `${x.run} ${x.step}` })));
        put(cells[6].firstChild, may('admin') && n.state !== 'draining' && button('Drain…', () => askDrain(line.item), 'danger'));
      });
    },
  });
  const daemons = table('Daemons', 'daemons', ['Daemon', 'Engine', 'Board', 'Version', 'Since'], {
    key: d => d.fence,
    make: d => [h('span', {}, code(d.member), h('small', { text: who(d) })), d.meta.engine === 'on' ? pill('on', 'good') : pill('off'), h('span', { text: d.meta.board }), h('span', { text: d.meta.version }), when(Date.parse(d.since_at))],
  });
  view.keep(() => get('v1/nodes'), got => {
    if (!rows.el.isConnected) put(view.body, rows.el, note, daemons.el);
    rows.show(got.items.map(n => ({ ...n, got: got.got })), empty('No node is there: nothing is executed.', 'dibs work or dibs serve --jobs FILE starts one.'));
    daemons.show(got.daemons, empty('No daemon has a seat yet.'));
    text(note, `Board ${got.board}. The engine of this daemon: ${got.engine}.${got.complete ? '' : ` ${got.items.length} of ${got.total} nodes are shown.`}`);
  }, { every: 3000, kinds: ['runs'] });
  return view;
}
