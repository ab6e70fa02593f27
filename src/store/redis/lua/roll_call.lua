-- roll_call.lua - the head of a roster and its live seats; meet.lua has their form.
-- KEYS: roster till new
-- Answers nothing, or kind gen need here, then for each seat in the order of its
-- fence id fence arrived counts left_ms who; arrived and counts are 0 or 1.
local call = redis.call
local head = call('HMGET', KEYS[1], 'kind', 'gen', 'need', 'here')

if not head[2] then
    return false
end

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local all = call('HGETALL', KEYS[1])
local MOST = 100000 -- a reply has so many at most
local ends, new = {}, {}
local seats = {}

local function read_scores(key, scores)
    local at = call('ZRANGE', key, '0', '-1', 'WITHSCORES')

    for i = 1, #at, 2 do
        scores[at[i]] = tonumber(at[i + 1])
    end
end

local function add_seat(id, record)
    local fence, rec, state, who =
        record:match('^(%d+) %d+ (%d+) (%l) (.*)$')
    local counts = not new[id] or new[id] >= 0 and new[id] <= now

    if fence and ends[id] and ends[id] > now then
        seats[#seats + 1] = {id, fence, state == 'a' and rec == head[2] and 1 or 0,
                             counts and 1 or 0,
                             math.ceil((ends[id] - now) / 1000), who}
    end
end

if head[1] ~= 'latch' then
    read_scores(KEYS[2], ends)
    read_scores(KEYS[3], new)
end
for i = 1, #all, 2 do
    if #seats == MOST then
        break
    elseif all[i]:sub(1, 1) == '=' then
        if all[i + 1] == '+' then
            seats[#seats + 1] = {all[i]:sub(2), '0', 1, 1,
                                 call('PTTL', KEYS[1]), ''}
        else
            add_seat(all[i]:sub(2), all[i + 1])
        end
    end
end
table.sort(seats, function(a, b)
    if a[2] ~= b[2] then
        return tonumber(a[2]) < tonumber(b[2])
    end
    return a[1] < b[1]
end)

local answer = {head[1], head[2], head[3], head[4]}

for _, seat in ipairs(seats) do
    for i = 1, 6 do
        answer[#answer + 1] = seat[i]
    end
end
return answer
