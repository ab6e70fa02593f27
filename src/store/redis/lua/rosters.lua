-- rosters.lua - the heads of rosters and how many seats live; meet.lua has their form.
-- KEYS: for each roster till new
-- ARGV: kind
-- Answers for each kind gen need here live counts; a kind of "" when there is none, or
-- it is of another kind.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local beyond = ('(%.0f'):format(now)
local answer = {}

local function count_unsettled(till, new)
    local count = 0

    for _, range in ipairs({{'-inf', '(0'}, {beyond, '+inf'}}) do
        for _, id in ipairs(call('ZRANGEBYSCORE', new, range[1], range[2])) do
            if tonumber(call('ZSCORE', till, id) or 0) > now then
                count = count + 1
            end
        end
    end
    return count
end

for i = 1, #KEYS, 3 do
    local head = redis.pcall('HMGET', KEYS[i], 'kind', 'gen', 'need', 'here')
    local live, counts = 0, 0

    if head.err or head[1] ~= ARGV[1] or not head[2] then
        head = {}
    elseif head[1] ~= 'latch' then
        live = call('ZCOUNT', KEYS[i + 1], beyond, '+inf')
        counts = live - count_unsettled(KEYS[i + 1], KEYS[i + 2])
    end
    for k, word in ipairs({head[1] or '', head[2] or '0', head[3] or '0',
                           head[4] or '0', live, counts}) do
        answer[2 * i - 2 + k] = word
    end
end
return answer
