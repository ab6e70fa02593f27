-- grant_free.lua - grants a free name to a plain ask. Part of other scripts; needs
-- `call` and `fence_key`. KEYS: lock party ...; ARGV: those of acquire.
--include write_holder
if not ARGV[6] and call('EXISTS', KEYS[1], KEYS[2]) == 0 then
    local time = call('TIME')
    local us = time[2]
    local fence = #us == 6 and time[1] .. us or
                  string.format('%s%06d', time[1], us)
    local last = call('GETSET', fence_key, fence)

    if not last or (#last == #fence and last < fence) then
        hold(KEYS[1], fence, ARGV[1], ARGV[2], ARGV[3], ARGV[4])
        return fence
    end
    call('SET', fence_key, last)
end
