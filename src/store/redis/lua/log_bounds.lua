-- log_bounds.lua - the bounds of a log. Changes nothing.
-- KEYS: log
-- Answers the first position that is kept, the last that ever was, and how many entries
-- and bytes are kept.
local call, format = redis.call, string.format

--include log_entry
local last, sum = log_tail(KEYS[1])
local first = call('XRANGE', KEYS[1], '-', '+', 'COUNT', '1')[1]
local at, so_far, len = 0, sum, 0

if first then
    at, so_far, len = read_entry(first)
end
return {format('%.0f', at), format('%.0f', last), call('XLEN', KEYS[1]),
        format('%.0f', sum - so_far + len)}
