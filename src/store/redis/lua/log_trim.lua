-- log_trim.lua - removes the oldest entries of a log.
-- KEYS: log
-- ARGV: through, the last position to go; max, how many go at most
-- Answers how many went. A page is short, as entries are read with their data.
local call = redis.call
local max, gone = tonumber(ARGV[2]), 0

while gone < max do
    local page = call('XRANGE', KEYS[1], '-', ARGV[1], 'COUNT',
                      math.min(16, max - gone))
    local ids = {}

    if not page[1] then
        break
    end
    for i, entry in ipairs(page) do
        ids[i] = entry[1]
    end
    call('XDEL', KEYS[1], unpack(ids))
    gone = gone + #ids
end
return gone
