-- One row per command that changed something or was refused, and per step that
-- the platform took by itself.
CREATE TABLE audit_entries (
    id             uuid        PRIMARY KEY, -- of the command's first event
    command        uuid        NOT NULL UNIQUE,
    position       bigint      NOT NULL,
    tenant         uuid        NOT NULL,
    project        uuid,
    action         text        NOT NULL,
    outcome        text        NOT NULL,
    actor_kind     text        NOT NULL,
    actor          uuid,
    token          uuid,
    part           text        NOT NULL,
    subject_kind   text        NOT NULL,
    subject        uuid,
    subject_parent uuid,
    request        uuid,
    correlation    uuid,
    causation      uuid,
    reason         text        NOT NULL,
    faults         jsonb       NOT NULL,
    changes        jsonb       NOT NULL,
    events         jsonb       NOT NULL, -- stored names, in order
    at             timestamptz NOT NULL
);
