// Locks.java - one figure of the lock of Redisson on a Redis server of this machine.
//
//     java Locks redisson WORK COUNT PORT
//
// bench/peers/locks.mjs says what WORK is. The lockers are threads with one client.
// SPDX-License-Identifier: MIT
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public final class Locks {
    static final long TTL_MS = 30_000;
    static final int WARM = 5000; // more than elsewhere: the compiler is later
    static final int WARM_TURNS = 16;
    static final int CREW = 64;
    static final int WAITERS = 8;
    static final long HOLD_MS = 5;
    static final String PREFIX = "peer-" + System.nanoTime();

    private final RedissonClient client;

    private Locks(RedissonClient client) {
        this.client = client;
    }

    private static void ensure(boolean is, String text) {
        if (!is)
            throw new IllegalStateException("redisson: " + text);
    }

    private RLock newLock(String name) {
        return client.getLock(PREFIX + "-" + name);
    }

    private static void acquire(RLock lock) {
        lock.lock(TTL_MS, TimeUnit.MILLISECONDS);
    }

    /** A release of a lock that was lost throws an exception. */
    private static void doPair(RLock lock) {
        acquire(lock);
        lock.unlock();
    }

    private interface Work {
        void run(int number) throws Exception;
    }

    private static void runThreads(int count, Work work) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(count);
        List<Future<?>> all = new ArrayList<>();

        for (int i = 0; i < count; i++) {
            int number = i;
            Callable<Void> task = () -> {
                work.run(number);
                return null;
            };

            all.add(threads.submit(task));
        }
        for (Future<?> one : all)
            one.get();
        threads.shutdown();
    }

    /** A lock is at the server, excludes another locker, and is gone when it was released. */
    private void proveLock() throws Exception {
        RLock lock = newLock("proof");
        AtomicBoolean granted = new AtomicBoolean();

        acquire(lock);
        ensure(client.getKeys().countExists(lock.getName()) == 1, "the server does not have the lock");
        runThreads(1, number -> granted.set(newLock("proof").tryLock(0, TTL_MS, TimeUnit.MILLISECONDS)));
        ensure(!granted.get(), "two lockers have one lock");
        lock.unlock();
        ensure(client.getKeys().countExists(lock.getName()) == 0, "the server still has a lock that was released");
    }

    private static String quantile(List<Long> timesNs, double part) {
        List<Long> sorted = new ArrayList<>(timesNs);

        Collections.sort(sorted);
        int at = Math.min(sorted.size() - 1, (int) (sorted.size() * part));
        return String.format("%.1f", sorted.get(at) / 1e3);
    }

    private List<Long> timePairs(int count) {
        RLock lock = newLock("one");
        List<Long> times = new ArrayList<>();

        for (int i = 0; i < count; i++) {
            long from = System.nanoTime();

            doPair(lock);
            times.add(System.nanoTime() - from);
        }
        return times;
    }

    private void doPairs(int many) throws Exception {
        runThreads(CREW, number -> {
            RLock lock = newLock(Integer.toString(number));

            for (int i = 0; i < many; i++)
                doPair(lock);
        });
    }

    private String measureCrew(int count) throws Exception {
        int each = (count + CREW - 1) / CREW;

        doPairs(each / 4 + 1);
        long from = System.nanoTime();

        doPairs(each);
        return String.format("%.0f", CREW * each * 1e9 / (System.nanoTime() - from));
    }

    /** The lockers of a hand-off share it; notifyAll() tells them of each grant. */
    private static final class Turns {
        private final int total;
        private final List<Long> times = new ArrayList<>();
        private long releasedNs;
        private int grants;
        private boolean held;

        Turns(int total) {
            this.total = total;
        }

        synchronized int noteGrant(long atNs) {
            ensure(!held, "two lockers have one lock");
            held = true;
            if (releasedNs != 0)
                times.add(atNs - releasedNs);
            notifyAll();
            return ++grants;
        }

        synchronized void noteRelease() {
            held = false;
            releasedNs = System.nanoTime();
        }

        /** False: there were enough. */
        synchronized boolean awaitGrant(int mine) throws InterruptedException {
            while (grants <= mine && times.size() < total)
                wait();
            return times.size() < total;
        }

        void take(RLock lock) throws InterruptedException {
            int mine;

            do {
                acquire(lock);
                mine = noteGrant(System.nanoTime());
                Thread.sleep(HOLD_MS);
                noteRelease();
                lock.unlock();
            } while (awaitGrant(mine));
        }
    }

    private String measureHandoff(int count) throws Exception {
        Turns turns = new Turns(WARM_TURNS + count);

        runThreads(WAITERS, number -> turns.take(newLock("turn")));
        List<Long> times = turns.times.subList(WARM_TURNS, WARM_TURNS + count);
        return quantile(times, 0.5) + " " + quantile(times, 0.99);
    }

    private String measure(String work, int count) throws Exception {
        return switch (work) {
            case "pair" -> quantile(timePairs(count), 0.5);
            case "crew" -> measureCrew(count);
            case "handoff" -> measureHandoff(count);
            default -> throw new IllegalArgumentException("the work is not known");
        };
    }

    public static void main(String[] words) {
        Config config = new Config();
        int status = 0;

        config.useSingleServer().setAddress("redis://127.0.0.1:" + words[3]);
        try {
            Locks locks = new Locks(Redisson.create(config));

            locks.proveLock();
            locks.timePairs(WARM);
            System.out.println(locks.measure(words[1], Integer.parseInt(words[2])));
        } catch (Exception failure) {
            failure.printStackTrace();
            status = 1;
        }
        System.exit(status); // the threads of the client would keep the process alive
    }
}
