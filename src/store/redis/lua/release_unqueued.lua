-- release_unqueued.lua - releases a lease without a known waiter.
-- KEYS: lock
-- ARGV: owner
-- Answers OK, or BUSY when release must do it: the lease is marked, of another
-- kind, or gone.
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then
    redis.call('DEL', KEYS[1])
    return 0
end
return 1
