-- yield.lua - asks the holder with a fence, or every holder, to give it back.
-- Changes nothing.
-- KEYS: lock party queue place fence
-- ARGV: fence, "0" for all
-- Answers OK and how many have a doorbell, NOTFOUND or STALE.
local call = redis.call

--include grant
if not enter(1, KEYS[5]) then
    return FOREIGN
end

local status = #roll.holders > 0 and STALE or NOTFOUND
local asked = 0

for _, holder in ipairs(roll.holders) do
    if ARGV[1] == '0' or ARGV[1] == holder.fence then
        status = OK
        if not holder.left and address(holder) then
            ring(holder, 'yield')
            asked = asked + 1
        end
    end
end
return {status, asked}
