/* audit.js - the trail: what was changed by hand, by whom and why. */
// SPDX-License-Identifier: MIT
import { empty, get, h, page, put, query, table, to, when } from '../parts.js';

/* The page of what an entry is about, by its action: 'queue-pause', 'break'. Some things have no page of their own. */
const PAGES = { queue: 'queues', job: 'jobs', run: 'runs' };
const LISTS = { node: 'nodes', breaker: 'coordination', latch: 'coordination', resign: 'coordination' };
const NOWHERE = ['token', 'log'];
const about = (kind, name) => (LISTS[kind] ? to(LISTS[kind]) : to(PAGES[kind] || 'locks', name));

export default function audit(address) {
  const is = { who: address.get('who') || '', action: address.get('action') || '', name: address.get('name') || '' };
  const view = page('Audit', { lead: 'Leases ended by force, and other changes by hand, newest first.' });
  const rows = table('Audit trail', 'audit', ['When', 'Who', 'What', 'Name', 'Reason'], {
    key: e => e.position,
    make: e => [when(e.at), h('span', { title: [e.role, e.from, e.request, e.route].filter(Boolean).join(' ') }, h('b', { text: e.who || e.by || '–' }), e.from && h('small', { text: ' ' + e.from })),
      h('span', { text: e.action }), e.name && NOWHERE.includes(e.action.split('-')[0]) ? h('span', { text: e.name }) : e.name ? h('a', { class: 'name', href: about(e.action.split('-')[0], e.name), text: e.name }) : h('span', { text: '–' }),
      h('span', { class: 'why' }, h('span', { text: e.reason || '–' }), e.result && h('small', { text: ' ' + e.result }), e.holder && h('small', { text: ` held by ${e.holder}` }))],
  });
  const field = (key, label) => h('label', {}, h('span', { text: label }), h('input', { type: 'search', value: is[key], autocomplete: 'off', onchange: e => change({ [key]: e.target.value.trim() }) }));
  const filters = h('form', { class: 'filters', role: 'search', onsubmit: e => e.preventDefault() }, field('who', 'Who'), field('action', 'What'), field('name', 'Name'));

  function change(next) {
    Object.assign(is, next);
    history.replaceState(null, '', query('#/audit', is));
    ask.now();
  }

  const ask = view.keep(() => get(query('v1/audit', { ...is, limit: 200 })), got => {
    if (!rows.el.isConnected) put(view.body, filters, rows.el);
    rows.show(got.items, is.who || is.action || is.name ? empty('Nothing fits.') : empty('Nothing was changed by hand.', 'A lease that is broken is written down here, with the reason.'));
  }, { every: 5000 });
  return view;
}
