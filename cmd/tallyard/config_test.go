package main

import (
	"strings"
	"testing"
	"time"
)

func TestSettings(t *testing.T) {
	good := config{addr: "127.0.0.1:0", dataDir: "data", roles: allRoles, logFormat: "json", shutdown: time.Second}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(*config)
		says  string
	}{
		"no time to stop":         {func(c *config) { c.shutdown = -time.Second }, "--shutdown-timeout"},
		"copies below the lowest": {func(c *config) { c.copyRate = 1 }, "--copy-rate"},
		"a negative copy rate":    {func(c *config) { c.copyRate = -1 }, "--copy-rate"},
	} {
		bad := good
		c.spoil(&bad)
		if err := bad.check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStrayArgument(t *testing.T) {
	err := root().Run(t.Context(), []string{"tallyard", "dev", "data-dir=./data"})
	if err == nil || !strings.Contains(err.Error(), "data-dir=./data") {
		t.Errorf("came to %v", err)
	}
}
