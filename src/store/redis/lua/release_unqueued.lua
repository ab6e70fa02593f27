-- release_unqueued.lua - gives up a lease that nobody is known to wait for.
-- KEYS: lock
-- ARGV: owner
-- Answers OK, or BUSY when it is for release to do: the lease is marked, of
-- another kind, or gone.
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then
    redis.call('DEL', KEYS[1])
    return 0
end
return 1
