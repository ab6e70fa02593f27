/* queues.js - queues: how much waits, how fast it goes, and what could not be done; one
 * queue with its messages, and what an operator may do. */
// SPDX-License-Identifier: MIT
import { button, calm, code, confirm, count, empty, facts, get, h, many, may, named, num, once, page, pill, put, query, rested, sends, table, text, thing, to, when } from '../parts.js';

const PART = 200;
const STATES = [['ready', 'Ready'], ['later', 'Later'], ['out', 'Out'], ['dead', 'Dead letters']];

/* How many a second since the answer before. */
function rates() {
  const before = new Map();
  return q => {
    const was = before.get(q.name), span = was ? (q.got - was.got) / 1000 : 0;
    if (!was || span >= 1) before.set(q.name, { got: q.got, pushed: q.totals.pushed, acked: q.totals.acked, said: was?.said });
    if (!was) return null;
    const said = span >= 1 ? { in: (q.totals.pushed - was.pushed) / span, out: (q.totals.acked - was.acked) / span } : was.said;
    before.get(q.name).said = said;
    return said;
  };
}
const perSecond = r => (r ? `${r.in.toFixed(1)} in, ${r.out.toFixed(1)} done` : '–');

/* ---- Questions. */

const askPause = q => confirm({
  title: 'Pause this queue?', action: 'Pause it', reason: true,
  say: ['Nothing of ', code(q.name), ` is delivered any more: ${many(q.ready, 'message')} would wait. Messages can still be pushed, and those that are out be settled.`],
  run: sends(thing('v1/queues', q.name, 'pause')), done: `Paused: ${q.name}`,
});
const askResume = q => confirm({
  title: 'Deliver again?', action: 'Resume it', reason: 'optional', say: [code(q.name), ` delivers again: ${many(q.ready, 'message')} wait.`],
  run: sends(thing('v1/queues', q.name, 'resume')), done: `Resumed: ${q.name}`,
});
const askPurge = (q, state, label) => confirm({
  title: 'Drop these messages?', danger: true, action: 'Drop them', reason: true, word: q.name,
  say: [`${many(q[state], 'message')} of `, code(q.name), ` are dropped: all that are in “${label}”.`], note: 'This cannot be undone.',
  run: sends(thing('v1/queues', q.name, 'purge'), { states: [state] }), done: got => `Dropped: ${many(got.purged, 'message')}` + (got.left ? `, ${count(got.left)} left` : ''),
});
const askRedrive = q => confirm({
  title: 'Redrive the dead letters?', action: 'Redrive', reason: true,
  say: [q.dead > 1000 ? 'The 1,000 oldest' : `All ${q.dead}`, ' dead letters of ', code(q.name), ' become new messages at its end, and begin at attempt 1.'],
  note: 'Messages that failed before may fail again.',
  run: sends(thing('v1/queues', q.name, 'redrive'), { all: true }), done: got => `Redriven: ${many(got.redriven, 'message')}` + (got.left ? `, ${count(got.left)} left` : ''),
});
const askRedriveOne = (q, m) => confirm({
  title: 'Redrive this dead letter?', action: 'Redrive', reason: 'optional', say: ['Message ', code(m.id), ' of ', code(q.name), ' becomes a new message, and begins at attempt 1.'],
  run: sends(thing('v1/queues', q.name, 'redrive'), { ids: [m.id] }), done: got => (got.redriven ? `Redriven: ${m.id}` : `${m.id} is no dead letter any more`),
});

/* ---- All of them. */

function all(address) {
  const view = page('Queues', { lead: 'Messages that wait for a consumer, and those that nobody could do.' });
  const is = { q: address.get('q') || '' }, rate = rates();
  const rows = table('Queues', 'queues', ['Queue', 'Ready', 'Later', 'Out', 'Dead', 'Oldest', 'A second', 'Consumers'], {
    key: q => q.name, open: q => to('queues', q.name),
    make: q => [h('span', {}, named('queues', q.name), h('span')), num(), num(), num(), h('span'), num(), num(), num()],
    update: (cells, q) => {
      const mark = cells[0].firstChild.lastChild;
      if (!!mark.firstChild !== q.paused) put(mark, q.paused && pill('paused', 'warn'));
      [q.ready, q.later, q.out].forEach((n, i) => text(cells[i + 1].firstChild, count(n)));
      text(cells[4].firstChild, q.dead ? count(q.dead) : '–');
      cells[4].firstChild.className = q.dead ? 'num badtext' : 'num';
      text(cells[5].firstChild, q.oldest_ms ? calm(q.oldest_ms) : '–');
      text(cells[6].firstChild, perSecond(rate(q)));
      text(cells[7].firstChild, q.consumers ? `${q.consumers} (${q.waiting} idle)` : 'none');
    },
  });
  const ask = view.keep(() => get(query('v1/queues', { q: is.q, limit: PART })), got => {
    if (!rows.el.isConnected) put(view.body, rows.el);
    rows.show(got.items.map(q => ({ ...q, got: got.got })), is.q ? empty('Nothing fits.', `No queue has “${is.q}” in its name.`) : empty('There is no queue.', 'dibs queue push NAME makes one; it will be here at once.'), got.total);
  }, { every: 2000 });
  return Object.assign(view, { find: rested(q => { is.q = q; history.replaceState(null, '', query('#/queues', is)); ask.now(); }) });
}

