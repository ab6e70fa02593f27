-- queue_rule.lua - the rule of queues of src/store/deliver.c and deliver_item.c. Part of
-- other scripts; they call begin_step() first and end_step() last.
--include queue_shelf

-- ---- dedup ids: ids has "a"ID while the item lives, "g"ID afterwards. An item that the
-- server has lost has its id no longer than its window.

local function lives(by)
    return by:sub(1, 1) == 'a' and call('HEXISTS', KEPT, by:sub(2) .. ':') == 1
end

local function dedup_taken(dedup)
    local by = dedup ~= '' and call('HGET', IDS, dedup)

    if by and (lives(by) or
               tonumber(call('ZSCORE', IDEND, dedup) or 0) > now) then
        return by:sub(2)
    end
end

local function free_dedup(item)
    if item.dedup == '' or
       call('HGET', IDS, item.dedup) ~= 'a' .. item.id then
        return
    end
    if tonumber(call('ZSCORE', IDEND, item.dedup) or 0) > now then
        call('HSET', IDS, item.dedup, 'g' .. item.id)
    else
        call('HDEL', IDS, item.dedup)
        call('ZREM', IDEND, item.dedup)
    end
end

-- ---- the ways of an item

-- Makes it ready in its place: for its worker if that lives, else for everybody.
local function shelve(item)
    write_item(item)
    if item.to ~= '' and worker_lives(item.to) then
        call('ZADD', OWN, '0', own_member(item))
        change_load(item.to, 1)
    else
        call('ZADD', NEXT, int(-item.priority), item.place .. item.id)
    end
end

local function delay(item, moment)
    write_item(item)
    call('ZADD', LATER, int(moment), item.id)
    if item.attempts > 0 then
        head.retries = head.retries + 1
    end
    due(moment)
end

local function forget(item)
    free_dedup(item)
    drop_kept(item)
    head.items = head.items - 1
end

-- Records of done items, the last at the end: "ID US ATTEMPTS LOST PRIORITY LENGTH_OF_TO
-- LENGTH_OF_DEDUP " to dedup result.
local function trim_done()
    call('LTRIM', DONE, int(-setting('keep_done', 0)), '-1')
end

local function keep_done(item, result)
    if head.keep_done then
        call('RPUSH', DONE,
             format('%s %.0f %d %d %d %d %d %s%s%s', item.id, now, item.attempts,
                    item.lost, item.priority, #item.to, #item.dedup, item.to,
                    item.dedup, result))
        trim_done()
    end
end

local function drop_dead(id)
    call('ZREM', DEAD, id)
    call('HDEL', KEPT, id, id .. ':')
end

local DROP_EACH = 64 -- dead letters that one death drops

local function bury(item)
    local newest = call('ZREVRANGE', DEAD, '0', '0', 'WITHSCORES')[2]

    free_dedup(item)
    write_item(item)
    call('ZADD', DEAD, int(math.max(now, (tonumber(newest) or 0) + 1)), item.id)
    head.items, head.died = head.items - 1, head.died + 1
    for _ = 1, math.min(DROP_EACH,
                        call('ZCARD', DEAD) - setting('deads', 10000)) do
        drop_dead(call('ZRANGE', DEAD, '0', '0')[1])
        head.dropped = head.dropped + 1
    end
end

-- Ends a delivery; how: "nack", "lost", "unbegun" or "dead".
local function return_item(item, how, delay_ms, reason)
    if item.gone then
        return miss_item()
    end

    local tries = item.tries > 0 and item.tries or setting('tries', 16)
    local dead = how == 'dead'

    if how == 'unbegun' then
        item.attempts = item.attempts - 1
    else
        dead = dead or item.attempts >= tries
        item.reason = reason
    end
    if how == 'lost' then
        head.lost, item.lost = head.lost + 1, item.lost + 1
        dead = dead or item.lost >= setting('lost_max', 4)
        delay_ms = item.lost < 2 and 0 or item.lost > 6 and 60000 or
                   1000 * 2 ^ (item.lost - 1)
    elseif how == 'nack' then
        head.nacked = head.nacked + 1
    end
    if dead then
        bury(item)
    elseif delay_ms > 0 then
        delay(item, now + delay_ms * 1000)
    else
        shelve(item)
    end
