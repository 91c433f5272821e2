CREATE INDEX images_created ON images (tenant, created_at, id);
CREATE INDEX images_name ON images (tenant, name, id);
