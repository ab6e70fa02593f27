// locks.go - one figure of a lock for Go on Redis servers of this machine.
//
//	locks PEER WORK COUNT PORT...
//
// bench/peers/locks.mjs says what WORK is. The lockers are goroutines with one client for each server.
// SPDX-License-Identifier: MIT
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	warm      = 1000
	warmTurns = 16
	crew      = 64
	waiters   = 8
	hold      = 5 * time.Millisecond
)

var prefix = fmt.Sprintf("peer-%d", time.Now().UnixNano())

func ensure(is bool, what any) {
	if !is {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], what)
		os.Exit(1)
	}
}

func doPair(lock locker) {
	err := lock.acquire(true)
	ensure(err == nil, err)
	err = lock.release()
	ensure(err == nil, err)
}

// keysOf counts the servers that have a key of that name.
func keysOf(name string) int {
	count := 0
	for _, client := range clients {
		keys, err := client.Keys(context.Background(), "*"+name+"*").Result()
		ensure(err == nil, err)
		if len(keys) > 0 {
			count++
		}
	}
	return count
}

// proveLock: a lock is at most servers, excludes another locker, and is gone when it was released.
func proveLock(make maker) {
	name := prefix + "-proof"
	lock := make(name)
	err := lock.acquire(true)
	ensure(err == nil, err)
	ensure(keysOf(name)*2 > len(clients), "the servers do not have the lock")
	ensure(make(name).acquire(false) != nil, "two lockers have one lock")
	err = lock.release()
	ensure(err == nil, err)
	// A quorum is released when most servers have answered.
	for until := time.Now().Add(time.Second); keysOf(name) > 0; {
		ensure(time.Now().Before(until), "the servers still have a lock that was released")
	}
}

func quantile(times []time.Duration, part float64) string {
	sorted := slices.Sorted(slices.Values(times))
	at := min(len(sorted)-1, int(float64(len(sorted))*part))
	return fmt.Sprintf("%.1f", float64(sorted[at].Nanoseconds())/1e3)
}

func measurePair(make maker, count int) string {
	lock := make(prefix + "-one")
	var times []time.Duration
	for range warm + count {
		begin := time.Now()
		doPair(lock)
		times = append(times, time.Since(begin))
	}
	return quantile(times[warm:], 0.5)
}

func measureCrew(make maker, count int) string {
	var locks []locker
	for i := range crew {
		locks = append(locks, make(prefix+"-"+strconv.Itoa(i)))
	}
	pairs := func(many int) {
		var all sync.WaitGroup
		for _, lock := range locks {
			all.Go(func() {
				for range many {
					doPair(lock)
				}
			})
		}
		all.Wait()
	}
	each := (count + crew - 1) / crew
	pairs(each/4 + 1)
	begin := time.Now()
	pairs(each)
	return fmt.Sprintf("%.0f", float64(crew*each)/time.Since(begin).Seconds())
}

// turns is what the lockers of a hand-off share. The condition tells of each grant.
type turns struct {
	mutex    sync.Mutex
	granted  *sync.Cond
	total    int
	grants   int
	times    []time.Duration
	released time.Time
	held     atomic.Bool
}

// noteGrant returns the number of the grant.
func (t *turns) noteGrant(at time.Time) int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if !t.released.IsZero() {
		t.times = append(t.times, at.Sub(t.released))
	}
	t.grants++
	t.granted.Broadcast()
	return t.grants
}

func (t *turns) noteRelease() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.released = time.Now()
}

// awaitGrant waits for the grant after `mine`. False: there were enough.
func (t *turns) awaitGrant(mine int) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for t.grants <= mine && len(t.times) < t.total {
		t.granted.Wait()
	}
	return len(t.times) < t.total
}

func (t *turns) take(lock locker) {
	for more := true; more; {
		err := lock.acquire(true)
		at := time.Now()
		ensure(err == nil, err)
		ensure(t.held.CompareAndSwap(false, true), "two lockers have one lock")
		mine := t.noteGrant(at)
		time.Sleep(hold)
		t.held.Store(false)
		t.noteRelease()
		err = lock.release()
		ensure(err == nil, err)
		more = t.awaitGrant(mine)
	}
}

func measureHandoff(make maker, count int) string {
	t := &turns{total: warmTurns + count}
	t.granted = sync.NewCond(&t.mutex)
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() { t.take(make(prefix + "-turn")) })
	}
	all.Wait()
	times := t.times[warmTurns : warmTurns+count]
	return quantile(times, 0.5) + " " + quantile(times, 0.99)
}

func main() {
	works := map[string]func(maker, int) string{"pair": measurePair, "crew": measureCrew, "handoff": measureHandoff}
	peer, count := os.Args[1], os.Args[3]
	pairs, err := strconv.Atoi(count)
	ensure(err == nil, err)
	make := openPeer(peer, os.Args[4:])
	proveLock(make)
	fmt.Println(works[os.Args[2]](make, pairs))
}
