-- draw.lua - takes tokens of a rate limit: the rule of src/store/rate.c.
-- KEYS: rate
-- ARGV: cost least count period_us burst wait_us, as dibs__rate_check() leaves them
-- Answers granted (0: refused), wait_us and remaining.
--
-- The rate is a string "TAT LAST REST COUNT PERIOD": when all that is out will have
-- come back and when this was written, in us; REST/COUNT of a us more; the rate in
-- force then. It expires at TAT, rounded up. Numbers stay exact below 2^53.
local call, fmod = redis.call, math.fmod

--include text_int
local cost, least, count = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0
local period, wait = ARGV[4] + 0, ARGV[6] + 0
local most = 9007199254740991

-- Both above 0. fmod() is exact, a quotient need not be.
local function div(a, b)
    return (a - fmod(a, b)) / b
end

local function div_up(a, b)
    return div(a, b) + (fmod(a, b) > 0 and 1 or 0)
end

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local used = 0
local tat, last, rest, was, per =
    string.match(call('GET', KEYS[1]) or '', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')

local back = tat and math.max(0, last - now) or 0

if tat then
    tat = tat - back
    if tat >= now then
        used = math.min((tat - now) * was + rest, most)
        if was ~= ARGV[3] or per ~= ARGV[4] then
            used = math.min(math.ceil(used * (period / per)), most)
        end
    end
end

local room = ARGV[5] * period - used
local reach = room + wait * count
local granted, wait_us = cost, 0
local whole -- us from now to the TAT that is to be written

if reach < cost * period then
    granted = reach > 0 and div(reach, period) or 0
end
if granted >= least then
    used = used + granted * period
    room = room - granted * period
    whole, rest = div(used, count), int(fmod(used, count))
    was, per = ARGV[3], ARGV[4]
    wait_us = room < 0 and div_up(-room, count) or 0
else
    granted, wait_us = 0, div_up(least * period - room, count)
    -- The clock was set back, and the rate with it: else nothing would come back
    -- before the old time.
    whole = back > 0 and tat - now
end
if whole then
    call('SET', KEYS[1],
         int(now + whole) .. ' ' .. int(now) .. ' ' .. rest .. ' ' .. was ..
             ' ' .. per,
         'PX', int(div(whole, 1000) + 2))
end
return {granted, wait_us, room > 0 and div(room, period) or 0}
