CREATE INDEX tenants_name ON tenants (name, id);
CREATE INDEX projects_name ON projects (tenant, name, id);
CREATE INDEX users_login ON users (tenant, login_name, id);
