-- quorum_grant.lua - asks a node of a quorum for a lease under a fence: for a name,
-- or for one of its slots, each of which has one holder. A permit has its slot in
-- the field of the priority, which a quorum does not use.
-- KEYS: lock party queue place fence node
-- ARGV: run durable longest_ms owner ttl_ms who fence capacity slot ["fill"]
--       capacity and slot are 0 for the name itself; with "fill" the fence is the
--       one that the owner has elsewhere
-- Answers status now_us sits_out_ms, then
--   OK fence left_ms again | BUSY fence left_ms who taken | MISMATCH capacity
-- where `again` is 1 when the owner had it before it asked, else 0, and `taken` has
-- a 1 for each slot that is held and a 0 for each that is not
local call = redis.call

--include grant
--include quorum_steps
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
local capacity, slot, fill = tonumber(ARGV[8]), ARGV[9], ARGV[10]

local function holder_of()
    for _, holder in ipairs(roll.holders) do
        if capacity == 0 or holder.capacity ~= capacity or
           holder.priority == slot then
            return holder
        end
    end
end

local function taken()
    local letters = ('0'):rep(capacity)

    for _, holder in ipairs(roll.holders) do
        local at = tonumber(holder.priority)

        if at >= 1 and at <= capacity then
            letters = letters:sub(1, at - 1) .. '1' .. letters:sub(at + 1)
        end
    end
    return letters
end

local other = holder_of()

-- An owner moves only if it certainly has another slot: a late request for the
-- slot that it asked for first must not move it.
if mine and not mine.left and (mine == other or fill and not other) then
    if fill and not is_ahead(proposed) then
        mine.priority = slot
        agree(mine, proposed, ttl)
    end
    if not holds_on(mine) then
        return answer(LOST)
    end
    return answer(OK, mine.fence, math.floor((mine.till - now) / 1000), 1)
elseif mine and mine.left or call('HGET', party, owner) == 't' then
    return answer(LOST)
end
other = other or mine or head()
if other and other.capacity ~= capacity then
    return answer(MISMATCH, int(other.capacity))
elseif other then
    local first = first_to_end()

    return answer(BUSY, call('GET', watermark) or '0', wait_ms(first),
                  other.who, taken())
end

local last = tonumber(call('GET', watermark) or 0)
local fence = proposed

if not fill then
    fence = fence_of(tonumber(slot), math.max(tonumber(proposed), last + 1,
                                              votes_from))
end
if is_ahead(fence) then
    return answer(REFUSED)
end
heed(fence)
mine = {owner = owner, ttl = ttl, who = ARGV[6], bell = '-',
        mode = capacity > 0 and PERMITS or EXCLUSIVE, permits = 1,
        capacity = capacity, priority = slot, fence = fence,
        till = now + ttl * 1000}
add(mine)
write_new(mine)
return answer(OK, fence, tonumber(ttl), 0)
