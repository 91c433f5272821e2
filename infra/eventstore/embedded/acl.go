package embedded

import (
	"encoding/json"
	"slices"
	"strings"
)

// access is what somebody wants of a stream.
type access int

const (
	accessRead access = iota
	accessWrite
	accessDelete
	accessMetaRead
	accessMetaWrite
	accessKinds
)

// aclKeys are the names of the kinds of access in an access control list.
var aclKeys = [accessKinds]string{"$r", "$w", "$d", "$mr", "$mw"}

const (
	// everyone in a list lets in whoever comes, with or without a name.
	everyone = "$all"

	settingsStream  = "$settings"
	userStreamACL   = "$userStreamAcl"
	systemStreamACL = "$systemStreamAcl"
)

// acl is an access control list: users and groups by kind of access. Nil for a
// kind says nothing about it, so that a default holds.
type acl [accessKinds][]string

// parseACL reads the value of $acl or of a default. What is no list, and a list
// with something else than names in it, lets nobody in but admins: a slip of
// the pen must not open a stream.
func parseACL(raw json.RawMessage) acl {
	var list acl
	var kinds map[string]json.RawMessage
	if json.Unmarshal(raw, &kinds) != nil {
		return closedACL()
	}
	for i, key := range aclKeys {
		v, ok := kinds[key]
		if !ok || string(v) == "null" {
			continue
		}
		var one string
		var many []string
		switch {
		case json.Unmarshal(v, &one) == nil:
			list[i] = []string{one}
		case json.Unmarshal(v, &many) == nil:
			list[i] = append([]string{}, many...)
		default:
			list[i] = []string{}
		}
	}
	return list
}

// closedACL lets nobody in but admins.
func closedACL() acl {
	var list acl
	for i := range list {
		list[i] = []string{}
	}
	return list
}

// orElse fills what the list says nothing about.
func (a acl) orElse(b acl) acl {
	for i := range a {
		if a[i] == nil {
			a[i] = b[i]
		}
	}
	return a
}

// permits tells whether somebody has a kind of access. A list that says nothing
// lets in every user, but nobody unknown.
func (a acl) permits(who principal, want access) bool {
	if who.admin() {
		return true
	}
	names := a[want]
	if names == nil {
		return who.known()
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return n == everyone || who.known() && (n == who.name || who.in(n))
	})
}

// defaultACLs hold for streams that have no list of their own.
type defaultACLs struct {
	user, system acl
}

// builtinACLs hold where the stream $settings says nothing: users have access to
// streams of users, admins alone to those of the system.
func builtinACLs() defaultACLs {
	var d defaultACLs
	for i := range d.system {
		d.system[i] = []string{groupAdmins}
	}
	return d
}

// parseSettings reads the defaults from the body of an event of $settings. What
// can't be read opens nothing: it may have been meant to close.
func parseSettings(data []byte) defaultACLs {
	d := builtinACLs()
	if len(data) == 0 {
		return d
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(data, &raw) != nil {
		return defaultACLs{user: closedACL(), system: closedACL()}
	}
	if v, ok := raw[userStreamACL]; ok {
		d.user = parseACL(v).orElse(d.user)
	}
	if v, ok := raw[systemStreamACL]; ok {
		d.system = parseACL(v).orElse(d.system)
	}
	return d
}

// of gives the list that holds for a stream, whose metadata is given if it has
// any. Metadata that can't be read may have held a list, so it opens nothing.
func (d defaultACLs) of(stream string, metadata []byte) acl {
	fallback := d.user
	if isSystem(stream) {
		fallback = d.system
	}
	if len(metadata) == 0 {
		return fallback
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(metadata, &raw) != nil {
		return closedACL()
	}
	own, ok := raw["$acl"]
	if !ok {
		return fallback
	}
	var name string
	if json.Unmarshal(own, &name) == nil {
		switch name {
		case userStreamACL:
			return d.user
		case systemStreamACL:
			return d.system
		}
	}
	return parseACL(own).orElse(fallback)
}

// isSystem tells whether a stream is the system's, $all included.
func isSystem(stream string) bool { return strings.HasPrefix(stream, "$") }
