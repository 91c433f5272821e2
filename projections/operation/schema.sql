CREATE TABLE operations (
    id               uuid        PRIMARY KEY,
    tenant           uuid        NOT NULL,
    project          uuid        NOT NULL,
    owner            uuid        NOT NULL,
    kind             text        NOT NULL,
    subject_kind     text        NOT NULL,
    subject          uuid        NOT NULL,
    subject_parent   uuid        NOT NULL,
    work             text        NOT NULL,
    status           text        NOT NULL,
    attempt          int         NOT NULL,
    done_bytes       bigint      NOT NULL,
    total_bytes      bigint      NOT NULL,
    fingerprint      text        NOT NULL,
    files            bigint      NOT NULL,
    bytes            bigint      NOT NULL,
    error_code       text,
    error_message    text,
    cancel_requested boolean     NOT NULL,
    dismissed        boolean     NOT NULL,
    queued_at        timestamptz NOT NULL, -- for the first time
    started_at       timestamptz,
    ended_at         timestamptz,
    line             bigint      NOT NULL  -- position of the event that put it in line: the order of the worker
);
CREATE INDEX operations_owner ON operations (tenant, owner, queued_at, id);
CREATE INDEX operations_queued ON operations (tenant, queued_at, id);
CREATE INDEX operations_subject ON operations (subject, queued_at, id);
CREATE INDEX operations_subject_parent ON operations (subject_parent, queued_at, id);
CREATE INDEX operations_pending ON operations (tenant, owner, status, line) WHERE status IN ('QUEUED', 'RUNNING');
