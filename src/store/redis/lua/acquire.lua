-- acquire.lua - asks for a lease.
-- KEYS: lock party queue place fence
-- ARGV: owner ttl_ms who [bell flags [mode permits capacity priority]]
--       bell is "-" when there is none, with "+" for a notice when others are refused;
--       flags are "q" to join the queue and "b" to barge
-- Answers the fence when a free name was granted, else a list:
--   OK fence left_ms claim | BUSY fence left_ms queued ahead who
--   LOST | MISMATCH capacity
local call, fence_key = redis.call, KEYS[5]

if ARGV[5] == 'q' and not ARGV[6] then
    --include wait_plain
end
--include grant_free
--include grant
if not enter(1, fence_key) then
    return FOREIGN
end
prune()

local bell, flags = ARGV[4] or '-', ARGV[5] or ''

local asker = {owner = ARGV[1], ttl = ARGV[2], who = ARGV[3], bell = bell,
               mode = ARGV[6] or EXCLUSIVE, permits = tonumber(ARGV[7] or 1),
               capacity = tonumber(ARGV[8] or 0), priority = ARGV[9] or '0',
               since = int(now)}
local flags = ARGV[5] or '-'
local queues = flags:find('q') ~= nil
local mine = roll[asker.owner]
local record = call('HGET', party, asker.owner)
local waiter = record and read_waiter(asker.owner, record)

local function join()
    if not waiter then
        asker.seq = format('%016.0f', call('HINCRBY', party, 'seq', '1'))
        call('ZADD', queue, int(-tonumber(asker.priority)),
             asker.seq .. asker.owner)
    end
    if not waiter or asker.bell ~= bell then
        asker.bell = bell
        write_waiter(asker)
    end
    call('ZADD', place, int(now + PLACE_MS * 1000), asker.owner)
    outlast(PLACE_MS)
    if roll.exclusive then
        write_mark(roll.holders[1])
    end
end

local function refuse()
    local ahead, first

    tell()
    if waiter then
        ahead = call('ZRANK', queue, waiter.seq .. waiter.owner)
    else
        ahead = call('ZCOUNT', queue, '-inf', int(-tonumber(asker.priority)))
    end
    if queues then
        join()
    elseif waiter then
        leave_queue(waiter)
        serve()
    end
    settle()
    first = first_to_end()
    return {BUSY, call('GET', watermark) or '0', wait_ms(first),
            queues and 1 or 0, ahead, first and first.who or ''}
end

if mine and holds_on(mine) then
    -- A write, so that a wait for replicas covers the write that made it mine.
    extend_lock()
    serve()
    settle()
    return {OK, mine.fence, math.floor((mine.till - now) / 1000),
            mine.claim and 1 or 0}
end
if mine or record == 't' then
    serve()
    settle()
    return {LOST}
end

-- All holders and waiters are of one kind.
local other = roll.holders[1] or head()

if other and other.capacity ~= asker.capacity then
    if waiter then
        leave_queue(waiter)
    end
    serve()
    settle()
    return {MISMATCH, int(other.capacity)}
end
if waiter and call('ZSCORE', queue, waiter.seq .. waiter.owner) then
    asker = waiter
else
    waiter = nil
end
if flags:find('b') and fits(asker) then
    give(asker, true)
end
serve(asker)
if not asker.fence then
    return refuse()
end
settle()
return {OK, asker.fence, tonumber(asker.ttl), 0}
