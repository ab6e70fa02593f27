-- meter.lua - counts calls for a version of a value: the rule of src/store/meter.c.
-- KEYS: meter value
-- ARGV: version ("0" for nothing there) window_ms good bad slow mark
-- Answers good, bad, slow and reporters of the window, and the version, the time left
-- in ms (-1: for ever) and the first bytes of the value. With another version than the
-- one in ARGV nothing is counted.
--
-- The meter is a string "VERSION", then " START GOOD BAD SLOW MARKS" for each cell,
-- the newest first. It expires with the window.
local call = redis.call
local at = call('HMGET', KEYS[2], 'version', 'data')
local version = at[1] or '0'
local left = at[1] and call('PTTL', KEYS[2]) or -1
local state = string.sub(at[1] and at[2] or '', 1, 31)

if version ~= ARGV[1] then
    return {0, 0, 0, 0, version, left, state}
end

local window = ARGV[2] + 0
local good, bad, slow = ARGV[3] + 0, ARGV[4] + 0, ARGV[5] + 0
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local cells = {}
local was, rest = string.match(call('GET', KEYS[1]) or '', '^(%d+)(.*)$')

if was == version then
    for start, g, b, s, m in
        string.gmatch(rest, ' (%d+) (%d+) (%d+) (%d+) (%d+)') do
        -- After the clock was set back a cell may seem to begin later.
        if start + 0 > now - window and start + 0 <= now then
            cells[#cells + 1] = {start + 0, g + 0, b + 0, s + 0, m + 0}
        end
    end
end

if good > 0 or bad > 0 then
    if not cells[1] or now - cells[1][1] >= math.ceil(window / 10) then
        table.insert(cells, 1, {now, 0, 0, 0, 0})
        cells[11] = nil
    end

    local cell, text = cells[1], {version}

    cell[2], cell[3], cell[4] = cell[2] + good, cell[3] + bad, cell[4] + slow
    if bad > 0 or slow > 0 then
        cell[5] = bit.bor(cell[5], bit.lshift(1, ARGV[6] + 0)) % 4294967296
    end
    for i = 1, #cells do
        text[i + 1] = string.format('%.0f %.0f %.0f %.0f %.0f',
                                    unpack(cells[i]))
    end
    call('SET', KEYS[1], table.concat(text, ' '), 'PX', ARGV[2])
end

local marks, reporters = 0, 0

good, bad, slow = 0, 0, 0
for i = 1, #cells do
    good, bad, slow = good + cells[i][2], bad + cells[i][3], slow + cells[i][4]
    marks = bit.bor(marks, cells[i][5])
end
while marks ~= 0 do
    marks = bit.band(marks, marks - 1)
    reporters = reporters + 1
end
return {good, bad, slow, reporters, version, left, state}
