-- queue_purge.lua - drops items.
-- KEYS: those of queue_shelf.lua
-- ARGV: places max; places has r ready, l later, o out, d dead, k records of done ones
-- Answers NOTFOUND alone, or OK and how many.
--include queue_step
local places, max = ARGV[1], tonumber(ARGV[2])
local purged = 0

if not head.last then
    return {NOTFOUND}
end
call('HDEL', META, '') -- a full server lets what follows write too

local function purge(item)
    if item and not item.gone then
        forget(item)
        purged = purged + 1
    else
        miss_item()
    end
end

local function purge_ready()
    while purged < max do
        local entry = call('LPOP', READY)

        if not entry then
            break
        end
        purge(listed_item(entry))
    end
    for _, member in ipairs(purged < max and
                            call('ZRANGE', NEXT, '0', int(max - purged - 1)) or {}) do
        call('ZREM', NEXT, member)
        purge(read_item(member:sub(-16)))
    end
    for _, member in ipairs(purged < max and
                            call('ZRANGE', OWN, '0', int(max - purged - 1)) or {}) do
        call('ZREM', OWN, member)
        change_load(member:match('^%Z*'), -1)
        purge(read_item(member:sub(-16)))
    end
end

local function purge_later()
    for _, id in ipairs(purged < max and
                        call('ZRANGE', LATER, '0', int(max - purged - 1)) or {}) do
        local item = read_item(id)

        if item then
            later_drop(item)
            purge(item)
        else
            later_miss(id)
        end
    end
end

-- Some of what is out, in no order.
local function purge_out()
    local cursor = '0'

    repeat
        local found = call('HSCAN', OUT, cursor, 'COUNT', '500')

        cursor = found[1]
        for i = 1, #found[2], 2 do
            local field = found[2][i]

            if purged < max and leave_lane(field) then
                local item = out_item(field:sub(1, 16), field:sub(18))

                out_drop(field:sub(1, 16), field:sub(18))
                purge(item)
            end
        end
    until cursor == '0' or purged >= max
end

local function purge_dead()
    for _, id in ipairs(purged < max and
                        call('ZRANGE', DEAD, '0', int(max - purged - 1)) or {}) do
        drop_dead(id)
        purged = purged + 1
    end
end

if places:find('r') then
    purge_ready()
end
if places:find('l') then
    purge_later()
end
if places:find('o') then
    purge_out()
end
if places:find('d') then
    purge_dead()
end
head.purged = head.purged + purged
if places:find('k') then
    local many = math.min(max - purged, call('LLEN', DONE))

    call('LTRIM', DONE, int(many), '-1')
    purged = purged + many
end
-- If the server has lost a key, the count is mended here.
head.items = count_items()
begin_step()
serve()
end_step()
return {OK, int(purged)}
