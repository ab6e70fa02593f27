-- queue_leave.lua - ends a lane; what it had comes back uncounted.
-- KEYS: those of queue_shelf.lua
-- ARGV: lane
--include queue_step
local lane

if not head.last then
    return OK
end
call('HDEL', META, '') -- a full server lets what follows write too
begin_step()
lane = read_lane(ARGV[1])
if lane then
    end_lane(lane, 'unbegun')
end
serve()
end_step()
return OK
