-- queue_take.lua - acknowledges items and takes the next ones: the common case.
-- KEYS: list meta out wait kept later
-- ARGV: lane number seen span_ms bell want wait hands; tokens that are acknowledged
-- Answers stamp due_ms, then for each delivery "ID FENCE ATTEMPT" data. "slow" when it
-- is for queue_work.lua to do; nothing was done then. queue_shelf.lua has the form of
-- the keys.
local call, format = redis.call, string.format
-- Integers are written faster than what could have a fraction, where they have 64 bits.
local INT, INT16 = '%d', '%016d'

if format(INT, 1e15) ~= '1000000000000000' then
    INT, INT16 = '%.0f', '%016.0f'
end

local READY, META, OUT, WAIT, KEPT = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local lane, want = ARGV[1], tonumber(ARGV[6])
local at = call('HMGET', META, 'l:' .. lane, 'h:' .. lane, 'last', 'alarm',
                'slow', 'items', 'acked', 'delivered', 'delayed', 'lasting',
                'keep_done')
local time = call('TIME')
local us = time[2]
local now = #us == 6 and time[1] .. us or time[1] .. ('000000' .. us):sub(-6)
local acked = #ARGV - 8
local items = tonumber(at[6] or 0) - acked

-- While the alarm has not come, every lane lives and nothing is due.
if at[5] or not at[1] or at[4] <= now or items == 0 and at[10] == 'w' or
   at[11] and acked > 0 then
    return 'slow'
end

