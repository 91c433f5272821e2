package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tree makes a repository of some files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "-C", root, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return root
}

func TestCheck(t *testing.T) {
	long := strings.Repeat("//\n", maxLines+1)
	for name, test := range map[string]struct {
		files map[string]string
		want  string // "": no finding
	}{
		"a feature imports itself and shared rooms": {
			map[string]string{"domain/a/x.go": "package a\nimport _ \"tallyard/domain/es\"\nimport _ \"tallyard/domain/a/b\"\n"}, "",
		},
		"a feature imports another": {
			map[string]string{"domain/a/x.go": "package a\nimport _ \"tallyard/domain/b\"\n"}, "domain/a/x.go:2: domain/a imports tallyard/domain/b",
		},
		"a flow imports several": {
			map[string]string{"domain/flows/p/x.go": "package p\nimport _ \"tallyard/domain/b\"\n"}, "",
		},
		"a feature imports a flow": {
			map[string]string{"domain/a/x.go": "package a\nimport _ \"tallyard/domain/flows/p\"\n"}, "imports tallyard/domain/flows/p",
		},
		"a projection imports another": {
			map[string]string{"projections/a/x.go": "package a\nimport _ \"tallyard/projections/b\"\n"}, "features never",
		},
		"a resolver imports several": {
			map[string]string{"graph/a.resolvers.go": "package graph\nimport _ \"tallyard/graph/a\"\nimport _ \"tallyard/graph/b\"\n"}, "",
		},
		"a long file":            {map[string]string{"x.go": "package x\n" + long}, "more than 500"},
		"a long generated file":  {map[string]string{"graph/generated/x.go": "package x\n" + long}, ""},
		"a long file on purpose": {map[string]string{"x.go": "package x\n// Long on purpose: one table that is read as a whole.\n" + long}, ""},
		"a good link":            {map[string]string{"README.md": "[a](docs/a.md#the-a-b) [w](https://example.org)", "docs/a.md": "# The `a` b\n[up](../README.md)"}, ""},
		"a dead link":            {map[string]string{"README.md": "x\n[a](docs/a.md)"}, "README.md:2: docs/a.md: no such file"},
		"a dead anchor":          {map[string]string{"README.md": "# Hello\n[a](#bye)"}, "no such heading"},
		"a link in code":         {map[string]string{"README.md": "```\n[a](b.md)\n```"}, ""},
		"a rule":                 {map[string]string{"x_test.go": "package x // ALG-05_members"}, ""},
		"no rule":                {map[string]string{"x.md": "MDL-12"}, "MDL-12 is no rule: MDL has 01 to 11"},
		"a rule written short":   {map[string]string{"x.md": "ALG-5"}, "is written ALG-05"},
		"left for later":         {map[string]string{"x.go": "package x\n// FIX" + "ME this"}, "x.go:2"},
		"an ignored file":        {map[string]string{".gitignore": "bin/\n", "bin/x.md": "MDL-99"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			code := run(tree(t, test.files), &out)
			if (code != 0) != (test.want != "") || !strings.Contains(out.String(), test.want) {
				t.Fatalf("exit %d, want %q:\n%s", code, test.want, &out)
			}
		})
	}
}
