/* api.js - requests to the daemon, and the token that they carry.
 *
 * The token stays in this tab (sessionStorage). One that may only read can be kept on
 * the screen (localStorage), for a screen on a wall. It goes into a header, never into
 * a URL: proxies log those. Addresses are relative to the page, so that it works under
 * any base path. */
// SPDX-License-Identifier: MIT
const KEY = 'dibs.token';

// `#token=...` is how the daemon's first start hands a token over: a fragment reaches no log.
const given = location.hash.match(/^#token=([\w-]+)$/);
if (given) {
  sessionStorage.setItem(KEY, given[1]);
  history.replaceState(null, '', '#/');
}

export const hasToken = () => !!token();
const token = () => sessionStorage.getItem(KEY) || localStorage.getItem(KEY);
export function setToken(value, keep) {
  forgetToken();
  (keep ? localStorage : sessionStorage).setItem(KEY, value);
}
export function forgetToken() {
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
}

/* An answer that is no success: problem details, or none when the daemon is not reached. */
export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail || body?.title || `the daemon answered ${status}`);
    Object.assign(this, { status, code: body?.code, body });
  }
}

let listener = () => {};
/* fn('heard', the time at the daemon), fn('lost') or fn('denied') after each request. */
export const watchRequests = fn => { listener = fn; };

export async function call(path, opts = {}) {
  const headers = { Accept: 'application/json', ...opts.headers };
  const own = opts.token || token();
  let answer;
  if (own) headers.Authorization = 'Bearer ' + own;
  try {
    answer = await fetch(path, { ...opts, headers, cache: 'no-store', credentials: 'omit' });
  } catch (e) {
    if (e.name !== 'AbortError') listener('lost');
    throw Object.assign(new Problem(0, { detail: 'the daemon cannot be reached' }), { name: e.name });
  }
  listener('heard', answer.headers.get('Date'));
  if (answer.ok) return answer;
  const problem = new Problem(answer.status, await answer.json().catch(() => null));
  if (answer.status === 401 && !opts.token) listener('denied');
  throw problem;
}

/* The answer as JSON, with `got`: when it came, for what is counted from then on. Without a
 * limit, a connection that is dead would have a page wait for ever. */
export async function get(path, opts) {
  const json = await (await call(path, { signal: AbortSignal.timeout(20000), ...opts })).json();
  return Object.assign(json, { got: performance.now() });
}

/* The same; null when this daemon or its store has no such thing, which is not asked again. */
const absent = new Set();
export async function getMaybe(path) {
  const route = path.split('?')[0];
  if (absent.has(route)) return null;
  try {
    return await get(path);
  } catch (e) {
    if (e.status !== 404 && e.status !== 501) throw e;
    absent.add(route);
    return null;
  }
}

/* Asks less often than others: ask(what, ms) has the answer of before for so long. */
export function sparing(ask) {
  let kept = {};
  return async (what, ms) => {
    if (kept.what !== what || performance.now() - kept.at > ms) kept = { what, at: performance.now(), got: await ask(what) };
    return kept.got;
  };
}

export async function post(path, body = {}, method = 'POST', headers = {}) {
  const answer = await call(path, { method, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) });
  return answer.status === 204 ? {} : answer.json();
}

/* 'v1/locks?limit=5&q=x', without what is empty. */
export function query(path, params) {
  const all = new URLSearchParams(Object.entries(params).filter(([, v]) => v != null && v !== ''));
  return String(all) ? `${path}?${all}` : path;
}

/* The path of a thing with a name: thing('v1/locks', name, 'break'). The name goes into
 * the query, since some proxies decode an escaped slash. */
export const thing = (path, name, tail = '', params = {}) => query(`${path}/~${tail && '/' + tail}`, { name, ...params });

/* Reads server-sent events until they end: event(kind, data, id); heard() for every byte. */
export async function readEvents(path, { last, signal, event, heard }) {
  const answer = await call(path, { signal, headers: { Accept: 'text/event-stream', ...(last && { 'Last-Event-ID': last }) } });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    const frames = (rest + value).split('\n\n');
    rest = frames.pop();
    for (const frame of frames) {
      const fields = { event: 'message' };
      for (const line of frame.split('\n')) {
        const at = line.indexOf(':');
        if (at > 0) fields[line.slice(0, at)] = line.slice(at + 1).trimStart();
      }
      if (fields.data) event(fields.event, JSON.parse(fields.data), fields.id);
    }
  }
}
