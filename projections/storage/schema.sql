CREATE TABLE spaces (
    id         uuid        PRIMARY KEY,
    tenant     uuid        NOT NULL,
    kind       text        NOT NULL,
    owner      uuid        NOT NULL, -- nil: not a personal space
    project    uuid        NOT NULL, -- nil: not a project's space
    zone       text        NOT NULL,
    quota      bigint,                -- NULL: what the installation gives
    version    int         NOT NULL,
    created_at timestamptz NOT NULL
);