end

-- Takes a delivery from its lane and returns its item.
local function take_back(name, text, how, delay_ms, reason)
    local item = out_item(name, text)

    out_drop(name, text)
    return_item(item, how, delay_ms, reason)
end

-- The first for everybody: its priority, place and id, and a function that takes it.
local function first_for_all()
    local first = call('ZRANGE', NEXT, '0', '0', 'WITHSCORES')
    local entry = call('LINDEX', READY, '0')
    local id = entry and entry:sub(1, 16)

    if first[1] and (not entry or tonumber(first[2]) < 0 or
                     tonumber(first[2]) == 0 and first[1] < id .. id) then
        return -first[2], first[1], function()
            call('ZREM', NEXT, first[1])
            return read_item(first[1]:sub(17))
        end
    elseif entry then
        return 0, id .. id, function()
            call('LPOP', READY)
            return listed_item(entry)
        end
    end
end

local function first_for(worker)
    local from, to = own_ends(worker)
    local member = call('ZRANGEBYLEX', OWN, from, to, 'LIMIT', '0', '1')[1]

    if member then
        return 2147483647 - member:sub(-42, -33), member:sub(-32), function()
            call('ZREM', OWN, member)
            change_load(worker, -1)
            return read_item(member:sub(-16))
        end
    end
end

-- The first of the worker with most; half of these, rounded up, can go at once.
local function steal(robbing)
    local take, _

    if not robbing.worker then
        local most = call('ZREVRANGE', LOAD, '0', '0', 'WITHSCORES')[2]

        if not most then
            return nil
        end
        robbing.worker = call('ZRANGEBYSCORE', LOAD, most, most, 'LIMIT', '0',
                              '1')[1]
        robbing.left = math.floor((most + 1) / 2)
    end
    if robbing.left == 0 then
        return nil
    end
    robbing.left = robbing.left - 1
    _, _, take = first_for(robbing.worker)
    if not take then
        call('ZREM', LOAD, robbing.worker)
    end
    return take
end

local function is_held_back()
    return head.paused or
           head.serial and (head.retries > 0 or call('EXISTS', OUT) == 1)
end

-- Finds the next item for a worker; a function that takes it, or nil.
local function find_next(as, robbing)
    local priority, place, take, mine, since, own

    if is_held_back() then
        return nil
    end
    priority, place, take = first_for_all()
    if as ~= '' then
        mine, since, own = first_for(as)
    end
    if own and (not take or mine > priority or
                mine == priority and since < place) then
        return own
    end
    return take or steal(robbing)
end

-- Delivers it to the lane; told: "a" by this answer, "u" not yet.
local function give(item, lane, told)
    local text

    item.attempts = item.attempts + 1
    item.fence = draw()
    text = format('%s %s %d%s', item.id, item.fence, item.attempts,
                  mark_of(item))
    call('HSET', OUT, lane.name .. ' ' .. text, item.kept and '' or item.data)
    if lane.limit > 0 then
        call('ZADD', LIMIT, int(now + lane.limit * 1000), lane.name .. ' ' .. text)
        due(now + lane.limit * 1000)
    end
    head.delivered = head.delivered + 1
    return add_entry(lane, text, told)
end

