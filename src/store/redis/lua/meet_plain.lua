-- meet_plain.lua - does the common item that is alone in its script: an arrival or a
-- count that is not the last, as the rest of meet would, with what that takes and no
-- more. Part of meet, which has the keys and the arguments. Needs `call` and `int`.
-- Everything else is left to the rest, and until that is certain nothing is changed: a
-- seat that is not used yet, one that ends, keys that expire too soon, a strict roster.
-- One item has 4 keys, in a cluster 5, two have 7.
if #KEYS <= 5 and (ARGV[2] == 'arrive' or ARGV[2] == 'count') then
    local roster, till = KEYS[1], KEYS[2]
    local field, after = '=' .. ARGV[3], ARGV[5]
    local kind, gen, need, here, run, mine = unpack(
        call('HMGET', roster, 'kind', 'gen', 'need', 'here', 'run', field))
    local time = call('TIME')
    local now = time[1] * 1000000 + time[2]

    here = (here or 0) + 1
    if run or ARGV[8]:find('s') or need ~= ARGV[6] or here >= need + 0 then
        kind = ''
    end
    if ARGV[2] == 'count' and kind == 'latch' and not mine and
       (after == '0' or after == gen) and call('ZCARD', till) == 0 then
        call('HSET', roster, field, '+', 'here', here)
        call('PEXPIRE', roster, ARGV[7])
        return {{1, gen, here, 0, need, 0, now}}
    elseif ARGV[2] == 'arrive' and kind == 'barrier' and mine then
        local fence, rec, state, who =
            mine:match('^(%d+) %d+ (%d+) (%l) (.*)$')
        local until_us = now + ARGV[7] * 1000
        local ends = int(until_us)
        local first = call('ZRANGE', till, '0', '0', 'WITHSCORES')

        if fence == ARGV[4] and rec == after and state ~= 'n' and
           rec ~= gen and (first[2] or 0) + 0 > now and
           call('ZCOUNT', till, ends, '+inf') == 0 and
           call('PTTL', till) >= 2 * ARGV[7] then
            call('HDEL', roster, '') -- a full server lets what follows write too
            call('ZADD', till, ends, ARGV[3])
            call('HSET', roster, 'here', here, field,
                 fence .. ' ' .. after .. ' ' .. gen .. ' a ' .. who)
            if first[1] == ARGV[3] then
                first = call('ZRANGE', till, '0', '0', 'WITHSCORES')
            end
            return {{1, gen, here, call('ZCARD', till), need,
                     math.floor((first[2] - now) / 1000), now}}
        end
    end
end
