-- hand_off.lua - releases an exclusive lease and serves a plain waiter, as grant.lua
-- would, with what that takes and no more. Part of release. Needs `call`.
-- Everything else is left to grant.lua: a priority, a head of another kind or without
-- a bell, a party whose time has passed.
-- The first write takes no memory, so that a full server does the rest too.
do
    local lock, party, queue, place = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
    local at = call('HMGET', lock, 'owner', 'priority')
    local mark = at[1] and at[1]:sub(1, 32) == ARGV[1] and at[1]:sub(33)

    -- A waiter would have left its mark.
    if mark == '' or mark == ' claim' then
        call('DEL', lock)
        return 0
    end
    if (mark == ' wanted' or mark == ' claim wanted') and not at[2] then
        local line = call('ZRANGE', queue, '0', '1')
        local heir = line[1] and line[1]:sub(17)
        local record = heir and call('HGET', party, heir)
        local ttl, bell, who = (record or ''):match(
            '^w %d+ 0 1 0 0 (%d+) %d+ (%x+%+?) (.*)$')
        --include text_time
        local time = call('TIME')
        local fence = text_time(time, 0)

        if bell and call('ZCOUNT', place, '-inf', fence) == 0 then
            --include ring_bell
            call('ZREM', place, heir)

            local last = call('GETSET', KEYS[5], fence)

            -- The clock was set back, or two grants came in one microsecond.
            if last and (#last ~= #fence or last >= fence) then
                --include fence
                call('SET', KEYS[5], last)
                fence = next_fence(KEYS[5], time)
            end
            call('ZREM', queue, line[1])
            call('HDEL', party, heir)
            call('HSET', lock, 'owner', heir .. (line[2] and ' claim wanted' or
                 ' claim'), 'fence', fence, 'ttl', ttl, 'who', who, 'bell',
                 bell)
            call('PEXPIRE', lock, '3000')
            ring_bell(KEYS[5], bell:match('%x+'), heir .. ' granted ' .. fence)
            if not line[2] and call('EXISTS', place) == 0 then
                call('DEL', party)
            end
            return 0
        end
    end
end
