CREATE INDEX access_grants_project ON access_grants (tenant, project, role);
