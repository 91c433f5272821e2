-- What spaces hold, as it was counted and changed since. Counting everything in
-- a space anew must come out equal, but for what workloads wrote meanwhile.
CREATE TABLE tallyard.space_usage (
    space      uuid        PRIMARY KEY,
    tenant     uuid        NOT NULL,
    bytes      bigint      NOT NULL CHECK (bytes >= 0),
    changes    bigint      NOT NULL, -- a count that others changed meanwhile is void
    counted_at timestamptz NOT NULL
);
CREATE INDEX space_usage_counted ON tallyard.space_usage (counted_at);

-- SHA-256 of files as they were at a version of theirs (inode, times, size).
-- Throw-away: any row may be deleted, the file is then read again.
CREATE TABLE tallyard.file_digests (
    space   uuid        NOT NULL,
    path    text        NOT NULL,
    version text        NOT NULL,
    sha256  bytea       NOT NULL,
    at      timestamptz NOT NULL,
    PRIMARY KEY (space, path)
);
CREATE INDEX file_digests_at ON tallyard.file_digests (at);
