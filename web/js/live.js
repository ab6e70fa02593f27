/* live.js - news: what has changed, how fresh all that is, and who looks at it.
 *
 * Events say that something has changed; pages then ask for what they show, so that a
 * page never holds more of the store than it shows, and an event that was missed heals
 * with the next answer.
 *
 * One stream serves all tabs of a browser, which has six connections for a host: the
 * tab that has the Web Lock reads it and tells the others. */
// SPDX-License-Identifier: MIT
import { forgetToken, get, hasToken, readEvents, setToken, watchRequests } from './api.js';
import { hearClock, now } from './time.js';

const QUIET_MS = 8000;     // without any answer for so long, what is shown is old
const SILENT_MS = 25000;   // a stream without a beat for so long is dead
const OVERVIEW_MS = 3000;

/* state: 'opening', 'live', 'stale' (no news), 'lost' (not reached), 'denied' (no token). */
export const link = { state: 'opening', heard: now(), heardAt: new Date() };
export const state = { me: null, overview: null };

const ears = new Map();
/* fn(data) for each 'link', 'overview', 'me' and for the events of the stream ('locks').
 * Returns what ends that. */
export function on(kind, fn) {
  if (!ears.has(kind)) ears.set(kind, new Set());
  ears.get(kind).add(fn);
  return () => ears.get(kind).delete(fn);
}
const tell = (kind, data) => ears.get(kind)?.forEach(fn => fn(data));

function setLink(next) {
  const changed = link.state !== next;
  link.state = next;
  document.body.dataset.link = state.overview && !state.overview.store.up && next === 'live' ? 'away' : next;
  if (changed) tell('link', link);
}

function heard() {
  Object.assign(link, { heard: now(), heardAt: new Date() });
  if (link.state !== 'denied') setLink('live');
}

watchRequests((what, said) => {
  if (what === 'heard') { hearClock(said); heard(); }
  else if (what === 'denied') setLink('denied');
  else if (link.state !== 'denied') setLink('lost');
});

/* Calls fn at once, with each of these kinds of news, and every so often while the page
 * is looked at; one call at a time, and no more than about two a second. */
export function follow(fn, { every = 5000, kinds = [] } = {}) {
  let busy = false, again = false, over = false, last = -Infinity;
  async function go() {
    if (over || document.hidden || link.state === 'denied') return;
    if (busy) { again = true; return; }
    busy = true;
    last = now();
    try { await fn(); } finally { busy = false; }
    if (again) { again = false; soon(); }
  }
  let waiting = 0;
  const soon = () => { waiting ||= setTimeout(() => { waiting = 0; go(); }, Math.max(0, 400 - (now() - last))); };
  const timer = setInterval(() => { if (now() - last >= every - 100) go(); }, Math.min(every, 1000));
  const seen = () => document.hidden || soon();
  const offs = [...kinds, 'me'].map(kind => on(kind, soon));
  document.addEventListener('visibilitychange', seen);
  go();
  return {
    now: soon,
    stop() {
      over = true;
      clearInterval(timer);
      clearTimeout(waiting);
      offs.forEach(off => off());
      document.removeEventListener('visibilitychange', seen);
    },
  };
}

const pause = ms => new Promise(go => setTimeout(go, ms));

let stream; // what ends the one there is
/* Reads the stream for ever, from where it ended; returns when the token is refused or given up. */
async function listen(wire) {
  let last = '', tries = 0;
  while (hasToken()) {
    const end = stream = new AbortController();
    let fresh = now();
    const dog = setInterval(() => { if (now() - fresh > SILENT_MS) end.abort(); }, 1000);
    try {
      await readEvents('v1/events', {
        last, signal: end.signal,
        heard: () => { fresh = now(); tries = 0; heard(); wire?.postMessage(['beat']); },
        event: (kind, data, id) => {
          last = id || last;
          // Whoever missed something asks again; for the pages that is news like any other.
          for (const news of kind === 'reset' || kind === 'gap' ? ['locks', 'runs'] : [kind]) {
            tell(news, data);
            wire?.postMessage([news, data]);
          }
        },
      });
    } catch (e) {
      if (e.status === 401) { clearInterval(dog); return; }
    }
    clearInterval(dog);
    await pause(Math.min(10000, 500 * 2 ** tries++) * (0.5 + Math.random() / 2));
  }
}

function hear() {
  if (!navigator.locks) return listen(null);
  const name = 'dibs' + location.pathname;
  const wire = new BroadcastChannel(name);
  wire.onmessage = ({ data: [kind, data] }) => { if (kind !== 'beat') tell(kind, data); };
  return navigator.locks.request(name, () => listen(wire)).finally(() => wire.close());
}

async function look() {
  try {
    const next = await get('v1/overview');
    // A store that is away has no answer to this; the overview is what says so.
    next.circles = next.counts.waiters ? await get('v1/waits?limit=1').then(got => got.circles, () => []) : [];
    state.overview = next;
    setLink(link.state);
    tell('overview', state.overview);
  } catch { /* The link says it. */ }
}

let running = false;
/* Begins, with the token there is. */
export async function start() {
  if (!hasToken()) return setLink('denied');
  try {
    state.me = await get('v1/whoami');
  } catch (e) {
    if (e.status !== 401) setTimeout(start, 2000);
    return;
  }
  if (link.state === 'denied') setLink('live');
  tell('me', state.me);
  if (running) return;
  running = true;
  const overview = follow(look, { every: OVERVIEW_MS, kinds: ['locks'] });
  await hear();
  overview.stop();
  running = false;
}

/* Takes a token if the daemon knows it. Throws what it said otherwise. */
export async function signIn(value, keep) {
  const me = await get('v1/whoami', { token: value });
  setToken(value, keep && me.role === 'read');
  link.state = 'opening';
  await new Promise(go => { start(); const off = on('me', () => { off(); go(); }); });
  return me;
}

export function signOut() {
  forgetToken();
  stream?.abort();
  state.me = state.overview = null;
  setLink('denied');
}

setInterval(() => {
  if (document.hidden) return;
  if (link.state === 'live' && now() - link.heard > QUIET_MS) setLink('stale');
  else if (link.state === 'stale' || link.state === 'lost') tell('link', link);
}, 1000);
