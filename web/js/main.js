/* main.js - the frame around the pages: addresses, navigation, keys, the token, and what
 * is said when news stop.
 *
 * A page is a function of its address: `#/jobs/nightly?x=1` calls jobs('nightly', query)
 * and shows what it returns: { el, stop(), title, find?(text), move?(by) }. To add one:
 * a file in pages/, a line in PAGES (an item of the navigation) and in VIEWS. */
// SPDX-License-Identifier: MIT
import { dialog, h, icon, put, text, toast } from './dom.js';
import { calm, clock, now, switchZone, ticks, zoneName, zoneShort } from './time.js';
import { link, on, signIn, signOut, start, state } from './live.js';
import { button, code, count, failed, many, page as makePage } from './parts.js';
import overview from './pages/overview.js';
import locks from './pages/locks.js';
import waits from './pages/waits.js';
import coordination from './pages/coordination.js';
import queues from './pages/queues.js';
import jobs from './pages/jobs.js';
import run from './pages/run.js';
import nodes from './pages/nodes.js';
import audit from './pages/audit.js';

/* Its address, its title, the key after g. */
const PAGES = [
  ['', 'Overview', 'o'],
  ['locks', 'Locks', 'l'],
  ['waits', 'Waits', 'w'],
  ['coordination', 'Coordination', 'c'],
  ['queues', 'Queues', 'q'],
  ['jobs', 'Jobs', 'j'],
  ['nodes', 'Nodes', 'n'],
  ['audit', 'Audit', 'a'],
];
/* Pages without an item in the navigation, and the one that they belong to. */
const WITHIN = { runs: 'jobs' };
/* (rest of the address, its query) => page. */
const VIEWS = {
  '': overview,
  locks,
  waits,
  coordination,
  queues,
  jobs,
  runs: run,
  nodes,
  audit: (_, query) => audit(query),
};
const KEYS = [['/', 'search'], ['j k', 'next, previous row'], ['Enter', 'open it'], ['← →', 'close, open a branch'], ['g then ' + PAGES.map(p => p[2]).join(' '), 'go to a page'],
  ['t', 'light or dark'], ['z', 'local time or UTC'], ['f', 'wall screen: nothing but the page'], ['Esc', 'close, back'], ['?', 'this list']];

const $ = id => document.getElementById(id);
let page = null, here = '';

function theme(next) {
  if (next) localStorage.setItem('dibs.theme', next);
  const is = localStorage.getItem('dibs.theme') || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  document.documentElement.dataset.theme = is;
  return is;
}

function parse() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  try {
    const [name, ...rest] = path.split('/').map(decodeURIComponent);
    return { name, rest: rest.join('/'), query: new URLSearchParams(query) };
  } catch { return { name: '?', rest: '', query: new URLSearchParams() }; }
}

function missing() {
  const view = makePage('No such page');
  put(view.body, failed({ status: 404, message: 'There is no page with this address.' }));
  return view;
}

/* Shows the page of the address, with the focus, which screen readers follow. */
function show() {
  const { name, rest, query } = parse();
  const first = !page;
  page?.stop();
  here = name;
  page = link.state === 'denied' ? tokenPage() : (VIEWS[name] || missing)(rest, query);
  put($('main'), page.el);
  page.shown?.();
  document.querySelectorAll('#rail nav a').forEach(a => (a.dataset.page === (WITHIN[name] || name) ? a.setAttribute('aria-current', 'page') : a.removeAttribute('aria-current')));
  document.title = `${page.title} · dibs`;
  scrollTo(0, 0);
  const searches = name === 'locks' && document.activeElement === $('find');
  if (!first && !searches && !document.activeElement?.matches('dialog *, #token')) $('main').focus({ preventScroll: true });
}

/* ---- The token. */

function tokenPage() {
  const view = makePage('A token, please', { lead: 'The daemon shows nothing without one.' });
  const field = h('input', { id: 'token', type: 'password', autocomplete: 'off', required: true, 'aria-describedby': 'tokenhelp' });
  const keep = h('input', { id: 'keep', type: 'checkbox' });
  const fault = h('p', { class: 'badtext', role: 'alert' });
  const go = h('button', { class: 'main', type: 'submit', text: 'Sign in' });
  put(view.body, h('form', { class: 'card signin', onsubmit: async e => {
    e.preventDefault();
    go.disabled = true;
    try {
      const me = await signIn(field.value.trim(), keep.checked);
      if (keep.checked && me.role !== 'read') toast('The token may do more than read, so it is not kept on this screen.');
    } catch (problem) {
      text(fault, problem.message);
      go.disabled = false;
      field.select();
    }
  } }, h('label', { for: 'token', text: 'Token' }), field,
  h('p', { class: 'note', id: 'tokenhelp' }, 'The first start of ', code('dibs serve'), ' made one and said where it is; ',
    code('dibs access add NAME --role read'), ' makes more. It stays in this tab.'),
  h('label', { class: 'check', for: 'keep' }, keep, ' Keep it on this screen, if it may only read'), fault, h('footer', {}, go)));
  view.shown = () => field.focus();
  return view;
}

/* ---- What is wrong with the news: nothing old is shown as if it were new. */

function notice() {
  const store = state.overview?.store, quiet = `since ${clock(link.heardAt)} (${calm(now() - link.heard)})`;
  const say = link.state === 'lost' ? `The daemon cannot be reached ${quiet}. This is how things were then.`
    : link.state === 'stale' ? `No news ${quiet}. This is how things were then.`
      : link.state === 'live' && store && !store.up ? 'The store is away. Leases run on until they are over; nothing can be changed.' : '';
  if (!say) { if ($('notice').firstChild) put($('notice')); return; }
  const shown = $('notice').querySelector('span');
  if (shown) text(shown, say);
  else put($('notice'), h('div', { class: link.state === 'stale' ? 'warn' : 'bad' }, icon('warn'), h('span', { text: say })));
}

