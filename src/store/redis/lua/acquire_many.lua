-- acquire_many.lua - grants free names to many who ask for one each.
-- KEYS: fence, then for each lock party
-- ARGV: for each the same number of words: owner ttl_ms who [bell flags]
-- Answers for each the fence, or nil when it is for acquire to do: the name is
-- held, or somebody waits for it or has left it.
local call = redis.call

--include fence
--include hold
local count = (#KEYS - 1) / 2
local width = #ARGV / count
local fence = next_fences(KEYS[1], call('TIME'), count)
local answers = {}

for i = 1, count do
    local lock, first = KEYS[2 * i], width * (i - 1) + 1
    local answer = false

    if call('EXISTS', lock, KEYS[2 * i + 1]) == 0 then
        answer = int(fence)
        fence = fence + 1
        hold(lock, answer, unpack(ARGV, first, first + width - 1))
    end
    answers[i] = answer
end
return answers
