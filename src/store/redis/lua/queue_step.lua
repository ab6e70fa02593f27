-- queue_step.lua - the beginning and the end of a step on a queue: ends what has run
-- out, makes ready what is due, and writes the head. Part of other scripts.
--include queue_rule
local FEW = 500 -- fields of meta that every step may read
local PAUSE_US = 250000 -- between two looks at more than that

-- Ends the lanes that have run out. It reads all lanes.
local function end_late_lanes()
    local scanned = tonumber(head.scanned or 0)
    local late, returned = {}, 0
    local flat

    if call('HLEN', META) > FEW and scanned <= now and
       now < scanned + PAUSE_US then
        due(scanned + PAUSE_US)
        return
    end
    head.scanned = int(now)
    flat = call('HGETALL', META)
    for i = 1, #flat, 2 do
        local name = flat[i]:match('^l:(%x+)$')
        local till = name and tonumber(flat[i + 1]:match('^%d+ %d+ (%d+)'))

        if till and till <= now then
            late[#late + 1] = {name = name, till = till}
        elseif till then
            due(till)
        end
    end
    table.sort(late, function(a, b)
        return a.till < b.till
    end)
    for i = 1, #late do
        if i > MOST or returned >= 10 * MOST then
            due(now) -- the rest is for the next step
            break
        end
        returned = returned + end_lane(read_lane(late[i].name), 'lost')
    end
end

-- Takes a delivery out of the record of its lane. Answers which answer told it, or nil
-- if it is out no longer.
local function leave_lane(field)
    local name, text = field:sub(1, 16), field:sub(18)
    local lane = call('HEXISTS', OUT, field) == 1 and read_lane(name)
    local entry = lane and find_entry(lane, text:match('^[%d ]+'))

    if entry then
        drop_entry(lane, entry)
        write_lane(lane)
        return entry.told
    end
end

-- Returns items that passed their limit; entries of settled ones are stale.
local function end_late_items()
    for _, field in ipairs(call('ZRANGEBYSCORE', LIMIT, '-inf', int(now),
                                'LIMIT', '0', int(MOST))) do
        local told = leave_lane(field)

        call('ZREM', LIMIT, field)
        if told then
            take_back(field:sub(1, 16), field:sub(18),
                      told == 'u' and 'unbegun' or 'lost', 0,
                      'it was not settled within its limit')
        end
    end
end

local function end_windows()
    for _, dedup in ipairs(call('ZRANGEBYSCORE', IDEND, '-inf', int(now),
                                'LIMIT', '0', int(MOST))) do
        call('ZREM', IDEND, dedup)
        if (call('HGET', IDS, dedup) or ''):sub(1, 1) == 'g' then
            call('HDEL', IDS, dedup)
        end
    end
end

-- An item that is due gets the place of that moment; one that held up a serial queue
-- meanwhile has its old place.
local function promote_due()
    local list = call('ZRANGEBYSCORE', LATER, '-inf', int(now), 'WITHSCORES',
                      'LIMIT', '0', int(MOST))

    for i = 1, #list, 2 do
        local item = read_item(list[i])

        if item then
            later_drop(item)
            if not head.serial or item.attempts == 0 then
                item.place = int16(list[i + 1])
            end
            shelve(item)
        else
            later_miss(list[i])
        end
    end
end

-- The server has lost the head with all lanes: what was out comes back, and what is due is
-- looked for.
local function mend_head()
    head.items = count_items()
    alarm = head.items > 0 and 0 or alarm
    if not head.keep_done then
        call('DEL', DONE)
    end
    for _, field in ipairs(call('HKEYS', OUT)) do
        take_back(field:sub(1, 16), field:sub(18), 'unbegun', 0)
    end
end

-- The alarm is a lower bound of the end of every lane, delay, limit and window. So
-- nothing is due while it has not come.
local function begin_step()
    if not head.last then
        mend_head()
    end
    if alarm > now then
        return
    end
    alarm = NEVER
    end_late_lanes()
    end_late_items()
    end_windows()
    promote_due()
    free_orphans()
    for _, key in ipairs({LATER, LIMIT, IDEND}) do
        due(tonumber(call('ZRANGE', key, '0', '0', 'WITHSCORES')[2] or NEVER))
    end
end

local function has_settings()
    return head.paused or head.serial or head.cap or head.tries or head.deads or
           head.lost_max or head.keep_done
end

-- A queue without items, dead letters and settings goes after a day without a step, its
-- dedup ids with the last window, which may be later.
local function fade()
    if head.items == 0 and head.lasting ~= '1' then
        local newest = call('ZREVRANGE', IDEND, '0', '0', 'WITHSCORES')[2]
        local left_ms = math.ceil(((newest or 0) - now) / 1000)

        head.fades = '1'
        call('PEXPIRE', META, int(FADES_MS))
        call('DEL', LIMIT)
        for _, key in ipairs({IDS, IDEND}) do
            call('PEXPIRE', key, int(math.max(1, left_ms)))
        end
    elseif head.fades then
        head.fades = nil
        for _, key in ipairs({META, IDS, IDEND}) do
            call('PERSIST', key)
        end
    end
end

-- Ends every step that may have changed something. "slow" sends the plain steps the long
-- way: something is to be compared with the list, or nothing may be delivered.
local function end_step()
    local fields, gone = {}, {''}

    head.last, head.alarm = int16(last), int16(alarm)
    head.slow = (head.paused or head.serial or
                 call('EXISTS', NEXT, OWN) > 0) and '1' or nil
    head.delayed = call('EXISTS', LATER) == 1 and '1' or nil
    head.lasting = (has_settings() or head.long or call('EXISTS', DEAD) == 1) and
                   '1' or call('EXISTS', IDEND, LIMIT) > 0 and 'w' or nil
    for _, name in ipairs(COUNTS) do
        fields[#fields + 1] = name
        fields[#fields + 1] = int(head[name])
    end
    call('HSET', META, unpack(fields))
    fade()
    fields = {}
    for _, name in ipairs(OTHERS) do
        if head[name] then
            fields[#fields + 1] = name
            fields[#fields + 1] = head[name]
        else
            gone[#gone + 1] = name
        end
    end
    call('HDEL', META, unpack(gone))
    call('HSET', META, unpack(fields))
end
