-- quorum_renew.lua - renews many leases at a node of a quorum, each by owner and
-- fence; or, with a ttl of 0, raises the fence to the one that was agreed on.
-- KEYS: fence node, then for each lock party queue place
-- ARGV: run durable longest_ms, then for each owner fence ttl_ms
-- Answers status now_us sits_out_ms, then for each the time left in ms, or -1
-- when it is not held here.
local call = redis.call

--include grant
--include quorum_steps
call('HDEL', KEYS[2], '') -- a full server lets what follows write too
local vote = may_vote(KEYS[2], ARGV[1], ARGV[2], ARGV[3])
local answers = say(vote)

local function renew(owner, fence, ttl_ms)
    local mine = roll[owner]

    if not mine or mine.left or mine.mode == SHARED or is_ahead(fence) then
        return -1
    end
    if mine.fence ~= fence and
       (ttl_ms ~= 0 or tonumber(mine.fence) > tonumber(fence)) then
        return -1
    end
    agree(mine, fence, ttl_ms)
    return math.floor((mine.till - now) / 1000)
end

if vote ~= OK then
    return answers
end
for i = 1, (#ARGV - 3) / 3 do
    answers[3 + i] = -1
    if enter(4 * i - 1, KEYS[1]) then
        answers[3 + i] = renew(ARGV[3 * i + 1], ARGV[3 * i + 2],
                               tonumber(ARGV[3 * i + 3]))
    end
end
return answers
