-- Who held which role, from when to when: times of the events, and their
-- positions, which tell the order of what happened in the same microsecond.
-- A role is in force while its user is; each period of a user is a row of
-- access_periods.
CREATE TABLE access_grants (
    tenant        uuid        NOT NULL,
    user_id       uuid        NOT NULL,
    role          text        NOT NULL,
    project       uuid        NOT NULL, -- nil for roles of the tenant
    valid_from    timestamptz NOT NULL,
    valid_to      timestamptz,
    from_position bigint      NOT NULL,
    to_position   bigint,
    PRIMARY KEY (user_id, role, project, from_position)
);

CREATE TABLE access_periods (
    tenant        uuid        NOT NULL,
    user_id       uuid        NOT NULL,
    valid_from    timestamptz NOT NULL,
    valid_to      timestamptz,
    from_position bigint      NOT NULL,
    to_position   bigint,
    PRIMARY KEY (user_id, from_position)
);

-- Named permissions and business scopes, from when to when, as access_grants.
CREATE TABLE access_powers (
    tenant        uuid        NOT NULL,
    user_id       uuid        NOT NULL,
    kind          text        NOT NULL,
    power         text        NOT NULL,
    valid_from    timestamptz NOT NULL,
    valid_to      timestamptz,
    from_position bigint      NOT NULL,
    to_position   bigint,
    PRIMARY KEY (user_id, kind, power, from_position)
);
