-- queue_remove.lua - forgets a queue.
-- KEYS: those of queue_shelf.lua
-- Answers NOTFOUND, OK, or BUSY with its items, dead letters and lanes.
--include queue_step
if not head.last then
    return {NOTFOUND}
end
call('HDEL', META, '') -- a full server lets what follows write too
begin_step()
serve()
end_step()

local dead = call('ZCARD', DEAD)

if head.items > 0 or dead > 0 or head.lanes > 0 then
    return {BUSY, int(head.items), int(dead), int(head.lanes)}
end
call('DEL', READY, META, OUT, WAIT, KEPT, NEXT, LATER, DEAD, IDS, IDEND, OWN, LOAD,
     LIMIT, DONE)
return {OK}
