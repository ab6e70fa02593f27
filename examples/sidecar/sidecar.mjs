// sidecar.mjs - runs a command while `dibs serve` keeps a lock for it.
// SPDX-License-Identifier: MIT
//
//     DIBS_SERVE_TOKEN=dibs_... node sidecar.mjs NAME COMMAND [ARGUMENT...]
//
// DIBS_SERVE has the addresses of daemons of one store, with spaces between them. The
// command has the fencing token in DIBS_FENCE, and a session of its own. Its process group
// is killed when it ends, when the client may no longer believe in the lock (exit status
// 75), and when the client is refused (1) or has HUP, INT or TERM; only SIGKILL leaves it
// behind. A child that leaves the group goes on: `dibs run` ends such children as well.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const [name, command, ...args] = process.argv.slice(2);
if (!command || !process.env.DIBS_SERVE_TOKEN) {
  console.error('usage: DIBS_SERVE_TOKEN=dibs_... node sidecar.mjs NAME COMMAND [ARGUMENT...]');
  process.exit(64);
}
const urls = (process.env.DIBS_SERVE || 'http://127.0.0.1:3427').split(' ');
const ttl_ms = Number(process.env.DIBS_SESSION_TTL_MS || 15000);
const beat_ms = Math.floor(ttl_ms / 3);
const wait_ms = Math.min(Math.floor(beat_ms / 2), 25000); // for the lock, in one request: the most a daemon takes
const id = randomUUID();
// The lease outlasts a daemon that dies: the next beat moves it to another.
const body = { name, ttl_ms: 2 * ttl_ms, wait_ms: 3600000 };
let path, token, fence;
let until = 0; // belief: the lock is ours until this moment
let stop; // the exit status that a signal asks for

// The clock that counts suspend, in hundredths of a second. A moment that begins
// something is rounded down, one that ends something up.
const before = () => Number(readFileSync('/proc/uptime', 'ascii').split(' ')[0]) * 1000;
const now = () => before() + 10;

// Sends a request; returns the moment before, the status, and the answer.
async function ask(method, where, what) {
  const t0 = before();
  try {
    const got = await fetch(urls[0] + where, {
      method,
      body: what && JSON.stringify(what),
      signal: AbortSignal.timeout(beat_ms),
      headers: {
        Authorization: `Bearer ${process.env.DIBS_SERVE_TOKEN}`,
        'Content-Type': 'application/json',
        'Idempotency-Key': `${id}-${fence}`,
      },
    });
    return [t0, got.status, got.status === 204 ? {} : await got.json()];
  } catch {
    return [t0, 0, {}];
  }
}

// The rule: valid_ms counts from the moment before the request was sent.
function learn(t0, lease) {
  if (lease.state === 'held' || lease.state === 'suspect') {
    until = Math.max(until, t0 + lease.valid_ms);
    [token, fence] = [lease.token ?? token, lease.fence];
  } else if (lease.state === 'lost') {
    until = 0;
  } else if (lease.state === 'freed') {
    path = undefined; // it could not be taken over just now: try again
  }
}

// Keeps the session; without one, makes it, and takes over what there is.
async function beat() {
  const begin = path ? undefined : { name: 'sidecar.mjs', ttl_ms, adopt: token ? [{ ...body, id, token }] : [] };
  const [t0, status, got] = await ask('POST', path ? `${path}/beat` : '/v1/sessions', begin ?? {});
  if ([400, 401, 403, 501].includes(status)) throw new Error(`dibs serve: ${got.detail}`);
  if (status !== 200 && status !== 201) {
    path = undefined; // gone, or ending: the lease stands at the store
    urls.push(urls.shift());
    return;
  }
  if (begin) path = `/v1/sessions/${got.session}`;
  if (got.leases[id]) learn(t0, got.leases[id]);
}

// Runs the command, which must not outlive the lock, whatever ends the client.
async function run() {
  const env = { ...process.env, DIBS_FENCE: String(fence) };
  const work = spawn(command, args, { stdio: 'inherit', env, detached: true });
  const kill = () => {
    try {
      process.kill(-work.pid, 'SIGKILL');
    } catch {
      // nothing is left of the group
    }
  };
  const ended = new Promise((done) => {
    work.on('exit', (code) => done(code ?? 1));
    work.on('error', (wrong) => {
      console.error(`sidecar.mjs: ${wrong.message}`);
      done(127);
    });
  });
  // Belief ends by the own clock, whatever a request waits for.
  const guard = setInterval(() => (stop || now() >= until) && kill(), 50);
  try {
    for (;;) {
      const status = await Promise.race([ended, sleep(path ? beat_ms : 100, undefined, { ref: false })]);
      if (status !== undefined) return status;
      await beat();
    }
  } finally {
    kill();
    await ended;
    clearInterval(guard);
  }
}

for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) process.on(signal, (_, number) => (stop = 128 + number));
process.on('SIGTSTP', () => {}); // ^Z would stop the client, and not the command
while (!token && !stop) {
  await beat();
  const where = `${path}/leases/${id}?wait_ms=${wait_ms}`;
  const [t0, status, got] = path ? await ask('PUT', where, body) : [0, 0, {}];
  if (status === 201) learn(t0, got);
  else if (![0, 202, 404, 429, 503].includes(status)) throw new Error(`dibs serve: ${got.detail}`);
  if (!status) await sleep(100);
}
const status = stop ? undefined : await run();
const kept = now() < until;
until = 0; // belief ends before the request is sent
if (path) await ask('DELETE', path);
process.exit(stop ?? (kept ? status : 75));
