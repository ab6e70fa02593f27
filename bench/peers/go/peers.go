// peers.go - the locks for Go that are measured, each behind the same face.
//
// SPDX-License-Identifier: MIT
package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

const ttl = 30 * time.Second

// locker is one handle. An acquire that does not wait fails when another has the lock.
type locker interface {
	acquire(wait bool) error
	release() error
}

type maker func(name string) locker

var clients []*redis.Client

func openPeer(peer string, ports []string) maker {
	for _, port := range ports {
		clients = append(clients, redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, PoolSize: crew}))
	}
	switch peer {
	case "redsync":
		return openRedsync()
	case "rueidislock":
		return openRueidis(ports[0])
	case "redislock":
		client := redislock.New(clients[0])
		return func(name string) locker { return &bsmLocker{client: client, name: name} }
	}
	ensure(false, "is not known")
	return nil
}

type redsyncLocker struct{ mutex *redsync.Mutex }

func openRedsync() maker {
	var pools []redsyncredis.Pool
	for _, client := range clients {
		pools = append(pools, goredis.NewPool(client))
	}
	sync := redsync.New(pools...)
	return func(name string) locker {
		return redsyncLocker{sync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt))}
	}
}

func (l redsyncLocker) acquire(wait bool) error {
	if wait {
		return l.mutex.Lock()
	}
	return l.mutex.TryLock()
}

func (l redsyncLocker) release() error {
	ok, err := l.mutex.Unlock()
	if err == nil && !ok {
		return errors.New("the lock was lost")
	}
	return err
}

type rueidisLocker struct {
	client rueidislock.Locker
	name   string
	cancel context.CancelFunc
}

// openRueidis: one key for a lock, as there is one server. The time to try is long, as the
// machine may be busy.
func openRueidis(port string) maker {
	client, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{"127.0.0.1:" + port}},
		KeyValidity:    ttl,
		KeyMajority:    1,
		NoLoopTracking: true,
		TryNextAfter:   10 * time.Second,
	})
	ensure(err == nil, err)
	return func(name string) locker { return &rueidisLocker{client: client, name: name} }
}

func (l *rueidisLocker) acquire(wait bool) (err error) {
	var held context.Context
	ask := l.client.TryWithContext
	if wait {
		ask = l.client.WithContext
	}
	held, l.cancel, err = ask(context.Background(), l.name)
	if err == nil {
		err = held.Err()
	}
	return err
}

// release: cancel() returns when the server has answered.
func (l *rueidisLocker) release() error {
	l.cancel()
	return nil
}

type bsmLocker struct {
	client *redislock.Client
	name   string
	lock   *redislock.Lock
}

// acquire: the peer has no delay of its own; 100 ms is that of its documentation.
func (l *bsmLocker) acquire(wait bool) (err error) {
	options := &redislock.Options{}
	ctx := context.Background()
	if wait {
		options.RetryStrategy = redislock.LinearBackoff(100 * time.Millisecond)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Hour) // the time of the lock would end the retries
		defer cancel()
	}
	l.lock, err = l.client.Obtain(ctx, l.name, ttl, options)
	return err
}

func (l *bsmLocker) release() error {
	return l.lock.Release(context.Background())
}
