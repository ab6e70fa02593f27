-- meter.lua - counts calls for a version of a value: the rule of src/store/meter.c.
-- KEYS: meter value
-- ARGV: version ("0" for nothing there) window_ms good bad slow mark
-- Answers good, bad, slow and reporters of the window, and the version, the time left
-- in ms (-1: for ever) and the first bytes of the value. With another version than the
-- one in ARGV nothing is counted.
--
-- The meter is a string "VERSION", then " START GOOD BAD SLOW MARKS" for each cell,
-- the newest first; then ";OLDEST,GOOD,BAD,SLOW,MARKS": when the last of them began,
-- and the sums of all but the newest, so that most reports read no other. Without that
-- end, as clients of before wrote it, all cells are read. It expires with the window.
local call, bor = redis.call, bit.bor
local at = call('HMGET', KEYS[2], 'version', 'data')
local version = at[1] or '0'
local left = at[1] and call('PTTL', KEYS[2]) or -1
local state = string.sub(at[1] and at[2] or '', 1, 31)

if version ~= ARGV[1] then
    return {0, 0, 0, 0, version, left, state}
end

--include text_int
local window = ARGV[2] + 0
local width = math.ceil(window / 10)
local good, bad, slow = ARGV[3] + 0, ARGV[4] + 0, ARGV[5] + 0
local adds = good > 0 or bad > 0
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local kept = call('GET', KEYS[1]) or ''
local was, start, g, b, s, m, older, oldest, old_g, old_b, old_s, old_m =
    kept:match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)' ..
               '([%d ]*;(%d+),(%d+),(%d+),(%d+),(%d+))$')

-- Most reports change the newest cell alone. All are read when one begins or ends, and
-- when one seems to begin later, as the clock was set back.
if was ~= version or now < start + 0 or now - oldest >= window or
   adds and now - start >= width then
    local cells, text = {}, {''}
    local of, all = kept:match('^(%d+)([%d ]*)')

    for from, g, b, s, m in
        (of == version and all or ''):gmatch(
            ' (%d+) (%d+) (%d+) (%d+) (%d+)') do
        if from + 0 > now - window and from + 0 <= now then
            cells[#cells + 1] = {from, g, b, s, m}
        end
    end
    if adds and (not cells[1] or now - cells[1][1] >= width) then
        table.insert(cells, 1, {int(now), 0, 0, 0, 0})
        cells[11] = nil
    end
    start, g, b, s, m = unpack(cells[1] or {int(now), 0, 0, 0, 0})
    oldest, old_g, old_b, old_s, old_m = start, 0, 0, 0, 0
    for i = 2, #cells do
        local cell = cells[i]

        text[i] = table.concat(cell, ' ')
        oldest, old_g, old_b = cell[1], old_g + cell[2], old_b + cell[3]
        old_s, old_m = old_s + cell[4], bor(old_m, cell[5]) % 4294967296
    end
    older = table.concat(text, ' ') .. ';' .. oldest .. ',' .. int(old_g) ..
            ',' .. int(old_b) .. ',' .. int(old_s) .. ',' .. int(old_m)
end
good, bad, slow = g + good, b + bad, s + slow
if adds then
    if ARGV[4] ~= '0' or ARGV[5] ~= '0' then
        m = int(bor(m, bit.lshift(1, ARGV[6] + 0)) % 4294967296)
    end
    call('SET', KEYS[1],
         version .. ' ' .. start .. ' ' .. int(good) .. ' ' .. int(bad) .. ' ' ..
             int(slow) .. ' ' .. m .. older, 'PX', ARGV[2])
end

local marks, reporters = bor(m, old_m), 0

while marks ~= 0 do
    marks = bit.band(marks, marks - 1)
    reporters = reporters + 1
end
return {good + old_g, bad + old_b, slow + old_s, reporters, version, left,
        state}
