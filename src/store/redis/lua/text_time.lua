-- text_time.lua - a moment in us as text, `more` seconds after the reply to TIME. Part
-- of other scripts. To format a large number by %.0f takes longer than to call GET.
local function text_time(time, more)
    return string.format('%d%06d', time[1] + more, time[2])
end
