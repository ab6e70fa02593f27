-- meet.lua - the roster rule of src/store/meet.c, for some items one after the other.
-- KEYS: for each item roster till new; fence; in a cluster one that is never there
-- ARGV: publish; for each item verb id fence after need ttl_ms flags settle_ms
--       by_us who
--   flags: f fixed, b break, s strict, q quiet
-- Answers for each: status number here live parties left_ms clock_us.
--
--   roster  hash: kind (group, barrier, latch), gen, need, here, broken, and run if
--           strict; =ID: "FENCE FROM REC KIND WHO" of a seat (KIND n: new, i: idle,
--           a: arrived), or "+" of a counted id
--   till    sorted set: ID by the end of its seat
--   new     sorted set: ID of each seat that does not count, by the moment from which
--           it does; that is negative until the seat is used
local call = redis.call
local OK, BUSY, TIMEOUT, LOST, STALE, NOTFOUND, MISMATCH = 0, 1, 2, 3, 4, 5, 6

--include fence
--include meet_plain
--include tell_topic
local count = math.floor((#KEYS - 1) / 3)
local publish, watermark = ARGV[1], KEYS[3 * count + 1]
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- The roster of the item.
local roster, till, new
local kind, gen, parties, here, broken, run, mine

local function draw_number()
    return next_fence(watermark, time)
end

local function load_head(id)
    local at = call('HMGET', roster, 'kind', 'gen', 'need', 'here', 'broken',
                    'run', '=' .. id)

    kind, gen, parties, here = at[1], at[2], tonumber(at[3]) or 0,
                               tonumber(at[4]) or 0
    broken, run, mine = at[5] or '', at[6], at[7]
end

-- `news` is "opened" or "broken".
local function next_generation(news)
    local old = gen

    gen, here = draw_number(), 0
    call('HSET', roster, 'gen', gen, 'here', '0')
    if news == 'broken' then
        local kept = {old}

        for number in broken:gmatch('%d+') do
            kept[#kept + 1] = #kept < 64 and number or nil
        end
        broken = table.concat(kept, ' ')
        call('HSET', roster, 'broken', broken)
    end
    tell_topic(publish, roster, news .. ' ' .. old)
end

local function found_roster(wanted, need)
    if not gen or wanted == 'latch' then
        gen = draw_number()
    end
    kind, parties, here = wanted, need, 0
    call('HSET', roster, 'kind', kind, 'gen', gen, 'need', int(need), 'here',
         '0')
end

local function is_used(record)
    return record and not record:find('^%d+ %d+ %d+ n')
end

-- All seats that end by then, in portions.
local function end_seats(by, my_id)
    local used = false
    local ids

    repeat
        ids = call('ZRANGEBYSCORE', till, '-inf', by, 'LIMIT', '0', '500')
        if #ids > 0 then
            local fields = {}

            for i, id in ipairs(ids) do
                fields[i] = '=' .. id
                mine = id ~= my_id and mine
            end
            for _, record in ipairs(call('HMGET', roster, unpack(fields))) do
                used = used or is_used(record)
            end
            call('HDEL', roster, unpack(fields))
            call('ZREM', till, unpack(ids))
            call('ZREM', new, unpack(ids))
        end
    until #ids < 500
    if used and here > 0 then
        next_generation('broken')
    end
end

local function end_other_runs(my_id)
    local this = call('INFO', 'server'):match('run_id:(%x+)')

    if gen and run ~= this then
        end_seats('+inf', my_id)
        call('HSET', roster, 'run', this)
    end
    run = this
end

-- No seat outlives the keys.
local function keep_until(id, until_us, ttl_ms)
    call('ZADD', till, int(until_us), id)
    if call('PTTL', till) < 2 * ttl_ms then
        for _, key in ipairs({roster, till, new}) do
            call('PEXPIRE', key, int(4 * ttl_ms))
        end
    end
end

-- For how long `need` seats live that count. Seats that do not count are passed over one
-- by one, so not before enough others are known to be there.
local function left_of_many(need)
    local few, seen, from = 0, 0, 0
    local at

    call('ZREMRANGEBYSCORE', new, '0', int(now))
    few = call('ZCARD', new)
    if few == 0 then
        from = need - 1
        seen = from
    elseif call('ZCARD', till) < need + few then
        return 0
    end
    repeat
        local last = few == 0 and from or from + 99

        at = call('ZREVRANGE', till, int(from), int(last), 'WITHSCORES')
        for i = 1, #at, 2 do
            if few == 0 or not call('ZSCORE', new, at[i]) then
                seen = seen + 1
                if seen == need then
                    return math.floor((at[i + 1] - now) / 1000)
                end
            end
        end
        from = last + 1
    until #at == 0
    return 0
end

local function left_of_first()
    local at = call('ZRANGE', till, '0', '0', 'WITHSCORES')

    return at[2] and math.floor((at[2] - now) / 1000) or 0
end

local function outcome(number)
    local kept, oldest = 0, number

    if number == gen then
        return BUSY, number
    end
    for old in broken:gmatch('%d+') do
        if old == number then
            return STALE, number
        end
        kept, oldest = kept + 1, old
    end
    return kept == 64 and number + 0 < oldest + 0 and LOST or OK, number
end

local function take_seat(item)
    local fixed = item.flags:find('f')
    local wanted = fixed and 'barrier' or 'group'
    local need = fixed and item.need or 0
    local first_ms = math.min(item.ttl_ms, 3000)
    local seats = call('ZCARD', till)
    local number

    if item.by > 0 and now > item.by then
        return TIMEOUT
    end
    if not gen or seats == 0 and kind ~= 'latch' and
       (kind ~= wanted or parties ~= need) then
        found_roster(wanted, need)
        if run then
            call('HSET', roster, 'run', run)
        end
    end
    if kind ~= wanted or parties ~= need then
        return MISMATCH
    end
    if mine then
        return OK, mine:match('^%d+')
    end
    if fixed and seats >= need then
        return BUSY
    end
    number = draw_number()
    call('HSET', roster, '=' .. item.id,
         number .. ' 0 ' .. number .. ' n ' .. item.who)
    call('ZADD', new, int(-(now + item.settle_ms * 1000)), item.id)
    keep_until(item.id, now + first_ms * 1000, item.ttl_ms)
    -- It has seats of longer ttls too, and keep_until may have left it alone.
    call('PEXPIRE', new, int(call('PTTL', till)))
    return OK, number
end

local function count_id(item)
    if not gen or kind ~= 'latch' and call('ZCARD', till) == 0 then
        if item.after ~= '0' then
            return STALE
        end
        found_roster('latch', item.need)
    end
    if kind ~= 'latch' or parties ~= item.need then
        return MISMATCH
    elseif item.after ~= '0' and item.after ~= gen then
        return STALE
    elseif here >= parties then
        return OK
    elseif mine then
        return BUSY
    end
    call('HSET', roster, '=' .. item.id, '+')
    here = call('HINCRBY', roster, 'here', '1')
    call('PEXPIRE', roster, int(item.ttl_ms))
    if here < parties then
        return BUSY
    end
    tell_topic(publish, roster, 'opened ' .. gen)
    return OK
end

local function look_at(item)
    if not gen then
        return NOTFOUND
    elseif parties ~= 0 and item.need ~= 0 and parties ~= item.need then
        return MISMATCH
    end
    return kind == 'latch' and here < parties and BUSY or OK
end

local function reset_latch(item)
    if not gen then
        return NOTFOUND
    elseif kind ~= 'latch' then
        return MISMATCH
    end
    call('DEL', roster)
    found_roster('latch', parties)
    call('PEXPIRE', roster, int(item.ttl_ms))
    return OK
end

local function leave_seat(item, rec, state)
    local quiet = item.flags:find('q') and not (state == 'a' and rec == gen)

    call('HDEL', roster, '=' .. item.id)
    call('ZREM', till, item.id)
    call('ZREM', new, item.id)
    if is_used(mine) and here > 0 and not quiet then
        next_generation('broken')
    end
    return OK
end

-- The first use of a seat: from then on, or once it has settled, it counts.
local function begin_use(item)
    local counts = call('ZSCORE', new, item.id)

    if counts and -counts > now then
        call('ZADD', new, int(-counts), item.id)
    elseif counts then
        call('ZREM', new, item.id)
    end
end

local function use_seat(item)
    local fence, from, rec, state, who
    local until_us = now + item.ttl_ms * 1000
    local begun, lost_opening

    if item.verb == 'keep' and item.by > 0 and now > item.by then
        return TIMEOUT
    end
    if mine then
        fence, from, rec, state, who = mine:match('^(%d+) (%d+) (%d+) (%l) (.*)$')
    end
    if not fence or fence ~= item.fence then
        return LOST
    elseif parties ~= 0 and item.need ~= 0 and parties ~= item.need then
        return MISMATCH
    elseif item.verb == 'leave' then
        return leave_seat(item, rec, state)
    elseif item.verb ~= 'keep' and kind ~= 'barrier' then
        return MISMATCH
    end

    local function write(now_from, now_rec, now_state)
        from, rec, state = now_from, now_rec, now_state
        call('HSET', roster, '=' .. item.id,
             table.concat({fence, from, rec, state, who}, ' '))
    end

    if state == 'n' then
        begin_use(item)
        write(from, rec, 'i')
    end
    if tonumber(call('ZSCORE', till, item.id) or 0) < until_us then
        keep_until(item.id, until_us, item.ttl_ms)
    end
    if item.verb == 'keep' then
        return OK
    end

    begun = rec ~= item.after
    lost_opening = state == 'a' and not begun and rec == gen
    if lost_opening or begun and from ~= item.after then
        return LOST
    elseif begun and state == 'i' then
        return TIMEOUT, rec
    elseif item.verb == 'arrive' then
        if not begun then
            here = call('HINCRBY', roster, 'here', '1')
            write(item.after, gen, 'a')
            if here >= parties then
                next_generation('opened')
            end
        end
        return outcome(rec)
    elseif begun and rec ~= gen then
        return outcome(rec)
    elseif begun and item.flags:find('b') then
        next_generation('broken')
    elseif begun then
        here = call('HINCRBY', roster, 'here', '-1')
    end
    write(item.after, draw_number(), 'i')
    return TIMEOUT, rec
end

local verbs = {sit = take_seat, count = count_id, look = look_at,
               reset = reset_latch}

local function meet(i)
    local at = 10 * i - 8
    local item = {
        verb = ARGV[at], id = ARGV[at + 1], fence = ARGV[at + 2],
        after = ARGV[at + 3], need = tonumber(ARGV[at + 4]),
        ttl_ms = tonumber(ARGV[at + 5]), flags = ARGV[at + 6],
        settle_ms = tonumber(ARGV[at + 7]), by = tonumber(ARGV[at + 8]),
        who = ARGV[at + 9],
    }
    local status, number, live
    local left_ms = 0

    roster, till, new = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
    if not verbs[item.verb] then
        call('HDEL', roster, '') -- a full server lets what follows write too
    end
    load_head(item.id)
    if run or item.flags:find('s') then
        end_other_runs(item.id)
    end
    end_seats(int(now), item.id)
    status, number = (verbs[item.verb] or use_seat)(item)
    live = call('ZCARD', till)
    if item.verb == 'keep' and status == OK then
        local need = parties ~= 0 and parties or item.need

        left_ms = need > 0 and left_of_many(need) or 0
    elseif item.verb == 'arrive' and status == BUSY then
        left_ms = left_of_first()
    end
    if live == 0 and gen and kind ~= 'latch' then
        call('DEL', roster)
    end
    return {status, number or gen or '0', here, live, parties, left_ms, now}
end

local answers = {}

for i = 1, count do
    answers[i] = meet(i)
end
return answers
