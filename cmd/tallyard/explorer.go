package main

import "tallyard/web/explorer"

// devPeople are the people of the development mode, for the explorer's choice.
var devPeople = []explorer.Person{
	{Name: "alice", Token: "dev-alice", Note: "member of vision"},
	{Name: "bob", Token: "dev-bob", Note: "member of vision"},
	{Name: "carol", Token: "dev-carol", Note: "admin of vision"},
	{Name: "admin", Token: "dev-admin", Note: "admin of acme"},
	{Name: "audra", Token: "dev-audra", Note: "auditor of acme"},
	{Name: "oscar", Token: "dev-oscar", Note: "operator"},
	{Name: "mallory", Token: "dev-mallory", Note: "of globex, another tenant"},
}

// example is what the explorer opens with.
const example = `# Welcome to Tallyard. Choose who you are at the top, then press the play button
# and pick an operation. Watch shows changes as they happen.

query Look {
  me {
    user { loginName displayName }
    tenant { name }
    projects { id name }
  }
  algorithms(first: 10) {
    nodes {
      id
      name
      owner { displayName }
      latestVersion { id label state visibility }
    }
  }
}

subscription Watch {
  algorithmEvents(filter: { scope: ALL }) {
    kind
    change { at event actor { user { loginName } part } }
    algorithm { name latestVersion { label state } }
  }
}

query Audit {
  auditEntries(first: 10) {
    nodes { at action outcome actor { user { loginName } part } subject { kind } address }
  }
}
`
