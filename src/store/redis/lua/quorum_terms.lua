-- quorum_terms.lua - how far the clocks of a quorum may be apart. Part of other
-- scripts. A fence is not further AHEAD of the clock of a node; a clock that went
-- BACK by more was set; the time that was SEEN last is written anew when it is older.
local AHEAD_MS, BACK_MS, SEEN_MS = 1000, 500, 100
