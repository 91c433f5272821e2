CREATE TABLE tenants (
    id         uuid        PRIMARY KEY,
    name       text        NOT NULL,
    version    int         NOT NULL, -- counts the changes
    created_at timestamptz NOT NULL
);

CREATE TABLE projects (
    id          uuid        PRIMARY KEY,
    tenant      uuid        NOT NULL,
    name        text        NOT NULL,
    description text        NOT NULL,
    version     int         NOT NULL,
    closed_at   timestamptz, -- null: it is open
    created_at  timestamptz NOT NULL
);

-- Personal data, opened from the persons' streams. It is empty for who was
-- erased: their key is gone, so a rebuild can't bring it back.
CREATE TABLE users (
    id           uuid        PRIMARY KEY,
    tenant       uuid        NOT NULL,
    login_name   text        NOT NULL,
    display_name text        NOT NULL,
    email        text        NOT NULL,
    erased       boolean     NOT NULL,
    state        text        NOT NULL, -- empty until the user follows the person in the log
    created_at   timestamptz NOT NULL
);
