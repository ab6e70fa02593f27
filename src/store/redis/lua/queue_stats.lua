-- queue_stats.lua - the settings and counts of a queue.
-- KEYS: those of queue_shelf.lua
-- Answers NOTFOUND alone, or OK, then paused serial cap tries deads lost_max keep_done
-- ready later out dead done lanes waiting oldest_ms pushed delivered acked nacked lost died
-- dropped purged.
--
-- It tidies first, so that it counts what a reserve would find.
--include queue_step
local answer, oldest = {OK}, NEVER

if not head.last then
    return {NOTFOUND}
end

local function note_place(place)
    oldest = math.min(oldest, tonumber(place or NEVER))
end

call('HDEL', META, '') -- a full server lets what follows write too
begin_step()
serve()
end_step()

-- It looks at the first of many ranked or addressed items.
note_place((call('LINDEX', READY, '0') or ''):match('^%d+'))
for _, key in ipairs({NEXT, OWN}) do
    for _, member in ipairs(call('ZRANGE', key, '0', int(MOST - 1))) do
        note_place(member:sub(-32, -17))
    end
end

local later, out = call('ZCARD', LATER), call('HLEN', OUT)

for _, number in ipairs({
    head.paused and 1 or 0, head.serial and 1 or 0, setting('cap', 1000000),
    setting('tries', 16), setting('deads', 10000), setting('lost_max', 4),
    setting('keep_done', 0),
    head.items - later - out, later, out, call('ZCARD', DEAD),
    call('LLEN', DONE), head.lanes,
    call('ZCARD', WAIT), math.max(0, math.floor((now - oldest) / 1000)),
    head.pushed, head.delivered, head.acked, head.nacked, head.lost, head.died,
    head.dropped, head.purged,
}) do
    answer[#answer + 1] = int(number)
end
return answer
