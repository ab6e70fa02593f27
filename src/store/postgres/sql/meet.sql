-- meet.sql - version 11: which steps on rosters sweep. It replaces a function of version 3.

-- Does an item. A crash of the server may lose seats and arrivals, which their
-- parties make again; not what opens or breaks, nor a count.
-- Answers "status number here live parties left_ms clock_us". One in sixteen of those that
-- draw a number sweeps, not each that finds such a number: all counts of a latch would.
CREATE OR REPLACE FUNCTION @schema@.meet(
    a_name text, a_verb text, a_id text, a_fence bigint, a_after bigint,
    a_need bigint, a_ttl_ms bigint, a_flags text, a_settle_ms bigint,
    a_by_us bigint, a_who text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    old @schema@.roster := @schema@.enter_roster(
        a_name, a_verb IN ('sit', 'count'));
    r @schema@.roster := old;
    at_us bigint := @schema@.now_us();
    v_run text;
    v_left bigint := 0;
    o record;
BEGIN
    IF r.gen <> 0 AND r.kind = 2 AND r.until_us <= at_us THEN
        DELETE FROM @schema@.seat AS s WHERE s.name = a_name;
        r.gen := 0;
        r.kind := 0;
        r.need := 0;
        r.here := 0;
    END IF;
    IF r.run <> '' OR strpos(a_flags, 's') > 0 THEN
        v_run := @schema@.run();
        IF r.run <> v_run THEN
            r := @schema@.end_seats(r, at_us, 9223372036854775806);
            r.run := v_run;
        END IF;
    END IF;
    IF r.seats > 0 THEN
        r := @schema@.end_seats(r, at_us, at_us);
    END IF;
    IF a_by_us > 0 AND at_us > a_by_us AND a_verb IN ('sit', 'keep') THEN
        SELECT r AS r, 2::bigint AS status, NULL::bigint AS number INTO o;
    ELSIF a_verb IN ('sit', 'count', 'look', 'reset') THEN
        SELECT * INTO o FROM @schema@.meet_unseated(
            r, at_us, a_verb, a_id, a_after, a_need, a_ttl_ms, a_flags,
            a_settle_ms, a_who);
    ELSE
        SELECT * INTO o FROM @schema@.meet_seated(
            r, at_us, a_verb, a_id, a_fence, a_after, a_need, a_ttl_ms,
            a_flags);
    END IF;
    r := o.r;
    IF a_verb = 'keep' AND o.status = 0
       AND greatest(r.need, a_need) > 0 THEN
        v_left := @schema@.seats_left(
            a_name, at_us, CASE WHEN r.need > 0 THEN r.need ELSE a_need END);
    ELSIF a_verb = 'arrive' AND o.status = 1 THEN
        v_left := @schema@.seats_left(a_name, at_us, 0);
    END IF;
    IF r.kind <> 2 AND (old.gen = 0 OR old.gen = r.gen) THEN
        PERFORM @schema@.lazily();
    END IF;
    PERFORM @schema@.save_roster(old, r);
    IF a_verb IN ('sit', 'count') AND r.last > old.last
       AND r.last % 16 = 0 THEN
        PERFORM @schema@.sweep_rosters(at_us);
    END IF;
    RETURN concat_ws(' ', o.status, coalesce(o.number, r.gen), r.here, r.seats,
                     r.need, v_left, at_us);
END
$$;

UPDATE @schema@.meta SET version = 11;
