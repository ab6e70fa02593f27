-- log_span.lua - the bounds of a log. Part of other scripts. Needs `call`.
--include log_entry

-- The first position that is kept, the last that ever was, and how many entries and bytes
-- are kept.
local function log_span(log)
    local last, sum = log_tail(log)
    local first = call('XRANGE', log, '-', '+', 'COUNT', '1')[1]
    local at, so_far, len = 0, sum, 0

    if first then
        at, so_far, len = read_entry(first)
    end
    return {('%.0f'):format(at), ('%.0f'):format(last), call('XLEN', log),
            ('%.0f'):format(sum - so_far + len)}
end
