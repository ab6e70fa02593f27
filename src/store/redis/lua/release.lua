-- release.lua - ends the lease, the wait or the claim of an owner.
-- KEYS: lock party queue place fence
-- ARGV: owner [unanswered keep_ms]
-- Answers OK, or LOST when it had no lease.
local call = redis.call

if not ARGV[2] then
    --include hand_off
end

--include grant
if not enter(1, KEYS[5]) then
    return FOREIGN
end
prune()

local owner = ARGV[1]
local unanswered = ARGV[2] == '1'
local keep_ms = tonumber(ARGV[3] or 0)
local mine = roll[owner]

-- A second release of a ghost does not change its time.
local function haunt()
    if not mine.left then
        mine.till = now + keep_ms * 1000
        mine.left = true
        extend_lock()
        write_holder(mine)
    end
    if unanswered then
        bury(owner, math.ceil((mine.till - now) / 1000) + TOMB_MS)
    end
end

if mine and (mine.left or keep_ms > 0) then
    haunt()
else
    if mine then
        finish(mine)
    end
    if unanswered then
        bury(owner, TOMB_MS)
    elseif not mine and call('HGET', party, owner) ~= 't' then
        forget({owner})
    end
end
serve()
settle()
return mine and OK or LOST
