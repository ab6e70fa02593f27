/* coordination.js - a table for each noun. One field shortens all to names with a beginning;
 * another names a breaker that no list has. */
// SPDX-License-Identifier: MIT
import { button, calm, card, code, confirm, empty, get, getMaybe, h, many, may, num, once, page, pill, put, query, sends, since, table, text, thing, to, when, who } from '../parts.js';

const LIMIT = 200;
const STATES = { open: 'bad', forced: 'bad', 'half-open': 'warn', closed: 'ok' };

/* The term that was shown goes with the question: another leader by then is left alone. */
function askResign(e) {
  const next = e.candidates[0];
  return confirm({
    title: 'End this term?', danger: true, action: 'End the term', reason: true,
    say: [h('b', { text: e.leader.member || who(e.leader) }), ' leads ', code(e.name), ' in term ', code(e.term), '. ', next ? [h('b', { text: next.member || who(next) }), ' is next.'] : 'Nobody is next.'],
    note: 'Until the leader notices, it still believes that it leads. It may lead again.',
    run: sends(thing('v1/elections', e.name, 'resign'), { term: e.term }), done: `Term ended: ${e.name}`,
  });
}

const askTrip = b => confirm({
  title: 'Open this breaker?', danger: true, action: 'Open it', reason: true,
  say: ['Every call through ', code(b.name), ' is refused, by all its clients, until somebody resets it.'],
  run: sends(thing('v1/breakers', b.name, 'trip')), done: `Open: ${b.name}`,
});

const askReset = b => confirm({
  title: 'Close this breaker?', action: 'Close it', reason: true,
  say: ['Calls through ', code(b.name), ' pass again, for all its clients. It is ', h('b', { text: b.state }), ' now.'],
  run: sends(thing('v1/breakers', b.name, 'reset')), done: `Closed: ${b.name}`,
});

const askLatch = l => confirm({
  title: 'Close this latch again?', danger: true, action: 'Reset it', reason: true,
  say: ['All counts of ', code(l.name), ` are forgotten: ${l.count - l.left} of ${l.count} have counted. Clients that wait for it wait for all of them anew.`],
  run: sends(thing('v1/latches', l.name, 'reset')), done: `Reset: ${l.name}`,
});

const named = x => h('span', { class: 'name', text: x.name });
const rate = (l, ms = l.period_us / l.count / 1e3) => (ms > 1e3 ? 'one each ' + calm(ms) : +(1e3 / ms).toPrecision(3) + ' a second');

/* Ages count on by themselves. */
const still = (key, value) => (/^(age_ms|left_ms|got)$/.test(key) ? 0 : value);

/* One table. A cell is made anew when it says something else, so that the focus stays; a
 * button asks about the row as it is then: is(). */
function part(title, cls, columns, row, none) {
  const rows = table(title, cls, columns, {
    key: item => item.name, make: () => columns.map(() => h('span')),
    update: (cells, item, line) => once(line, JSON.stringify(item, still), () => row(item, () => line.item).forEach((kid, i) => {
      if (!kid || !cells[i].firstChild?.isEqualNode(kid)) put(cells[i], kid);
    })),
  });
  const el = h('section', { 'aria-label': title }, h('h2', { class: 'over', text: title }), rows.el);
  return { el, show: ({ items, got, total }) => rows.show(items.map(item => ({ ...item, got })), none, total) };
}