/* ---- One of them. */

const body = m => (m.data_base64 ? `${m.bytes} bytes that are no text` : m.data + (m.cut ? ' …' : ''));

function one(name, address) {
  const view = page(name, { back: ['Queues', '#/queues'], mono: true });
  const is = { state: STATES.some(s => s[0] === address.get('state')) ? address.get('state') : 'dead' }, rate = rates();
  const lead = h('p', { class: 'lead' }), sums = h('div'), actions = h('div', { class: 'chips' }), chips = h('div', { class: 'chips', role: 'group', 'aria-label': 'Which messages' });
  let queue = null;
  const rows = table('Messages', 'messages', ['Message', 'Attempts', 'Data', 'Why', ''], {
    key: m => m.state + m.id + '.' + m.attempts,
    make: m => [h('span', {}, code(m.id), m.priority ? h('small', { text: ` priority ${m.priority}` }) : null), num(m.attempts + (m.lost ? `, ${m.lost} lost` : '')),
      h('span', { class: 'why data', title: Object.entries(m.headers).map(([k, v]) => `${k}=${v}`).join('\n'), text: body(m) }),
      h('span', { class: 'why' }, h('span', { text: m.reason || '–' }), m.dead_at && [' ', when(m.dead_at)], h('small')),
      m.state === 'dead' && may('admin') && button('Redrive…', () => askRedriveOne(queue, m))],
    update: (cells, m) => text(cells[3].firstChild.lastChild, m.due_ms == null ? '' : m.due_ms > 0 ? ` due in ${calm(m.due_ms)}` : ' due now'),
  });

  function pick(state) {
    is.state = state;
    history.replaceState(null, '', query(to('queues', name), is));
    ask.now();
  }

  const buttons = (q, { state }) => once(chips, [q.paused, q.ready, q.later, q.out, q.dead, state], () => {
    const label = STATES.find(s => s[0] === state)[1], had = document.activeElement?.dataset?.act;
    const act = (id, words, ask, danger) => h('button', { type: 'button', class: danger ? 'danger' : '', 'data-act': id, text: words, onclick: ask });
    put(chips, STATES.map(([id, words]) => h('button', { class: 'chip', type: 'button', 'data-act': id, 'aria-pressed': String(state === id), onclick: () => pick(id) }, words, h('em', { text: ' ' + count(q[id]) }))));
    put(actions, may('operate') && (q.paused ? act('resume', 'Resume…', () => askResume(queue)) : act('pause', 'Pause…', () => askPause(queue))),
      may('admin') && q.dead > 0 && act('redrive', 'Redrive dead letters…', () => askRedrive(queue)),
      may('admin') && q[state] > 0 && act('purge', `Drop “${label}”…`, () => askPurge(queue, state, label), true));
    if (had) view.body.querySelector(`[data-act="${had}"]`)?.focus();
  });

  const ask = view.keep(async () => {
    const [q, messages] = await Promise.all([get(thing('v1/queues', name)), get(thing('v1/queues', name, 'messages', { state: is.state, limit: 50 }))]);
    return { q, messages };
  }, ({ q, messages }) => {
    queue = q;
    if (!rows.el.isConnected) { view.head.after(lead); put(view.body, actions, sums, chips, rows.el); }
    text(lead, q.paused ? 'Paused: nothing is delivered.' : q.consumers ? `${many(q.consumers, 'consumer')}, ${q.waiting} idle.` : 'No consumer is there.');
    put(sums, facts([['Oldest', q.oldest_ms ? calm(q.oldest_ms) : '–'], ['A second', perSecond(rate(q))], ['Pushed', count(q.totals.pushed)], ['Done', count(q.totals.acked)],
      ['Failed', count(q.totals.nacked)], ['Lost with a consumer', count(q.totals.lost)], ['Attempts', q.settings.tries], q.settings.serial && ['Order', 'one at a time']]));
    buttons(q, is);
    rows.show(messages.items, empty('None.', is.state === 'dead' ? 'Nothing has failed for good.' : 'No message is there now.'));
  }, { every: 2000 });
  return view;
}

export default (name, address) => (name ? one(name, address) : all(address));
