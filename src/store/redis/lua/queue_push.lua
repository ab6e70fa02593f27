-- queue_push.lua - pushes plain items: short, without delay, priority, address, tries
-- and dedup id.
-- KEYS: list meta wait out from
-- ARGV: lane number keep_ms data...
-- Answers the first id; the others follow it. "slow" when it is for queue_put.lua to
-- do; nothing was done then. queue_shelf.lua has the form of the keys.
local call, format = redis.call, string.format
-- Integers are written faster than what could have a fraction, where they have 64 bits.
local INT, INT16 = '%d', '%016d'

if format(INT, 1e15) ~= '1000000000000000' then
    INT, INT16 = '%.0f', '%016.0f'
end

local META, WAIT, OUT, FROM = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local at = call('HMGET', META, 'last', 'alarm', 'slow', 'items', 'pushed', 'cap',
                'fades', 'delivered')
local from = call('HMGET', FROM, ARGV[1], 'begun')
local count = #ARGV - 3
local time = call('TIME')
local us = time[2]
local stamp = #us == 6 and time[1] .. us or time[1] .. ('000000' .. us):sub(-6)
local items = tonumber(at[4] or 0) + count

-- While the alarm has not come, every lane lives and nothing is due.
if at[3] or not at[1] or at[2] <= stamp or not from[1] or
   from[1]:match('^%d+') + 1 ~= tonumber(ARGV[2]) or
   stamp - from[2] > ARGV[3] * 1000 or items > tonumber(at[6] or 1000000) then
    return 'slow'
end

local id = at[1] < stamp and stamp or format(INT16, at[1] + 1)
local first = tonumber(id)
local last, rest = first + count - 1, 1
local lanes = call('ZREVRANGE', WAIT, '0', count - 1)
local rings

-- Hands the first items to the lanes that wait: those that asked last first.
if lanes[1] then
    local out, unheard, gone = {}, {}, {}

    rings = {}
    for _, lane in ipairs(lanes) do
        local record = call('HMGET', META, 'l:' .. lane, 'h:' .. lane)
        local want, limit, bell = (record[1] or ''):match(
            '^%d+ %d+ %d+ (%d+) %d+ (%d+) (%S+)')
        local tokens = {record[2] or nil}

        if not want or limit ~= '0' then
            return 'slow'
        end
        for _ = 1, math.min(want, count - rest + 1) do
            local fence = format(INT16, last + 1)

            last = last + 1
            tokens[#tokens + 1] = format(INT16 .. ' %s 1', first + rest - 1, fence)
            out[#out + 1] = lane .. ' ' .. tokens[#tokens]
            out[#out + 1] = ARGV[3 + rest]
            rings[#rings + 1] = {lane, bell, fence}
            rest = rest + 1
        end
        unheard[#unheard + 1] = 'h:' .. lane
        unheard[#unheard + 1] = table.concat(tokens, ',')
        gone[#gone + 1] = lane
        if rest > count then
            break
        end
    end
    -- A full server refuses the first of these.
    call('HSET', OUT, unpack(out))
    call('HSET', META, unpack(unheard))
    call('ZREM', WAIT, unpack(gone))
end

if count == 1 and rest == 1 then
    call('RPUSH', KEYS[1], id .. ' ' .. ARGV[4])
elseif rest <= count then
    local entries = {}

    for i = rest, count do
        entries[#entries + 1] = format(INT16, first + i - 1) .. ' ' .. ARGV[3 + i]
    end
    call('RPUSH', KEYS[1], unpack(entries))
end
if at[7] then
    call('PERSIST', META)
    call('HDEL', META, 'fades')
end
if rest > 1 then
    call('HSET', META, 'delivered', format(INT, at[8] + rest - 1))
end
call('HSET', META, 'last', last == first and id or format(INT16, last),
     'items', format(INT, items), 'pushed', format(INT, at[5] + count))
call('HSET', FROM, ARGV[1], ARGV[2] .. ' 0 +' .. id .. ' ' .. count)
-- In a cluster a bell has a channel for each slot. A notice is a hint: whether it can be
-- sent changes nothing.
for _, to in ipairs(rings or {}) do
    local lane, bell, fence = unpack(to)
    local tag = KEYS[#KEYS]:match('^dibs:none:({.*})$')
    local text = ('0'):rep(16) .. lane .. ' items ' .. fence
    local heard = tag and redis.pcall('SPUBLISH', 'dibs:bell:' .. tag .. ':' ..
                                      bell, text)

    if bell ~= '-' and (type(heard) ~= 'number' or heard == 0) then
        redis.pcall('PUBLISH', 'dibs:bell:' .. bell, text)
    end
end
return id