-- The record begins with the number and the stamp of the request before this.
local before = format(INT, ARGV[2] - 1) .. ' ' .. ARGV[3] .. ' '
local till, limit, waits, as, has, old, told = at[1]:match(
    '^(%d+) %d+ %d+ (%d+) %S+ (%d) (%S+) %S+ (%d+)|([^/]*)/(.*)$', #before + 1)

if at[1]:sub(1, #before) ~= before or not till or tonumber(has) > 120 or
   old == '*' then
    return 'slow'
end

-- All that the lane has heard of, and what of it is acknowledged: mostly all.
local have = old == '' and told or told == '' and old or old .. ',' .. told
local fields, kept = {}, {}
local whole = acked > 0 and table.concat(ARGV, ',', 9) == have

for i = 9, #ARGV do
    local token = ARGV[i]

    if not whole then
        local list = ',' .. have .. ','
        local from, to = list:find(',' .. token, 1, true)
        local mark = to and list:sub(to + 1, to + 1)

        if mark == '&' then
            kept[#kept + 1] = token:sub(1, 16)
            kept[#kept + 1] = token:sub(1, 16) .. ':'
            token, to = token .. '&', to + 1
        elseif mark ~= ',' then
            return 'slow'
        end
        have = (list:sub(1, from) .. list:sub(to + 2)):sub(2, -2)
    end
    fields[i - 8] = lane .. ' ' .. token
end
if whole then
    have = ''
end

local answer, tokens, bytes = {'', -1}, {}, 0
local handed = at[2] or nil

-- Tells items that were handed over. Only plain ones without a limit have no more to
-- tell than their data.
if handed then
    local had = {}

    if limit ~= '0' or handed:find('[&%%]') then
        return 'slow'
    end
    for token in handed:gmatch('[^,]+') do
        tokens[#tokens + 1] = token
        had[#had + 1] = lane .. ' ' .. token
    end
    for i, data in ipairs(call('HMGET', OUT, unpack(had))) do
        if not data then
            return 'slow'
        end
        answer[#answer + 1] = tokens[i]
        answer[#answer + 1] = data
        bytes = bytes + #data
    end
end

want = want - #tokens
-- The first write takes no memory, so that a full server refuses pushes only.
if fields[1] then
    call('HDEL', OUT, unpack(fields))
    if kept[1] then
        call('HDEL', KEPT, unpack(kept))
    end
elseif want ~= 1 then
    call('HDEL', META, '')
end

-- The first delivery has the same number as the stamp: each is the next of its kind.
local last = at[3] < now and now or format(INT16, at[3] + 1)
local stamp = last
local delivered, missed = 0, 0
local more = want > 0 and bytes < 1048576

-- Nobody had these before: they are as they were pushed. It goes on past those that the
-- server has lost.
while more do
    local entries, out, size = {}, {}, bytes

    if want == 1 then
        entries[1] = call('LPOP', READY) or nil
    else
        for i, entry in ipairs(call('LRANGE', READY, '0', want - 1)) do
            if size >= 1048576 then
                break
            end
            entries[i] = entry
            size = size + (entry:byte(17) == 32 and #entry - 17 or
                           call('HSTRLEN', KEPT, entry:sub(1, 16)))
        end
        if entries[1] then
            call('LTRIM', READY, #entries, '-1')
        end
    end
    for _, entry in ipairs(entries) do
        local id, mark = entry:sub(1, 16), entry:sub(17, 17)
        local data = mark == ' ' and entry:sub(18) or call('HGET', KEPT, id)

        if data then
            last = delivered == 0 and stamp or format(INT16, last + 1)
            delivered = delivered + 1
            local token = id .. ' ' .. last .. ' 1'

            answer[#answer + 1] = token
            answer[#answer + 1] = data
            token = mark == ' ' and token or token .. mark
            tokens[#tokens + 1] = token
            out[#out + 1] = lane .. ' ' .. token
            out[#out + 1] = mark == ' ' and data or ''
        else
            missed = missed + 1
        end
    end
    if out[1] then
        call('HSET', OUT, unpack(out))
    end
    more = entries[1] and not out[1] and missed < 1000
end
if missed > 0 then
    items = items - missed
    call('HINCRBY', META, 'dropped', missed)
end

if waits == '1' then
    call('ZREM', WAIT, lane)
end

local place = not tokens[1] and ARGV[6] ~= '0' and ARGV[7] == '1'
local until_us, ends = now + ARGV[4] * 1000, tonumber(till)

if place then
    call('ZADD', WAIT, now, lane)
    call('PEXPIRE', WAIT, '86400000')
end
-- A lane is shortened only while it has nothing.
if until_us < ends and (have ~= '' or handed) then
    until_us = ends
end
if until_us < tonumber(at[4]) then
    call('HSET', META, 'alarm', format(INT16, until_us))
end

-- One long text costs less than the pieces of a table.
local record = ARGV[2] .. ' ' .. stamp .. ' ' .. format(INT, until_us) .. ' ' ..
               ARGV[6] .. ' ' .. ARGV[8] .. ' 0 ' .. ARGV[5] ..
               (place and ' 1 ' or ' 0 ') .. as .. ' ' ..
               (acked == 0 and '-' or ('a'):rep(acked)) .. ' ' ..
               format(INT, has - acked + #tokens) .. '|' .. have .. '/' ..
               (tokens[2] and table.concat(tokens, ',') or tokens[1] or '')

call('HSET', META, 'l:' .. lane, record, 'last', last,
     'acked', acked > 0 and format(INT, at[7] + acked) or at[7] or '0',
     'items', acked + missed > 0 and format(INT, items) or at[6] or '0',
     'delivered', delivered > 0 and format(INT, at[8] + delivered) or at[8] or
                  '0')
-- A queue without items goes after a day without a step.
if items == 0 and not at[10] then
    call('HSET', META, 'fades', '1')
    call('PEXPIRE', META, '86400000')
end
if handed then
    call('HDEL', META, 'h:' .. lane)
end

answer[1] = stamp
if at[9] then
    local rank = place and call('ZCARD', WAIT) or 1
    local later = call('ZRANGE', KEYS[6], rank - 1, rank - 1, 'WITHSCORES')[2]

    answer[2] = later and math.max(0, math.ceil((later - now) / 1000)) or -1
end
if missed > 0 and not tokens[1] then
    answer[2] = 0 -- there may be more of them before the next item
end
return answer
