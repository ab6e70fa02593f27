-- queue_put.lua - pushes items, whatever they are.
-- KEYS: those of queue_shelf.lua
-- ARGV: lane number keep_ms; for each item
--       "DELAY_MS PRIORITY TRIES DEDUP_MS LENGTH_OF_TO " to dedup, in one word; data
-- Answers status, then for each item its id, followed by "d" if it is a duplicate; of
-- FULL: items cap. LOST: the number is over, or the lane not known.
--
-- The answers are kept for keep_ms at least, and twice that at most: from has those of
-- this time, was those of the time before.
--include queue_step
local lane, number, keep_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local kept = call('HGET', FROM, lane) or call('HGET', WAS, lane)
local before, rc, ids = (kept or '0 0 '):match('^(%d+) (%d+) (.*)$')
local items = {}

if not head.last and number ~= 1 then
    return {LOST}
end
-- A full server refuses here, before anything was changed.
if call('HSETNX', FROM, 'begun', int(now)) == 1 then
    call('PEXPIRE', FROM, int(2 * keep_ms))
end

-- "+FIRST COUNT" of a plain push has consecutive ids.
local function read_ids()
    local answer = {}
    local first, many = ids:match('^%+(%d+) (%d+)$')

    for i = 1, many or 0 do
        answer[i] = int(first + i - 1)
    end
    for id in (first and '' or ids):gmatch('[^,]+') do
        answer[#answer + 1] = id
    end
    return answer
end

-- It is written again: who waits for replicas then waits for those that have the push, too.
local function repeat_push(count)
    local answer = read_ids()

    if #answer ~= count then
        return {INVALID}
    end
    call('HSET', FROM, lane, kept)
    table.insert(answer, 1, tonumber(rc))
    return tonumber(rc) == FULL and
           {FULL, int(head.items), int(setting('cap', 1000000))} or answer
end

local function keep_answer(status, answer)
    if now - call('HGET', FROM, 'begun') > keep_ms * 1000 then
        call('RENAME', FROM, WAS)
        call('PEXPIRE', WAS, int(keep_ms))
        call('HSET', FROM, 'begun', int(now))
    end
    call('HSET', FROM, lane, format('%.0f %d %s', number, status,
                                    table.concat(answer, ',')))
    call('PEXPIRE', FROM, int(2 * keep_ms))
end

local function read_items()
    for i = 4, #ARGV, 2 do
        local delay_ms, priority, tries, dedup_ms, to_len, rest =
            ARGV[i]:match('^(%d+) (%-?%d+) (%d+) (%d+) (%d+) (.*)$')

        items[#items + 1] = {
            delay_ms = tonumber(delay_ms), priority = tonumber(priority),
            tries = tonumber(tries), dedup_ms = tonumber(dedup_ms),
            to = rest:sub(1, to_len), dedup = rest:sub(to_len + 1),
            data = ARGV[i + 1]}
    end
end

local function count_fresh()
    local fresh, seen = 0, {}

    for _, item in ipairs(items) do
        local dedup = item.dedup

        if dedup == '' or not seen[dedup] and not dedup_taken(dedup) then
            fresh = fresh + 1
        end
        seen[dedup] = true
    end
    return fresh
end

local function note_dedup(item, dedup_ms)
    call('HSET', IDS, item.dedup, 'a' .. item.id)
    call('ZREM', IDEND, item.dedup)
    call('PERSIST', IDS)
    if dedup_ms > 0 then
        local till = now + dedup_ms * 1000

        call('ZADD', IDEND, int(till), item.dedup)
        call('PERSIST', IDEND)
        due(till)
    end
end

-- An item that comes after all others of the list goes to its end.
local function place_item(item, delay_ms)
    local plain = item.tries == 0 and item.to == '' and item.dedup == '' and
                  #item.data <= DATA_MAX

    if delay_ms > 0 then
        delay(item, now + delay_ms * 1000)
    elseif item.priority ~= 0 or item.to ~= '' and worker_lives(item.to) then
        shelve(item)
    elseif plain then
        call('RPUSH', READY, item.id .. ' ' .. item.data)
    else
        write_item(item)
        call('RPUSH', READY, item.id .. mark_of(item))
    end
end

local function make_item(push)
    local by = dedup_taken(push.dedup)
    local item

    if by then
        return by .. 'd'
    end
    item = new_item(draw(), push.data)
    item.priority, item.tries = push.priority, push.tries
    item.to, item.dedup = push.to, push.dedup
    place_item(item, push.delay_ms)
    if item.dedup ~= '' then
        note_dedup(item, push.dedup_ms)
    end
    head.items, head.pushed = head.items + 1, head.pushed + 1
    push.id = item.id
    return item.id
end

-- If a delayed item is the next one now, a lane that waits must know.
local function serve_push()
    local first, waiting

    for _, item in ipairs(items) do
        if item.to ~= '' and item.id then
            serve(item.to)
        end
    end
    serve()
    first = call('ZRANGE', LATER, '0', '0')[1]
    for _, item in ipairs(items) do
        if first and item.id == first then
            waiting = lane_waiting()
            if waiting then
                ring(waiting, '0')
            end
        end
    end
end

local function push_items()
    local answer, status = {}, OK
    local fresh = count_fresh()

    if fresh > 0 and head.items + fresh > setting('cap', 1000000) then
        status = FULL
        for i = 1, #items do
            answer[i] = '0'
        end
    else
        for i, item in ipairs(items) do
            answer[i] = make_item(item)
        end
    end
    keep_answer(status, answer)
    serve_push()
    table.insert(answer, 1, status)
    return status == FULL and
           {FULL, int(head.items), int(setting('cap', 1000000))} or answer
end

local answer

begin_step()
if kept and number == tonumber(before) then
    answer = repeat_push((#ARGV - 3) / 2)
    serve()
elseif number ~= tonumber(before) + 1 then
    answer = {LOST}
    serve()
else
    read_items()
    answer = push_items()
end
if head.last or answer[1] == OK or answer[1] == FULL then
    end_step()
end
return answer
