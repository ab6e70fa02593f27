-- inspect.lua - the holders and waiters of names. Changes nothing.
-- KEYS: for each lock party queue place
-- Answers a list for each of the first of them, 0 when the key is not a lock; those after
-- ENOUGH entries are for the next call. A list has for each holder and then for each
-- waiter, in the order of service:
--   owner state mode permits capacity priority fence ttl_ms age_ms left_ms who
local call = redis.call

--include grant
local MOST = 4000 -- waiters of a name that are shown
local ENOUGH = 500 -- entries, each of which is eleven words

local function show(list, at, state, since)
    local n = #list

    list[n + 1], list[n + 2], list[n + 3] = at.owner, state, tonumber(at.mode)
    list[n + 4], list[n + 5] = at.permits, at.capacity
    list[n + 6], list[n + 7] = tonumber(at.priority), at.fence or '0'
    list[n + 8] = tonumber(at.ttl)
    list[n + 9] = math.floor(math.max(0, now - since) / 1000)
    list[n + 10] = math.floor((at.till - now) / 1000)
    list[n + 11] = at.who
end

local function show_waiter(list, place_of, record)
    local waiter = read_waiter(place_of:sub(17), record)
    local till = waiter and call('ZSCORE', place, waiter.owner)

    if till and tonumber(till) > now then
        waiter.till = tonumber(till)
        show(list, waiter, 'waiter', waiter.since)
    end
end

local function show_queue(list)
    for first = 0, MOST - 1, CHUNK do
        local places = call('ZRANGE', queue, tostring(first),
                            tostring(first + CHUNK - 1))
        local owners = {}

        if #places == 0 then
            return
        end
        for i, place_of in ipairs(places) do
            owners[i] = place_of:sub(17)
        end
        for i, record in ipairs(call('HMGET', party, unpack(owners))) do
            if record then
                show_waiter(list, places[i], record)
            end
        end
    end
end

local lists, words = {}, 0

for i = 1, math.floor(#KEYS / 4) do
    local list = {}

    if words >= 11 * ENOUGH then
        break
    end

    if enter(4 * i - 3) then
        for _, holder in ipairs(roll.holders) do
            show(list, holder, holder.left and 'left' or
                 holder.claim and 'claim' or 'held', tonumber(holder.fence))
        end
        show_queue(list)
        words = words + #list
    else
        list = 0
    end
    lists[i] = list
end
return lists