-- In a cluster a bell has a channel for each slot. A notice is a hint: whether it can be
-- sent changes nothing.
local function ring(lane, fence)
    local tag = KEYS[#KEYS]:match('^dibs:none:({.*})$')
    local text = ('0'):rep(16) .. lane.name .. ' items ' .. fence
    local heard

    if lane.bell ~= '-' then
        heard = tag and redis.pcall('SPUBLISH', 'dibs:bell:' .. tag .. ':' ..
                                    lane.bell, text)
        if type(heard) ~= 'number' or heard == 0 then
            redis.pcall('PUBLISH', 'dibs:bell:' .. lane.bell, text)
        end
    end
end

-- Takes up to `want` for a lane, and shows each to `each`.
local function take_items(lane, want, told, bytes, each)
    local robbing = {}
    local taken = 0

    while taken < want and bytes < 1048576 do
        local take = find_next(lane.as, robbing)
        local item = take and take()

        if not take then
            break
        elseif item then
            each(item, give(item, lane, told))
            bytes = bytes + (item.data and #item.data or
                             call('HSTRLEN', KEPT, item.id))
            taken = taken + 1
        else
            miss_item()
        end
    end
    return taken
end

-- (9) for the lanes of a worker, or for all that wait.
local function serve(as)
    local lane = lane_waiting(as)

    while lane do
        local taken = take_items(lane, lane.want, 'u', 0, function(item)
            ring(lane, item.fence)
        end)

        if taken == 0 then
            return
        end
        call('ZREM', WAIT, lane.name)
        write_lane(lane)
        lane = lane_waiting(as)
    end
end

-- ---- what has run out

-- Makes some items of a worker that is gone everybody's, in their old places.
local function free_items(worker)
    local from, to = own_ends(worker)
    local members = call('ZRANGEBYLEX', OWN, from, to, 'LIMIT', '0', int(MOST))

    for _, member in ipairs(members) do
        call('ZADD', NEXT, int(member:sub(-42, -33) - 2147483647),
             member:sub(-32))
        call('ZREM', OWN, member)
    end
    if #members > 0 then
        change_load(worker, -#members)
    end
    return #members == MOST
end

local function free_orphans()
    local left = {}

    for worker in (head.orphans or ''):gmatch('%x+') do
        if not worker_lives(from_hex(worker)) and free_items(from_hex(worker)) then
            left[#left + 1] = worker
        end
    end
    head.orphans = #left > 0 and table.concat(left, ',') or nil
    if head.orphans then
        due(now)
    end
end

-- All that is out to a lane, by fence, with the answer that has it.
local function all_entries(lane)
    local all = {}

    if lane.many then
        for _, field in ipairs(call('HKEYS', OUT)) do
            local text = field:sub(18)

            if field:sub(1, 16) == lane.name then
                all[#all + 1] = lane.by[text:match('^[%d ]+')] or
                                {text = text, told = 'o'}
            end
        end
        table.sort(all, function(a, b)
            return a.text:sub(18, 33) < b.text:sub(18, 33)
        end)
        return all
    end
    for _, entry in ipairs(lane.entries) do
        all[#all + 1] = not entry.gone and entry or nil
    end
    return all
end

-- The items of these, which are out no longer.
local function take_all(lane, entries)
    local items = {}

    for from = 1, #entries, MOST do
        local fields = {}

        for i = from, math.min(#entries, from + MOST - 1) do
            fields[#fields + 1] = lane.name .. ' ' .. entries[i].text
        end
        for i, data in ipairs(call('HMGET', OUT, unpack(fields))) do
            items[#items + 1] = out_item(lane.name, entries[from + i - 1].text,
                                         data)
        end
        call('HDEL', OUT, unpack(fields))
        call('ZREM', LIMIT, unpack(fields))
    end
    return items
end

-- The lane ends, and all that it had comes back; how: "lost" or "unbegun". Answers how
-- many these were.
local function end_lane(lane, how)
    local charged, all = 0, all_entries(lane)
    local left = {}

    call('HDEL', META, 'l:' .. lane.name, 'h:' .. lane.name)
    call('ZREM', WAIT, lane.name)
    head.lanes = head.lanes - 1
    for _, name in ipairs(lane.as ~= '' and lanes_of(lane.as) or {}) do
        left[#left + 1] = name ~= lane.name and name or nil
    end
    if lane.as ~= '' then
        write_lanes_of(lane.as, left)
    end
    for i, item in ipairs(take_all(lane, all)) do
        local kind = 'unbegun'

        if all[i].told ~= 'u' and how == 'lost' and
           (lane.hands == 0 or charged < lane.hands) then
            kind, charged = 'lost', charged + 1
        end
        return_item(item, kind, 0, 'its client was lost')
    end
    if lane.as ~= '' and not worker_lives(lane.as) then
        head.orphans = (head.orphans and head.orphans .. ',' or '') ..
                       to_hex(lane.as)
        free_orphans()
    end
    return #all
end
