-- renew_one_key.lua - renews one lease by the key of its lock alone. While a cluster
-- moves the slot of the name, it refuses scripts with several keys.
-- KEYS: lock
-- ARGV: owner fence ttl_ms
-- Answers the time left in ms, or -1 when only renew knows.
local call = redis.call

--include grant
local mine = enter(1) and roll[ARGV[1]]

if not mine or mine.left or mine.fence ~= ARGV[2] then
    return -1
end
mine.till = math.max(mine.till, now + ARGV[3] * 1000)
extend_lock()
if mine.mode ~= EXCLUSIVE then
    write_holder(mine)
end
return math.floor((mine.till - now) / 1000)
