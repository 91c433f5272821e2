-- Sign-ins of browsers, by the SHA-256 of their secrets.
CREATE TABLE tallyard.browser_sessions (
    digest     bytea       PRIMARY KEY,
    tenant     uuid        NOT NULL,
    user_id    uuid        NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX browser_sessions_expires ON tallyard.browser_sessions (expires_at);
