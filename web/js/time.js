/* time.js - spans and moments in words, in the viewer's zone or in UTC, and texts that
 * change with every second. */
// SPDX-License-Identifier: MIT
import { text } from './dom.js';

/* This machine's clock that never jumps; all spans are counted on it. */
export const now = () => performance.now();

const two = n => String(Math.floor(n)).padStart(2, '0');

/* 320µs 840ms 3.2s 41s 2m05s 3h12m 4d02h; `ms` may have a fraction. */
export function span(ms) {
  if (ms == null) return '–';
  if (ms > 0 && ms < 1) return Math.round(ms * 1000) + 'µs';
  if (ms < 1000) return Math.round(ms) + 'ms';
  const sec = ms / 1000;
  if (sec < 10) return sec.toFixed(1) + 's';
  if (sec < 60) return Math.floor(sec) + 's';
  if (sec < 3600) return `${Math.floor(sec / 60)}m ${two(sec % 60)}s`;
  if (sec < 86400) return `${Math.floor(sec / 3600)}h ${two((sec % 3600) / 60)}m`;
  return `${Math.floor(sec / 86400)}d ${two((sec % 86400) / 3600)}h`;
}

/* Whole seconds, for what moves while it is looked at. */
export const calm = ms => (ms < 60000 ? Math.max(0, Math.round(ms / 1000)) + 's' : span(ms));

let zone = localStorage.getItem('dibs.zone') === 'utc' ? 'UTC' : undefined;
const part = (opts, at) => new Intl.DateTimeFormat('en-GB', { timeZone: zone, hourCycle: 'h23', ...opts }).format(at);
const date = at => (at instanceof Date ? at : new Date(at));

export const zoneName = () => zone || Intl.DateTimeFormat().resolvedOptions().timeZone || 'local time';
export const zoneShort = () => new Intl.DateTimeFormat('en-GB', { timeZone: zone, timeZoneName: 'short' })
  .formatToParts(new Date()).find(p => p.type === 'timeZoneName').value;
export function switchZone() {
  zone = zone ? undefined : 'UTC';
  localStorage.setItem('dibs.zone', zone ? 'utc' : 'local');
}

/* Moments: a Date, milliseconds since 1970, or the text of an answer (RFC 3339). */
export const clock = at => part({ hour: '2-digit', minute: '2-digit', second: '2-digit' }, date(at));
export const hour = at => part({ hour: '2-digit', minute: '2-digit' }, date(at));
export const day = at => part({ weekday: 'short', day: 'numeric', month: 'short' }, date(at));
export const iso = at => date(at).toISOString().slice(0, 19) + 'Z';
export const moment = at => `${day(at)} ${clock(at)}`;
/* The form of a field for a moment, and back: 2026-11-16T02:30. */
export function localText(at) {
  const d = date(at);
  return new Date(d - (zone ? 0 : d.getTimezoneOffset() * 6e4)).toISOString().slice(0, 16);
}
export const readLocal = value => new Date(value + (zone ? 'Z' : ''));
/* Both zones, for titles. */
export const both = at => `${moment(at)} ${zoneShort()}\n${date(at).toISOString()}`;

/* How far the daemon's clock is ahead of this one, by the seconds that its answers name: the
 * most that they say, unless a clock was set. */
let ahead;
export function hearClock(said) {
  const by = Date.parse(said) - Date.now();
  if (!(by <= ahead && by > ahead - 3000)) ahead = by;
}
/* Milliseconds since a moment of the store. */
export const ago = at => Math.max(0, Date.now() + (ahead || 0) - new Date(at));

/* fn(el) now and with every second, as long as el is on the page. */
const ticking = new Map();
export function ticks(el, fn) {
  ticking.set(el, { fn, shown: false });
  fn(el);
  return el;
}
setInterval(() => {
  for (const [el, tick] of ticking) {
    if (!el.isConnected && tick.shown) ticking.delete(el);
    else if (el.isConnected) {
      tick.shown = true;
      if (!document.hidden) tick.fn(el);
    } else if (++tick.missed > 60) ticking.delete(el); // made, and never shown
    else tick.missed ||= 1;
  }
}, 1000);

/* An age that grows; what is left, and shrinks. Counted from when the answer came. */
export const since = (el, ageMs, got = now()) => ticks(el, () => text(el, calm(ageMs + now() - got)));
export const until = (el, leftMs, got = now()) =>
  ticks(el, () => text(el, leftMs == null ? '–' : leftMs - now() + got <= 0 ? 'now' : calm(leftMs - now() + got)));
