-- What the projections' runner needs on top of its tables.

-- Numbers of generations are never used twice: a process may remember one.
CREATE SEQUENCE tallyard.generation_ids AS int;

-- The last event of a checkpoint that stays in the log for good, so that a log
-- that was put back to an earlier state is noticed; and why a projection stands still.
ALTER TABLE tallyard.checkpoints
    ADD COLUMN event_position bigint NOT NULL DEFAULT 0,
    ADD COLUMN halted         text   NOT NULL DEFAULT '';

ALTER TABLE tallyard.projection_requests ADD COLUMN generation int;

-- Moves checkpoints by compare-and-set and ends the transaction with TY001
-- when one of them is not where the caller believes: somebody else projects.
CREATE FUNCTION tallyard.advance_checkpoints(
    gen int, names text[], was bigint[], becomes bigint[], solid bigint, solid_event uuid
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moved int;
BEGIN
    UPDATE tallyard.checkpoints c
    SET position = m.becomes, event_position = solid, event_id = solid_event, updated_at = clock_timestamp()
    FROM unnest(names, was, becomes) AS m (projection, was, becomes)
    WHERE c.generation = gen AND c.projection = m.projection AND c.position = m.was;
    GET DIAGNOSTICS moved = ROW_COUNT;
    IF moved <> cardinality(names) THEN
        RAISE EXCEPTION 'checkpoints of generation % (%) are not where this projector left them', gen, array_to_string(names, ', ')
            USING ERRCODE = 'TY001';
    END IF;
END
$$;
