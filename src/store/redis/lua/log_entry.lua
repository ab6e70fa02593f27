-- log_entry.lua - reads entries of a log. Part of other scripts. Needs `call`.
--
-- An entry has the ID POSITION-0 and the fields d (data), b (the position before it), s
-- (the bytes of all data so far), and t (the time, if that is not its position).

-- Position, bytes so far and length, as numbers.
local function read_entry(entry)
    local sum, len, fields = 0, 0, entry[2]

    for i = 1, #fields, 2 do
        if fields[i] == 's' then
            sum = tonumber(fields[i + 1]) or 0
        elseif fields[i] == 'd' then
            len = #fields[i + 1]
        end
    end
    return tonumber(entry[1]:match('^%d+')), sum, len
end

-- The last position that ever was, and the bytes so far. A log without entries still
-- has its last ID.
local function log_tail(log)
    local entry = call('XREVRANGE', log, '+', '-', 'COUNT', '1')[1]
    local info

    if entry then
        return read_entry(entry)
    end
    info = call('EXISTS', log) == 1 and call('XINFO', 'STREAM', log) or {}
    for i = 1, #info, 2 do
        if info[i] == 'last-generated-id' then
            return tonumber(info[i + 1]:match('^%d+')), 0
        end
    end
    return 0, 0
end
