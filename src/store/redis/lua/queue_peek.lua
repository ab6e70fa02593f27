-- queue_peek.lua - some items of one place. Changes nothing.
-- KEYS: those of queue_shelf.lua
-- ARGV: place (r ready, l later, o out, d dead, k records of done ones) skip max
-- Answers NOTFOUND alone, or OK, then for each id priority attempts lost due_ms lane fence
-- ended_us to dedup reason data.
--include queue_shelf
local place, skip, max = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local SORTED = 10000 -- it looks at so many that are ranked, or out
local answer, bytes = {OK}, 0

if not head.last then
    return {NOTFOUND}
end

local function show(item, due_ms, lane, fence, ended_us)
    local data = item and data_of(item)

    if not item or item.gone or bytes > 4194304 then
        return
    end
    for _, word in ipairs({item.id, item.priority, item.attempts, item.lost,
                           due_ms, lane, fence, ended_us, item.to, item.dedup,
                           item.reason, data}) do
        answer[#answer + 1] = word
    end
    bytes = bytes + #data
end

-- The list and the ranked ones in one order, by priority, then by place: those beyond the
-- first `skip`, and whether these are all. At most all that are ranked come before an entry
-- of the list, so that it begins with the one that may be the first to be shown.
local function common()
    local loaded = math.min(skip + max, SORTED)
    local ranked = call('ZRANGE', NEXT, '0', int(loaded - 1), 'WITHSCORES')
    local at = math.max(0, skip - #ranked / 2)
    local listed = call('LRANGE', READY, int(at), int(skip + max - 1))
    local shown, i, k = {}, 1, 1

    while at < skip + max and (ranked[i] or listed[k]) do
        local id = listed[k] and listed[k]:sub(1, 16)
        local score = tonumber(ranked[i + 1])
        local first = {entry = listed[k]}

        if ranked[i] and (not id or score < 0 or
                          score == 0 and ranked[i] < id .. id) then
            first = {member = ranked[i]}
            i = i + 2
        elseif i > 2 * loaded then
            return shown, false
        else
            k = k + 1
        end
        if at >= skip then
            shown[#shown + 1] = first
        end
        at = at + 1
    end
    return shown, #ranked < 2 * loaded or loaded < SORTED
end

local function peek_ready()
    local shown, all = common()

    for _, one in ipairs(shown) do
        show(one.entry and listed_item(one.entry) or
             read_item(one.member:sub(17)), 0, '', '0', '0')
    end
    skip = math.max(0, skip - call('LLEN', READY) - call('ZCARD', NEXT))
    for _, member in ipairs(all and #shown < max and
                            call('ZRANGE', OWN, int(skip),
                                 int(skip + max - #shown - 1)) or {}) do
        show(read_item(member:sub(-16)), 0, '', '0', '0')
    end
end

local function peek_later()
    local list = call('ZRANGE', LATER, int(skip), int(skip + max - 1), 'WITHSCORES')

    for i = 1, #list, 2 do
        show(read_item(list[i]), math.max(0, math.ceil((list[i + 1] - now) / 1000)),
             '', '0', '0')
    end
end

local function peek_out()
    local all, cursor = {}, '0'

    repeat
        local found = call('HSCAN', OUT, cursor, 'COUNT', '500')

        cursor = found[1]
        for i = 1, #found[2], 2 do
            all[#all + 1] = found[2][i]
        end
    until cursor == '0' or #all >= SORTED
    table.sort(all, function(a, b)
        return a:sub(35, 50) < b:sub(35, 50)
    end)
    for i = skip + 1, math.min(#all, skip + max) do
        show(out_item(all[i]:sub(1, 16), all[i]:sub(18)), 0, all[i]:sub(1, 16),
             all[i]:sub(35, 50), '0')
    end
end

local function peek_dead()
    local list = call('ZRANGE', DEAD, int(skip), int(skip + max - 1), 'WITHSCORES')

    for i = 1, #list, 2 do
        show(read_item(list[i]), 0, '', '0', list[i + 1])
    end
end

local function peek_done()
    local list = call('LRANGE', DONE, int(-skip - max), int(-skip - 1))

    for i = #list, 1, -1 do
        local id, us, attempts, lost, priority, to_len, dedup_len, rest =
            list[i]:match('^(%d+) (%d+) (%d+) (%d+) (%-?%d+) (%d+) (%d+) (.*)$')
        local item = new_item(id, rest:sub(to_len + dedup_len + 1))

        item.attempts, item.lost, item.priority = attempts, lost, priority
        item.to = rest:sub(1, to_len)
        item.dedup = rest:sub(to_len + 1, to_len + dedup_len)
        show(item, 0, '', '0', us)
    end
end

if max > 0 then
    ({r = peek_ready, l = peek_later, o = peek_out, d = peek_dead,
      k = peek_done})[place]()
end
return answer
