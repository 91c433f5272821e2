// Package user holds the users of a tenant: their roles, states and API tokens,
// and, in streams of their own that can be erased, their personal data.
package user

import (
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// Categories of the feature's streams.
const (
	// Category: roles, state and tokens; no personal data.
	Category = "user"
	// PersonCategory: sealed personal data.
	PersonCategory = "person"
	// AdminsCategory: who counts as admin of the tenant, one stream per tenant.
	AdminsCategory = "admins"
)

// Types are the feature's events under their stored names.
var Types = []es.TypeDef{
	es.Type[Created]("user.created.v1"),
	es.Type[RoleGranted]("user.role_granted.v1"),
	es.Type[RoleRevoked]("user.role_revoked.v1"),
	es.Type[PermissionGranted]("user.permission_granted.v1"),
	es.Type[PermissionRevoked]("user.permission_revoked.v1"),
	es.Type[BusinessScopeSet]("user.business_scope_set.v1"),
	es.Type[QuotaSet]("user.quota_set.v1"),
	es.Type[Suspended]("user.suspended.v1"),
	es.Type[Reinstated]("user.reinstated.v1"),
	es.Type[Removed]("user.removed.v1"),
	es.Type[TokenIssued]("user.token_issued.v1"),
	es.Type[TokenRevoked]("user.token_revoked.v1"),
	es.Type[PersonalDataErased]("user.personal_data_erased.v1"),
	es.Type[Described]("person.described.v1"),
	es.Type[AdminCounted]("admins.counted.v1"),
	es.Type[AdminDiscounted]("admins.discounted.v1"),
}

// PublicEvents are, by stored names, what everybody of the tenant may know to
// have happened to a user: that they came, what they are called, where they
// stand. Roles and tokens are for themselves, tenant admins and auditors.
var PublicEvents = []string{
	"person.described.v1", "user.created.v1", "user.suspended.v1", "user.reinstated.v1", "user.removed.v1", "user.personal_data_erased.v1",
}

// Created opens a user. Who it is stands in the person's stream.
type Created struct {
	Person uuid.UUID `json:"person"`
}

// Changes implements es.Event.
func (e Created) Changes() []es.Change { return []es.Change{es.Set("person", e.Person)} }

// RoleGranted gives a role, in a project where the role is one of a project.
type RoleGranted struct {
	Role    access.Role `json:"role"`
	Project uuid.UUID   `json:"project,omitzero"`
}

// Changes implements es.Event.
func (e RoleGranted) Changes() []es.Change {
	return []es.Change{es.Set(roleField(e.Project), e.Role)}
}

// RoleRevoked takes a role.
type RoleRevoked struct {
	Role    access.Role `json:"role"`
	Project uuid.UUID   `json:"project,omitzero"`
}

// Changes implements es.Event.
func (e RoleRevoked) Changes() []es.Change {
	return []es.Change{{Field: roleField(e.Project), From: es.ValueOf(e.Role)}}
}

func roleField(project uuid.UUID) string {
	if project == uuid.Nil {
		return "roles"
	}
	return "projects." + project.String()
}

// Suspended takes all rights until the user is reinstated.
type Suspended struct{}

// Changes implements es.Event.
func (Suspended) Changes() []es.Change {
	return []es.Change{es.Moved("state", Active, SuspendedState)}
}

// Reinstated gives the rights back.
type Reinstated struct{}

// Changes implements es.Event.
func (Reinstated) Changes() []es.Change {
	return []es.Change{es.Moved("state", SuspendedState, Active)}
}

// TokenIssued adds an API token; its secret is known to the user alone.
type TokenIssued struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name,omitempty"`
	Digest    []byte    `json:"digest"` // SHA-256 of the secret
	ExpiresAt time.Time `json:"expiresAt"`
}

// Changes implements es.Event. The digest is left out: it is of no use to readers.
func (e TokenIssued) Changes() []es.Change {
	c := []es.Change{es.Set("token", e.ID), es.Set("expiresAt", e.ExpiresAt)}
	if e.Name != "" {
		c = append(c, es.Set("name", e.Name))
	}
	return c
}

// TokenRevoked ends an API token.
type TokenRevoked struct {
	ID uuid.UUID `json:"id"`
}

// Changes implements es.Event.
func (e TokenRevoked) Changes() []es.Change {
	return []es.Change{{Field: "token", From: es.ValueOf(e.ID)}}
}

// PersonalDataErased says that the person's key and stream are gone.
type PersonalDataErased struct {
	Person uuid.UUID `json:"person"`
}

// Changes implements es.Event.
func (e PersonalDataErased) Changes() []es.Change {
	return []es.Change{es.Moved("state", SuspendedState, Erased), {Field: "person", From: es.ValueOf(e.Person)}}
}
