-- queue_shelf.lua - the lanes and items of one queue, over its keys. Part of other
-- scripts. docs/keys.md has the form of each key.
local call, format = redis.call, string.format
local READY, META, OUT, WAIT, KEPT, NEXT, LATER, DEAD, IDS, IDEND, OWN, LOAD,
      LIMIT, FROM, WAS, DONE = unpack(KEYS)
local OK, BUSY, LOST, NOTFOUND, FULL, INVALID = 0, 1, 3, 5, 9, 18
local NEVER = 9007199254740991
local DATA_MAX = 1024 -- longer data is moved by its id alone
local LISTED_MAX = 128 -- deliveries that the record of a lane lists
local MOST = 1000 -- of what one step moves
local FADES_MS = 86400000

local COUNTS = {'items', 'pushed', 'delivered', 'acked', 'nacked', 'lost',
                'died', 'dropped', 'purged', 'lanes', 'retries'}
local OTHERS = {'last', 'alarm', 'slow', 'delayed', 'lasting', 'fades', 'long',
                'scanned', 'orphans', 'paused', 'serial', 'cap', 'tries',
                'deads', 'lost_max', 'keep_done'}

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local head = {}

local function load_head()
    local counts = call('HMGET', META, unpack(COUNTS))
    local others = call('HMGET', META, unpack(OTHERS))

    for i, name in ipairs(COUNTS) do
        head[name] = tonumber(counts[i] or 0)
    end
    for i, name in ipairs(OTHERS) do
        head[name] = others[i] or nil
    end
end

load_head()

local last, alarm = tonumber(head.last or 0), tonumber(head.alarm or NEVER)

local function int(number)
    return format('%.0f', number)
end

-- With 16 digits, so that texts compare as numbers do.
local function int16(number)
    return format('%016.0f', number)
end

local function setting(name, default)
    return tonumber(head[name] or default)
end

-- The next id, fence or stamp.
local function draw()
    last = last < now and now or last + 1
    return int16(last)
end

-- Nothing happens by itself before the alarm.
local function due(moment)
    alarm = math.min(alarm, moment)
end

local function to_hex(text)
    return (text:gsub('.', function(c)
        return format('%02x', c:byte())
    end))
end

local function from_hex(text)
    return (text:gsub('%x%x', function(digits)
        return string.char(tonumber(digits, 16))
    end))
end

-- ---- lanes. An entry is a delivery that a lane has: its token with a mark ("&": its
-- item is kept, "%": and has a dedup id), and the answer that told it: "o" an older one,
-- "a" the last one, "u" none yet.

local function add_entry(lane, text, told)
    local entry = {text = text, plain = text:match('^[%d ]+'), told = told}

    lane.entries[#lane.entries + 1] = entry
    lane.by[entry.plain] = entry
    if told ~= 'u' then
        lane.has = lane.has + 1
    end
    return entry
end

local function add_entries(lane, list, told)
    for text in list:gmatch('[^,]+') do
        add_entry(lane, text, told)
    end
end

local function read_lane(name)
    local at = call('HMGET', META, 'l:' .. name, 'h:' .. name)
    local number, stamp, till, want, hands, limit, bell, as, results, has, old,
          answer = (at[1] or ''):match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)' ..
                                       ' (%S+) %d (%S+) (%S+) (%d+)|' ..
                                       '([^/]*)/(.*)$')
    local lane

    if not number then
        return nil
    end
    lane = {name = name, number = tonumber(number), stamp = stamp,
            till = tonumber(till), want = tonumber(want),
            hands = tonumber(hands), limit = tonumber(limit), bell = bell,
            as = as == '-' and '' or from_hex(as), results = results,
            entries = {}, by = {}, has = 0, many = old == '*'}
    add_entries(lane, lane.many and '' or old, 'o')
    add_entries(lane, answer, 'a')
    add_entries(lane, at[2] or '', 'u')
    lane.has = tonumber(has)
    return lane
end

