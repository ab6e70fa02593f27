-- revoke.lua - ends the lease with a fence, or every lease of the name.
-- KEYS: lock party queue place fence
-- ARGV: fence, "0" for all
-- Answers OK and how many, NOTFOUND or STALE.
local call = redis.call

--include grant
if not enter(1, KEYS[5]) then
    return FOREIGN
end
prune()

local held = #roll.holders
local broken = 0

for _, holder in ipairs(roll.holders) do
    if ARGV[1] == '0' or ARGV[1] == holder.fence then
        finish(holder)
        broken = broken + 1
        if not holder.left then
            ring(holder, 'broken')
        end
    end
end
serve()
settle()
if broken > 0 then
    return {OK, broken}
end
return {held > 0 and STALE or NOTFOUND, 0}
