CREATE INDEX spaces_created ON spaces (tenant, created_at, id);
CREATE INDEX spaces_owner ON spaces (tenant, owner);
CREATE INDEX spaces_project ON spaces (tenant, project);