function parts() {
  return {
    elections: part('Elections', 'coord', ['Election', 'Leader', 'Term', 'Since', ''], (e, is) => [
      h('a', { class: 'name', href: to('locks', e.name), text: e.name }),
      e.leader ? h('span', {}, h('b', { text: e.leader.member || who(e.leader) }), h('small', { text: ` ${who(e.leader)}` }), e.leader.stale && pill('seems to be gone', 'warn')) : pill('nobody leads', 'warn'),
      h('span', {}, e.term ? code(e.term) : '–', h('small', { text: e.candidate_count ? `and ${many(e.candidate_count, 'candidate')}` : 'nobody else' })),
      e.leader ? since(num(), e.leader.age_ms, e.got) : h('span', { text: '–' }),
      may('admin') && e.leader && button('End the term…', () => askResign(is()), 'danger')],
    empty('Nobody is a candidate.', 'dibs elect NAME -- COMMAND is one.')),
    breakers: part('Breakers', 'coord', ['Breaker', 'State', 'Calls', 'Again in', ''], (b, is) => [
      named(b), pill(b.state === 'forced' ? 'open by hand' : b.state, STATES[b.state]),
      num(`${b.good} good, ${b.bad} bad` + (b.slow ? `, ${b.slow} slow` : '')),
      num(b.retry_ms == null ? 'when it is reset' : b.retry_ms ? calm(b.retry_ms) : '–'),
      may('admin') && (b.state === 'closed' ? button('Open…', () => askTrip(is()), 'danger') : button('Close…', () => askReset(is())))],
    empty('No breaker has opened.', 'One is listed for a day.')),
    barriers: part('Barriers', 'coord', ['Barrier', 'Arrived', 'Seats', 'Generation', ''], b => [
      named(b), pill(`${b.arrived} of ${b.parties}`, b.arrived ? 'warn' : ''), num(b.seated), code(b.generation)],
    empty('No party waits.', 'dibs barrier NAME -n 2 waits for another one.')),
    latches: part('Latches', 'coord', ['Latch', 'State', 'Counted', 'Generation', ''], (l, is) => [
      named(l), pill(l.state, l.state === 'open' ? 'ok' : ''), num(`${l.count - l.left} of ${l.count}`), code(l.generation),
      may('admin') && button('Reset…', () => askLatch(is()), 'danger')],
    empty('No latch has counted.', 'dibs latch count-down NAME -n 2 counts one.')),
    limits: part('Limits', 'coord', ['Limit', 'Rate', 'Out', 'Again in', ''], l => [
      named(l), num(rate(l)), num(l.out), num(calm(l.full_ms))],
    empty('No tokens are out.')),
    members: part('Groups', 'coord', ['Group', 'Members', 'That count', '', ''], g => [
      h('a', { class: 'name', href: to('coordination', g.name), text: g.name }), num(g.member_count), num(g.counting)],
    empty('No group has a member.', 'dibs join NAME -- COMMAND takes a seat.')),
  };
}

/* The two fields: the beginning of names, and the name of a breaker. */
function finder(ask) {
  const begins = h('input', { type: 'search', id: 'begins', 'aria-label': 'Names that begin with', placeholder: 'begins with', autocomplete: 'off', spellcheck: 'false', oninput: () => ask().now() });
  const name = h('input', { type: 'search', id: 'lookup', 'aria-label': 'A breaker', placeholder: 'a breaker', autocomplete: 'off', spellcheck: 'false', required: true });
  const said = h('small', { role: 'status' });
  const el = h('form', { class: 'filters', role: 'search', onsubmit: async e => {
    e.preventDefault();
    text(said, '');
    try {
      const got = await get(thing('v1/breakers', name.value.trim()));
      text(said, `${got.name} is ${got.state}.`);
      ask().now();
    } catch (problem) { text(said, problem.message); }
  } }, begins, name, h('button', { type: 'submit', text: 'Look' }), said);
  return { el, begins: () => begins.value.trim() };
}

/* The members of one group. */
function group(name) {
  const view = page(name, { back: ['Coordination', '#/coordination'], mono: true });
  const rows = table('Members', 'audit', ['Since', 'Member', 'Counts', 'Host', 'Facts'], {
    key: m => m.member + m.fence + m.counts,
    make: m => [when(m.since_at), h('b', { text: m.member }), h('span', { text: m.counts ? 'yes' : 'not yet' }), h('span', { text: who(m) }),
      h('span', { class: 'why', text: [m.label, ...Object.entries(m.meta).map(([k, v]) => `${k}=${v}`)].filter(Boolean).join(' · ') || '–' })],
  });
  view.keep(() => get(thing('v1/members', name)), got => {
    if (!rows.el.isConnected) put(view.body, rows.el);
    rows.show(got.members, empty('Nobody is there.', `dibs join ${name} -- COMMAND takes a seat.`));
  }, { every: 2000 });
  return view;
}

export default function coordination(name) {
  if (name) return group(name);
  const view = page('Coordination', { lead: 'Leaders, meetings, and calls let through.' });
  const all = parts(), nouns = Object.keys(all), find = finder(() => ask);
  const list = async noun => [noun, await getMaybe(query('v1/' + noun, { limit: LIMIT, prefix: find.begins() || null }))];
  const ask = view.keep(async () => Object.fromEntries(await Promise.all(nouns.map(list))), got => {
    if (!all.elections.el.isConnected) put(view.body, card(null, null, find.el), nouns.map(noun => all[noun].el));
    for (const noun of nouns) {
      all[noun].el.hidden = !got[noun]; // the store cannot do that
      if (got[noun]) all[noun].show(got[noun]);
    }
  }, { every: 2000, kinds: ['locks'] });
  return view;
}
