-- tell_topic.lua - tells a topic something, as "changed NUMBER". Part of other scripts.
-- `publish` is PUBLISH, or in a cluster SPUBLISH, whose messages stay with the
-- servers of the slot. Without subscribers nothing is published, as the server
-- would pass the message on to its replicas. A notice is a hint: whether it can be
-- sent changes nothing.
local function tell_topic(publish, channel, news)
    local found = publish == 'SPUBLISH' and
                  redis.pcall('PUBSUB', 'SHARDNUMSUB', channel) or
                  redis.pcall('PUBSUB', 'NUMSUB', channel)

    if found.err or found[2] ~= 0 then
        redis.pcall(publish, channel, news)
    end
end
