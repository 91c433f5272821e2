// Package oidc verifies the tokens of OpenID Connect identity providers: who
// they say somebody is, and in which groups (TEN-06).
package oidc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"tallyard/domain/access"
	"tallyard/domain/flows/signin"
)

const (
	// defaultSkew is how far a provider's clock may be off unless its Config says
	// otherwise, and maxSkew how much it may say.
	defaultSkew = 30 * time.Second
	maxSkew     = 5 * time.Minute
	// maxConfig bounds a file of providers, in bytes.
	maxConfig = 1 << 20
)

// Config is one identity provider, as the operator's file has it:
//
//	{"providers": [{
//	  "issuer": "https://login.example.com", "audience": "tallyard", "tenant": "acme",
//	  "claims": {"groups": "roles"},
//	  "roles": [{"group": "ml-admins", "role": "TENANT_ADMIN"},
//	            {"group": "vision", "role": "MEMBER", "project": "vision"}]
//	}]}
type Config struct {
	// Issuer is the provider's address, as its tokens name it. Its keys and
	// endpoints are found from there. https, but on loopback.
	Issuer string `json:"issuer"`
	// Audience is what tokens must be made for: the client id in ID tokens, the
	// name of the API in access tokens.
	Audience string `json:"audience"`
	// Name is what people know the provider by; the page shows it. The issuer's
	// host when absent.
	Name string `json:"name"`
	// ClientID is the program at the provider, for sign-in by browser; the
	// audience when absent. ClientSecretFile is a file with what it shows there;
	// without one it is a public client.
	ClientID         string `json:"clientId"`
	ClientSecretFile string `json:"clientSecretFile"`
	// Scopes are asked for besides openid, profile and email.
	Scopes []string `json:"scopes"`
	// Tenant is the name of the tenant that the provider's people belong to.
	Tenant string `json:"tenant"`
	// SkewSeconds is how far the provider's clock may be behind or ahead;
	// 30 when absent, 300 at most.
	SkewSeconds *int `json:"skewSeconds"`
	// Claims name where tokens have what is wanted of them.
	Claims Claims `json:"claims"`
	// Roles say which roles the members of a group hold.
	Roles []signin.RoleOfGroup `json:"roles"`
	// Create lets whoever the provider knows in, with a user made at the first
	// sign-in, whether or not a group gives them a role.
	Create bool `json:"create"`
}

// Claims are names of claims; empty ones take the usual.
type Claims struct {
	Login  string `json:"login"`  // preferred_username
	Name   string `json:"name"`   // name
	Email  string `json:"email"`  // email
	Groups string `json:"groups"` // groups
}

// Parse reads a file of providers and tells everything that is wrong with it.
func Parse(text []byte) ([]Config, error) {
	if len(text) > maxConfig {
		return nil, fmt.Errorf("it has more than %d bytes", maxConfig)
	}
	var file struct {
		Providers []Config `json:"providers"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("something follows the first JSON value")
	}
	if len(file.Providers) == 0 {
		return nil, errors.New("it names no provider")
	}
	var all error
	issuers := map[string]bool{}
	for i := range file.Providers {
		c := &file.Providers[i]
		c.fill()
		if err := c.check(); err != nil {
			all = errors.Join(all, fmt.Errorf("providers[%d]: %w", i, err))
		}
		if issuers[c.Issuer] {
			all = errors.Join(all, fmt.Errorf("providers[%d]: %s is there twice", i, c.Issuer))
		}
		issuers[c.Issuer] = true
	}
	return file.Providers, all
}

func (c *Config) fill() {
	for name, usual := range map[*string]string{
		&c.Claims.Login: "preferred_username", &c.Claims.Name: "name", &c.Claims.Email: "email", &c.Claims.Groups: "groups",
	} {
		if *name == "" {
			*name = usual
		}
	}
	if c.ClientID == "" {
		c.ClientID = c.Audience
	}
}

// Label is what people know the provider by.
func (c *Config) Label() string {
	if c.Name != "" {
		return c.Name
	}
	u, err := url.Parse(c.Issuer)
	if err != nil {
		return c.Issuer
	}
	return u.Host
}

func (c *Config) skew() time.Duration {
	if c.SkewSeconds == nil {
		return defaultSkew
	}
	return time.Duration(*c.SkewSeconds) * time.Second
}

func (c *Config) check() error {
	err := checkIssuer(c.Issuer)
	if c.Audience == "" {
		err = errors.Join(err, errors.New("it has no audience"))
	}
	if c.Tenant == "" {
		err = errors.Join(err, errors.New("it has no tenant"))
	}
	if s := c.skew(); s < 0 || s > maxSkew {
		err = errors.Join(err, fmt.Errorf("skewSeconds is %d: give 0 to %d", *c.SkewSeconds, int(maxSkew.Seconds())))
	}
	for i, r := range c.Roles {
		if e := checkRole(r); e != nil {
			err = errors.Join(err, fmt.Errorf("roles[%d]: %w", i, e))
		}
	}
	return err
}

func checkRole(r signin.RoleOfGroup) error {
	switch {
	case r.Group == "":
		return errors.New("it names no group")
	case !r.Role.Valid():
		return fmt.Errorf("there is no role %q", r.Role)
	case r.Role == access.Operator:
		return errors.New("operators are of the platform, no provider of a tenant makes them")
	case r.Role.OfProject() != (r.Project != ""):
		return fmt.Errorf("%s and project %q: roles of a project name it, others don't", r.Role, r.Project)
	}
	return nil
}

// checkIssuer holds issuers to addresses whose answers can be trusted.
func checkIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	switch {
	case err != nil:
		return fmt.Errorf("issuer: %w", err)
	case u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return fmt.Errorf("issuer %q is no address of a provider", u.Redacted())
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	default:
		return fmt.Errorf("issuer %q: it must be https, since the keys come from there", issuer)
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
