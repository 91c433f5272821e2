package oidc_test

import (
	"strings"
	"testing"

	"tallyard/infra/oidc"
)

func TestParse(t *testing.T) {
	const good = `{"providers": [{"issuer": "https://login.example.com", "audience": "tallyard", "tenant": "acme",
		"skewSeconds": 0, "claims": {"groups": "roles"}, "create": true,
		"roles": [{"group": "ml-admins", "role": "TENANT_ADMIN"}, {"group": "vision", "role": "MEMBER", "project": "vision"}]}]}`
	got, err := oidc.Parse([]byte(good))
	if err != nil || len(got) != 1 || got[0].Claims != (oidc.Claims{Login: "preferred_username", Name: "name", Email: "email", Groups: "roles"}) || len(got[0].Roles) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	provider := func(more string) string {
		return `{"providers": [{"issuer": "https://login.example.com", "audience": "tallyard", "tenant": "acme"` + more + `}]}`
	}
	for text, words := range map[string]string{
		``:                               "EOF",
		`{"providers": []}`:              "names no provider",
		good + `{}`:                      "follows",
		provider(`, "rolls": []`):        `unknown field "rolls"`,
		provider(`, "skewSeconds": -1`):  "give 0 to 300",
		provider(`, "skewSeconds": 301`): "give 0 to 300",
		provider(`, "roles": [{"role": "MEMBER", "project": "p"}]`):                                        "roles[0]: it names no group",
		provider(`, "roles": [{"group": "g", "role": "KING"}]`):                                            `no role "KING"`,
		provider(`, "roles": [{"group": "g", "role": "OPERATOR"}]`):                                        "operators are of the platform",
		provider(`, "roles": [{"group": "g", "role": "MEMBER"}]`):                                          "roles of a project name it",
		provider(`, "roles": [{"group": "g", "role": "AUDITOR", "project": "p"}]`):                         "others don't",
		strings.Replace(provider(""), "https://", "http://", 1):                                            "it must be https",
		strings.Replace(provider(""), "https://", "https://me:secret@", 1):                                 "no address of a provider",
		strings.Replace(provider(""), "login.example.com", "login.example.com?a", 1):                       "no address of a provider",
		strings.Replace(provider(""), `"tallyard"`, `""`, 1):                                               "no audience",
		strings.Replace(provider(""), `"acme"`, `""`, 1):                                                   "no tenant",
		strings.Replace(provider(""), "}]}", "}, "+strings.TrimPrefix(provider(""), `{"providers": [`), 1): "there twice",
		`{"providers": [{}]}`:                     "no audience\nit has no tenant",
		strings.Repeat(" ", 1<<20) + provider(""): "more than",
	} {
		_, err := oidc.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%.200s\n%v, want %s", text, err, words)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("it tells the secret: %v", err)
		}
	}
	if _, err := oidc.Parse([]byte(strings.Replace(provider(""), "https://login.example.com", "http://127.0.0.1:8000", 1))); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"providers": [{"issuer": "https://login.example.com", "audience": "tallyard", "tenant": "acme"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := oidc.Parse(text)
		if err == nil && (len(got) == 0 || got[0].Issuer == "" || got[0].Audience == "" || got[0].Tenant == "") {
			t.Errorf("%+v", got)
		}
	})
}
