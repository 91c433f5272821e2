CREATE TABLE approvals (
    id             uuid        PRIMARY KEY,
    tenant         uuid        NOT NULL,
    project        uuid        NOT NULL,
    owner          uuid        NOT NULL, -- who asked
    action         text        NOT NULL,
    subject_kind   text        NOT NULL,
    subject        uuid        NOT NULL,
    subject_parent uuid        NOT NULL,
    digest         text        NOT NULL,
    reason         text        NOT NULL,
    status         text        NOT NULL,
    requested_at   timestamptz NOT NULL,
    expires_at     timestamptz NOT NULL,
    ended_at       timestamptz,
    ended_by       uuid,
    answer         text        NOT NULL
);
CREATE INDEX approvals_expiry ON approvals (expires_at, id) WHERE status = 'PENDING';
