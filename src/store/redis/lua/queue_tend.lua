-- queue_tend.lua - renews lanes with all that they have.
-- KEYS: for each lane meta list out next own of its queue
-- ARGV: for each lane, span_ms
-- Answers for each: the time that it lives in ms, or -1 when it has ended; and 1 if
-- there is something to reserve, else 0.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local answer = {}

for i = 1, #ARGV / 2 do
    local meta, list, out, next, own = unpack(KEYS, 5 * i - 4, 5 * i)
    local name, span_ms = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
    local at = call('HMGET', meta, 'l:' .. name, 'paused', 'serial', 'retries')
    local before, till, after = (at[1] or ''):match('^(%d+ %d+ )(%d+)( .*)$')
    local held = at[2] or at[3] and (tonumber(at[4] or 0) > 0 or
                                     call('EXISTS', out) == 1)
    local left = till and till - now or 0

    if left > 0 and left < span_ms * 1000 then
        left = span_ms * 1000
        call('HDEL', meta, '') -- a full server lets what follows write too
        call('HSET', meta, 'l:' .. name,
             before .. string.format('%.0f', now + left) .. after)
        if span_ms > 43200000 then
            call('HSET', meta, 'long', '1', 'lasting', '1')
        end
        if call('PTTL', meta) > 0 then
            call('PEXPIRE', meta, '86400000')
        end
    end
    answer[2 * i - 1] = left > 0 and math.floor(left / 1000) or -1
    answer[2 * i] = left > 0 and not held and
                    call('EXISTS', list, next, own) > 0 and 1 or 0
end
return answer
