// locks.mjs - one figure of a lock for Node on Redis servers of this machine.
//
//   node locks.mjs PEER WORK COUNT PORT...
//
//   pair     p50 of COUNT acquires and releases by one locker, in microseconds
//   crew     pairs a second of 64 lockers with names of their own, COUNT in all
//   handoff  "P50 P99" of COUNT hand-offs among 8 lockers, in microseconds
//
// More than one port is a quorum. A hand-off lasts from before the release until another locker
// has the lock. A locker that released asks again when the next one has the lock, which keeps it
// for 5 ms: so all others wait, and none takes the lock from those that have slept. Retries have
// the defaults of the peer, without an end. It is imported from the folder where
// bench/peers_locks.sh has installed the peers.
// SPDX-License-Identifier: MIT
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";

const require = createRequire(path.join(process.cwd(), "here.js"));
const Redis = require("ioredis");

const [peer, work, words, ...ports] = process.argv.slice(2);
const count = Number(words);
const clients = ports.map((port) => new Redis({ host: "127.0.0.1", port: Number(port) }));
const prefix = `peer-${process.hrtime.bigint()}`;
const TTL = 30000;
const WARM = 1000; // pairs that do not count: what runs often is compiled meanwhile
const WARM_TURNS = 16;
const CREW = 64;
const WAITERS = 8;
const HOLD = 5; // ms
const MANY = 1e9;

const now = () => Number(process.hrtime.bigint()) / 1e3;

function ensure(is, text) {
    if (!is) throw new Error(`${peer}: ${text}`);
}

// Each makes a handle of a name with acquire() and release(); `retries` is 0 or MANY.
const peers = {
    redlock4(name, retries) {
        const Redlock = require("redlock4");
        const redlock = new Redlock(clients, { retryCount: retries });
        let lock;

        return {
            async acquire() {
                lock = await redlock.lock(name, TTL);
                ensure(lock instanceof Redlock.Lock && lock.value, "no lock");
            },
            release: () => lock.unlock(),
        };
    },
    redlock5(name, retries) {
        const { default: Redlock, Lock } = require("redlock5");
        const redlock = new Redlock(clients, { retryCount: retries });
        let lock;

        return {
            async acquire() {
                lock = await redlock.acquire([name], TTL);
                ensure(lock instanceof Lock && lock.value, "no lock");
            },
            release: () => lock.release(),
        };
    },
    "redis-semaphore"(name, retries) {
        const { Mutex, RedlockMutex } = require("redis-semaphore");
        const options = { lockTimeout: TTL, acquireTimeout: MANY, acquireAttemptsLimit: retries + 1 };
        const mutex = clients.length > 1 ? new RedlockMutex(clients, name, options) : new Mutex(clients[0], name, options);

        return {
            async acquire() {
                await mutex.acquire();
                ensure(mutex.isAcquired, "no lock");
            },
            release: () => mutex.release(),
        };
    },
    "redlock-universal"(name, retries) {
        const { IoredisAdapter, createLock, createRedlock } = require("redlock-universal");
        const adapters = clients.map((client) => new IoredisAdapter(client));
        const options = { key: name, ttl: TTL, retryAttempts: retries };
        const single = () => createLock({ adapter: adapters[0], ...options });
        const lock = clients.length > 1 ? createRedlock({ adapters, ...options }) : single();
        let handle;

        return {
            async acquire() {
                handle = await lock.acquire();
                ensure(handle?.value, "no lock");
            },
            async release() {
                ensure(await lock.release(handle), "the lock was lost");
            },
        };
    },
};

// How many of the servers have a key of that name.
async function seen(name) {
    const keys = await Promise.all(clients.map((client) => client.keys(`*${name}*`)));

    return keys.filter((list) => list.length > 0).length;
}

// A lock is at most servers, excludes another locker, and is gone when it was released.
async function prove(make) {
    const name = `${prefix}-proof`;
    const lock = make(name, MANY);
    let refused = false;

    await lock.acquire();
    ensure((await seen(name)) * 2 > clients.length, "the servers do not have the lock");
    await make(name, 0).acquire().catch(() => (refused = true));
    ensure(refused, "two lockers have one lock");
    await lock.release();
    // A quorum is released when most servers have answered.
    for (const until = now() + 1e6; (await seen(name)) > 0; )
        ensure(now() < until, "the servers still have a lock that was released");
}

const quantile = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))].toFixed(1);

async function timePairs(make, many) {
    const lock = make(`${prefix}-one`, MANY);
    const times = [];

    for (let i = 0; i < many; i++) {
        const from = now();

        await lock.acquire();
        await lock.release();
        times.push(now() - from);
    }
    return times.sort((a, b) => a - b);
}

const pair = async (make) => quantile(await timePairs(make, count), 0.5);

async function crew(make) {
    const locks = Array.from({ length: CREW }, (_, i) => make(`${prefix}-${i}`, MANY));
    const each = Math.ceil(count / CREW);
    const rounds = (many) =>
        Promise.all(
            locks.map(async (lock) => {
                for (let i = 0; i < many; i++) {
                    await lock.acquire();
                    await lock.release();
                }
            }),
        );

    await rounds(Math.ceil(each / 4));
    const from = now();

    await rounds(each);
    return ((CREW * each * 1e6) / (now() - from)).toFixed(0);
}

async function handoff(make) {
    const times = [];
    let released = 0;
    let held = false;
    let next = () => {};
    const lane = async () => {
        const lock = make(`${prefix}-turn`, MANY);

        while (times.length < WARM_TURNS + count) {
            await lock.acquire();
            ensure(!held, "two lockers have one lock");
            held = true;
            if (released > 0) times.push(now() - released);
            next();
            const granted = new Promise((resolve) => (next = resolve));

            await new Promise((resolve) => setTimeout(resolve, HOLD));
            held = false;
            released = now();
            await lock.release();
            if (times.length < WARM_TURNS + count) await granted;
        }
        next();
    };

    await Promise.all(Array.from({ length: WAITERS }, lane));
    const sorted = times.slice(WARM_TURNS, WARM_TURNS + count).sort((a, b) => a - b);

    return `${quantile(sorted, 0.5)} ${quantile(sorted, 0.99)}`;
}

await prove(peers[peer]);
await timePairs(peers[peer], WARM);
console.log(await { pair, crew, handoff }[work](peers[peer]));
process.exit(0);
