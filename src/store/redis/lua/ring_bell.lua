-- ring_bell.lua - sends a notice to a doorbell. Part of other scripts.
-- In a cluster a bell has a channel for each slot it listens to, which only the
-- servers of the slot pass on; the fence key has the tag of the slot. If that channel
-- has no subscriber at this server, or the server has no such channels, the notice
-- goes to the ordinary one. A notice is a hint: whether it can be sent changes nothing.
local function ring_bell(fence_key, bell, text)
    local tag = fence_key:match('{.*}')
    local heard = tag and redis.pcall('SPUBLISH', 'dibs:bell:' .. tag .. ':' ..
                                      bell, text)

    if type(heard) ~= 'number' or heard == 0 then
        redis.pcall('PUBLISH', 'dibs:bell:' .. bell, text)
    end
end
