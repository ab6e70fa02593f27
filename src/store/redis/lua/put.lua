-- put.lua - writes a value if its version is the one expected.
-- KEYS: value fence
-- ARGV: expected ("any", "0" for nothing there, or a version) ttl_ms data publish, and
-- perhaps what the notice shows
-- Answers OK or STALE, and the new or the found version.
local call = redis.call
local found = call('HGET', KEYS[1], 'version') or '0'

if ARGV[1] ~= 'any' and ARGV[1] ~= found then
    return {4, found}
end

--include fence
--include tell_topic
local version = next_fence(KEYS[2], call('TIME'))

if found ~= '0' then
    call('DEL', KEYS[1])
end
call('HSET', KEYS[1], 'version', version, 'data', ARGV[3])
if ARGV[2] ~= '0' then
    call('PEXPIRE', KEYS[1], ARGV[2])
end
tell_topic(ARGV[4], KEYS[1], 'changed ' .. version .. (ARGV[5] or ''))
return {0, version}
