-- Whose request it was: how long its origin is kept is for each tenant to say.
-- Those from before belong to nobody that is known, and expire as the platform
-- says.
ALTER TABLE tallyard.request_origins ADD COLUMN tenant uuid;
DROP INDEX tallyard.request_origins_at;
CREATE INDEX request_origins_tenant ON tallyard.request_origins (tenant, at);
