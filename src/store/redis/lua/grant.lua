-- grant.lua - the grant rule of src/store/grant.c, over the keys of one name.
-- Part of other scripts, which call enter() first. Needs `call`.
--
--   lock   hash: the holders
--   party  hash: owner -> a waiter ("w ...") or a tombstone ("t"), and "seq"
--   queue  sorted set: waiters as they are served, seq .. owner by -priority
--   place  sorted set: owner by the end of its place or tombstone, in us
--
-- Only an ask may fail for want of memory: every other step begins with a write
-- that needs none, after which a script runs to its end.
--include fence
--include ring_bell
local CLAIM_MS, PLACE_MS, TOMB_MS = 3000, 3000, 10000
local EXCLUSIVE, SHARED, PERMITS = '0', '1', '2'
local OK, BUSY, LOST, STALE, NOTFOUND, MISMATCH = 0, 1, 3, 4, 5, 6
local INVALID = 18
local CHUNK = 500 -- words that fit into a call
local FOREIGN = {err = 'FOREIGN the key holds something that is not a lock'}

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local lock, party, queue, place, watermark
local roll -- the holders, by owner and in `holders`

local function add(holder)
    roll[holder.owner] = holder
    roll.holders[#roll.holders + 1] = holder
    roll.permits = roll.permits + holder.permits
    roll.capacity = holder.capacity
    roll.exclusive = holder.mode == EXCLUSIVE
end

local function remove(holder)
    local holders = roll.holders

    roll[holder.owner] = nil
    roll.holders = {}
    for _, other in ipairs(holders) do
        if other ~= holder then
            roll.holders[#roll.holders + 1] = other
        end
    end
    roll.permits = roll.permits - holder.permits
    roll.exclusive = false
end

-- An exclusive holder is the whole hash, and its time is that of the key. If a
-- person removed the expiry, the holder has some time until it is renewed.
local function read_exclusive(at)
    local owner, mark = at.owner:match('^(%x+)(.*)$')
    local left_ms = call('PTTL', lock)

    if left_ms < 0 then
        left_ms = 60000
    end
    roll.owner = at.owner
    return {owner = owner, mode = EXCLUSIVE, permits = 1, capacity = 0,
            priority = at.priority or '0', fence = at.fence,
            ttl = at.ttl or '30000',
            till = now + left_ms * 1000, bell = at.bell or '-',
            who = at.who, claim = mark:find('claim') ~= nil,
            left = mark:find('left') ~= nil,
            handed = mark:find('handed') ~= nil}
end

-- Others have two fields each: OWNER and who:OWNER.
local function read_holder(at, owner)
    local fence, till, ttl, permits, priority, state, bell =
        (at[owner] or ''):match(
            '^(%d+) (%d+) (%d+) (%d+) (%-?%d+) (%l+) (%S+)$')

    return fence and {
        owner = owner, mode = at.capacity and PERMITS or SHARED,
        permits = tonumber(permits), capacity = tonumber(at.capacity or 0),
        priority = priority, fence = fence, ttl = ttl, till = tonumber(till),
        bell = bell, who = at['who:' .. owner] or '', claim = state == 'claim',
        left = state == 'left'}
end

-- False when the lock is not one of ours. Changes nothing.
local function load()
    local flat = redis.pcall('HGETALL', lock)
    local at = {}

    roll = {holders = {}, dead = {}, permits = 0, stored = #flat > 0}
    for i = 1, #flat, 2 do
        at[flat[i]] = flat[i + 1]
    end
    if at.owner and at.fence and at.who then
        add(read_exclusive(at))
        return true
    end
    for field in pairs(at) do
        local holder = #field == 32 and read_holder(at, field)

        if holder and holder.till > now then
            add(holder)
        elseif holder then
            roll.dead[#roll.dead + 1] = holder
        end
    end
    table.sort(roll.holders, function(a, b)
        return tonumber(a.fence) < tonumber(b.fence)
    end)
    return not flat.err and (#flat == 0 or at.mode ~= nil)
end

-- Moves on to the name whose keys begin at KEYS[first]; false as load().
local function enter(first, fence_key)
    lock, party, queue, place = KEYS[first], KEYS[first + 1], KEYS[first + 2],
                                KEYS[first + 3]
    watermark = fence_key
    return load()
end

local function read_waiter(owner, record)
    local seq, mode, permits, capacity, priority, ttl, since, bell, who =
        record:match('^w (%d+) (%d) (%d+) (%d+) (%-?%d+) (%d+) (%d+) ' ..
                     '(%S+) (.*)$')

    return seq and {
        owner = owner, seq = seq, mode = mode, permits = tonumber(permits),
        capacity = tonumber(capacity), priority = priority, ttl = ttl,
        since = since, bell = bell, who = who}
end

local function write_waiter(waiter)
    call('HSET', party, waiter.owner,
         format('w %s %s %.0f %.0f %s %s %s %s %s', waiter.seq, waiter.mode,
                waiter.permits, waiter.capacity, waiter.priority, waiter.ttl,
                waiter.since, waiter.bell, waiter.who))
end

-- Drops parties that do not hold, together.
local function forget(owners)
    local places = {}

    for i, record in ipairs(call('HMGET', party, unpack(owners))) do
        local seq = record and record:match('^w (%d+)')

        if seq then
            places[#places + 1] = seq .. owners[i]
        end
    end
    call('ZREM', place, unpack(owners))
    call('HDEL', party, unpack(owners))
    if #places > 0 then
        call('ZREM', queue, unpack(places))
    end
end

local function prune()
    repeat
        local dead = call('ZRANGEBYSCORE', place, '-inf', int(now), 'LIMIT',
                          '0', tostring(CHUNK))

        if #dead > 0 then
            forget(dead)
        end
    until #dead < CHUNK
    for _, holder in ipairs(roll.dead) do
        call('HDEL', lock, holder.owner, 'who:' .. holder.owner)
    end
    if roll.stored and #roll.holders == 0 then
        call('DEL', lock)
        roll.stored = false
    end
end

-- Ends every step: a name without parties leaves nothing behind.
local function settle()
    if call('EXISTS', place) == 0 then
        call('DEL', party)
    end
end

-- The keys of the parties outlive the party that was added last. Each may be new.
local function outlast(span_ms)
    local left_ms = call('PTTL', party)

    if left_ms < span_ms then
        left_ms = 2 * span_ms
        call('PEXPIRE', party, int(left_ms))
    end
    call('PEXPIRE', place, int(left_ms))
    call('PEXPIRE', queue, int(left_ms))
end

-- The lock lasts as long as its longest holder.
local function extend_lock()
    local till = now

    for _, holder in ipairs(roll.holders) do
        till = math.max(till, holder.till)
    end
    call('PEXPIRE', lock, int(math.ceil((till - now) / 1000)))
end

-- The owner of an exclusive lease with its marks. One that has any is not equal to the
-- owner alone, so that release_unqueued.lua, batch.lua and the short way of renewals
-- leave it alone. hand_off.lua reads the marks and releases some of these leases.
local function marked(holder)
    local owner = holder.owner

    if holder.left then
        owner = owner .. ' left'
    elseif holder.claim then
        owner = owner .. ' claim'
    elseif holder.handed then
        owner = owner .. ' handed'
    end
    return call('EXISTS', queue) == 1 and owner .. ' wanted' or owner
end

local function write_mark(holder)
    local owner = marked(holder)

    if owner ~= roll.owner then
        call('HSET', lock, 'owner', owner)
        roll.owner = owner
    end
end

-- Writes the changed fields of a holder.
local function write_holder(holder)
    local state = holder.left and 'left' or holder.claim and 'claim' or 'held'

    if holder.mode == EXCLUSIVE then
        write_mark(holder)
    else
        call('HSET', lock, holder.owner,
             format('%s %.0f %s %.0f %s %s %s', holder.fence, holder.till,
                    holder.ttl, holder.permits, holder.priority, state,
                    holder.bell))
    end
end

local function write_new(holder)
    if holder.mode == EXCLUSIVE then
        roll.owner = marked(holder)
        call('HSET', lock, 'owner', roll.owner, 'fence', holder.fence, 'ttl',
             holder.ttl, 'who', holder.who)
        if holder.bell ~= '-' then
            call('HSET', lock, 'bell', holder.bell)
        end
        if holder.priority ~= '0' then
            call('HSET', lock, 'priority', holder.priority)
        end
    else
        call('HSET', lock, 'mode', holder.mode == SHARED and 'shared' or
             'permits', 'who:' .. holder.owner, holder.who)
        if holder.mode == PERMITS then
            call('HSET', lock, 'capacity', int(holder.capacity))
        end
        write_holder(holder)
    end
    extend_lock()
end

-- A bell is its address or "-", followed by "+" if the holder wants a notice when
-- others are refused.
local function address(holder)
    return holder.bell:match('^%x+')
end

local function ring(holder, news)
    local bell = address(holder)

    if bell then
        ring_bell(watermark, bell, holder.owner .. ' ' .. news .. ' ' ..
                  holder.fence)
    end
end

local function tells(holder)
    return holder.bell:sub(-1) == '+'
end

-- An ask was refused: that of `asker`, if it is one of the holders. A holder that
-- has just come from the queue gets the notice of its grant first, and learns of
-- waiters when it renews.
local function tell(asker)
    for _, holder in ipairs(roll.holders) do
        if tells(holder) and not holder.left and not holder.seq and
           holder.owner ~= asker then
            ring(holder, 'wanted')
        end
    end
end

local function leave_queue(waiter)
    call('ZREM', queue, waiter.seq .. waiter.owner)
    call('ZREM', place, waiter.owner)
    call('HDEL', party, waiter.owner)
end

local function give(waiter, asking)
    if waiter.seq then
        leave_queue(waiter)
    end
    waiter.fence = next_fence(watermark, time)
    waiter.claim = not asking
    waiter.till = now + (asking and waiter.ttl or CLAIM_MS) * 1000
    add(waiter)
    write_new(waiter)
    if not asking then
        ring(waiter, 'granted')
    end
end

local function fits(waiter)
    if waiter.mode == PERMITS then
        return roll.permits + waiter.permits <= waiter.capacity
    elseif waiter.mode == SHARED then
        return not roll.exclusive
    end
    return #roll.holders == 0
end

-- The first waiter of the queue, or nil.
local function head()
    while true do
        local first = call('ZRANGE', queue, '0', '0')[1]
        local owner = first and first:sub(17)
        local record = first and call('HGET', party, owner)
        local waiter = record and read_waiter(owner, record)

        if waiter or not first then
            return waiter
        end
        call('ZREM', queue, first)
    end
end

local function first_to_end()
    local first = roll.holders[1]

    for _, holder in ipairs(roll.holders) do
        if holder.till < first.till then
            first = holder
        end
    end
    return first
end

-- The time until a holder, if there is one, has ended at the latest.
local function wait_ms(holder)
    return holder and math.max(1, math.ceil((holder.till - now) / 1000)) or 0
end

-- Whether an owner that asks again still has a lease: an answer has whole
-- milliseconds, and one that says none would be no lease.
local function holds_on(mine)
    return not mine.left and mine.till - now >= 1000
end

-- Serves the queue from its head. An asker that is not in it comes after all of
-- its priority.
local function serve(asker)
    while not roll.exclusive do
        local waiter = head()

        if asker and not asker.fence then
            if waiter and waiter.owner == asker.owner then
                waiter = asker
            elseif not asker.seq and (not waiter or
                   tonumber(asker.priority) > tonumber(waiter.priority)) then
                waiter = asker
            end
        end
        if not waiter or not fits(waiter) then
            return
        end
        give(waiter, waiter == asker)
    end
end

-- Ends a lease. A ghost has its tombstone already, if it is to have one.
local function finish(holder)
    remove(holder)
    if #roll.holders == 0 then
        call('DEL', lock)
    else
        call('HDEL', lock, holder.owner, 'who:' .. holder.owner)
        extend_lock()
    end
end

-- A tombstone for span_ms.
local function bury(owner, span_ms)
    forget({owner})
    call('HSET', party, owner, 't')
    call('ZADD', place, int(now + span_ms * 1000), owner)
    outlast(span_ms)
end
