// main.rs - one figure of a lock for Rust on Redis servers of this machine.
//
//     locks rslock WORK COUNT PORT...
//
// bench/peers/locks.mjs says what WORK is. The lockers are tasks with one manager.
// SPDX-License-Identifier: MIT
use rslock::{LockGuard, LockManager};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;
use tokio::task::JoinSet;

const TTL: Duration = Duration::from_secs(30);
const WARM: usize = 1000;
const WARM_TURNS: usize = 16;
const CREW: usize = 64;
const WAITERS: usize = 8;
const HOLD: Duration = Duration::from_millis(5);

fn ensure(is: bool, text: &str) {
    if !is {
        eprintln!("rslock: {text}");
        std::process::exit(1);
    }
}

async fn acquire_lock(manager: &LockManager, name: &str) -> LockGuard {
    match manager.acquire(name, TTL).await {
        Ok(guard) => guard,
        Err(error) => panic!("{error}"),
    }
}

async fn do_pair(manager: &LockManager, name: &str) {
    acquire_lock(manager, name).await.release().await;
}

// Counts the servers that have the key.
async fn count_keys(urls: &[String], name: &str) -> redis::RedisResult<usize> {
    let mut count = 0;

    for url in urls {
        let client = redis::Client::open(url.as_str())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let found: usize = redis::cmd("EXISTS")
            .arg(name)
            .query_async(&mut connection)
            .await?;

        count += found;
    }
    Ok(count)
}

// A lock is at most servers, excludes another locker, and is gone when it was released.
async fn prove_lock(
    manager: &LockManager,
    urls: &[String],
    prefix: &str,
) -> redis::RedisResult<()> {
    let name = format!("{prefix}-proof");
    let guard = acquire_lock(manager, &name).await;
    let mut hasty = LockManager::new(urls.to_vec());

    hasty.set_retry(1, Duration::from_millis(1));
    ensure(
        count_keys(urls, &name).await? * 2 > urls.len(),
        "the servers do not have the lock",
    );
    ensure(
        hasty.lock(name.as_str(), TTL).await.is_err(),
        "two lockers have one lock",
    );
    guard.release().await;
    ensure(
        count_keys(urls, &name).await? == 0,
        "the servers still have a lock that was released",
    );
    Ok(())
}

fn quantile(times: &[Duration], part: f64) -> String {
    let mut sorted = times.to_vec();

    sorted.sort();
    let at = ((sorted.len() as f64 * part) as usize).min(sorted.len() - 1);
    format!("{:.1}", sorted[at].as_nanos() as f64 / 1e3)
}

async fn measure_pair(manager: LockManager, prefix: &str, count: usize) -> String {
    let name = format!("{prefix}-one");
    let mut times = Vec::new();

    for _ in 0..WARM + count {
        let begin = Instant::now();

        do_pair(&manager, &name).await;
        times.push(begin.elapsed());
    }
    quantile(&times[WARM..], 0.5)
}

async fn do_pairs(manager: &LockManager, prefix: &str, many: usize) {
    let mut all = JoinSet::new();

    for i in 0..CREW {
        let manager = manager.clone();
        let name = format!("{prefix}-{i}");

        all.spawn(async move {
            for _ in 0..many {
                do_pair(&manager, &name).await;
            }
        });
    }
    all.join_all().await; // panics with a task that has failed
}

async fn measure_crew(manager: LockManager, prefix: &str, count: usize) -> String {
    let each = count.div_ceil(CREW);

    do_pairs(&manager, prefix, each / 4 + 1).await;
    let begin = Instant::now();

    do_pairs(&manager, prefix, each).await;
    format!(
        "{:.0}",
        (CREW * each) as f64 / begin.elapsed().as_secs_f64()
    )
}

// The lockers of a hand-off share it. `grants` tells all of them of each grant.
struct Turns {
    total: usize,
    times: Mutex<Vec<Duration>>,
    released: Mutex<Option<Instant>>,
    held: AtomicBool,
    grants: watch::Sender<usize>,
}

impl Turns {
    // Returns the number of the grant.
    fn note_grant(&self, at: Instant) -> usize {
        let mut number = 0;

        ensure(
            !self.held.swap(true, Ordering::SeqCst),
            "two lockers have one lock",
        );
        if let Some(from) = *self.released.lock().unwrap() {
            self.times.lock().unwrap().push(at - from);
        }
        self.grants.send_modify(|grants| {
            *grants += 1;
            number = *grants;
        });
        number
    }

    fn note_release(&self) {
        self.held.store(false, Ordering::SeqCst);
        *self.released.lock().unwrap() = Some(Instant::now());
    }

    fn lacks_times(&self) -> bool {
        self.times.lock().unwrap().len() < self.total
    }

    async fn take(&self, manager: LockManager, name: String) {
        let mut told = self.grants.subscribe();

        while self.lacks_times() {
            let guard = acquire_lock(&manager, &name).await;
            let mine = self.note_grant(Instant::now());

            tokio::time::sleep(HOLD).await;
            self.note_release();
            guard.release().await;
            if self.lacks_times() {
                told.wait_for(|grants| *grants > mine).await.unwrap();
            }
        }
    }
}

async fn measure_handoff(manager: LockManager, prefix: &str, count: usize) -> String {
    let turns = Arc::new(Turns {
        total: WARM_TURNS + count,
        times: Mutex::new(Vec::new()),
        released: Mutex::new(None),
        held: AtomicBool::new(false),
        grants: watch::channel(0).0,
    });
    let mut all = JoinSet::new();

    for _ in 0..WAITERS {
        let (turns, manager, name) = (turns.clone(), manager.clone(), format!("{prefix}-turn"));

        all.spawn(async move { turns.take(manager, name).await });
    }
    all.join_all().await;
    let times = turns.times.lock().unwrap();
    let times = &times[WARM_TURNS..WARM_TURNS + count];

    format!("{} {}", quantile(times, 0.5), quantile(times, 0.99))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let urls: Vec<String> = words[4..]
        .iter()
        .map(|port| format!("redis://127.0.0.1:{port}"))
        .collect();
    let prefix = format!(
        "peer-{}",
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)?
            .as_nanos()
    );
    let manager = LockManager::new(urls.clone());
    let count: usize = words[3].parse()?;

    prove_lock(&manager, &urls, &prefix).await?;
    let figures = match words[2].as_str() {
        "pair" => measure_pair(manager, &prefix, count).await,
        "crew" => measure_crew(manager, &prefix, count).await,
        "handoff" => measure_handoff(manager, &prefix, count).await,
        _ => return Err("the work is not known".into()),
    };
    println!("{figures}");
    Ok(())
}
