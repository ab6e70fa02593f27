-- wait_plain.lua - gives a plain ask its place behind an exclusive holder, or keeps
-- it, as grant.lua would, with what that takes and no more. Part of acquire. Needs
-- `call`. ARGV: those of acquire.
-- Everything else is left to the rest: a free name, a holder that wants to hear of
-- others, a tombstone, another bell than before, a party whose time has passed.
do
    local lock, party, queue, place = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
    local owner, bell = ARGV[1], ARGV[4]
    local at = redis.pcall('HMGET', lock, 'owner', 'fence', 'who', 'bell')

    if at[1] and at[2] and at[3] and at[1]:sub(1, 32) ~= owner and
       (not at[4] or at[4]:sub(-1) ~= '+') then
        local record = call('HGET', party, owner)
        local seq, known = (record or ''):match(
            '^w (%d+) 0 1 0 0 %d+ %d+ (%S+) ')
        local left_ms = call('PTTL', lock)
        --include text_time
        local time = call('TIME')
        local now = text_time(time, 0)
        local ahead = false

        if left_ms > 0 and call('ZCOUNT', place, '-inf', now) == 0 then
            if not record then
                ahead = call('ZCOUNT', queue, '-inf', '0')
                seq = string.format('%016d', call('HINCRBY', party, 'seq', '1'))
                call('ZADD', queue, '0', seq .. owner)
                call('HSET', party, owner, 'w ' .. seq .. ' 0 1 0 0 ' ..
                     ARGV[2] .. ' ' .. now .. ' ' .. bell .. ' ' .. ARGV[3])
            elseif seq and known == bell then
                ahead = call('ZRANK', queue, seq .. owner)
            end
        end
        if ahead then
            local keep_ms = call('PTTL', party)

            call('ZADD', place, text_time(time, 3), owner)
            -- A key that is not new lasts as long as that of the parties.
            if keep_ms < 3000 or (ahead == 0 and not record) then
                if keep_ms < 3000 then
                    keep_ms = 6000
                    call('PEXPIRE', party, '6000')
                end
                call('PEXPIRE', place, tostring(keep_ms))
                call('PEXPIRE', queue, tostring(keep_ms))
            end
            if not at[1]:find('wanted', 33, true) then
                call('HSET', lock, 'owner', at[1] .. ' wanted')
            end
            return {1, call('GET', KEYS[5]) or '0', left_ms, 1, ahead, at[3]}
        end
    end
end
