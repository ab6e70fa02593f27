-- scan.lua - a page of the keys that begin with one of some texts.
-- ARGV: cursor count text...
-- Answers the next cursor, "0" at the end, and the keys. A key may come twice.
local page = redis.call('SCAN', ARGV[1], 'COUNT', ARGV[2])
local found = {page[1]}

for _, key in ipairs(page[2]) do
    for i = 3, #ARGV do
        if key:sub(1, #ARGV[i]) == ARGV[i] then
            found[#found + 1] = key
            break
        end
    end
end
return found