-- The entries that are still out: those of old answers, the last one, and unheard.
local function list_entries(lane)
    local lists = {o = {}, a = {}, u = {}}

    for _, entry in ipairs(lane.entries) do
        if not entry.gone then
            lists[entry.told][#lists[entry.told] + 1] = entry.text
        end
    end
    return lists.o, lists.a, lists.u
end

local function write_lane(lane)
    local old, answer, unheard = list_entries(lane)

    lane.many = (lane.many and lane.has > #answer) or #old > LISTED_MAX
    call('HSET', META, 'l:' .. lane.name,
         format('%.0f %s %.0f %d %d %.0f %s %d %s %s %d|%s/%s', lane.number,
                lane.stamp, lane.till, lane.want, lane.hands, lane.limit,
                lane.bell, call('ZSCORE', WAIT, lane.name) and 1 or 0,
                lane.as == '' and '-' or to_hex(lane.as), lane.results,
                lane.has, lane.many and '*' or table.concat(old, ','),
                table.concat(answer, ',')))
    if #unheard > 0 then
        call('HSET', META, 'h:' .. lane.name, table.concat(unheard, ','))
    else
        call('HDEL', META, 'h:' .. lane.name)
    end
    due(lane.till)
end

local function has_any(lane)
    local _, _, unheard = list_entries(lane)

    return lane.has > 0 or #unheard > 0
end

-- The delivery with that token, if the lane has it (3).
local function find_entry(lane, plain)
    local entry = lane.by[plain]

    if entry then
        return not entry.gone and entry or nil
    end
    for _, mark in ipairs(lane.many and {'', '&', '%'} or {}) do
        if call('HEXISTS', OUT, lane.name .. ' ' .. plain .. mark) == 1 then
            return {text = plain .. mark, plain = plain, told = 'o'}
        end
    end
end

-- The item of a delivery leaves the lane.
local function drop_entry(lane, entry)
    entry.gone = true
    if entry.told ~= 'u' then
        lane.has = lane.has - 1
    end
end

local function lanes_of(worker)
    local lanes = {}

    for name in (call('HGET', META, 'w:' .. worker) or ''):gmatch('%x+') do
        lanes[#lanes + 1] = name
    end
    return lanes
end

local function write_lanes_of(worker, lanes)
    if #lanes > 0 then
        call('HSET', META, 'w:' .. worker, table.concat(lanes, ','))
    else
        call('HDEL', META, 'w:' .. worker)
    end
end

local function till_of(name)
    local record = call('HGET', META, 'l:' .. name)

    return tonumber(record and record:match('^%d+ %d+ (%d+)') or 0)
end

local function worker_lives(worker)
    for _, name in ipairs(lanes_of(worker)) do
        if till_of(name) > now then
            return true
        end
    end
    return false
end

-- The lane that asked last among those that wait and live; of a worker, if given.
local function lane_waiting(as)
    local best, best_at

    if not as then
        repeat
            best = call('ZREVRANGE', WAIT, '0', '0')[1]
            if best and till_of(best) <= now then
                call('ZREM', WAIT, best)
                best_at = nil
            else
                best_at = true
            end
        until best_at
        return best and read_lane(best)
    end
    for _, name in ipairs(lanes_of(as)) do
        local asked = tonumber(call('ZSCORE', WAIT, name) or nil)

        if asked and till_of(name) > now and (not best or asked > best_at) then
            best, best_at = name, asked
        end
    end
    return best and read_lane(best)
end

-- ---- items. All but plain ones are kept: ID -> data, "ID:" -> the rest.

local function new_item(id, data)
    return {id = id, attempts = 0, lost = 0, priority = 0, tries = 0,
            place = id, to = '', dedup = '', reason = '', data = data}
end

local function parse_item(id, record)
    local attempts, lost, priority, tries, place, to_len, dedup_len, rest =
        (record or ''):match('^(%d+) (%d+) (%-?%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')

    if not attempts then
        return nil
    end
    to_len, dedup_len = tonumber(to_len), tonumber(dedup_len)
    return {id = id, kept = true, attempts = tonumber(attempts),
            lost = tonumber(lost), priority = tonumber(priority),
            tries = tonumber(tries), place = place, to = rest:sub(1, to_len),
            dedup = rest:sub(to_len + 1, to_len + dedup_len),
            reason = rest:sub(to_len + dedup_len + 1)}
end

local function read_item(id)
    return parse_item(id, call('HGET', KEPT, id .. ':'))
end

local function write_item(item)
    local record = format('%d %d %d %d %s %d %d %s%s%s', item.attempts,
                          item.lost, item.priority, item.tries, item.place,
                          #item.to, #item.dedup, item.to, item.dedup,
                          item.reason)

    if item.kept then
        call('HSET', KEPT, item.id .. ':', record)
    else
        call('HSET', KEPT, item.id, item.data, item.id .. ':', record)
        item.kept = true
    end
end

local function data_of(item)
    return item.data or call('HGET', KEPT, item.id) or ''
end

local function mark_of(item)
    return not item.kept and '' or item.dedup ~= '' and '%' or '&'
end

local function drop_kept(item)
    if item.kept then
        call('HDEL', KEPT, item.id, item.id .. ':')
    end
end

-- An entry of the list: "ID DATA", or "ID" and its mark.
local function listed_item(entry)
    local id = entry:sub(1, 16)

    return entry:byte(17) == 32 and new_item(id, entry:sub(18)) or read_item(id)
end

-- The item of a delivery that is out. Its token has the attempts. `data` is the value of
-- its field, if it is known. An item is gone if the server has lost its key.
local function out_item(name, text, data)
    local id, _, attempts, mark = text:match('^(%d+) (%d+) (%d+)([&%%]?)$')
    local item

    if mark == '' then
        data = data or call('HGET', OUT, name .. ' ' .. text)
        item = data and new_item(id, data)
    else
        item = read_item(id)
    end
    item = item or {gone = true, id = id, lost = 0, priority = 0, tries = 0,
                    place = id, to = '', dedup = '', reason = '', data = ''}
    item.attempts = tonumber(attempts)
    return item
end

-- Counts an item that the server has lost, by eviction or by hand.
local function miss_item()
    head.items, head.dropped = head.items - 1, head.dropped + 1
end

local function out_drop(name, text)
    call('HDEL', OUT, name .. ' ' .. text)
    call('ZREM', LIMIT, name .. ' ' .. text)
end

local function own_member(item)
    return item.to .. '\0' .. format('%010.0f', 2147483647 - item.priority) ..
           item.place .. item.id
end

local function own_ends(worker)
    return '[' .. worker .. '\0', '(' .. worker .. '\1'
end

local function later_drop(item)
    call('ZREM', LATER, item.id)
    if item.attempts > 0 then
        head.retries = head.retries - 1
    end
end

-- The items that the keys have, whatever was counted.
local function count_items()
    return call('LLEN', READY) + call('ZCARD', NEXT) + call('ZCARD', OWN) +
           call('ZCARD', LATER) + call('HLEN', OUT)
end

-- The server has lost a delayed item. Whether it was a retry is not known any more.
local function later_miss(id)
    call('ZREM', LATER, id)
    miss_item()
    head.retries = math.min(head.retries, call('ZCARD', LATER))
end

local function change_load(worker, count)
    if tonumber(call('ZINCRBY', LOAD, int(count), worker)) <= 0 then
        call('ZREM', LOAD, worker)
    end
end