/* ---- The frame. */

function rail() {
  const marks = {};
  put($('rail'),
    h('a', { class: 'brand', href: '#/', 'aria-label': 'dibs, overview' }, h('i', { class: 'pulse' }), 'dibs'),
    h('nav', { 'aria-label': 'Pages' }, PAGES.map(([id, label, key]) => h('a', { href: '#/' + id, 'data-page': id, title: `${label} (g ${key})` },
      icon(id || 'overview'), h('span', { text: label }), (marks[id] = h('em'))))),
    h('footer', {}, h('span', { id: 'store' }), h('small', { id: 'me' }),
      h('button', { class: 'quiet', type: 'button', title: 'Sign out', 'aria-label': 'Sign out', onclick: () => { signOut(); show(); } }, icon('out'))));
  on('overview', o => {
    text(marks.locks, o.counts.names ? count(o.counts.names) : '');
    text(marks.waits, count(o.circles.length || o.counts.waiters || ''));
    marks.waits.className = o.circles.length ? 'bad' : '';
    marks.waits.title = o.circles.length ? many(o.circles.length, 'deadlock') : '';
    text($('store'), o.store.url.split(':')[0]);
    $('store').title = `${o.store.url}, listed in ${(o.store.look_us / 1000).toFixed(1)} ms`;
    $('store').className = o.store.up ? '' : 'away';
  });
  on('me', me => { text($('me'), `${me.name}, ${me.role}`); $('me').title = `${me.node}, dibs ${me.version}`; });
}

function bar() {
  const find = h('input', { id: 'find', type: 'search', placeholder: 'Find a lock or a holder', 'aria-label': 'Find a lock or a holder', autocomplete: 'off', spellcheck: 'false',
    oninput: () => {
      if (!page.find) { history.pushState(null, '', '#/locks'); show(); }
      page.find?.(find.value.trim());
    } });
  const dark = h('button', { class: 'quiet', type: 'button', 'aria-label': 'Light or dark', title: 'Light or dark (t)' }, icon(theme() === 'dark' ? 'light' : 'dark'));
  dark.addEventListener('click', () => { put(dark, icon(theme(theme() === 'dark' ? 'light' : 'dark') === 'dark' ? 'light' : 'dark')); show(); });
  const zone = h('button', { class: 'quiet zone', type: 'button' });
  const nameZone = () => { text(zone, zoneShort()); zone.title = `Times are in ${zoneName()} (z changes it)`; };
  zone.addEventListener('click', () => { switchZone(); nameZone(); show(); });
  nameZone();
  put($('top'), h('label', { class: 'find' }, icon('search'), find, h('kbd', { text: '/', 'aria-hidden': 'true' })), h('span', { class: 'spring' }),
    ticks(h('span', { class: 'clock num' }), el => text(el, clock(new Date()))), zone, dark,
    h('button', { class: 'quiet', type: 'button', 'aria-label': 'Keys', title: 'Keys (?)', text: '?', onclick: help }));
  return { dark, zone, find };
}

function help() {
  const box = dialog('Keys', h('dl', { class: 'keys' }, KEYS.map(([keys, what]) => h('div', {},
    h('dt', {}, keys.split(' ').map(k => (k === 'then' ? ' then ' : h('kbd', { text: k })))), h('dd', { text: what })))),
  h('footer', {}, button('Close', () => box.close())));
}

/* j and k on pages whose rows are all there. */
function moveRow(by) {
  const rows = [...document.querySelectorAll('main [data-row]')];
  const at = rows.indexOf(document.activeElement.closest('[data-row]'));
  rows[Math.max(0, Math.min(rows.length - 1, at + by))]?.focus();
}

let going = -Infinity; // when g was pressed
function pressed(e, parts) {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog')) return;
  if (e.key === 'Escape') {
    if (document.activeElement.matches('input')) document.activeElement.blur();
    else if (location.hash.split('/').length > 2) history.back();
    return;
  }
  if (document.activeElement.matches('input, textarea, select')) return;
  const goal = now() - going < 1500 && PAGES.find(p => p[2] === e.key);
  going = e.key === 'g' ? now() : -Infinity;
  if (goal) location.hash = '#/' + goal[0];
  else if (e.key === '/') { parts.find.focus(); parts.find.select(); }
  else if (e.key === '?') help();
  else if (e.key === 't') parts.dark.click();
  else if (e.key === 'z') parts.zone.click();
  else if (e.key === 'f') document.body.classList.toggle('wall');
  else if (e.key === 'j' || e.key === 'k') (page.move || moveRow)(e.key === 'j' ? 1 : -1);
  else return;
  e.preventDefault();
}

theme();
rail();
const parts = bar();
if (new URLSearchParams(location.search).has('wall')) document.body.classList.add('wall');
addEventListener('hashchange', show);
addEventListener('keydown', e => pressed(e, parts));
on('link', notice);
on('overview', notice);
// Roles decide what a page offers, so that pages begin when it is known who looks.
on('me', show);
let denied = false;
on('link', () => {
  if ((link.state === 'denied') !== denied) { denied = link.state === 'denied'; if (denied) show(); }
});
document.querySelector('.skip').addEventListener('click', e => { e.preventDefault(); $('main').focus(); });
start();
