-- commit.sql - commits (src/store/commit.h). The rule is that of src/store/ledger.c.
--
-- Locks, in this order: the indexes, by the hash of their names; the values, first those
-- that may be absent, each by a row without a version, then all by FOR UPDATE, both in
-- the order of their keys; the entries, in order; the topics, in order. An index is
-- locked in share mode if one commit changes it and does not ask for its size. Then its
-- entries are locked one by one, those that leave without being there as well. So of
-- two commits one sees all of the other, and none waits in a circle.

-- Puts a member into an index, or moves it. Answers 1 if it is new.
CREATE OR REPLACE FUNCTION @schema@.entry_enter(a_name text, a_member text, a_at bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE @schema@.entry AS e SET at = a_at
    WHERE e.name = a_name AND e.member = a_member;
    IF FOUND THEN
        RETURN 0;
    END IF;
    INSERT INTO @schema@.entry AS e VALUES (a_at, a_name, a_member)
    ON CONFLICT (name, member) DO UPDATE SET at = excluded.at;
    RETURN 1;
END
$$;

-- Takes a member out of an index. Answers -1 if it was there. If it was not, its place
-- is taken until the commit: another commit that enters it now is before this one or
-- behind it, in all that both do.
CREATE OR REPLACE FUNCTION @schema@.entry_leave(a_name text, a_member text)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_result bigint := -1;
BEGIN
    LOOP
        DELETE FROM @schema@.entry AS e
        WHERE e.name = a_name AND e.member = a_member;
        IF FOUND THEN
            RETURN v_result;
        END IF;
        INSERT INTO @schema@.entry VALUES (-1, a_name, a_member)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            v_result := 0;
        END IF;
    END LOOP;
END
$$;

-- Locks indexes. a_all: the step has several commits.
CREATE OR REPLACE FUNCTION @schema@.commit_indexes(
    a_verbs bigint[], a_names text[], a_all boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM CASE WHEN i.alone THEN pg_advisory_xact_lock(i.hash)
                 ELSE pg_advisory_xact_lock_shared(i.hash) END
    FROM (SELECT hashtextextended(x.name, 1768842360) AS hash,
                 a_all OR bool_or(x.verb IN (4, 5)) AS alone
          FROM unnest(a_verbs, a_names) AS x(verb, name)
          WHERE x.verb & 7 IN (2, 4, 5)
          GROUP BY 1 ORDER BY 1) AS i;
END
$$;

-- Locks values: those of the checks, and those that may be absent, whose rows it makes.
-- Answers whether it made any. One that was there, and has been deleted meanwhile, is made
-- as well; to begin again it lets go of all rows, since with one in hand it might wait for
-- a commit that makes the other and waits for this one.
CREATE OR REPLACE FUNCTION @schema@.commit_values(a_keys text[], a_free text[])
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_free text[] := ARRAY(SELECT DISTINCT f.key COLLATE "C"
                           FROM unnest(a_free) AS f(key));
    v_made boolean;
    v_locked bigint;
BEGIN
    LOOP
        BEGIN
            v_made := false;
            IF v_free <> '{}' THEN
                INSERT INTO @schema@.value
                SELECT f.key, 0, NULL, '' FROM unnest(v_free) AS f(key)
                ORDER BY f.key COLLATE "C"
                ON CONFLICT DO NOTHING;
                v_made := FOUND;
            END IF;
            SELECT count(*) FILTER (WHERE k.key = ANY (v_free)) INTO v_locked
            FROM (SELECT v.key FROM @schema@.value AS v
                  WHERE v.key = ANY (v_free || a_keys)
                  ORDER BY v.key FOR UPDATE) AS k;
            IF v_locked = cardinality(v_free) THEN
                RETURN v_made;
            END IF;
            RAISE EXCEPTION 'again' USING ERRCODE = 'DB001';
        EXCEPTION WHEN SQLSTATE 'DB001' THEN
            NULL; -- the subtransaction took its locks with it
        END;
    END LOOP;
END
$$;

-- Looks at the clock and the checks of a commit. head is NULL if it may be done, else
-- "10 NOW", "11 NOW" or "4 NOW CHECK VERSION LEFT_MS", then with the data found.
CREATE OR REPLACE FUNCTION @schema@.commit_check(
    at_us bigint, a_before bigint, a_after bigint, a_keys text[],
    a_versions bigint[], OUT head text, OUT data bytea)
LANGUAGE plpgsql AS $$
DECLARE
    bad record;
BEGIN
    IF at_us < a_before THEN
        head := '10 ' || at_us;
        RETURN;
    ELSIF a_after > 0 AND at_us > a_after THEN
        head := '11 ' || at_us;
        RETURN;
    END IF;
    SELECT c.n, coalesce(v.version, 0) AS version, v.until_us, v.data INTO bad
    FROM unnest(a_keys, a_versions) WITH ORDINALITY AS c(key, version, n)
    LEFT JOIN @schema@.value AS v ON v.key = c.key AND v.version > 0
        AND coalesce(v.until_us > at_us, true)
    WHERE coalesce(v.version, 0) <> c.version
    ORDER BY c.n LIMIT 1;
    IF FOUND THEN
        head := concat_ws(' ', 4, at_us, bad.n - 1, bad.version,
                          coalesce((bad.until_us - at_us + 999) / 1000, -1));
        data := coalesce(bad.data, '');
    END IF;
END
$$;

-- Changes the values of a commit. Answers the topics that it tells.
CREATE OR REPLACE FUNCTION @schema@.commit_put(
    at_us bigint, a_version bigint, a_verbs bigint[], a_keys text[],
    a_numbers bigint[], a_data bytea[])
RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    v_topics text[];
BEGIN
    INSERT INTO @schema@.value AS v
    SELECT x.key, a_version,
           CASE WHEN x.number > 0 THEN at_us + x.number * 1000 END, x.data
    FROM unnest(a_verbs, a_keys, a_numbers, a_data)
        AS x(verb, key, number, data)
    WHERE x.verb = 0
    ON CONFLICT (key) DO UPDATE SET version = excluded.version,
        until_us = excluded.until_us, data = excluded.data;
    WITH gone AS (
        DELETE FROM @schema@.value AS v WHERE v.key = ANY (ARRAY(
            SELECT x.key FROM unnest(a_verbs, a_keys) AS x(verb, key)
            WHERE x.verb = 1))
        RETURNING v.key, v.version > 0 AND coalesce(v.until_us > at_us, true)
            AS lived)
    SELECT array_agg('value:' || g.key || ' 0') INTO v_topics
    FROM gone AS g WHERE g.lived;
    RETURN v_topics || ARRAY(
        SELECT CASE WHEN x.verb = 0 THEN 'value:' || x.key || ' ' || a_version
                    ELSE x.key || ' ' || CASE WHEN x.number = 0 THEN a_version
                                              ELSE x.number END END
        FROM unnest(a_verbs, a_keys, a_numbers) AS x(verb, key, number)
        WHERE x.verb IN (0, 3));
END
$$;

-- Changes the entries of a commit, in order. `sizes` are those of indexes that it had to
-- count, and stays true. Answers the sizes that were asked for, in the order of the
-- changes.
CREATE OR REPLACE FUNCTION @schema@.commit_entries(
    at_us bigint, a_verbs bigint[], a_names text[], a_members text[],
    a_numbers bigint[], INOUT sizes jsonb, OUT words text)
LANGUAGE plpgsql AS $$
DECLARE
    x record;
    v_more bigint;
BEGIN
    FOR x IN SELECT c.verb & 7 AS verb, c.name, c.member, c.number
             FROM unnest(a_verbs, a_names, a_members, a_numbers)
                 AS c(verb, name, member, number)
             WHERE c.verb & 7 IN (2, 4, 5)
             ORDER BY c.name COLLATE "C", c.member COLLATE "C"
    LOOP
        v_more := CASE x.verb
            WHEN 2 THEN @schema@.entry_leave(x.name, x.member)
            WHEN 4 THEN @schema@.entry_enter(x.name, x.member, x.number)
            ELSE @schema@.entry_enter(x.name, x.member, at_us + x.number) END;
        IF v_more <> 0 AND sizes ? x.name THEN
            sizes := sizes || jsonb_build_object(
                x.name, (sizes ->> x.name)::bigint + v_more);
        END IF;
    END LOOP;
    words := '';
    FOR x IN SELECT c.verb, c.name FROM unnest(a_verbs, a_names) AS c(verb, name)
             WHERE c.verb & 7 IN (4, 5)
    LOOP
        IF x.verb < 8 AND NOT sizes ? x.name THEN
            sizes := sizes || jsonb_build_object(x.name, (
                SELECT count(*) FROM @schema@.entry AS e
                WHERE e.name = x.name AND e.at >= 0));
        END IF;
        words := words || ' ' ||
                 CASE WHEN x.verb < 8 THEN sizes ->> x.name ELSE '0' END;
    END LOOP;
END
$$;

-- Does several commits, each or nothing of it. a_checks and a_changes: how many each has;
-- theirs follow one another in the arrays. a_free: keys that they change or want to be
-- absent. Verbs: 0 put (the number is its ttl in ms), 1 delete, 2 leave, 3 tell, 4 enter,
-- 5 enter so many us from now; 8 more where the size is not asked for. Answers a text for
-- all of them, with "0 NOW VERSION" and the sizes for each that was done, else as
-- commit_check; and the data that was found, for each that answers 4.
CREATE OR REPLACE FUNCTION @schema@.value_commit(
    a_before bigint[], a_after bigint[], a_checks bigint[], a_changes bigint[],
    a_keys text[], a_versions bigint[], a_free text[], a_verbs bigint[],
    a_names text[], a_members text[], a_numbers bigint[], a_data bytea[])
RETURNS bytea[]
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint;
    v_made boolean;
    v_found bytea[] := '{}';
    v_heads text[] := '{}';
    v_topics text[] := '{}';
    v_sizes jsonb := '{}';
    v_version bigint := 0;
    -- Before the checks and changes of this commit, and the last of them.
    c bigint := 0;
    d bigint;
    x bigint := 0;
    y bigint;
    seen record;
    done record;
BEGIN
    PERFORM @schema@.commit_indexes(a_verbs, a_names,
                                    cardinality(a_checks) > 1);
    v_made := @schema@.commit_values(a_keys, a_free);
    at_us := @schema@.now_us();
    FOR i IN 1 .. cardinality(a_checks) LOOP
        d := c + a_checks[i];
        y := x + a_changes[i];
        SELECT * INTO seen FROM @schema@.commit_check(
            at_us, a_before[i], a_after[i], a_keys[c + 1:d],
            a_versions[c + 1:d]);
        IF seen.head IS NOT NULL THEN
            v_heads := v_heads || seen.head;
            IF seen.data IS NOT NULL THEN
                v_found := v_found || seen.data;
            END IF;
        ELSE
            SELECT greatest(at_us, v_version + 1, max(v.version) + 1)
            INTO v_version FROM @schema@.value AS v
            WHERE v.key = ANY (a_keys[c + 1:d] || a_names[x + 1:y]);
            v_topics := v_topics || @schema@.commit_put(
                at_us, v_version, a_verbs[x + 1:y], a_names[x + 1:y],
                a_numbers[x + 1:y], a_data[x + 1:y]);
            SELECT * INTO done FROM @schema@.commit_entries(
                at_us, a_verbs[x + 1:y], a_names[x + 1:y], a_members[x + 1:y],
                a_numbers[x + 1:y], v_sizes);
            v_sizes := done.sizes;
            v_heads := v_heads || ('0 ' || at_us || ' ' || v_version ||
                                   done.words);
        END IF;
        c := d;
        x := y;
    END LOOP;
    IF v_made THEN
        DELETE FROM @schema@.value AS v
        WHERE v.key = ANY (a_free) AND v.version = 0;
    END IF;
    IF v_version % 8 = 0 THEN
        PERFORM @schema@.value_sweep(at_us);
    END IF;
    PERFORM @schema@.tell(t.topic, t.number)
    FROM (SELECT regexp_replace(s.text, ' -?[0-9]+$', '') COLLATE "C" AS topic,
                 substring(s.text FROM '-?[0-9]+$')::bigint AS number
          FROM unnest(v_topics) WITH ORDINALITY AS s(text, n)
          ORDER BY 1, s.n) AS t;
    RETURN convert_to(array_to_string(v_heads, ' '), 'UTF8') || v_found;
END
$$;
