-- convert.lua - converts a lease to another mode, or transfers it to another owner.
-- KEYS: lock party queue place fence
-- ARGV: owner fence mode to_owner ttl_ms
-- Answers OK fence left_ms | BUSY who, when others share it | LOST | INVALID why
local call = redis.call

--include grant
if not enter(1, KEYS[5]) then
    return FOREIGN
end
prune()

local owner, fence, mode, to_owner = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local moved = to_owner ~= owner
local mine, heir = roll[owner], roll[to_owner]

local function answer(...)
    serve()
    settle()
    return {...}
end

local function turned(holder)
    if not holds_on(holder) then
        return answer(LOST)
    end
    return answer(OK, holder.fence, math.floor((holder.till - now) / 1000))
end

if not mine or mine.left or mine.fence ~= fence then
    -- An earlier request may have done it, and its answer was lost.
    if heir and not heir.left and heir.mode == mode and
       tonumber(heir.fence) > tonumber(fence) then
        -- A write, so that a wait for replicas covers the earlier one too.
        extend_lock()
        return turned(heir)
    end
    return answer(LOST)
end

-- The new owner must be no party of the name, and have no tombstone.
local record = moved and call('HGET', party, to_owner)

if (mine.mode == PERMITS) ~= (mode == PERMITS) then
    return answer(INVALID, 'a lock cannot be turned into permits, nor permits ' ..
                  'into a lock')
elseif record == 't' or moved and heir and heir.left then
    return answer(LOST)
elseif record or moved and heir then
    return answer(INVALID, 'the new owner has a part in the name already')
end

local rises = mode == EXCLUSIVE and mine.mode ~= EXCLUSIVE

if rises and #roll.holders > 1 then
    local first = roll.holders[1]

    tell(owner)
    return answer(BUSY, (first == mine and roll.holders[2] or first).who)
end
if rises or moved then
    mine.fence = next_fence(watermark, time)
end
finish(mine)
if moved then
    mine.owner, mine.bell = to_owner, '-'
end
mine.mode, mine.claim, mine.handed = mode, false, not address(mine)
mine.till = math.max(mine.till, now + ARGV[5] * 1000)
add(mine)
write_new(mine)
return turned(mine)
