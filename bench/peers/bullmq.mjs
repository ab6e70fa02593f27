// bullmq.mjs - one figure of BullMQ on a Redis server of this machine.
//
//   node bullmq.mjs PART COUNT PORT
//
//   push, push32  jobs that are added each second, with 1 or 32 on the way
//   pushes        the same with addBulk() of 16, 4 on the way
//   take, take32  jobs that a worker with concurrency 1 or 32 does each second
//   wake          from add() to the start of a blocked worker: "P50 P99" in microseconds
//   fill          adds COUNT jobs and prints nothing: for a look at the memory
//
// It is imported from the folder where bench/peers_queues.sh has installed BullMQ.
// SPDX-License-Identifier: MIT
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";

const require = createRequire(path.join(process.cwd(), "here.js"));
const { Queue, Worker } = require("bullmq");

const [part, words, port] = process.argv.slice(2);
const count = Number(words);
const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };
const name = `peer-${process.hrtime.bigint()}`;
const queue = new Queue(name, { connection });
const data = { text: "x".repeat(100) };
const opts = { removeOnComplete: true };
const WARM = 300; // calls that do not count: what runs often is compiled meanwhile

const now = () => Number(process.hrtime.bigint()) / 1e9;

// Calls `once` until `total` calls were begun, with `flying` of them on the way.
async function flood(total, flying, once) {
    let left = total;
    const lane = async () => {
        while (left-- > 0) await once();
    };

    await Promise.all(Array.from({ length: flying }, lane));
}

async function rate(total, work) {
    await flood(WARM, 8, add);
    const from = now();

    await work();
    console.log((total / (now() - from)).toFixed(0));
}

const add = () => queue.add("job", data, opts);
const addMany = (many) => queue.addBulk(Array.from({ length: many }, () => ({ name: "job", data, opts })));

async function take(concurrency) {
    let done = 0;
    let from;
    let finish;
    const all = new Promise((resolve) => (finish = resolve));

    await flood(Math.ceil((WARM + count) / 100), 4, () => addMany(100));
    const worker = new Worker(name, async () => {}, { connection, concurrency, autorun: false });

    worker.on("completed", () => {
        done++;
        if (done === WARM) from = now();
        if (done === WARM + count) finish(now() - from);
    });
    await worker.waitUntilReady();
    worker.run();
    console.log((count / (await all)).toFixed(0));
    await worker.close(true);
}

async function wake() {
    const times = [];
    let woken;
    const worker = new Worker(name, async () => woken(now()), { connection });

    await worker.waitUntilReady();
    for (let i = 0; i <= count; i++) {
        const had = new Promise((resolve) => (woken = resolve));

        await new Promise((resolve) => setTimeout(resolve, 20));
        const from = now();

        await add();
        const took = (await had) - from;

        if (i > 0) times.push(took * 1e6); // the first one connects
    }
    times.sort((a, b) => a - b);
    console.log(times[Math.floor(count / 2)].toFixed(1), times[Math.floor((count * 99) / 100)].toFixed(1));
    await worker.close(true);
}

const parts = {
    push: () => rate(count, () => flood(count, 1, add)),
    push32: () => rate(count, () => flood(count, 32, add)),
    pushes: () => rate(count * 16, () => flood(count, 4, () => addMany(16))),
    take: () => take(1),
    take32: () => take(32),
    wake,
    fill: () => flood(Math.ceil(count / 100), 4, () => addMany(100)),
};

await queue.waitUntilReady();
await parts[part]();
if (part !== "fill") await queue.obliterate({ force: true });
await queue.close();
process.exit(0);
