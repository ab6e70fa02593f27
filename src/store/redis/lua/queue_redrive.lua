-- queue_redrive.lua - makes dead letters new items at the end.
-- KEYS: those of queue_shelf.lua
-- ARGV: id ("0": the oldest) max
-- Answers NOTFOUND alone; OK and how many; FULL items cap.
--include queue_step
local max = tonumber(ARGV[2])
local cap = setting('cap', 1000000)
local redriven = 0
local ids

if not head.last then
    return {NOTFOUND}
end
call('HDEL', META, '') -- a full server lets what follows write too

local function redrive(id)
    local item = read_item(id)
    local fresh = item and new_item(draw(), data_of(item))

    drop_dead(id)
    if not item then -- the server has lost it
        head.dropped = head.dropped + 1
        return
    end
    fresh.priority, fresh.tries, fresh.to = item.priority, item.tries, item.to
    shelve(fresh)
    head.items = head.items + 1
    redriven = redriven + 1
end

if ARGV[1] == '0' then
    ids = max > 0 and call('ZRANGE', DEAD, '0', int(max - 1)) or {}
else
    local id = int16(ARGV[1])

    ids = max > 0 and call('ZSCORE', DEAD, id) and {id} or {}
end
for _, id in ipairs(ids) do
    if head.items < cap then
        redrive(id)
    end
end
begin_step()
serve()
end_step()
if redriven == 0 and max > 0 and head.items >= cap and
   call('EXISTS', DEAD) == 1 then
    return {FULL, int(head.items), int(cap)}
end
return {OK, int(redriven)}
