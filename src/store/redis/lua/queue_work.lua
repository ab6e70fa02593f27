-- queue_work.lua - settles items of a lane and takes the next ones, whatever it takes.
-- KEYS: those of queue_shelf.lua
-- ARGV: lane number seen span_ms bell want wait hands limit_ms as heard; for each that
--       is settled "VERB MS ID FENCE ATTEMPT" in one word, and a reason or result
--   verb: a ack, n nack, d dead, u unbegun, e extend; heard: tokens with commas
-- Answers a status alone, or OK stamp results due_ms, then for each delivery
-- "ID FENCE ATTEMPT" lost priority limit_ms data. results has the verb of each that is
-- settled, a capital if it was lost.
--include queue_step
local name, number, seen = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local span_ms, bell = tonumber(ARGV[4]), ARGV[5]
local want, wait = tonumber(ARGV[6]), ARGV[7] == '1'
local answer, bytes, count = {}, 0, 0
local heard = {}

if not head.last and number ~= 1 then
    return {LOST}
end
call('HDEL', META, '') -- a full server lets what follows write too

local function show(item, entry, field)
    local limit = call('ZSCORE', LIMIT, field)
    local data = data_of(item)

    for _, word in ipairs({entry.plain, item.lost, item.priority,
                           limit and math.max(1, math.ceil((limit - now) / 1000))
                           or 0, data}) do
        answer[#answer + 1] = word
    end
    bytes, count = bytes + #data, count + 1
end

local function show_entry(lane, entry)
    local item = out_item(name, entry.text)

    if item.gone then
        out_drop(name, entry.text)
        drop_entry(lane, entry)
        miss_item()
    else
        show(item, entry, name .. ' ' .. entry.text)
    end
end

local function settle_one(lane, word, reason)
    local verb, ms, plain = word:match('^(%l) (%d+) (.*)$')
    local entry = find_entry(lane, plain)
    local kinds = {n = 'nack', d = 'dead', u = 'unbegun'}
    local field = entry and name .. ' ' .. entry.text
    local item

    if not entry then
        return verb:upper()
    elseif verb == 'e' then
        call('ZREM', LIMIT, field)
        if tonumber(ms) > 0 then
            call('ZADD', LIMIT, int(now + ms * 1000), field)
            due(now + ms * 1000)
        end
        return verb
    end
    item = out_item(name, entry.text)
    out_drop(name, entry.text)
    drop_entry(lane, entry)
    if verb == 'a' then
        head.acked = head.acked + 1
        keep_done(item, reason)
        forget(item)
    else
        return_item(item, kinds[verb], verb == 'n' and tonumber(ms) or 0, reason)
    end
    return verb
end

-- The verbs of this request, as its results have them.
local function verbs()
    local list = ''

    for i = 12, #ARGV, 2 do
        list = list .. ARGV[i]:sub(1, 1)
    end
    return list == '' and '-' or list
end

local function keep_span(lane, shorten)
    local till = now + span_ms * 1000

    if till > lane.till or shorten and not has_any(lane) then
        lane.till = till
    end
    if span_ms > FADES_MS / 2 then
        head.long = '1'
    end
end

local function get_place()
    call('ZADD', WAIT, int(now), name)
    call('PEXPIRE', WAIT, int(math.max(FADES_MS, 2 * span_ms)))
end

local function open_lane()
    local lane = {name = name, number = 1, stamp = draw(), till = 0, want = 0,
                  hands = 0, limit = 0, as = ARGV[10], results = '-',
                  entries = {}, by = {}, has = 0}
    local lanes = lane.as ~= '' and lanes_of(lane.as)

    head.lanes = head.lanes + 1
    if lanes then
        lanes[#lanes + 1] = name
        write_lanes_of(lane.as, lanes)
    end
    keep_span(lane)
    return lane
end

-- The kept answer, and what is unheard, which stays so (7).
local function repeat_reserve(lane)
    for _, told in ipairs({'a', 'u'}) do
        for _, entry in ipairs(lane.entries) do
            if entry.told == told and not entry.gone and
               not (told == 'u' and heard[entry.plain]) then
                show_entry(lane, entry)
            end
        end
    end
    keep_span(lane)
    if call('ZSCORE', WAIT, name) then
        get_place()
    end
end

local function do_reserve(lane)
    lane.results = ''
    for i = 12, #ARGV, 2 do
        lane.results = lane.results .. settle_one(lane, ARGV[i], ARGV[i + 1])
    end
    lane.results = lane.results == '' and '-' or lane.results
    keep_span(lane, true)
    lane.number, lane.stamp = number, draw()
    lane.want, lane.limit = want, tonumber(ARGV[9])
    call('ZREM', WAIT, name)
    for _, entry in ipairs(lane.entries) do
        if entry.told == 'a' then
            entry.told = 'o'
        elseif entry.told == 'u' and not entry.gone then
            entry.told = 'a'
            lane.has = lane.has + 1
            if not heard[entry.plain] then
                show_entry(lane, entry)
            end
        end
    end
    take_items(lane, want - count, 'a', bytes, function(item, entry)
        show(item, entry, name .. ' ' .. entry.text)
    end)
    if count == 0 and want > 0 and wait then
        get_place()
    end
end

-- Each lane that waits looks after one of the delayed items.
local function find_due()
    local rank = call('ZSCORE', WAIT, name) and call('ZCARD', WAIT) or 1
    local at = call('ZRANGE', LATER, int(rank - 1), int(rank - 1), 'WITHSCORES')

    return at[2] and math.max(0, math.ceil((at[2] - now) / 1000)) or -1
end

local function finish(status)
    serve()
    if head.last or status == OK then
        end_step()
    end
    return status
end

local lane

for token in ARGV[11]:gmatch('[^,]+') do
    heard[token] = true
end
begin_step()
lane = read_lane(name)
if lane and lane.till <= now then -- a look at the lanes was put off
    end_lane(lane, 'lost')
    lane = nil
end
if lane and number < lane.number or not lane and number ~= 1 then -- (1)
    return {finish(LOST)}
elseif lane and number > lane.number and
       (number ~= lane.number + 1 or seen ~= tonumber(lane.stamp)) then -- (6)
    end_lane(lane, 'lost')
    return {finish(LOST)}
elseif lane and number == lane.number and number > 1 and
       lane.results:lower() ~= verbs() then
    return {finish(INVALID)}
elseif not lane then
    lane = open_lane()
elseif number == lane.number then
    repeat_reserve(lane)
else
    do_reserve(lane)
end
lane.bell, lane.hands = bell, tonumber(ARGV[8])
write_lane(lane)
finish(OK)

for i, word in ipairs({OK, lane.stamp, lane.results, find_due()}) do
    table.insert(answer, i, word)
end
return answer
