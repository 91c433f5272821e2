CREATE INDEX settings_key ON settings (key, scope);
