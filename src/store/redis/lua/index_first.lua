-- index_first.lua - the first entries of indexes of one slot, at one moment.
-- KEYS: index...
-- ARGV: for each: from up_to (-1: now) skip limit
-- Answers the time in us; and for each index the number of the first entry that is not
-- shown, or -1, then member and number of those that are.
local call = redis.call
local time = call('TIME')
local us = time[1] * 1000000 + time[2]
local answer = {us}

for i = 1, #ARGV / 4 do
    local from, up_to, skip, limit = unpack(ARGV, 4 * i - 3, 4 * i)
    local found = call('ZRANGEBYSCORE', KEYS[i], from, '+inf', 'WITHSCORES',
                       'LIMIT', skip, limit + 1)
    local shown = {-1}

    up_to = up_to == '-1' and us or tonumber(up_to)
    for k = 2, #found, 2 do
        if k > 2 * limit or tonumber(found[k]) > up_to then
            shown[1] = found[k]
            break
        end
        shown[k] = found[k - 1]
        shown[k + 1] = found[k]
    end
    answer[i + 1] = shown
end
return answer
