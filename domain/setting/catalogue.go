package setting

import (
	"fmt"
	"slices"

	"tallyard/domain/fault"
)

// Scope tells what settings hold for. A nearer scope counts before a wider one.
type Scope string

// Scopes, from the widest to the nearest.
const (
	Platform Scope = "PLATFORM"
	Tenant   Scope = "TENANT"
	Project  Scope = "PROJECT"
)

// Key names a setting, in events and in the schema alike.
type Key string

// The settings that there are.
const (
	// ModelPublishingEnabled lets people with the permission publish models (TEN-04).
	ModelPublishingEnabled Key = "modelPublishingEnabled"
	// GlobalAlgorithmApprovalRequired makes algorithms wait for an approval
	// before they are published to the whole tenant (ALG-05).
	GlobalAlgorithmApprovalRequired Key = "globalAlgorithmApprovalRequired"
	// ModelApprovalRequired makes models wait for an approval before they are
	// published (MDL-07).
	ModelApprovalRequired Key = "modelApprovalRequired"
	// ApprovalExpiryDays is after how many days a request for an approval
	// expires (APR-01).
	ApprovalExpiryDays Key = "approvalExpiryDays"
	// ClientAddressRetentionDays is how many days the audit keeps clients'
	// addresses (AUD-06).
	ClientAddressRetentionDays Key = "clientAddressRetentionDays"
)

// definition tells what a setting may be.
type definition struct {
	key Key
	// scopes in which it can be set.
	scopes []Scope
	// fallback holds where it is set nowhere, and tells the kind of its values.
	fallback Value
	min, max int64 // of numbers
}

var catalogue = []definition{
	{key: ModelPublishingEnabled, scopes: []Scope{Tenant}, fallback: Flag(false)},
	{key: GlobalAlgorithmApprovalRequired, scopes: []Scope{Platform, Tenant, Project}, fallback: Flag(false)},
	{key: ModelApprovalRequired, scopes: []Scope{Platform, Tenant, Project}, fallback: Flag(false)},
	{key: ApprovalExpiryDays, scopes: []Scope{Platform, Tenant}, fallback: Number(30), min: 1, max: 365},
	{key: ClientAddressRetentionDays, scopes: []Scope{Platform, Tenant}, fallback: Number(90), min: 1, max: 3650},
}

// Keys are the settings that there are, in the order in which they are shown.
func Keys() []Key {
	keys := make([]Key, len(catalogue))
	for i, d := range catalogue {
		keys[i] = d.key
	}
	return keys
}

func defined(k Key) (definition, bool) {
	i := slices.IndexFunc(catalogue, func(d definition) bool { return d.key == k })
	if i < 0 {
		return definition{}, false
	}
	return catalogue[i], true
}

// Fallback is what a setting is where nobody set it.
func Fallback(k Key) Value {
	d, _ := defined(k)
	return d.fallback
}

// check refuses a value that the setting can't have in a scope.
func (d definition) check(v Value, in Scope) *fault.Fault {
	field := string(d.key)
	switch {
	case !slices.Contains(d.scopes, in):
		return fault.New(fault.Invalid, fault.CodeNotAllowed, "This is no setting of a "+in.noun()+"; leave it out.").At(field)
	case v.isFlag != d.fallback.isFlag:
		return fault.New(fault.Invalid, fault.CodeInvalidValue, "This setting has values of another type; give one of its own.").At(field)
	case !v.isFlag && (v.number < d.min || v.number > d.max):
		return fault.New(fault.Invalid, fault.CodeOutOfRange, fmt.Sprintf("This setting lies between %d and %d; choose a value in between.", d.min, d.max)).At(field)
	}
	return nil
}

func (s Scope) noun() string {
	switch s {
	case Platform:
		return "platform"
	case Tenant:
		return "tenant"
	default:
		return "project"
	}
}
