// asynq.go - one figure of asynq on a Redis server of this machine.
//
//	asynq PART COUNT PORT
//
// bench/peers/bullmq.mjs says what PART is. asynq adds no tasks in batches: it has no `pushes`.
// SPDX-License-Identifier: MIT
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

const warm = 300 // calls that do not count

var (
	queue   = fmt.Sprintf("peer-%d", time.Now().UnixNano())
	payload = []byte(strings.Repeat("x", 100))
	server  asynq.RedisClientOpt
	client  *asynq.Client
)

func ensure(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "asynq:", err)
		os.Exit(1)
	}
}

func add() {
	_, err := client.Enqueue(asynq.NewTask("job", payload), asynq.Queue(queue))
	ensure(err)
}

// flood adds `total` tasks, with `flying` of them on the way.
func flood(total, flying int) {
	var left atomic.Int64
	var group sync.WaitGroup

	left.Store(int64(total))
	for range flying {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				add()
			}
		})
	}
	group.Wait()
}

func push(count, flying int) {
	flood(warm, 8)
	from := time.Now()
	flood(count, flying)
	fmt.Printf("%.0f\n", float64(count)/time.Since(from).Seconds())
}

// start has a worker that calls `done` for each task. Its log would be among the figures.
func start(concurrency int, done func()) *asynq.Server {
	worker := asynq.NewServer(server, asynq.Config{
		Concurrency: concurrency, Queues: map[string]int{queue: 1}, LogLevel: asynq.FatalLevel})

	ensure(worker.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		done()
		return nil
	})))
	return worker
}

func take(count, concurrency int) {
	var done atomic.Int64
	var from time.Time
	took := make(chan time.Duration, 1)

	flood(warm+count, 32)
	worker := start(concurrency, func() {
		switch done.Add(1) {
		case warm:
			from = time.Now()
		case int64(warm + count):
			took <- time.Since(from)
		}
	})
	fmt.Printf("%.0f\n", float64(count)/(<-took).Seconds())
	worker.Shutdown()
}

func wake(count int) {
	woken := make(chan time.Time)
	times := make([]float64, 0, count)
	worker := start(1, func() { woken <- time.Now() })

	for range count {
		time.Sleep(20 * time.Millisecond)
		from := time.Now()
		add()
		times = append(times, float64((<-woken).Sub(from).Nanoseconds())/1000)
	}
	slices.Sort(times)
	fmt.Printf("%.1f %.1f\n", times[count/2], times[count*99/100])
	worker.Shutdown()
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "asynq: PART COUNT PORT")
		os.Exit(2)
	}
	count, err := strconv.Atoi(os.Args[2])
	ensure(err)
	server = asynq.RedisClientOpt{Addr: "127.0.0.1:" + os.Args[3]}
	client = asynq.NewClient(server)
	defer client.Close()
	parts := map[string]func(){
		"push":   func() { push(count, 1) },
		"push32": func() { push(count, 32) },
		"take":   func() { take(count, 1) },
		"take32": func() { take(count, 32) },
		"wake":   func() { wake(count) },
		"fill":   func() { flood(count, 32) },
	}
	parts[os.Args[1]]()
}
