-- quorum_free.lua - asks a node of a quorum for a name that is thought to be free.
-- The asker has learned the run id on the connection on which it sends this, without
-- a proxy between, so that it is that of this server.
-- KEYS: lock party fence node
-- ARGV: run durable longest_ms owner ttl_ms who fence
-- Answers seconds and microseconds of the clock, and the fence if it is not the one
-- that was proposed; or BUSY when quorum_grant must do it: nothing has changed.
local call = redis.call

--include quorum_terms
--include write_holder
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local at = call('HMGET', KEYS[4], 'run', 'from', 'longest', 'durable', 'seen')
local fence = ARGV[7]
local proposed, ahead = tonumber(fence), now + AHEAD_MS * 1000
local from, seen = tonumber(at[2] or now), tonumber(at[5] or ahead)

-- All that quorum_grant would write there, but for the time that was seen, is there.
if at[1] ~= ARGV[1] or at[4] ~= ARGV[2] and at[4] ~= '0' or
   at[3] ~= ARGV[3] and tonumber(at[3] or 0) < tonumber(ARGV[3]) or
   from >= now or now < seen - BACK_MS * 1000 or proposed > ahead or
   proposed < from or call('EXISTS', KEYS[1], KEYS[2]) > 0 then
    return 1
end

local last = call('GETSET', KEYS[3], fence)

if last and tonumber(last) >= proposed then
    if tonumber(last) + 1 > ahead then
        call('SET', KEYS[3], last)
        return 1
    end
    fence = string.format('%.0f', tonumber(last) + 1)
    call('SET', KEYS[3], fence)
end
if math.abs(now - seen) > SEEN_MS * 1000 then
    call('HSET', KEYS[4], 'seen', string.format('%.0f', now))
end
hold(KEYS[1], fence, ARGV[4], ARGV[5], ARGV[6])
if fence == ARGV[7] then
    return time
end
return {time[1], time[2], fence}
