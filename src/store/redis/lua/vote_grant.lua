-- vote_grant.lua - asks a node of a quorum for a lease under a fence.
-- KEYS: lock party queue place fence node
-- ARGV: run durable longest_ms owner ttl_ms who fence ["fill"]
--       with "fill" the fence is the one that the owner has elsewhere
-- Answers status now_us sits_out_ms, then
--   OK fence left_ms | BUSY fence left_ms who | MISMATCH capacity
local call = redis.call

--include grant
--include vote
if not enter(1, KEYS[5]) then
    return FOREIGN
end

local owner, ttl, proposed = ARGV[4], ARGV[5], ARGV[7]
local vote = may_vote(KEYS[6], ARGV[1], ARGV[2], ARGV[3])

local function answer(status, ...)
    local list = say(status)

    for i, item in ipairs({...}) do
        list[3 + i] = item
    end
    settle()
    return list
end

if vote ~= OK then
    return say(vote)
end
prune()
serve()

local mine = roll[owner]
local other = roll.holders[1] or head()

if mine and not mine.left then
    if ARGV[8] and not is_ahead(proposed) then
        agree(mine, proposed)
        mine.till = math.max(mine.till, now + ttl * 1000)
        extend_lock()
    end
    return answer(OK, mine.fence, math.floor((mine.till - now) / 1000))
elseif mine or call('HGET', party, owner) == 't' then
    return answer(LOST)
elseif other and other.capacity ~= 0 then
    return answer(MISMATCH, int(other.capacity))
elseif other then
    local first = first_to_end()

    return answer(BUSY, call('GET', watermark) or '0', wait_ms(first),
                  other.who)
end

local last = tonumber(call('GET', watermark) or 0)
local fence = proposed

if not ARGV[8] then
    fence = int(math.max(tonumber(proposed), last + 1, votes_from))
end
if is_ahead(fence) then
    return answer(REFUSED)
end
heed(fence)
mine = {owner = owner, ttl = ttl, who = ARGV[6], bell = '-', mode = EXCLUSIVE,
        permits = 1, capacity = 0, priority = '0', fence = fence,
        till = now + ttl * 1000}
add(mine)
write_new(mine)
return answer(OK, fence, tonumber(ttl))
