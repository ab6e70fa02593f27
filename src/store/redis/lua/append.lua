-- append.lua - adds an entry to a log, once.
-- KEYS: log fence from was
-- ARGV: lane number repeat_ms keep keep_bytes keep_ms publish data
-- Answers status and position. LOST: the lane has done a later number.
--
-- The last request of each lane is kept for repeat_ms at least, and twice that at most:
-- from has those of this time, was those of the time before.
local call = redis.call
local LOG, FROM, WAS = KEYS[1], KEYS[3], KEYS[4]
local lane, number, repeat_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local keep_bytes, keep_ms = tonumber(ARGV[5]), tonumber(ARGV[6])

if lane ~= '0' then
    local kept = call('HGET', FROM, lane) or call('HGET', WAS, lane)
    local last, position = (kept or '0 0'):match('^(%d+) (%d+)$')

    if number == tonumber(last) then
        return {0, position}
    elseif number < tonumber(last) then
        return {3, 0}
    end
end

--include fence
--include tell_topic
--include log_entry
local time = call('TIME')
local us = time[1] * 1000000 + time[2]
local before, sum = log_tail(LOG)
local position = next_fence(KEYS[2], time)

sum = sum + #ARGV[8]
if position == int(us) then
    call('XADD', LOG, 'MAXLEN', '~', ARGV[4], position .. '-0', 'd', ARGV[8],
         'b', int(before), 's', int(sum))
else
    call('XADD', LOG, 'MAXLEN', '~', ARGV[4], position .. '-0', 'd', ARGV[8],
         'b', int(before), 's', int(sum), 't', int(us))
end

-- A position is never below the time of its entry.
local function trim_oldest()
    local entry = call('XRANGE', LOG, '-', '+', 'COUNT', '1')[1]
    local at, so_far, len = read_entry(entry)

    if at == tonumber(position) or
       not (keep_bytes > 0 and sum - so_far + len > keep_bytes) and
       not (keep_ms > 0 and at < us - keep_ms * 1000) then
        return false
    end
    call('XDEL', LOG, entry[1])
    return true
end

if keep_bytes > 0 or keep_ms > 0 then
    for _ = 1, 8 do
        if not trim_oldest() then
            break
        end
    end
end

if lane ~= '0' then
    if call('HSETNX', FROM, 'begun', int(us)) == 0 and
       us - call('HGET', FROM, 'begun') > repeat_ms * 1000 then
        call('RENAME', FROM, WAS)
        call('PEXPIRE', WAS, int(repeat_ms))
        call('HSET', FROM, 'begun', int(us))
    end
    call('HSET', FROM, lane, int(number) .. ' ' .. position)
    call('PEXPIRE', FROM, int(2 * repeat_ms))
end
tell_topic(ARGV[7], LOG, 'changed ' .. position)
return {0, position}
