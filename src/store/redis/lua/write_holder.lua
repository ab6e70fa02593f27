-- write_holder.lua - writes the holder of a free name, in as few words as possible.
-- Part of other scripts. Needs `call`. A ttl is written only when it is not 30 s.
local function hold(lock, fence, owner, ttl_ms, who, bell)
    if ttl_ms == '30000' then
        call('HSET', lock, 'owner', owner, 'fence', fence, 'who', who)
    else
        call('HSET', lock, 'owner', owner, 'fence', fence, 'ttl', ttl_ms, 'who',
             who)
    end
    call('PEXPIRE', lock, ttl_ms)
    if bell and bell ~= '-' then
        call('HSET', lock, 'bell', bell)
    end
end
